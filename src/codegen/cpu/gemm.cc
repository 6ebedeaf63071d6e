#include "codegen/cpu/gemm.h"

#include <algorithm>
#include <string>

#include "base/strings.h"
#include "codegen/cpu/gemm_internal.h"
#include "codegen/llvm_session.h"
#include "llvm/IR/Module.h"

namespace kiln::codegen {

using gemm::Emitter;
using gemm::LoopOperands;
using gemm::NewFunction;
using gemm::Shape;
using kernel::GemmB;
using kernel::GemmBatchDimension;
using kernel::GemmKind;
using llvm::Value;

namespace {

// The rows of the tallest tile whose addresses fit into registers with what else its loop has.
constexpr int kMostRows = 14;
// With so many steps in a block, sums may go by way of memory.
constexpr int64_t kLongBlock = 512;
// A shared gemm's argument that the shape begins with.
constexpr size_t kFirstOfShape = 8;
// Whether whole tiles meet their epilogue in registers, in code that is not shared.
bool IsInRegisters(const llvm::Function& kernel, const kernel::GemmProblem& p,
                   const kernel::GemmSchedule& s, const GemmEpilogue& epilogue) {
  return epilogue.may_have_own_gemm && !kernel.hasOptNone() && !kernel::IsTile(s.unit) &&
         s.kind == GemmKind::kOuter && s.k_blocks == 1 && (p.n % s.lanes == 0 || s.n_panels > 1);
}

// The epilogue of a tile. Without one the tile is stored into C, the kernel's argument `c`.
llvm::Function* EmitFinish(const llvm::Function& kernel, const kernel::GemmProblem& problem,
                           const kernel::GemmSchedule& schedule, int c,
                           const GemmEpilogue& epilogue) {
  llvm::Function* f = NewFunction(kernel, gemm::FinishType(kernel.getContext()),
                                  Cat(std::string_view(kernel.getName()), ".finish"));
  Emitter e(f, problem, schedule);
  Value *tile = f->getArg(2), *row = f->getArg(4), *vector = f->getArg(6);
  Value* first_row = problem.m % schedule.mr == 0 ? e.Int(0) : f->getArg(5);
  Value* first_vector = e.n_vectors % schedule.nv == 0 ? e.Int(0) : f->getArg(7);
  std::vector<Value*> batch = e.BatchIndices(f->getArg(3));
  Value* to = nullptr;
  if (!epilogue) {
    to = e.Offset(e.Arg(c), e.BatchOffset(batch, &GemmBatchDimension::c, e.element_bytes));
  }
  gemm::ForEachVector(e, first_row, first_vector, [&](Value* i, Value* v) {
    Value* slot = gemm::SlotOf(e, tile, i, v);
    if (!epilogue) return gemm::StoreResults(e, slot, to, e.Add(row, i), e.Add(vector, v));
    GemmVector result;
    result.value = e.LoadVector(slot, nullptr, true);
    result.batch = batch;
    result.m = e.Add(row, i);
    result.n = e.Scale(e.Add(vector, v), schedule.lanes);
    if (e.ragged) result.mask = e.Mask(e.b.CreateSub(e.Int(problem.n), result.n));
    epilogue.emit(e.b, result);
  });
  e.b.CreateRetVoid();
  return f;
}

// A gemm without the place of its results, shared by all kernels that differ in what they do with
// these, because most of LLVM's work for them is the same. Gemms of whole panels of B share it with
// others of any width, those of whole blocks of k and large tiles with others whose A has any
// strides and any number of blocks, or is packed: what differs they are told (Shape). One of a
// single long block takes the code of several where its module has that.
class SharedGemm {
 public:
  SharedGemm(const kernel::GemmProblem& problem, const kernel::GemmSchedule& schedule,
             const GemmOperands& reads)
      : problem_(problem), schedule_(schedule), reads_(reads) {
    problem_.a_first = problem_.b_first = 0;
    problem_.c_m = problem_.c_n = 0;
    for (GemmBatchDimension& d : problem_.batch) d.c = 0;
    any_width_ = schedule.kind == GemmKind::kOuter && schedule.b != GemmB::kPrepacked &&
                 problem.k_outer.empty() && problem.BatchSize() == schedule.row_batches &&
                 problem.n % (int64_t{schedule.lanes} * schedule.nv) == 0 && schedule.n_panels > 1;
    if (any_width_) MakeAnyWidth();
    any_a_ = any_width_ && HasAnyA(problem, schedule, reads);
    if (any_a_) MakeAnyA();
    name_ = family_ = Name();
    const bool is_words = schedule.unit != kernel::GemmUnit::kElement;
    if (!any_a_ || is_words || schedule.b != GemmB::kPackPanel || schedule.kc < kLongBlock) return;
    may_be_one_block_ = schedule.k_blocks > 1;
    if (may_be_one_block_) return;
    SetBlocks(2);
    family_ = Name();
    SetBlocks(1);
  }

