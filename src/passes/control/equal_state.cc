#include "passes/control/equal_state.h"

#include <algorithm>
#include <unordered_map>

#include "ir/analysis/effects.h"
#include "ir/analysis/trip_count.h"
#include "passes/control/computations.h"

namespace kiln::passes {
namespace {

using ir::Computation;
using ir::Instruction;

// Numbers the values of a body: values get equal numbers if they are equal whenever the state's
// elements of one class are.
class Numbering {
 public:
  Numbering(const Computation& body, const std::vector<int64_t>& classes) {
    const Instruction* state = body.parameter(0);
    for (Instruction* i : body.instructions()) {
      if (ir::IsElementOf(i, state)) {
        numbers_[i] = classes[static_cast<size_t>(i->attributes().Int(Attr::kIndex))];
      }
    }
    next_ = static_cast<int64_t>(classes.size());
    for (Instruction* i : body.instructions()) {
      if (!numbers_.contains(i)) numbers_[i] = NumberOf(*i);
    }
  }

  int64_t Of(const Instruction* i) const { return numbers_.at(i); }

 private:
  int64_t NumberOf(const Instruction& i) {
    // Values behind different barriers stay distinct.
    if (i.opcode() == Opcode::kParameter || i.opcode() == Opcode::kOptBarrier || !ir::IsPure(i)) {
      return next_++;
    }
    size_t hash = static_cast<size_t>(i.opcode()) * 31 + i.attributes().Hash();
    for (const Instruction* operand : i.operands()) {
      hash = hash * 1000003 + static_cast<size_t>(numbers_.at(operand));
    }
    auto [first, last] = seen_.equal_range(hash);
    for (; first != last; ++first) {
      if (IsSame(*first->second, i)) return numbers_.at(first->second);
    }
    seen_.emplace(hash, &i);
    return next_++;
  }

  bool IsSame(const Instruction& a, const Instruction& b) const {
    if (a.opcode() != b.opcode() || !(a.shape() == b.shape()) ||
        !(a.attributes() == b.attributes()) || a.operand_count() != b.operand_count() ||
        a.called().size() != b.called().size()) {
      return false;
    }
    for (int64_t o = 0; o < a.operand_count(); ++o) {
      if (numbers_.at(a.operand(o)) != numbers_.at(b.operand(o))) return false;
    }
    for (size_t c = 0; c < a.called().size(); ++c) {
      if (!IsSameComputation(*a.called(c), *b.called(c))) return false;
    }
    return !a.IsConstant() || a.literal() == b.literal();
  }

  std::unordered_map<const Instruction*, int64_t> numbers_;
  std::unordered_multimap<size_t, const Instruction*> seen_;
  int64_t next_ = 0;
};

}  // namespace

std::vector<int64_t> EqualState(const Instruction& loop) {
  const Instruction& initial = *loop.operand(0);
  const Computation& body = *loop.called(1);
  const size_t count = loop.shape().elements().size();
  std::vector<int64_t> classes(count), alone(count);
  for (size_t k = 0; k < count; ++k) alone[k] = classes[k] = static_cast<int64_t>(k);
  if (initial.opcode() != Opcode::kTuple) return alone;
  std::unordered_map<const Instruction*, size_t> first_of;
  for (size_t k = 0; k < count; ++k) {
    // Equal constants are one instruction where their order matters: cse saw to that.
    const Instruction* x = initial.operand(static_cast<int64_t>(k));
    auto [it, is_first] = first_of.emplace(x, k);
    if (!is_first) classes[k] = static_cast<int64_t>(it->second);
  }
  // The body that is its parameter hands all of them on.
  const Instruction* root = body.root();
  if (root == body.parameter(0) || classes == alone) return classes;
  if (root->opcode() != Opcode::kTuple) return alone;
  // Classes are split by their next values until a fixed point.
  constexpr int kMaxRounds = 16;
  for (int round = 0; round < kMaxRounds; ++round) {
    Numbering numbers(body, classes);
    std::vector<int64_t> parted = alone;
    std::unordered_map<int64_t, std::vector<size_t>> members;  // by class before, the first of each
    for (size_t k = 0; k < count; ++k) {
      std::vector<size_t>& firsts = members[classes[k]];
      auto equal = std::ranges::find_if(firsts, [&](size_t j) {
        return numbers.Of(root->operand(static_cast<int64_t>(j))) ==
               numbers.Of(root->operand(static_cast<int64_t>(k)));
      });
      if (equal == firsts.end()) {
        firsts.push_back(k);
      } else {
        parted[k] = static_cast<int64_t>(*equal);
      }
    }
    if (parted == classes) return classes;
    classes = std::move(parted);
    if (classes == alone) return alone;
  }
  return alone;
}

}  // namespace kiln::passes
