#include "stablehlo/import/importer.h"

#include <algorithm>
#include <cstring>

#include "ir/verifier.h"
#include "stablehlo/import/op.h"

namespace kiln::stablehlo {
namespace {

using ir::Instruction;
using mlir::Attribute;
using mlir::AttributeKind;

// Regions and specialised functions inside of each other.
constexpr int64_t kMaxDepth = 200;
constexpr size_t kMaxSpecialised = 10'000;
// Operations that are imported, and parts of their results' types.
constexpr int64_t kMaxCharged = int64_t{1} << 22;
// Arguments of functions that are imported for their values: shapes, and sizes of dimensions.
constexpr int64_t kMaxKnownElements = kMaxRank;

void AddSymbols(const Attribute* attribute, std::vector<std::string_view>& names) {
  if (!attribute) return;
  if (attribute->is(AttributeKind::kSymbol)) names.push_back(attribute->text);
  for (const Attribute* item : attribute->items) AddSymbols(item, names);
}

// The functions that a region's operations name, with repetition.
void AddCallees(const mlir::Region& region, std::vector<std::string_view>& names) {
  for (const mlir::Block* block : region.blocks) {
    for (const mlir::Operation* operation : block->operations) {
      for (std::string_view key :
           {"callee", "called_computations", "decomposition", "infeed", "programs"}) {
        AddSymbols(operation->attribute(key), names);
      }
      for (const mlir::Region* inner : operation->regions) AddCallees(*inner, names);
    }
  }
}

std::string TextOr(const mlir::Operation& operation, std::string_view key, std::string_view other) {
  const Attribute* attribute = operation.attribute(key);
  return attribute && attribute->is(AttributeKind::kString) ? attribute->text : std::string(other);
}

bool IsPublic(const mlir::Operation& function) {
  return TextOr(function, "sym_visibility", "public") == "public";
}

// Layouts mean nothing in StableHLO.
Shape Plain(const Shape& shape) {
  if (shape.is_array()) return Shape(shape.type(), shape.dimensions());
  Shape plain = shape;
  for (Shape& element : plain.mutable_elements()) element = Plain(element);
  return plain;
}

bool HasSymbol(const Shape& shape) {
  bool has = false;
  for (const Dimension& d : shape.dimensions()) has |= d.is_symbolic();
  for (const Shape& element : shape.elements()) has |= HasSymbol(element);
  return has;
}

class Deeper {
 public:
  explicit Deeper(int64_t& depth) : depth_(depth) { ++depth_; }
  ~Deeper() { --depth_; }
  Deeper(const Deeper&) = delete;
  Deeper& operator=(const Deeper&) = delete;

