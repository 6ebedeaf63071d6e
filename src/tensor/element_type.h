// Element types of arrays, and their sizes in memory.
#pragma once

#include <complex>
#include <cstdint>
#include <optional>
#include <string_view>

#include "tensor/small_float.h"
#include "tensor/small_int.h"

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
// Whether the number is one of the enumerators, for untrusted values.
bool IsElementType(int32_t number);
TypeCategory CategoryOf(ElementType type);
int64_t BitWidth(ElementType type);
// Bytes of one element in a buffer; types below a byte take a whole byte.
int64_t ByteWidth(ElementType type);

inline bool IsFloat(ElementType t) { return CategoryOf(t) == TypeCategory::kFloat; }
inline bool IsComplex(ElementType t) { return CategoryOf(t) == TypeCategory::kComplex; }
inline bool IsSigned(ElementType t) { return CategoryOf(t) == TypeCategory::kSigned; }
inline bool IsUnsigned(ElementType t) { return CategoryOf(t) == TypeCategory::kUnsigned; }
inline bool IsInteger(ElementType t) { return IsSigned(t) || IsUnsigned(t); }
inline bool IsPred(ElementType t) { return t == ElementType::kPred; }
// A float of 16 bits: computed as f32, and rounded.
inline bool IsHalf(ElementType t) { return t == ElementType::kF16 || t == ElementType::kBF16; }

// The types of kernels: real, and at least a byte wide (floats two). Other types are legalised to
// these; only the evaluator computes with them directly.
bool IsKernelType(ElementType type);
// The real type of a complex type's two parts, and the complex type of such parts; any other type
// as it is.
ElementType PartOf(ElementType type);
ElementType ComplexOf(ElementType type);
// The type of computation, op by op: s8 or u8 for integers of less than a byte, f32 for floats of 8
// bits and fewer. Others are unchanged.
ElementType WideOf(ElementType type);
// The encoding of a float type; nothing for other types.
std::optional<FloatFormat> FormatOf(ElementType type);

// The C++ types of complex element types, with the real part first.
template <typename T>
concept ComplexType = std::same_as<T, std::complex<float>> || std::same_as<T, std::complex<double>>;

// Calls f with a value of the C++ type for elements of a kernel's type (bool for pred). f is a
// generic lambda: [&](auto zero) { using T = decltype(zero); ... }.
template <typename F>
auto VisitKernelType(ElementType type, F&& f) {
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

// The same for all types. f is instantiated for each of them, so it should be small.
template <typename F>
auto VisitType(ElementType type, F&& f) {
  switch (type) {
    case ElementType::kC64:
      return f(std::complex<float>{});
    case ElementType::kC128:
      return f(std::complex<double>{});
    case ElementType::kS4:
      return f(S4{});
    case ElementType::kU4:
      return f(U4{});
    case ElementType::kS2:
      return f(S2{});
    case ElementType::kU2:
      return f(U2{});
    case ElementType::kF8E5M2:
      return f(F8E5M2{});
    case ElementType::kF8E4M3FN:
      return f(F8E4M3FN{});
    case ElementType::kF8E4M3B11FNUZ:
      return f(F8E4M3B11FNUZ{});
    case ElementType::kF8E5M2FNUZ:
      return f(F8E5M2FNUZ{});
    case ElementType::kF8E4M3FNUZ:
      return f(F8E4M3FNUZ{});
    case ElementType::kF8E4M3:
      return f(F8E4M3{});
    case ElementType::kF8E3M4:
      return f(F8E3M4{});
    case ElementType::kF8E8M0FNU:
      return f(F8E8M0FNU{});
    case ElementType::kF6E2M3FN:
      return f(F6E2M3FN{});
    case ElementType::kF6E3M2FN:
      return f(F6E3M2FN{});
    case ElementType::kF4E2M1FN:
      return f(F4E2M1FN{});
    default:
      return VisitKernelType(type, f);
  }
}

}  // namespace kiln
