// The header of .npy files, and the directory of .npz files.

#include <cstring>
#include <limits>
#include <optional>

#include "base/characters.h"
#include "base/strings.h"
#include "tensor/array_file.h"
#include "tensor/shape.h"

namespace kiln {
namespace {

// A little-endian number of `bytes` bytes at `at`, which must be there.
uint64_t NumberAt(std::string_view text, size_t at, size_t bytes) {
  uint64_t number = 0;
  std::memcpy(&number, text.data() + at, bytes);
  return number;
}

// The dict of the header: {'descr': '<f4', 'fortran_order': False, 'shape': (2, 3), }.
class HeaderParser {
 public:
  HeaderParser(std::string_view text, size_t begin) : text_(text), begin_(begin) {}

  Result<NpyHeader> Run() {
    KILN_RETURN_IF_ERROR(Expect('{'));
    bool has_descr = false, has_order = false, has_shape = false;
    while (!Take('}')) {
      KILN_ASSIGN_OR_RETURN(const std::string_view key, String());
      KILN_RETURN_IF_ERROR(Expect(':'));
      bool* has = key == "descr"           ? &has_descr
                  : key == "fortran_order" ? &has_order
                  : key == "shape"         ? &has_shape
                                           : nullptr;
      if (!has || *has) return Fail("'descr', 'fortran_order' and 'shape', each once");
      *has = true;
      KILN_RETURN_IF_ERROR(has == &has_descr ? Descr() : has == &has_order ? Order() : Dims());
      if (!Take(',') && Peek() != '}') return Fail("',' or '}'");
    }
    if (Peek() != '\0') return Fail("the end of the header");
    if (!has_descr || !has_order || !has_shape) return Fail("'descr', 'fortran_order' and 'shape'");
    return header_;
  }

 private:
  char Peek() {
    while (at_ < text_.size() && IsSpace(text_[at_])) ++at_;
    return at_ < text_.size() ? text_[at_] : '\0';
  }
  bool Take(char c) {
    if (Peek() != c) return false;
    ++at_;
    return true;
  }
  Status Expect(char c) { return Take(c) ? OkStatus() : Fail(Cat("'", c, "'")); }
  Status Fail(std::string_view expected) const {
    return InvalidArgument("byte ", begin_ + at_, ": expected ", expected);
  }

  Result<std::string_view> String() {
    const char quote = Peek();
    if (quote != '\'' && quote != '"') return Fail("a string");
    const size_t end = text_.find(quote, at_ + 1);
    if (end == text_.npos) return Fail("a string");
    const std::string_view string = text_.substr(at_ + 1, end - at_ - 1);
    at_ = end + 1;
    return string;
  }

  Status Descr() {
    if (Peek() == '[') return Unimplemented("arrays of structures");
    KILN_ASSIGN_OR_RETURN(const std::string_view descr, String());
    const std::optional<int64_t> width = descr.size() > 2 ? ParseInt(descr.substr(2)) : 0;
    const std::optional<ElementType> type =
        width && descr.size() > 2 ? TypeOf(descr[1], *width) : std::nullopt;
    if (!type || std::string_view("<>|=").find(descr[0]) == std::string_view::npos) {
      return Unimplemented("the type '", descr, "'");
    }
    header_.type = *type;
    header_.is_bits = descr[1] == 'V';
    header_.is_big_endian = descr[0] == '>';
    return OkStatus();
  }

  static std::optional<ElementType> TypeOf(char kind, int64_t width) {
    switch (kind) {
      case 'b':
        return width == 1 ? std::optional(ElementType::kPred) : std::nullopt;
      case 'V':
        return width == 1 || width == 2 ? Named('u', width) : std::nullopt;
      case 'f':
        return width == 1 ? std::nullopt : Named('f', width);
      case 'i':
        return Named('s', width);
      case 'u':
      case 'c':
        return Named(kind, width);
      default:
        return std::nullopt;
    }
  }
  static std::optional<ElementType> Named(char kind, int64_t width) {
    if (width != 1 && width != 2 && width != 4 && width != 8 && width != 16) return std::nullopt;
    return TypeByName(Cat(kind, 8 * width));
  }

  Status Order() {
    for (const std::string_view word : {"True", "False"}) {
      if (Peek() == word[0] && StartsWith(text_.substr(at_), word)) {
        header_.is_fortran_order = word == "True";
        at_ += word.size();
        return OkStatus();
      }
    }
    return Fail("True or False");
  }

  Status Dims() {
    KILN_RETURN_IF_ERROR(Expect('('));
    while (!Take(')')) {
      Peek();
      const size_t first = at_;
      while (at_ < text_.size() && IsDigit(text_[at_])) ++at_;
      const std::optional<int64_t> size = ParseInt(text_.substr(first, at_ - first));
      if (!size) return Fail("a size");
      header_.dims.push_back(*size);
      if (header_.dims.size() > kMaxRank) return Fail(Cat("at most ", kMaxRank, " sizes"));
      if (!Take(',') && Peek() != ')') return Fail("',' or ')'");
    }
    return OkStatus();
  }

