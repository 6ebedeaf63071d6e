#include "tensor/safetensors.h"

#include <algorithm>
#include <bit>
#include <cstdint>
#include <cstring>
#include <vector>

#include "base/output_file.h"
#include "base/strings.h"

namespace kiln::safetensors {
namespace {

static_assert(std::endian::native == std::endian::little);

constexpr int64_t kLengthBytes = 8;

// The length of the header, checked before memory is allocated for it.
Result<int64_t> ReadLength(InputFile& file) {
  KILN_ASSIGN_OR_RETURN(std::string bytes, file.Read(kLengthBytes));
  if (bytes.size() < kLengthBytes) {
    return InvalidArgument("the file has ", bytes.size(), " bytes: too few for the format");
  }
  uint64_t length = 0;
  std::memcpy(&length, bytes.data(), sizeof(length));
  if (length > static_cast<uint64_t>(kMaxHeaderBytes)) {
    return InvalidArgument("the header has ", length, " bytes; at most ", kMaxHeaderBytes,
                           " are allowed");
  }
  return static_cast<int64_t>(length);
}

std::string QuotedPath(const std::string& path) { return Cat("'", path.c_str(), "'"); }

// Elements in the file's form, in pieces.
Status WriteElements(OutputFile& file, ElementType type, const std::byte* elements, size_t count) {
  const auto* bytes = reinterpret_cast<const char*>(elements);
  if (type != ElementType::kPred && IsPlain(type)) {
    return file.Write({bytes, count * static_cast<size_t>(ByteWidth(type))});
  }
  constexpr size_t kPiece = 1 << 16;
  std::string piece;
  for (size_t at = 0; at < count; at += kPiece) {
    const std::string_view next(bytes + at, std::min(kPiece, count - at));
    piece.clear();
    if (type == ElementType::kPred) {
      for (char c : next) piece += static_cast<char>(c != 0);
    } else {
      for (size_t i = 0; i + 1 < next.size(); i += 2) {
        piece += static_cast<char>((next[i] & 15) | (next[i + 1] & 15) << 4);
      }
    }
    KILN_RETURN_IF_ERROR(file.Write(piece));
  }
  return OkStatus();
}

Status WriteContents(OutputFile& file, const NewHeader& header, std::span<const NewArray> arrays) {
  const uint64_t length = header.text.size();
  char bytes[sizeof(length)];
  std::memcpy(bytes, &length, sizeof(length));
  KILN_RETURN_IF_ERROR(file.Write({bytes, sizeof(bytes)}));
  KILN_RETURN_IF_ERROR(file.Write(header.text));
  for (size_t i : header.order) {
    const NewArray& array = arrays[i];
    Result<const std::byte*> elements = array.elements();
    if (!elements.ok()) return elements.status().WithContext(Quoted(array.name));
    KILN_RETURN_IF_ERROR(WriteElements(file, array.shape.type(), *elements,
                                       static_cast<size_t>(array.shape.num_elements())));
  }
  return file.Commit();
}

}  // namespace

Result<Ref<File>> File::Open(const std::string& path) {
  Result<Ref<File>> file = Read(path);
  if (!file.ok()) return file.status().WithContext(QuotedPath(path));
  return file;
}

Result<Ref<File>> File::Read(const std::string& path) {
  KILN_ASSIGN_OR_RETURN(InputFile input, InputFile::Open(path));
  KILN_ASSIGN_OR_RETURN(const int64_t length, ReadLength(input));
  // A copy, which nobody changes between check and use.
  KILN_ASSIGN_OR_RETURN(std::string text, input.Read(length));
  if (static_cast<int64_t>(text.size()) < length) {
    return InvalidArgument("the file ends at byte ", text.size(), " of its header, which has ",
                           length);
  }
  auto file = MakeRef<File>();
  KILN_ASSIGN_OR_RETURN(file->header_, ParseHeader(text));
  text = {};
  Result<FilePages> pages = input.Rest(file->header_.data_bytes);
  if (!pages.ok()) return pages.status().WithContext("the data");
  file->pages_ = *std::move(pages);
  return file;
}

std::string Unpacked(ElementType type, std::span<const std::byte> packed, int64_t count) {
  const auto bits = static_cast<unsigned>(BitWidth(type));
  const unsigned mask = (1u << bits) - 1;
  std::string elements;
  elements.reserve(static_cast<size_t>(count));
  for (std::byte byte : packed) {
    for (unsigned shift = 0; shift < 8; shift += bits) {
      elements += static_cast<char>(static_cast<unsigned>(byte) >> shift & mask);
    }
  }
  elements.resize(static_cast<size_t>(count));
  return elements;
}

Status Write(const std::string& path, std::span<const NewArray> arrays,
             std::span<const std::pair<std::string_view, std::string_view>> metadata) {
  std::vector<NewEntry> entries;
  for (const NewArray& array : arrays) entries.push_back({array.name, &array.shape});
  KILN_ASSIGN_OR_RETURN(NewHeader header, MakeHeader(entries, metadata));
  Result<OutputFile> file = OutputFile::Create(path);
  Status status = file.ok() ? WriteContents(*file, header, arrays) : file.status();
  return status.ok() ? status : status.WithContext(QuotedPath(path));
}

}  // namespace kiln::safetensors
