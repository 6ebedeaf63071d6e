// Attributes of the tree. An attribute is made by Module::Make and is immutable.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "stablehlo/mlir/type.h"

namespace kiln::mlir {

enum class AttributeKind : uint8_t {
  kUnit,        // unit, and a name without value
  kBool,        // true, false; also integers of type i1
  kInteger,     // 3 : i64
  kFloat,       // 1.5 : f32
  kString,      // "text"
  kSymbol,      // @f, @m::@f
  kType,        // a type
  kArray,       // [1, "a"]
  kDictionary,  // {a = 1}
  kDenseArray,  // array<i64: 1, 2>
  kElements,    // dense<...> : tensor<...>, and dense_resource with its bytes
  kEnum,        // #stablehlo<comparison_direction LT>, #stablehlo.comparison_direction<LT>
  kRecord,      // #stablehlo.gather<offset_dims = [1], ...>
  kOpaque,      // anything else, as text: affine_map<...>, #sdy.sharding<...>, loc(...)
};

struct Attribute;

struct NamedAttribute {
  std::string_view name;  // the module keeps it
  const Attribute* value = nullptr;
};
// Sorted by name, each name once.
using AttributeList = std::vector<NamedAttribute>;
// Null if the list does not have it.
const Attribute* Find(const AttributeList& list, std::string_view name);
// Inserts it in order; false if the name exists already.
bool Insert(AttributeList& list, std::string_view name, const Attribute* value);

struct Attribute {
  AttributeKind kind = AttributeKind::kUnit;
  bool boolean = false;        // kBool
  int64_t integer = 0;         // kInteger; of ui64 the same bits
  double number = 0;           // kFloat: the value, which the type holds
  const Type* type = nullptr;  // kInteger, kFloat: its type; kType: the type; kDenseArray: that of
                               // an element; kElements: the tensor
  std::string text;            // kString; kOpaque; kSymbol: "f", "m::f"; kEnum: "LT"
  std::string_view name;       // kEnum, kRecord: "stablehlo.comparison_direction"
  std::vector<const Attribute*> items;  // kArray
  AttributeList fields;                 // kDictionary, kRecord
  // kDenseArray, kElements: ElementBytes(type) for each element, row-major, in little endian. A
  // boolean is 0 or 1; integers below a byte are extended to one by their sign (ui: by zeros),
  // floats below a byte are its lower bits. A complex number is its real part, then the imaginary.
  std::string bytes;
  // kElements: large ones in memory of `owner`'s, in the place of `bytes`.
  std::string_view lent;
  std::shared_ptr<const void> owner;
  // kElements: whether `bytes` is one element, which all are. So are tensors of one element, and
  // all others whose elements have equal bits; of none there are no bytes.
  bool splat = false;

  // As for types. Module::Make sets both, and refuses more than kMaxAttributeParts and
  // kMaxAttributeDepth.
  int64_t parts = 1;
  int64_t depth = 1;

  bool is(AttributeKind k) const { return kind == k; }
  // kDenseArray, kElements: `bytes`, or what is lent.
  std::string_view elements() const { return lent.empty() ? bytes : lent; }
};

inline constexpr int64_t kMaxAttributeParts = int64_t{1} << 24;
inline constexpr int64_t kMaxAttributeDepth = 100;

// The fields of records are in mlir/records.h. Both readers make records whole, with the fields
// omitted from text (empty lists, for example). "#stablehlo.bounds" is the name of type_extensions,
// too. Names of the dialect mhlo become those of stablehlo. An enum is named by the prefix of its
// value: stablehlo.{comparison_direction, comparison_type, precision, fft_type, transpose,
// rng_algorithm, rng_distribution, custom_call_api_version, result_accuracy_mode},
// chlo.{comparison_direction, comparison_type, precision}.

// Integers of any form, because old and new text differ: kDenseArray, kElements or kArray of
// integers. Booleans count as 0 and 1. Nullopt for anything else.
std::optional<std::vector<int64_t>> IntsOf(const Attribute& attribute);
// Of kInteger and kBool, and of kElements of one element.
std::optional<int64_t> IntOf(const Attribute& attribute);

}  // namespace kiln::mlir
