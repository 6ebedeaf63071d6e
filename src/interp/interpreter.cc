#include "interp/interpreter.h"

#include <algorithm>
#include <cfenv>
#include <memory>
#include <optional>
#include <unordered_map>

#include "base/float_environment.h"
#include "base/strings.h"
#include "interp/batch_norm.h"
#include "interp/bounded.h"
#include "interp/called_function.h"
#include "interp/convolution.h"
#include "interp/dot.h"
#include "interp/elementwise.h"
#include "interp/gather_scatter.h"
#include "interp/harness.h"
#include "interp/linear.h"
#include "interp/map.h"
#include "interp/processes.h"
#include "interp/program.h"
#include "interp/random.h"
#include "interp/reduce.h"
#include "interp/session_ops.h"
#include "interp/shape_ops.h"
#include "interp/sort.h"
#include "interp/value.h"
#include "interp/work.h"
#include "ir/analysis/effects.h"

namespace kiln::interp {
namespace {

using ir::Computation;
using ir::Instruction;

// The environment of kernels; and as long double has a control word of its own on x86, C's default
// one around it.
class EvaluatorEnvironment {
 public:
  EvaluatorEnvironment() {
    std::fegetenv(&saved_);
    std::fesetenv(FE_DFL_ENV);
    inner_.emplace();
  }
  ~EvaluatorEnvironment() {
    inner_.reset();
    std::fesetenv(&saved_);
  }
  EvaluatorEnvironment(const EvaluatorEnvironment&) = delete;
  EvaluatorEnvironment& operator=(const EvaluatorEnvironment&) = delete;

 private:
  std::fenv_t saved_;
  std::optional<DefaultFloatEnvironment> inner_;
};

// The shared state of an evaluation's processes; one of them runs at a time.
class Shared {
 public:
  explicit Shared(const Options& options)
      : custom_call(options.custom_call),
        print(options.print),
        harness(options.probes ? *options.probes : own_probes_),
        variables(options.variables ? *options.variables : own_variables_),
        interrupt_(options.interrupt),
        max_work_(options.max_work) {}

  Status Charge(int64_t work) {
    if (work > max_work_ - done_) {
      return Status(Code::kDeadlineExceeded, Cat("evaluation takes more work than ", max_work_));
    }
    done_ += work;
    // Reading the clock costs as much as some instructions.
    constexpr int64_t kEach = 16 * kInstructionWork;
    unlooked_ += std::min(work, kEach);
    if (unlooked_ < kEach) return OkStatus();
    unlooked_ = 0;
    return interrupt_.Check();
  }
  int64_t done() const { return done_; }

  Programs programs;
  const CustomCall custom_call;
  const std::function<void(std::string_view)> print;
  Harness harness;
  Variables& variables;
  int64_t processes = 0;  // in grids

 private:
  Probes own_probes_;
  Variables own_variables_;
  const Interrupt interrupt_;
  const int64_t max_work_;
  int64_t done_ = 0;
  int64_t unlooked_ = 0;  // charged since the interrupt was looked at
};

class Run {
 public:
  explicit Run(Shared& shared, const Process& process = {}, Run* outer = nullptr)
      : shared_(shared), process_(process), outer_(outer) {}

  Result<Value> Call(const Computation& computation, std::vector<Value> arguments) {
    const std::shared_ptr<const Program> program = shared_.programs.ForCall(computation);
    std::vector<Value> values(program->lines.size());
    for (size_t k = 0; k < program->lines.size(); ++k) {
      const Program::Line& line = program->lines[k];
      const Instruction& i = *line.instruction;
      if (line.value) {
        KILN_RETURN_IF_ERROR(shared_.Charge(kInstructionWork));
        values[k] = *line.value;
        continue;
      }
      if (i.opcode() == Opcode::kParameter) {
        values[k] =
            std::move(arguments[static_cast<size_t>(i.attributes().Int(Attr::kParameterNumber))]);
        continue;
      }
      std::vector<Value> operands;
      operands.reserve(line.operands.size());
      for (size_t operand : line.operands) operands.push_back(values[operand]);
      for (size_t dead : line.dead) values[dead] = Value();
      KILN_ASSIGN_OR_RETURN(values[k], Execute(i, std::move(operands)));
    }
    shared_.programs.Keep(computation, *program, values);
    return std::move(values[program->root]);
  }

