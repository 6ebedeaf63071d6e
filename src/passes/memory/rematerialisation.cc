// f(x) with uses far behind its first ones is computed again there, if x is kept in memory anyway
// or is smaller: a value of a forward pass that the backward pass reads takes memory all along.
//
// What is kept is a minimum cut between the values that cannot be repeated and those that are read
// late, where a value costs its bytes, and a repeated op a part of its bytes (repeat.h). Late uses
// read what is kept behind a barrier: otherwise fusion would compute them with the value, early,
// and keep their results.
//
// Late uses near each other, a span, share a repeated op. Ops that fusion takes in cost so little
// that one cut serves all spans. With products each span has its own, the last one first: what is
// kept for a span is there for the spans before it.
#include <algorithm>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "ir/analysis/frozen.h"
#include "ir/instruction_map.h"
#include "passes/memory/min_cut.h"
#include "passes/memory/repeat.h"
#include "passes/passes.h"

namespace kiln::passes {
namespace {

using ir::Computation;
using ir::Instruction;

// A use is late if so many products lie between it and the value: more than in a layer, whose
// residual connections are not meant.
constexpr int64_t kGap = 6;
// The products in a span: as many for all, or, where products are repeated, about those of a layer,
// so that no layer is in two spans.
constexpr int64_t kSpan = 2 * kGap;
constexpr int64_t kLeastSpan = 4, kMostSpan = 10;
// A span does not repeat products of more than about three layers.
constexpr int64_t kReach = 3 * kGap;
// Smaller values are kept, and read where they are. Fusion may compute them late, from large values
// that are kept for it then: not where memory is short.
constexpr int64_t kLeastBytes = int64_t{1} << 16, kLeastBytesWithEffort = int64_t{1} << 10;
// Programs in which repeated ops save less than this part of the bytes of all their values stay as
// they are, unless they must.
constexpr int64_t kLeastPart = 32;
constexpr int64_t kMostSteps = int64_t{1} << 26;

bool IsProduct(const Instruction& i) {
  return OpCostOf(i.opcode()) == OpCost::kContraction || OpCostOf(i.opcode()) == OpCost::kCall;
}

// Costs no memory of the program's own: it is there, or is a constant.
bool IsGiven(const Instruction& i) {
  return i.opcode() == Opcode::kParameter || i.opcode() == Opcode::kConstant;
}

// Its memory is a result's.
bool IsResult(const Instruction& i) {
  return i.IsRoot() || std::ranges::any_of(i.users(), [](const Instruction* user) {
           return user->IsRoot() && user->opcode() == Opcode::kTuple;
         });
}

class Rematerialiser {
 public:
  Rematerialiser(Computation& c, int effort)
      : c_(c), effort_(effort), depths_(c), reads_(c), nodes_(c) {}

  bool Run();

 private:
  // The products before the late uses of a value.
  struct Reads {
    int64_t first, last;
  };
  // A value in the graph that is cut: read late, or among what such values are made of.
  struct Node {
    Instruction* value;
    int64_t repeats = 1;
    bool is_read_late = false;
    bool is_there = false;  // keeping it costs nothing
    int64_t cost = -1;      // of repeating it, or -1
  };

  // Whether keeping it would take memory worth saving.
  bool IsLarge(const Instruction& i) const {
    return i.shape().is_array() && i.shape().is_static() && !IsGiven(i) &&
           i.shape().byte_size() >= (effort_ > 0 ? kLeastBytesWithEffort : kLeastBytes);
  }
  void FindDepths();
  int64_t DepthOf(const Instruction* i) const { return depths_.at(i); }
  // Whether the user reads x late. Tuples do not read.
  bool IsLate(const Instruction* x, const Instruction* user) const {
    return user->opcode() != Opcode::kTuple && DepthOf(user) - DepthOf(x) >= kGap;
  }
  bool FindLateValues();
  void FindSpans();
  void FindStarts();
  size_t SpanOf(const Instruction* user) const {
    return span_at_[static_cast<size_t>(DepthOf(user))];
  }
  size_t CutOf(size_t span) const { return effort_ > 0 ? span : 0; }
  // Chooses what is repeated for some spans: fills in repeated_[cut].
  void Choose(size_t cut);
  std::vector<Node> Nodes();
  int32_t NodeOf(Instruction* x, std::vector<Node>& nodes);
  bool SavesMuch() const;
  bool IsRepeated(const Instruction* x, size_t span) const {
    return repeated_[CutOf(span)].contains(x);
  }
  // x for the late uses of a span, the first of which is `user`: again, or behind a barrier.
  Instruction* Late(Instruction* x, Instruction* user, size_t span) {
    return IsRepeated(x, span) ? Repeat(x, user, span) : Kept(x, user, span);
  }
  Instruction* Repeat(Instruction* x, Instruction* user, size_t span);
  Instruction* Kept(Instruction* x, Instruction* user, size_t span);
  Instruction* Barrier(Instruction* x, Instruction* user, size_t span);
  void KeepApart(const Instruction& first, std::vector<Instruction*>& operands, Instruction* user,
                 size_t span);

