#include <algorithm>

#include "stablehlo/text/forms.h"
#include "stablehlo/text/reader.h"

namespace kiln::stablehlo {
namespace {

struct ResultName {
  std::string_view name;
  int64_t count = 1;
  size_t position = 0;
};

std::string_view ParentName(const mlir::Block* block) { return block->parent->parent->name; }

// Names outside are not seen inside.
bool IsIsolated(std::string_view name) { return name == "func.func" || name == "builtin.module"; }

// The full name of a word without a dialect.
std::string_view WithDialect(std::string_view word, const mlir::Block* block) {
  if (word == "module") return "builtin.module";
  if (word == "func") return "func.func";
  if (word == "call") return "func.call";
  if (word != "return") return word;
  return ParentName(block) == "func.func" ? "func.return" : "stablehlo.return";
}

// Drops the defaults of a function, which the pretty form omits: public visibility, and lists of
// empty attributes.
void DropDefaults(mlir::AttributeList& attributes) {
  std::erase_if(attributes, [](const mlir::NamedAttribute& attribute) {
    if (attribute.name == "sym_visibility") return attribute.value->text == "public";
    if (attribute.name != "arg_attrs" && attribute.name != "res_attrs") return false;
    return std::ranges::all_of(attribute.value->items,
                               [](const auto* item) { return item->fields.empty(); });
  });
}

}  // namespace

Status Reader::ReadOperation(mlir::Block* block, Scope& scope) {
  std::vector<ResultName> names;
  if (scanner_.Looking("%")) {
    do {
      ResultName result;
      result.position = scanner_.position();
      KILN_ASSIGN_OR_RETURN(result.name, scanner_.Name('%', "the name of a result"));
      if (scanner_.Take(":")) {
        const size_t at = scanner_.position();
        KILN_ASSIGN_OR_RETURN(result.count, scanner_.Integer());
        if (result.count < 1) return scanner_.FailAt(at, "a number of results");
      }
      names.push_back(result);
    } while (scanner_.Take(","));
    KILN_RETURN_IF_ERROR(scanner_.Expect("="));
  }
  const size_t at = scanner_.position();
  Operation* operation = nullptr;
  KILN_RETURN_IF_ERROR(scanner_.Looking("\"") ? ReadGeneric(&operation, block, scope)
                                              : ReadPretty(&operation, block, scope));
  size_t next = 0;
  for (const ResultName& result : names) {
    const auto count = static_cast<size_t>(result.count);
    if (count > operation->results.size() - next) {
      return scanner_.FailAt(result.position, Cat("no more than ", operation->results.size(),
                                                  " results of '", operation->name, "'"));
    }
    List<Value*> values(operation->results.begin() + static_cast<std::ptrdiff_t>(next),
                        operation->results.begin() + static_cast<std::ptrdiff_t>(next + count));
    KILN_RETURN_IF_ERROR(Bind(scope, result.name, std::move(values), result.position));
    next += count;
  }
  if (!names.empty() && next != operation->results.size()) {
    return scanner_.FailAt(at, Cat("names for the ", operation->results.size(), " results of '",
                                   operation->name, "'"));
  }
  KILN_ASSIGN_OR_RETURN(operation->source, ReadOptionalLocation());
  return OkStatus();
}

// "name"(%operands) <{properties}> ({regions}) {attributes} : (types) -> types
Status Reader::ReadGeneric(Operation** made, mlir::Block* block, Scope& scope) {
  const size_t at = scanner_.position();
  KILN_ASSIGN_OR_RETURN(std::string name, scanner_.String());
  if (name.find('.') == std::string::npos || name.find('\0') != std::string::npos) {
    return scanner_.FailAt(at, "the name of an operation with its dialect");
  }
  Operation* operation = module_->AddOperation(block, CanonicalName(name), scanner_.LocationOf(at));
  *made = operation;
  KILN_RETURN_IF_ERROR(scanner_.Expect("("));
  KILN_RETURN_IF_ERROR(ReadOperands(operation, scope));
  KILN_RETURN_IF_ERROR(scanner_.Expect(")"));
  if (scanner_.Looking("[")) {
    return Unimplemented(scanner_.Where(scanner_.position()),
                         ": branches between blocks are not implemented");
  }
  if (scanner_.Take("<")) {
    KILN_RETURN_IF_ERROR(ReadDictionary(operation->attributes));
    KILN_RETURN_IF_ERROR(scanner_.Expect(">"));
  }
  if (scanner_.Looking("(")) KILN_RETURN_IF_ERROR(ReadRegions(operation, scope));
  if (scanner_.Looking("{")) KILN_RETURN_IF_ERROR(ReadDictionary(operation->attributes));
  if (operation->name == "func.func") DropDefaults(operation->attributes);
  return ReadTypesOf(operation, "function");
}

Status Reader::ReadPretty(Operation** made, mlir::Block* block, Scope& scope) {
  const size_t at = scanner_.position();
  const std::string_view word = scanner_.TakeWord();
  if (word.empty()) return scanner_.Fail("an operation");
  const std::string name = CanonicalName(WithDialect(word, block));
  const std::optional<std::string_view> form = FormOf(name);
  if (!form || form->empty()) {
    if (name.find('.') == std::string::npos) return scanner_.FailAt(at, "an operation");
    return Unimplemented(scanner_.Where(at), ": the operation '", name,
                         "' is not implemented in this form; the generic one is \"", name,
                         "\"(...) : (...) -> ...");
  }
  *made = module_->AddOperation(block, name, scanner_.LocationOf(at));
  return ReadForm(*made, *form, scope);
}

Status Reader::Bind(Scope& scope, std::string_view name, List<Value*> values, size_t position) {
  if (scope.names.try_emplace(name, std::move(values)).second) return OkStatus();
  return scanner_.FailAt(position, "a name that no value here has yet");
}

Result<mlir::Value*> Reader::ReadOperand(const Scope& scope) {
  const size_t at = scanner_.position();
  KILN_ASSIGN_OR_RETURN(std::string_view name, scanner_.Name('%', "a value"));
  int64_t index = 0;
  if (scanner_.Raw() == '#') {
    scanner_.Take("#");
    KILN_ASSIGN_OR_RETURN(index, scanner_.Integer());
  }
  for (const Scope* s = &scope; s; s = s->outer) {
    auto found = s->names.find(name);
    if (found == s->names.end()) continue;
    if (index < 0 || index >= static_cast<int64_t>(found->second.size())) {
      return scanner_.FailAt(at,
                             Cat("one of the ", found->second.size(), " results of '%", name, "'"));
    }
    return found->second[static_cast<size_t>(index)];
  }
  return scanner_.FailAt(at, "a value that is defined before");
}

Status Reader::ReadOperands(Operation* operation, const Scope& scope) {
  if (!scanner_.Looking("%")) return OkStatus();
  while (true) {
    KILN_ASSIGN_OR_RETURN(Value * value, ReadOperand(scope));
    operation->operands.push_back(value);
    const size_t behind = scanner_.end();
    if (!scanner_.Take(",")) return OkStatus();
    if (scanner_.Looking("%")) continue;
    scanner_.Rewind(behind);
    return OkStatus();
  }
}

Status Reader::AddResults(Operation* operation, const List<const Type*>& types) {
  for (const Type* type : types) module_->AddResult(operation, type);
  return OkStatus();
}

Status Reader::CheckOperands(const Operation& operation, const List<const Type*>& types,
                             size_t position) {
  if (types.size() != operation.operands.size()) {
    return scanner_.FailAt(position, Cat("types for the ", operation.operands.size(),
                                         " operands of '", operation.name, "'"));
  }
  for (size_t i = 0; i < types.size(); ++i) {
    const Type* type = operation.operands[i]->type;
    if (type == types[i]) continue;
    return InvalidArgument(scanner_.Where(position), ": found the type ", *types[i],
                           " for operand ", i, " of '", operation.name, "'; expected ", *type);
  }
  return OkStatus();
}

Status Reader::ReadRegion(Operation* operation, const Scope* outer,
                          std::span<const Argument> arguments) {
  const size_t at = scanner_.position();
  mlir::Region* region = module_->AddRegion(operation);
  if (!region) {
    return scanner_.FailAt(at, Cat("regions nested at most ", mlir::kMaxRegionDepth, " deep"));
  }
  KILN_RETURN_IF_ERROR(scanner_.Expect("{"));
  Scope scope;
  if (!IsIsolated(operation->name)) scope.outer = outer;
  if (!scanner_.Looking("^") && (!arguments.empty() || !scanner_.Looking("}"))) {
    mlir::Block* block = module_->AddBlock(region);
    for (const Argument& argument : arguments) {
      Value* value = module_->AddArgument(block, argument.type);
      value->source = argument.source;
      KILN_RETURN_IF_ERROR(Bind(scope, argument.name, {value}, argument.position));
    }
    KILN_RETURN_IF_ERROR(ReadBlock(region, block, scope));
  } else if (!arguments.empty()) {
    return scanner_.Fail("an operation, as the arguments of the block are told before");
  }
  while (scanner_.Looking("^")) {
    mlir::Block* block = module_->AddBlock(region);
    KILN_RETURN_IF_ERROR(scanner_.Name('^', "the name of a block").status());
    if (scanner_.Take("(") && !scanner_.Take(")")) {
      do {
        const size_t position = scanner_.position();
        KILN_ASSIGN_OR_RETURN(std::string_view name, scanner_.Name('%', "an argument"));
        KILN_RETURN_IF_ERROR(scanner_.Expect(":"));
        KILN_ASSIGN_OR_RETURN(const Type* type, ReadType());
        Value* value = module_->AddArgument(block, type);
        KILN_ASSIGN_OR_RETURN(value->source, ReadOptionalLocation());
        KILN_RETURN_IF_ERROR(Bind(scope, name, {value}, position));
      } while (scanner_.Take(","));
      KILN_RETURN_IF_ERROR(scanner_.Expect(")"));
    }
    KILN_RETURN_IF_ERROR(scanner_.Expect(":"));
    KILN_RETURN_IF_ERROR(ReadBlock(region, block, scope));
  }
  return scanner_.Expect("}");
}

// Up to the region's end or the next block.
Status Reader::ReadBlock(mlir::Region* region, mlir::Block* block, Scope& scope) {
  while (!scanner_.Looking("}") && !scanner_.Looking("^")) {
    if (scanner_.AtEnd()) return scanner_.Fail("'}'");
    KILN_RETURN_IF_ERROR(ReadOperation(block, scope));
  }
  return OkStatus();
}

}  // namespace kiln::stablehlo
