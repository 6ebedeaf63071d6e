// Custom calls, among them checks and the interpreter's operations (interp/harness.h).
#include "stablehlo/import/calls.h"

#include "interp/harness.h"
#include "ir/host_call.h"
#include "stablehlo/import/extensions.h"
#include "stablehlo/mlir/print.h"
#include "tensor/layouts.h"

namespace kiln::stablehlo {
namespace {

using ir::Instruction;
using mlir::Attribute;
using mlir::AttributeKind;

// The results as one shape: of any number but one a tuple. `known`: where types may not tell them.
Result<Shape> WholeShape(const Op& op, std::vector<Shape> known) {
  for (size_t i = known.size(); i < op.result_count(); ++i) {
    KILN_ASSIGN_OR_RETURN(Shape shape, op.ResultShape(i));
    known.push_back(std::move(shape));
  }
  return known.size() == 1 ? known[0] : Shape::Tuple(std::move(known));
}

}  // namespace

Result<Values> CallTo(Op& op, std::string_view target, Values operands, std::string config,
                      bool side_effect, Attributes attributes, std::vector<ir::Computation*> called,
                      std::vector<Shape> results) {
  KILN_ASSIGN_OR_RETURN(Shape whole, WholeShape(op, std::move(results)));
  attributes.Set(Attr::kCustomCallTarget, QuotedText{std::string(target)});
  if (side_effect) attributes.Set(Attr::kCustomCallHasSideEffect, true);
  if (!config.empty()) attributes.Set(Attr::kBackendConfig, QuotedText{std::move(config)});
  return op.Unpack(op.b.Add(Opcode::kCustomCall, std::move(operands), std::move(attributes), whole,
                            std::move(called)));
}

namespace {

// Gives the arrays among the shapes the layouts of an attribute.
Status TakeLayouts(const Op& op, std::string_view name, std::span<Shape> shapes) {
  const Attribute* layouts = op.Find(name);
  if (!layouts) return OkStatus();
  if (layouts->items.size() != shapes.size()) {
    return InvalidArgument(name, " has ", layouts->items.size(), " layouts; expected ",
                           shapes.size());
  }
  for (size_t i = 0; i < shapes.size(); ++i) {
    const std::optional<std::vector<int64_t>> order = mlir::IntsOf(*layouts->items[i]);
    if (!shapes[i].is_array() || (shapes[i].rank() == 0 && (!order || order->empty()))) continue;
    if (!order || !IsPermutation(*order, shapes[i].rank())) {
      return InvalidArgument(name, " has no layout of ", shapes[i], " at ", i);
    }
    shapes[i].set_minor_to_major(*order);
  }
  return OkStatus();
}

// Functions of untyped calls see memory alone: an array in another layout is one of permuted
// dimensions in row-major order. Turns the operands of such a call, and the shapes of its results.
Ints MajorToMinor(const Shape& shape) {
  return Ints(shape.minor_to_major().rbegin(), shape.minor_to_major().rend());
}

Shape Turned(const Shape& shape) {
  std::vector<Dimension> dimensions;
  for (int64_t d : MajorToMinor(shape)) dimensions.push_back(shape.dimension(d));
  return Shape(shape.type(), std::move(dimensions));
}

// The operand as the function takes it.
Instruction* ForCall(Op& op, Instruction* operand, const Shape& shape, bool typed) {
  if (shape.is_row_major()) return operand;
  if (!typed) return op.b.Transpose(operand, MajorToMinor(shape));
  Instruction* copy = op.b.Add(Opcode::kCopy, {operand});
  if (copy) copy->set_shape(shape);
  return copy;
}

// The result in row-major order.
Instruction* FromCall(Op& op, Instruction* result, const Shape& shape, bool typed) {
  if (shape.is_row_major()) return result;
  if (typed) return op.b.Add(Opcode::kCopy, {result});
  const Ints order = MajorToMinor(shape);
  Ints back(order.size());
  for (size_t i = 0; i < order.size(); ++i) {
    back[static_cast<size_t>(order[i])] = static_cast<int64_t>(i);
  }
  return op.b.Transpose(result, back);
}

Result<std::vector<OperandAlias>> AliasesOf(const Op& op) {
  std::vector<OperandAlias> aliases;
  const Attribute* list = op.Find("output_operand_aliases");
  if (!list) return aliases;
  for (const Attribute* item : list->items) {
    OperandAlias alias;
    KILN_ASSIGN_OR_RETURN(alias.output_index, IntsField(*item, "output_tuple_indices"));
    KILN_ASSIGN_OR_RETURN(alias.operand, IntField(*item, "operand_index"));
    KILN_ASSIGN_OR_RETURN(alias.operand_index, IntsField(*item, "operand_tuple_indices"));
    aliases.push_back(std::move(alias));
  }
  return aliases;
}

Result<std::vector<ir::Computation*>> CalledBy(Op& op) {
  std::vector<ir::Computation*> called;
  const Attribute* list = op.Find("called_computations");
  if (!list) return called;
  for (const Attribute* item : list->items) {
    if (!item->is(AttributeKind::kSymbol)) {
      return InvalidArgument("called_computations must be names of functions");
    }
    KILN_ASSIGN_OR_RETURN(Importer::Callee callee, op.importer.FindCallee(item->text));
    called.push_back(callee.computation);
  }
  return called;
}

Result<Values> CustomCall(Op& op) {
  KILN_ASSIGN_OR_RETURN(std::string target, op.Word("call_target_name"));
  if (const Lowering extension = FindExtension(target)) return extension(op);
  KILN_ASSIGN_OR_RETURN(bool side_effect, op.Bool("has_side_effect"));
  KILN_ASSIGN_OR_RETURN(ShapeOperands shapes, ShapeOperandsOf(op));
  KILN_ASSIGN_OR_RETURN(std::vector<OperandAlias> aliases, AliasesOf(op));
  KILN_ASSIGN_OR_RETURN(std::vector<ir::Computation*> called, CalledBy(op));
  KILN_ASSIGN_OR_RETURN(int64_t version, op.Int("api_version", 1));
  // Portable programs have typed calls as calls of version 1 with this attribute.
  const Attribute* config = op.Find("mhlo.backend_config");
  if (config && config->is(AttributeKind::kDictionary)) version = kTypedApiVersion;
  Attributes attributes;
  if (!aliases.empty()) attributes.Set(Attr::kOutputToOperandAliasing, std::move(aliases));
  // The original one is HLO's default.
  if (const std::string_view name = ApiVersionName(version); version > 1 && !name.empty()) {
    attributes.Set(Attr::kApiVersion, std::string(name));
  }
  if (!config) config = op.Find("backend_config");
  const std::string text = !config                              ? ""
                           : config->is(AttributeKind::kString) ? config->text
                                                                : mlir::ToText(*config);
  std::vector<Shape> operands, results = std::move(shapes.results);
  for (const Instruction* operand : shapes.others) operands.push_back(operand->shape());
  for (size_t i = results.size(); i < op.result_count(); ++i) {
    KILN_ASSIGN_OR_RETURN(results.emplace_back(), op.ResultShape(i));
  }
  KILN_RETURN_IF_ERROR(TakeLayouts(op, "operand_layouts", operands));
  KILN_RETURN_IF_ERROR(TakeLayouts(op, "result_layouts", results));
  const bool typed = version == kTypedApiVersion;
  for (size_t i = 0; i < operands.size(); ++i) {
    shapes.others[i] = ForCall(op, shapes.others[i], operands[i], typed);
  }
  std::vector<Shape> promised = results;
  for (Shape& shape : promised) {
    if (!typed && !shape.is_row_major()) shape = Turned(shape);
  }
  side_effect |= interp::Harness::Has(target);
  KILN_ASSIGN_OR_RETURN(Values values,
                        CallTo(op, target, std::move(shapes.others), text, side_effect,
                               std::move(attributes), std::move(called), std::move(promised)));
  for (size_t i = 0; i < values.size(); ++i) {
    values[i] = FromCall(op, values[i], results[i], typed);
  }
  return values;
}

// An operation of the dialect check, whose expected value is an operand or an attribute.
Result<Values> CheckOf(Op& op, std::string_view target, std::string config) {
  Values operands = op.operands;
  if (const Attribute* value = op.Find("value"); value && operands.size() == 1) {
    const bool dense = value->is(AttributeKind::kElements);
    KILN_ASSIGN_OR_RETURN(Literal literal,
                          LiteralOf(*value, dense ? *value->type : op.operand_type(0)));
    const bool splat = literal.shape().is_scalar();
    Instruction* expected = op.b.Constant(std::move(literal));
    operands.push_back(splat ? op.b.Spread(op.shape(0), expected) : expected);
  }
  return CallTo(op, target, std::move(operands), std::move(config), true);
}

Result<Values> ExpectEq(Op& op) { return CheckOf(op, "check.expect_eq", ""); }

Result<Values> ExpectAlmostEq(Op& op) {
  constexpr double kUsual = 1e-4;
  KILN_ASSIGN_OR_RETURN(double tolerance, op.Float("tolerance", kUsual));
  return CheckOf(op, "check.expect_almost_eq", Cat("tolerance=", tolerance));
}

Result<Values> ExpectClose(Op& op) {
  KILN_ASSIGN_OR_RETURN(int64_t most, op.Int("max_ulp_difference", 3));
  KILN_ASSIGN_OR_RETURN(int64_t least, op.Int("min_ulp_difference", 0));
  std::string config = Cat("max_ulp_difference=", static_cast<uint64_t>(most));
  if (least != 0) config += Cat(" min_ulp_difference=", static_cast<uint64_t>(least));
  return CheckOf(op, "check.expect_close", std::move(config));
}

Result<Values> ExpectSerializedEq(Op& op) {
  KILN_ASSIGN_OR_RETURN(std::string probe, op.Word("probe_id"));
  KILN_ASSIGN_OR_RETURN(int64_t turn, op.Int("iteration", 0));
  return CallTo(op, "check.expect_serialized_eq", op.operands,
                Cat("iter=", turn, " probe_id=", probe), true);
}

Result<Values> Probe(Op& op) {
  KILN_ASSIGN_OR_RETURN(std::string probe, op.Word("probe_id"));
  return CallTo(op, "interpreter.probe", op.operands, Cat("probe_id=", probe), true);
}

Result<Values> Print(Op& op) {
  const Shape nothing = Shape::Tuple({});
  op.b.Add(Opcode::kCustomCall, op.operands,
           {{Attr::kCustomCallTarget, QuotedText{"interpreter.print"}},
            {Attr::kCustomCallHasSideEffect, true}},
           nothing);
  Values values = op.operands;
  values.resize(op.result_count());
  return values;
}

Result<Values> RunParallel(Op& op) {
  const Attribute *programs = op.Find("programs"), *infeed = op.Find("infeed");
  if (!programs || programs->items.empty()) {
    return InvalidArgument("programs must be rows of names of functions");
  }
  const size_t partitions = programs->items[0]->items.size();
  std::vector<ir::Computation*> called;
  size_t next = 0;
  auto add = [&](const Attribute& name, bool is_program) -> Status {
    if (!name.is(AttributeKind::kSymbol)) return InvalidArgument("found no name of a function");
    const size_t count = op.importer.ParameterCountOf(name.text);
    if (!is_program) {
      KILN_ASSIGN_OR_RETURN(Importer::Callee queue, op.importer.FindCallee(name.text));
      if (count > 0 || queue.results != 1) {
        return InvalidArgument("@", name.text, " must give one value, without arguments");
      }
      called.push_back(queue.computation);
      return OkStatus();
    }
    if (count > op.operands.size() - next) {
      return InvalidArgument("found ", op.operands.size(), " operands, too few for all programs");
    }
    KILN_ASSIGN_OR_RETURN(
        Importer::Callee program,
        op.importer.FindCallee(name.text, std::span(op.operands).subspan(next, count)));
    next += count;
    called.push_back(program.computation);
    return OkStatus();
  };
  for (const Attribute* row : programs->items) {
    if (row->items.size() != partitions || partitions == 0) {
      return InvalidArgument("programs must be rows of equal size");
    }
    for (const Attribute* name : row->items) KILN_RETURN_IF_ERROR(add(*name, true));
  }
  if (next != op.operands.size()) {
    return InvalidArgument("found ", op.operands.size(), " operands; the programs take ", next);
  }
  const size_t queued = infeed ? infeed->items.size() : 0;
  for (size_t i = 0; i < queued; ++i) KILN_RETURN_IF_ERROR(add(*infeed->items[i], false));
  return CallTo(
      op, interp::kRunParallel, op.operands,
      Cat("replicas=", programs->items.size(), " partitions=", partitions, " infeed=", queued),
      true, {}, std::move(called));
}

constexpr Quantised kStorage = Quantised::kStorage;

constexpr Row kRows[] = {
    {"stablehlo.custom_call", CustomCall, kAnyNumber, kAnyNumber, 0, kStorage, false},
    {"check.almost_eq", ExpectAlmostEq, {1, 2}, 0, 0, kStorage},
    {"check.eq", ExpectEq, {1, 2}, 0, 0, kStorage},
    {"check.expect_almost_eq", ExpectAlmostEq, 2, 0, 0, kStorage},
    {"check.expect_almost_eq_const", ExpectAlmostEq, 1, 0, 0, kStorage},
    {"check.expect_close", ExpectClose, 2, 0, 0, kStorage},
    {"check.expect_eq", ExpectEq, 2, 0, 0, kStorage},
    {"check.expect_eq_const", ExpectEq, 1, 0, 0, kStorage},
    {"check.expect_serialized_eq", ExpectSerializedEq, 1, 0, 0, kStorage},
    {"interpreter.print", Print, 1, {0, 1}, 0, kStorage},
    {"interpreter.probe", Probe, 1, 1, 0, kStorage},
    {"interpreter.run_parallel", RunParallel, kAnyNumber, kAnyNumber, 0, kStorage, false},
};

}  // namespace

std::span<const Row> CheckRows() { return kRows; }

}  // namespace kiln::stablehlo
