#include "stablehlo/text/reader.h"

namespace kiln::stablehlo {

// module [@name] [attributes {...}] {...}
Status Reader::ReadModule(Operation* operation, Scope& scope) {
  const size_t at = scanner_.position();
  if (scanner_.Looking("@")) {
    KILN_RETURN_IF_ERROR(ReadAttributeOf(operation, "sym_name", "symbol"));
  }
  if (scanner_.TakeKeyword("attributes")) {
    KILN_RETURN_IF_ERROR(ReadDictionary(operation->attributes));
  }
  if (operation->parent->parent->parent != module_->root()) {
    return Unimplemented(scanner_.Where(at), ": modules inside modules are not implemented");
  }
  return ReadRegion(operation, &scope, {});
}

// func.func [public] @name(%a: type {...}, ...) [-> results] [attributes {...}] [{...}]
Status Reader::ReadFunction(Operation* operation, Scope& scope) {
  const size_t at = scanner_.position();
  // Functions are public by default.
  if (!scanner_.TakeKeyword("public") && !scanner_.Looking("@")) {
    const std::string_view visibility = scanner_.TakeWord();
    if (visibility != "private" && visibility != "nested") {
      return scanner_.FailAt(at, "public, private, nested or the name of a function");
    }
    KILN_ASSIGN_OR_RETURN(const Attribute* value,
                          MakeText(AttributeKind::kString, std::string(visibility)));
    KILN_RETURN_IF_ERROR(Set(operation, "sym_visibility", value, at));
  }
  KILN_RETURN_IF_ERROR(ReadAttributeOf(operation, "sym_name", "symbol"));
  List<Argument> arguments;
  List<const Attribute*> argument_attributes, result_attributes;
  Type function{.kind = mlir::TypeKind::kFunction};
  bool named = false;
  KILN_RETURN_IF_ERROR(ReadParameters(arguments, function.inputs, argument_attributes, &named));
  if (scanner_.Take("->")) {
    KILN_RETURN_IF_ERROR(ReadFunctionResults(function.results, result_attributes));
  }
  if (scanner_.TakeKeyword("attributes")) {
    KILN_RETURN_IF_ERROR(ReadDictionary(operation->attributes));
  }
  Attribute type{.kind = AttributeKind::kType};
  KILN_ASSIGN_OR_RETURN(type.type, GetType(std::move(function), at));
  KILN_ASSIGN_OR_RETURN(const Attribute* type_attribute, Make(std::move(type), at));
  KILN_RETURN_IF_ERROR(Set(operation, "function_type", type_attribute, at));
  KILN_RETURN_IF_ERROR(SetDictionaries(operation, "arg_attrs", std::move(argument_attributes)));
  KILN_RETURN_IF_ERROR(SetDictionaries(operation, "res_attrs", std::move(result_attributes)));
  if (scanner_.Looking("{") && !scanner_.Looking("{-#")) {
    if (!named) return scanner_.Fail("names for the parameters of a function that has a body");
    return ReadRegion(operation, &scope, arguments);
  }
  if (!module_->AddRegion(operation)) return scanner_.Fail("regions that are not nested so deep");
  return OkStatus();
}

// All parameters have names, or none has.
Status Reader::ReadParameters(List<Argument>& arguments, List<const Type*>& types,
                              List<const Attribute*>& attributes, bool* named) {
  KILN_RETURN_IF_ERROR(scanner_.Expect("("));
  *named = true;
  if (scanner_.Take(")")) return OkStatus();
  *named = scanner_.Looking("%");
  do {
    Argument argument;
    argument.position = scanner_.position();
    if (*named) {
      KILN_ASSIGN_OR_RETURN(argument.name, scanner_.Name('%', "the name of a parameter"));
      KILN_RETURN_IF_ERROR(scanner_.Expect(":"));
    }
    KILN_ASSIGN_OR_RETURN(argument.type, ReadType());
    Attribute dictionary{.kind = AttributeKind::kDictionary};
    if (scanner_.Looking("{")) KILN_RETURN_IF_ERROR(ReadDictionary(dictionary.fields));
    KILN_ASSIGN_OR_RETURN(const Attribute* made, Make(std::move(dictionary), argument.position));
    KILN_ASSIGN_OR_RETURN(argument.source, ReadOptionalLocation());
    types.push_back(argument.type);
    attributes.push_back(made);
    arguments.push_back(argument);
  } while (scanner_.Take(","));
  return scanner_.Expect(")");
}

// One type, or several in parentheses with attributes each.
Status Reader::ReadFunctionResults(List<const Type*>& types, List<const Attribute*>& attributes) {
  if (!scanner_.Take("(")) {
    KILN_ASSIGN_OR_RETURN(const Type* type, ReadType());
    types.push_back(type);
    return OkStatus();
  }
  if (scanner_.Take(")")) return OkStatus();
  do {
    const size_t at = scanner_.position();
    KILN_ASSIGN_OR_RETURN(const Type* type, ReadType());
    Attribute dictionary{.kind = AttributeKind::kDictionary};
    if (scanner_.Looking("{")) KILN_RETURN_IF_ERROR(ReadDictionary(dictionary.fields));
    KILN_ASSIGN_OR_RETURN(const Attribute* made, Make(std::move(dictionary), at));
    types.push_back(type);
    attributes.push_back(made);
  } while (scanner_.Take(","));
  return scanner_.Expect(")");
}

Status Reader::SetDictionaries(Operation* operation, std::string_view name,
                               List<const Attribute*> dictionaries) {
  bool empty = true;
  for (const Attribute* dictionary : dictionaries) empty &= dictionary->fields.empty();
  if (empty) return OkStatus();
  Attribute list{.kind = AttributeKind::kArray};
  list.items = std::move(dictionaries);
  const size_t at = scanner_.position();
  KILN_ASSIGN_OR_RETURN(const Attribute* made, Make(std::move(list), at));
  return Set(operation, name, made, at);
}

}  // namespace kiln::stablehlo
