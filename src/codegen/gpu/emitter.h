// The building blocks of all GPU kernels: loops, indices, the values of nodes, reductions' steps.
// Each form of schedule has a file that combines them.
#pragma once

#include <functional>
#include <map>
#include <optional>
#include <span>
#include <vector>

#include "base/status.h"
#include "codegen/control_flow.h"
#include "codegen/elemental.h"
#include "codegen/gpu/nest.h"
#include "codegen/gpu/primitives.h"
#include "kernel/kernel.h"
#include "kernel/schedule/gpu/schedule.h"
#include "llvm/IR/Function.h"

namespace kiln::codegen {

constexpr int kWarp = 32;

class GpuEmitter {
 public:
  using Value = llvm::Value;
  using NodeId = kernel::NodeId;
  using StageId = kernel::StageId;
  using VariableId = kernel::VariableId;
  using ReductionId = kernel::ReductionId;
  using Slots = std::vector<llvm::AllocaInst*>;  // an accumulator's parts, which become registers
  using Accumulators = IdVector<ReductionId, Slots>;  // of a stage
  using NodeValues = IdVector<StageId, IdVector<NodeId, Value*>>;

  GpuEmitter(llvm::Function* function, const kernel::Kernel& kernel,
             const kernel::GpuSchedule& schedule, size_t launch, MathOptions math,
             CombinerFunctions& combiners);

  const kernel::Kernel& kernel() const { return kernel_; }
  const kernel::GpuSchedule& schedule() const { return schedule_; }
  const kernel::GpuLaunch& launch() const { return schedule_.launches[launch_]; }
  size_t launch_number() const { return launch_; }
  MathOptions math() const { return math_; }
  Builder& b() { return b_; }
  GpuPrimitives& gpu() { return gpu_; }
  llvm::LLVMContext& context() { return function_->getContext(); }
  // The first failure.
  const Status& status() const { return status_; }
  void Fail(Status status);

  // --- Numbers of the type in which indices are computed: 32 bits where all of them fit.
  llvm::IntegerType* index_type() const { return index_type_; }
  Value* Int(int64_t value);
  Value* thread() const { return thread_; }
  Value* block() const { return block_; }  // of the kernel's own
  int64_t outer_points() const { return outer_points_; }
  std::vector<VariableId> OuterVariables() const;

  // --- Control
  // A stack slot, which becomes a register.
  llvm::AllocaInst* NewSlot(llvm::Type* type);
  // for (i = begin; i < end; i += step)
  void Loop(Value* begin, Value* end, Value* step, llvm::function_ref<void(Value*)> body);
  // For all points of the variables, row by row.
  void InOrder(std::span<const VariableId> variables, const std::function<void()>& body);
  void If(Value* condition, llvm::function_ref<void()> body);
  // Values of nodes inside are dropped at the end of the scope.
  class Scope {
   public:
    explicit Scope(GpuEmitter& e) : e_(e), values_(e.values_) {}
    ~Scope() { e_.values_ = std::move(values_); }
    Scope(const Scope&) = delete;
    Scope& operator=(const Scope&) = delete;

   private:
    GpuEmitter& e_;
    NodeValues values_;
  };

  // --- Points
  // Sets variables (outermost first) from their row-major position.
  void Delinearise(Value* position, const std::vector<VariableId>& variables);
  // The same where the last variable goes in steps of `lanes` points, which divide its extent.
  void DelineariseSteps(Value* position, const std::vector<VariableId>& variables, int lanes);
  void SetVariable(VariableId variable, Value* value) { variables_[variable] = value; }
  Value* variable(VariableId v) const { return variables_[v]; }
  // Nodes of a stage are to be evaluated anew.
  void Forget(StageId stage);
  Value* Eval(StageId stage, const kernel::Index& index);
  // Elements' addresses.
  Value* Address(StageId stage, kernel::ParamId param, const kernel::Index& index);

  // --- Values of nodes at the current variables, emitted when they are first asked for.
  Value* At(StageId stage, NodeId node);
  void SetNode(StageId stage, NodeId node, Value* value);
  Value* Load(StageId stage, const kernel::Node& node);
  void Store(Value* value, Value* address, ElementType type);
  // Those that the schedule wants done.
  std::vector<const kernel::Store*> StoresOf(StageId stage) const;
  void EmitStores(StageId stage);
  void EmitUpdates(StageId stage);

  // --- Several points of one variable, from the current one on, whose loads and stores are vectors
  // where memory is in order.
  // Calls f for each, with the variable set. Where f asks for one node only, it is to be said
  // which.
  void ForLanes(StageId stage, VariableId variable, int lanes,
                const std::function<void(int lane)>& f, NodeId node = {});
  // The stage's stores at all of them. `prepare` sets what reductions and nodes are at each, where
  // that is not the same for all.
  void StoreLanes(StageId stage, VariableId variable, int lanes,
                  const std::function<void(int lane)>& prepare = nullptr);
  // Neighbouring elements, as they are in memory, of 16 bytes or fewer.
  Value* LoadPacked(Value* address, ElementType type, int lanes);
  void StorePacked(Value* packed, Value* address);
  Value* Pack(const std::vector<Value*>& values, ElementType type);
  std::vector<Value*> Unpack(Value* packed, ElementType type, int lanes);
  // The same of values, of any number.
  std::vector<Value*> LoadVector(Value* address, ElementType type, int lanes);
  void StoreVector(const std::vector<Value*>& values, Value* address, ElementType type);

