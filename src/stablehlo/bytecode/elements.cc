// The elements of tensors.
#include "stablehlo/bytecode/tables.h"

namespace kiln::stablehlo {
namespace {

// Fewer bytes are copied.
constexpr size_t kLeastLent = 1 << 16;

// Booleans are packed, the first in the lowest bit. One byte of ones is true for all, as it would
// be of one to eight elements, too; one byte is for all of more than eight. Early writers gave each
// a byte.
bool Unpack(std::string_view blob, size_t count, std::string* bytes, bool* splat) {
  const size_t packed = count / 8 + (count % 8 != 0);
  if (blob.size() == 1 && (static_cast<uint8_t>(blob[0]) == 0xff || packed > 1)) {
    *splat = true;
    *bytes = std::string(1, blob[0] != 0 ? '\1' : '\0');
    return true;
  }
  if (blob.size() == packed) {
    bytes->resize(count);
    for (size_t i = 0; i < count; ++i) {
      (*bytes)[i] = static_cast<char>(static_cast<uint8_t>(blob[i / 8]) >> (i % 8) & 1);
    }
    return true;
  }
  if (blob.size() != count) return false;
  *bytes = std::string(blob);
  for (char& c : *bytes) c = c != 0 ? '\1' : '\0';
  return true;
}

}  // namespace

// A type, and a blob behind its size.
Result<const mlir::Attribute*> Tables::ReadElements(Input& input) {
  const size_t at = input.offset();
  KILN_ASSIGN_OR_RETURN(const Type* type, ReadType(input));
  KILN_ASSIGN_OR_RETURN(uint64_t size, input.VarInt("the size of elements"));
  KILN_ASSIGN_OR_RETURN(std::string_view blob, input.Bytes(size, "elements"));
  return MakeElements(type, blob, at);
}

Result<const mlir::Attribute*> Tables::MakeElements(const Type* type, std::string_view blob,
                                                    size_t offset) {
  if (!type->is_static()) {
    return FailAtByte(offset, type->ToString(), "a tensor whose sizes are numbers");
  }
  const Type& element = *type->element;
  const auto size = static_cast<size_t>(mlir::ElementBytes(element));
  if (size == 0) {
    return Unimplemented("byte ", offset, ": elements of ", element, " are not implemented");
  }
  Attribute elements{.kind = AttributeKind::kElements};
  elements.type = type;
  const auto count = static_cast<size_t>(type->num_elements());
  // A tensor without elements may have a splat value.
  if (count == 0 && blob.size() == size) return Make(std::move(elements), offset);
  if (element.is_bool()) {
    if (!Unpack(blob, count, &elements.bytes, &elements.splat)) {
      return FailAtByte(offset, Cat(blob.size(), " bytes"),
                        Cat("the bits of ", count, " booleans"));
    }
    return Make(std::move(elements), offset);
  }
  elements.splat = blob.size() == size && count != 1;
  if (!elements.splat && (blob.size() % size != 0 || blob.size() / size != count)) {
    return FailAtByte(offset, Cat(blob.size(), " bytes"),
                      Cat(count, " elements of ", size, " bytes each, or one"));
  }
  if (!elements.splat && blob.size() >= kLeastLent && container_.owner &&
      reinterpret_cast<uintptr_t>(blob.data()) % size == 0 && !mlir::HasUnusedBits(element)) {
    elements.lent = blob;
    elements.owner = container_.owner;
    return Make(std::move(elements), offset);
  }
  elements.bytes = std::string(blob);
  mlir::ClearUnusedBits(element, elements.bytes);
  return Make(std::move(elements), offset);
}

}  // namespace kiln::stablehlo
