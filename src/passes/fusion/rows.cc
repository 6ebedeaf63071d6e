// Row kernels: reductions whose results meet the reduced array again, as in softmax and
// normalisations, become one kernel with everything between. Each row is read from memory once and
// written once; in between it stays in the cache.
//
//   m = max(x, d); e = exp(x - broadcast(m)); s = sum(e, d); y = e / broadcast(s)
//
// A region grows from its last instruction upwards. An instruction belongs to it if all its users
// do, or if it comes after a reduction of the region and can be an output. The region is kept if a
// reduction's result is used on the rows again, because other fusions cannot do this. A result may
// be transposed in the end:
//
//   z = transpose(y); z + w

#include <algorithm>
#include <numeric>
#include <optional>
#include <unordered_map>
#include <unordered_set>
#include <utility>

#include "ir/visited.h"
#include "kernel/build.h"
#include "kernel/fusible.h"
#include "kernel/schedule/scheduler.h"
#include "passes/fusion/fusion.h"
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
// Fewer elements than these along the last dimension are not worth a transpose in registers.
constexpr int64_t kMinTransposed = 16;

// The rows: the reduced shape, and its reduced dimensions.
struct Space {
  std::vector<Dimension> full, kept;
  Ints reduced, kept_dimensions;
};

// The dimensions of the reduced array, by the dimensions of a member with as many elements.
Ints Identity(size_t rank) {
  Ints order(rank);
  std::iota(order.begin(), order.end(), 0);
  return order;
}