  const std::string& name() const { return name_; }
  // That of the code which does for several blocks of k, too.
  const std::string& family() const { return family_; }
  bool any_a() const { return any_a_; }
  bool IsIn(const llvm::Module& module) const { return module.getFunction(name_) != nullptr; }

  // The code: void(frame, args, begin, end, a, b, scratch, finish, the shape's values). Operands
  // are passed from their first element on.
  llvm::Function* Get(const llvm::Function& kernel) const {
    for (const std::string& name : {family_, name_}) {
      if (llvm::Function* known = kernel.getParent()->getFunction(name)) return known;
    }
    llvm::FunctionType* type = kernel.getFunctionType();
    std::vector<llvm::Type*> types(type->params().begin(), type->params().end());
    for (int i = 0; i < 4; ++i) types.push_back(types[0]);
    types.insert(types.end(), Shape().all().size(), types[2]);
    llvm::Function* f =
        NewFunction(kernel, llvm::FunctionType::get(type->getReturnType(), types, false), name_);
    MakeOptimised(f);
    Emitter e(f, problem_, schedule_, reads_.a_prologue, reads_.b_prologue);
    TakeShape(e);
    LoopOperands operands;
    operands.a = f->getArg(4);
    operands.b = f->getArg(5);
    operands.scratch = f->getArg(6);
    operands.finish = f->getArg(7);
    gemm::EmitLoops(e, operands);
    return f;
  }

 private:
  std::string Name() const {
    std::string name = Cat(any_a_       ? "gemm of any A and width "
                           : any_width_ ? "gemm of any width "
                                        : "gemm ",
                           problem_.ToString(), " ", schedule_.ToString());
    if (reads_.a_prologue) name += Cat(" a: ", reads_.a_prologue->text);
    if (reads_.b_prologue) name += Cat(" b: ", reads_.b_prologue->text);
    return name;
  }
  // Whether strides in A cost no more instructions when they are no constants.
  static bool HasAnyA(const kernel::GemmProblem& p, const kernel::GemmSchedule& s,
                      const GemmOperands& reads) {
    const bool is_words = s.unit != kernel::GemmUnit::kElement;
    const bool converts = !s.pack_a && (reads.a_prologue || (p.TypeOfA() != p.type && !is_words));
    return p.BatchSize() == 1 && !converts && s.unroll == 1 && s.nv >= 2 && s.mr <= kMostRows &&
           p.k == s.kc * s.k_blocks * s.group();
  }

  // What stands for any: the least of several panels, one or more of which go together.
  void MakeAnyWidth() {
    problem_.n = int64_t{schedule_.lanes} * schedule_.nv * 2;
    if (problem_.b_n == 1) problem_.b_k = 0;
    if (AnyColumn()) problem_.b_n = 0;
    schedule_.n_panels = 2;
    schedule_.block_n = std::min<int64_t>(schedule_.block_n, 2);
    schedule_.items = 0;
    schedule_.scratch_bytes = std::min<int64_t>(schedule_.scratch_bytes, 1);
  }
  bool AnyColumn() const {
    return problem_.b_n != 1 && problem_.b_k == 1 && schedule_.b == GemmB::kPackPanel;
  }
  void MakeAnyA() {
    problem_.a_m = problem_.a_k = 0;
    problem_.batch.clear();
    // Bytes change their signs where they are packed, or else where they are read.
    if (!kernel::FlipsBytes(problem_, schedule_.unit)) {
      if (schedule_.unit == kernel::GemmUnit::kElement) {
        problem_.a_type = problem_.a_factor = ElementType::kInvalid;
      }
      schedule_.pack_a = false;
    }
    SetBlocks(std::min<int64_t>(schedule_.k_blocks, 2));
  }
  void SetBlocks(int64_t count) {
    schedule_.k_blocks = count;
    problem_.k = schedule_.kc * count * schedule_.group();
  }

