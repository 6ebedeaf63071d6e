// Row kernels: reductions whose results go back to what was reduced, as in softmax and in
// normalisations, become one kernel with all that lies between. Each row is read from memory once
// and written once; in between it stays in the cache.
//
//   m = max(x, d); e = exp(x - broadcast(m)); s = sum(e, d); y = e / broadcast(s)
//
// A region grows from its last instruction upwards: an instruction belongs to it where everything
// that uses it does, or where it comes after a reduction of the region and can be an output. It is
// kept where a reduction's result is used on the rows again, which is what the other fusions cannot
// do.

#include <algorithm>
#include <optional>
#include <unordered_map>
#include <unordered_set>

#include "kernel/build.h"
#include "kernel/fusible.h"
#include "passes/fusion/merge.h"
#include "passes/passes.h"

namespace kiln::passes {
namespace {

using ir::Computation;
using ir::Instruction;

constexpr size_t kMaxMembers = 96;
constexpr size_t kMaxOutputs = 8;
// How many instructions are looked at to find the first reduction, and to see that an output does
// not come back as an input.
constexpr size_t kSearchBudget = 256;
// With fewer rows than this, large ones are better cut into pieces for several threads.
constexpr int64_t kMinRows = 16;
constexpr int64_t kLargeRow = 1 << 14;

// What the rows are: the shape that is reduced, and the dimensions it is reduced over.
struct Space {
  std::vector<Dimension> full, kept;
  Ints reduced, kept_dimensions;
};

bool IsHeavy(const Instruction& i) {
  return HasTrait(i.opcode(), kTranscendental) || i.opcode() == Opcode::kDivide ||
         i.opcode() == Opcode::kRemainder;
}

bool IsRepeatable(const Instruction& i) {
  return (i.IsConstant() && i.shape().rank() == 0) || i.opcode() == Opcode::kBroadcast ||
         i.opcode() == Opcode::kIota;
}

Space SpaceOf(const Instruction& reduce) {
  Space space;
  const Shape& full = reduce.operand(0)->shape();
  space.full = full.dimensions();
  space.reduced = reduce.dimensions();
  std::sort(space.reduced.begin(), space.reduced.end());
  for (int64_t d = 0; d < full.rank(); ++d) {
    if (std::binary_search(space.reduced.begin(), space.reduced.end(), d)) continue;
    space.kept_dimensions.push_back(d);
    space.kept.push_back(full.dimension(d));
  }
  return space;
}

bool IsReduction(const Instruction& i) {
  return i.opcode() == Opcode::kReduce && i.shape().is_array() && !i.dimensions().empty();
}

class RowFuser {
 public:
  explicit RowFuser(Computation& c) : c_(c) {}

  bool Run() {
    order_ = c_.PostOrder();
    if (std::ranges::none_of(order_, [](const Instruction* i) { return IsReduction(*i); })) {
      return false;
    }
    for (size_t i = 0; i < order_.size(); ++i) {
      index_[order_[i]] = i;
      FindWhatFollowsReductions(order_[i]);
    }
    FindPositions();
    bool changed = false;
    for (size_t i = order_.size(); i-- > 0;) {
      if (order_[i]) changed |= TryRoot(order_[i]);
    }
    if (changed) c_.Reorder(c_.PostOrder());
    return changed;
  }

 private:
  void FindPositions() {
    position_.clear();
    for (const Instruction* i : c_.PostOrder()) position_.emplace(i, position_.size());
  }

  void FindWhatFollowsReductions(const Instruction* i) {
    if (!kernel::IsElemental(*i) && !IsReduction(*i)) return;
    for (const Instruction* operand : i->operands()) {
      if (IsReduction(*operand) || after_reduction_.contains(operand)) {
        after_reduction_.insert(i);
        return;
      }
    }
  }

  // The rows that a region with this root would have: of the first reduction that the root is made
  // from by elementwise ops, directly or spread over the rows.
  std::optional<Space> FindSpace(const Instruction* root) const {
    if (!after_reduction_.contains(root)) return std::nullopt;
    if (IsReduction(*root)) return SpaceOf(*root);
    std::vector<const Instruction*> work = {root};
    std::unordered_set<const Instruction*> seen;
    while (!work.empty() && seen.size() < kSearchBudget) {
      const Instruction* i = work.back();
      work.pop_back();
      if (!seen.insert(i).second) continue;
      if (IsReduction(*i)) {
        Space space = SpaceOf(*i);
        const std::vector<Dimension>& own = root->shape().dimensions();
        if (own == space.full || own == space.kept) return space;
        continue;
      }
      if (!after_reduction_.contains(i)) continue;
      if (!IsElementwise(i->opcode()) && i->opcode() != Opcode::kBroadcast) continue;
      for (const Instruction* operand : i->operands()) work.push_back(operand);
    }
    return std::nullopt;
  }

  bool FitsInto(const Space& space, const Instruction& i) const {
    if (!i.shape().is_array()) return false;
    if (IsReduction(i)) {
      Ints reduced = i.dimensions();
      std::sort(reduced.begin(), reduced.end());
      return reduced == space.reduced && i.operand(0)->shape().dimensions() == space.full;
    }
    if (i.IsConstant()) return i.shape().rank() == 0;
    if (!kernel::IsElemental(i)) return false;
    const bool after = after_reduction_.contains(&i);
    const std::vector<Dimension>& dims = i.shape().dimensions();
    if (i.opcode() == Opcode::kBroadcast && dims == space.full) {
      return !after || i.dimensions() == space.kept_dimensions || i.operand(0)->shape().rank() == 0;
    }
    if (after) return IsElementwise(i.opcode()) && (dims == space.full || dims == space.kept);
    // Stages would repeat it.
    return !IsHeavy(i);
  }

