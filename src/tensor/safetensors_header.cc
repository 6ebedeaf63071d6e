#include "tensor/safetensors_header.h"

#include <algorithm>
#include <limits>
#include <numeric>

#include "base/characters.h"
#include "base/strings.h"
#include "base/utf8.h"

namespace kiln::safetensors {
namespace {

constexpr std::string_view kMetadata = "__metadata__";

// In the order of the format's own list, by size: later ones are written first. The packing of
// types of 6 bits is not defined; of two elements in a byte the first one has the low bits.
constexpr Dtype kDtypes[] = {
    {"BOOL", 8, ElementType::kPred},
    {"F4", 4, ElementType::kF4E2M1FN},
    {"F6_E2M3", 6, ElementType::kInvalid},
    {"F6_E3M2", 6, ElementType::kInvalid},
    {"U8", 8, ElementType::kU8},
    {"I8", 8, ElementType::kS8},
    {"F8_E5M2", 8, ElementType::kF8E5M2},
    {"F8_E4M3", 8, ElementType::kF8E4M3FN},
    {"F8_E8M0", 8, ElementType::kF8E8M0FNU},
    {"F8_E4M3FNUZ", 8, ElementType::kF8E4M3FNUZ},
    {"F8_E5M2FNUZ", 8, ElementType::kF8E5M2FNUZ},
    {"I16", 16, ElementType::kS16},
    {"U16", 16, ElementType::kU16},
    {"F16", 16, ElementType::kF16},
    {"BF16", 16, ElementType::kBF16},
    {"I32", 32, ElementType::kS32},
    {"U32", 32, ElementType::kU32},
    {"F32", 32, ElementType::kF32},
    {"C64", 64, ElementType::kC64},
    {"F64", 64, ElementType::kF64},
    {"I64", 64, ElementType::kS64},
    {"U64", 64, ElementType::kU64},
};

// The bytes of packed elements; nothing if too many, or if they end within a byte.
std::optional<int64_t> PackedBytes(std::span<const int64_t> dims, int64_t bits) {
  if (std::find(dims.begin(), dims.end(), 0) != dims.end()) return 0;
  for (int64_t size : dims) {
    if (__builtin_mul_overflow(bits, size, &bits)) return std::nullopt;
  }
  if (bits % 8 != 0) return std::nullopt;
  return bits / 8;
}

std::string DimsText(const std::vector<int64_t>& dims) { return Cat("[", Join(dims, ","), "]"); }

// The same for messages, with the first numbers only.
std::string ShortText(const std::vector<int64_t>& dims) {
  constexpr size_t kMost = 16;
  if (dims.size() <= kMost) return DimsText(dims);
  return Cat("[", Join(std::span(dims).first(kMost), ","), ",...]");
}

// The parser of the header's one form.
class Parser {
 public:
  explicit Parser(std::string_view text) : text_(text) {}

  Result<Header> Parse() {
    if (static_cast<int64_t>(text_.size()) > kMaxHeaderBytes) {
      return InvalidArgument("the header has ", text_.size(), " bytes; at most ", kMaxHeaderBytes,
                             " are allowed");
    }
    if (!IsUtf8(text_)) return InvalidArgument("the header is not UTF-8");
    if (text_.empty() || text_[0] != '{') return Fail("'{'");
    KILN_RETURN_IF_ERROR(Members([&](std::string name) -> Status {
      if (name == kMetadata) return ParseMetadata();
      return ParseEntry(std::move(name));
    }));
    // Padding.
    while (at_ < text_.size() && text_[at_] == ' ') ++at_;
    if (at_ < text_.size()) return Fail("the end of the header");
    return std::move(header_);
  }

 private:
  Status Fail(std::string_view expected) const {
    return InvalidArgument("byte ", at_, " of the header: expected ", expected);
  }
  void SkipSpace() {
    while (at_ < text_.size() && IsSpace(text_[at_])) ++at_;
  }
  bool Take(char c) {
    SkipSpace();
    if (at_ == text_.size() || text_[at_] != c) return false;
    ++at_;
    return true;
  }

  // An object: calls f(key) -> Status for each of its members, at the value.
  template <typename F>
  Status Members(F f) {
    if (!Take('{')) return Fail("'{'");
    if (Take('}')) return OkStatus();
    while (true) {
      KILN_ASSIGN_OR_RETURN(std::string key, String());
      if (!Take(':')) return Fail("':'");
      KILN_RETURN_IF_ERROR(f(std::move(key)));
      if (Take('}')) return OkStatus();
      if (!Take(',')) return Fail("',' or '}'");
    }
  }

