#include "codegen/cpu/gemm.h"

#include <algorithm>
#include <string>

#include "base/strings.h"
#include "codegen/cpu/gemm_internal.h"
#include "codegen/cpu/transpose.h"
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

// The rows of the tallest tile whose addresses fit into registers with what else its loop has: one
// step, or several, each of which has a pointer of its own.
constexpr int kMostRows = 14, kMostRowsOfSteps = 6;
// The vectors of a row of several steps: GPT-2 and BERT, whose tiles have three, took 5 % longer
// where strides in A were no constants.
constexpr int kMostVectorsOfSteps = 2;
// With so many steps in a block, sums may go by way of memory.
constexpr int64_t kLongBlock = 512;
// A shared gemm's argument that the shape begins with.
constexpr size_t kFirstOfShape = 8;
// Whether whole tiles meet their epilogue in registers, in code that is not shared.
bool IsInRegisters(const llvm::Function& kernel, const kernel::GemmProblem& p,
                   const kernel::GemmSchedule& s, const GemmEpilogue& epilogue) {
  return epilogue.may_have_own_gemm && !epilogue.along_m && !kernel.hasOptNone() &&
         !kernel::IsTile(s.unit) && s.kind == GemmKind::kOuter && s.k_blocks == 1 &&
         (p.n % s.lanes == 0 || s.n_panels > 1);
}

// Whether tiles without an epilogue are stored in vectors along m.
bool StoresAlongM(const kernel::GemmProblem& p, const kernel::GemmSchedule& s) {
  return MayFinishAlongM(p, s) && p.c_m == 1 && p.c_n > 1;
}

// The epilogue of a tile in vectors along its rows. Those of a column of vectors are transposed in
// registers: as many rows at once as a vector has lanes, then half as many, and so on.
class FinishAlongM {
 public:
  // `finish` has each of the vectors.
  FinishAlongM(Emitter& e, std::function<void(const GemmVector&)> finish)
      : e_(e), finish_(std::move(finish)) {
    auto* type = llvm::ArrayType::get(e.vector, static_cast<uint64_t>(e.s.lanes));
    llvm::AllocaInst* columns = e.b.CreateAlloca(type);
    columns->setAlignment(llvm::Align(64));
    columns_ = columns;
  }

  // Of a vector `v` of the tile's, which begins at `row` and `vector`.
  void Emit(Value* tile, const std::vector<Value*>& batch, Value* row, Value* vector, Value* v) {
    const int lanes = e_.s.lanes;
    Value* first = e_.Scale(e_.Add(vector, v), lanes);
    Value* count = e_.Int(lanes);
    if (e_.ragged) count = e_.Min(e_.b.CreateSub(e_.Int(e_.p.n), first), count);
    for (int i = 0, width = lanes; i < e_.s.mr; i += width) {
      while (width > e_.s.mr - i) width /= 2;
      Transpose(tile, i, width, v);
      llvm::Type* type = e_.element;
      if (width > 1) type = llvm::FixedVectorType::get(type, static_cast<unsigned>(width));
      e_.Loop(e_.Int(0), count, 1, "column", [&](Value* j) {
        GemmVector result;
        result.value = e_.Load(type, Column(j), e_.vector_bytes);
        result.lanes = width;
        result.along_m = true;
        result.batch = batch;
        result.m = e_.Add(row, e_.Int(i));
        result.n = e_.Add(first, j);
        finish_(result);
      });
    }
  }

 private:
  Value* Column(Value* j) { return e_.Offset(columns_, e_.Scale(j, e_.vector_bytes)); }

  void Transpose(Value* tile, int row, int count, Value* v) {
    std::vector<Value*> rows;
    for (int i = row; i < row + count; ++i) {
      rows.push_back(e_.LoadVector(gemm::SlotOf(e_, tile, e_.Int(i), v), nullptr, true));
    }
    rows.resize(static_cast<size_t>(e_.s.lanes), llvm::PoisonValue::get(e_.vector));
    SwapBlocks(e_.b, rows, 1);
    for (size_t j = 0; j < rows.size(); ++j) {
      e_.StoreVector(rows[j], Column(e_.Int(static_cast<int64_t>(j))), nullptr, true);
    }
  }

