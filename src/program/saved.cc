#include "program/saved.h"

#include <bit>
#include <cstring>
#include <type_traits>
#include <utility>

#include "base/build_id.h"
#include "base/hash.h"
#include "base/strings.h"
#include "program/check.h"
#include "program/members.h"
#include "tensor/layouts.h"

namespace kiln::program {
namespace {

static_assert(std::endian::native == std::endian::little);

// Of the format: raise it with any change to the layout or to members.h.
constexpr uint32_t kVersion = 1;
constexpr std::string_view kMagic = "KILNPRG\n";
// The least alignment of code and constants in a file.
constexpr size_t kBlobAlignment = 64;
// Of loops and conditionals.
constexpr int kMaxNesting = 1000;

// The first bytes of a file. The checksum is that of everything behind it.
struct Header {
  char magic[8];
  uint32_t version;
  uint32_t reserved;  // 0
  uint64_t file_bytes;
  uint64_t checksum;
  uint64_t text_bytes;  // of the description, which follows; then blobs
};
constexpr size_t kChecked = offsetof(Header, text_bytes);

size_t Aligned(size_t offset) { return (offset + kBlobAlignment - 1) & ~(kBlobAlignment - 1); }

// Finds any accidental change: each step is a bijection of the sum and of the word. At about the
// rate of memory.
uint64_t ChecksumOf(std::string_view bytes) {
  constexpr uint64_t kFirst = 0x9fb21c651e98df25u, kSecond = 0xc2b2ae3d27d4eb4fu;
  auto mix = [](uint64_t sum, uint64_t word) {
    return std::rotl(sum ^ (word * kFirst), 27) * kSecond;
  };
  uint64_t lanes[4] = {1, 2, 3, 4};
  const uint64_t size = bytes.size();
  while (!bytes.empty()) {
    uint64_t words[4] = {};
    const size_t taken = std::min(bytes.size(), sizeof(words));
    std::memcpy(words, bytes.data(), taken);
    bytes.remove_prefix(taken);
    for (int i = 0; i < 4; ++i) lanes[i] = mix(lanes[i], words[i]);
  }
  uint64_t sum = size;
  for (uint64_t lane : lanes) sum = mix(sum, lane ^ lane >> 32);
  return sum ^ sum >> 29;
}

template <typename T>
concept IsList = requires(T& list) {
  list.emplace_back();
  list.begin();
};

// Writes the description; the bytes of code and constants are kept apart, not copied.
class Writer {
 public:
  template <typename T>
  void Put(const T& value) {
    if constexpr (std::is_enum_v<T> || std::is_unsigned_v<T>) {
      Number(static_cast<uint64_t>(value));
    } else if constexpr (std::is_integral_v<T>) {
      const auto number = static_cast<int64_t>(value);
      Number(static_cast<uint64_t>(number) << 1 ^ static_cast<uint64_t>(number >> 63));
    } else if constexpr (std::is_same_v<T, double>) {
      text.append(reinterpret_cast<const char*>(&value), sizeof(value));
    } else if constexpr (requires { value.value_or(typename T::value_type()); }) {
      Put(value.has_value());
      if (value) Put(*value);
    } else if constexpr (IsList<T>) {
      PutList(value);
    } else {
      PutMembers(value);
    }
  }
  template <typename Tag>
  void Put(const Id<Tag>& id) {
    Put(id.value());
  }
  void Put(const std::string& value) {
    Number(value.size());
    text += value;
  }
  void Put(const Shape& shape) {
    Put(shape.is_array()   ? Shape::Kind::kArray
        : shape.is_tuple() ? Shape::Kind::kTuple
                           : Shape::Kind::kToken);
    if (shape.is_tuple()) return Put(shape.elements());
    if (!shape.is_array()) return;
    Put(shape.type());
    Number(static_cast<uint64_t>(shape.rank()));
    for (const Dimension& d : shape.dimensions()) {
      if (d.is_symbolic()) problem = Cat("the dimension ", d.ToString());
      Put(d.is_bounded());
      Put(d.size());
    }
    Put(shape.minor_to_major());
  }
  void Put(const std::shared_ptr<const Literal>& literal) {
    Put(literal != nullptr);
    if (!literal) return;
    if (!literal->shape().is_array()) problem = "a constant that is a tuple";
    Put(literal->shape());
    Blob({reinterpret_cast<const char*>(literal->data()),
          static_cast<size_t>(literal->byte_size())});
  }
  void Put(const Steps& steps) {
    if (++depth_ > kMaxNesting) {
      problem = Cat("loops and conditionals nested more than ", kMaxNesting, " deep");
    } else {
      PutList(steps);
    }
    --depth_;
  }
  template <typename... Kinds>
  void Put(const std::variant<Kinds...>& what) {
    Number(what.index());
    std::visit([&](const auto& value) { Put(value); }, what);
  }
  void Put(const Artefact& artefact) {
    Put(artefact.program);
    Number(artefact.code.size());
    for (const std::string& code : artefact.code) Blob(code);
  }

