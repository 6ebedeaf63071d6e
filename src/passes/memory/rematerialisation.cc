// f(x) with uses far behind its first ones is computed again there, if x is kept in memory anyway
// or is smaller: a value of a forward pass that the backward pass reads takes memory all along.
//
// Only ops that cost a few passes over memory are repeated: elementwise ones and moves, which
// fusion puts into the kernels that read them. What is kept is a minimum cut between the values
// that cannot be repeated and those that are read late, where a value costs its bytes, and a
// repeated op a part of its bytes. Late uses read what is kept behind a barrier: otherwise fusion
// would compute them with the value, early, and keep their results.
#include <algorithm>
#include <unordered_map>
#include <vector>

#include "ir/instruction_map.h"
#include "passes/memory/min_cut.h"
#include "passes/passes.h"

namespace kiln::passes {
namespace {

using ir::Computation;
using ir::Instruction;

// A use is late if so many products lie between it and the value: more than in a layer, whose
// residual connections are not meant.
constexpr int64_t kGap = 6;
// Late uses within so many products share a repeated op.
constexpr int64_t kSpan = 2 * kGap;
// Smaller values are kept.
constexpr int64_t kLeastBytes = int64_t{1} << 16;
// Programs in which repeated ops save less than this part of the bytes of all their values stay as
// they are.
constexpr int64_t kLeastPart = 32;
constexpr int64_t kMostSteps = int64_t{1} << 26;

// The cost of repeating an op, in 64ths of its bytes.
int64_t Weight(Opcode opcode) {
  switch (OpCostOf(opcode)) {
    case OpCost::kFree:
    case OpCost::kPlace:
      return 0;
    case OpCost::kSimple:
      return 1;
    case OpCost::kDivision:
      return 3;
    case OpCost::kFunction:
      return 8;
    case OpCost::kSpecialFunction:
      return 16;
    case OpCost::kReduction:
    case OpCost::kContraction:
    case OpCost::kSort:
    case OpCost::kLibrary:
    case OpCost::kCall:
      break;
  }
  return -1;
}

bool CanRepeat(const Instruction& i) {
  if (!i.shape().is_array() || !i.shape().is_static() || Weight(i.opcode()) < 0) return false;
  if (!i.control_predecessors().empty() || !i.control_successors().empty()) return false;
  if (HasTrait(i.opcode(), kSideEffect) || HasTrait(i.opcode(), kCollective)) return false;
  return IsElementwise(i.opcode()) || IsView(i.opcode()) || i.opcode() == Opcode::kIota ||
         i.opcode() == Opcode::kPatches;
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
  explicit Rematerialiser(Computation& c) : c_(c), depths_(c), nodes_(c) {}

  bool Run();

 private:
  struct Node {
    Instruction* value;
    bool is_read_late = false;
    int64_t repeats = 1;
  };

  void FindDepths();
  int64_t DepthOf(const Instruction* i) const { return depths_.at(i); }
  // Whether the user reads x late, at which of the program's spans. Tuples do not read.
  bool IsLate(const Instruction* x, const Instruction* user) const {
    return user->opcode() != Opcode::kTuple && DepthOf(user) - DepthOf(x) >= kGap;
  }
  int64_t SpanOf(const Instruction* user) const { return DepthOf(user) / kSpan; }
  int32_t NodeOf(Instruction* x);
  void FindLateValues();
  std::vector<bool> Repeated() const;
  bool SavesMuch() const;
  bool IsRepeated(const Instruction* x) const {
    const int32_t* node = nodes_.Find(x);
    return node && is_repeated_[static_cast<size_t>(*node)];
  }
  // x for the late uses of a span, the first of which is `user`: again, or behind a barrier.
  Instruction* Late(Instruction* x, Instruction* user, int64_t span) {
    return IsRepeated(x) ? Repeat(x, user, span) : Kept(x, user, span);
  }
  Instruction* Repeat(Instruction* x, Instruction* user, int64_t span);
  Instruction* Kept(Instruction* x, Instruction* user, int64_t span);

  Computation& c_;
  ir::InstructionMap<int64_t> depths_;  // products on the longest way to a value
  ir::InstructionMap<int32_t> nodes_;
  std::vector<Node> values_;  // those read late, then what they are made of
  std::vector<bool> is_repeated_;
  // By span and value.
  std::unordered_map<int64_t, std::unordered_map<const Instruction*, Instruction*>> late_;
};

void Rematerialiser::FindDepths() {
  for (Instruction* i : c_.instructions()) {
    int64_t depth = 0;
    for (const Instruction* operand : i->operands()) depth = std::max(depth, DepthOf(operand));
    const OpCost cost = OpCostOf(i->opcode());
    depths_[i] = depth + (cost == OpCost::kContraction || cost == OpCost::kCall ? 1 : 0);
  }
}

int32_t Rematerialiser::NodeOf(Instruction* x) {
  const auto next = static_cast<int32_t>(values_.size());
  if (nodes_.Insert(x, next)) values_.push_back({x});
  return nodes_.at(x);
}

void Rematerialiser::FindLateValues() {
  for (Instruction* i : c_.instructions()) {
    if (!i->shape().is_array() || !i->shape().is_static() || IsGiven(*i)) continue;
    if (i->shape().byte_size() < kLeastBytes) continue;
    std::vector<int64_t> spans;
    for (const Instruction* user : i->users()) {
      if (IsLate(i, user) && !std::ranges::count(spans, SpanOf(user))) {
        spans.push_back(SpanOf(user));
      }
    }
    if (spans.empty()) continue;
    Node& node = values_[static_cast<size_t>(NodeOf(i))];
    node.is_read_late = true;
    node.repeats = std::ssize(spans);
  }
  // What they are made of by ops that can be repeated, as often.
  for (size_t n = 0; n < values_.size(); ++n) {
    if (!CanRepeat(*values_[n].value)) continue;
    for (Instruction* operand : values_[n].value->operands()) {
      Node& node = values_[static_cast<size_t>(NodeOf(operand))];
      node.repeats = std::max(node.repeats, values_[n].repeats);
    }
  }
}

// A value has two nodes, 2n + 2 (it is computed late) and 2n + 3 (it can be read late).
std::vector<bool> Rematerialiser::Repeated() const {
  const auto count = static_cast<int32_t>(values_.size());
  constexpr int32_t kSource = 0, kSink = 1;
  MinCut cut(2 * count + 2);
  for (int32_t n = 0; n < count; ++n) {
    const Instruction& x = *values_[static_cast<size_t>(n)].value;
    // Patches are read where they are, and never stored; nor are tuples chosen.
    const bool is_stored = x.shape().is_array() && x.opcode() != Opcode::kPatches;
    const int64_t bytes = is_stored ? x.shape().byte_size() : MinCut::kNever / 64;
    const bool is_kept = IsGiven(x) || IsResult(x);
    cut.AddEdge(2 * n + 2, 2 * n + 3, is_kept ? 0 : 64 * bytes);
    if (values_[static_cast<size_t>(n)].is_read_late) cut.AddEdge(2 * n + 3, kSink, MinCut::kNever);
    if (!CanRepeat(x)) {
      cut.AddEdge(kSource, 2 * n + 2, MinCut::kNever);
      continue;
    }
    cut.AddEdge(
        kSource, 2 * n + 2,
        Weight(x.opcode()) * x.shape().byte_size() * values_[static_cast<size_t>(n)].repeats);
    for (const Instruction* operand : x.operands()) {
      cut.AddEdge(2 * nodes_.at(operand) + 3, 2 * n + 2, MinCut::kNever);
    }
  }
  const std::vector<bool> side = cut.SinkSide(kSource, kSink, kMostSteps);
  std::vector<bool> repeated(static_cast<size_t>(count));
  for (size_t n = 0; n < repeated.size(); ++n) repeated[n] = side[2 * n + 2];
  return repeated;
}

Instruction* Rematerialiser::Kept(Instruction* x, Instruction* user, int64_t span) {
  if (IsGiven(*x) || !x->shape().is_array() || x->shape().byte_size() < kLeastBytes) return x;
  Instruction*& barrier = late_[span][x];
  if (!barrier) {
    barrier =
        c_.Create({.opcode = Opcode::kOptBarrier, .operands = {x}, .shape = x->shape()}, user);
  }
  return barrier;
}

// Chains of repeated ops can be long: no recursion.
Instruction* Rematerialiser::Repeat(Instruction* x, Instruction* user, int64_t span) {
  auto& late = late_[span];
  std::vector<Instruction*> stack = {x};
  while (!stack.empty()) {
    Instruction* next = stack.back();
    std::vector<Instruction*> operands;
    for (Instruction* operand : next->operands()) {
      if (!IsRepeated(operand)) {
        operands.push_back(Kept(operand, user, span));
      } else if (auto it = late.find(operand); it != late.end()) {
        operands.push_back(it->second);
      } else {
        stack.push_back(operand);
      }
    }
    if (std::ssize(operands) < next->operand_count()) continue;
    stack.pop_back();
    if (!late.contains(next))
      late[next] = c_.Create(ir::CopySpec(*next, std::move(operands)), user);
  }
  return late.at(x);
}

// Whether enough is not kept. Views and the like are read where they are, kept or not.
bool Rematerialiser::SavesMuch() const {
  const auto bytes = [](const Instruction& i) {
    const bool has_memory =
        i.shape().is_array() && i.shape().is_static() && !IsGiven(i) && Weight(i.opcode()) != 0;
    return has_memory ? i.shape().byte_size() : 0;
  };
  int64_t saved = 0, all = 0;
  for (size_t n = 0; n < values_.size(); ++n) {
    if (is_repeated_[n] && values_[n].is_read_late) saved += bytes(*values_[n].value);
  }
  for (const Instruction* i : c_.instructions()) all += bytes(*i);
  return saved > 0 && saved >= all / kLeastPart;
}

bool Rematerialiser::Run() {
  FindDepths();
  FindLateValues();
  if (values_.empty()) return false;
  is_repeated_ = Repeated();
  if (!SavesMuch()) return false;
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
      if (!nodes_.contains(x) || !IsLate(x, user)) continue;
      Instruction* late = Late(x, user, SpanOf(user));
      if (late != x) uses.push_back({user, k, late});
    }
  }
  for (const Use& use : uses) c_.ReplaceOperand(use.user, use.operand, use.late);
  if (!uses.empty()) c_.Reorder(c_.PostOrder());
  return !uses.empty();
}

}  // namespace

Result<bool> Rematerialise(ir::Module& module, const PassContext&) {
  bool changed = false;
  for (const auto& c : module.computations()) {
    if (c->root()) changed |= Rematerialiser(*c).Run();
  }
  return changed;
}

}  // namespace kiln::passes