  // An instruction other than a parameter. Operands without later uses are passed with ownership of
  // their arrays: a called computation can free them.
  Result<Value> Execute(const Instruction& i, std::vector<Value> operands) {
    KILN_RETURN_IF_ERROR(shared_.Charge(kInstructionWork + WorkOf(i)));
    switch (i.opcode()) {
#define KILN_OP(Name, text, operand_names, attributes, inference, evaluator, ...) \
  case Opcode::k##Name:                                                           \
    return evaluator(i, std::move(operands));
#include "ops/ops.def"
    }
    return Internal("opcode ", static_cast<int>(i.opcode()), " of '", i.name(), "' is none");
  }

 private:
  using Values = std::vector<Value>;

  // The evaluators, by their names in the op table.

  Result<Value> AfterAll(const Instruction&, const Values&) {
    return Value(Literal(Shape::Token()));
  }
  Result<Value> Assert(const Instruction& i, Values operands) {
    KILN_RETURN_IF_ERROR(CheckAssertion(i, ArraysOf(operands)));
    return std::move(operands[1]);
  }
  Result<Value> Assign(const Instruction& i, Values operands) {
    KILN_RETURN_IF_ERROR(EvaluateVariableOp(i, &operands[0].array(), shared_.variables).status());
    return std::move(operands[0]);
  }
  Result<Value> AssignAdd(const Instruction& i, const Values& operands) {
    return ValueOfVariable(i, &operands[0].array());
  }
  Result<Value> BatchNorm(const Instruction& i, const Values& operands) {
    return OnArrays(i, operands, EvaluateBatchNorm);
  }
  Result<Value> BooleanMask(const Instruction& i, const Values& operands) {
    KILN_ASSIGN_OR_RETURN(Literal result,
                          EvaluateBooleanMask(i, operands[0].array(), operands[1].array()));
    return Value(std::move(result));
  }
  Result<Value> Call(const Instruction& i, Values operands) {
    return Call(*i.called(0), std::move(operands));
  }
  Result<Value> Cholesky(const Instruction& i, const Values& operands) {
    return OnNumbers(i, operands, EvaluateCholesky);
  }
  Result<Value> Constant(const Instruction& i, const Values&) {
    return Value::Sharing(i.shared_literal());
  }
  Result<Value> Convolution(const Instruction& i, const Values& operands) {
    return OnArrays(i, operands, EvaluateConvolution);
  }
  Result<Value> Dot(const Instruction& i, const Values& operands) {
    return OnArrays(i, operands, EvaluateDot);
  }
  Result<Value> Elementwise(const Instruction& i, Values operands) {
    if (HasUnknownSizes(i)) {
      if (std::vector<Literal> fitted = OperandsOfEqualSizes(i, ArraysOf(operands));
          !fitted.empty()) {
        operands = Values(fitted.begin(), fitted.end());
      }
      return OnArrays(i, operands, OfElements);
    }
    // In the place of an operand without later uses: fresh memory takes longer than most ops.
    for (Value& operand : operands) {
      Literal* out = operand.unshared_array();
      if (!out || IsComplex(i.shape().type()) || !out->shape().SameTypeAndDimensions(i.shape())) {
        continue;
      }
      KILN_RETURN_IF_ERROR(EvaluateInto(*out, i, ArraysOf(operands)));
      return std::move(operand);
    }
    return OnArrays(i, operands, OfElements);
  }
  Result<Value> Fft(const Instruction& i, const Values& operands) {
    return OnNumbers(i, operands, EvaluateFft);
  }
  Result<Value> GetTupleElement(const Instruction& i, const Values& operands) {
    return operands[0].element(i.attributes().Int(Attr::kIndex));
  }
  Result<Value> IndexedOp(const Instruction& i, Values operands) {
    if (i.opcode() != Opcode::kDynamicUpdateSlice || HasUnknownSizes(i)) {
      return OnArrays(i, operands, EvaluateIndexedOp);
    }
    // Large states of loops are not copied if nobody else has them.
    Literal x = std::move(operands[0]).Take();
    operands.erase(operands.begin());
    UpdateSlice(x, ArraysOf(operands));
    return Value(std::move(x));
  }
  Result<Value> Map(const Instruction& i, const Values& operands) {
    return OnRegion(i, operands, EvaluateMap);
  }
  Result<Value> Nonzero(const Instruction&, const Values& operands) {
    return Value(EvaluateNonzero(operands[0].array()));
  }
  Result<Value> OptBarrier(const Instruction&, Values operands) { return std::move(operands[0]); }
  Result<Value> Parameter(const Instruction& i, const Values&) {
    return Internal("parameter '", i.name(), "' is evaluated without arguments");
  }
  Result<Value> Patches(const Instruction& i, const Values& operands) {
    return OnArrays(i, operands, EvaluatePatches);
  }
  Result<Value> Print(const Instruction& i, Values operands) {
    auto run = [&] {
      if (shared_.print) shared_.print(PrintedText(i, ArraysOf(operands)));
      return OkStatus();
    };
    KILN_RETURN_IF_ERROR(OnCaller(run));
    return std::move(operands[0]);
  }
  Result<Value> ProcessOp(const Instruction& i, Values operands) {
    return EvaluateProcessOp(i, std::move(operands), process_, ContextOfRegion());
  }
  Result<Value> Reduce(const Instruction& i, const Values& operands) {
    return OnRegion(i, operands, EvaluateReduce);
  }
  Result<Value> Rng(const Instruction& i, const Values& operands) {
    return OnArrays(i, operands, EvaluateRng);
  }
  Result<Value> RngBitGenerator(const Instruction& i, const Values& operands) {
    return OnArrays(i, operands, EvaluateRngBitGenerator);
  }
  Result<Value> RngGetAndUpdateState(const Instruction& i, const Values&) {
    return Value(EvaluateRngState(i));
  }
  Result<Value> Scatter(const Instruction& i, const Values& operands) {
    return OnRegion(i, operands, EvaluateScatter);
  }
  Result<Value> SelectAndScatter(const Instruction& i, const Values& operands) {
    return OnRegion(i, operands, EvaluateSelectAndScatter);
  }
  Result<Value> SetDimensionSize(const Instruction& i, const Values& operands) {
    KILN_ASSIGN_OR_RETURN(Literal result, EvaluateSetDimensionSize(i, ArraysOf(operands)));
    return Value(std::move(result));
  }
  Result<Value> ShapeOp(const Instruction& i, const Values& operands) {
    return OnArrays(i, operands, EvaluateShapeOp);
  }
  Result<Value> Sort(const Instruction& i, const Values& operands) {
    return OnRegion(i, operands, EvaluateSort);
  }
  Result<Value> TopK(const Instruction& i, const Values& operands) {
    return OnArrays(i, operands, EvaluateTopK);
  }
  Result<Value> TriangularSolve(const Instruction& i, const Values& operands) {
    return OnNumbers(i, operands, EvaluateTriangularSolve);
  }
  Result<Value> Tuple(const Instruction&, Values operands) { return Value(std::move(operands)); }
  Result<Value> Unique(const Instruction&, const Values& operands) {
    return Value(EvaluateUnique(operands[0].array()));
  }
  Result<Value> Variable(const Instruction& i, const Values&) {
    return ValueOfVariable(i, nullptr);
  }