  // A list of numbers.
  Result<std::vector<int64_t>> Numbers() {
    std::vector<int64_t> numbers;
    if (!Take('[')) return Fail("'['");
    if (Take(']')) return numbers;
    while (true) {
      KILN_ASSIGN_OR_RETURN(int64_t number, Number());
      numbers.push_back(number);
      if (Take(']')) return numbers;
      if (!Take(',')) return Fail("',' or ']'");
    }
  }

  // Digits without a sign, of 63 bits.
  Result<int64_t> Number() {
    SkipSpace();
    size_t end = at_;
    while (end < text_.size() && IsDigit(text_[end])) ++end;
    const std::string_view digits = text_.substr(at_, end - at_);
    const std::optional<int64_t> value = ParseInt(digits);
    if (!value || (digits.size() > 1 && digits[0] == '0')) {
      return Fail("a number from 0 to 9223372036854775807");
    }
    at_ = end;
    return *value;
  }

  Result<std::string> String() {
    if (!Take('"')) return Fail("a string");
    std::string value;
    while (true) {
      const size_t begin = at_;
      while (at_ < text_.size() && text_[at_] != '"' && text_[at_] != '\\' &&
             static_cast<unsigned char>(text_[at_]) >= 0x20) {
        ++at_;
      }
      value.append(text_, begin, at_ - begin);
      if (at_ == text_.size()) return Fail("the end of a string");
      const char c = text_[at_];
      if (c != '"' && c != '\\') return Fail("no control character in a string");
      ++at_;
      if (c == '"') return value;
      KILN_RETURN_IF_ERROR(Escape(value));
    }
  }

  // Behind a backslash.
  Status Escape(std::string& value) {
    constexpr std::string_view kEscapes = "\"\\/bfnrt", kMeanings = "\"\\/\b\f\n\r\t";
    if (at_ < text_.size() && text_[at_] == 'u') {
      ++at_;
      return UnicodeEscape(value);
    }
    const size_t which = at_ < text_.size() ? kEscapes.find(text_[at_]) : std::string_view::npos;
    if (which == std::string_view::npos) return Fail("an escape of JSON");
    value += kMeanings[which];
    ++at_;
    return OkStatus();
  }

  // Behind "\u". Characters beyond 16 bits are a pair of surrogates.
  Status UnicodeEscape(std::string& value) {
    KILN_ASSIGN_OR_RETURN(uint32_t code, HexDigits());
    if (code >= 0xdc00 && code < 0xe000) return Fail("a surrogate behind its first half");
    if (code >= 0xd800 && code < 0xdc00) {
      if (text_.substr(at_, 2) != "\\u") return Fail("the second half of a surrogate");
      at_ += 2;
      KILN_ASSIGN_OR_RETURN(uint32_t low, HexDigits());
      if (low < 0xdc00 || low >= 0xe000) return Fail("the second half of a surrogate");
      code = 0x10000 + ((code - 0xd800) << 10) + (low - 0xdc00);
    }
    auto add = [&](uint32_t byte) { value += static_cast<char>(byte); };
    if (code < 0x80) {
      add(code);
    } else if (code < 0x800) {
      add(0xc0 | code >> 6);
    } else if (code < 0x10000) {
      add(0xe0 | code >> 12);
      add(0x80 | (code >> 6 & 0x3f));
    } else {
      add(0xf0 | code >> 18);
      add(0x80 | (code >> 12 & 0x3f));
      add(0x80 | (code >> 6 & 0x3f));
    }
    if (code >= 0x80) add(0x80 | (code & 0x3f));
    return OkStatus();
  }

  Result<uint32_t> HexDigits() {
    uint32_t code = 0;
    for (int i = 0; i < 4; ++i, ++at_) {
      const int digit = at_ < text_.size() ? HexValue(text_[at_]) : -1;
      if (digit < 0) return Fail("four hexadecimal digits");
      code = code << 4 | static_cast<uint32_t>(digit);
    }
    return code;
  }

  Status ParseMetadata() {
    if (has_metadata_) return InvalidArgument("the header has ", kMetadata, " twice");
    has_metadata_ = true;
    return Members([&](std::string key) -> Status {
      KILN_ASSIGN_OR_RETURN(std::string value, String());
      header_.metadata.emplace_back(std::move(key), std::move(value));
      return OkStatus();
    });
  }