  Emitter& e_;
  const std::function<void(const GemmVector&)> finish_;
  Value* columns_;
};

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
    to = e.Offset(e.Arg(c), e.BatchOffsetC(batch));
  }
  if (epilogue ? epilogue.along_m : StoresAlongM(problem, schedule)) {
    FinishAlongM along(e, [&](const GemmVector& result) {
      if (epilogue) return epilogue.emit(e.b, result);
      Value* place = e.Add(e.Scale(result.n, problem.c_n), result.m);
      e.StoreVector(result.value, e.Offset(to, e.Scale(place, e.element_bytes)), nullptr, false);
    });
    e.Loop(first_vector, e.Int(schedule.nv), 1, "vector",
           [&](Value* v) { along.Emit(tile, batch, row, vector, v); });
    e.b.CreateRetVoid();
    return f;
  }
  gemm::ForEachVector(e, first_row, first_vector, [&](Value* i, Value* v) {
    Value* slot = gemm::SlotOf(e, tile, i, v);
    if (!epilogue) return gemm::StoreResults(e, slot, to, e.Add(row, i), e.Add(vector, v));
    GemmVector result;
    result.value = e.LoadVector(slot, nullptr, true);
    result.lanes = schedule.lanes;
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
// others of any width, those of whole blocks of k with others whose A has any strides and any
// number of blocks, or is packed: what differs they are told (Shape). Where a program has others of
// other sizes, they share it with these, too, unless panels are prefetched, and windows of a
// convolution have any strides in A. One of a single long block takes the code of several where its
// module has that. Of any size there is code that stores sums straight into C, too.
class SharedGemm {
 public:
  // With `of_any_size` it is shared by other sizes.
  SharedGemm(const kernel::GemmProblem& problem, const kernel::GemmSchedule& schedule,
             const GemmOperands& reads, bool has_epilogue, bool of_any_size)
      : problem_(problem), schedule_(schedule), reads_(reads) {
    problem_.a_first = problem_.b_first = 0;
    problem_.c_m = problem_.c_n = 0;
    for (GemmBatchDimension& d : problem_.batch) d.c = 0;
    const bool may_be_any = schedule.kind == GemmKind::kOuter && schedule.b != GemmB::kPrepacked &&
                            problem.k_outer.empty() &&
                            problem.BatchSize() == schedule.row_batches && schedule.n_panels > 1;
    any_a_ = may_be_any && problem.n % schedule.lanes == 0 && HasAnyA(problem, schedule, reads);
    any_size_ = any_a_ && of_any_size && HasAnySize(problem, schedule);
    const bool whole = problem.n % (int64_t{schedule.lanes} * schedule.nv) == 0;
    any_a_ &= any_size_ || whole;
    any_width_ = may_be_any && (any_size_ || whole);
    any_windows_ = of_any_size && HasAnyWindows(problem, schedule, reads);
    is_direct_ = any_size_ && !has_epilogue && gemm::IsDirect(problem, schedule);
    if (is_direct_) problem_.c_n = 1;
    if (any_width_) MakeAnyWidth();
    if (any_a_) MakeAnyA();
    if (any_size_) MakeAnySize();
    if (any_windows_) MakeAnyWindows();
    name_ = family_ = Name();
    const bool is_words = schedule.unit != kernel::GemmUnit::kElement;
    if (!any_a_ || is_words || is_direct_) return;
    if (schedule.b != GemmB::kPackPanel || schedule.kc < kLongBlock) return;
    may_be_one_block_ = schedule.k_blocks > 1;
    if (may_be_one_block_) return;
    SetBlocks(2);
    family_ = Name();
    SetBlocks(1);
  }

  const std::string& name() const { return name_; }
  // That of the code which does for several blocks of k, too.
  const std::string& family() const { return family_; }
  // Whether it stores into C, by the address that others have for `finish`.
  bool is_direct() const { return is_direct_; }
  bool IsIn(const llvm::Module& module) const {
    return module.getFunction(name_) != nullptr || module.getFunction(family_) != nullptr;
  }

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
    (is_direct_ ? operands.c : operands.finish) = f->getArg(7);
    gemm::EmitLoops(e, operands);
    return f;
  }

 private:
  std::string Name() const {
    std::string name = Cat(is_direct_     ? "gemm of any A and size into C "
                           : any_size_    ? "gemm of any A and size "
                           : any_a_       ? "gemm of any A and width "
                           : any_windows_ ? "gemm of any windows "
                           : any_width_   ? "gemm of any width "
                                          : "gemm ",
                           problem_.ToString(), " ", schedule_.ToString());
    if (reads_.a_prologue) name += Cat(" a: ", reads_.a_prologue->text);
    if (reads_.b_prologue) name += Cat(" b: ", reads_.b_prologue->text);
    return name;
  }
  // Whether strides in A cost no more instructions for each step when they are no constants.
  static bool MayHaveAnyRows(const kernel::GemmProblem& p, const kernel::GemmSchedule& s,
                             const GemmOperands& reads) {
    const bool is_words = s.unit != kernel::GemmUnit::kElement;
    const bool converts = !s.pack_a && (reads.a_prologue || (p.TypeOfA() != p.type && !is_words));
    if (converts || s.nv < 2) return false;
    if (s.unroll == 1) return s.mr <= kMostRows;
    return s.mr <= kMostRowsOfSteps && s.nv <= kMostVectorsOfSteps;
  }
  static bool HasAnyA(const kernel::GemmProblem& p, const kernel::GemmSchedule& s,
                      const GemmOperands& reads) {
    return MayHaveAnyRows(p, s, reads) && p.BatchSize() == 1 && s.kc % s.unroll == 0 &&
           p.k == s.kc * s.k_blocks * s.group();
  }
  // Windows of a convolution whose rows do not follow each other: the sum has two levels, and A
  // has rows in two dimensions.
  static bool HasAnyWindows(const kernel::GemmProblem& p, const kernel::GemmSchedule& s,
                            const GemmOperands& reads) {
    return s.kind == GemmKind::kOuter && s.b == GemmB::kPackPanel && !s.pack_a &&
           s.unit == kernel::GemmUnit::kElement && MayHaveAnyRows(p, s, reads) &&
           p.k % s.unroll == 0 && p.k_outer.size() == 1 && p.batch.size() == 1 &&
           p.k_outer[0].a != p.a_k * p.k;
  }
  // Whether loops of any size cost no more instructions for each step. Blocks of k that columns are
  // packed from have a vector's steps, or more.
  static bool HasAnySize(const kernel::GemmProblem& p, const kernel::GemmSchedule& s) {
    return s.unit == kernel::GemmUnit::kElement && !s.prefetch_b && (p.b_n == 1 || s.kc >= s.lanes);
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
  // Sizes by which nothing divides, so that all of them are right.
  void MakeAnySize() {
    problem_.m = int64_t{3} * schedule_.mr - 1;
    problem_.n = int64_t{schedule_.lanes} * (2 * schedule_.nv - 1);
    const bool is_one = schedule_.m_blocks == 1;
    schedule_.m_blocks = is_one ? 1 : 2;
    schedule_.block_m = is_one ? 3 : 2;
    schedule_.m_tiles = schedule_.row_tiles = 3;
    schedule_.kc = schedule_.kc < kLongBlock ? kLongBlock / 2 : kLongBlock;
    SetBlocks(schedule_.k_blocks);
  }
  void MakeAnyWindows() { problem_.a_m = problem_.batch[0].a = problem_.k_outer[0].a = 0; }
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
    if (any_size_) {
      e.any_size = true;
      e.shape.m_tiles = told.m_tiles;
      e.shape.m_blocks = told.m_blocks;
      e.shape.block_m = told.block_m;
      e.shape.last_row = told.last_row;
      e.shape.last_vector = told.last_vector;
      e.shape.kc = told.kc;
      e.shape.c_row = told.c_row;
      e.shape.slot = told.slot;
      e.shape.panel_slot = told.panel_slot;
      e.shape.panel_bytes = told.panel_bytes;
    }
    if (any_windows_) {
      e.any_windows = true;
      e.shape.a_row = told.a_row;
      e.shape.a_batch = told.a_batch;
      e.shape.a_level = told.a_level;
    }
    e.any_a = any_a_;
    if (!any_a_) return;
    if (schedule_.k_blocks > 1) e.shape.k_blocks = told.k_blocks;
    e.shape.a_row = told.a_row;
    e.shape.a_step = told.a_step;
    e.shape.a_tile = told.a_tile;
    e.shape.a_last = told.a_last;
    e.shape.a_block = told.a_block;
    e.may_be_one_block = may_be_one_block_;
    if (!may_be_one_block_) return;
    e.shape.slot = told.slot;
    e.shape.panel_slot = told.panel_slot;
  }

  kernel::GemmProblem problem_;
  kernel::GemmSchedule schedule_;
  const GemmOperands reads_;
  bool any_width_, any_a_, any_size_, any_windows_, is_direct_;
  bool may_be_one_block_ = false;
  std::string name_, family_;
};

}  // namespace

