// A StableHLO program as written, without semantics: operations with operands, attributes and
// regions. The readers of text and of bytecode make the same tree of the same program; the importer
// makes an ir::Module of it.
//
// Everything is in the generic form: the abbreviations of pretty text are attributes, operands and
// regions under the names in the dialects' definitions.
//   - Properties and attributes are one list.
//   - Attributes that text may omit are absent from the tree if text omits them, and if bytecode
//     has their default.
//   - A function is "func.func" with sym_name (kString), function_type (kType), sym_visibility
//     (kString; absent if public), arg_attrs and res_attrs (kArray of kDictionary; absent if all
//     are empty), and a region, without a block for a declaration.
//   - "func.call" has callee (kSymbol); "stablehlo.custom_call" has call_target_name (kString);
//     "stablehlo.composite" has name (kString), composite_attributes, decomposition (kSymbol).
//   - Several lists of variadic operands follow each other. If their lengths are not determined,
//     there is an attribute operandSegmentSizes (kDenseArray of i32).
//   - Tokens, checks and the interpreter's operations are like any other: "check.expect_eq".
#pragma once

#include <cstdint>
#include <deque>
#include <memory>
#include <string>
#include <string_view>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "base/status.h"
#include "stablehlo/mlir/attribute.h"
#include "stablehlo/mlir/location.h"
#include "stablehlo/mlir/type.h"

namespace kiln::mlir {

struct Block;
struct Operation;
struct Region;

// A result of an operation or an argument of a block.
struct Value {
  const Type* type = nullptr;
  Operation* operation = nullptr;  // whose result it is, or null
  Block* block = nullptr;          // whose argument it is, or null
  int64_t index = 0;               // which of the results or arguments
  int64_t id = 0;                  // dense in the module: an index into Module::num_values()
  const Source* source = nullptr;  // of an argument; null where nothing is told
};

struct Operation {
  std::string_view name;  // "stablehlo.add"; the module keeps it
  std::vector<Value*> operands;
  std::vector<Value*> results;
  AttributeList attributes;
  std::vector<Region*> regions;
  Block* parent = nullptr;  // null for the module's root
  Location location;
  const Source* source = nullptr;  // null where nothing is told

  // Null if absent.
  const Attribute* attribute(std::string_view key) const { return Find(attributes, key); }
};

struct Block {
  std::vector<Value*> arguments;
  std::vector<Operation*> operations;
  Region* parent = nullptr;
};

struct Region {
  std::vector<Block*> blocks;
  Operation* parent = nullptr;
  int64_t depth = 0;  // regions around it
};

inline constexpr int64_t kMaxRegionDepth = 100;

// Owns all parts of a tree, in flat lists, so that trees of any depth can be destroyed.
class Module {
 public:
  Module();
  Module(const Module&) = delete;
  Module& operator=(const Module&) = delete;

  // The "builtin.module", with a region of one block. Text without a module has one around it.
  Operation* root() { return root_; }
  const Operation* root() const { return root_; }
  Block* body() const { return root_->regions[0]->blocks[0]; }
  // Makes the "builtin.module", if it is the only content of the root's block, the root.
  void Unwrap();
  int64_t num_values() const { return static_cast<int64_t>(values_.size()); }

  // The unique type equal to this; fails on overflowing sizes, and on too many parts.
  Result<const Type*> Get(Type type);
  // Keeps an attribute. Elements are checked against the type and brought into the form of one
  // element where all are equal.
  Result<const Attribute*> Make(Attribute attribute);
  std::string_view Name(std::string_view name);
  const Source* GetSource(const Source& source);

  // A new operation, at the block's end; the root's block for null.
  Operation* AddOperation(Block* block, std::string_view name, Location location);
  Value* AddResult(Operation* operation, const Type* type);
  // Null if regions are nested too deep.
  Region* AddRegion(Operation* operation);
  Block* AddBlock(Region* region);
  Value* AddArgument(Block* block, const Type* type);

 private:
  Value* NewValue(const Type* type);

  Operation* root_ = nullptr;
  std::deque<Operation> operations_;
  std::deque<Region> regions_;
  std::deque<Block> blocks_;
  std::deque<Value> values_;
  std::deque<Type> types_;
  std::deque<Attribute> attributes_;
  std::deque<Source> sources_;
  std::unordered_map<std::string, const Type*> types_by_key_;
  std::unordered_set<std::string> names_;
};

}  // namespace kiln::mlir
