// The header of safetensors files: the names, types, sizes and places of arrays, as a JSON object.
//
//   {"__metadata__": {"key": "text"}, "name": {"dtype": "F32", "shape": [2, 3],
//    "data_offsets": [0, 24]}}
//
// The data behind it are the arrays one after the other, without holes, in row-major order and
// little-endian. The reader takes nothing but this form: any JSON elsewhere, a missing or an
// unknown member, and a name given twice are errors. So it has no recursion, and its memory is a
// small multiple of the text.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/status.h"
#include "tensor/element_type.h"
#include "tensor/shape.h"

namespace kiln::safetensors {

// The largest header, in bytes; longer ones are refused by all readers.
constexpr int64_t kMaxHeaderBytes = 100'000'000;

// A type of the format. Types of less than a byte are packed there.
struct Dtype {
  std::string_view name;
  int64_t bits;
  ElementType type;  // kInvalid if Kiln has none, or the format does not define the packing
};
// Null for unknown names.
const Dtype* FindDtype(std::string_view name);
// Null for types that the format lacks.
const Dtype* FindDtype(ElementType type);
// Whether the elements of the type are in the file as they are in buffers.
bool IsPlain(ElementType type);

// An array in the file.
struct Entry {
  std::string name;
  std::string dtype;
  std::vector<int64_t> dims;
  int64_t begin = 0, end = 0;  // from the beginning of the data

  // UNIMPLEMENTED for a dtype without an element type; INVALID_ARGUMENT for more dimensions than
  // shapes have. Both name the array.
  Result<Shape> shape() const;
};

struct Header {
  std::vector<Entry> entries;  // in the order of their data
  // Keys and texts, in the order of the keys.
  std::vector<std::pair<std::string, std::string>> metadata;
  int64_t data_bytes = 0;         // of all entries
  std::vector<uint32_t> by_name;  // numbers of entries

  // Null for a name that is not there.
  const Entry* Find(std::string_view name) const;
  const std::string* FindMetadata(std::string_view key) const;
};

// INVALID_ARGUMENT with the array or the byte of the text.
Result<Header> ParseHeader(std::string_view text);

// An array to be written.
struct NewEntry {
  std::string_view name;
  const Shape* shape;  // static
};
struct NewHeader {
  std::string text;           // padded with spaces, so that data in a file have aligned elements
  std::vector<size_t> order;  // of the entries' data
};
// As the format's own writer: types with larger elements first, then by name; the metadata are
// written in their order. INVALID_ARGUMENT for names that are not UTF-8, reserved, or there twice;
// UNIMPLEMENTED for types that the format lacks.
Result<NewHeader> MakeHeader(
    std::span<const NewEntry> entries,
    std::span<const std::pair<std::string_view, std::string_view>> metadata);

// A name for messages: printable, and not too long.
std::string Quoted(std::string_view name);

}  // namespace kiln::safetensors
