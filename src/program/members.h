// The members of a program's structs, in their order in files: one description for writer and
// reader. A change here is a new version of the format (saved.cc).
#pragma once

#include <concepts>
#include <tuple>
#include <type_traits>

#include "program/program.h"

namespace kiln::program {

// T or const T.
template <typename S, typename T>
concept Like = std::same_as<std::remove_const_t<S>, T>;

auto MembersOf(Like<Allocation> auto& a) { return std::tie(a.kind, a.number, a.bytes); }
auto MembersOf(Like<Slice> auto& s) { return std::tie(s.allocation, s.offset, s.bytes); }
auto MembersOf(Like<Launch> auto& l) { return std::tie(l.kernel, l.args, l.id, l.inlined); }
auto MembersOf(Like<Copy> auto& c) { return std::tie(c.from, c.to); }
auto MembersOf(Like<HostCall> auto& c) { return std::tie(c.target, c.args, c.config, c.id); }
auto MembersOf(Like<While> auto& w) {
  return std::tie(w.condition, w.predicate, w.body, w.id, w.fused, w.trips);
}
auto MembersOf(Like<Conditional> auto& c) { return std::tie(c.index, c.by_predicate, c.branches); }
auto MembersOf(Like<Step> auto& s) { return std::tie(s.what); }
auto MembersOf(Like<Grid> auto& g) {
  return std::tie(g.symbol, g.blocks, g.threads, g.shared_bytes);
}
auto MembersOf(Like<LibraryMatrix> auto& m) {
  return std::tie(m.argument, m.offset, m.stride, m.batch_stride, m.along_k, m.alignment);
}
auto MembersOf(Like<LibraryGemm> auto& g) {
  return std::tie(g.m, g.n, g.k, g.batch, g.factor, g.sum, g.out, g.tf32, g.x, g.y, g.out_matrix);
}
auto MembersOf(Like<Kernel> auto& k) { return std::tie(k.name, k.grids, k.library); }
auto MembersOf(Like<LaunchInfo> auto& l) {
  return std::tie(l.kernel_name, l.op_names, l.bytes, l.flops, l.is_call);
}
auto MembersOf(Like<Signature> auto& s) {
  return std::tie(s.parameters, s.parameter_names, s.results, s.result_shape, s.aliases,
                  s.must_alias);
}
auto MembersOf(Like<Program> auto& p) {
  return std::tie(p.name, p.target, p.frame_version, p.id, p.signature, p.argument_alignments,
                  p.donatable, p.allocations, p.constants, p.prologue, p.steps, p.kernels,
                  p.launches, p.arena_bytes, p.scratch_bytes, p.flops, p.transcendentals,
                  p.has_partial_cost, p.nanoseconds);
}
// Without the time of its compilation: equal programs have equal bytes.
auto MembersOf(Like<Artefact> auto& a) { return std::tie(a.program, a.code); }

}  // namespace kiln::program
