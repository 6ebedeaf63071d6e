// Calls, branches, loops, tuples, and what orders them.
#include "stablehlo/import/control.h"

#include <unordered_set>

namespace kiln::stablehlo {
namespace {

using ir::Instruction;

// The values that regions use and do not define, each once, in the order of their first use.
class Captures {
 public:
  void Add(const mlir::Region& region) {
    for (const mlir::Block* block : region.blocks) {
      for (const mlir::Value* argument : block->arguments) seen_.insert(argument);
      for (const mlir::Operation* operation : block->operations) {
        for (const mlir::Value* operand : operation->operands) {
          if (seen_.insert(operand).second) values_.push_back(operand);
        }
        for (const mlir::Region* inner : operation->regions) Add(*inner);
        for (const mlir::Value* result : operation->results) seen_.insert(result);
      }
    }
  }
  const std::vector<const mlir::Value*>& values() const { return values_; }

 private:
  std::unordered_set<const mlir::Value*> seen_;
  std::vector<const mlir::Value*> values_;
};

// A value passed to a region stays known in the region: sizes may depend on it.
void TellValue(Importer& importer, const Instruction* value, const Instruction* part) {
  if (std::shared_ptr<const Literal> known = importer.SmallValue(value)) {
    importer.folder().Set(part, std::move(known));
  }
}

// Whether the body of a loop ends with the argument as it is.
bool Keeps(const mlir::Region& body, size_t argument) {
  if (body.blocks.size() != 1 || body.blocks[0]->operations.empty()) return false;
  const std::vector<mlir::Value*>& results = body.blocks[0]->operations.back()->operands;
  const std::vector<mlir::Value*>& arguments = body.blocks[0]->arguments;
  return argument < results.size() && argument < arguments.size() &&
         results[argument] == arguments[argument];
}

// A branch for each region, with the region's captured values as its operand.
Result<Values> Conditional(Op& op) {
  Values operands = {op.operand(0)};
  std::vector<ir::Computation*> branches;
  for (const mlir::Region* region : op.operation.regions) {
    KILN_ASSIGN_OR_RETURN(Passed passed, PassedTo(op, {&region, 1}));
    KILN_ASSIGN_OR_RETURN(const mlir::Block* block, op.importer.BlockOf(*region, 0));
    Instruction* given = op.b.OneOrTuple(passed.instructions);
    KILN_RETURN_IF_ERROR(op.b.status());
    operands.push_back(given);
    Body body(op.importer, op.importer.module().AddComputation("branch"), &op.body);
    Builder b(body.computation());
    const Values parts = PartsOf(b, body.AddParameter(given->shape()), passed.values.size());
    const bool tell = UsesUnknownSizes(*region);
    for (size_t i = 0; i < parts.size(); ++i) {
      body.Bind(passed.values[i], parts[i]);
      if (tell) TellValue(op.importer, passed.instructions[i], parts[i]);
    }
    KILN_ASSIGN_OR_RETURN(Values results,
                          op.importer.ImportBlock(*block, body, "stablehlo.return"));
    if (results.size() != op.result_count()) {
      return InvalidArgument("found a branch of ", results.size(), " results; expected ",
                             op.result_count());
    }
    body.computation()->set_root(b.OneOrTuple(std::move(results)));
    KILN_RETURN_IF_ERROR(b.status());
    branches.push_back(body.computation());
  }
  return op.Unpack(op.b.Add(Opcode::kConditional, std::move(operands), {}, std::nullopt, branches));
}

// The state is the operands and, as they are, the values of outside that the regions use.
Result<Values> While(Op& op) {
  const size_t n = op.operands.size();
  if (op.result_count() != n) {
    return InvalidArgument("found ", op.result_count(), " results of ", n, " operands");
  }
  KILN_ASSIGN_OR_RETURN(Passed passed, PassedTo(op, op.operation.regions));
  Values state = op.operands;
  state.insert(state.end(), passed.instructions.begin(), passed.instructions.end());
  const size_t count = state.size();
  Instruction* initial = op.b.OneOrTuple(state);
  KILN_RETURN_IF_ERROR(op.b.status());
  std::vector<ir::Computation*> computations;
  const mlir::Region& turn = *op.operation.regions[1];
  const bool tell = UsesUnknownSizes(*op.operation.regions[0]) || UsesUnknownSizes(turn);
  for (size_t k = 0; k < 2; ++k) {
    KILN_ASSIGN_OR_RETURN(const mlir::Block* block,
                          op.importer.BlockOf(*op.operation.regions[k], n));
    Body body(op.importer, op.importer.module().AddComputation(k == 0 ? "condition" : "body"),
              &op.body);
    Builder b(body.computation());
    const Values parts = PartsOf(b, body.AddParameter(initial->shape()), count);
    for (size_t i = 0; i < n; ++i) {
      const mlir::Value* argument = block->arguments[i];
      if (!Fits(*argument->type, state[i]->shape())) {
        return InvalidArgument("found an argument of ", *argument->type,
                               " in the region; expected ", state[i]->shape());
      }
      body.Bind(argument, parts[i]);
    }
    for (size_t i = n; i < count; ++i) body.Bind(passed.values[i - n], parts[i]);
    for (size_t i = 0; tell && i < count; ++i) {
      if (i >= n || Keeps(turn, i)) TellValue(op.importer, state[i], parts[i]);
    }
    KILN_ASSIGN_OR_RETURN(Values results,
                          op.importer.ImportBlock(*block, body, "stablehlo.return"));
    if (results.size() != (k == 0 ? 1 : n)) {
      return InvalidArgument("found a region of ", results.size(), " results; expected ",
                             k == 0 ? 1 : n);
    }
    if (k == 1) {
      for (size_t i = n; i < count; ++i) results.push_back(parts[i]);
    }
    body.computation()->set_root(k == 0 ? results[0] : b.OneOrTuple(std::move(results)));
    KILN_RETURN_IF_ERROR(b.status());
    computations.push_back(body.computation());
  }
  Instruction* loop = op.b.Add(Opcode::kWhile, {initial}, {}, std::nullopt, computations);
  Values results = PartsOf(op.b, loop, count);
  results.resize(n);
  return results;
}

Result<Values> CallOf(Op& op, std::string_view key) {
  KILN_ASSIGN_OR_RETURN(std::string name, op.Word(key));
  KILN_ASSIGN_OR_RETURN(Importer::Callee callee, op.importer.FindCallee(name, op.operands));
  if (callee.results != op.result_count()) {
    return InvalidArgument("the function @", name, " has ", callee.results, " results; found ",
                           op.result_count());
  }
  return op.Unpack(op.b.Add(Opcode::kCall, op.operands, {}, std::nullopt, {callee.computation}));
}

Result<Values> Call(Op& op) { return CallOf(op, "callee"); }
// A composite is a call of its decomposition.
Result<Values> Composite(Op& op) { return CallOf(op, "decomposition"); }

// An asynchronous operation is executed at its start, so its results are there when awaited.
Result<Values> AsyncStart(Op& op) {
  KILN_ASSIGN_OR_RETURN(const mlir::Block* block,
                        op.importer.BlockOf(*op.operation.regions[0], op.operands.size()));
  for (size_t i = 0; i < op.operands.size(); ++i) {
    if (block->arguments[i]->type != &op.operand_type(i)) {
      return InvalidArgument("found an argument of ", *block->arguments[i]->type,
                             " in the region; expected ", op.operand_type(i));
    }
    op.body.Bind(block->arguments[i], op.operand(i));
  }
  KILN_ASSIGN_OR_RETURN(Values results,
                        op.importer.ImportBlock(*block, op.body, "stablehlo.return"));
  return op.One(op.b.OneOrTuple(std::move(results)));
}

Result<Values> AsyncDone(Op& op) {
  const mlir::Type& future = op.operand_type(0);
  if (!future.is(mlir::TypeKind::kFuture) || future.inputs.size() != op.result_count()) {
    return InvalidArgument("found ", op.result_count(), " results of ", future);
  }
  return op.Unpack(op.operand(0));
}

Result<Values> OptimizationBarrier(Op& op) {
  if (op.operands.size() != op.result_count()) {
    return InvalidArgument("found ", op.result_count(), " results of ", op.operands.size(),
                           " operands");
  }
  if (op.operands.empty()) return Values();
  return op.Unpack(op.b.Add(Opcode::kOptBarrier, {op.b.OneOrTuple(op.operands)}));
}

Result<Values> Tuple(Op& op) { return op.One(op.b.Tuple(op.operands)); }

Result<Values> GetTupleElement(Op& op) {
  KILN_ASSIGN_OR_RETURN(int64_t index, op.Int("index"));
  return op.One(op.b.Element(op.operand(0), index));
}

Result<Values> AfterAll(Op& op) { return op.One(op.b.Add(Opcode::kAfterAll, op.operands)); }

constexpr Quantised kStorage = Quantised::kStorage;

constexpr Row kRows[] = {
    {"func.call", Call, kAnyNumber, kAnyNumber, 0, kStorage, false},
    {"stablehlo.composite", Composite, kAnyNumber, kAnyNumber, kAnyNumber, kStorage, false},
    {"stablehlo.if", Conditional, 1, kAnyNumber, 2, kStorage},
    {"stablehlo.case", Conditional, 1, kAnyNumber, kSome, kStorage},
    {"stablehlo.while", While, kAnyNumber, kAnyNumber, 2, kStorage, false},
    {"stablehlo.async_start", AsyncStart, kAnyNumber, 1, 1, kStorage, false},
    {"stablehlo.async_done", AsyncDone, 1, kAnyNumber, 0, kStorage, false},
    {"stablehlo.optimization_barrier", OptimizationBarrier, kAnyNumber, kAnyNumber, 0, kStorage,
     false},
    {"stablehlo.tuple", Tuple, kAnyNumber, 1, 0, kStorage, false},
    {"stablehlo.get_tuple_element", GetTupleElement, 1, 1, 0, kStorage, false},
    {"stablehlo.after_all", AfterAll, kAnyNumber, 1, 0, kStorage, false},
    {"stablehlo.create_token", AfterAll, 0, 1},
};

}  // namespace

Result<Passed> PassedTo(Op& op, std::span<const mlir::Region* const> regions) {
  Captures captures;
  for (const mlir::Region* region : regions) captures.Add(*region);
  Passed passed;
  for (const mlir::Value* value : captures.values()) {
    KILN_ASSIGN_OR_RETURN(Instruction * instruction, op.body.Find(value));
    const bool constant =
        instruction->IsConstant() ||
        (instruction->opcode() == Opcode::kBroadcast && instruction->operand(0)->IsConstant());
    if (constant) continue;
    passed.values.push_back(value);
    passed.instructions.push_back(instruction);
  }
  return passed;
}

Values PartsOf(Builder& b, Instruction* value, size_t count) {
  if (count == 1) return {value};
  Values parts;
  for (size_t i = 0; i < count; ++i) parts.push_back(b.Element(value, static_cast<int64_t>(i)));
  return parts;
}

std::span<const Row> ControlRows() { return kRows; }

}  // namespace kiln::stablehlo
