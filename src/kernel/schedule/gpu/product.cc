#include "kernel/schedule/gpu/product.h"

#include <algorithm>

namespace kiln::kernel {
namespace {

constexpr int64_t kMostBlocks = int64_t{1} << 20;

int64_t CeilDiv(int64_t a, int64_t b) { return (a + b - 1) / b; }

int64_t PointsOf(const Kernel& kernel, const std::vector<int>& variables) {
  int64_t points = 1;
  for (int v : variables) points *= kernel.variables[static_cast<size_t>(v)].extent;
  return points;
}

// On which variables a node depends.
std::vector<bool> VariablesOf(const Kernel& kernel, const Stage& stage, int node) {
  std::vector<bool> on(kernel.variables.size(), false);
  std::vector<bool> seen(stage.nodes.size(), false);
  std::vector<int> work = {node};
  auto add_values = [&](const Index& index, auto&& self) -> void {
    for (const Index::Term& t : index.terms()) {
      if (t.atom.kind == Atom::Kind::kVariable) on[static_cast<size_t>(t.atom.id)] = true;
      if (t.atom.kind == Atom::Kind::kValue) work.push_back(static_cast<int>(t.atom.id));
      if (t.atom.inner && t.atom.kind != Atom::Kind::kValue) self(*t.atom.inner, self);
    }
  };
  while (!work.empty()) {
    auto at = static_cast<size_t>(work.back());
    work.pop_back();
    if (seen[at]) continue;
    seen[at] = true;
    const Node& n = stage.nodes[at];
    add_values(n.index, add_values);
    if (n.guard >= 0) work.push_back(n.guard);
    work.insert(work.end(), n.operands.begin(), n.operands.end());
  }
  return on;
}

struct Tile {
  int m, n, k, thread_m, thread_n;
};
constexpr Tile kTiles[] = {{128, 128, 8, 8, 8}, {64, 64, 16, 4, 4}, {32, 32, 16, 2, 2}};

}  // namespace

std::optional<GpuFactors> FindGpuFactors(const Kernel& kernel) {
  if (kernel.kind != Kernel::Kind::kNest || kernel.stages.size() < 2) return std::nullopt;
  const Stage& stage = kernel.stages[0];
  if (stage.reductions.size() != 1 || !stage.stores.empty()) return std::nullopt;
  const Reduction& r = stage.reductions[0];
  if (r.combiner.kind != Combiner::Kind::kSum || r.inputs.size() != 1 || r.guard >= 0) {
    return std::nullopt;
  }
  for (size_t s = 1; s < kernel.stages.size(); ++s) {
    const Stage& later = kernel.stages[s];
    if (!later.variables.empty() || !later.reductions.empty()) return std::nullopt;
  }
  const Node& product = stage.nodes[static_cast<size_t>(r.inputs[0])];
  if (product.kind != Node::Kind::kOp || product.opcode != Opcode::kMultiply) return std::nullopt;
  if (IsPred(product.type)) return std::nullopt;
  GpuFactors f;
  f.x = product.operands[0];
  f.y = product.operands[1];
  std::vector<bool> x = VariablesOf(kernel, stage, f.x), y = VariablesOf(kernel, stage, f.y);
  for (int v = 0; v < kernel.outer; ++v) {
    auto at = static_cast<size_t>(v);
    if (kernel.variables[at].extent == 0) return std::nullopt;
    (x[at] == y[at] ? f.batch : x[at] ? f.rows : f.columns).push_back(v);
  }
  for (int v : stage.variables) {
    if (kernel.variables[static_cast<size_t>(v)].extent == 0) return std::nullopt;
    f.inner.push_back(v);
  }
  if (!f.rows.empty() && f.rows.back() == kernel.outer - 1) {
    std::swap(f.rows, f.columns);
    std::swap(f.x, f.y);
  }
  return f;
}

std::optional<GpuSchedule> ScheduleGpuProduct(const Kernel& kernel, const target::Gpu& gpu) {
  auto f = FindGpuFactors(kernel);
  if (!f) return std::nullopt;
  const int64_t m = PointsOf(kernel, f->rows), n = PointsOf(kernel, f->columns);
  const int64_t k = PointsOf(kernel, f->inner), batch = PointsOf(kernel, f->batch);
  // What is read once, or nearly so, wins nothing in shared memory.
  if (std::min(m, n) < 8 || k < 4) return std::nullopt;
  const Stage& stage = kernel.stages[0];
  ElementType type = stage.nodes[static_cast<size_t>(f->x)].type;
  GpuSchedule s;
  s.form = GpuSchedule::Form::kProduct;
  // The largest tile of which there are enough.
  for (const Tile& t : kTiles) {
    int64_t tiles = batch * CeilDiv(m, t.m) * CeilDiv(n, t.n);
    bool last = &t == &kTiles[std::size(kTiles) - 1];
    if (!last && (tiles < gpu.multiprocessors || ByteWidth(type) > 4)) continue;
    s.product = {t.m, t.n, t.k, t.thread_m, t.thread_n};
    s.launches[0].threads = (t.m / t.thread_m) * (t.n / t.thread_n);
    s.launches[0].blocks = std::min(tiles, kMostBlocks);
    break;
  }
  s.launches[0].shared_bytes = s.product.SharedBytes(type);
  return s;
}

}  // namespace kiln::kernel