  Result<Value> ValueOfVariable(const Instruction& i, const Literal* operand) {
    KILN_ASSIGN_OR_RETURN(const Literal* value, EvaluateVariableOp(i, operand, shared_.variables));
    return Value(*value);
  }

  static std::vector<const Literal*> ArraysOf(const std::vector<Value>& operands) {
    std::vector<const Literal*> arrays;
    arrays.reserve(operands.size());
    for (const Value& operand : operands) arrays.push_back(&operand.array());
    return arrays;
  }

  // f(instruction, operands as literals) returns a literal. The instruction has known sizes.
  template <typename F>
  static Result<Value> OnArrays(const Instruction& i, const std::vector<Value>& operands, F&& f) {
    const std::vector<const Literal*> arrays = ArraysOf(operands);
    auto run = [&](const Instruction& sized) -> Result<Value> {
      KILN_ASSIGN_OR_RETURN(Literal result, f(sized, std::span<const Literal* const>(arrays)));
      return Value(std::move(result));
    };
    if (!HasUnknownSizes(i)) return run(i);
    KILN_ASSIGN_OR_RETURN(SizedInstruction sized, SizedInstruction::Of(i, arrays));
    return run(*sized);
  }

  // The same for ops that check their types themselves.
  template <typename F>
  static Result<Value> OnNumbers(const Instruction& i, const std::vector<Value>& operands, F&& f) {
    Result<Value> result = OnArrays(i, operands, f);
    if (!result.ok()) return result.status().WithContext(OpcodeName(i.opcode()));
    return result;
  }

