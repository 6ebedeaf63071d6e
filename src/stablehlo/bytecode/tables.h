// The tables of attributes and types, in the tree's forms: entries of the dialect vhlo are
// converted to StableHLO's. Private to the bytecode reader.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "stablehlo/bytecode/container.h"
#include "stablehlo/mlir/operation.h"

namespace kiln::stablehlo {

class Tables {
 public:
  // Both must outlive this. `size` is the size of the whole input, which bounds memory.
  Tables(const Container& container, mlir::Module& module, size_t size);

  // Reads all entries, so that each is validated, even unreferenced ones.
  Status ReadAll();

  // An index in the input, and its entry.
  Result<const mlir::Type*> ReadType(Input& input);
  Result<const mlir::Attribute*> ReadAttribute(Input& input);
  // Optional, with a flag; null if absent.
  Result<const mlir::Attribute*> ReadOptionalAttribute(Input& input);
  // A location attribute; null if empty.
  Result<const mlir::Source*> ReadLocation(Input& input);
  // By an index read before, at `offset`.
  Result<const mlir::Type*> TypeAt(uint64_t index, size_t offset);
  Result<const mlir::Attribute*> AttributeAt(uint64_t index, size_t offset);

  // Makes an attribute; the byte is for messages.
  Result<const mlir::Attribute*> Make(mlir::Attribute attribute, size_t offset);
  Result<const mlir::Attribute*> MakeText(mlir::AttributeKind kind, std::string_view text,
                                          size_t offset);
  Result<const mlir::Attribute*> MakeInt(int64_t value, int64_t width, size_t offset);
  Result<const mlir::Attribute*> MakeInts(const std::vector<int64_t>& values, size_t offset);
  Result<const mlir::Attribute*> MakeEnum(std::string_view name, std::string_view value,
                                          size_t offset);
  Result<const mlir::Type*> GetType(mlir::Type type, size_t offset);
  Result<const mlir::Type*> GetInteger(int64_t width);
  Result<const mlir::Type*> GetFloat(mlir::FloatKind kind);
  // Copies are charged to the budget, because a few bytes can repeat a long string many times.
  Status Spend(size_t bytes, size_t offset);

  mlir::Module& module() { return module_; }

 private:
  using Attribute = mlir::Attribute;
  using AttributeKind = mlir::AttributeKind;
  using Type = mlir::Type;

  enum class State : uint8_t { kUnread, kReading, kRead };
  enum class LocationKind : uint8_t { kUnknown, kFile, kName, kCall, kFused };
  // Locations refer to each other by the index of the attribute, and are walked when an operation
  // has them.
  struct Location {
    LocationKind kind = LocationKind::kUnknown;
    std::string_view text;  // kFile, kName
    int32_t line = 0;
    int32_t column = 0;
    std::vector<uint32_t> children;
    const mlir::Source* source = nullptr;
    bool told = false;  // whether `source` is found out
  };
  struct Slot {
    State state = State::kUnread;
    const Attribute* attribute = nullptr;  // null of locations
    int32_t location = -1;                 // where it is one: its place in `locations_`
  };
  struct TypeSlot {
    State state = State::kUnread;
    const Type* type = nullptr;
  };

  // tables.cc
  Status Enter(State& state, size_t offset);
  Result<const Attribute*> ReadAttributeEntry(uint64_t index);
  Result<const Type*> ReadTypeEntry(uint64_t index);
  Result<std::vector<int64_t>> ReadInts(Input& input);
  Result<std::vector<const Type*>> ReadTypes(Input& input);
  Result<std::string_view> ReadString(Input& input);
  // An attribute that is a string, and its text.
  Result<std::string_view> ReadStringAttribute(Input& input);
  Result<uint64_t> ReadInteger(Input& input, int64_t width);
  Result<double> ReadDouble(Input& input);
  Result<const Attribute*> ReadNumber(Input& input);  // a type and a value of it
  Result<const Attribute*> ReadArray(Input& input);
  Result<const Attribute*> ReadTypeAttribute(Input& input);
  // Pairs of a name and a value.
  Result<const Attribute*> ReadDictionary(Input& input);
  Result<std::string_view> ReadName(Input& input);

  // elements.cc
  Result<const Attribute*> ReadElements(Input& input);
  Result<const Attribute*> MakeElements(const Type* type, std::string_view blob, size_t offset);

  // vhlo_attributes.cc
  Result<const Attribute*> ReadVhloAttribute(Input& input);
  Result<const Attribute*> ReadVhloEnum(Input& input, size_t which);
  Result<const Attribute*> ReadAlias(Input& input);
  Result<const Attribute*> ReadResultAccuracy(Input& input);
  Result<const Attribute*> ReadMesh(Input& input, uint64_t code);
  Status AppendMeshPart(Input& input, std::string& text);
  Status AppendMeshPart(const Attribute& part, size_t offset, std::string& text);

  // vhlo_types.cc
  Result<const Type*> ReadVhloType(Input& input);
  Result<const Type*> ReadTensor(Input& input, bool has_encoding);
  Result<const Type*> ReadQuantized(Input& input, bool per_axis);
  Result<const Type*> ReadBuffer(Input& input);

  // builtin.cc
  Result<const Attribute*> ReadBuiltinAttribute(Input& input, uint64_t index);
  Result<const Attribute*> ReadSymbol(Input& input, bool nested);
  Result<const Attribute*> ReadDenseArray(Input& input);
  Result<const Attribute*> ReadResource(Input& input);
  Result<const Type*> ReadBuiltinType(Input& input);
  Result<const Type*> ReadTextType(std::string_view text, size_t offset);

  // locations.cc
  Status ReadLocationEntry(Input& input, uint64_t code, uint64_t index);
  Status ReadChildren(Input& input, uint64_t count, Location& location);
  Status CheckLocations();
  // The result of a walk so far.
  struct Told {
    std::string_view name;
    std::string_view file;
    int32_t line = 0;
    int32_t column = 0;
    int64_t steps = 0;
  };
  void Tell(const Location& location, int64_t depth, Told& told) const;

  const Container& container_;
  mlir::Module& module_;
  size_t budget_ = 0;
  size_t source_budget_ = 0;
  int64_t depth_ = 0;
  std::vector<Slot> attributes_;
  std::vector<Location> locations_;
  std::unordered_map<const Attribute*, std::string_view> names_;  // that strings are used as
  std::vector<TypeSlot> types_;
};

}  // namespace kiln::stablehlo
