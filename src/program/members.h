// The members of a program's structs, in their order, which is that of files: one description for
// writer and reader. All are named here, so that a new member does not compile until it is. A
// change of them is a new version of the format (container.h).
#pragma once

#include <concepts>
#include <tuple>
#include <type_traits>

#include "program/program.h"

namespace kiln::program {

// T or const T.
template <typename S, typename T>
concept Like = std::same_as<std::remove_const_t<S>, T>;

#define KILN_MEMBERS(Struct, ...)            \
  auto MembersOf(Like<Struct> auto& whole) { \
    auto& [__VA_ARGS__] = whole;             \
    return std::tie(__VA_ARGS__);            \
  }

KILN_MEMBERS(Allocation, kind, number, bytes)
KILN_MEMBERS(Slice, allocation, offset, bytes)
KILN_MEMBERS(Launch, kernel, args, id, inlined)
KILN_MEMBERS(Copy, from, to)
KILN_MEMBERS(HostCall, target, args, config, id)
KILN_MEMBERS(While, condition, predicate, body, id, fused, trips)
KILN_MEMBERS(Conditional, index, by_predicate, branches)
KILN_MEMBERS(Step, what)
KILN_MEMBERS(Grid, symbol, blocks, threads, shared_bytes)
KILN_MEMBERS(LibraryMatrix, argument, offset, stride, batch_stride, along_k, alignment)
KILN_MEMBERS(LibraryGemm, m, n, k, batch, factor, sum, out, tf32, x, y, out_matrix)
KILN_MEMBERS(Kernel, name, grids, library)
KILN_MEMBERS(LaunchInfo, kernel_name, op_names, bytes, flops, is_call)
KILN_MEMBERS(Signature, parameters, parameter_names, results, result_shape, aliases, must_alias)
KILN_MEMBERS(Program, name, target, frame_version, id, signature, argument_alignments, allocations,
             constants, donatable, frozen, prologue, binding, steps, kernels, launches, arena_bytes,
             scratch_bytes, flops, transcendentals, has_partial_cost, nanoseconds)

#undef KILN_MEMBERS

}  // namespace kiln::program