  std::string text;
  std::vector<std::string_view> blobs;
  std::string problem;  // what cannot be saved

 private:
  void Number(uint64_t number) {
    for (; number > 127; number >>= 7) text += static_cast<char>(number | 128);
    text += static_cast<char>(number);
  }
  void Blob(std::string_view bytes) {
    Number(bytes.size());
    blobs.push_back(bytes);
  }
  template <typename T>
  void PutList(const T& list) {
    Number(list.size());
    for (const auto& value : list) Put(static_cast<const typename T::value_type&>(value));
  }
  template <typename T>
  void PutMembers(const T& value) {
    std::apply([&](const auto&... members) { (Put(members), ...); }, MembersOf(value));
  }

  int depth_ = 0;
};

// Reads the same. After the first problem every value is a default.
class Reader {
 public:
  // Blobs are in `file`, from `blobs` on.
  Reader(std::string_view text, std::string_view file, size_t blobs)
      : rest_(text), file_(file), next_blob_(blobs) {}

  template <typename T>
  void Get(T& value) {
    if constexpr (std::is_enum_v<T>) {
      GetEnum(value);
    } else if constexpr (std::is_unsigned_v<T> && !std::is_same_v<T, bool>) {
      value = Number();
    } else if constexpr (std::is_integral_v<T>) {
      const uint64_t number = Number();
      const auto wide = static_cast<int64_t>(number >> 1 ^ (~(number & 1) + 1));
      value = static_cast<T>(std::is_same_v<T, bool> ? number : wide);
      if (std::is_same_v<T, bool> ? number > 1 : static_cast<int64_t>(value) != wide) {
        Fail("a number is out of range");
      }
    } else if constexpr (std::is_same_v<T, double>) {
      const std::string_view bytes = Take(sizeof(value));
      if (bytes.size() == sizeof(value)) std::memcpy(&value, bytes.data(), sizeof(value));
    } else if constexpr (requires { value.value_or(typename T::value_type()); }) {
      bool has = false;
      Get(has);
      if (has) Get(value.emplace());
    } else if constexpr (IsList<T>) {
      GetList(value);
    } else {
      GetMembers(value);
    }
  }
  template <typename Tag>
  void Get(Id<Tag>& id) {
    int value = -1;
    Get(value);
    id = Id<Tag>(value);
  }
  void Get(std::string& value) { value = Take(Number()); }
  void Get(std::vector<bool>& value) {
    for (uint64_t n = Count(); n > 0 && ok(); --n) {
      bool b = false;
      Get(b);
      value.push_back(b);
    }
  }
  void Get(Shape& shape) {
    const bool outermost = depth_ == 0;
    if (++depth_ > kMaxTupleDepth) {
      Fail("a tuple is nested too deep");
    } else {
      GetShape(shape);
    }
    --depth_;
    if (!ok() || !outermost) return;
    const Status valid = ValidateShape(shape);
    if (!valid.ok()) Fail(valid.message());
  }
  void Get(std::shared_ptr<const Literal>& literal) {
    bool has = false;
    Get(has);
    if (!has) return;
    Shape shape;
    Get(shape);
    const std::string_view bytes = Blob();
    if (!ok()) return;
    if (!shape.is_array() || !shape.is_static() || !shape.is_row_major() ||
        static_cast<uint64_t>(shape.byte_size()) != bytes.size()) {
      return Fail("a constant is not of its shape");
    }
    auto made = std::make_shared<Literal>(shape);
    if (!bytes.empty()) std::memcpy(made->data(), bytes.data(), bytes.size());
    literal = std::move(made);
  }
  void Get(Steps& steps) {
    if (++nesting_ > kMaxNesting) {
      Fail("steps are nested too deep");
    } else {
      GetList(steps);
    }
    --nesting_;
  }
  template <typename... Kinds>
  void Get(std::variant<Kinds...>& what) {
    const uint64_t index = Number();
    if (index >= sizeof...(Kinds)) return Fail("a step is of no known kind");
    uint64_t at = 0;
    ((at++ == index ? Get(what.template emplace<Kinds>()) : void()), ...);
  }
  void Get(Artefact& artefact) {
    Get(artefact.program);
    for (uint64_t n = Count(); n > 0 && ok(); --n) artefact.code.emplace_back(Blob());
    if (ok() && (!rest_.empty() || Aligned(next_blob_) < file_.size())) {
      Fail("there are bytes behind its end");
    }
  }

