// JAX's custom calls for operations that StableHLO lacks or lacked when the program was written,
// and for operations with sizes as operands.
#include "stablehlo/import/extensions.h"

#include <algorithm>

namespace kiln::stablehlo {
namespace {

using ir::Instruction;
using mlir::Attribute;
using mlir::AttributeKind;

// A result of such sizes, which its type may tell already.
Result<Shape> SizedResult(Op& op, size_t result, size_t operand) {
  if (op.HasShape(result) && !op.importer.folder().Find(op.operand(operand))) {
    return op.ResultShape(result);
  }
  KILN_ASSIGN_OR_RETURN(ElementType element, op.ResultElement(result));
  KILN_ASSIGN_OR_RETURN(Ints sizes, op.KnownInts(operand, "the sizes of a result"));
  Shape shape(element, sizes);
  KILN_RETURN_IF_ERROR(ValidateShape(shape));
  if (Fits(op.result_type(result), shape)) return shape;
  return InvalidArgument("operand ", operand, " says ", shape, " of a result that is ",
                         op.result_type(result));
}

// The one function that is called.
Result<Importer::Callee> CalleeOf(Op& op) {
  const Attribute* list = op.Find("called_computations");
  const bool one = list && list->items.size() == 1 && list->items[0]->is(AttributeKind::kSymbol);
  if (!one) return InvalidArgument("called_computations must be the name of one function");
  return op.importer.FindCallee(list->items[0]->text);
}

Status ExpectOperands(const Op& op, size_t count) {
  if (op.operands.size() == count) return OkStatus();
  return InvalidArgument("found ", op.operands.size(), " operands; expected ", count);
}

// Programs for several sizes say what they rely on. The message has {0} and so on for operands
// behind the first.
Result<Values> ShapeAssertion(Op& op) {
  Folder& folder = op.importer.folder();
  std::shared_ptr<const Literal> holds = op.operands.empty() ? nullptr : folder.Find(op.operand(0));
  if (!holds || holds->shape() != Shape::Scalar(ElementType::kPred)) {
    return Unimplemented("whether the shapes are right is not known when the program is imported");
  }
  if (holds->AsInt(0) != 0) return Values();
  KILN_ASSIGN_OR_RETURN(std::string message, op.Word("error_message", "the shapes are not right"));
  std::string text;
  for (size_t at = 0; at < message.size(); ++at) {
    const size_t end = message[at] == '{' ? message.find('}', at) : message.npos;
    if (end == at + 2 && message[at + 1] >= '0' && message[at + 1] <= '9') {
      const size_t operand = static_cast<size_t>(message[at + 1] - '0') + 1;
      std::shared_ptr<const Literal> value =
          operand < op.operands.size() ? folder.Find(op.operand(operand)) : nullptr;
      if (value && value->shape().is_scalar() && IsInteger(value->shape().type())) {
        text += Cat(value->AsInt(0));
        at = end;
        continue;
      }
    }
    text += message[at];
  }
  return InvalidArgument(text);
}

// For calls that attach sizes to an argument: the argument.
Result<Values> FirstOperand(Op& op) {
  if (op.operands.empty() || op.result_count() != 1) return ExpectOperands(op, 1);
  return op.One(op.operand(0));
}

// JAX's mark of a value as used: nothing is to be done with it.
Result<Values> Nothing(Op& op) {
  if (op.result_count() != 0) return InvalidArgument("found results; expected none");
  return Values{};
}

// "mhlo.topk" and others: operations that were not StableHLO's when the program was written.
Result<Values> LaterOperation(Op& op) {
  KILN_ASSIGN_OR_RETURN(std::string target, op.Word("call_target_name"));
  const std::string_view name = std::string_view(target).substr(target.find('.') + 1);
  if (name != "topk") {
    const Result<Values> values = LowerAs(op, Cat("chlo.", name));
    if (values.ok() || values.status().code() != Code::kUnimplemented) return values;
    return LowerAs(op, Cat("stablehlo.", name));
  }
  const Attribute* attributes = op.Find("mhlo.attributes");
  const Attribute* k = attributes ? mlir::Find(attributes->fields, "k") : nullptr;
  const Attribute* largest = attributes ? mlir::Find(attributes->fields, "largest") : nullptr;
  if (!k || !mlir::IntOf(*k)) return InvalidArgument("the attribute k is missing");
  const bool most = !largest || mlir::IntOf(*largest).value_or(1) != 0;
  return op.Unpack(
      op.b.Add(Opcode::kTopK, op.operands, {{Attr::kK, *mlir::IntOf(*k)}, {Attr::kLargest, most}}));
}

Result<Values> DynamicTopK(Op& op) {
  KILN_RETURN_IF_ERROR(ExpectOperands(op, 2));
  KILN_ASSIGN_OR_RETURN(Ints k, op.KnownInts(1, "how many there are to be"));
  if (k.size() != 1) return InvalidArgument("operand 1 is ", op.shape(1), "; expected one number");
  return op.Unpack(
      op.b.Add(Opcode::kTopK, {op.operand(0)}, {{Attr::kK, k[0]}, {Attr::kLargest, true}}));
}

// Arrays and their initial values, and then the sizes of windows, strides, base dilations, window
// dilations and padding.
Result<Values> DynamicReduceWindow(Op& op) {
  const size_t n = op.result_count();
  KILN_RETURN_IF_ERROR(ExpectOperands(op, 2 * n + 5));
  if (!op.shape(0).is_array()) return InvalidArgument("operand 0 is ", op.shape(0));
  constexpr std::string_view kLists[] = {"the sizes of windows", "their strides",
                                         "the base dilations", "the window dilations",
                                         "the padding"};
  const auto rank = static_cast<size_t>(op.shape(0).rank());
  std::vector<Ints> lists;
  for (std::string_view what : kLists) {
    const size_t operand = 2 * n + lists.size();
    KILN_ASSIGN_OR_RETURN(Ints list, op.KnownInts(operand, what));
    const size_t expected = what == kLists[4] ? 2 * rank : rank;
    if (list.size() != expected) {
      return InvalidArgument("operand ", operand, ", ", what, ", is ", op.shape(operand),
                             "; expected ", expected, " numbers");
    }
    lists.push_back(std::move(list));
  }
  std::vector<WindowDimension> window;
  for (size_t d = 0; d < rank; ++d) {
    window.push_back({.size = lists[0][d],
                      .stride = lists[1][d],
                      .low = lists[4][2 * d],
                      .high = lists[4][2 * d + 1],
                      .base_dilation = lists[2][d],
                      .window_dilation = lists[3][d]});
  }
  KILN_ASSIGN_OR_RETURN(Importer::Callee callee, CalleeOf(op));
  const Values operands(op.operands.begin(), op.operands.begin() + static_cast<int64_t>(2 * n));
  return op.Unpack(op.b.Add(Opcode::kReduceWindow, operands, {{Attr::kWindow, std::move(window)}},
                            std::nullopt, {callee.computation}));
}

Result<Values> DynamicRngBitGenerator(Op& op) {
  KILN_RETURN_IF_ERROR(ExpectOperands(op, 2));
  if (op.result_count() != 2) return InvalidArgument("expected two results");
  KILN_ASSIGN_OR_RETURN(Shape bits, SizedResult(op, 1, 1));
  return RngBitGeneratorOf(op, std::move(bits));
}

// An approximation that is always right: the first elements of a sort. Operands are arrays, their
// initial values, maybe the number of elements, and maybe the sizes of results.
Result<Values> ApproxTopK(Op& op) {
  const size_t n = op.result_count();
  const Attribute* config = op.Find("mhlo.backend_config");
  if (!config) config = op.Find("backend_config");
  const Attribute* along = config && config->is(AttributeKind::kDictionary)
                               ? mlir::Find(config->fields, "reduction_dim")
                               : nullptr;
  if (!along || !mlir::IntOf(*along)) return InvalidArgument("there is no reduction_dim");
  KILN_ASSIGN_OR_RETURN(ShapeOperands shapes, ShapeOperandsOf(op));
  if (n == 0 || shapes.others.size() < 2 * n) {
    return InvalidArgument("found ", shapes.others.size(), " operands; expected at least ", 2 * n);
  }
  const Values arrays(shapes.others.begin(), shapes.others.begin() + static_cast<int64_t>(n));
  const Shape& input = arrays[0]->shape();
  int64_t dimension = *mlir::IntOf(*along);
  if (dimension < 0 && input.is_array()) dimension += input.rank();
  if (shapes.results.empty()) {
    KILN_ASSIGN_OR_RETURN(Shape shape, op.ResultShape(0));
    shapes.results.push_back(std::move(shape));
  }
  const Shape& wanted = shapes.results[0];
  const bool fits = input.is_array() && input.is_static() && wanted.is_static() &&
                    wanted.rank() == input.rank() && dimension >= 0 && dimension < input.rank();
  if (!fits) {
    return InvalidArgument("found a result of ", wanted, " along dimension ", dimension, " of ",
                           input);
  }
  KILN_ASSIGN_OR_RETURN(Importer::Callee comparator, CalleeOf(op));
  Instruction* sorted = op.b.Add(Opcode::kSort, arrays,
                                 {{Attr::kDimensions, Ints{dimension}}, {Attr::kIsStable, true}},
                                 std::nullopt, {comparator.computation});
  std::vector<SliceDimension> first;
  for (const Dimension& size : wanted.dimensions()) first.push_back({0, size.size(), 1});
  Values values = op.Unpack(sorted);
  for (Instruction*& value : values) value = op.b.Slice(value, first);
  return values;
}

struct Extension {
  std::string_view target;
  Lowering lower;
};
constexpr Extension kExtensions[] = {
    {"ApproxTopK", ApproxTopK},
    {"dce_sink", Nothing},
    {"shape_assertion", ShapeAssertion},
    {"stablehlo.dynamic_approx_top_k", ApproxTopK},
    {"stablehlo.dynamic_reduce_window", DynamicReduceWindow},
    {"stablehlo.dynamic_rng_bit_generator", DynamicRngBitGenerator},
    {"stablehlo.dynamic_top_k", DynamicTopK},
    {"stablehlo.shape_refinement_operand_wrapper", FirstOperand},
};

}  // namespace

Lowering FindExtension(std::string_view target) {
  const auto* found = std::ranges::find(kExtensions, target, &Extension::target);
  if (found != std::end(kExtensions)) return found->lower;
  return target.starts_with("mhlo.") ? LaterOperation : FindLinearAlgebra(target);
}

Result<ShapeOperands> ShapeOperandsOf(Op& op) {
  ShapeOperands found;
  found.others = op.operands;
  if (!op.Find("indices_of_shape_operands")) return found;
  KILN_ASSIGN_OR_RETURN(Ints indices, op.IntList("indices_of_shape_operands"));
  if (indices.size() != op.result_count()) {
    return InvalidArgument("indices_of_shape_operands has ", indices.size(), " numbers for ",
                           op.result_count(), " results");
  }
  for (size_t i = 0; i < indices.size(); ++i) {
    if (indices[i] < 0 || indices[i] >= std::ssize(op.operands)) {
      return InvalidArgument("indices_of_shape_operands has ", indices[i], "; expected 0 to below ",
                             op.operands.size());
    }
    const auto operand = static_cast<size_t>(indices[i]);
    KILN_ASSIGN_OR_RETURN(Shape shape, SizedResult(op, i, operand));
    found.results.push_back(std::move(shape));
    found.others[operand] = nullptr;
  }
  std::erase(found.others, nullptr);
  return found;
}

}  // namespace kiln::stablehlo
