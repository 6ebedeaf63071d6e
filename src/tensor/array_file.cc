#include "tensor/array_file.h"

#include <algorithm>
#include <cstdint>
#include <memory>
#include <utility>

#include "base/input_file.h"
#include "base/output_file.h"
#include "base/strings.h"
#include "tensor/safetensors.h"

namespace kiln {
namespace {

// Whether NumPy itself has the type.
bool IsNumpyType(ElementType type) {
  if (type == ElementType::kBF16) return false;
  return IsKernelType(type) || IsComplex(type);
}

// The elements of an array in another order, or with their bytes reversed.
Literal Converted(const NpyHeader& header, const Shape& shape, const std::byte* elements) {
  Literal literal(shape);
  const int64_t width = ByteWidth(shape.type()), count = shape.num_elements();
  // Both parts of a complex number have their own bytes.
  const int64_t part = ByteWidth(PartOf(shape.type()));
  std::vector<int64_t> strides(header.dims.size()), index(header.dims.size());
  int64_t stride = 1;
  for (size_t d = 0; d < strides.size(); ++d) {
    strides[d] = stride;
    stride *= header.dims[d];
  }
  if (count == 0) return literal;
  std::byte* to = literal.data();
  for (int64_t k = 0; k < count; ++k) {
    int64_t from = k;
    if (header.is_fortran_order) {
      from = 0;
      for (size_t d = 0; d < index.size(); ++d) from += index[d] * strides[d];
      NextIndex(header.dims, index);
    }
    for (int64_t b = 0; b < width; ++b, ++to) {
      const int64_t at = header.is_big_endian ? b / part * part + part - 1 - b % part : b;
      *to = elements[from * width + at];
    }
  }
  return literal;
}

// Elements as they are in a file; borrowed if the form is that of literals.
Literal PlainLiteral(const Shape& shape, const std::byte* elements,
                     std::shared_ptr<const void> owner) {
  const auto alignment = static_cast<uintptr_t>(ByteWidth(PartOf(shape.type())));
  const auto size = static_cast<size_t>(shape.byte_size());
  const bool is_plain =
      !IsPred(shape.type()) ||
      std::all_of(elements, elements + size, [](std::byte b) { return b <= std::byte{1}; });
  if (is_plain && reinterpret_cast<uintptr_t>(elements) % alignment == 0) {
    return Literal::Borrowed(shape, elements, std::move(owner));
  }
  Literal literal(shape);
  if (size > 0) std::memcpy(literal.data(), elements, size);
  if (!is_plain) {
    for (uint8_t& value : literal.values<uint8_t>()) value = value != 0;
  }
  return literal;
}

// Bytes as elements of less than a byte: these are their low bits.
Literal LowBits(const Literal& bytes, const Shape& shape) {
  Literal literal(shape);
  const auto bits = static_cast<int>(BitWidth(shape.type()));
  const uint8_t mask = static_cast<uint8_t>((1 << bits) - 1);
  for (size_t k = 0; k < literal.values<uint8_t>().size(); ++k) {
    uint8_t value = bytes.values<uint8_t>()[k] & mask;
    if (IsSigned(shape.type()) && value >> (bits - 1)) value |= static_cast<uint8_t>(~mask);
    literal.values<uint8_t>()[k] = value;
  }
  return literal;
}

Result<FileArray> NpyArray(std::string_view bytes, std::shared_ptr<const void> owner) {
  KILN_ASSIGN_OR_RETURN(const NpyHeader header, ParseNpyHeader(bytes));
  const Shape shape(header.type, std::span<const int64_t>(header.dims));
  KILN_RETURN_IF_ERROR(ValidateShape(shape));
  const int64_t size = shape.byte_size();
  if (bytes.size() - header.data != static_cast<size_t>(size)) {
    return InvalidArgument("has ", bytes.size() - header.data, " bytes of elements, ", shape,
                           " takes ", size);
  }
  const auto* elements = reinterpret_cast<const std::byte*>(bytes.data()) + header.data;
  FileArray array;
  array.is_bits = header.is_bits;
  const bool is_reversed = header.is_big_endian && ByteWidth(shape.type()) > 1;
  if (header.is_fortran_order || is_reversed) {
    const auto ordered = std::make_shared<const Literal>(Converted(header, shape, elements));
    elements = std::as_const(*ordered).data();
    owner = ordered;
  }
  array.literal = PlainLiteral(shape, elements, std::move(owner));
  return array;
}

Result<std::vector<FileArray>> Npy(std::string_view bytes, std::shared_ptr<const void> owner) {
  std::vector<FileArray> arrays(1);
  KILN_ASSIGN_OR_RETURN(arrays[0], NpyArray(bytes, std::move(owner)));
  return arrays;
}

Result<std::vector<FileArray>> Npz(std::string_view bytes,
                                   const std::shared_ptr<const void>& owner) {
  KILN_ASSIGN_OR_RETURN(const std::vector<ZipEntry> entries, ReadZip(bytes));
  std::vector<FileArray> arrays;
  for (const ZipEntry& entry : entries) {
    auto array = NpyArray(entry.bytes, owner);
    if (!array.ok()) return array.status().WithContext(entry.name);
    std::string_view name = entry.name;
    if (name.ends_with(".npy")) name.remove_suffix(4);
    array->name = std::string(name);
    arrays.push_back(*std::move(array));
  }
  return arrays;
}

Result<std::vector<FileArray>> Safetensors(const std::string& path) {
  KILN_ASSIGN_OR_RETURN(const Ref<safetensors::File> file, safetensors::File::Open(path));
  const auto owner = std::make_shared<const Ref<safetensors::File>>(file);
  std::vector<FileArray> arrays;
  for (const safetensors::Entry& entry : file->header().entries) {
    auto found = entry.shape();
    if (!found.ok()) return found.status().WithContext(path);
    const Shape shape = *std::move(found);
    const std::span<const std::byte> data = file->data(entry);
    Literal literal;
    if (safetensors::IsPlain(shape.type())) {
      literal = PlainLiteral(shape, data.data(), owner);
    } else {
      const std::string elements = safetensors::Unpacked(shape.type(), data, shape.num_elements());
      literal = Literal(shape);
      if (!elements.empty()) std::memcpy(literal.data(), elements.data(), elements.size());
    }
    arrays.push_back({entry.name, std::move(literal), false});
  }
  return arrays;
}

}  // namespace

Result<std::vector<FileArray>> ReadArrays(const std::string& path) {
  auto pages = std::make_shared<FilePages>();
  {
    auto file = InputFile::Open(path);
    if (!file.ok()) return file.status();
    const std::optional<int64_t> size = file->remaining();
    if (!size) return InvalidArgument(path, " is no regular file, or empty");
    if (*size < 8) return InvalidArgument(path, " is no .npy, .npz or .safetensors file");
    auto mapped = file->Rest(*size);
    if (!mapped.ok()) return mapped.status().WithContext(path);
    *pages = *std::move(mapped);
  }
  const std::string_view bytes = pages->text();
  const bool is_npy = StartsWith(bytes, "\x93NUMPY");
  if (!is_npy && !StartsWith(bytes, "PK")) return Safetensors(path);
  auto arrays = is_npy ? Npy(bytes, pages) : Npz(bytes, pages);
  if (!arrays.ok()) return arrays.status().WithContext(path);
  return arrays;
}

Result<Literal> AsShape(const FileArray& array, const Shape& shape) {
  const Shape& have = array.literal.shape();
  const Shape plain(shape.type(), shape.dimensions());
  if (have.SameTypeAndDimensions(plain)) return array.literal;
  const bool may_be_bits = array.is_bits || (IsUnsigned(have.type()) && !IsNumpyType(shape.type()));
  if (!may_be_bits || !have.SameDimensions(plain) ||
      ByteWidth(have.type()) != ByteWidth(shape.type())) {
    return InvalidArgument(array.is_bits ? "bytes of " : "", have, " in the place of ", plain);
  }
  if (BitWidth(shape.type()) < 8) return LowBits(array.literal, plain);
  const auto owner = std::make_shared<const Literal>(array.literal);
  return Literal::Borrowed(plain, std::as_const(*owner).data(), owner);
}

Status WriteNpy(const std::string& path, const Literal& array) {
  const Shape& shape = array.shape();
  const ElementType type = shape.type();
  const int64_t width = ByteWidth(type);
  char kind = IsFloat(type) ? 'f' : IsComplex(type) ? 'c' : IsSigned(type) ? 'i' : 'u';
  if (IsPred(type)) kind = 'b';
  if (!IsNumpyType(type) && !IsInteger(type)) kind = 'V';
  std::string dims;
  for (int64_t size : shape.dims()) dims += Cat(size, ", ");
  if (shape.rank() != 1 && !dims.empty()) dims.resize(dims.size() - 2);
  std::string header =
      Cat("{'descr': '", width == 1 || kind == 'V' ? "|" : "<", kind, width,
          "', 'fortran_order': False, 'shape': (", shape.rank() == 1 ? Trim(dims) : dims, "), }");
  // The elements are aligned as NumPy's own are.
  constexpr size_t kBefore = 10, kAlignment = 64;
  while ((kBefore + header.size() + 1) % kAlignment != 0) header += ' ';
  header += '\n';
  auto file = OutputFile::Create(path);
  if (!file.ok()) return file.status();
  const char length[] = {static_cast<char>(header.size() % 256),
                         static_cast<char>(header.size() / 256)};
  KILN_RETURN_IF_ERROR(file->Write(
      Cat(std::string_view("\x93NUMPY\x01\x00", 8), std::string_view(length, 2), header)));
  KILN_RETURN_IF_ERROR(file->Write(
      {reinterpret_cast<const char*>(array.data()), static_cast<size_t>(array.byte_size())}));
  return file->Commit();
}

}  // namespace kiln
