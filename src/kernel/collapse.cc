#include "kernel/collapse.h"

#include <algorithm>
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

// Rewrites every index for new variables: old variable i is replacements[i].
void Renumber(Kernel& kernel, std::span<const Index> replacements) {
  ForEachIndex(kernel, [&](Index& index) { index = index.Substitute(replacements); });
}

// Whether a and b may be one variable, a the outer of the two: wherever they occur, a's stride is
// b's times b's extent.
bool WalkAsOne(Kernel& kernel, int a, int b) {
  bool one = true;
  int64_t extent = kernel.variables[b].extent;
  ForEachIndex(kernel, [&](Index& index) {
    if (!one) return;
    auto sa = index.StrideOf(a), sb = index.StrideOf(b);
    one = sa && sb && *sa == *sb * extent;
  });
  return one;
}

// Removes variable `gone`, whose uses the replacements have taken out already.
void Erase(Kernel& kernel, int gone) {
  std::vector<Index> shift;
  for (size_t i = 0; i < kernel.variables.size(); ++i) {
    int64_t id = static_cast<int64_t>(i) - (static_cast<int>(i) > gone);
    shift.push_back(static_cast<int>(i) == gone ? Index(0)
                                                : Index::Variable(id, kernel.variables[i].extent));
  }
  Renumber(kernel, shift);
  kernel.variables.erase(kernel.variables.begin() + gone);
  if (gone < kernel.outer) --kernel.outer;
  for (Stage& stage : kernel.stages) {
    std::erase(stage.variables, gone);
    for (int& v : stage.variables) v -= v > gone;
  }
}

// Merges b into a, its outer neighbour.
void Merge(Kernel& kernel, int a, int b) {
  int64_t extent = kernel.variables[b].extent;
  kernel.variables[a].extent *= extent;
  Index merged = Index::Variable(a, kernel.variables[a].extent);
  std::vector<Index> replacements;
  for (size_t i = 0; i < kernel.variables.size(); ++i) {
    replacements.push_back(Index::Variable(i, kernel.variables[i].extent));
  }
  // a*stride*extent + b*stride with (a, b) = (merged div extent, merged mod extent) recombines.
  replacements[a] = merged.FloorDiv(extent);
  replacements[b] = merged.Mod(extent);
  Renumber(kernel, replacements);
  kernel.variables[b].extent = 1;
  Erase(kernel, b);
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
  std::vector<std::pair<int64_t, int>> order;  // stride, old variable
  for (int v = 0; v < kernel.outer; ++v) {
    auto stride = output->StrideOf(v);
    if (!stride) return;
    order.push_back({*stride, v});
  }
  std::stable_sort(order.begin(), order.end(),
                   [](const auto& a, const auto& b) { return a.first > b.first; });
  std::vector<Variable> variables = kernel.variables;
  std::vector<Index> replacements(variables.size());
  for (size_t v = 0; v < variables.size(); ++v) {
    replacements[v] = Index::Variable(static_cast<int64_t>(v), variables[v].extent);
  }
  for (int at = 0; at < kernel.outer; ++at) {
    int old = order[at].second;
    kernel.variables[at] = variables[old];
    replacements[old] = Index::Variable(at, variables[old].extent);
  }
  Renumber(kernel, replacements);
}

// The first pair of neighbours in `chain` that may merge, merged.
bool MergeOne(Kernel& kernel, const std::vector<int>& chain) {
  for (size_t i = chain.size(); i-- > 1;) {
    int a = chain[i - 1], b = chain[i];
    if (kernel.variables[a].reduction != kernel.variables[b].reduction) continue;
    // Sizes of 0 stay apart: they have nothing to gain.
    if (kernel.variables[a].extent == 0 || kernel.variables[b].extent == 0) continue;
    if (!WalkAsOne(kernel, a, b)) continue;
    Merge(kernel, a, b);
    return true;
  }
  return false;
}

}  // namespace

void CollapseVariables(Kernel& kernel) {
  for (size_t i = kernel.variables.size(); i-- > 0;) {
    if (kernel.variables[i].extent == 1) Erase(kernel, static_cast<int>(i));
  }
  OrderByOutput(kernel);
  auto outer_chain = [&] {
    std::vector<int> chain;
    for (int i = 0; i < kernel.outer; ++i) chain.push_back(i);
    return chain;
  };
  while (MergeOne(kernel, outer_chain())) {
  }
  for (size_t s = 0; s < kernel.stages.size(); ++s) {
    while (MergeOne(kernel, kernel.stages[s].variables)) {
    }
  }
}

}  // namespace kiln::kernel
