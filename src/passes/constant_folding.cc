#include <algorithm>
#include <optional>
#include <unordered_map>

#include "interp/interpreter.h"
#include "ir/cost.h"
#include "ir/effects.h"
#include "kernel/call.h"
#include "passes/passes.h"

namespace kiln::passes {
namespace {

using ir::Instruction;

// The evaluator is no fast machine: a product of more terms than this is left to run time.
constexpr int64_t kMaxTerms = 1 << 22;
constexpr int64_t kMost = int64_t{1} << 40;

bool IsProduct(const Instruction& i) {
  return i.opcode() == Opcode::kDot || i.opcode() == Opcode::kConvolution;
}

// The terms of the sums that a dot or a convolution is made of.
int64_t TermsOf(const Instruction& i) {
  double terms = static_cast<double>(i.shape().num_elements());
  if (i.opcode() == Opcode::kDot) {
    for (int64_t d : i.attributes().IntsOf(Attr::kLhsContractingDims)) {
      terms *= static_cast<double>(std::max<int64_t>(i.operand(0)->shape().dim(d), 1));
    }
  } else {
    const ConvolutionDimensions& d = i.attributes().Convolution(Attr::kDimLabels);
    const Shape& rhs = i.operand(1)->shape();
    for (int64_t at : d.kernel_spatial) terms *= static_cast<double>(rhs.dim(at));
    terms *= static_cast<double>(rhs.dim(d.kernel_input_feature));
  }
  return static_cast<int64_t>(std::min(terms, static_cast<double>(kMost)));
}

// How long the evaluator takes, in units of an elementwise op on one element.
int64_t WorkOf(const Instruction& i) {
  int64_t work = 0;
  if (i.shape().is_array()) work = i.shape().num_elements();
  for (const Shape& element : i.shape().elements()) work += element.num_elements();
  switch (i.opcode()) {
    case Opcode::kDot:
    case Opcode::kConvolution:
      work = TermsOf(i);
      break;
    case Opcode::kSort:
    case Opcode::kTopK:
      work = 64 * i.operand_count() * i.operand(0)->shape().num_elements();
      break;
    case Opcode::kCholesky:
    case Opcode::kFft:
    case Opcode::kTriangularSolve:
      // In the evaluator's own, wider numbers.
      work = std::max(work, 16 * std::min(ir::OperationsOf(i).flops, kMost / 16));
      break;
    case Opcode::kSelectAndScatter:
      work = i.operand(1)->shape().num_elements();
      [[fallthrough]];
    case Opcode::kReduceWindow:
      for (const WindowDimension& d : i.attributes().Window(Attr::kWindow)) {
        work = std::min(work, kMost) * std::min(d.size, int64_t{1} << 20);
      }
      work = std::min(work, kMost) * 4;
      break;
    default:
      break;
  }
  return std::min(work, kMost);
}

// What kernels make where they need it, from a few bytes: counts, and constants repeated.
bool IsDescription(const Instruction& x) {
  return x.opcode() == Opcode::kIota ||
         (x.opcode() == Opcode::kBroadcast && x.operand(0)->IsConstant());
}

bool IsFoldable(const Instruction& i) {
  // A literal is in row-major order, and no array of another layout can be one.
  if (!i.shape().is_array() || !i.shape().is_static() || !i.shape().is_row_major()) return false;
  switch (i.opcode()) {
    case Opcode::kParameter:
    case Opcode::kTuple:
    case Opcode::kGetTupleElement:
    case Opcode::kWhile:
    case Opcode::kConditional:
    case Opcode::kCall:
    case Opcode::kFusion:
    case Opcode::kOptBarrier:
      return false;
    default:
      return ir::IsPure(i) && !ir::DependsOnProcess(i.opcode());
  }
}

// Whether it gives several arrays at once, each of which can be a literal.
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

// What would only make large constants out of small descriptions stays, and so does what takes
// long.
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
         operand_bytes <= 16 * context.fold_limit_bytes &&
         (!IsProduct(i) || TermsOf(i) <= kMaxTerms) &&
         (!kernel::IsCall(i) || WorkOf(i) <= kMaxTerms);
}

// What small expressions of constants and counts alone take to evaluate.
class Expressions {
 public:
  // Asked in the order in which operands come before users.
  void Add(const Instruction& i) {
    int64_t elements = WorkOf(i);
    bool has_count = i.opcode() == Opcode::kIota;
    for (const Instruction* operand : i.operands()) {
      auto it = known_.find(operand);
      if (it == known_.end()) return;
      elements += it->second.elements;
      if (elements > kMostElements) return;
      has_count |= it->second.has_count;
    }
    if (elements <= kMostElements) known_[&i] = {elements, has_count};
  }
  bool Contains(const Instruction* i) const { return known_.contains(i); }
  bool HasCount(const Instruction* i) const { return known_.at(i).has_count; }

  // Of one that is among them.
  std::optional<Literal> Evaluate(const Instruction& i) const {
    std::vector<Literal> made;
    made.reserve(static_cast<size_t>(i.operand_count()));
    std::vector<const Literal*> operands;
    for (const Instruction* operand : i.operands()) {
      if (!operand->IsConstant()) {
        std::optional<Literal> value = Evaluate(*operand);
        if (!value) return std::nullopt;
        made.push_back(*std::move(value));
      }
      operands.push_back(operand->IsConstant() ? &operand->literal() : &made.back());
    }
    auto value = interp::EvaluateInstruction(i, operands);
    return value.ok() ? std::optional(*std::move(value)) : std::nullopt;
  }

 private:
  // The evaluator is no fast machine. Each use of a value counts: so little is evaluated that
  // nothing has to be kept.
  static constexpr int64_t kMostElements = 1 << 16;
  struct Known {
    int64_t elements;
    bool has_count;
  };
  std::unordered_map<const Instruction*, Known> known_;
};

// op(iota(), spread(c)) => constant   of small arrays, where an element takes more work than
// reading it would: functions, reductions, sorts, products, also of what is made of such
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
      // A function of what repeats one scalar is that of the scalar, repeated.
      return HasTrait(i.opcode(), kTranscendental) && expressions.HasCount(&i);
  }
}

}  // namespace

// op(c, d) => constant   where what it is made of is not much smaller; beside an array of different
// numbers there may be counts and repeated ones
Result<bool> FoldConstants(ir::Module& module, const PassContext& context) {
  bool changed = false;
  for (const auto& c : module.computations()) {
    Expressions expressions;
    for (auto it = c->instructions().begin(); it != c->instructions().end();) {
      Instruction* i = *it++;
      std::optional<Literal> value;
      if (i->opcode() == Opcode::kGetTupleElement && expressions.Contains(i->operand(0))) {
        value = expressions.Evaluate(*i->operand(0));
        if (value) {
          Literal element =
              std::move(value->elements()[static_cast<size_t>(i->attributes().Int(Attr::kIndex))]);
          value = std::move(element);
        }
      } else if (IsFoldable(*i) || IsFoldableTuple(*i)) {
        expressions.Add(*i);
        if (i->shape().is_array() &&
            (IsWorthFolding(*i, context) || IsExpensive(*i, expressions))) {
          value = expressions.Evaluate(*i);
        }
      }
      if (!value) continue;  // What has none for other reasons is its compiler's to refuse.
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