  Computation& c_;
  const int effort_;
  ir::InstructionMap<int64_t> depths_;  // products on the longest way to a value
  ir::InstructionMap<Reads> reads_;
  std::vector<size_t> span_at_;                    // by depth
  std::vector<std::vector<Instruction*>> wanted_;  // the values read late, by span
  std::vector<Instruction*> starts_;               // by span; null where nothing marks its start
  size_t cut_ = 0;                                 // at hand
  // Where a value is among the nodes of a cut.
  struct Place {
    size_t cut = SIZE_MAX;
    int32_t node = 0;
  };
  ir::InstructionMap<Place> nodes_;
  std::unordered_set<const Instruction*> kept_;                   // for the spans chosen so far
  std::vector<std::unordered_set<const Instruction*>> repeated_;  // by cut
  // By span and value.
  std::unordered_map<size_t, std::unordered_map<const Instruction*, Instruction*>> late_;
};

void Rematerialiser::FindDepths() {
  for (Instruction* i : c_.instructions()) {
    int64_t depth = 0;
    for (const Instruction* operand : i->operands()) depth = std::max(depth, DepthOf(operand));
    depths_[i] = depth + (IsProduct(*i) ? 1 : 0);
  }
}

bool Rematerialiser::FindLateValues() {
  bool found = false;
  for (Instruction* i : c_.instructions()) {
    if (!IsLarge(*i)) continue;
    for (const Instruction* user : i->users()) {
      if (!IsLate(i, user)) continue;
      const int64_t depth = DepthOf(user);
      reads_.Insert(i, {depth, depth});
      Reads& reads = reads_[i];
      reads.first = std::min(reads.first, depth);
      reads.last = std::max(reads.last, depth);
      found = true;
    }
  }
  return found;
}

// Spans are cut where the fewest bytes are read late on both sides.
void Rematerialiser::FindSpans() {
  int64_t most = 0;
  for (const Instruction* i : c_.instructions()) most = std::max(most, DepthOf(i));
  std::vector<int64_t> across(static_cast<size_t>(most) + 2, 0);  // by the depth behind the cut
  int64_t first = most;
  for (const Instruction* i : c_.instructions()) {
    const Reads* reads = reads_.Find(i);
    if (!reads) continue;
    first = std::min(first, reads->first);
    across[static_cast<size_t>(reads->first) + 1] += i->shape().byte_size();
    across[static_cast<size_t>(reads->last) + 1] -= i->shape().byte_size();
  }
  for (size_t d = 1; d < across.size(); ++d) across[d] += across[d - 1];
  span_at_.assign(static_cast<size_t>(most) + 1, 0);
  size_t spans = 1;
  for (int64_t begin = effort_ > 0 ? first : 0; begin <= most; ++spans) {
    int64_t end = std::min(begin + kSpan, most + 1);
    if (effort_ > 0) {
      const auto at = across.begin() + begin;
      const int64_t left = most + 1 - begin;
      end = begin +
            (std::min_element(at + std::min(kLeastSpan, left), at + std::min(kMostSpan, left) + 1) -
             at);
    }
    for (; begin < end; ++begin) span_at_[static_cast<size_t>(begin)] = spans;
  }
  wanted_.resize(spans);
  for (Instruction* i : c_.instructions()) {
    if (!reads_.contains(i)) continue;
    for (const Instruction* user : i->users()) {
      if (!IsLate(i, user)) continue;
      auto& wanted = wanted_[SpanOf(user)];
      if (wanted.empty() || wanted.back() != i) wanted.push_back(i);
    }
  }
}

int32_t Rematerialiser::NodeOf(Instruction* x, std::vector<Node>& nodes) {
  Place& place = nodes_[x];
  if (place.cut != cut_) {
    place = {cut_, static_cast<int32_t>(nodes.size())};
    nodes.push_back({x});
  }
  return place.node;
}

// The values read late in the spans of the cut, then what they are made of by ops that can be
// repeated, as often.
std::vector<Rematerialiser::Node> Rematerialiser::Nodes() {
  std::vector<Node> nodes;
  int64_t deepest = 0;
  for (size_t span = 0; span < wanted_.size(); ++span) {
    if (CutOf(span) != cut_) continue;
    for (Instruction* x : wanted_[span]) {
      Node& node = nodes[static_cast<size_t>(NodeOf(x, nodes))];
      node.repeats += node.is_read_late ? 1 : 0;
      node.is_read_late = true;
      deepest = std::max(deepest, DepthOf(x));
    }
  }
  for (size_t n = 0; n < nodes.size(); ++n) {
    const Instruction& x = *nodes[n].value;
    nodes[n].is_there = IsGiven(x) || IsResult(x) || kept_.contains(&x);
    if (nodes[n].is_there || (IsProduct(x) && deepest - DepthOf(&x) >= kReach)) continue;
    nodes[n].cost = CostToRepeat(x, effort_);
    if (nodes[n].cost < 0) continue;
    for (Instruction* operand : x.operands()) {
      const auto of = static_cast<size_t>(NodeOf(operand, nodes));
      nodes[of].repeats = std::max(nodes[of].repeats, nodes[n].repeats);
    }
  }
  return nodes;
}

// A value has two nodes, 2n + 2 (it is computed late) and 2n + 3 (it can be read late).
void Rematerialiser::Choose(size_t which) {
  cut_ = which;
  const std::vector<Node> nodes = Nodes();
  constexpr int32_t kSource = 0, kSink = 1;
  MinCut cut(2 * static_cast<int32_t>(nodes.size()) + 2);
  for (int32_t n = 0; n < std::ssize(nodes); ++n) {
    const Node& node = nodes[static_cast<size_t>(n)];
    const Instruction& x = *node.value;
    // Patches are read where they are, and never stored; nor are tuples chosen.
    const bool is_stored = x.shape().is_array() && x.opcode() != Opcode::kPatches;
    const int64_t to_keep = is_stored ? kCostToKeep * x.shape().byte_size() : MinCut::kNever;
    cut.AddEdge(2 * n + 2, 2 * n + 3, node.is_there ? 0 : to_keep);
    if (node.is_read_late) cut.AddEdge(2 * n + 3, kSink, MinCut::kNever);
    cut.AddEdge(kSource, 2 * n + 2, node.cost < 0 ? MinCut::kNever : node.cost * node.repeats);
    if (node.cost < 0) continue;
    for (const Instruction* operand : x.operands()) {
      cut.AddEdge(2 * nodes_.at(operand).node + 3, 2 * n + 2, MinCut::kNever);
    }
  }
  const std::vector<bool> side = cut.SinkSide(kSource, kSink, kMostSteps);
  for (size_t n = 0; n < nodes.size(); ++n) {
    if (side[2 * n + 2]) {
      repeated_[cut_].insert(nodes[n].value);
    } else if (side[2 * n + 3]) {
      kept_.insert(nodes[n].value);
    }
  }
}

// Where work is repeated the barrier waits for what the span begins with, too: the work would need
// memory as long as the kept value does if the schedule had it early.
Instruction* Rematerialiser::Barrier(Instruction* x, Instruction* user, size_t span) {
  Instruction* start = starts_[span];
  if (!start) {
    return c_.Create({.opcode = Opcode::kOptBarrier, .operands = {x}, .shape = x->shape()}, user);
  }
  const Shape both = Shape::Tuple({x->shape(), start->shape()});
  Instruction* pair =
      c_.Create({.opcode = Opcode::kTuple, .operands = {x, start}, .shape = both}, user);
  pair = c_.Create({.opcode = Opcode::kOptBarrier, .operands = {pair}, .shape = both}, user);
  return c_.Create({.opcode = Opcode::kGetTupleElement,
                    .operands = {pair},
                    .attributes = {{Attr::kIndex, int64_t{0}}},
                    .shape = x->shape()},
                   user);
}

// A value right before the first instruction of a span that reads something late: an operand of
// it, or what there is.
void Rematerialiser::FindStarts() {
  starts_.assign(wanted_.size(), nullptr);
  if (effort_ == 0) return;
  std::vector<bool> found(wanted_.size(), false);
  Instruction* deepest = nullptr;  // of all so far
  const auto reads_late = [&](const Instruction* user) {
    return std::ranges::any_of(
        user->operands(), [&](const Instruction* x) { return !IsGiven(*x) && IsLate(x, user); });
  };
  for (Instruction* user : c_.instructions()) {
    if (const size_t span = SpanOf(user); !found[span] && reads_late(user)) {
      found[span] = true;
      Instruction* start = deepest;
      for (Instruction* x : user->operands()) {
        const bool is_near = !IsLate(x, user) && !IsGiven(*x) && x->shape().is_array();
        if (is_near && (start == deepest || DepthOf(x) > DepthOf(start))) start = x;
      }
      starts_[span] = start;
    }
    if (!user->shape().is_array() || IsGiven(*user)) continue;
    if (!deepest || DepthOf(user) >= DepthOf(deepest)) deepest = user;
  }
}

Instruction* Rematerialiser::Kept(Instruction* x, Instruction* user, size_t span) {
  if (!IsLarge(*x)) return x;
  Instruction*& barrier = late_[span][x];
  if (!barrier) barrier = Barrier(x, user, span);
  return barrier;
}

// An instruction of the same operands would be merged with the first one.
void Rematerialiser::KeepApart(const Instruction& first, std::vector<Instruction*>& operands,
                               Instruction* user, size_t span) {
  if (!IsHero(first.opcode()) || !std::ranges::equal(operands, first.operands())) return;
  // What is fixed is packed once, unless it is behind a barrier.
  auto other = std::ranges::find_if(operands, [](auto* x) { return !ir::IsFixed(*x); });
  if (other != operands.end()) *other = Barrier(*other, user, span);
}

// Chains of repeated ops can be long: no recursion.
Instruction* Rematerialiser::Repeat(Instruction* x, Instruction* user, size_t span) {
  auto& late = late_[span];
  std::vector<Instruction*> stack = {x};
  while (!stack.empty()) {
    Instruction* next = stack.back();
    std::vector<Instruction*> operands;
    for (Instruction* operand : next->operands()) {
      if (!IsRepeated(operand, span)) {
        operands.push_back(Kept(operand, user, span));
      } else if (auto it = late.find(operand); it != late.end()) {
        operands.push_back(it->second);
      } else {
        stack.push_back(operand);
      }
    }
    if (std::ssize(operands) < next->operand_count()) continue;
    stack.pop_back();
    if (late.contains(next)) continue;
    KeepApart(*next, operands, user, span);
    late[next] = c_.Create(ir::CopySpec(*next, std::move(operands)), user);
  }
  return late.at(x);
}

// Whether enough is not kept. Views and the like are read where they are, kept or not.
bool Rematerialiser::SavesMuch() const {
  const auto bytes = [](const Instruction& i) {
    const bool has_memory =
        i.shape().is_array() && i.shape().is_static() && !IsGiven(i) && CostToRepeat(i, 0) != 0;
    return has_memory ? i.shape().byte_size() : 0;
  };
  int64_t saved = 0, all = 0;
  for (const Instruction* i : c_.instructions()) {
    all += bytes(*i);
    if (reads_.contains(i) && repeated_[0].contains(i)) saved += bytes(*i);
  }
  return saved > 0 && saved >= all / kLeastPart;
}

bool Rematerialiser::Run() {
  FindDepths();
  if (!FindLateValues()) return false;
  FindSpans();
  FindStarts();
  repeated_.resize(CutOf(wanted_.size() - 1) + 1);
  for (size_t cut = repeated_.size(); cut-- > 0;) Choose(cut);
  if (effort_ == 0 && !SavesMuch()) return false;
  // Of the program as it was: what has been repeated must not be read as a value of its own.
  struct Use {
    Instruction* user;
    int64_t operand;
    Instruction* late;
  };
  std::vector<Use> uses;
  const std::vector<Instruction*> order(c_.instructions().begin(), c_.instructions().end());
  for (Instruction* user : order) {
    for (int64_t k = 0; k < user->operand_count(); ++k) {
      Instruction* x = user->operand(k);
      if (!IsLate(x, user)) continue;
      Instruction* late = Late(x, user, SpanOf(user));
      if (late != x) uses.push_back({user, k, late});
    }
  }
  for (const Use& use : uses) c_.ReplaceOperand(use.user, use.operand, use.late);
  if (!uses.empty()) c_.Reorder(c_.PostOrder());
  return !uses.empty();
}

}  // namespace

Result<bool> Rematerialise(ir::Module& module, const PassContext& context) {
  bool changed = false;
  for (const auto& c : module.computations()) {
    if (c->root()) changed |= Rematerialiser(*c, context.memory_effort).Run();
  }
  return changed;
}

}  // namespace kiln::passes
