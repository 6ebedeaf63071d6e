#include "ir/pass_calls.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "base/strings.h"
#include "ir/builder.h"
#include "ir/scaled_dot.h"
#include "ir/text_scanner.h"
#include "ir/text_values.h"

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

// --- Neighbours along a dimension

// The numbers of a key in "dimension=0, amount=2,start_indices=[1,0]"; none if it is not there.
Ints NumbersOf(const ForeignInstruction& call, std::string_view key) {
  Scanner scanner(call.attributes.Text(Attr::kBackendConfig));
  while (!scanner.AtEnd()) {
    const std::string_view word = scanner.TakeWord();
    if (word.empty() || !scanner.Take("=")) break;
    Ints numbers;
    if (scanner.Looking("[")) {
      if (Result<Ints> list = ReadInts(scanner); list.ok()) numbers = *std::move(list);
    } else if (Result<int64_t> number = scanner.Integer(); number.ok()) {
      numbers = {*number};
    }
    if (numbers.empty() || word == key) return numbers;
    scanner.Take(",");
  }
  return {};
}

// A single one; -1 if there is none.
int64_t NumberOf(const ForeignInstruction& call, std::string_view key) {
  const Ints numbers = NumbersOf(call, key);
  return numbers.size() == 1 ? numbers[0] : -1;
}

// An operand along the dimension that the configuration of a partitioner's call names.
struct Line {
  Instruction* x = nullptr;
  int64_t along = 0, size = 0;

  Instruction* Part(Builder& b, int64_t start, int64_t limit) const {
    std::vector<SliceDimension> slices;
    for (int64_t d : x->shape().dims()) slices.push_back({0, d, 1});
    slices[static_cast<size_t>(along)] = {start, limit, 1};
    return b.Slice(x, std::move(slices));
  }
  // Element k is element (k + amount) % size.
  Instruction* Rotated(Builder& b, int64_t amount) const {
    amount = ((amount % size) + size) % size;
    if (amount == 0) return x;
    return b.Concatenate({Part(b, amount, size), Part(b, 0, amount)}, along);
  }
};

std::optional<Line> LineOf(const ForeignInstruction& call) {
  if (!Has(call, 1) || !call.operands[0]->shape().is_static()) return std::nullopt;
  const Shape& shape = call.operands[0]->shape();
  const int64_t along = NumberOf(call, "dimension");
  if (along < 0 || along >= shape.rank() || shape.dim(along) == 0) return std::nullopt;
  return Line{call.operands[0], along, shape.dim(along)};
}

Instruction* RotateRight(Builder& b, const ForeignInstruction& call) {
  const std::optional<Line> line = LineOf(call);
  const int64_t amount = NumberOf(call, "amount");
  return line && amount >= 0 ? line->Rotated(b, -(amount % line->size)) : nullptr;
}

// As far as `left_amount` to the left, by one less each time, up to `right_amount` to the right.
Instruction* MultiRotate(Builder& b, const ForeignInstruction& call) {
  const std::optional<Line> line = LineOf(call);
  const int64_t left = NumberOf(call, "left_amount"), right = NumberOf(call, "right_amount");
  const bool fits = line && left >= 0 && left < line->size && right >= 0 && right < line->size &&
                    call.shape->is_tuple() &&
                    std::ssize(call.shape->elements()) == left + right + 1;
  if (!fits) return nullptr;
  std::vector<Instruction*> results;
  for (int64_t amount = left; amount >= -right; --amount) {
    results.push_back(line->Rotated(b, amount));
  }
  return b.Tuple(std::move(results));
}

// The last elements in front, and the first ones behind.
Instruction* Wrap(Builder& b, const ForeignInstruction& call) {
  const std::optional<Line> line = LineOf(call);
  const int64_t left = NumberOf(call, "left_amount"), right = NumberOf(call, "right_amount");
  if (!line || left < 0 || left > line->size || right < 0 || right > line->size) return nullptr;
  return b.Concatenate(
      {line->Part(b, line->size - left, line->size), line->x, line->Part(b, 0, right)},
      line->along);
}

// A slice, and as many more as `amount`, each by one element further along the dimension.
Instruction* MultiSlice(Builder& b, const ForeignInstruction& call) {
  const std::optional<Line> line = LineOf(call);
  const int64_t amount = NumberOf(call, "amount");
  const Ints starts = NumbersOf(call, "start_indices"), limits = NumbersOf(call, "limit_indices");
  const Ints strides = NumbersOf(call, "strides");
  const auto rank = line ? static_cast<size_t>(line->x->shape().rank()) : 0;
  if (!line || amount < 0 || amount >= line->size || starts.size() != rank ||
      limits.size() != rank || strides.size() != rank) {
    return nullptr;
  }
  std::vector<SliceDimension> slices;
  for (size_t d = 0; d < rank; ++d) slices.push_back({starts[d], limits[d], strides[d]});
  std::vector<Instruction*> results;
  for (int64_t k = 0; k <= amount && b.ok(); ++k) {
    results.push_back(b.Slice(line->x, slices));
    ++slices[static_cast<size_t>(line->along)].start;
    ++slices[static_cast<size_t>(line->along)].limit;
  }
  return b.ok() ? b.Tuple(std::move(results)) : nullptr;
}

// --- Others

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
    {"_SPMDInternalOp_MultiRotate", MultiRotate},
    {"_SPMDInternalOp_MultiSlice", MultiSlice},
    {"_SPMDInternalOp_Wrap", Wrap},
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