  std::string_view text_;
  size_t begin_, at_ = 0;  // of the text in the file, and in the text
  NpyHeader header_;
};

constexpr uint64_t kIn64Bits = 0xffffffff;  // the number is in the field of ZIP64

// Numbers of a member that may be in the extra field: sizes and the place of its header.
struct ZipNumbers {
  uint64_t size, packed, place;
};

Status ReadExtra(std::string_view extra, ZipNumbers* numbers) {
  while (extra.size() >= 4) {
    const uint64_t id = NumberAt(extra, 0, 2), size = NumberAt(extra, 2, 2);
    if (size > extra.size() - 4) return InvalidArgument("an extra field is cut off");
    std::string_view field = extra.substr(4, size);
    extra.remove_prefix(4 + size);
    if (id != 1) continue;
    for (uint64_t* number : {&numbers->size, &numbers->packed, &numbers->place}) {
      if (*number != kIn64Bits) continue;
      if (field.size() < 8) return InvalidArgument("a size of 64 bits is cut off");
      *number = NumberAt(field, 0, 8);
      field.remove_prefix(8);
    }
  }
  return OkStatus();
}

// The directory's place and number of members, from the record at the archive's end.
Status FindDirectory(std::string_view archive, uint64_t* place, uint64_t* count) {
  constexpr size_t kRecord = 22, kLocator = 20, kRecord64 = 56, kMostComment = 65535;
  const size_t from =
      archive.size() > kRecord + kMostComment ? archive.size() - kRecord - kMostComment : 0;
  const size_t end = archive.rfind("PK\5\6");
  if (end == archive.npos || end < from || archive.size() - end < kRecord) {
    return InvalidArgument("an archive without a directory at its end");
  }
  *count = NumberAt(archive, end + 10, 2);
  *place = NumberAt(archive, end + 16, 4);
  if (end < kLocator || archive.substr(end - kLocator, 4) != "PK\6\7") return OkStatus();
  const uint64_t record = NumberAt(archive, end - kLocator + 8, 8);
  if (archive.size() < kRecord64 || record > archive.size() - kRecord64 ||
      archive.substr(record, 4) != "PK\6\6") {
    return InvalidArgument("an archive without its record of 64 bits");
  }
  *count = NumberAt(archive, record + 32, 8);
  *place = NumberAt(archive, record + 48, 8);
  return OkStatus();
}

Result<std::string_view> Contents(std::string_view archive, uint64_t place, uint64_t size) {
  constexpr size_t kLocal = 30;
  if (archive.size() < kLocal || place > archive.size() - kLocal ||
      archive.substr(place, 4) != "PK\3\4") {
    return InvalidArgument("has no header at byte ", place);
  }
  const uint64_t begin =
      place + kLocal + NumberAt(archive, place + 26, 2) + NumberAt(archive, place + 28, 2);
  if (begin > archive.size() || size > archive.size() - begin) {
    return InvalidArgument("goes beyond the end of the archive");
  }
  return archive.substr(begin, size);
}

}  // namespace

Result<NpyHeader> ParseNpyHeader(std::string_view bytes) {
  constexpr size_t kVersion = 6, kLength = 8;
  if (!StartsWith(bytes, "\x93NUMPY") || bytes.size() < 12) {
    return InvalidArgument("no .npy file");
  }
  const int version = bytes[kVersion];
  if (version < 1 || version > 3) return Unimplemented("version ", version, " of .npy files");
  const size_t width = version == 1 ? 2 : 4;
  const uint64_t length = NumberAt(bytes, kLength, width);
  const size_t begin = kLength + width;
  if (length > bytes.size() - begin) return InvalidArgument("the header is cut off");
  KILN_ASSIGN_OR_RETURN(NpyHeader header, HeaderParser(bytes.substr(begin, length), begin).Run());
  header.data = begin + length;
  return header;
}

Result<std::vector<ZipEntry>> ReadZip(std::string_view archive) {
  constexpr size_t kCentral = 46;
  uint64_t at = 0, count = 0;
  KILN_RETURN_IF_ERROR(FindDirectory(archive, &at, &count));
  std::vector<ZipEntry> entries;
  uint64_t total = 0;
  for (uint64_t k = 0; k < count; ++k) {
    if (archive.size() < kCentral || at > archive.size() - kCentral ||
        archive.substr(at, 4) != "PK\1\2") {
      return InvalidArgument("member ", k, " of ", count, " is not in the directory");
    }
    const uint64_t method = NumberAt(archive, at + 10, 2), name = NumberAt(archive, at + 28, 2),
                   extra = NumberAt(archive, at + 30, 2), comment = NumberAt(archive, at + 32, 2);
    ZipNumbers numbers = {NumberAt(archive, at + 24, 4), NumberAt(archive, at + 20, 4),
                          NumberAt(archive, at + 42, 4)};
    if (name + extra + comment > archive.size() - at - kCentral) {
      return InvalidArgument("member ", k, " of ", count, " is cut off in the directory");
    }
    ZipEntry entry;
    entry.name = archive.substr(at + kCentral, name);
    KILN_RETURN_IF_ERROR(ReadExtra(archive.substr(at + kCentral + name, extra), &numbers));
    if (method != 0) {
      return Unimplemented(entry.name, " is compressed; numpy.savez writes archives that are not");
    }
    auto bytes = Contents(archive, numbers.place, numbers.size);
    if (!bytes.ok()) return bytes.status().WithContext(entry.name);
    entry.bytes = *bytes;
    // Else copies of them could take many times the memory of the archive.
    total += entry.bytes.size();
    if (total > archive.size()) return InvalidArgument(entry.name, " overlaps another member");
    entries.push_back(entry);
    at += kCentral + name + extra + comment;
  }
  return entries;
}

}  // namespace kiln