bool HasOrder(const Instruction& i, const Space& space, const Ints& order) {
  const std::vector<Dimension>& dims = i.shape().dimensions();
  if (dims.size() != order.size() || dims.size() != space.full.size()) return false;
  for (size_t d = 0; d < dims.size(); ++d) {
    if (dims[d] != space.full[static_cast<size_t>(order[d])]) return false;
  }
  return true;
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
  RowFuser(Computation& c, const kernel::Scheduler& scheduler, kernel::FusionAnalysis& analysis)
      : c_(c), scheduler_(scheduler), analysis_(analysis) {}

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
    at_ = c_.PostOrder();
    for (const Instruction* i : at_) position_.emplace(i, position_.size());
  }

  // Puts a fusion among the positions between those of its first output and of its root, which are
  // free: what needs it comes behind it. Elements of fusions are where these are.
  void Place(Instruction* fusion, size_t first, size_t last) {
    std::vector<Instruction*> order, behind;
    std::unordered_set<const Instruction*> needs;
    const auto add = [&](const Instruction* i) {
      needs.insert(i);
      if (i->shape().is_tuple()) needs.insert(i->users().begin(), i->users().end());
    };
    add(fusion);
    for (size_t p = first; p <= last; ++p) {
      Instruction* i = std::exchange(at_[p], nullptr);
      if (!i) continue;
      const bool waits = std::ranges::any_of(
          i->operands(), [&](const Instruction* operand) { return needs.contains(operand); });
      if (waits) add(i);
      (waits ? behind : order).push_back(i);
    }
    order.push_back(fusion);
    order.insert(order.end(), behind.begin(), behind.end());
    for (Instruction* i : order) {
      at_[first] = i;
      position_[i] = first;
      if (i->shape().is_tuple()) {
        for (const Instruction* element : i->users()) {
          if (!index_.contains(element)) position_[element] = first;
        }
      }
      ++first;
    }
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

  // The rows that a region with a root would have, and the root's order of their dimensions.
  struct Found {
    Space space;
    Ints order;
  };
  // The rows of the first reduction among the root's inputs, through elementwise ops and
  // transposes, with or without a broadcast over the rows.
  std::optional<Found> FindSpace(const Instruction* root) const {
    if (!after_reduction_.contains(root)) return std::nullopt;
    if (IsReduction(*root)) return Found{SpaceOf(*root), {}};
    struct Step {
      const Instruction* i;
      Ints order;  // of the root's dimensions, among i's
      bool spread = false;
    };
    const Ints same = Identity(static_cast<size_t>(root->shape().rank()));
    std::vector<Step> work = {{root, same}};
    std::unordered_set<const Instruction*> seen;
    while (!work.empty() && seen.size() < kSearchBudget) {
      auto [i, order, spread] = std::move(work.back());
      work.pop_back();
      if (!seen.insert(i).second) continue;
      if (IsReduction(*i)) {
        Space space = SpaceOf(*i);
        if (HasOrder(*root, space, order)) return Found{std::move(space), std::move(order)};
        if (order == same && root->shape().dimensions() == space.kept) {
          return Found{std::move(space), {}};
        }
        continue;
      }
      if (!after_reduction_.contains(i)) continue;
      if (i->opcode() == Opcode::kBroadcast) {
        spread = true;
      } else if (i->opcode() == Opcode::kTranspose && !spread) {
        for (int64_t& d : order) d = i->dimensions()[static_cast<size_t>(d)];
      } else if (!IsElementwise(i->opcode())) {
        continue;
      }
      for (const Instruction* operand : i->operands()) work.push_back({operand, order, spread});
    }
    return std::nullopt;
  }

  // The order of the dimensions of a member's operand.
  static Ints OperandOrder(const Instruction& member, const Ints& order, const Space& space) {
    if (member.opcode() == Opcode::kTranspose && !order.empty()) {
      Ints of_operand(order.size());
      for (size_t d = 0; d < order.size(); ++d) {
        of_operand[static_cast<size_t>(member.dimensions()[d])] = order[d];
      }
      return of_operand;
    }
    const bool whole = IsElementwise(member.opcode()) && !order.empty();
    if (whole) return order;
    return IsReduction(member) ? Identity(space.full.size()) : Ints();
  }

  // `order` is of the instruction's dimensions; empty if it has not the size of the reduced array.
  bool FitsInto(const Space& space, const Instruction& i, const Ints& order) const {
    if (!i.shape().is_array()) return false;
    if (IsReduction(i)) {
      Ints reduced = i.dimensions();
      std::sort(reduced.begin(), reduced.end());
      return reduced == space.reduced && i.operand(0)->shape().dimensions() == space.full;
    }
    if (i.IsConstant()) return i.shape().rank() == 0;
    if (!kernel::IsElemental(i)) return false;
    const bool after = after_reduction_.contains(&i);
    const bool in_order = order == Identity(space.full.size());
    const std::vector<Dimension>& dims = i.shape().dimensions();
    if (i.opcode() == Opcode::kBroadcast && dims == space.full) {
      return !after || (in_order && (i.dimensions() == space.kept_dimensions ||
                                     i.operand(0)->shape().rank() == 0));
    }
    // Stages would repeat it.
    if (!after) return !IsExpensive(i.opcode());
    if (i.opcode() == Opcode::kTranspose) {
      // Other users of the rows also read them across.
      return HasOrder(i, space, order) && MayTranspose(space, order) &&
             i.operand(0)->users().size() == 1;
    }
    if (!IsElementwise(i.opcode())) return false;
    return order.empty() ? dims == space.kept : HasOrder(i, space, order);
  }

  // Whether it pays to write rows in this order of their dimensions.
  bool MayTranspose(const Space& space, const Ints& order) const {
    if (!scheduler_.TurnsRows()) return false;
    const auto last = static_cast<int64_t>(order.size()) - 1;
    if (order.back() == last) return true;
    return space.full.back().size() >= kMinTransposed &&
           space.full[static_cast<size_t>(order.back())].size() >= kMinTransposed;
  }

  // Whether an instruction with users outside may become an output: no member of the region may
  // depend on it through them.
  bool MayEscape(const Instruction* i, size_t last) {
    if (!after_reduction_.contains(i) && !IsReduction(*i)) return false;
    if (i->opcode() == Opcode::kBroadcast || outputs_.size() >= kMaxOutputs) return false;
    work_.clear();
    for (const Instruction* user : i->users()) {
      if (!members_.contains(user)) work_.push_back(user);
    }
    seen_.Clear();
    for (size_t looked = 0; !work_.empty();) {
      const Instruction* user = work_.back();
      work_.pop_back();
      if (!seen_.Insert(user)) continue;
      if (members_.contains(user)) return false;
      auto at = position_.find(user);
      if (at != position_.end() && at->second > last) continue;
      if (++looked > kSearchBudget) return false;
      work_.insert(work_.end(), user->users().begin(), user->users().end());
    }
    return true;
  }

  // The members of a region, users before operands.
  std::vector<Instruction*> Grow(Instruction* root, const Space& space, const Ints& order) {
    const size_t last = position_.at(root);
    members_ = {root};
    outputs_ = {root};
    std::vector<Instruction*> region = {root};
    // Operands of members, the latest first.
    auto later = [&](Instruction* a, Instruction* b) { return position_.at(a) < position_.at(b); };
    std::vector<Instruction*> candidates;
    // Nothing, where users want two orders.
    std::unordered_map<const Instruction*, std::optional<Ints>> orders = {{root, order}};
    auto add_operands = [&](const Instruction* of) {
      const Ints wanted = OperandOrder(*of, *orders.at(of), space);
      for (Instruction* operand : of->operands()) {
        if (!index_.contains(operand)) continue;
        auto [it, fresh] = orders.try_emplace(operand, wanted);
        if (!fresh) {
          if (it->second != wanted) it->second.reset();
          continue;
        }
        candidates.push_back(operand);
        std::push_heap(candidates.begin(), candidates.end(), later);
      }
    };
    add_operands(root);
    while (!candidates.empty() && region.size() < kMaxMembers) {
      std::pop_heap(candidates.begin(), candidates.end(), later);
      Instruction* i = candidates.back();
      candidates.pop_back();
      std::optional<Ints>& own = orders.at(i);
      // Regions without a reduction may be read in any order.
      if (!own && !after_reduction_.contains(i) && !IsReduction(*i)) own = Ints();
      if (!own || !FitsInto(space, *i, *own)) continue;
      bool closed = !i->IsRoot() && std::all_of(i->users().begin(), i->users().end(),
                                                [&](auto* u) { return members_.contains(u); });
      // Duplicated instructions also stay outside, for their users there.
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

  bool Pays(const Space& space, ElementType type) const {
    int64_t rows = 1, row = 1;
    for (const Dimension& d : space.kept) rows *= d.size();
    for (int64_t d : space.reduced) row *= space.full[static_cast<size_t>(d)].size();
    if (rows == 0 || row == 0 || (rows < kMinRows && row > kLargeRow)) return false;
    auto last = static_cast<int64_t>(space.full.size()) - 1;
    while (last > 0 && space.full[static_cast<size_t>(last)].size() == 1) --last;
    return space.reduced.back() >= last || scheduler_.KeepsColumns(rows, row * ByteWidth(type));
  }

  bool TryRoot(Instruction* root) {
    const bool transpose = root->opcode() == Opcode::kTranspose;
    if (!transpose && !IsElementwise(root->opcode()) && !IsReduction(*root)) return false;
    std::optional<Found> found = FindSpace(root);
    if (!found || !Pays(found->space, root->shape().type())) return false;
    if (!FitsInto(found->space, *root, found->order)) return false;
    std::vector<Instruction*> region = Grow(root, found->space, found->order);
    if (!ReturnsToRows(region)) return false;
    std::reverse(region.begin(), region.end());
    std::vector<Instruction*> outputs(outputs_.rbegin(), outputs_.rend());
    const size_t last = position_.at(root);
    size_t first = last;
    for (const Instruction* output : outputs) first = std::min(first, position_.at(output));
    for (const Instruction* member : members_) {
      auto at = index_.find(member);
      order_[at->second] = nullptr;
      index_.erase(at);
      at_[position_.at(member)] = nullptr;
      position_.erase(member);
      after_reduction_.erase(member);
    }
    Instruction* fusion = MergeGroup(region, outputs);
    if (analysis_.KernelOf(*fusion).ok()) {
      // Users of an output other than the root may come before inputs of the region.
      Place(fusion, first, last);
    } else {
      Unfuse(fusion);
      if (outputs.size() > 1) FindPositions();
    }
    return true;
  }

  Computation& c_;
  const kernel::Scheduler& scheduler_;
  kernel::FusionAnalysis& analysis_;
  // The original instructions; null if fused into a kernel.
  std::vector<Instruction*> order_;
  // The positions of the remaining ones.
  std::unordered_map<const Instruction*, size_t> index_;
  // The position of each instruction, operands first, and the instruction at each position, if
  // there still is one.
  std::unordered_map<const Instruction*, size_t> position_;
  std::vector<Instruction*> at_;
  // Elemental instructions that are made from a reduction's result.
  std::unordered_set<const Instruction*> after_reduction_;
  // Of the region that is being grown.
  std::unordered_set<const Instruction*> members_;
  std::vector<Instruction*> outputs_;
  // Of the search for a way back into it.
  ir::Visited seen_;
  std::vector<const Instruction*> work_;
};

}  // namespace

bool FuseRowsIn(Computation& c, const kernel::Scheduler& scheduler,
                kernel::FusionAnalysis& analysis) {
  return RowFuser(c, scheduler, analysis).Run();
}

Result<bool> FuseRows(ir::Module& module, const PassContext& context) {
  bool changed = false;
  const auto scheduler = kernel::SchedulerFor(TargetOf(context));
  for (Computation* c : ProgramComputations(module))
    changed |= FuseRowsIn(*c, *scheduler, *context.fusions);
  if (changed) module.RemoveUnusedComputations();
  return changed;
}

}  // namespace kiln::passes
