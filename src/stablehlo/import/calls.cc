// Custom calls, among them checks and the interpreter's operations (interp/harness.h).
#include "stablehlo/import/calls.h"

#include "interp/harness.h"
#include "stablehlo/import/extensions.h"
#include "stablehlo/mlir/print.h"

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

// Layouts that are not row-major mean other memory than functions are given.
Status RequireRowMajor(const Op& op, std::string_view name) {
  const Attribute* layouts = op.Find(name);
  if (!layouts) return OkStatus();
  for (const Attribute* layout : layouts->items) {
    const std::optional<std::vector<int64_t>> order = mlir::IntsOf(*layout);
    if (!order) continue;
    for (size_t d = 0; d < order->size(); ++d) {
      if ((*order)[d] == static_cast<int64_t>(order->size() - 1 - d)) continue;
      return Unimplemented("the attribute ", name,
                           " has a layout that is not row-major, which is not implemented");
    }
  }
  return OkStatus();
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

std::string_view ApiVersionName(int64_t version) {
  switch (version) {
    case 2:
      return "API_VERSION_STATUS_RETURNING";
    case 3:
      return "API_VERSION_STATUS_RETURNING_UNIFIED";
    case 4:
      return "API_VERSION_TYPED_FFI";
    default:
      return "";
  }
}

Result<Values> CustomCall(Op& op) {
  KILN_ASSIGN_OR_RETURN(std::string target, op.Word("call_target_name"));
  if (const Lowering extension = FindExtension(target)) return extension(op);
  KILN_ASSIGN_OR_RETURN(bool side_effect, op.Bool("has_side_effect"));
  for (std::string_view name : {"operand_layouts", "result_layouts"}) {
    KILN_RETURN_IF_ERROR(RequireRowMajor(op, name).WithContext(Cat("@", target)));
  }
  KILN_ASSIGN_OR_RETURN(ShapeOperands shapes, ShapeOperandsOf(op));
  KILN_ASSIGN_OR_RETURN(std::vector<OperandAlias> aliases, AliasesOf(op));
  KILN_ASSIGN_OR_RETURN(std::vector<ir::Computation*> called, CalledBy(op));
  KILN_ASSIGN_OR_RETURN(int64_t version, op.Int("api_version", 1));
  Attributes attributes;
  if (!aliases.empty()) attributes.Set(Attr::kOutputToOperandAliasing, std::move(aliases));
  if (!ApiVersionName(version).empty()) {
    attributes.Set(Attr::kApiVersion, std::string(ApiVersionName(version)));
  }
  const Attribute* config = op.Find("backend_config");
  const std::string text = !config                              ? ""
                           : config->is(AttributeKind::kString) ? config->text
                                                                : mlir::ToText(*config);
  side_effect |= interp::Harness::Has(target);
  return CallTo(op, target, std::move(shapes.others), text, side_effect, std::move(attributes),
                std::move(called), std::move(shapes.results));
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