  // --- Reductions
  const kernel::Reduction& reduction(StageId stage, ReductionId i) const {
    return kernel_.stages[stage].reductions[i];
  }
  // Neutral elements, or where there are none the inits.
  std::vector<Value*> Identity(StageId stage, ReductionId i);
  std::vector<Value*> Combine(const kernel::Reduction& r, const std::vector<Value*>& x,
                              const std::vector<Value*>& y);
  // Of what parts of a reduction's elements have come to, each of which were taken in order.
  std::vector<Value*> CombineParts(StageId stage, ReductionId i, std::vector<Value*> x,
                                   std::vector<Value*> y);
  // By the combiner's nodes, or by a call of the function that they are.
  std::vector<Value*> CombineByNodes(const kernel::Combiner& combiner, const std::vector<Value*>& x,
                                     const std::vector<Value*>& y);
  Accumulators MakeAccumulators(StageId stage, bool from_inits = false);
  std::vector<Value*> Current(const Slots& slots);
  void SetSlots(const Slots& slots, const std::vector<Value*>& values);
  // Folds the stage's inputs at the current point into the accumulators; where `active`, unless
  // null, is false nothing is folded.
  void Accumulate(StageId stage, const Accumulators& accumulators, Value* active = nullptr);
  // The init goes in once, at the end: its place in the order is free where there is an identity.
  void FinishReduction(StageId stage, ReductionId i, const std::vector<Value*>& total);
  void SetReduced(StageId stage, ReductionId i, std::vector<Value*> values);
  // The work of one thread at one point of the outer variables, stage by stage from `first` on.
  void EmitSerialStages(StageId first);

  // Where partial results are kept: in memory of the type, at index `at` behind `base`.
  llvm::Type* PartialType(ElementType type) { return MemoryType(context(), type); }
  Value* LoadPartial(Value* base, Value* at, ElementType type);
  void StorePartial(Value* value, Value* base, Value* at, ElementType type);
  // The kernel's scratch from a byte on.
  Value* Scratch(int64_t offset);
  // Where the partial results of the first stage's reduction of this number are.
  Value* Partials(ReductionId reduction, size_t result = 0);

 private:
  friend class Scope;
  Value* EvalAtom(StageId stage, const kernel::Atom& atom);
  void EvalValues(StageId stage, const kernel::Index& index);
  Value* GuardedLoad(StageId stage, const kernel::Node& node);
  Value* Op(const kernel::Node& n, const IdVector<NodeId, kernel::Node>& nodes,
            const std::vector<Value*>& operands);
  void EmitSerialStage(StageId stage);
  // Which nodes of the stage change with the variable; with `reduced`, reductions do.
  IdVector<NodeId, bool> NodesAlong(StageId stage, VariableId variable, bool reduced) const;
  void EachLane(StageId stage, VariableId variable, int lanes, bool reduced, NodeId node,
                const std::function<void(int lane)>& f);

  llvm::Function* function_;
  std::vector<Value*> EmitCombiner(const kernel::Combiner& combiner, const std::vector<Value*>& x,
                                   const std::vector<Value*>& y);
  // Made where it is asked for first. The first `split` arguments are the left ones.
  llvm::Function* FunctionOf(const kernel::Combiner& combiner, const std::vector<Value*>& arguments,
                             size_t split);

  const kernel::Kernel& kernel_;
  const kernel::GpuSchedule& schedule_;
  const size_t launch_;
  MathOptions math_;
  CombinerFunctions& combiners_;
  Builder b_;
  GpuPrimitives gpu_;
  llvm::BasicBlock* entry_;
  llvm::IntegerType* index_type_;
  Value* thread_;
  Value* block_;
  Status status_;
  IdVector<VariableId, Value*> variables_;
  NodeValues values_;
  // Also by result.
  IdVector<StageId, IdVector<ReductionId, std::vector<Value*>>> reduced_;
  // The accumulator by which parts are put in order, of the general reductions met so far: to find
  // it takes many trials.
  std::map<const kernel::Reduction*, std::optional<size_t>> orders_;
  int64_t outer_points_ = 1;
};

// The code of each form: the work of one thread in one of the schedule's launches.
void EmitElementwise(GpuEmitter& e);
void EmitSerial(GpuEmitter& e);
void EmitTranspose(GpuEmitter& e);
void EmitTeams(GpuEmitter& e);
void EmitGemm(GpuEmitter& e);
void EmitScan(GpuEmitter& e);
void EmitSort(GpuEmitter& e);
void EmitScatter(GpuEmitter& e);
void EmitOwners(GpuEmitter& e);

}  // namespace kiln::codegen