  // Whether an instruction that is used outside may become an output: nothing that the region needs
  // may depend on it.
  bool MayEscape(const Instruction* i, size_t last) const {
    if (!after_reduction_.contains(i) && !IsReduction(*i)) return false;
    if (i->opcode() == Opcode::kBroadcast || outputs_.size() >= kMaxOutputs) return false;
    std::vector<const Instruction*> work;
    for (const Instruction* user : i->users()) {
      if (!members_.contains(user)) work.push_back(user);
    }
    std::unordered_set<const Instruction*> seen;
    while (!work.empty()) {
      const Instruction* user = work.back();
      work.pop_back();
      if (members_.contains(user)) return false;
      auto at = position_.find(user);
      if (at != position_.end() && at->second > last) continue;
      if (!seen.insert(user).second) continue;
      if (seen.size() > kSearchBudget) return false;
      work.insert(work.end(), user->users().begin(), user->users().end());
    }
    return true;
  }

  // The members of a region, users before operands.
  std::vector<Instruction*> Grow(Instruction* root, const Space& space) {
    const size_t last = position_.at(root);
    members_ = {root};
    outputs_ = {root};
    std::vector<Instruction*> region = {root};
    // Operands of members, the latest first.
    auto later = [&](Instruction* a, Instruction* b) { return position_.at(a) < position_.at(b); };
    std::vector<Instruction*> candidates;
    std::unordered_set<const Instruction*> seen;
    auto add_operands = [&](const Instruction* of) {
      for (Instruction* operand : of->operands()) {
        if (!index_.contains(operand) || !seen.insert(operand).second) continue;
        candidates.push_back(operand);
        std::push_heap(candidates.begin(), candidates.end(), later);
      }
    };
    add_operands(root);
    while (!candidates.empty() && region.size() < kMaxMembers) {
      std::pop_heap(candidates.begin(), candidates.end(), later);
      Instruction* i = candidates.back();
      candidates.pop_back();
      if (!FitsInto(space, *i)) continue;
      bool closed = !i->IsRoot() && std::all_of(i->users().begin(), i->users().end(),
                                                [&](auto* u) { return members_.contains(u); });
      // What is repeated stays outside, too, for those who use it there.
      if (closed || !IsRepeatable(*i)) {
        if (!closed && !MayEscape(i, last)) continue;
        if (!closed) outputs_.push_back(i);
        members_.insert(i);
      }
      region.push_back(i);
      add_operands(i);
    }
    return region;
  }

  // Whether a member's reduction comes back to the rows.
  bool ReturnsToRows(const std::vector<Instruction*>& region) const {
    std::unordered_set<const Instruction*> reduced;
    for (size_t i = region.size(); i-- > 0;) {
      bool after = std::any_of(region[i]->operands().begin(), region[i]->operands().end(),
                               [&](auto* operand) { return reduced.contains(operand); });
      if (after && (region[i]->opcode() == Opcode::kBroadcast || IsReduction(*region[i]))) {
        return true;
      }
      if (after || IsReduction(*region[i])) reduced.insert(region[i]);
    }
    return false;
  }

  bool Pays(const Space& space) const {
    int64_t rows = 1, row = 1;
    for (const Dimension& d : space.kept) rows *= d.size();
    for (int64_t d : space.reduced) row *= space.full[d].size();
    return rows > 0 && row > 0 && (rows >= kMinRows || row <= kLargeRow);
  }

  bool TryRoot(Instruction* root) {
    if (!IsElementwise(root->opcode()) && !IsReduction(*root)) return false;
    std::optional<Space> space = FindSpace(root);
    if (!space || !Pays(*space) || !FitsInto(*space, *root)) return false;
    std::vector<Instruction*> region = Grow(root, *space);
    if (!ReturnsToRows(region)) return false;
    std::reverse(region.begin(), region.end());
    std::vector<Instruction*> outputs(outputs_.rbegin(), outputs_.rend());
    for (const Instruction* member : members_) {
      auto at = index_.find(member);
      order_[at->second] = nullptr;
      index_.erase(at);
      position_.erase(member);
      after_reduction_.erase(member);
    }
    Instruction* fusion = MergeGroup(region, outputs);
    if (!kernel::BuildKernel(kernel::GroupOf(*fusion), "probe").ok()) Unfuse(fusion);
    // What uses an output that is not the root may stand before what the region needs.
    if (outputs.size() > 1) FindPositions();
    return true;
  }

  Computation& c_;
  // What was there at first; null where it has become part of a kernel.
  std::vector<Instruction*> order_;
  // Of what is left of that: where it stands there.
  std::unordered_map<const Instruction*, size_t> index_;
  // Of everything, in an order in which operands come first.
  std::unordered_map<const Instruction*, size_t> position_;
  // Elemental instructions that are made from a reduction's result.
  std::unordered_set<const Instruction*> after_reduction_;
  // Of the region that is being grown.
  std::unordered_set<const Instruction*> members_;
  std::vector<Instruction*> outputs_;
};

}  // namespace

Result<bool> FuseRows(ir::Module& module, const PassContext& context) {
  bool changed = false;
  for (Computation* c : ProgramComputations(module)) changed |= RowFuser(*c).Run();
  if (changed) module.RemoveUnusedComputations();
  return changed;
}

}  // namespace kiln::passes