  bool ok() const { return problem_.empty(); }
  const std::string& problem() const { return problem_; }

 private:
  void Fail(std::string_view problem) {
    if (ok()) problem_ = problem;
    rest_ = {};
  }
  std::string_view Take(uint64_t size) {
    if (size > rest_.size()) {
      Fail("it ends early");
      return {};
    }
    const std::string_view taken = rest_.substr(0, size);
    rest_.remove_prefix(size);
    return taken;
  }
  uint64_t Number() {
    uint64_t number = 0;
    for (int shift = 0; shift < 64; shift += 7) {
      const std::string_view byte = Take(1);
      if (byte.empty()) return 0;
      number |= uint64_t{static_cast<unsigned char>(byte[0]) & 127u} << shift;
      if (static_cast<unsigned char>(byte[0]) < 128) return number;
    }
    Fail("a number is out of range");
    return 0;
  }
  // The length of a list: each element has a byte or more.
  uint64_t Count() {
    const uint64_t count = Number();
    if (count <= rest_.size()) return count;
    Fail("a list is longer than the file");
    return 0;
  }
  std::string_view Blob() {
    const uint64_t size = Number();
    const size_t start = Aligned(next_blob_);
    if (!ok() || size == 0) return {};
    if (start > file_.size() || size > file_.size() - start) {
      Fail("code or a constant is beyond its end");
      return {};
    }
    next_blob_ = start + size;
    return file_.substr(start, size);
  }
  void GetEnum(Allocation::Kind& kind) {
    const uint64_t number = Number();
    if (number > static_cast<uint64_t>(Allocation::Kind::kArena)) Fail("an allocation's kind");
    kind = static_cast<Allocation::Kind>(number);
  }
  void GetEnum(ElementType& type) {
    const uint64_t number = Number();
    if (number > INT32_MAX || (number != 0 && !IsElementType(static_cast<int32_t>(number)))) {
      return Fail("an element type");
    }
    type = static_cast<ElementType>(number);
  }
  void GetShape(Shape& shape) {
    const uint64_t kind = Number();
    if (kind == static_cast<uint64_t>(Shape::Kind::kTuple)) {
      return GetList(shape.mutable_elements());
    }
    if (kind == static_cast<uint64_t>(Shape::Kind::kToken)) {
      shape = Shape::Token();
      return;
    }
    if (kind != static_cast<uint64_t>(Shape::Kind::kArray)) return Fail("a shape's kind");
    ElementType type = ElementType::kInvalid;
    GetEnum(type);
    std::vector<Dimension> dimensions;
    for (uint64_t n = Count(); n > 0 && ok(); --n) {
      bool bounded = false;
      int64_t size = 0;
      Get(bounded);
      Get(size);
      if (size < 0 || dimensions.size() == static_cast<size_t>(kMaxRank)) {
        return Fail("a shape's sizes");
      }
      dimensions.push_back(bounded ? Dimension::Bounded(size) : Dimension(size));
    }
    std::vector<int64_t> order;
    Get(order);
    if (!ok()) return;
    if (type == ElementType::kInvalid) return Fail("a shape's element type");
    if (!order.empty() && !IsPermutation(order, std::ssize(dimensions))) {
      return Fail("a shape's layout");
    }
    shape = Shape(type, std::move(dimensions));
    if (!order.empty()) shape.set_minor_to_major(std::move(order));
  }
  template <typename T>
  void GetList(T& list) {
    for (uint64_t n = Count(); n > 0 && ok(); --n) Get(list.emplace_back());
  }
  template <typename T>
  void GetMembers(T& value) {
    std::apply([&](auto&... members) { (Get(members), ...); }, MembersOf(value));
  }

