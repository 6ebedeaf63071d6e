// Element types of arrays, and their sizes in memory.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

#include "tensor/float16.h"

namespace kiln {

enum class ElementType : int32_t {
  kInvalid = 0,
#define KILN_ELEMENT_TYPE(Name, text, number, bits, category) k##Name = number,
#include "tensor/element_types.def"
#undef KILN_ELEMENT_TYPE
};

enum class TypeCategory { kBoolean, kSigned, kUnsigned, kFloat, kComplex };

std::string_view TypeName(ElementType type);  // "f32"
std::optional<ElementType> TypeByName(std::string_view name);
// Whether the number is one of the enumerators, for values that come from outside.
bool IsElementType(int32_t number);
TypeCategory CategoryOf(ElementType type);
int64_t BitWidth(ElementType type);
// Bytes that one element takes in a buffer; types below a byte take one whole byte.
int64_t ByteWidth(ElementType type);

inline bool IsFloat(ElementType t) { return CategoryOf(t) == TypeCategory::kFloat; }
inline bool IsComplex(ElementType t) { return CategoryOf(t) == TypeCategory::kComplex; }
inline bool IsSigned(ElementType t) { return CategoryOf(t) == TypeCategory::kSigned; }
inline bool IsUnsigned(ElementType t) { return CategoryOf(t) == TypeCategory::kUnsigned; }
inline bool IsInteger(ElementType t) { return IsSigned(t) || IsUnsigned(t); }
inline bool IsPred(ElementType t) { return t == ElementType::kPred; }
// A float of 16 bits: its values are computed with as f32, and rounded.
inline bool IsHalf(ElementType t) { return t == ElementType::kF16 || t == ElementType::kBF16; }

// The types that every room carries through: what evaluator and compiled code accept.
bool IsSupported(ElementType type);

// Calls f with a value of the C++ type that holds `type` (bool for pred), for the supported types.
// f is a generic lambda: [&](auto zero) { using T = decltype(zero); ... }.
template <typename F>
auto VisitType(ElementType type, F&& f) {
  switch (type) {
    case ElementType::kPred:
      return f(bool{});
    case ElementType::kS8:
      return f(int8_t{});
    case ElementType::kS16:
      return f(int16_t{});
    case ElementType::kS32:
      return f(int32_t{});
    case ElementType::kS64:
      return f(int64_t{});
    case ElementType::kU8:
      return f(uint8_t{});
    case ElementType::kU16:
      return f(uint16_t{});
    case ElementType::kU32:
      return f(uint32_t{});
    case ElementType::kU64:
      return f(uint64_t{});
    case ElementType::kF16:
      return f(Float16{});
    case ElementType::kBF16:
      return f(BFloat16{});
    case ElementType::kF64:
      return f(double{});
    default:
      return f(float{});
  }
}

}  // namespace kiln