  Status ParseEntry(std::string name) {
    Entry entry;
    bool has_dtype = false, has_shape = false;
    std::optional<std::vector<int64_t>> offsets;
    Status status = Members([&](const std::string& key) -> Status {
      if (key == "dtype" && !std::exchange(has_dtype, true)) {
        KILN_ASSIGN_OR_RETURN(entry.dtype, String());
      } else if (key == "shape" && !std::exchange(has_shape, true)) {
        KILN_ASSIGN_OR_RETURN(entry.dims, Numbers());
      } else if (key == "data_offsets" && !offsets) {
        KILN_ASSIGN_OR_RETURN(offsets, Numbers());
      } else {
        return InvalidArgument("unknown or repeated member ", Quoted(key));
      }
      return OkStatus();
    });
    if (status.ok() && !(has_dtype && has_shape && offsets)) {
      status = InvalidArgument("expected the members dtype, shape and data_offsets");
    }
    if (status.ok() && (offsets->size() != 2 || (*offsets)[0] > (*offsets)[1])) {
      status = InvalidArgument("data_offsets are ", ShortText(*offsets),
                               "; expected a begin and an end");
    }
    if (!status.ok()) return status.WithContext(Quoted(name));
    entry.name = std::move(name);
    entry.begin = (*offsets)[0];
    entry.end = (*offsets)[1];
    header_.entries.push_back(std::move(entry));
    return OkStatus();
  }

