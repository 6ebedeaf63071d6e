#include "interp/session_ops.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <numeric>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "base/strings.h"
#include "interp/bounded.h"
#include "interp/elementwise.h"
#include "ir/host_call.h"

namespace kiln::interp {
namespace {

using ir::Instruction;

// Elements in messages are no more than these.
constexpr int64_t kMostElements = 1000;

template <typename T>
bool IsNan(T x) {
  if constexpr (ComplexType<T>) return std::isnan(x.real()) || std::isnan(x.imag());
  if constexpr (FloatType<T>) return std::isnan(static_cast<double>(x));
  return false;
}

template <typename T>
bool IsZero(T x) {
  if constexpr (ComplexType<T>) return x.real() == 0 && x.imag() == 0;
  if constexpr (FloatType<T>) return static_cast<double>(x) == 0;
  return x == T{};
}

// Without the sign of a zero: equal numbers have equal bits.
template <typename T>
T WithoutSignOfZero(T x) {
  if constexpr (ComplexType<T>) {
    return T(WithoutSignOfZero(x.real()), WithoutSignOfZero(x.imag()));
  }
  return IsZero(x) ? T{} : x;
}

template <typename T>
std::vector<bool> NotZero(std::span<const T> elements) {
  std::vector<bool> is_set(elements.size());
  for (size_t k = 0; k < elements.size(); ++k) is_set[k] = !IsZero(elements[k]);
  return is_set;
}

// Positions of the first occurrences, and for each element the number of its value.
struct Distinct {
  std::vector<int64_t> first;
  std::vector<int32_t> inverse, counts;
};

template <typename T>
Distinct FindDistinct(std::span<const T> elements) {
  Distinct distinct;
  // By the bits of an element.
  std::unordered_map<std::string, int32_t> numbers;
  for (size_t k = 0; k < elements.size(); ++k) {
    const T key = WithoutSignOfZero(elements[k]);
    const auto next = static_cast<int32_t>(distinct.first.size());
    int32_t number = next;
    if (!IsNan(elements[k])) {
      const std::string bits(reinterpret_cast<const char*>(&key), sizeof(T));
      number = numbers.emplace(bits, next).first->second;
    }
    if (number == next) {
      distinct.first.push_back(static_cast<int64_t>(k));
      distinct.counts.push_back(0);
    }
    distinct.inverse.push_back(number);
    ++distinct.counts[static_cast<size_t>(number)];
  }
  return distinct;
}

Literal VectorOf(const std::vector<int32_t>& values) {
  return Literal::Array<int32_t>(Shape(ElementType::kS32, {std::ssize(values)}), values);
}

std::string TextOf(std::span<const Literal* const> values) {
  std::vector<std::string> texts;
  for (const Literal* value : values) texts.push_back(value->ToString(kMostElements));
  return Join(texts, " ");
}

// The sum of two arrays of one shape.
Result<Literal> SumOf(const Literal& x, const Literal& y) {
  ir::Module module("sum");
  ir::Computation* c = module.AddComputation("sum");
  std::vector<Instruction*> operands;
  std::vector<ElementwiseOperand> elements;
  for (const Literal* operand : {&x, &y}) {
    operands.push_back(c->Create({.opcode = Opcode::kParameter,
                                  .attributes = {{Attr::kParameterNumber, std::ssize(operands)}},
                                  .shape = operand->shape()}));
    elements.push_back({operand->data(), operand->shape().type(), false});
  }
  const Instruction* add =
      c->Create({.opcode = Opcode::kAdd, .operands = operands, .shape = x.shape()});
  Literal sum(x.shape());
  KILN_RETURN_IF_ERROR(EvaluateElementwise(*add, elements, sum.data(), sum.shape().num_elements()));
  return sum;
}

}  // namespace

Literal EvaluateUnique(const Literal& operand) {
  const ElementType type = operand.shape().type();
  const Distinct distinct = VisitType(type, [&](auto zero) {
    return FindDistinct<decltype(zero)>(operand.values<decltype(zero)>());
  });
  Literal values(Shape(type, {std::ssize(distinct.first)}));
  const int64_t width = ByteWidth(type);
  for (size_t k = 0; k < distinct.first.size(); ++k) {
    std::copy_n(operand.data() + distinct.first[k] * width, width,
                values.data() + static_cast<int64_t>(k) * width);
  }
  std::vector<Literal> results;
  results.push_back(std::move(values));
  results.push_back(VectorOf(distinct.inverse));
  results.push_back(VectorOf(distinct.counts));
  return Literal::Tuple(std::move(results));
}

Literal EvaluateNonzero(const Literal& operand) {
  const Shape& shape = operand.shape();
  const std::vector<bool> is_set = VisitType(shape.type(), [&](auto zero) {
    return NotZero<decltype(zero)>(operand.values<decltype(zero)>());
  });
  Literal rows(Shape(ElementType::kS64, {std::ranges::count(is_set, true), shape.rank()}));
  std::span<int64_t> next = rows.values<int64_t>();
  const std::vector<int64_t> strides = RowMajorStrides(shape.dims());
  for (size_t k = 0; k < is_set.size(); ++k) {
    if (!is_set[k]) continue;
    int64_t rest = static_cast<int64_t>(k);
    for (size_t d = 0; d < strides.size(); ++d) {
      next[d] = rest / strides[d];
      rest %= strides[d];
    }
    next = next.subspan(strides.size());
  }
  return rows;
}

Result<Literal> EvaluateBooleanMask(const Instruction& instruction, const Literal& operand,
                                    const Literal& mask) {
  const std::vector<int64_t> dims = operand.shape().dims(), leading = mask.shape().dims();
  if (!std::equal(leading.begin(), leading.end(), dims.begin())) {
    return InvalidArgument("'", instruction.name(), "' of shape ", instruction.shape(),
                           ": the mask ", mask.shape(), " does not have the first dimensions of ",
                           operand.shape());
  }
  const std::span<const bool> is_set = mask.values<bool>();
  std::vector<int64_t> sizes = {std::ranges::count(is_set, true)};
  sizes.insert(sizes.end(), dims.begin() + mask.shape().rank(), dims.end());
  Literal out(Shape(operand.shape().type(), std::span<const int64_t>(sizes)));
  const int64_t width = Product(std::span(sizes).subspan(1)) * ByteWidth(operand.shape().type());
  std::byte* to = out.data();
  for (size_t k = 0; k < is_set.size(); ++k) {
    if (is_set[k]) to = std::copy_n(operand.data() + static_cast<int64_t>(k) * width, width, to);
  }
  return out;
}

std::string PrintedText(const Instruction& print, std::span<const Literal* const> operands) {
  return Cat(print.attributes().Text(Attr::kMessage),
             TextOf(operands.size() > 1 ? operands.subspan(1) : operands));
}

Status CheckAssertion(const Instruction& assertion, std::span<const Literal* const> operands) {
  if (operands[0]->values<bool>()[0]) return OkStatus();
  const std::string& message = assertion.attributes().Text(Attr::kMessage);
  const std::string values = TextOf(operands.subspan(2));
  return InvalidArgument("assertion '", assertion.name(), "' failed",
                         message.empty() && values.empty() ? "" : ": ", message,
                         message.empty() || values.empty() ? "" : " ", values);
}

CalledFunction HostCallbackOf(const Instruction& callback,
                              std::span<const Literal* const> operands) {
  CallSignature signature = ir::CallSignatureOf(callback);
  for (size_t k = 0; k < operands.size(); ++k) signature.operands[k] = operands[k]->shape();
  return {callback.name(), callback.attributes().Text(Attr::kCallback), std::move(signature), {}};
}

Status CheckResults(const Instruction& callback, std::span<const Literal> results) {
  const std::vector<Shape> declared = ir::CallSignatureOf(callback).results;
  auto fail = [&](const auto&... what) {
    return InvalidArgument("host-callback '", callback.name(), "': the function '",
                           callback.attributes().Text(Attr::kCallback), "' gives ", what...);
  };
  if (results.size() != declared.size()) {
    return fail(results.size(), " results; expected ", declared.size());
  }
  for (size_t k = 0; k < results.size(); ++k) {
    if (MayBe(results[k].shape(), declared[k]) && results[k].shape().is_static()) continue;
    return fail(results[k].shape(), " as result ", k, "; expected ", declared[k]);
  }
  return OkStatus();
}

Result<const Literal*> EvaluateVariableOp(const Instruction& instruction, const Literal* operand,
                                          Variables& variables) {
  const std::string& name = instruction.attributes().Text(Attr::kVariable);
  auto found = variables.find(name);
  const bool is_assign = instruction.opcode() == Opcode::kAssign;
  if (found == variables.end()) {
    if (is_assign) return &(variables[name] = *operand);
    return NotFound("'", instruction.name(), "': the variable '", name, "' has no value");
  }
  Literal& value = found->second;
  const Shape expected = operand ? operand->shape() : instruction.shape();
  const bool fits = is_assign
                        ? value.shape().is_array() && value.shape().type() == expected.type() &&
                              value.shape().rank() == expected.rank()
                        : MayBe(value.shape(), expected);
  if (!fits) {
    return InvalidArgument("'", instruction.name(), "': the variable '", name, "' is ",
                           value.shape(), "; expected ", expected);
  }
  if (is_assign) value = *operand;
  if (instruction.opcode() == Opcode::kAssignAdd) {
    KILN_ASSIGN_OR_RETURN(value, SumOf(value, *operand));
  }
  return &value;
}

}  // namespace kiln::interp
