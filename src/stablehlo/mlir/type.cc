#include "stablehlo/mlir/type.h"

#include <algorithm>

#include "base/strings.h"

namespace kiln::mlir {
namespace {

constexpr FloatFormat kFormats[] = {
#define KILN_MLIR_FLOAT(Name, text, bits, exponent, mantissa, bias, specials) \
  {text, bits, exponent, mantissa, bias, FloatSpecials::specials},
#include "stablehlo/mlir/float_formats.def"
#undef KILN_MLIR_FLOAT
};

std::string List(const std::vector<const Type*>& types) {
  std::string text;
  for (const Type* type : types) {
    if (!text.empty()) text += ", ";
    text += type->ToString();
  }
  return text;
}

std::string SizeText(int64_t size) { return size == kDynamic ? "?" : Cat(size); }

std::string IntegerText(const Type& type) {
  constexpr std::string_view kPrefixes[] = {"i", "si", "ui"};
  return Cat(kPrefixes[static_cast<size_t>(type.signedness)], type.width);
}

std::string TensorText(const Type& type) {
  std::string text = "tensor<";
  for (int64_t size : type.dimensions) text += SizeText(size) + "x";
  text += type.element->ToString();
  if (!type.bounds.empty()) {
    text += ", #stablehlo.bounds<";
    for (size_t i = 0; i < type.bounds.size(); ++i) {
      text += Cat(i > 0 ? ", " : "", SizeText(type.bounds[i]));
    }
    text += ">";
  } else if (!type.text.empty()) {
    text += ", " + type.text;
  }
  return text + ">";
}

std::string ScaleText(const Quantization& q, size_t i) {
  std::string text = FloatText(q.scales[i]);
  return q.zero_points[i] == 0 ? text : Cat(text, ":", q.zero_points[i]);
}

// The scales of blocks in nested braces, from dimension `d` on.
std::string BlocksText(const Quantization& q, size_t d, size_t& next) {
  if (d == q.blocks.size()) return ScaleText(q, next++);
  std::string text = "{";
  for (int64_t i = 0; i < q.blocks[d]; ++i) {
    text += Cat(i > 0 ? ", " : "", BlocksText(q, d + 1, next));
  }
  return text + "}";
}

std::string QuantizedText(const Quantization& q) {
  const bool is_signed = q.storage->signedness != Signedness::kUnsigned;
  std::string text = Cat("!quant.uniform<", is_signed ? "i" : "u", q.storage->width);
  auto [min, max] = StorageRange(*q.storage);
  if (q.storage_min != min || q.storage_max != max) {
    text += Cat("<", q.storage_min, ":", q.storage_max, ">");
  }
  text += Cat(":", q.expressed->ToString());
  if (!q.block_sizes.empty()) {
    text += ":{";
    for (size_t i = 0; i < q.axes.size(); ++i) {
      text += Cat(i > 0 ? ", " : "", q.axes[i], ":", q.block_sizes[i]);
    }
    size_t next = 0;
    return Cat(text, "}, ", BlocksText(q, 0, next), ">");
  }
  if (q.axes.empty()) return Cat(text, ", ", ScaleText(q, 0), ">");
  text += Cat(":", q.axes[0], ", {");
  for (size_t i = 0; i < q.scales.size(); ++i) text += Cat(i > 0 ? ", " : "", ScaleText(q, i));
  return text + "}>";
}

}  // namespace

const FloatFormat& FormatOf(FloatKind kind) { return kFormats[static_cast<size_t>(kind)]; }

std::optional<FloatKind> FloatByName(std::string_view name) {
  for (size_t i = 0; i < std::size(kFormats); ++i) {
    if (kFormats[i].name == name) return static_cast<FloatKind>(i);
  }
  return std::nullopt;
}

std::pair<int64_t, int64_t> StorageRange(const Type& storage) {
  if (storage.width < 1 || storage.width > 62) return {INT64_MIN, INT64_MAX};
  if (storage.signedness == Signedness::kUnsigned) return {0, (int64_t{1} << storage.width) - 1};
  const int64_t limit = int64_t{1} << (storage.width - 1);
  return {-limit, limit - 1};
}

bool Type::is_static() const {
  return is_tensor() && std::ranges::find(dimensions, kDynamic) == dimensions.end();
}

int64_t Type::num_elements() const {
  int64_t count = 1;
  for (int64_t size : dimensions) {
    if (size == 0) return 0;
  }
  for (int64_t size : dimensions) count *= size;
  return count;
}

std::string Type::ToString() const {
  switch (kind) {
    case TypeKind::kInteger:
      return IntegerText(*this);
    case TypeKind::kIndex:
      return "index";
    case TypeKind::kFloat:
      return std::string(FormatOf(float_kind).name);
    case TypeKind::kComplex:
      return Cat("complex<", *element, ">");
    case TypeKind::kQuantized:
      return QuantizedText(quantization);
    case TypeKind::kTensor:
      return TensorText(*this);
    case TypeKind::kUnrankedTensor:
      return Cat("tensor<*x", *element, ">");
    case TypeKind::kTuple:
      return Cat("tuple<", List(inputs), ">");
    case TypeKind::kToken:
      return "!stablehlo.token";
    case TypeKind::kFuture:
      return Cat("!stablehlo.future<", List(inputs), ">");
    case TypeKind::kFunction: {
      // A function type as the only result needs parentheses, to separate the arrows.
      const bool plain = results.size() == 1 && !results[0]->is(TypeKind::kFunction);
      return Cat("(", List(inputs), ") -> ", plain ? "" : "(", List(results), plain ? "" : ")");
    }
    case TypeKind::kNone:
      return "none";
    case TypeKind::kOpaque:
      return text;
  }
  return text;
}

int64_t ElementBytes(const Type& element) {
  switch (element.kind) {
    case TypeKind::kInteger:
      return element.width <= 8 ? 1 : element.width <= 16 ? 2 : element.width <= 32 ? 4 : 8;
    case TypeKind::kIndex:
      return 8;
    case TypeKind::kFloat:
      return (FormatOf(element.float_kind).bits + 7) / 8;
    case TypeKind::kComplex:
      return 2 * ElementBytes(*element.element);
    default:
      return 0;
  }
}

bool HasUnusedBits(const Type& element) {
  if (element.is_bool()) return true;
  if (element.is(TypeKind::kFloat)) return FormatOf(element.float_kind).bits < 8;
  return element.is(TypeKind::kInteger) && element.width < 8 * ElementBytes(element);
}

void ClearUnusedBits(const Type& element, std::string& bytes) {
  if (element.is(TypeKind::kFloat)) {
    const int bits = FormatOf(element.float_kind).bits;
    if (bits >= 8) return;
    for (char& c : bytes) c = static_cast<char>(c & ((1 << bits) - 1));
    return;
  }
  if (!element.is(TypeKind::kInteger) || element.is_bool()) return;
  const auto size = static_cast<size_t>(ElementBytes(element));
  const auto width = static_cast<unsigned>(element.width);
  if (width == 0 || width >= 8 * size) return;
  for (size_t at = 0; at + size <= bytes.size(); at += size) {
    uint64_t bits = 0;
    for (size_t i = size; i-- > 0;) bits = bits << 8 | static_cast<uint8_t>(bytes[at + i]);
    bits <<= 64 - width;
    bits = element.signedness == Signedness::kUnsigned
               ? bits >> (64 - width)
               : static_cast<uint64_t>(static_cast<int64_t>(bits) >> (64 - width));
    for (size_t i = 0; i < size; ++i) bytes[at + i] = static_cast<char>(bits >> (8 * i));
  }
}

std::string FloatText(double value) {
  std::string text = Cat(value);
  size_t exponent = text.find('e');
  if (text.find('.') == std::string::npos) {
    text.insert(exponent == std::string::npos ? text.size() : exponent, ".0");
  }
  return text;
}

}  // namespace kiln::mlir
