#include "kernel/collapse.h"

#include <algorithm>
#include <numeric>
#include <utility>
#include <vector>

namespace kiln::kernel {
namespace {

template <typename F>
void ForEachIndex(Kernel& kernel, F&& f) {
  for (Stage& stage : kernel.stages) {
    for (Node& node : stage.nodes) {
      if (node.kind == Node::Kind::kIndex || node.kind == Node::Kind::kInRange ||
          node.kind == Node::Kind::kLoad) {
        f(node.index);
      }
    }
    for (Store& store : stage.stores) f(store.index);
    for (Update& update : stage.updates) {
      for (Index& index : update.indices) f(index);
    }
  }
}

// Rewrites every index for new variables: an old variable v is replacements[v].
void Renumber(Kernel& kernel, const IdVector<VariableId, Index>& replacements) {
  ForEachIndex(kernel, [&](Index& index) { index = index.Substitute(replacements); });
}

// Whether a and b may be one variable, a the outer of the two: wherever they occur, a's stride is
// b's times b's extent.
bool WalkAsOne(Kernel& kernel, VariableId a, VariableId b) {
  bool one = true;
  int64_t extent = kernel.variables[b].extent;
  ForEachIndex(kernel, [&](Index& index) {
    if (!one) return;
    auto sa = index.StrideOf(a), sb = index.StrideOf(b);
    one = sa && sb && *sa == *sb * extent;
  });
  return one;
}

// Removes the variables of extent 1, which no index has.
void EraseOnes(Kernel& kernel) {
  IdVector<VariableId, VariableId> now(kernel.variables.size());
  IdVector<VariableId, Index> replacements(kernel.variables.size());
  VariableId next(0);
  int outer = 0;
  bool moves = false;
  for (VariableId v : kernel.variables.ids()) {
    if (kernel.variables[v].extent == 1) continue;
    if (kernel.IsOuter(v)) ++outer;
    moves |= v != next;
    replacements[v] = Index::Variable(next, kernel.variables[v].extent);
    now[v] = next;
    ++next;
  }
  if (moves) Renumber(kernel, replacements);
  kernel.outer = outer;
  kernel.variables.erase(
      std::remove_if(kernel.variables.begin(), kernel.variables.end(),
                     [](const Variable& variable) { return variable.extent == 1; }),
      kernel.variables.end());
  for (Stage& stage : kernel.stages) {
    for (VariableId& v : stage.variables) v = now[v];
    std::erase(stage.variables, VariableId());
  }
}

// Merges b into a, its outer neighbour.
void Merge(Kernel& kernel, VariableId a, VariableId b) {
  int64_t extent = kernel.variables[b].extent;
  kernel.variables[a].extent *= extent;
  Index merged = Index::Variable(a, kernel.variables[a].extent);
  IdVector<VariableId, Index> replacements;
  for (VariableId v : kernel.variables.ids()) {
    replacements.push_back(Index::Variable(v, kernel.variables[v].extent));
  }
  // a*stride*extent + b*stride with (a, b) = (merged div extent, merged mod extent) recombines.
  replacements[a] = merged.FloorDiv(extent);
  replacements[b] = merged.Mod(extent);
  Renumber(kernel, replacements);
  kernel.variables[b].extent = 1;
  EraseOnes(kernel);
}

// Puts the outer variables in the order in which the first output's memory runs: a result whose
// layout is not row-major is then walked along its memory, too.
void OrderByOutput(Kernel& kernel) {
  const Index* output = nullptr;
  for (const Stage& stage : kernel.stages) {
    if (!stage.stores.empty()) output = &stage.stores[0].index;
    if (!stage.updates.empty()) output = &stage.updates[0].indices[0];
  }
  if (!output) return;
  IdVector<VariableId, std::pair<int64_t, VariableId>> order;  // stride, old variable
  for (VariableId v : kernel.OuterVariables()) {
    auto stride = output->StrideOf(v);
    if (!stride) return;
    order.push_back({*stride, v});
  }
  std::stable_sort(order.begin(), order.end(),
                   [](const auto& a, const auto& b) { return a.first > b.first; });
  const IdVector<VariableId, Variable> variables = kernel.variables;
  IdVector<VariableId, Index> replacements(variables.size());
  for (VariableId v : variables.ids()) {
    replacements[v] = Index::Variable(v, variables[v].extent);
  }
  for (VariableId at : kernel.OuterVariables()) {
    const VariableId old = order[at].second;
    kernel.variables[at] = variables[old];
    replacements[old] = Index::Variable(at, variables[old].extent);
  }
  Renumber(kernel, replacements);
}

// The first pair of neighbours in `run` that may merge, merged.
bool MergeOne(Kernel& kernel, const std::vector<VariableId>& run) {
  for (size_t i = run.size(); i-- > 1;) {
    const VariableId a = run[i - 1], b = run[i];
    if (kernel.variables[a].reduction != kernel.variables[b].reduction) continue;
    // Sizes of 0 stay apart: they have nothing to gain.
    if (kernel.variables[a].extent == 0 || kernel.variables[b].extent == 0) continue;
    if (!WalkAsOne(kernel, a, b)) continue;
    Merge(kernel, a, b);
    return true;
  }
  return false;
}

// Shorter pieces are no vectors.
constexpr int64_t kShortestPiece = 16;

// Whether pieces are so short that vectors go across them, and are put together where they are
// stored.
bool AreInterleaved(const Kernel& kernel, VariableId v, int64_t piece) {
  return piece >= 2 && piece <= kMostInterleaved && kernel.variables[v].extent / piece >= 16 &&
         std::ranges::all_of(kernel.stages[StageId(0)].stores,
                             [&](const Store& store) { return store.index.StrideOf(v) == 1; });
}

// The divisor of all quotients and remainders that the variable is in alone; 0 without any.
int64_t PieceOf(Kernel& kernel, VariableId v) {
  int64_t piece = 0;
  const Index alone = Index::Variable(v, kernel.variables[v].extent);
  ForEachIndex(kernel, [&](Index& index) {
    for (const Index::Term& t : index.terms()) {
      if (t.atom.divisor > 0 && *t.atom.inner == alone) piece = std::gcd(piece, t.atom.divisor);
    }
  });
  return piece;
}

// 0 <= index < bound as the same of pieces, if the index is in one piece for all of its points.
void CompareByPieces(Node& node, VariableId in_piece, int64_t piece) {
  if (node.kind != Node::Kind::kInRange || node.bound % piece != 0) return;
  Index pieces = node.index.FloorDiv(piece);
  if (pieces.DependsOn(in_piece)) return;
  node.index = std::move(pieces);
  node.bound /= piece;
}

}  // namespace

void SplitPieces(Kernel& kernel) {
  if (kernel.kind != Kernel::Kind::kNest || kernel.stages.size() != 1 || kernel.outer == 0 ||
      kernel.variables.size() != static_cast<size_t>(kernel.outer)) {
    return;
  }
  const VariableId v = kernel.LastOuter(), in_piece(kernel.outer);
  const int64_t extent = kernel.variables[v].extent, piece = PieceOf(kernel, v);
  if (piece < 2 || piece >= extent || extent % piece != 0) return;
  if (piece < kShortestPiece && !AreInterleaved(kernel, v, piece)) return;
  IdVector<VariableId, Index> replacements;
  for (VariableId other : kernel.variables.ids()) {
    replacements.push_back(Index::Variable(other, kernel.variables[other].extent));
  }
  replacements[v] = Index::Variable(v, extent / piece) * piece + Index::Variable(in_piece, piece);
  bool linear = true;
  ForEachIndex(kernel, [&](const Index& index) {
    linear = linear && index.Substitute(replacements).StrideOf(in_piece).has_value();
  });
  if (!linear) return;
  Renumber(kernel, replacements);
  kernel.variables[v].extent = extent / piece;
  kernel.variables.push_back({piece});
  ++kernel.outer;
  for (Node& node : kernel.stages[StageId(0)].nodes) CompareByPieces(node, in_piece, piece);
}

void CollapseVariables(Kernel& kernel) {
  EraseOnes(kernel);
  OrderByOutput(kernel);
  auto outer_run = [&] {
    const IdRange<VariableId> outer = kernel.OuterVariables();
    return std::vector(outer.begin(), outer.end());
  };
  while (MergeOne(kernel, outer_run())) {
  }
  for (StageId s : kernel.stages.ids()) {
    while (MergeOne(kernel, kernel.stages[s].variables)) {
    }
  }
}

}  // namespace kiln::kernel