bool MayFinishAlongM(const kernel::GemmProblem& p, const kernel::GemmSchedule& s) {
  return s.kind == GemmKind::kOuter && s.lanes >= 2 && s.mr >= s.lanes / 2 && p.m % s.mr == 0 &&
         !s.by_columns;
}

Status EmitGemm(llvm::Function* function, const kernel::GemmProblem& problem,
                const kernel::GemmSchedule& schedule, const GemmOperands& operands,
                const GemmEpilogue& epilogue) {
  KILN_RETURN_IF_ERROR(gemm::Check(problem, schedule));
  const SharedGemm shared(problem, schedule, operands, bool(epilogue), operands.of_any_size);
  const bool in_registers = IsInRegisters(*function, problem, schedule, epilogue);
  // Alone, a gemm without epilogue is less code.
  const bool shares = epilogue ? !in_registers
                               : (shared.is_direct() || !gemm::IsDirect(problem, schedule)) &&
                                     (operands.of_any_size || shared.IsIn(*function->getParent()));
  Emitter e(function, problem, schedule, shares ? nullptr : operands.a_prologue,
            shares ? nullptr : operands.b_prologue);
  LoopOperands at;
  at.a = e.Arg(operands.a);
  at.b = e.Arg(operands.b);
  if (!schedule.pack_a) at.a = e.Offset(at.a, problem.a_first * e.a_bytes);
  if (schedule.b != GemmB::kPrepacked) at.b = e.Offset(at.b, e.BytesOfB(problem.b_first));
  if (schedule.scratch_bytes > 0) at.scratch = e.Arg(operands.scratch);
  const bool has_edges = problem.m % schedule.mr != 0 || e.n_vectors % schedule.nv != 0 || e.ragged;
  if (shares && shared.is_direct()) {
    at.finish = e.Arg(operands.c);
  } else if (shares || (in_registers && has_edges) ||
             (!epilogue && StoresAlongM(problem, schedule))) {
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

std::string SharedGemmFamily(const kernel::GemmProblem& problem,
                             const kernel::GemmSchedule& schedule, bool has_epilogue,
                             bool of_any_size) {
  const SharedGemm shared(problem, schedule, GemmOperands(), has_epilogue, of_any_size);
  const bool may_share = has_epilogue || shared.is_direct() || !gemm::IsDirect(problem, schedule);
  return may_share ? shared.family() : std::string();
}

}  // namespace kiln::codegen
