// The names of the operations in the input, and their attributes in the tree. Private to the
// bytecode reader.
#pragma once

#include <map>
#include <optional>
#include <string_view>
#include <tuple>
#include <vector>

#include "stablehlo/bytecode/operations.h"

namespace kiln::stablehlo {

class OperationTable {
 public:
  struct Name {
    std::string_view full;  // with its dialect, of today
    const VhloOperation* vhlo = nullptr;
    bool known = false;
  };
  // The dictionary and the properties of an operation, by their indices, if any.
  struct Told {
    std::optional<uint64_t> dictionary;
    std::optional<uint64_t> properties;
  };

  // Both must outlive this. `size` is the size of the whole input, which bounds memory.
  OperationTable(const Container& container, Tables& tables, size_t size);

  // By its valid index. The offset is the operation's, for messages.
  Result<const Name*> NameAt(uint64_t index, size_t offset);
  // The attributes of one operation, whose name was looked up before.
  Result<const mlir::AttributeList*> Attributes(uint64_t index, const Told& told, size_t offset);

 private:
  Result<mlir::AttributeList> MakeAttributes(uint64_t index, const Told& told, size_t offset);
  Result<mlir::AttributeList> MakeVhloAttributes(const VhloOperation& vhlo, const Told& told,
                                                 mlir::AttributeList others, size_t offset);
  Status AddDictionary(const mlir::Attribute& dictionary, mlir::AttributeList& list, size_t offset);

  const Container& container_;
  Tables& tables_;
  Upgrade upgrade_;
  std::vector<Name> names_;
  // Many operations have the same attributes: by name, dictionary and properties.
  std::map<std::tuple<uint64_t, uint64_t, uint64_t>, mlir::AttributeList> attributes_;
  size_t attributes_left_ = 0;
};

}  // namespace kiln::stablehlo
