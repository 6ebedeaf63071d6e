#include "ir/pass_calls.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "base/strings.h"
#include "ir/builder.h"
#include "ir/scaled_dot.h"

namespace kiln::ir {
namespace {

bool Has(const ForeignInstruction& call, size_t operands) {
  return call.operands.size() == operands &&
         std::ranges::all_of(call.operands,
                             [](const Instruction* o) { return o->shape().is_array(); });
}

// --- Halves of 64 bits

Instruction* X64Split(Builder& b, const ForeignInstruction& call) {
  if (!Has(call, 1) || !call.shape->is_array()) return nullptr;
  Instruction* x = call.operands[0];
  const ElementType type = x->shape().type(), half = call.shape->type();
  const bool high = call.name == "X64SplitHigh";
  if (type == ElementType::kF64) {
    Instruction* nearest = b.Convert(x, half);
    return high ? nearest : b.Convert(b.Minus(x, b.Convert(nearest, type)), half);
  }
  if (!IsInteger(type) || BitWidth(type) != 64) return nullptr;
  if (high) x = b.Binary(Opcode::kShiftRightLogical, x, b.Number(x, 32));
  return b.Convert(x, half);
}

Instruction* X64Combine(Builder& b, const ForeignInstruction& call) {
  if (!Has(call, 2) || !call.shape->is_array()) return nullptr;
  const ElementType type = call.shape->type();
  Instruction *low = call.operands[0], *high = b.Convert(call.operands[1], type);
  if (type == ElementType::kF64) return b.Plus(b.Convert(low, type), high);
  if (!IsInteger(type) || BitWidth(type) != 64 || !IsInteger(low->shape().type()) ||
      BitWidth(low->shape().type()) != 32) {
    return nullptr;
  }
  low = b.Convert(b.Bits(low, ElementType::kU32), type);
  return b.Or(low, b.Binary(Opcode::kShiftLeft, high, b.Number(high, 32)));
}

// --- Sizes

Instruction* SliceToDynamic(Builder& b, const ForeignInstruction& call) {
  const Shape& shape = *call.shape;
  if (!shape.is_array() || !Has(call, static_cast<size_t>(shape.rank()) + 1)) return nullptr;
  Instruction* x = call.operands[0];
  for (int64_t d = 0; d < shape.rank(); ++d) {
    if (!shape.dimension(d).is_bounded()) continue;
    Instruction* size = call.operands[static_cast<size_t>(d) + 1];
    x = b.Add(Opcode::kSetDimensionSize, {x, size}, {{Attr::kDimensions, Ints{d}}});
  }
  return x;
}

Instruction* PadToStatic(Builder& b, const ForeignInstruction& call) {
  if (!Has(call, 1)) return nullptr;
  Instruction* x = call.operands[0];
  const Shape shape = x->shape();
  std::vector<Instruction*> results = {x};
  for (int64_t d = 0; d < shape.rank(); ++d) {
    if (shape.dimension(d).is_symbolic()) return nullptr;
    results.push_back(b.Add(Opcode::kGetDimensionSize, {x}, {{Attr::kDimensions, Ints{d}}}));
    if (!shape.dimension(d).is_bounded()) continue;
    const int64_t bound = shape.dim(d);
    Instruction* size = b.Scalar(ElementType::kS32, static_cast<double>(bound));
    results[0] = b.WithSize(results[0], d, size, bound);
  }
  return b.Tuple(std::move(results));
}

// --- Blocks with scales

// The power of two of the largest numbers of a float.
double LargestPower(ElementType type) {
  const int exponent = VisitType(type, [](auto zero) {
    using T = decltype(zero);
    if constexpr (FloatType<T>) return std::numeric_limits<T>::max_exponent;
    return 1;
  });
  return std::ldexp(1, exponent - 1);
}

// The scale of a block is its largest magnitude, by the largest power of two of the result's type.
Instruction* Quantize(Builder& b, const ForeignInstruction& call) {
  if (!Has(call, 1) || !call.shape->is_tuple() || call.shape->elements().size() != 2) {
    return nullptr;
  }
  Instruction* x = call.operands[0];
  const Shape &quantized = call.shape->elements()[0], &scales = call.shape->elements()[1];
  const int64_t last = x->shape().rank() - 1;
  const bool fits =
      last >= 0 && quantized.is_array() && scales.is_array() && x->shape().is_static() &&
      scales.is_static() && x->shape().SameDimensions(quantized) && scales.rank() == last + 1 &&
      scales.dim(last) > 0 && IsFloat(x->shape().type()) && IsFloat(quantized.type()) &&
      IsFloat(scales.type()) && x->shape().dim(last) % scales.dim(last) == 0;
  if (!fits) return nullptr;
  std::vector<Dimension> blocks = scales.dimensions();
  blocks.emplace_back(x->shape().dim(last) / scales.dim(last));
  Instruction* largest =
      b.Reduce(Opcode::kMaximum, b.Abs(b.Reshape(x, std::move(blocks))), 0, {last + 1}, "amax");
  Instruction* by = b.Number(largest, LargestPower(quantized.type()));
  Instruction* scale = b.Convert(b.Over(largest, by), scales.type());
  Instruction* ones = b.Number(x, 1);
  Instruction* spread = TimesScale(b, ones, scale, x->shape().type(), 0);
  return b.Tuple({b.Convert(b.Over(x, spread), quantized.type()), scale});
}

Instruction* Dequantize(Builder& b, const ForeignInstruction& call) {
  if (!Has(call, 2) || !call.shape->is_array()) return nullptr;
  return TimesScale(b, call.operands[0], call.operands[1], call.shape->type(), 0);
}

// --- Others

// A number in "dimension=0,amount=2".
int64_t NumberOf(const ForeignInstruction& call, std::string_view key) {
  for (std::string_view item : Split(call.attributes.Text(Attr::kBackendConfig), ',')) {
    const size_t equals = item.find('=');
    if (equals == std::string_view::npos || item.substr(0, equals) != key) continue;
    return ParseInt(item.substr(equals + 1)).value_or(-1);
  }
  return -1;
}

Instruction* RotateRight(Builder& b, const ForeignInstruction& call) {
  if (!Has(call, 1) || !call.operands[0]->shape().is_static()) return nullptr;
  Instruction* x = call.operands[0];
  const int64_t along = NumberOf(call, "dimension"), amount = NumberOf(call, "amount");
  if (along < 0 || along >= x->shape().rank()) return nullptr;
  const int64_t size = x->shape().dim(along);
  if (amount < 0 || amount > size) return nullptr;
  std::vector<SliceDimension> front, back;
  for (int64_t d : x->shape().dims()) front.push_back({0, d, 1});
  back = front;
  front[static_cast<size_t>(along)].limit = size - amount;
  back[static_cast<size_t>(along)].start = size - amount;
  return b.Concatenate({b.Slice(x, std::move(back)), b.Slice(x, std::move(front))}, along);
}

// Along the last dimension, by bits: floats in their total order.
Instruction* RadixSort(Builder& b, const ForeignInstruction& call) {
  const size_t count = call.operands.size();
  if (count < 1 || count > 2 || !Has(call, count) || !call.shape->is_tuple() ||
      call.shape->elements().size() != count + 1 || call.operands[0]->shape().rank() < 1) {
    return nullptr;
  }
  for (size_t k = 0; k < count; ++k) {
    const Shape& shape = call.operands[k]->shape();
    const bool fits = shape.SameDimensions(call.operands[0]->shape()) &&
                      shape.SameTypeAndDimensions(call.shape->elements()[k]);
    if (!fits || !call.shape->elements()[count].is_array()) return nullptr;
  }
  const bool descending =
      call.attributes.Text(Attr::kBackendConfig).find("\"descending\":true") != std::string::npos;
  Computation* order = call.computation->parent()->AddComputation("order");
  Builder in(order);
  std::vector<Instruction*> keys;
  for (const Instruction* operand : call.operands) {
    for (int side = 0; side < 2; ++side) {
      keys.push_back(in.Parameter(Shape::Scalar(operand->shape().type())));
    }
  }
  Attributes attributes = {{Attr::kDirection, descending ? Direction::kGt : Direction::kLt}};
  if (IsFloat(call.operands[0]->shape().type())) {
    attributes.Set(Attr::kOrderType, std::string("TOTALORDER"));
  }
  Instruction* root = in.Add(Opcode::kCompare, {keys[0], keys[1]}, std::move(attributes));
  if (!root) return b.Fail(in.status());
  order->set_root(root);
  const int64_t last = call.operands[0]->shape().rank() - 1;
  Instruction* sorted =
      b.Add(Opcode::kSort, call.operands, {{Attr::kDimensions, Ints{last}}}, std::nullopt, {order});
  std::vector<Instruction*> results = {sorted};
  if (count == 2) results = {b.Element(sorted, 0), b.Element(sorted, 1)};
  results.push_back(b.Zeros(call.shape->elements()[count]));
  return b.Tuple(std::move(results));
}

Instruction* Same(Builder& b, const ForeignInstruction& call) {
  return call.shape->is_tuple()      ? b.Tuple(call.operands)
         : call.operands.size() == 1 ? call.operands[0]
                                     : nullptr;
}

// "ErfInv" as an elementwise op of the table: "erf-inv" or "kiln.erf-inv".
std::optional<Opcode> FunctionByName(std::string_view name) {
  std::string dashed;
  for (const char c : name) {
    const bool upper = c >= 'A' && c <= 'Z';
    if (upper && !dashed.empty()) dashed += '-';
    dashed += upper ? static_cast<char>(c - 'A' + 'a') : c;
  }
  std::optional<Opcode> opcode = OpcodeByName(dashed);
  if (!opcode) opcode = OpcodeByName(Cat("kiln.", dashed));
  if (!opcode || !IsElementwise(*opcode) || !InfoOf(*opcode).attributes.empty()) {
    return std::nullopt;
  }
  return opcode;
}

constexpr std::string_view kFunctions = "xla_builder.math.";

Instruction* Function(Builder& b, const ForeignInstruction& call) {
  const std::optional<Opcode> opcode = FunctionByName(call.name.substr(kFunctions.size()));
  return opcode ? b.Add(*opcode, call.operands) : nullptr;
}

struct Target {
  std::string_view name;  // or its beginning, before '*'
  Instruction* (*make)(Builder&, const ForeignInstruction&);
};

constexpr Target kTargets[] = {
    {"X64SplitLow", X64Split},
    {"X64SplitHigh", X64Split},
    {"X64Combine", X64Combine},
    {"SliceToDynamic", SliceToDynamic},
    {"PadToStatic", PadToStatic},
    {"__op$quantize", Quantize},
    {"__op$dequantize", Dequantize},
    {"_SPMDInternalOp_RotateRight", RotateRight},
    {"xla.gpu.ext.cub_sort*", RadixSort},
    {"__cub$DeviceRadixSort*", RadixSort},
    {"SetBound", Same},
    {"__xla_internal_call_marker_*", Same},
    {"xla_builder.math.*", Function},
};

const Target* Find(std::string_view target) {
  for (const Target& row : kTargets) {
    const bool begins = row.name.ends_with("*");
    const std::string_view name = row.name.substr(0, row.name.size() - (begins ? 1 : 0));
    if (begins ? target.starts_with(name) : target == name) return &row;
  }
  return nullptr;
}

}  // namespace

bool IsPassCall(std::string_view target) { return Find(target) != nullptr; }

Instruction* PassCall(const ForeignInstruction& call) {
  const Target* target = Find(call.name);
  if (!target || !call.shape || call.operands.empty()) return nullptr;
  Builder b(call.computation, nullptr, call.op_name);
  Instruction* value = target->make(b, call);
  return value && b.ok() && value->shape().SameTypeAndDimensions(*call.shape) ? value : nullptr;
}

}  // namespace kiln::ir
