// chlo.scan as a loop: turn after turn one slice of each input, and the values that are carried.
#include "stablehlo/import/control.h"

namespace kiln::stablehlo {
namespace {

using ir::Instruction;

struct Scan {
  size_t inputs = 0, carries = 0, outputs = 0;
  int64_t dimension = 0, size = 0;
  bool reverse = false;
};

Result<Scan> ScanOf(Op& op) {
  Scan scan;
  KILN_ASSIGN_OR_RETURN(Ints segments, op.IntList("operandSegmentSizes"));
  KILN_ASSIGN_OR_RETURN(scan.dimension, op.Int("dimension"));
  KILN_ASSIGN_OR_RETURN(scan.reverse, op.Bool("is_reverse"));
  const auto count = std::ssize(op.operands);
  if (segments.size() != 2 || segments[0] < 1 || segments[1] < 0 ||
      segments[0] + segments[1] != count || segments[1] > std::ssize(op.operation.results)) {
    return InvalidArgument("operandSegmentSizes is ", AttrValueText(segments), " for ", count,
                           " operands and ", op.result_count(), " results");
  }
  scan.inputs = static_cast<size_t>(segments[0]);
  scan.carries = static_cast<size_t>(segments[1]);
  scan.outputs = op.result_count() - scan.carries;
  for (size_t i = 0; i < scan.inputs; ++i) {
    const Shape& shape = op.shape(i);
    const bool fits = shape.is_static() && scan.dimension >= 0 && scan.dimension < shape.rank() &&
                      (i == 0 || shape.dim(scan.dimension) == scan.size);
    if (!fits) {
      return InvalidArgument("the dimension ", scan.dimension, " of ", shape,
                             " must be there, and equal in all inputs");
    }
    scan.size = shape.dim(scan.dimension);
  }
  return scan;
}

// The state after a turn: the turn, the carried values, the outputs, the inputs, and values from
// outside.
Result<Values> TurnOf(Op& op, const Scan& scan, const mlir::Block& block, Body& body, Builder& b,
                      const Values& state, size_t passed) {
  Instruction* turn = state[0];
  Instruction* zero = b.Scalar(ElementType::kS64, 0);
  Instruction* at = turn;
  if (scan.reverse) {
    const auto last = static_cast<double>(scan.size - 1);
    at = b.Add(Opcode::kSubtract, {b.Scalar(ElementType::kS64, last), turn});
  }
  const size_t first_input = 1 + scan.carries + scan.outputs;
  auto starts = [&](int64_t rank) {
    Values values(static_cast<size_t>(rank), zero);
    values[static_cast<size_t>(scan.dimension)] = at;
    return values;
  };
  for (size_t i = 0; i < scan.inputs; ++i) {
    Instruction* input = state[first_input + i];
    const Shape& shape = input->shape();
    Ints sizes = shape.dims();
    sizes[static_cast<size_t>(scan.dimension)] = 1;
    Values operands = starts(shape.rank());
    operands.insert(operands.begin(), input);
    Instruction* slice =
        b.Add(Opcode::kDynamicSlice, std::move(operands), {{Attr::kDynamicSliceSizes, sizes}});
    // The region may take slices without the dimension.
    const mlir::Type& type = *block.arguments[i]->type;
    if (type.rank() < shape.rank()) sizes.erase(sizes.begin() + scan.dimension);
    body.Bind(block.arguments[i], b.Reshape(slice, sizes));
  }
  for (size_t i = 0; i < scan.carries; ++i) {
    body.Bind(block.arguments[scan.inputs + i], state[1 + i]);
  }
  KILN_RETURN_IF_ERROR(b.status());
  KILN_ASSIGN_OR_RETURN(Values results, op.importer.ImportBlock(block, body, "stablehlo.return"));
  if (results.size() != op.result_count()) {
    return InvalidArgument("found a region of ", results.size(), " results; expected ",
                           op.result_count());
  }
  Values next = {b.Add(Opcode::kAdd, {turn, b.Scalar(ElementType::kS64, 1)})};
  next.insert(next.end(), results.begin() + static_cast<std::ptrdiff_t>(scan.outputs),
              results.end());
  for (size_t i = 0; i < scan.outputs; ++i) {
    Instruction* output = state[1 + scan.carries + i];
    Ints sizes = output->shape().dims();
    sizes[static_cast<size_t>(scan.dimension)] = 1;
    Values operands = starts(output->shape().rank());
    operands.insert(operands.begin(), {output, b.Reshape(results[i], sizes)});
    next.push_back(b.Add(Opcode::kDynamicUpdateSlice, std::move(operands)));
  }
  next.insert(next.end(), state.end() - static_cast<std::ptrdiff_t>(scan.inputs + passed),
              state.end());
  return next;
}

Result<Values> ScanLoop(Op& op) {
  KILN_ASSIGN_OR_RETURN(const Scan scan, ScanOf(op));
  const mlir::Region* region = op.operation.regions[0];
  KILN_ASSIGN_OR_RETURN(const mlir::Block* block, op.importer.BlockOf(*region, op.operands.size()));
  KILN_ASSIGN_OR_RETURN(Passed passed, PassedTo(op, {&region, 1}));
  Values state = {op.b.Scalar(ElementType::kS64, 0)};
  const auto inputs = op.operands.begin() + static_cast<std::ptrdiff_t>(scan.inputs);
  state.insert(state.end(), inputs, op.operands.end());
  for (size_t i = 0; i < scan.outputs; ++i) {
    KILN_ASSIGN_OR_RETURN(Shape shape, op.ResultShape(i));
    if (!shape.is_array() || scan.dimension >= shape.rank() ||
        shape.dimension(scan.dimension) != Dimension(scan.size)) {
      return InvalidArgument("result ", i, " is ", shape, "; expected a dimension ", scan.dimension,
                             " of size ", scan.size);
    }
    state.push_back(op.b.Number(shape, 0));
  }
  state.insert(state.end(), op.operands.begin(), inputs);
  state.insert(state.end(), passed.instructions.begin(), passed.instructions.end());
  Instruction* initial = op.b.Tuple(state);
  KILN_RETURN_IF_ERROR(op.b.status());

  ir::Module& module = op.importer.module();
  Body condition(op.importer, module.AddComputation("condition"), nullptr);
  Builder c(condition.computation());
  Instruction* turn = c.Element(condition.AddParameter(initial->shape()), 0);
  condition.computation()->set_root(
      c.Compare(Direction::kLt, turn, c.Scalar(ElementType::kS64, static_cast<double>(scan.size))));
  KILN_RETURN_IF_ERROR(c.status());

  Body body(op.importer, module.AddComputation("body"), &op.body);
  Builder b(body.computation());
  const Values parts = PartsOf(b, body.AddParameter(initial->shape()), state.size());
  const size_t outside = state.size() - passed.values.size();
  for (size_t i = 0; i < passed.values.size(); ++i) {
    body.Bind(passed.values[i], parts[outside + i]);
  }
  KILN_ASSIGN_OR_RETURN(Values next,
                        TurnOf(op, scan, *block, body, b, parts, passed.values.size()));
  body.computation()->set_root(b.Tuple(std::move(next)));
  KILN_RETURN_IF_ERROR(b.status());

  Instruction* loop = op.b.Add(Opcode::kWhile, {initial}, {}, std::nullopt,
                               {condition.computation(), body.computation()});
  Values results;
  for (size_t i = 0; i < op.result_count(); ++i) {
    const size_t part = i < scan.outputs ? 1 + scan.carries + i : 1 + i - scan.outputs;
    results.push_back(op.b.Element(loop, static_cast<int64_t>(part)));
  }
  return results;
}

constexpr Row kRows[] = {{"chlo.scan", ScanLoop, kSome, kAnyNumber, 1, Quantised::kStorage}};

}  // namespace

std::span<const Row> ScanRows() { return kRows; }

}  // namespace kiln::stablehlo