  const std::string_view text_;
  size_t at_ = 0;
  Header header_;
  bool has_metadata_ = false;
};

Status CheckUnique(Header& header) {
  std::vector<uint32_t>& order = header.by_name;
  const std::vector<Entry>& entries = header.entries;
  order.resize(entries.size());
  std::iota(order.begin(), order.end(), 0u);
  std::sort(order.begin(), order.end(),
            [&](uint32_t a, uint32_t b) { return entries[a].name < entries[b].name; });
  const auto twin = std::adjacent_find(order.begin(), order.end(), [&](uint32_t a, uint32_t b) {
    return entries[a].name == entries[b].name;
  });
  if (twin != order.end()) {
    return InvalidArgument("the header has ", Quoted(entries[*twin].name), " twice");
  }
  std::sort(header.metadata.begin(), header.metadata.end());
  const auto pair =
      std::adjacent_find(header.metadata.begin(), header.metadata.end(),
                         [](const auto& a, const auto& b) { return a.first == b.first; });
  if (pair != header.metadata.end()) {
    return InvalidArgument("the metadata have ", Quoted(pair->first), " twice");
  }
  return OkStatus();
}

// Sorts the entries by their data, which must have no holes and no overlaps.
Status CheckData(Header& header) {
  std::vector<Entry>& entries = header.entries;
  std::stable_sort(entries.begin(), entries.end(), [](const Entry& a, const Entry& b) {
    return std::pair(a.begin, a.end) < std::pair(b.begin, b.end);
  });
  int64_t at = 0;
  for (const Entry& entry : entries) {
    if (entry.begin != at) {
      return InvalidArgument(Quoted(entry.name), ": its data begin at ", entry.begin,
                             "; those before it end at ", at);
    }
    at = entry.end;
    const Dtype* dtype = FindDtype(entry.dtype);
    if (!dtype) continue;  // known to later versions of the format
    const std::optional<int64_t> bytes = PackedBytes(entry.dims, dtype->bits);
    if (bytes != entry.end - entry.begin) {
      return InvalidArgument(Quoted(entry.name), ": ", entry.dtype, ShortText(entry.dims), " has ",
                             entry.end - entry.begin, " bytes of data");
    }
  }
  header.data_bytes = at;
  return OkStatus();
}

}  // namespace

const Dtype* FindDtype(std::string_view name) {
  for (const Dtype& dtype : kDtypes) {
    if (dtype.name == name) return &dtype;
  }
  return nullptr;
}

const Dtype* FindDtype(ElementType type) {
  for (const Dtype& dtype : kDtypes) {
    if (dtype.type == type && type != ElementType::kInvalid) return &dtype;
  }
  return nullptr;
}

bool IsPlain(ElementType type) { return BitWidth(type) >= 8; }

std::string Quoted(std::string_view name) {
  constexpr size_t kLongest = 80;
  const bool is_long = name.size() > kLongest;
  return Cat("'", EscapeC(name.substr(0, kLongest)), is_long ? "...'" : "'");
}

Result<Shape> Entry::shape() const {
  const Dtype* known = FindDtype(dtype);
  if (!known || known->type == ElementType::kInvalid) {
    return Unimplemented(Quoted(name), " has the dtype ", Quoted(dtype),
                         ", for which there is no element type");
  }
  Shape made(known->type, dims);
  if (Status status = ValidateShape(made); !status.ok()) return status.WithContext(Quoted(name));
  return made;
}

const Entry* Header::Find(std::string_view name) const {
  const auto place =
      std::lower_bound(by_name.begin(), by_name.end(), name,
                       [&](uint32_t a, std::string_view b) { return entries[a].name < b; });
  if (place == by_name.end() || entries[*place].name != name) return nullptr;
  return &entries[*place];
}

const std::string* Header::FindMetadata(std::string_view key) const {
  const auto place =
      std::lower_bound(metadata.begin(), metadata.end(), key,
                       [](const auto& pair, std::string_view k) { return pair.first < k; });
  return place == metadata.end() || place->first != key ? nullptr : &place->second;
}

Result<Header> ParseHeader(std::string_view text) {
  KILN_ASSIGN_OR_RETURN(Header header, Parser(text).Parse());
  KILN_RETURN_IF_ERROR(CheckData(header));
  KILN_RETURN_IF_ERROR(CheckUnique(header));
  return header;
}

namespace {

// The types of the arrays, checked with the names.
Result<std::vector<const Dtype*>> DtypesOf(std::span<const NewEntry> entries) {
  std::vector<const Dtype*> dtypes;
  std::vector<std::string_view> names;
  for (const NewEntry& entry : entries) {
    if (!IsUtf8(entry.name)) return InvalidArgument(Quoted(entry.name), " is not UTF-8");
    if (entry.name == kMetadata) return InvalidArgument(kMetadata, " is no name of an array");
    dtypes.push_back(FindDtype(entry.shape->type()));
    if (!dtypes.back()) {
      return Unimplemented(Quoted(entry.name), " is of ", *entry.shape,
                           "; the format defines no such elements");
    }
    if (!PackedBytes(entry.shape->dims(), dtypes.back()->bits)) {
      return InvalidArgument(Quoted(entry.name), " is of ", *entry.shape,
                             "; packed elements must fill whole bytes");
    }
    names.push_back(entry.name);
  }
  std::sort(names.begin(), names.end());
  const auto twin = std::adjacent_find(names.begin(), names.end());
  if (twin != names.end()) return InvalidArgument(Quoted(*twin), " is there twice");
  return dtypes;
}

Result<std::string> MetadataText(
    std::span<const std::pair<std::string_view, std::string_view>> metadata) {
  std::string text;
  std::vector<std::string_view> keys;
  for (const auto& [key, value] : metadata) {
    for (std::string_view part : {key, value}) {
      if (!IsUtf8(part)) {
        return InvalidArgument("metadata ", Quoted(key), ": ", Quoted(part), " is not UTF-8");
      }
    }
    text += Cat(keys.empty() ? "\"" : ",\"", EscapeJson(key), "\":\"", EscapeJson(value), "\"");
    keys.push_back(key);
  }
  std::sort(keys.begin(), keys.end());
  const auto twin = std::adjacent_find(keys.begin(), keys.end());
  if (twin != keys.end()) return InvalidArgument("metadata ", Quoted(*twin), " are there twice");
  return text;
}

}  // namespace

Result<NewHeader> MakeHeader(
    std::span<const NewEntry> entries,
    std::span<const std::pair<std::string_view, std::string_view>> metadata) {
  KILN_ASSIGN_OR_RETURN(std::vector<const Dtype*> dtypes, DtypesOf(entries));
  NewHeader header;
  header.order.resize(entries.size());
  std::iota(header.order.begin(), header.order.end(), size_t{0});
  std::sort(header.order.begin(), header.order.end(), [&](size_t a, size_t b) {
    if (dtypes[a] != dtypes[b]) return dtypes[a] > dtypes[b];
    return entries[a].name < entries[b].name;
  });
  std::string& text = header.text;
  text = "{";
  if (!metadata.empty()) {
    KILN_ASSIGN_OR_RETURN(std::string members, MetadataText(metadata));
    text += Cat("\"", kMetadata, "\":{", members, "}");
  }
  int64_t at = 0;
  for (size_t i : header.order) {
    const std::vector<int64_t> dims = entries[i].shape->dims();
    const int64_t begin = at;
    if (__builtin_add_overflow(at, *PackedBytes(dims, dtypes[i]->bits), &at)) {
      return InvalidArgument("the arrays have too many bytes together");
    }
    text += Cat(text.size() > 1 ? ",\"" : "\"", EscapeJson(entries[i].name), "\":{\"dtype\":\"",
                dtypes[i]->name, "\",\"shape\":", DimsText(dims), ",\"data_offsets\":[", begin, ",",
                at, "]}");
  }
  text += "}";
  text.resize((text.size() + 7) / 8 * 8, ' ');
  if (static_cast<int64_t>(text.size()) > kMaxHeaderBytes) {
    return InvalidArgument("the header has ", text.size(), " bytes; at most ", kMaxHeaderBytes,
                           " are allowed");
  }
  return header;
}

}  // namespace kiln::safetensors
