// The operations of vhlo of all versions, and the conversion of their attributes to StableHLO.
// Private to the bytecode reader.
#pragma once

#include <string_view>
#include <unordered_map>
#include <vector>

#include "stablehlo/bytecode/tables.h"
#include "stablehlo/mlir/operation.h"

namespace kiln::stablehlo {

struct VhloAttribute {
  std::string_view name;
  // The conversion; "" for the same attribute under the same name:
  //   ints, bools        elements: kDenseArray
  //   symbol, symbols    a string, or an array of them: kSymbol
  //   unit               true: kUnit; false: nothing
  //   number             an enumeration: its value as i32
  //   conv, gather, scatter, dot, algorithm, channel
  //                      a field of this record
  std::string_view kind;
  // The values omitted from text, with '|' between them; "" for none.
  std::string_view defaults;
  bool added = false;    // not in this version: a field that is empty, or 0
  bool dropped = false;  // of no meaning today
};

struct VhloOperation {
  std::string_view name;  // with the dialect that it has today: "stablehlo.add", "func.call"
  std::vector<VhloAttribute> attributes;  // in the order in which properties have them
};

// By its name with the version, "add_v1"; null if no supported version has it.
const VhloOperation* FindVhloOperation(std::string_view name);

// Turns the attributes of operations into those of StableHLO.
class Upgrade {
 public:
  explicit Upgrade(Tables& tables) : tables_(tables) {}

  // The values of the operation's attributes, without added ones, in their order.
  Result<mlir::AttributeList> Convert(const VhloOperation& operation,
                                      const std::vector<const mlir::Attribute*>& values,
                                      size_t offset);

 private:
  Result<const mlir::Attribute*> ConvertKind(const VhloAttribute& attribute,
                                             const mlir::Attribute& value, size_t offset);
  Result<const mlir::Attribute*> ConvertField(const mlir::Attribute& value, size_t offset);
  Result<const mlir::Attribute*> ConvertList(const mlir::Attribute& value, size_t offset);
  Result<const mlir::Attribute*> ConvertSymbol(const mlir::Attribute& value, size_t offset);

  Tables& tables_;
  // Cached lists, because many operations have the same.
  std::unordered_map<const mlir::Attribute*, const mlir::Attribute*> lists_;
};

}  // namespace kiln::stablehlo