  // The same for ops that apply computations.
  template <typename F>
  Result<Value> OnRegion(const Instruction& i, const std::vector<Value>& operands, F&& f) {
    return OnArrays(i, operands, [&](const Instruction& sized, auto arrays) {
      return f(sized, arrays, ContextOfRegion());
    });
  }

  static Result<Literal> OfElements(const Instruction& i, std::span<const Literal* const> arrays) {
    Literal out(i.shape());
    KILN_RETURN_IF_ERROR(EvaluateInto(out, i, arrays));
    return out;
  }

  // The result may be one of the arrays.
  static Status EvaluateInto(Literal& out, const Instruction& i,
                             std::span<const Literal* const> arrays) {
    std::vector<ElementwiseOperand> operands;
    for (const Literal* array : arrays) {
      bool repeats = array->shape().is_scalar() && !i.shape().is_scalar();
      operands.push_back({array->data(), array->shape().type(), repeats});
    }
    return EvaluateElementwise(i, operands, out.data(), out.shape().num_elements());
  }

  RegionContext ContextOfRegion() {
    auto call = [this](const Computation& computation,
                       std::vector<Literal> arguments) -> Result<std::vector<Literal>> {
      std::vector<Value> values;
      for (Literal& argument : arguments) values.emplace_back(std::move(argument));
      KILN_ASSIGN_OR_RETURN(Value value, Call(computation, std::move(values)));
      Literal result = std::move(value).Take();
      if (result.shape().is_tuple()) return std::move(result.elements());
      std::vector<Literal> results;
      results.push_back(std::move(result));
      return results;
    };
    auto charge = [this](int64_t instructions) {
      int64_t work = 0;
      if (__builtin_mul_overflow(instructions, kReducerWork, &work)) work = INT64_MAX;
      return shared_.Charge(work);
    };
    return {call, charge};
  }

  static void AppendArrays(const Shape& shape, const Value& value,
                           std::vector<const Literal*>& arrays) {
    if (shape.is_array()) arrays.push_back(&value.array());
    for (size_t k = 0; k < shape.elements().size(); ++k) {
      AppendArrays(shape.elements()[k], value.element(static_cast<int64_t>(k)), arrays);
    }
  }

  // The value of a shape from the arrays at `next`.
  static Value Assemble(const Shape& shape, std::vector<Literal>& arrays, size_t& next) {
    if (shape.is_array()) return Value(std::move(arrays[next++]));
    if (shape.is_token()) return Value(Literal(shape));
    std::vector<Value> elements;
    for (const Shape& element : shape.elements()) {
      elements.push_back(Assemble(element, arrays, next));
    }
    return Value(std::move(elements));
  }

  Result<Value> CustomCall(const Instruction& i, std::vector<Value> operands) {
    if (ir::IsMarker(i)) {
      if (i.shape() == Shape::Tuple({})) return Value(std::vector<Value>());
      return std::move(operands[0]);
    }
    const std::string& target = i.attributes().Text(Attr::kCustomCallTarget);
    if (target == kRunParallel) {
      auto call = [this](const Computation& program, std::vector<Value> arguments,
                         const Process& process) {
        EvaluatorEnvironment environment;
        return Run(shared_, process, this).Call(program, std::move(arguments));
      };
      return RunParallel(i, std::move(operands), shared_.processes, call);
    }
    const bool own = Harness::Has(target);
    if (!own && !shared_.custom_call) {
      return NotFound("custom-call '", i.name(), "': no function is registered for the target '",
                      target, "'");
    }
    if (!own && HasUnknownSizes(i)) {
      return Unimplemented("custom-call '", i.name(), "' of shape ", i.shape(),
                           ": functions of bounded dimensions; set-dimension-size to a bound makes "
                           "a dimension a constant");
    }
    std::vector<const Literal*> arrays;
    for (size_t k = 0; k < operands.size(); ++k) {
      AppendArrays(i.operand(static_cast<int64_t>(k))->shape(), operands[k], arrays);
    }
    std::vector<Literal> results;
    auto run = [&]() -> Status {
      KILN_ASSIGN_OR_RETURN(results, own ? shared_.harness.Run(i, arrays, shared_.print)
                                         : shared_.custom_call(CalledFunctionOf(i), arrays));
      return OkStatus();
    };
    KILN_RETURN_IF_ERROR(OnCaller(run));
    size_t next = 0;
    return Assemble(i.shape(), results, next);
  }

