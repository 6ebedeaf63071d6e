// The section of operations: regions, blocks and values, by the tables.
#include <algorithm>
#include <vector>

#include "stablehlo/bytecode/bytecode.h"
#include "stablehlo/bytecode/operation_table.h"

namespace kiln::stablehlo {
namespace {

using mlir::AttributeList;
using mlir::Block;
using mlir::Operation;
using mlir::Region;
using mlir::Value;

// The parts of an operation, as bits.
enum Mask : uint8_t {
  kHasAttributes = 1,
  kHasResults = 2,
  kHasOperands = 4,
  kHasSuccessors = 8,
  kHasRegions = 16,
  kHasUseListOrders = 32,
  kHasProperties = 64,
};

class Reader {
 public:
  Reader(const Container& container, size_t size)
      : container_(container),
        module_(std::make_unique<mlir::Module>()),
        tables_(container, *module_, size),
        operations_(container, tables_, size),
        end_(container.ir.offset() + container.ir.remaining()) {}

  Result<std::unique_ptr<mlir::Module>> Read();

 private:
  // Values by their numbers, up to an isolated region.
  struct Scope {
    std::vector<Value*> values;  // null where the operation comes later
  };
  // The numbers of a region's own values.
  struct Numbers {
    size_t next = 0;
    size_t end = 0;
  };

  Status ReadBlock(Input& input, Block* block, Numbers& numbers);
  Status ReadArguments(Input& input, Block* block, Numbers& numbers);
  Status ReadOperation(Input& input, Block* block, Numbers& numbers);
  Status ReadResults(Input& input, Operation* operation);
  Status ReadOperands(Input& input, Operation* operation);
  Status ReadRegions(Input& input, Operation* operation);
  Status ReadRegion(Input& input, Operation* operation, bool isolated);
  Status SkipUseListOrders(Input& input, uint64_t values);
  Status Define(Value* value, Numbers& numbers, size_t offset);

