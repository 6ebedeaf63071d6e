#include "tensor/element_type.h"

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

const TypeRow* Find(ElementType type) {
  for (const TypeRow& row : kTypes) {
    if (row.type == type) return &row;
  }
  return nullptr;
}

}  // namespace

std::string_view TypeName(ElementType type) {
  const TypeRow* row = Find(type);
  return row ? row->name : "invalid";
}

std::optional<ElementType> TypeByName(std::string_view name) {
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

bool IsSupported(ElementType type) {
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

}  // namespace kiln