 private:
  int64_t& depth_;
};

}  // namespace

bool UsesUnknownSizes(const mlir::Region& region) {
  for (const mlir::Block* block : region.blocks) {
    for (const mlir::Value* argument : block->arguments) {
      if (HasUnknownSize(*argument->type)) return true;
    }
    for (const mlir::Operation* operation : block->operations) {
      for (const mlir::Value* result : operation->results) {
        if (HasUnknownSize(*result->type)) return true;
      }
      for (const mlir::Region* inner : operation->regions) {
        if (UsesUnknownSizes(*inner)) return true;
      }
    }
  }
  return false;
}

std::string PlaceOf(const mlir::Operation& operation) {
  const std::string source = operation.source ? operation.source->Describe() : "";
  return Cat(operation.location, ": '", operation.name, "'",
             source.empty() ? "" : Cat(" (", source, ")"));
}

Instruction* Body::AddParameter(const Shape& shape, std::string name, std::string op_name) {
  const auto number = static_cast<int64_t>(computation_->parameters().size());
  return computation_->Create({.opcode = Opcode::kParameter,
                               .attributes = {{Attr::kParameterNumber, number}},
                               .shape = shape,
                               .name = std::move(name),
                               .op_name = std::move(op_name)});
}

Result<Instruction*> Body::Find(const mlir::Value* value) {
  auto found = values_.find(value);
  if (found != values_.end()) return found->second;
  if (!outer_) return InvalidArgument("an operand is not defined before it is used");
  KILN_ASSIGN_OR_RETURN(Instruction * outside, outer_->Find(value));
  KILN_ASSIGN_OR_RETURN(Instruction * copy, Copy(outside));
  if (!copy) {
    const std::string what =
        value->operation ? PlaceOf(*value->operation) : "an argument of a function or region";
    return Unimplemented("the region uses the value of ", what,
                         ", which is not known when the program is imported; this is not "
                         "implemented for regions of this operation");
  }
  values_[value] = copy;
  return copy;
}

Result<Instruction*> Body::Copy(Instruction* instruction) {
  Builder b(computation_, instruction->op_name());
  if (instruction->IsConstant()) return b.Constant(instruction->shared_literal());
  if (instruction->opcode() == Opcode::kBroadcast && instruction->operand(0)->IsConstant()) {
    Instruction* constant = b.Constant(instruction->operand(0)->shared_literal());
    return b.Add(Opcode::kBroadcast, {constant}, instruction->attributes(), instruction->shape());
  }
  std::shared_ptr<const Literal> known = importer_.folder().Find(instruction);
  if (!known || !known->shape().is_array()) return nullptr;
  return b.Constant(std::move(known));
}

Status Importer::Place(const mlir::Operation& operation, const Status& status) {
  if (placed_) return status;
  placed_ = true;
  return status.WithContext(PlaceOf(operation));
}

Status Importer::Charge(std::span<mlir::Value* const> values) {
  ++charged_;
  for (const mlir::Value* value : values) charged_ += value->type->parts;
  if (charged_ <= kMaxCharged) return OkStatus();
  return ResourceExhausted("the program is larger than ", kMaxCharged,
                           " operations and parts of types, once it is written out");
}

Importer::Importer(const mlir::Module& tree, const ImportOptions& options)
    : tree_(tree), options_(options), folder_(options.interrupt) {}

Result<std::unique_ptr<ir::Module>> Importer::Run() {
  KILN_RETURN_IF_ERROR(FindFunctions());
  KILN_ASSIGN_OR_RETURN(Function * entry, FindEntry());
  entry_ = entry;
  const std::string name = TextOr(*entry->operation, "sym_name", "main");
  module_ = std::make_unique<ir::Module>(TextOr(*tree_.root(), "sym_name", name));
  KILN_RETURN_IF_ERROR(ImportCallees(entry));
  KILN_ASSIGN_OR_RETURN(std::vector<Shape> arguments, EntryArguments(*entry));
  const std::vector<std::shared_ptr<const Literal>> known(arguments.size());
  KILN_ASSIGN_OR_RETURN(ir::Computation * computation,
                        ImportFunction(*entry, name, arguments, known));
  module_->set_entry(computation);
  KILN_RETURN_IF_ERROR(AddAliases(*entry));
  if (options_.entry_attributes) ReadEntryAttributes(*entry);
  const Instruction* culprit = nullptr;
  KILN_RETURN_IF_ERROR(ir::CheckModule(*module_, &culprit));
  module_->SortComputations();
  return std::move(module_);
}

Status Importer::FindFunctions() {
  for (const mlir::Operation* operation : tree_.body()->operations) {
    if (operation->name == "sdy.mesh") continue;
    if (operation->name != "func.func") {
      return Unimplemented(PlaceOf(*operation), " outside of functions is not implemented");
    }
    const Attribute* type = operation->attribute("function_type");
    const Attribute* name = operation->attribute("sym_name");
    const bool whole = type && type->is(AttributeKind::kType) && type->type &&
                       type->type->is(mlir::TypeKind::kFunction) && name &&
                       name->is(AttributeKind::kString) && operation->regions.size() == 1;
    if (!whole) {
      return InvalidArgument(PlaceOf(*operation),
                             ": expected sym_name, function_type and one region");
    }
    Function function{.operation = operation, .type = type->type};
    function.is_dynamic = UsesUnknownSizes(*operation->regions[0]);
    for (const mlir::Type* input : type->type->inputs) {
      function.is_dynamic |= HasUnknownSize(*input);
    }
    if (!functions_.try_emplace(name->text, std::move(function)).second) {
      return InvalidArgument(PlaceOf(*operation), ": there are two functions @", name->text);
    }
  }
  return OkStatus();
}

Result<Importer::Function*> Importer::FindEntry() {
  if (!options_.entry.empty()) {
    auto found = functions_.find(options_.entry);
    if (found != functions_.end()) return &found->second;
    return NotFound("the module has no function @", options_.entry);
  }
  auto main = functions_.find("main");
  if (main != functions_.end()) return &main->second;
  if (functions_.size() == 1) return &functions_.begin()->second;
  Function* entry = nullptr;
  for (auto& [name, function] : functions_) {
    if (!IsPublic(*function.operation)) continue;
    if (entry) {
      return InvalidArgument("the module has no function @main, and several that are public; ",
                             "the name of one must be given");
    }
    entry = &function;
  }
  if (!entry) return InvalidArgument("the module has no function that is public");
  return entry;
}

Result<Importer::Function*> Importer::FunctionOf(std::string_view name) {
  auto found = functions_.find(name);
  if (found == functions_.end()) return InvalidArgument("there is no function @", name);
  return &found->second;
}

Status Importer::ImportCallees(Function* entry) {
  struct Frame {
    Function* function;
    std::string_view name;
    std::vector<std::string_view> callees;
    size_t next = 0;
  };
  std::vector<Frame> stack;
  auto enter = [&](Function* function, std::string_view name) {
    function->visit = Function::Visit::kNow;
    stack.push_back({function, name, {}});
    AddCallees(*function->operation->regions[0], stack.back().callees);
  };
  enter(entry, "");
  while (!stack.empty()) {
    if (std::ssize(stack) > ir::kMaxCallDepth) {
      return ResourceExhausted(PlaceOf(*stack.back().function->operation),
                               ": calls nest more than ", ir::kMaxCallDepth, " deep");
    }
    Frame& top = stack.back();
    if (top.next < top.callees.size()) {
      const std::string_view name = top.callees[top.next++];
      auto found = functions_.find(name);
      // The error is reported at the call.
      if (found == functions_.end()) continue;
      if (found->second.visit == Function::Visit::kNow) {
        return InvalidArgument(PlaceOf(*found->second.operation), ": the function @", name,
                               " calls itself; functions must not be recursive");
      }
      if (found->second.visit == Function::Visit::kNot) enter(&found->second, name);
      continue;
    }
    Function* function = top.function;
    if (function != entry && !function->is_dynamic) {
      KILN_ASSIGN_OR_RETURN(std::vector<Shape> arguments, DeclaredArguments(*function));
      const std::vector<std::shared_ptr<const Literal>> known(arguments.size());
      KILN_ASSIGN_OR_RETURN(function->computation,
                            ImportFunction(*function, top.name, arguments, known));
    }
    function->visit = Function::Visit::kDone;
    stack.pop_back();
  }
  return OkStatus();
}

Result<std::vector<Shape>> Importer::DeclaredArguments(const Function& function) const {
  std::vector<Shape> shapes;
  for (size_t i = 0; i < function.type->inputs.size(); ++i) {
    Result<Shape> shape = ShapeOf(*function.type->inputs[i]);
    if (!shape.ok()) {
      return shape.status().WithContext(Cat(PlaceOf(*function.operation), ": argument ", i));
    }
    shapes.push_back(*std::move(shape));
  }
  return shapes;
}

Result<std::vector<Shape>> Importer::EntryArguments(const Function& entry) const {
  const std::vector<Shape>& given = options_.arguments;
  if (given.empty()) return DeclaredArguments(entry);
  const std::vector<const mlir::Type*>& types = entry.type->inputs;
  if (given.size() != types.size()) {
    return InvalidArgument(PlaceOf(*entry.operation), ": takes ", types.size(),
                           " arguments; shapes were given for ", given.size());
  }
  std::vector<Shape> shapes;
  for (size_t i = 0; i < given.size(); ++i) {
    if (HasSymbol(given[i]) || !Fits(*types[i], given[i])) {
      return InvalidArgument(PlaceOf(*entry.operation), ": argument ", i, " is of ", *types[i],
                             "; the shape ", given[i], " was given for it");
    }
    shapes.push_back(Plain(given[i]));
  }
  return shapes;
}

std::shared_ptr<const Literal> Importer::SmallValue(const Instruction* instruction) {
  const Shape& shape = instruction->shape();
  const bool small = shape.is_array() && IsInteger(shape.type()) && shape.is_static() &&
                     shape.num_elements() <= kMaxKnownElements;
  return small ? folder_.Find(instruction) : nullptr;
}

Result<Importer::Callee> Importer::FindCallee(std::string_view name) {
  KILN_ASSIGN_OR_RETURN(Function * function, FunctionOf(name));
  if (function->computation) return Callee{function->computation, function->type->results.size()};
  KILN_ASSIGN_OR_RETURN(std::vector<Shape> shapes, DeclaredArguments(*function));
  const std::vector<std::shared_ptr<const Literal>> known(shapes.size());
  KILN_ASSIGN_OR_RETURN(ir::Computation * computation,
                        ImportFunction(*function, name, shapes, known));
  return Callee{computation, function->type->results.size()};
}

size_t Importer::ParameterCountOf(std::string_view function) const {
  auto found = functions_.find(function);
  return found == functions_.end() ? 0 : found->second.type->inputs.size();
}

Result<Importer::Callee> Importer::FindCallee(std::string_view name,
                                              std::span<Instruction* const> arguments) {
  KILN_ASSIGN_OR_RETURN(Function * function, FunctionOf(name));
  const std::vector<const mlir::Type*>& types = function->type->inputs;
  if (arguments.size() != types.size()) {
    return InvalidArgument("the function @", name, " takes ", types.size(), " arguments; found ",
                           arguments.size());
  }
  for (size_t i = 0; i < types.size(); ++i) {
    if (Fits(*types[i], arguments[i]->shape())) continue;
    return InvalidArgument("argument ", i, " of the function @", name, " is of ", *types[i],
                           "; found ", arguments[i]->shape());
  }
  Callee callee{function->computation, function->type->results.size()};
  if (callee.computation) return callee;
  std::string key(name);
  std::vector<Shape> shapes;
  std::vector<std::shared_ptr<const Literal>> known;
  for (Instruction* argument : arguments) {
    known.push_back(SmallValue(argument));
    shapes.push_back(argument->shape());
    key += Cat("|", argument->shape(), known.back() ? Cat("=", *known.back()) : "");
  }
  auto [made, fresh] = specialised_.try_emplace(std::move(key), nullptr);
  if (fresh) {
    if (specialised_.size() > kMaxSpecialised) {
      return ResourceExhausted("functions are called with more than ", kMaxSpecialised,
                               " different shapes");
    }
    KILN_ASSIGN_OR_RETURN(made->second, ImportFunction(*function, name, shapes, known));
  }
  callee.computation = made->second;
  return callee;
}

namespace {

// JAX tells names as the places of arguments, or in an attribute.
std::string NameOfArgument(const mlir::Operation& function, const mlir::Value& argument) {
  if (argument.source && !argument.source->name.empty()) return argument.source->name;
  const Attribute* list = function.attribute("arg_attrs");
  const auto index = static_cast<size_t>(argument.index);
  if (!list || !list->is(AttributeKind::kArray) || index >= list->items.size()) return {};
  const Attribute* name = mlir::Find(list->items[index]->fields, "jax.arg_info");
  return name && name->is(AttributeKind::kString) ? std::string(name->text) : std::string();
}

}  // namespace

Result<ir::Computation*> Importer::ImportFunction(
    Function& function, std::string_view name, std::span<const Shape> arguments,
    std::span<const std::shared_ptr<const Literal>> known) {
  const mlir::Operation& operation = *function.operation;
  auto fail = [&](const Status& status) { return Place(operation, status); };
  Result<const mlir::Block*> block = BlockOf(*operation.regions[0], arguments.size());
  if (!block.ok()) return fail(block.status());
  KILN_RETURN_IF_ERROR(Charge((*block)->arguments));
  Body body(*this, module_->AddComputation(name), nullptr);
  for (size_t i = 0; i < arguments.size(); ++i) {
    const mlir::Value* argument = (*block)->arguments[i];
    if (argument->type != function.type->inputs[i]) {
      return fail(InvalidArgument("found an argument of ", *argument->type, "; expected ",
                                  *function.type->inputs[i]));
    }
    // The entry's parameters have the names that the program gives them ("p['layer00']['b1']"), if
    // any: these are the user's.
    std::string told = NameOfArgument(operation, *argument);
    constexpr size_t kLongestName = 100;
    std::string name_of_parameter = told.substr(0, kLongestName);
    if (told.empty() && &function == entry_) name_of_parameter = Cat("arg", i);
    Instruction* parameter =
        body.AddParameter(arguments[i], std::move(name_of_parameter), std::move(told));
    const Attribute* list = operation.attribute("arg_attrs");
    if (list && list->is(AttributeKind::kArray) && i < list->items.size()) {
      Attach(list->items[i]->fields, *body.computation(), static_cast<int64_t>(i));
    }
    if (known[i]) folder_.Set(parameter, known[i]);
    body.Bind(argument, parameter);
  }
  // JAX ends some functions as regions end.
  const std::vector<mlir::Operation*>& operations = (*block)->operations;
  const bool as_region = !operations.empty() && operations.back()->name == "stablehlo.return";
  KILN_ASSIGN_OR_RETURN(Values results,
                        ImportBlock(**block, body, as_region ? "stablehlo.return" : "func.return"));
  const std::vector<const mlir::Type*>& types = function.type->results;
  if (results.size() != types.size()) {
    return fail(InvalidArgument("found ", results.size(), " results; expected ", types.size()));
  }
  for (size_t i = 0; i < types.size(); ++i) {
    if (Fits(*types[i], results[i]->shape())) continue;
    return fail(InvalidArgument("result ", i, " is declared as ", *types[i], "; found ",
                                results[i]->shape()));
  }
  Builder b(body.computation());
  body.computation()->set_root(b.OneOrTuple(std::move(results)));
  KILN_RETURN_IF_ERROR(b.status());
  return body.computation();
}

// A result that a parameter is meant for has its memory.
Status Importer::AddAliases(const Function& entry) {
  const Attribute* list = entry.operation->attribute("arg_attrs");
  if (!list) return OkStatus();
  const auto results = static_cast<int64_t>(entry.type->results.size());
  for (size_t i = 0; i < list->items.size() && i < entry.type->inputs.size(); ++i) {
    const Attribute* number = mlir::Find(list->items[i]->fields, "tf.aliasing_output");
    if (!number) continue;
    const std::optional<int64_t> result = mlir::IntOf(*number);
    if (!result || *result < 0 || *result >= results) {
      return InvalidArgument(PlaceOf(*entry.operation), ": tf.aliasing_output of argument ", i,
                             " names no result; expected 0 to below ", results);
    }
    ir::InputOutputAlias alias{.parameter = static_cast<int64_t>(i)};
    if (results > 1) alias.output_index.push_back(*result);
    module_->aliases().push_back(std::move(alias));
  }
  return OkStatus();
}

void Importer::ReadEntryAttributes(const Function& entry) const {
  auto read = [&](std::string_view lists, size_t count) {
    std::vector<EntryAttributes::Map> all(count);
    const Attribute* list = entry.operation->attribute(lists);
    for (size_t i = 0; list && i < list->items.size() && i < count; ++i) {
      for (const mlir::NamedAttribute& field : list->items[i]->fields) {
        const Attribute& value = *field.value;
        if (value.is(AttributeKind::kString)) {
          all[i].emplace(field.name, value.text);
        } else if (value.is(AttributeKind::kInteger)) {
          all[i].emplace(field.name, Cat(value.integer));
        } else if (value.is(AttributeKind::kBool) || value.is(AttributeKind::kUnit)) {
          const bool is_true = value.is(AttributeKind::kUnit) || value.boolean;
          all[i].emplace(field.name, is_true ? "true" : "false");
        }
      }
    }
    return all;
  };
  options_.entry_attributes->arguments = read("arg_attrs", entry.type->inputs.size());
  options_.entry_attributes->results = read("res_attrs", entry.type->results.size());
}

Result<const mlir::Block*> Importer::BlockOf(const mlir::Region& region, size_t arguments) const {
  if (region.blocks.empty()) return Unimplemented("there is no body, which is not implemented");
  if (region.blocks.size() > 1) {
    return Unimplemented("a region of ", region.blocks.size(), " blocks is not implemented");
  }
  const mlir::Block* block = region.blocks[0];
  if (block->arguments.size() == arguments) return block;
  return InvalidArgument("found a region of ", block->arguments.size(), " arguments; expected ",
                         arguments);
}

void Importer::Attach(const mlir::AttributeList& list, ir::Computation& computation,
                      int64_t first) {
  const Attribute* attributes = mlir::Find(list, "mhlo.frontend_attributes");
  if (!attributes) return;
  ir::FrontendAttributesRef& known = frontend_attributes_[attributes];
  if (!known) {
    std::vector<ir::FrontendAttributes::Entry> entries;
    for (const mlir::NamedAttribute& field : attributes->fields) {
      if (!field.value->is(AttributeKind::kString)) continue;
      entries.emplace_back(field.name, field.value->text);
    }
    known = ir::MakeFrontendAttributes(std::move(entries));
  }
  // Instructions are made at the end.
  auto at = computation.instructions().end();
  for (int64_t i = computation.instruction_count(); i > first; --i) {
    (*--at)->set_frontend_attributes(known);
  }
}

Result<Values> Importer::ImportBlock(const mlir::Block& block, Body& body,
                                     std::string_view terminator) {
  const Deeper deeper(depth_);
  if (depth_ > kMaxDepth) {
    return ResourceExhausted("regions and calls nest more than ", kMaxDepth, " deep");
  }
  for (const mlir::Operation* operation : block.operations) {
    if (operation->name != terminator) {
      KILN_RETURN_IF_ERROR(options_.interrupt.Check());
      KILN_RETURN_IF_ERROR(Charge(operation->results));
      const int64_t made = body.computation()->instruction_count();
      KILN_ASSIGN_OR_RETURN(Values values, Lower(*this, body, *operation));
      Attach(operation->attributes, *body.computation(), made);
      for (size_t i = 0; i < values.size(); ++i) body.Bind(operation->results[i], values[i]);
      continue;
    }
    if (operation != block.operations.back()) {
      return Place(*operation, InvalidArgument("found more operations behind it; expected none"));
    }
    Values values;
    for (const mlir::Value* operand : operation->operands) {
      Result<Instruction*> value = body.Find(operand);
      if (!value.ok()) return Place(*operation, value.status());
      values.push_back(*value);
    }
    return values;
  }
  return InvalidArgument("found a block that does not end with ", terminator);
}

Result<ir::Computation*> Importer::ImportRegion(const mlir::Region& region, Body& outer,
                                                std::string_view name,
                                                std::span<const Shape> arguments) {
  KILN_ASSIGN_OR_RETURN(const mlir::Block* block, BlockOf(region, arguments.size()));
  Body body(*this, module_->AddComputation(name), &outer);
  for (size_t i = 0; i < arguments.size(); ++i) {
    const mlir::Value* argument = block->arguments[i];
    if (!Fits(*argument->type, arguments[i])) {
      return InvalidArgument("found an argument of ", *argument->type, " in the region; expected ",
                             arguments[i]);
    }
    body.Bind(argument, body.AddParameter(arguments[i]));
  }
  KILN_ASSIGN_OR_RETURN(Values results, ImportBlock(*block, body, "stablehlo.return"));
  Builder b(body.computation());
  body.computation()->set_root(b.OneOrTuple(std::move(results)));
  KILN_RETURN_IF_ERROR(b.status());
  return body.computation();
}

Result<std::unique_ptr<ir::Module>> Import(const mlir::Module& tree, const ImportOptions& options) {
  return Importer(tree, options).Run();
}

}  // namespace kiln::stablehlo