  const Container& container_;
  std::unique_ptr<mlir::Module> module_;
  Tables tables_;
  OperationTable operations_;
  const size_t end_;  // of the operations, in the input
  std::vector<Scope> scopes_;
  size_t outstanding_ = 0;  // values that regions around have still to define
};

Result<std::unique_ptr<mlir::Module>> Reader::Read() {
  KILN_RETURN_IF_ERROR(tables_.ReadAll());
  Input input = container_.ir;
  Numbers none;
  scopes_.emplace_back();
  KILN_RETURN_IF_ERROR(ReadBlock(input, module_->body(), none));
  KILN_RETURN_IF_ERROR(input.ExpectEnd("the operations"));
  const auto& operations = module_->body()->operations;
  if (operations.size() == 1 && operations[0]->name == "builtin.module") module_->Unwrap();
  return std::move(module_);
}

Status Reader::ReadBlock(Input& input, Block* block, Numbers& numbers) {
  bool has_arguments = false;
  KILN_ASSIGN_OR_RETURN(uint64_t operations,
                        input.Flagged(&has_arguments, "a number of operations"));
  if (operations > input.remaining()) {
    return input.Fail(Cat(input.remaining(), " bytes up to the end"),
                      Cat(operations, " operations"));
  }
  if (has_arguments) KILN_RETURN_IF_ERROR(ReadArguments(input, block, numbers));
  for (uint64_t i = 0; i < operations; ++i) {
    KILN_RETURN_IF_ERROR(ReadOperation(input, block, numbers));
  }
  return OkStatus();
}

Status Reader::ReadArguments(Input& input, Block* block, Numbers& numbers) {
  KILN_ASSIGN_OR_RETURN(uint64_t count, input.Count("a number of arguments"));
  for (uint64_t i = 0; i < count; ++i) {
    const size_t at = input.offset();
    bool has_location = true;
    const mlir::Type* type = nullptr;
    if (container_.format >= kArgumentsWithoutLocation) {
      KILN_ASSIGN_OR_RETURN(uint64_t index, input.Flagged(&has_location, "the index of a type"));
      KILN_ASSIGN_OR_RETURN(type, tables_.TypeAt(index, at));
    } else {
      KILN_ASSIGN_OR_RETURN(type, tables_.ReadType(input));
    }
    Value* argument = module_->AddArgument(block, type);
    if (has_location) {
      KILN_ASSIGN_OR_RETURN(argument->source, tables_.ReadLocation(input));
    }
    KILN_RETURN_IF_ERROR(Define(argument, numbers, at));
  }
  if (container_.format < kUseListOrders) return OkStatus();
  KILN_ASSIGN_OR_RETURN(uint8_t has_orders, input.Byte("whether there are orders of uses"));
  return has_orders != 0 ? SkipUseListOrders(input, count) : OkStatus();
}

Status Reader::Define(Value* value, Numbers& numbers, size_t offset) {
  if (numbers.next == numbers.end) {
    return FailAtByte(offset, "one value more", "as many values as the region has");
  }
  scopes_.back().values[numbers.next++] = value;
  --outstanding_;
  return OkStatus();
}

// Use orders are irrelevant to the program.
Status Reader::SkipUseListOrders(Input& input, uint64_t values) {
  uint64_t count = 1;
  if (values > 1) {
    KILN_ASSIGN_OR_RETURN(count, input.Count("a number of values"));
  }
  for (uint64_t i = 0; i < count; ++i) {
    if (values > 1) KILN_RETURN_IF_ERROR(input.Index(values, "a value").status());
    bool pairs = false;
    KILN_ASSIGN_OR_RETURN(uint64_t uses, input.Flagged(&pairs, "a number of uses"));
    for (uint64_t use = 0; use < uses; ++use) {
      KILN_RETURN_IF_ERROR(input.VarInt("the index of a use").status());
    }
  }
  return OkStatus();
}

Status Reader::ReadOperation(Input& input, Block* block, Numbers& numbers) {
  const size_t at = input.offset();
  KILN_ASSIGN_OR_RETURN(uint64_t index,
                        input.Index(container_.operations.size(), "the name of an operation"));
  KILN_ASSIGN_OR_RETURN(const OperationTable::Name* name, operations_.NameAt(index, at));
  const size_t mask_at = input.offset();
  KILN_ASSIGN_OR_RETURN(uint8_t mask, input.Byte("what an operation has"));
  const int known = container_.format >= kProperties      ? 127
                    : container_.format >= kUseListOrders ? 63
                                                          : 31;
  if (mask > known) return FailAtByte(mask_at, Cat("the bits ", +mask), Cat("at most ", known));
  if ((mask & kHasSuccessors) != 0) {
    return Unimplemented("byte ", at, ": branches between blocks are not implemented");
  }
  std::string_view full = name->full;
  // As in text, there is one kind of return, except in functions.
  if (full == "stablehlo.return" && block->parent->parent->name == "func.func")
    full = "func.return";
  if (full == "builtin.module" && block->parent->parent != module_->root()) {
    return Unimplemented("byte ", at, ": modules inside modules are not implemented");
  }
  Operation* operation = module_->AddOperation(block, full, {.offset = static_cast<int64_t>(at)});
  KILN_ASSIGN_OR_RETURN(operation->source, tables_.ReadLocation(input));
  OperationTable::Told told;
  if ((mask & kHasAttributes) != 0) {
    KILN_ASSIGN_OR_RETURN(told.dictionary,
                          input.Index(container_.attributes.size(), "the index of a dictionary"));
  }
  if ((mask & kHasProperties) != 0) {
    KILN_ASSIGN_OR_RETURN(told.properties,
                          input.Index(container_.properties.size(), "the index of properties"));
  }
  KILN_ASSIGN_OR_RETURN(const AttributeList* attributes, operations_.Attributes(index, told, at));
  operation->attributes = *attributes;
  if ((mask & kHasResults) != 0) KILN_RETURN_IF_ERROR(ReadResults(input, operation));
  if ((mask & kHasOperands) != 0) KILN_RETURN_IF_ERROR(ReadOperands(input, operation));
  if ((mask & kHasUseListOrders) != 0) {
    KILN_RETURN_IF_ERROR(SkipUseListOrders(input, operation->results.size()));
  }
  for (Value* result : operation->results) KILN_RETURN_IF_ERROR(Define(result, numbers, at));
  return (mask & kHasRegions) != 0 ? ReadRegions(input, operation) : OkStatus();
}

Status Reader::ReadResults(Input& input, Operation* operation) {
  KILN_ASSIGN_OR_RETURN(uint64_t count, input.Count("a number of results"));
  for (uint64_t i = 0; i < count; ++i) {
    KILN_ASSIGN_OR_RETURN(const mlir::Type* type, tables_.ReadType(input));
    module_->AddResult(operation, type);
  }
  return OkStatus();
}

Status Reader::ReadOperands(Input& input, Operation* operation) {
  KILN_ASSIGN_OR_RETURN(uint64_t count, input.Count("a number of operands"));
  const std::vector<Value*>& values = scopes_.back().values;
  operation->operands.reserve(count);
  for (uint64_t i = 0; i < count; ++i) {
    const size_t at = input.offset();
    KILN_ASSIGN_OR_RETURN(uint64_t index, input.VarInt("a value"));
    if (index >= values.size() || !values[index]) {
      return FailAtByte(at, Cat("value ", index), "a value that is defined before");
    }
    operation->operands.push_back(values[index]);
  }
  return OkStatus();
}

Status Reader::ReadRegions(Input& input, Operation* operation) {
  bool isolated = false;
  KILN_ASSIGN_OR_RETURN(uint64_t count, input.Flagged(&isolated, "a number of regions"));
  if (count > input.remaining()) {
    return input.Fail(Cat(input.remaining(), " bytes up to the end"), Cat(count, " regions"));
  }
  // Isolated regions are in a section of their own, for lazy loading.
  const bool in_section = isolated && container_.format >= kLazyRegions;
  Input section;
  if (in_section) {
    KILN_ASSIGN_OR_RETURN(section, input.Section(kIrSection));
  }
  for (uint64_t i = 0; i < count; ++i) {
    KILN_RETURN_IF_ERROR(ReadRegion(in_section ? section : input, operation, isolated));
  }
  return in_section ? section.ExpectEnd("the regions") : OkStatus();
}

Status Reader::ReadRegion(Input& input, Operation* operation, bool isolated) {
  const size_t at = input.offset();
  Region* region = module_->AddRegion(operation);
  if (!region) {
    return ResourceExhausted("byte ", at, ": regions are nested more than ", mlir::kMaxRegionDepth,
                             " deep");
  }
  KILN_ASSIGN_OR_RETURN(uint64_t blocks, input.Count("a number of blocks"));
  if (blocks == 0) return OkStatus();
  if (isolated) scopes_.emplace_back();
  const size_t values_at = input.offset();
  KILN_ASSIGN_OR_RETURN(uint64_t values, input.VarInt("a number of values"));
  // Each takes at least a byte, and so do the pending values of enclosing regions.
  const size_t most = end_ - std::min(end_, input.offset() + outstanding_);
  if (values > most) {
    return FailAtByte(values_at, Cat(values, " values"),
                      Cat("at most ", most, ", as many as bytes follow for them"));
  }
  const size_t base = scopes_.back().values.size();
  Numbers numbers{base, base + values};
  scopes_.back().values.resize(numbers.end);
  outstanding_ += values;
  for (uint64_t i = 0; i < blocks; ++i) {
    KILN_RETURN_IF_ERROR(ReadBlock(input, module_->AddBlock(region), numbers));
  }
  if (numbers.next != numbers.end) {
    return input.Fail("the end of a region", Cat(numbers.end - numbers.next, " values more"));
  }
  if (isolated) {
    scopes_.pop_back();
  } else {
    scopes_.back().values.resize(base);
  }
  return OkStatus();
}

}  // namespace

Result<std::unique_ptr<mlir::Module>> ReadBytecode(std::string_view bytes,
                                                   std::shared_ptr<const void> owner) {
  KILN_ASSIGN_OR_RETURN(Container container, ReadContainer(bytes));
  container.owner = std::move(owner);
  return Reader(container, bytes.size()).Read();
}

}  // namespace kiln::stablehlo
