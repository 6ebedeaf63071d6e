#include <algorithm>
#include <optional>
#include <unordered_map>

#include "interp/interpreter.h"
#include "interp/work.h"
#include "ir/analysis/effects.h"
#include "passes/passes.h"

namespace kiln::passes {
namespace {

using ir::Instruction;

// The evaluator is slow: larger work, as it counts it, is left to run time.
constexpr int64_t kMostWork = 1 << 24;

// Values that kernels recompute from a few bytes: iotas, and broadcast constants.
bool IsDescription(const Instruction& x) {
  return x.opcode() == Opcode::kIota ||
         (x.opcode() == Opcode::kBroadcast && x.operand(0)->IsConstant());
}

bool IsFoldable(const Instruction& i) {
  // A literal is in row-major order, and no array of another layout can be one.
  if (!i.shape().is_array() || !i.shape().is_static() || !i.shape().is_row_major()) return false;
  if (HasTrait(i.opcode(), kStructural)) return i.IsConstant();
  return ir::IsPure(i) && !DependsOnProcess(i.opcode());
}

// Whether the op gives several arrays at once. Each can be a literal.
bool IsFoldableTuple(const Instruction& i) {
  switch (i.opcode()) {
    case Opcode::kReduce:
    case Opcode::kReduceWindow:
    case Opcode::kSort:
    case Opcode::kTopK:
      return i.shape().is_tuple() && std::ranges::all_of(i.shape().elements(), [](const Shape& s) {
               return s.is_array() && s.is_static() && s.is_row_major();
             });
    default:
      return false;
  }
}

// Expressions that would become large constants, or take long, stay.
bool IsWorthFolding(const Instruction& i, const PassContext& context) {
  if (i.operand_count() == 0 || i.opcode() == Opcode::kBroadcast) return false;
  int64_t operand_bytes = 0, described_bytes = 0;
  for (const Instruction* operand : i.operands()) {
    if (!IsFoldable(*operand)) return false;
    if (!operand->IsConstant() && !IsDescription(*operand)) return false;
    (operand->IsConstant() ? operand_bytes : described_bytes) += operand->shape().byte_size();
  }
  // Beside descriptions there is an array, and no much smaller one than the result.
  constexpr int64_t kSmall = 1 << 16;
  if (described_bytes > 0 &&
      (std::max(described_bytes, i.shape().byte_size()) > std::max(operand_bytes, kSmall) ||
       std::ranges::none_of(i.operands(), [](const Instruction* operand) {
         return operand->IsConstant() && operand->shape().rank() > 0;
       }))) {
    return false;
  }
  return i.shape().byte_size() <= std::max(context.fold_limit_bytes, operand_bytes) &&
         operand_bytes <= 16 * context.fold_limit_bytes && interp::WorkOf(i) <= kMostWork;
}

// The growth of a constant relative to its inputs.
int64_t BytesGained(const Instruction& i) {
  if (!i.shape().is_array()) return 0;
  int64_t bytes = i.shape().byte_size();
  for (const Instruction* operand : i.operands()) {
    if (operand->IsConstant()) bytes -= operand->shape().byte_size();
  }
  return std::max<int64_t>(bytes, 0);
}

// The evaluation budget of small expressions of constants and iotas.
class Expressions {
 public:
  // Asked in the order in which operands come before users.
  void Add(const Instruction& i) {
    int64_t elements = interp::WorkOf(i) + 1, depth = 0;
    bool has_count = i.opcode() == Opcode::kIota;
    for (const Instruction* operand : i.operands()) {
      auto it = known_.find(operand);
      if (it == known_.end()) return;
      elements += it->second.elements;
      if (elements > kMostElements) return;
      has_count |= it->second.has_count;
      depth = std::max(depth, it->second.depth + 1);
    }
    if (elements <= kMostElements && depth <= kMostDepth) known_[&i] = {elements, depth, has_count};
  }
  bool Contains(const Instruction* i) const { return known_.contains(i); }
  bool HasCount(const Instruction* i) const { return known_.at(i).has_count; }

