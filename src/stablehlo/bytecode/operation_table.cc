#include "stablehlo/bytecode/operation_table.h"

#include "stablehlo/bytecode/version.h"

namespace kiln::stablehlo {
namespace {

using mlir::Attribute;
using mlir::AttributeKind;
using mlir::AttributeList;

}  // namespace

OperationTable::OperationTable(const Container& container, Tables& tables, size_t size)
    : container_(container),
      tables_(tables),
      upgrade_(tables),
      names_(container.operations.size()) {
  constexpr size_t kFreeAttributes = 1 << 16;
  constexpr size_t kAttributesPerByte = 16;
  attributes_left_ = kAttributesPerByte * size + kFreeAttributes;
}

Result<const OperationTable::Name*> OperationTable::NameAt(uint64_t index, size_t offset) {
  Name& name = names_[index];
  if (name.known) return &name;
  const Container::OperationName& written = container_.operations[index];
  if (written.dialect == "vhlo") {
    name.vhlo = FindVhloOperation(written.name);
    if (!name.vhlo) {
      return Unimplemented("byte ", offset, ": found 'vhlo.", written.name.substr(0, 80),
                           "', which no version of vhlo up to ", NewestVersion(), " has");
    }
    name.full = name.vhlo->name;
  } else if (written.dialect == "stablehlo" || written.dialect == "chlo") {
    return Unimplemented("byte ", offset, ": found '", written.dialect, ".",
                         written.name.substr(0, 80), "'; this bytecode is not a portable artifact,",
                         " which has operations of vhlo");
  } else {
    name.full =
        tables_.module().Name(written.name.empty() ? std::string(written.dialect)
                                                   : Cat(written.dialect, ".", written.name));
  }
  name.known = true;
  return &name;
}

Result<const AttributeList*> OperationTable::Attributes(uint64_t index, const Told& told,
                                                        size_t offset) {
  const std::tuple key(index, told.dictionary.value_or(UINT64_MAX),
                       told.properties.value_or(UINT64_MAX));
  auto found = attributes_.find(key);
  if (found == attributes_.end()) {
    KILN_ASSIGN_OR_RETURN(AttributeList made, MakeAttributes(index, told, offset));
    found = attributes_.emplace(key, std::move(made)).first;
  }
  const size_t count = found->second.size();
  if (count > attributes_left_) {
    return ResourceExhausted("byte ", offset, ": operations have so many attributes that they ",
                             "take more memory than is given for bytecode of this size");
  }
  attributes_left_ -= count;
  return &found->second;
}

Status OperationTable::AddDictionary(const Attribute& dictionary, AttributeList& list,
                                     size_t offset) {
  if (!dictionary.is(AttributeKind::kDictionary)) {
    return FailAtByte(offset, "an operation with another attribute", "a dictionary");
  }
  if (list.empty()) {
    list = dictionary.fields;
    return OkStatus();
  }
  for (const mlir::NamedAttribute& field : dictionary.fields) {
    KILN_RETURN_IF_ERROR(tables_.Spend(field.name.size(), offset));
    if (!mlir::Insert(list, field.name, field.value)) {
      return FailAtByte(offset, Cat("the attribute '", field.name.substr(0, 80), "' twice"),
                        "each attribute once");
    }
  }
  return OkStatus();
}

Result<AttributeList> OperationTable::MakeAttributes(uint64_t index, const Told& told,
                                                     size_t offset) {
  AttributeList list;
  if (told.dictionary) {
    KILN_ASSIGN_OR_RETURN(const Attribute* dictionary,
                          tables_.AttributeAt(*told.dictionary, offset));
    KILN_RETURN_IF_ERROR(AddDictionary(*dictionary, list, offset));
  }
  const Name& name = names_[index];
  const bool registered = container_.operations[index].registered;
  if (told.properties && !registered) {
    // The producer did not know the operation.
    Input input = container_.properties[*told.properties];
    KILN_ASSIGN_OR_RETURN(const Attribute* dictionary, tables_.ReadAttribute(input));
    KILN_RETURN_IF_ERROR(input.ExpectEnd("properties"));
    KILN_RETURN_IF_ERROR(AddDictionary(*dictionary, list, offset));
  }
  if (name.vhlo) {
    Told rest = told;
    if (!registered) rest.properties.reset();
    return MakeVhloAttributes(*name.vhlo, rest, std::move(list), offset);
  }
  if (!told.properties || !registered) return list;
  // Partitions among devices, ignored.
  if (container_.operations[index].dialect == "sdy") return list;
  if (name.full != "builtin.module") {
    return Unimplemented("byte ", offset, ": the properties of '", name.full.substr(0, 80),
                         "' are not implemented");
  }
  Input input = container_.properties[*told.properties];
  for (std::string_view key : {"sym_name", "sym_visibility"}) {
    KILN_ASSIGN_OR_RETURN(const Attribute* value, tables_.ReadOptionalAttribute(input));
    if (value && !mlir::Insert(list, tables_.module().Name(key), value)) {
      return FailAtByte(offset, Cat("the attribute '", key, "' twice"), "each attribute once");
    }
  }
  KILN_RETURN_IF_ERROR(input.ExpectEnd("properties"));
  return list;
}

// Attributes of vhlo are in the properties, in order and without names, or by name among the
// others.
Result<AttributeList> OperationTable::MakeVhloAttributes(const VhloOperation& vhlo,
                                                         const Told& told, AttributeList others,
                                                         size_t offset) {
  std::vector<const Attribute*> values;
  std::optional<Input> input;
  if (told.properties) input = container_.properties[*told.properties];
  for (const VhloAttribute& attribute : vhlo.attributes) {
    if (attribute.added) continue;
    const Attribute* value = nullptr;
    if (input) {
      KILN_ASSIGN_OR_RETURN(value, tables_.ReadAttribute(*input));
    } else {
      value = mlir::Find(others, attribute.name);
      if (!value) {
        return FailAtByte(offset, Cat("'", vhlo.name, "' without '", attribute.name, "'"),
                          "all its attributes");
      }
      std::erase_if(
          others, [&](const mlir::NamedAttribute& other) { return other.name == attribute.name; });
    }
    values.push_back(value);
  }
  if (input) KILN_RETURN_IF_ERROR(input->ExpectEnd("properties"));
  KILN_ASSIGN_OR_RETURN(AttributeList list, upgrade_.Convert(vhlo, values, offset));
  for (const mlir::NamedAttribute& attribute : list) {
    if (!mlir::Insert(others, attribute.name, attribute.value)) {
      return FailAtByte(offset, Cat("the attribute '", attribute.name, "' twice"),
                        "each attribute once");
    }
  }
  return others;
}

}  // namespace kiln::stablehlo
