#include "tensor/element_type.h"

#include <algorithm>
#include <array>

namespace kiln {
namespace {

struct TypeRow {
  ElementType type;
  std::string_view name;
  int64_t bits;
  TypeCategory category;
};

constexpr TypeRow kTypes[] = {
#define KILN_ELEMENT_TYPE(Name, text, number, bits, category) \
  {ElementType::k##Name, text, bits, TypeCategory::category},
#include "tensor/element_types.def"
#undef KILN_ELEMENT_TYPE
};

// The rows indexed by number, for fast access; rows of other numbers have no bits.
constexpr auto kTypesByNumber = [] {
  constexpr auto kLast =
      std::max_element(std::begin(kTypes), std::end(kTypes),
                       [](const TypeRow& a, const TypeRow& b) { return a.type < b.type; });
  std::array<TypeRow, static_cast<size_t>(kLast->type) + 1> rows{};
  for (const TypeRow& row : kTypes) rows[static_cast<size_t>(row.type)] = row;
  return rows;
}();

// For each first letter the lengths of the names that begin with it, as bits: most texts are none.
constexpr auto kNameLengths = [] {
  std::array<uint32_t, 256> lengths{};
  for (const TypeRow& row : kTypes) {
    lengths[static_cast<unsigned char>(row.name[0])] |= uint32_t{1} << row.name.size();
  }
  return lengths;
}();

const TypeRow* Find(ElementType type) {
  const auto number = static_cast<uint32_t>(type);
  if (number >= kTypesByNumber.size() || kTypesByNumber[number].bits == 0) return nullptr;
  return &kTypesByNumber[number];
}

}  // namespace

std::string_view TypeName(ElementType type) {
  const TypeRow* row = Find(type);
  return row ? row->name : "invalid";
}

std::optional<ElementType> TypeByName(std::string_view name) {
  if (name.empty() || name.size() >= 32) return std::nullopt;
  const uint32_t lengths = kNameLengths[static_cast<unsigned char>(name[0])];
  if ((lengths >> name.size() & 1) == 0) return std::nullopt;
  for (const TypeRow& row : kTypes) {
    if (row.name == name) return row.type;
  }
  return std::nullopt;
}

bool IsElementType(int32_t number) { return Find(static_cast<ElementType>(number)) != nullptr; }

TypeCategory CategoryOf(ElementType type) {
  const TypeRow* row = Find(type);
  return row ? row->category : TypeCategory::kBoolean;
}

int64_t BitWidth(ElementType type) {
  const TypeRow* row = Find(type);
  return row ? row->bits : 0;
}

int64_t ByteWidth(ElementType type) { return (BitWidth(type) + 7) / 8; }

bool IsKernelType(ElementType type) {
  switch (CategoryOf(type)) {
    case TypeCategory::kBoolean:
      return IsPred(type);
    case TypeCategory::kSigned:
    case TypeCategory::kUnsigned:
      return BitWidth(type) >= 8;
    case TypeCategory::kFloat:
      return BitWidth(type) >= 16;
    case TypeCategory::kComplex:
      return false;
  }
  return false;
}

ElementType PartOf(ElementType type) {
  if (type == ElementType::kC64) return ElementType::kF32;
  if (type == ElementType::kC128) return ElementType::kF64;
  return type;
}

ElementType ComplexOf(ElementType type) {
  if (type == ElementType::kF32) return ElementType::kC64;
  if (type == ElementType::kF64) return ElementType::kC128;
  return type;
}

ElementType WideOf(ElementType type) {
  if (IsFloat(type) && BitWidth(type) <= 8) return ElementType::kF32;
  if (IsSigned(type) && BitWidth(type) < 8) return ElementType::kS8;
  if (IsUnsigned(type) && BitWidth(type) < 8) return ElementType::kU8;
  return type;
}

std::optional<FloatFormat> FormatOf(ElementType type) {
  if (!IsFloat(type)) return std::nullopt;
  return VisitType(type, [](auto zero) -> std::optional<FloatFormat> {
    using T = decltype(zero);
    if constexpr (FloatType<T>) return FormatOf<T>();
    return std::nullopt;
  });
}

}  // namespace kiln