  // Of one whose operands are constants or among them. Nothing where that takes too long.
  std::optional<Literal> Evaluate(const Instruction& i, const PassContext& context) const {
    FoldBudget& budget = *context.fold_budget;
    std::vector<Literal> made;
    made.reserve(static_cast<size_t>(i.operand_count()));
    std::vector<const Literal*> operands;
    for (const Instruction* operand : i.operands()) {
      if (!operand->IsConstant()) {
        std::optional<Literal> value = Evaluate(*operand, context);
        if (!value) return std::nullopt;
        made.push_back(*std::move(value));
      }
      operands.push_back(operand->IsConstant() ? &operand->literal() : &made.back());
    }
    int64_t done = 0;
    auto value = interp::EvaluateInstruction(i, operands,
                                             {.max_work = std::min(kMostWork, budget.work),
                                              .work_done = &done,
                                              .interrupt = context.interrupt});
    budget.work -= done;
    return value.ok() ? std::optional(*std::move(value)) : std::nullopt;
  }

 private:
  // Each use of a value counts: so little is evaluated that
  // nothing has to be kept.
  static constexpr int64_t kMostElements = 1 << 16, kMostDepth = 64;
  struct Known {
    int64_t elements, depth;
    bool has_count;
  };
  std::unordered_map<const Instruction*, Known> known_;
};

// op(iota(), spread(c)) => constant   where the array is small, and an element takes more work than
// a read: functions, reductions, sorts, products, and ops on their results
bool IsExpensive(const Instruction& i, const Expressions& expressions) {
  if (i.operand_count() == 0 || !expressions.Contains(&i)) return false;
  switch (i.opcode()) {
    case Opcode::kReduce:
    case Opcode::kReduceWindow:
    case Opcode::kDot:
    case Opcode::kConvolution:
    case Opcode::kSelectAndScatter:
    case Opcode::kSort:
    case Opcode::kGather:
      return true;
    default:
      // A function of a broadcast scalar is the broadcast function of the scalar.
      return IsTranscendental(i.opcode()) && expressions.HasCount(&i);
  }
}

}  // namespace

// op(c, d) => constant   where the result is small, or no larger than the operands   (iotas and
// repeated constants may stand beside an array)
Result<bool> FoldConstants(ir::Module& module, const PassContext& context) {
  bool changed = false;
  FoldBudget& budget = *context.fold_budget;
  for (const auto& c : module.computations()) {
    Expressions expressions;
    for (auto it = c->instructions().begin(); it != c->instructions().end();) {
      Instruction* i = *it++;
      const int64_t bytes = BytesGained(*i);
      std::optional<Literal> value;
      if (i->opcode() == Opcode::kGetTupleElement && expressions.Contains(i->operand(0))) {
        if (bytes <= budget.bytes) value = expressions.Evaluate(*i->operand(0), context);
        if (value) {
          Literal element =
              std::move(value->elements()[static_cast<size_t>(i->attributes().Int(Attr::kIndex))]);
          value = std::move(element);
        }
      } else if (IsFoldable(*i) || IsFoldableTuple(*i)) {
        expressions.Add(*i);
        if (i->shape().is_array() && bytes <= budget.bytes &&
            (IsWorthFolding(*i, context) || IsExpensive(*i, expressions))) {
          value = expressions.Evaluate(*i, context);
        }
      }
      if (!value) {
        // Other failures are left to the compiler to report.
        KILN_RETURN_IF_ERROR(context.interrupt.Check());
        continue;
      }
      budget.bytes -= bytes;
      expressions.Add(*c->Replace(i, {.opcode = Opcode::kConstant,
                                      .shape = i->shape(),
                                      .literal = std::make_shared<const Literal>(*std::move(value)),
                                      .op_name = i->op_name()}));
      changed = true;
    }
  }
  return changed;
}

}  // namespace kiln::passes
