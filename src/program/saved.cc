#include "program/saved.h"

#include <cstring>
#include <type_traits>
#include <utility>

#include "base/build_id.h"
#include "base/hash.h"
#include "base/input_file.h"
#include "base/integers.h"
#include "base/output_file.h"
#include "base/strings.h"
#include "base/varint.h"
#include "program/check.h"
#include "program/container.h"
#include "program/members.h"
#include "tensor/layouts.h"

namespace kiln::program {
namespace {

// Of loops and conditionals.
constexpr int kMaxNesting = 1000;

template <typename T>
concept IsList = requires(T& list) {
  list.emplace_back();
  list.begin();
};

// Writes the description; the bytes of code and constants are borrowed.
class Writer {
 public:
  template <typename T>
  void Put(const T& value) {
    if constexpr (std::is_enum_v<T> || std::is_unsigned_v<T>) {
      Number(static_cast<uint64_t>(value));
    } else if constexpr (std::is_integral_v<T>) {
      Number(ZigZag(value));
    } else if constexpr (std::is_same_v<T, double>) {
      file.description.append(reinterpret_cast<const char*>(&value), sizeof(value));
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
    file.description += value;
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
    Piece(
        {reinterpret_cast<const char*>(literal->data()), static_cast<size_t>(literal->byte_size())},
        file.constants);
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
  void Put(const MachineCode& code) {
    Put(code.architecture);
    Code(code.images);
  }
  // Without the time of its compilation: equal programs have equal bytes.
  void Put(const Artefact& artefact) {
    Put(artefact.program);
    Code(artefact.code);
    Put(artefact.machine_code);
  }

  NewContainer file;
  std::string problem;  // what cannot be saved

 private:
  void Number(uint64_t number) { AppendVarint(file.description, number); }
  void Piece(std::string_view bytes, std::vector<std::string_view>& section) {
    Number(bytes.size());
    if (!bytes.empty()) section.push_back(bytes);
  }
  void Code(const std::vector<std::string>& pieces) {
    Number(pieces.size());
    for (const std::string& piece : pieces) Piece(piece, file.code);
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

// A section of pieces, taken one after the other.
struct Pieces {
  std::string_view section;
  size_t end = 0;  // of what has been taken

  // Whether the next piece, which is not empty, is in the section.
  bool Take(uint64_t size, std::string_view& piece) {
    const size_t start = RoundUp(end, kPieceAlignment);
    if (start > section.size() || size > section.size() - start) return false;
    piece = section.substr(start, size);
    end = start + size;
    return true;
  }
  bool is_done() const { return end == section.size(); }
};

// Reads the same. After the first problem every value is a default.
class Reader {
 public:
  // Constants are left in the file, if `owner` is not null.
  Reader(const OpenContainer& file, std::shared_ptr<const void> owner)
      : rest_(file.description),
        code_{file.code},
        constants_{file.constants},
        owner_(std::move(owner)) {}

  template <typename T>
  void Get(T& value) {
    if constexpr (std::is_enum_v<T>) {
      GetEnum(value);
    } else if constexpr (std::is_unsigned_v<T>) {
      const uint64_t number = Number();
      value = static_cast<T>(number);
      if (value != number) Fail("a number is out of range");
    } else if constexpr (std::is_integral_v<T>) {
      const int64_t number = FromZigZag(Number());
      value = static_cast<T>(number);
      if (value != number) Fail("a number is out of range");
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
    const std::string_view bytes = Piece(constants_);
    if (!ok()) return;
    if (!shape.is_array() || !shape.is_static() || !shape.is_row_major() ||
        static_cast<uint64_t>(shape.byte_size()) != bytes.size()) {
      return Fail("a constant is not of its shape");
    }
    if (owner_ && reinterpret_cast<uintptr_t>(bytes.data()) % kAlignment == 0) {
      literal = std::make_shared<const Literal>(
          Literal::Borrowed(shape, reinterpret_cast<const std::byte*>(bytes.data()), owner_));
      return;
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
    Code(artefact.code);
    Get(artefact.machine_code);
    if (ok() && !(rest_.empty() && code_.is_done() && constants_.is_done())) {
      Fail("there are bytes behind its end");
    }
  }
  void Get(MachineCode& code) {
    Get(code.architecture);
    Code(code.images);
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
  std::string_view Piece(Pieces& section) {
    const uint64_t size = Number();
    std::string_view piece;
    if (ok() && size > 0 && !section.Take(size, piece)) {
      Fail("code or a constant is beyond its end");
    }
    return piece;
  }
  void Code(std::vector<std::string>& pieces) {
    for (uint64_t n = Count(); n > 0 && ok(); --n) pieces.emplace_back(Piece(code_));
  }
  void GetEnum(Allocation::Kind& kind) {
    const uint64_t number = Number();
    if (number > static_cast<uint64_t>(Allocation::Kind::kArena))
      Fail("an allocation is of no known kind");
    kind = static_cast<Allocation::Kind>(number);
  }
  void GetEnum(ElementType& type) {
    const uint64_t number = Number();
    if (number > INT32_MAX || (number != 0 && !IsElementType(static_cast<int32_t>(number)))) {
      return Fail("an element type is none that is known");
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
    if (kind != static_cast<uint64_t>(Shape::Kind::kArray)) {
      return Fail("a shape is of no known kind");
    }
    ElementType type = ElementType::kInvalid;
    GetEnum(type);
    std::vector<Dimension> dimensions;
    for (uint64_t n = Count(); n > 0 && ok(); --n) {
      bool bounded = false;
      int64_t size = 0;
      Get(bounded);
      Get(size);
      if (size < 0 || dimensions.size() == static_cast<size_t>(kMaxRank)) {
        return Fail("a shape has a negative size or too many of them");
      }
      dimensions.push_back(bounded ? Dimension::Bounded(size) : Dimension(size));
    }
    std::vector<int64_t> order;
    Get(order);
    if (!ok()) return;
    if (type == ElementType::kInvalid) return Fail("a shape has no element type");
    if (!order.empty() && !IsPermutation(order, std::ssize(dimensions))) {
      return Fail("a shape's layout is no order of its dimensions");
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

  std::string_view rest_;  // of the description
  Pieces code_, constants_;
  const std::shared_ptr<const void> owner_;
  int64_t depth_ = 0;
  int nesting_ = 0;
  std::string problem_;
};

// Borrows from the artefact.
Result<NewContainer> ContainerOf(const Artefact& artefact) {
  Writer writer;
  writer.Put(artefact);
  if (!writer.problem.empty()) {
    return Unimplemented("'", artefact.program.name, "' cannot be saved: it has ", writer.problem);
  }
  return std::move(writer.file);
}

}  // namespace

Result<std::string> Save(const Artefact& artefact) {
  KILN_ASSIGN_OR_RETURN(const NewContainer container, ContainerOf(artefact));
  std::string file;
  file.reserve(BytesOf(container));
  KILN_RETURN_IF_ERROR(WriteContainer(container, [&](std::string_view part) {
    file += part;
    return OkStatus();
  }));
  return file;
}

Status SaveFile(const Artefact& artefact, const std::string& path) {
  KILN_ASSIGN_OR_RETURN(const NewContainer container, ContainerOf(artefact));
  auto write = [&]() -> Status {
    KILN_ASSIGN_OR_RETURN(OutputFile file, OutputFile::Create(path));
    KILN_RETURN_IF_ERROR(
        WriteContainer(container, [&](std::string_view part) { return file.Write(part); }));
    return file.Commit();
  };
  const Status written = write();
  return written.ok() ? written : written.WithContext(path);
}

Result<Artefact> Restore(std::string_view bytes, std::shared_ptr<const void> owner) {
  KILN_ASSIGN_OR_RETURN(const OpenContainer file, ReadContainer(bytes));
  Reader reader(file, std::move(owner));
  Artefact artefact;
  reader.Get(artefact);
  if (!reader.ok()) {
    return InvalidArgument("the saved program is damaged: ", reader.problem());
  }
  KILN_RETURN_IF_ERROR(CheckProgram(artefact.program));
  return artefact;
}

Result<Artefact> RestoreFile(const std::string& path) {
  auto read = [&]() -> Result<Artefact> {
    KILN_ASSIGN_OR_RETURN(InputFile file, InputFile::Open(path));
    const std::optional<int64_t> size = file.remaining();
    if (!size) return InvalidArgument("the file is empty, or no regular file");
    KILN_ASSIGN_OR_RETURN(FilePages mapped, file.Rest(*size));
    const auto pages = std::make_shared<const FilePages>(std::move(mapped));
    return Restore(pages->text(), pages);
  };
  Result<Artefact> artefact = read();
  return artefact.ok() ? std::move(artefact) : artefact.status().WithContext(path);
}

Result<std::string> FingerprintOf(const Program& program) {
  Writer writer;
  writer.Put(BuildId());
  writer.Put(program.id);
  writer.Put(program.name);
  writer.Put(program.target);
  writer.Put(program.signature);
  writer.Put(program.donatable);
  if (!writer.problem.empty()) {
    return Unimplemented("'", program.name, "' has no fingerprint: it has ", writer.problem);
  }
  return HexText(HashOf(writer.file.description));
}

}  // namespace kiln::program
