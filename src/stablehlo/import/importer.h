// The state of an import: functions, computations under construction, and known values.
#pragma once

#include <map>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "base/status.h"
#include "ir/ir.h"
#include "stablehlo/import/builder.h"
#include "stablehlo/import/fold.h"
#include "stablehlo/import/import.h"
#include "stablehlo/mlir/operation.h"

namespace kiln::stablehlo {

class Importer;

// A computation under construction, with a map from values of the tree to its instructions.
class Body {
 public:
  // `outer` is the body whose values the region may use, if known at import.
  Body(Importer& importer, ir::Computation* computation, Body* outer)
      : importer_(importer), computation_(computation), outer_(outer) {}

  ir::Computation* computation() const { return computation_; }
  void Bind(const mlir::Value* value, ir::Instruction* instruction) {
    values_[value] = instruction;
  }
  ir::Instruction* AddParameter(const Shape& shape, std::string name = {},
                                std::string op_name = {});
  Result<ir::Instruction*> Find(const mlir::Value* value);

 private:
  // A constant for an instruction of another body with a known value.
  Result<ir::Instruction*> Copy(ir::Instruction* instruction);

  Importer& importer_;
  ir::Computation* computation_;
  Body* outer_;
  std::unordered_map<const mlir::Value*, ir::Instruction*> values_;
};

class Importer {
 public:
  Importer(const mlir::Module& tree, const ImportOptions& options);

  Result<std::unique_ptr<ir::Module>> Run();

  ir::Module& module() { return *module_; }
  Folder& folder() { return folder_; }
  // The value of a few integers, such as sizes, if known; or null.
  std::shared_ptr<const Literal> SmallValue(const ir::Instruction* instruction);

  // The computation of a function for such arguments, and the form of its results: a value, or a
  // tuple.
  struct Callee {
    ir::Computation* computation = nullptr;
    size_t results = 0;
  };
  Result<Callee> FindCallee(std::string_view function, std::span<ir::Instruction* const> arguments);
  // The same for arguments of the declared types.
  Result<Callee> FindCallee(std::string_view function);
  size_t ParameterCountOf(std::string_view function) const;

  // Adds a block's operations to a body with bound arguments, and returns the operands of its
  // terminator. Fails without a terminator, or at the limit of depth.
  Result<Values> ImportBlock(const mlir::Block& block, Body& body, std::string_view terminator);
  // The single block of a region with this number of arguments.
  Result<const mlir::Block*> BlockOf(const mlir::Region& region, size_t arguments) const;
  // A region of scalars, or of other values of such shapes, as a computation. Values of outside
  // that it uses must be known at import.
  Result<ir::Computation*> ImportRegion(const mlir::Region& region, Body& outer,
                                        std::string_view name, std::span<const Shape> arguments);

  // A failure with the location of the operation, unless it has an inner location already.
  Status Place(const mlir::Operation& operation, const Status& status);
  // Gives the texts in the list's mhlo.frontend_attributes to the computation's instructions from
  // number `first` on.
  void Attach(const mlir::AttributeList& list, ir::Computation& computation, int64_t first);

 private:
  struct Function {
    const mlir::Operation* operation = nullptr;
    const mlir::Type* type = nullptr;
    bool is_dynamic = false;  // a size in it is not known
    enum class Visit : uint8_t { kNot, kNow, kDone } visit = Visit::kNot;
    ir::Computation* computation = nullptr;  // unless it is dynamic
  };

  Status FindFunctions();
  Result<Function*> FindEntry();
  Result<Function*> FunctionOf(std::string_view name);
  // Imports a function and its callees, callees first.
  Status ImportCallees(Function* entry);
  // For arguments of such shapes, with known values, or null.
  Result<ir::Computation*> ImportFunction(Function& function, std::string_view name,
                                          std::span<const Shape> arguments,
                                          std::span<const std::shared_ptr<const Literal>> known);
  Result<std::vector<Shape>> DeclaredArguments(const Function& function) const;
  Result<std::vector<Shape>> EntryArguments(const Function& entry) const;
  Status AddAliases(const Function& entry);
  void ReadEntryAttributes(const Function& entry) const;
  // Counts parts of types, because a few bytes of a program may have many, and operations, which
  // are imported once per shape.
  Status Charge(std::span<mlir::Value* const> values);

  const mlir::Module& tree_;
  const ImportOptions& options_;
  std::unique_ptr<ir::Module> module_;
  Folder folder_;
  std::map<std::string, Function, std::less<>> functions_;
  std::map<std::string, ir::Computation*> specialised_;
  std::unordered_map<const mlir::Attribute*, ir::FrontendAttributesRef> frontend_attributes_;
  const Function* entry_ = nullptr;
  int64_t depth_ = 0, charged_ = 0;
  bool placed_ = false;
};

// Whether a type in it has a dynamic size.
bool UsesUnknownSizes(const mlir::Region& region);

// "line 3, column 7: 'stablehlo.add'", the beginning of messages.
std::string PlaceOf(const mlir::Operation& operation);

}  // namespace kiln::stablehlo