  // Replaces the constants of the emitter by the arguments that its function has for them.
  void TakeShape(Emitter& e) const {
    Shape told;
    size_t arg = kFirstOfShape;
    for (Value** value : told.all()) *value = e.function->getArg(arg++);
    if (any_width_) {
      e.shape.n_panels = told.n_panels;
      e.shape.block_n = told.block_n;
      if (problem_.b_n == 1) e.shape.b_step = told.b_step;
      if (AnyColumn()) e.shape.b_column = told.b_column;
    }
    e.any_a = any_a_;
    if (!any_a_) return;
    if (schedule_.k_blocks > 1) e.shape.k_blocks = told.k_blocks;
    e.shape.a_row = told.a_row;
    e.shape.a_step = told.a_step;
    e.shape.a_tile = told.a_tile;
    e.shape.a_last = told.a_last;
    e.may_be_one_block = may_be_one_block_;
    if (!may_be_one_block_) return;
    e.shape.slot = told.slot;
    e.shape.panel_slot = told.panel_slot;
  }

  kernel::GemmProblem problem_;
  kernel::GemmSchedule schedule_;
  const GemmOperands reads_;
  bool any_width_, any_a_;
  bool may_be_one_block_ = false;
  std::string name_, family_;
};

}  // namespace

Status EmitGemm(llvm::Function* function, const kernel::GemmProblem& problem,
                const kernel::GemmSchedule& schedule, const GemmOperands& operands,
                const GemmEpilogue& epilogue) {
  KILN_RETURN_IF_ERROR(gemm::Check(problem, schedule));
  const SharedGemm shared(problem, schedule, operands);
  const bool in_registers = IsInRegisters(*function, problem, schedule, epilogue);
  // Alone, a gemm without epilogue is less code, but for those that many are like.
  const bool shares = epilogue ? !in_registers
                               : !gemm::IsDirect(problem, schedule) &&
                                     (shared.any_a() || shared.IsIn(*function->getParent()));
  Emitter e(function, problem, schedule, shares ? nullptr : operands.a_prologue,
            shares ? nullptr : operands.b_prologue);
  LoopOperands at;
  at.a = e.Arg(operands.a);
  at.b = e.Arg(operands.b);
  if (!schedule.pack_a) at.a = e.Offset(at.a, problem.a_first * e.a_bytes);
  if (schedule.b != GemmB::kPrepacked) at.b = e.Offset(at.b, e.BytesOfB(problem.b_first));
  if (schedule.scratch_bytes > 0) at.scratch = e.Arg(operands.scratch);
  const bool has_edges = problem.m % schedule.mr != 0 || e.n_vectors % schedule.nv != 0 || e.ragged;
  if (shares || (in_registers && has_edges)) {
    at.finish = EmitFinish(*function, problem, schedule, operands.c, epilogue);
  }
  if (!shares) {
    if (!epilogue) at.c = e.Arg(operands.c);
    gemm::EmitLoops(e, at, in_registers ? &epilogue : nullptr);
    return OkStatus();
  }
  if (!at.scratch) at.scratch = llvm::Constant::getNullValue(e.b.getPtrTy());
  std::vector<Value*> args;
  for (llvm::Argument& arg : function->args()) args.push_back(&arg);
  args.insert(args.end(), {at.a, at.b, at.scratch, at.finish});
  for (Value** value : e.shape.all()) args.push_back(*value);
  e.b.CreateCall(shared.Get(*function), args);
  e.b.CreateRetVoid();
  MakeQuick(function);  // one call
  return OkStatus();
}

std::string SharedGemmName(const kernel::GemmProblem& problem,
                           const kernel::GemmSchedule& schedule) {
  return SharedGemm(problem, schedule, GemmOperands()).name();
}

std::string SharedGemmFamily(const kernel::GemmProblem& problem,
                             const kernel::GemmSchedule& schedule) {
  return SharedGemm(problem, schedule, GemmOperands()).family();
}

}  // namespace kiln::codegen
