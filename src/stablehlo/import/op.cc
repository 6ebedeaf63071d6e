#include "stablehlo/import/op.h"

#include <unordered_map>

namespace kiln::stablehlo {
namespace {

using ir::Instruction;
using mlir::Attribute;
using mlir::AttributeKind;

Status Missing(std::string_view name) {
  return InvalidArgument("the attribute ", name, " is missing");
}

Status WrongKind(std::string_view name, std::string_view expected) {
  return InvalidArgument("the attribute ", name, " must be ", expected);
}

// The rows by name.
struct Entry {
  const Row* row = nullptr;
  const PlainRow* plain = nullptr;
};

const std::unordered_map<std::string_view, Entry>& Table() {
  static const std::unordered_map<std::string_view, Entry> table = [] {
    std::unordered_map<std::string_view, Entry> entries;
    for (const PlainRow& row : PlainRows()) entries[row.name].plain = &row;
    for (auto rows : {ArithmeticRows(), CheckRows(), ChloRows(), CollectiveRows(), ControlRows(),
                      DynamicRows(), FoldRows(), GatherScatterRows(), ProductRows(),
                      QuantisedRows(), ScanRows(), ShapeRows(), TransferRows(), WindowRows()}) {
      for (const Row& row : rows) entries[row.name].row = &row;
    }
    return entries;
  }();
  return table;
}

Status Check(Count count, size_t found, std::string_view what) {
  const auto n = static_cast<int64_t>(found);
  if (n >= count.min && (count.max < 0 || n <= count.max)) return OkStatus();
  const std::string expected = count.max == count.min ? Cat(count.min)
                               : count.max < 0        ? Cat("at least ", count.min)
                                               : Cat("between ", count.min, " and ", count.max);
  return InvalidArgument("found ", n, " ", what, "; expected ", expected);
}

Status CheckCounts(const Op& op, const Entry& entry) {
  Count operands = entry.row ? entry.row->operands : Count(0);
  if (entry.plain) {
    const Arity arity = ArityOf(entry.plain->opcode);
    operands = Count(static_cast<int>(arity.min), static_cast<int>(arity.max));
  }
  KILN_RETURN_IF_ERROR(Check(operands, op.operation.operands.size(), "operands"));
  KILN_RETURN_IF_ERROR(
      Check(entry.row ? entry.row->results : Count(1), op.result_count(), "results"));
  return Check(entry.row ? entry.row->regions : Count(0), op.operation.regions.size(), "regions");
}

// An attribute as HLO's attribute of that name wants it.
Result<AttrValue> ValueOf(const Op& op, std::string_view name, const AttrInfo& info) {
  switch (info.kind) {
    case AttrKind::kInt: {
      KILN_ASSIGN_OR_RETURN(int64_t value, op.Int(name));
      return AttrValue(value);
    }
    case AttrKind::kInts: {
      const Attribute* attribute = op.Find(name);
      if (attribute && mlir::IntOf(*attribute) && !attribute->is(AttributeKind::kElements)) {
        return AttrValue(Ints{*mlir::IntOf(*attribute)});
      }
      KILN_ASSIGN_OR_RETURN(Ints values, op.IntList(name));
      return AttrValue(std::move(values));
    }
    case AttrKind::kBool: {
      KILN_ASSIGN_OR_RETURN(bool value, op.Bool(name, std::nullopt));
      return AttrValue(value);
    }
    case AttrKind::kFloat: {
      KILN_ASSIGN_OR_RETURN(double value, op.Float(name));
      return AttrValue(value);
    }
    case AttrKind::kText: {
      KILN_ASSIGN_OR_RETURN(std::string value, op.Word(name));
      return AttrValue(std::move(value));
    }
    case AttrKind::kGroups: {
      KILN_ASSIGN_OR_RETURN(Groups value, op.IntRows(name));
      return AttrValue(std::move(value));
    }
    default:
      return Internal("the attribute ", name, " is of a kind that plain rows do not have");
  }
}

Result<Values> LowerPlain(Op& op, const PlainRow& row) {
  Attributes attributes;
  for (std::string_view word : Split(row.attributes, ' ')) {
    const bool optional = word.ends_with("?");
    if (optional) word.remove_suffix(1);
    const size_t equal = word.find('=');
    const std::string_view name = word.substr(0, equal);
    const std::string_view hlo = equal == std::string_view::npos ? name : word.substr(equal + 1);
    if (optional && !op.Find(name)) continue;
    const AttrInfo* info = AttrByName(hlo);
    if (!info) return Internal("there is no attribute ", hlo);
    KILN_ASSIGN_OR_RETURN(AttrValue value, ValueOf(op, name, *info));
    attributes.Set(info->key, std::move(value));
  }
  KILN_ASSIGN_OR_RETURN(Shape declared, op.Declared(0));
  return op.One(op.b.Add(row.opcode, op.operands, std::move(attributes), declared));
}

bool AllOfOneType(const Op& op) {
  const mlir::Type* element = nullptr;
  auto same = [&](const mlir::Value* value) {
    if (!IsQuantized(*value->type)) return true;
    if (!element) element = value->type->element;
    return value->type->element == element;
  };
  bool all = true;
  for (const mlir::Value* operand : op.operation.operands) all &= same(operand);
  for (const mlir::Value* result : op.operation.results) all &= same(result);
  return all;
}

bool HasQuantized(const Op& op) {
  bool has = false;
  for (const mlir::Value* operand : op.operation.operands) has |= IsQuantized(*operand->type);
  for (const mlir::Value* result : op.operation.results) has |= IsQuantized(*result->type);
  return has;
}

Result<Values> LowerEntry(Op& op, const Entry& entry) {
  Result<Values> values = entry.row ? entry.row->lower(op) : LowerPlain(op, *entry.plain);
  // The builder's status is the first failure; after it nothing is made.
  KILN_RETURN_IF_ERROR(op.b.status());
  if (values.ok() && values->size() != op.result_count()) {
    return Internal("gives ", values->size(), " values for ", op.result_count(), " results");
  }
  return values;
}

Result<Values> LowerChecked(Op& op) {
  auto found = Table().find(op.operation.name);
  if (found == Table().end()) return Unimplemented("the operation is not implemented");
  const Entry& entry = found->second;
  KILN_RETURN_IF_ERROR(CheckCounts(op, entry));
  for (size_t i = 0; i < op.operation.operands.size(); ++i) {
    KILN_ASSIGN_OR_RETURN(Instruction * operand, op.body.Find(op.operation.operands[i]));
    if ((entry.plain || entry.row->arrays) && !operand->shape().is_array()) {
      return InvalidArgument("operand ", i, " is ", *op.operation.operands[i]->type,
                             "; expected a tensor");
    }
    op.operands.push_back(operand);
  }
  if (HasQuantized(op)) {
    const Quantised how = entry.row ? entry.row->quantised : entry.plain->quantised;
    if (how == Quantised::kNever) {
      return Unimplemented("the operation is not implemented for quantised types");
    }
    op.expressed = how == Quantised::kExpressed || (how == Quantised::kSame && !AllOfOneType(op));
  }
  for (size_t i = 0; op.expressed && i < op.operands.size(); ++i) {
    const mlir::Quantization* q = QuantizationOf(op.operand_type(i));
    if (q) op.operands[i] = Dequantise(op.b, op.operands[i], *q);
  }
  KILN_RETURN_IF_ERROR(op.b.status());
  KILN_ASSIGN_OR_RETURN(Values values, LowerEntry(op, entry));
  for (size_t i = 0; i < values.size(); ++i) {
    const mlir::Quantization* q = QuantizationOf(op.result_type(i));
    if (q && op.expressed) values[i] = Quantise(op.b, values[i], *q);
    KILN_RETURN_IF_ERROR(op.b.status());
    if (Fits(op.result_type(i), values[i]->shape())) continue;
    return InvalidArgument("result ", i, " is declared as ", op.result_type(i), "; found ",
                           values[i]->shape());
  }
  return values;
}

}  // namespace

Result<Values> Lower(Importer& importer, Body& body, const mlir::Operation& operation) {
  Op op(importer, body, operation);
  Result<Values> values = LowerChecked(op);
  if (values.ok()) return values;
  return importer.Place(operation, values.status());
}

Result<Values> LowerAs(Op& op, std::string_view name) {
  auto found = Table().find(name);
  if (found == Table().end()) return Unimplemented("the operation is not implemented");
  return LowerEntry(op, found->second);
}

Result<int64_t> Op::Int(std::string_view name, std::optional<int64_t> absent) const {
  const Attribute* attribute = Find(name);
  if (!attribute && absent) return *absent;
  if (!attribute) return Missing(name);
  if (std::optional<int64_t> value = mlir::IntOf(*attribute)) return *value;
  return WrongKind(name, "an integer");
}

Result<Ints> Op::IntList(std::string_view name, std::optional<Ints> absent) const {
  const Attribute* attribute = Find(name);
  if (!attribute && absent) return *std::move(absent);
  if (!attribute) return Missing(name);
  std::optional<Ints> values = mlir::IntsOf(*attribute);
  // No list of dimensions is longer.
  if (values && std::ssize(*values) <= kMaxRank) return *std::move(values);
  return WrongKind(name, Cat("a list of at most ", kMaxRank, " integers"));
}

Result<bool> Op::Bool(std::string_view name, std::optional<bool> absent) const {
  const Attribute* attribute = Find(name);
  if (!attribute && absent) return *absent;
  if (!attribute) return Missing(name);
  if (attribute->is(AttributeKind::kBool)) return attribute->boolean;
  if (attribute->is(AttributeKind::kUnit)) return true;
  return WrongKind(name, "true or false");
}

Result<double> Op::Float(std::string_view name, std::optional<double> absent) const {
  const Attribute* attribute = Find(name);
  if (!attribute && absent) return *absent;
  if (!attribute) return Missing(name);
  if (attribute->is(AttributeKind::kFloat)) return attribute->number;
  return WrongKind(name, "a float");
}

Result<std::string> Op::Word(std::string_view name, std::optional<std::string_view> absent) const {
  const Attribute* attribute = Find(name);
  if (!attribute && absent) return std::string(*absent);
  if (!attribute) return Missing(name);
  switch (attribute->kind) {
    case AttributeKind::kEnum:
    case AttributeKind::kString:
    case AttributeKind::kSymbol:
      return attribute->text;
    default:
      return WrongKind(name, "a word");
  }
}

Result<const Attribute*> Op::Record(std::string_view name) const {
  const Attribute* attribute = Find(name);
  if (!attribute) return Missing(name);
  if (attribute->is(AttributeKind::kRecord)) return attribute;
  return WrongKind(name, "a record");
}

Result<Groups> Op::IntRows(std::string_view name) const {
  const Attribute* attribute = Find(name);
  if (!attribute) return Missing(name);
  std::optional<Ints> values = mlir::IntsOf(*attribute);
  const bool matrix = attribute->is(AttributeKind::kElements) && attribute->type->rank() == 2;
  if (!values || !matrix) return WrongKind(name, "a matrix of integers");
  constexpr int64_t kMostRows = 1 << 20;
  if (attribute->type->dimensions[0] > kMostRows) return WrongKind(name, "a matrix of fewer rows");
  Groups rows(static_cast<size_t>(attribute->type->dimensions[0]));
  const auto width = static_cast<size_t>(attribute->type->dimensions[1]);
  for (size_t i = 0; i < values->size(); ++i) {
    if ((*values)[i] != -1) rows[i / width].push_back((*values)[i]);
  }
  return rows;
}

Result<ElementType> Op::ResultElement(size_t i) const {
  if (!result_type(i).is_tensor()) {
    return InvalidArgument("result ", i, " is declared as ", result_type(i), "; expected a tensor");
  }
  const mlir::Quantization* q = expressed ? QuantizationOf(result_type(i)) : nullptr;
  return ElementTypeOf(q ? *q->expressed : *result_type(i).element);
}

Result<Shape> Op::Declared(size_t i) const {
  if (HasShape(i)) return ResultShape(i);
  KILN_ASSIGN_OR_RETURN(ElementType element, ResultElement(i));
  return Shape::Scalar(element);
}

Result<Ints> Op::KnownInts(size_t i, std::string_view what) {
  return KnownIntsOf(operands[i], Cat("operand ", i, ", ", what, ","));
}

Result<Ints> Op::KnownIntsOf(const Instruction* value, std::string_view what) {
  std::shared_ptr<const Literal> literal = importer.folder().Find(value);
  if (!literal) {
    return Unimplemented(what,
                         " is not known when the program is imported, which is not implemented");
  }
  const Shape& shape = literal->shape();
  if (!shape.is_array() || !IsInteger(shape.type()) || shape.num_elements() > 2 * kMaxRank) {
    return InvalidArgument(what, " is ", shape, "; expected a few integers");
  }
  Ints values;
  for (int64_t k = 0; k < shape.num_elements(); ++k) values.push_back(literal->AsInt(k));
  return values;
}

Values Op::Unpack(Instruction* value) {
  if (result_count() == 1) return {value};
  Values parts;
  for (size_t i = 0; i < result_count(); ++i) {
    parts.push_back(b.Element(value, static_cast<int64_t>(i)));
  }
  return parts;
}

Result<int64_t> IntField(const Attribute& record, std::string_view name) {
  const Attribute* field = mlir::Find(record.fields, name);
  if (!field) return Missing(name);
  if (std::optional<int64_t> value = mlir::IntOf(*field)) return *value;
  return WrongKind(name, "an integer");
}

Result<Ints> IntsField(const Attribute& record, std::string_view name) {
  const Attribute* field = mlir::Find(record.fields, name);
  if (!field) return Missing(name);
  std::optional<Ints> values = mlir::IntsOf(*field);
  if (values && std::ssize(*values) <= kMaxRank) return *std::move(values);
  return WrongKind(name, Cat("a list of at most ", kMaxRank, " integers"));
}

}  // namespace kiln::stablehlo