  std::string_view rest_;
  const std::string_view file_;
  size_t next_blob_;
  int64_t depth_ = 0;
  int nesting_ = 0;
  std::string problem_;
};

Status Damaged(const std::string& what) {
  return InvalidArgument("the saved program is damaged: ", what);
}

}  // namespace

Result<std::string> Save(const Artefact& artefact) {
  Writer writer;
  writer.Put(BuildId());
  writer.Put(artefact);
  if (!writer.problem.empty()) {
    return Unimplemented("'", artefact.program.name, "' cannot be saved: it has ", writer.problem);
  }
  size_t size = sizeof(Header) + writer.text.size();
  for (std::string_view blob : writer.blobs) {
    if (!blob.empty()) size = Aligned(size) + blob.size();
  }
  Header header = {};
  std::memcpy(header.magic, kMagic.data(), kMagic.size());
  header.version = kVersion;
  header.text_bytes = writer.text.size();
  std::string file;
  file.reserve(size);
  file.append(reinterpret_cast<const char*>(&header), sizeof(header));
  file += writer.text;
  for (std::string_view blob : writer.blobs) {
    if (blob.empty()) continue;
    file.resize(Aligned(file.size()));
    file += blob;
  }
  Seal(file);
  return file;
}

void Seal(std::string& file) {
  Header header;
  if (file.size() < sizeof(header)) return;
  std::memcpy(&header, file.data(), sizeof(header));
  header.file_bytes = file.size();
  header.checksum = ChecksumOf(std::string_view(file).substr(kChecked));
  std::memcpy(file.data(), &header, sizeof(header));
}

Result<Artefact> Restore(std::string_view bytes) {
  Header header;
  if (bytes.size() < sizeof(header) || !bytes.starts_with(kMagic)) {
    return InvalidArgument("the bytes are no saved program");
  }
  std::memcpy(&header, bytes.data(), sizeof(header));
  if (header.version != kVersion || header.reserved != 0) {
    return FailedPrecondition("the program was saved in version ", header.version,
                              " of the format, and this is version ", kVersion);
  }
  if (header.file_bytes != bytes.size()) {
    return Damaged(Cat("it has ", bytes.size(), " of ", header.file_bytes, " bytes"));
  }
  if (header.checksum != ChecksumOf(bytes.substr(kChecked))) {
    return Damaged("its checksum differs");
  }
  if (header.text_bytes > bytes.size() - sizeof(header)) return Damaged("it ends early");
  Reader reader(bytes.substr(sizeof(header), header.text_bytes), bytes,
                sizeof(header) + header.text_bytes);
  std::string build;
  reader.Get(build);
  if (reader.ok() && build != BuildId()) {
    return FailedPrecondition("the program was saved by another build of the library: ", build,
                              "; this is ", BuildId());
  }
  Artefact artefact;
  reader.Get(artefact);
  if (!reader.ok()) return Damaged(reader.problem());
  KILN_RETURN_IF_ERROR(CheckProgram(artefact.program));
  return artefact;
}

Result<std::string> FingerprintOf(const Program& program) {
  Writer writer;
  writer.Put(BuildId());
  writer.Put(program.id);
  writer.Put(program.name);
  writer.Put(program.target);
  writer.Put(program.signature);
  if (!writer.problem.empty()) {
    return Unimplemented("'", program.name, "' has no fingerprint: it has ", writer.problem);
  }
  return HexText(HashOf(writer.text));
}

}  // namespace kiln::program