  Result<Value> HostCallback(const Instruction& i, const Values& operands) {
    const std::vector<const Literal*> arrays = ArraysOf(operands);
    const CalledFunction called = HostCallbackOf(i, arrays);
    if (!shared_.custom_call) {
      return NotFound("host-callback '", i.name(), "': no function is registered under the name '",
                      called.target, "'");
    }
    std::vector<Literal> results;
    auto run = [&]() -> Status {
      KILN_ASSIGN_OR_RETURN(results, shared_.custom_call(called, arrays));
      return CheckResults(i, results);
    };
    KILN_RETURN_IF_ERROR(OnCaller(run));
    size_t next = 0;
    return Assemble(i.shape(), results, next);
  }

  // The user's functions are called on the user's thread.
  Status OnCaller(const std::function<Status()>& f) {
    if (!process_.grid) return f();
    return process_.grid->turns().OnCaller(process_.number, [&] { return outer_->OnCaller(f); });
  }

  Result<Value> While(const Instruction& i, std::vector<Value> operands) {
    Value state = std::move(operands[0]);
    operands.clear();
    while (true) {
      KILN_ASSIGN_OR_RETURN(Value go_on, Call(*i.called(0), {state}));
      if (!go_on.array().values<bool>()[0]) return state;
      std::vector<Value> arguments;
      arguments.push_back(std::move(state));
      KILN_ASSIGN_OR_RETURN(state, Call(*i.called(1), std::move(arguments)));
    }
  }

  Result<Value> Conditional(const Instruction& i, std::vector<Value> operands) {
    const Literal& index = operands[0].array();
    int64_t branches = static_cast<int64_t>(i.called().size()), branch = 0;
    if (IsPred(index.shape().type())) {
      branch = index.values<bool>()[0] ? 0 : 1;
    } else {
      branch = index.values<int32_t>()[0];
      if (branch < 0 || branch >= branches) branch = branches - 1;
    }
    std::vector<Value> arguments;
    arguments.push_back(std::move(operands[static_cast<size_t>(branch) + 1]));
    operands.clear();
    return Call(*i.called(branch), std::move(arguments));
  }

  Shared& shared_;
  const Process process_;
  Run* const outer_;  // the one that the grid is in
};

}  // namespace

Result<Literal> Evaluate(const Computation& computation, std::span<const Literal> arguments,
                         const Options& options) {
  if (arguments.size() != computation.parameters().size()) {
    return InvalidArgument("'", computation.name(), "' takes ", computation.parameters().size(),
                           " arguments; ", arguments.size(), " were given");
  }
  std::vector<Value> values;
  for (size_t i = 0; i < arguments.size(); ++i) {
    const Shape& wanted = computation.parameter(static_cast<int64_t>(i))->shape();
    if (!MayBe(arguments[i].shape(), wanted) || !arguments[i].shape().is_static()) {
      return InvalidArgument("argument ", i, " of '", computation.name(), "' has shape ",
                             arguments[i].shape(), "; ", wanted, " is expected");
    }
    values.push_back(Value::Borrowed(arguments[i]));
  }
  EvaluatorEnvironment environment;
  Shared shared(options);
  Result<Value> result = Run(shared).Call(computation, std::move(values));
  if (options.work_done) *options.work_done += shared.done();
  if (!result.ok()) return result.status();
  return (*std::move(result)).Take();
}

Result<Literal> Evaluate(const ir::Module& module, std::span<const Literal> arguments,
                         const Options& options) {
  return Evaluate(*module.entry(), arguments, options);
}

Result<Literal> EvaluateInstruction(const Instruction& instruction,
                                    std::span<const Literal* const> operands,
                                    const Options& options) {
  std::vector<Value> values;
  for (const Literal* operand : operands) values.push_back(Value::Borrowed(*operand));
  EvaluatorEnvironment environment;
  Shared shared(options);
  Result<Value> result = Run(shared).Execute(instruction, std::move(values));
  if (options.work_done) *options.work_done += shared.done();
  if (!result.ok()) return result.status();
  return (*std::move(result)).Take();
}

}  // namespace kiln::interp
