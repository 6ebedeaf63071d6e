// Types of the tree. A type is made by Module::Get, which gives equal types the same address, and
// is immutable.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace kiln::mlir {

enum class TypeKind : uint8_t {
  kInteger,         // i32, ui8, si4; an i1 is a boolean
  kIndex,           // index
  kFloat,           // f32, f8E4M3FN
  kComplex,         // complex<f32>
  kQuantized,       // !quant.uniform<...>
  kTensor,          // tensor<2x?xf32>
  kUnrankedTensor,  // tensor<*xf32>
  kTuple,           // tuple<...>
  kToken,           // !stablehlo.token
  kFuture,          // !stablehlo.future<...>
  kFunction,        // (...) -> (...)
  kNone,            // none
  kOpaque,          // anything else, as text: memref<2xf32>, !tf_type.string
};

enum class Signedness : uint8_t { kSignless, kSigned, kUnsigned };

enum class FloatKind : uint8_t {
#define KILN_MLIR_FLOAT(Name, text, bits, exponent, mantissa, bias, specials) k##Name,
#include "stablehlo/mlir/float_formats.def"
#undef KILN_MLIR_FLOAT
};

enum class FloatSpecials : uint8_t { kIeee, kFn, kFnuz, kNone, kExponent };

struct FloatFormat {
  std::string_view name;  // in lower case it is the name of Kiln's element type
  int bits;
  int exponent;
  int mantissa;
  int bias;
  FloatSpecials specials;
};
const FloatFormat& FormatOf(FloatKind kind);
std::optional<FloatKind> FloatByName(std::string_view name);

// An unknown size or bound of a dimension ("?").
inline constexpr int64_t kDynamic = INT64_MIN;

struct Type;

// !quant.uniform: storage and expressed type, and parameters per tensor, per index of an axis, or
// per block of several axes (sub-channel).
struct Quantization {
  const Type* storage = nullptr;    // kInteger, whose signedness is kSigned for i8 and the like
  const Type* expressed = nullptr;  // kFloat
  int64_t storage_min = 0;          // as written, or what the storage type holds
  int64_t storage_max = 0;
  std::vector<int64_t> axes;         // none, one, or several
  std::vector<int64_t> block_sizes;  // of each axis where there are blocks, else empty
  std::vector<int64_t> blocks;       // with blocks: how many in each dimension of the tensor
  std::vector<double> scales;  // 1, one for each index, or one for each block in row-major order
  std::vector<int64_t> zero_points;  // as many as scales
};

// The least and the largest number of an integer type (up to 62 bits, or else of 64).
std::pair<int64_t, int64_t> StorageRange(const Type& storage);

struct Type {
  TypeKind kind = TypeKind::kNone;
  Signedness signedness = Signedness::kSignless;  // kInteger
  FloatKind float_kind = FloatKind::kF32;         // kFloat
  int64_t width = 0;                              // kInteger: bits, 1 to 64
  const Type* element = nullptr;                  // kComplex, kTensor, kUnrankedTensor
  std::vector<int64_t> dimensions;                // kTensor: sizes, or kDynamic
  std::vector<int64_t> bounds;  // kTensor: empty, or a bound or kDynamic for each dimension
  std::string text;             // kOpaque: all of it; kTensor: an encoding that is no bounds, or ""
  std::vector<const Type*> inputs;   // kTuple, kFuture: the members; kFunction: the parameters
  std::vector<const Type*> results;  // kFunction
  Quantization quantization;         // kQuantized

  // The number of types in a walk of this one, itself included, and its depth. Module::Get sets
  // both, and refuses more than kMaxTypeParts and kMaxTypeDepth, so types with shared parts, as in
  // bytecode, may be walked by recursion.
  int64_t parts = 1;
  int64_t depth = 1;

  bool is(TypeKind k) const { return kind == k; }
  bool is_tensor() const { return kind == TypeKind::kTensor; }
  bool is_integer(int64_t bits) const { return kind == TypeKind::kInteger && width == bits; }
  bool is_bool() const { return is_integer(1); }
  bool is_float(FloatKind k) const { return kind == TypeKind::kFloat && float_kind == k; }
  int64_t rank() const { return static_cast<int64_t>(dimensions.size()); }
  // Whether it is a tensor of static shape.
  bool is_static() const;
  // Of a static tensor; Module::Get has checked that this and the bytes fit into an int64_t.
  int64_t num_elements() const;

  // MLIR's text of the type.
  std::string ToString() const;
};

inline constexpr int64_t kMaxTypeParts = int64_t{1} << 20;
inline constexpr int64_t kMaxTypeDepth = 100;

// Bytes of an element of the type in an attribute: a power of two; both parts of complex numbers; 8
// for index. 0 for types without elements in attributes.
int64_t ElementBytes(const Type& element);
// Normalises elements from foreign bytes: bits beyond an integer's width become its sign, or zeros;
// bits beyond a float's width become zeros.
void ClearUnusedBits(const Type& element, std::string& bytes);
// Whether elements may have such bits, or other forms in files.
bool HasUnusedBits(const Type& element);

// A finite number in MLIR's text: the shortest digits that read back, with a point.
std::string FloatText(double value);

}  // namespace kiln::mlir
