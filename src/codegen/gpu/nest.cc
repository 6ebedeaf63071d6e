#include "codegen/gpu/nest.h"

#include <functional>
#include <vector>

#include "codegen/gpu/emitter.h"
#include "kernel/schedule/gpu/nest.h"
#include "kernel/schedule/gpu/scatter.h"

namespace kiln::codegen {

using kernel::GpuSchedule;
using kernel::Node;
using kernel::Stage;
using kernel::StageId;
using kernel::VariableId;
using llvm::Value;

// A thread for so many consecutive points.
void EmitElementwise(GpuEmitter& e) {
  const int lanes = e.schedule().vector;
  if (e.kernel().outer == 0) {
    e.If(e.b().CreateICmpEQ(e.thread(), e.Int(0)), [&] { e.EmitStores(StageId(0)); });
    return;
  }
  const VariableId last = e.kernel().LastOuter();
  const int64_t threads = e.launch().threads;
  Value* first = e.b().CreateAdd(e.b().CreateMul(e.block(), e.Int(threads)), e.thread());
  e.Loop(first, e.Int(e.outer_points() / lanes), e.Int(threads * e.launch().blocks),
         [&](Value* position) {
           e.DelineariseSteps(position, e.OuterVariables(), lanes);
           e.StoreLanes(StageId(0), last, lanes);
         });
}

namespace {

// Both stages of a scan at each point of their variable.
void EmitSerialScan(GpuEmitter& e) {
  const GpuEmitter::Accumulators accumulators = e.MakeAccumulators(StageId(0), /*from_inits=*/true);
  const VariableId v = e.kernel().stages.front().variables[0];
  e.Loop(e.Int(0), e.Int(e.kernel().variables[v].extent), e.Int(1), [&](Value* i) {
    e.SetVariable(v, i);
    e.Accumulate(StageId(0), accumulators);
    for (kernel::ReductionId k : accumulators.ids()) {
      e.SetReduced(StageId(0), k, e.Current(accumulators[k]));
    }
    e.EmitStores(StageId(1));
  });
}

}  // namespace

void EmitSerial(GpuEmitter& e) {
  const kernel::Kernel& kernel = e.kernel();
  // Updates that go in order are one thread's.
  std::vector<VariableId> shared_out = e.OuterVariables();
  const bool is_scatter = kernel.kind == kernel::Kernel::Kind::kScatter;
  kernel::GpuUpdateOrder order;
  if (is_scatter) {
    order = kernel::OrderOfUpdates(kernel);
    shared_out.insert(shared_out.end(), order.others.begin(), order.others.end());
  }
  const int64_t threads = e.launch().threads;
  Value* first = e.b().CreateAdd(e.b().CreateMul(e.block(), e.Int(threads)), e.thread());
  e.Loop(first, e.Int(e.kernel().PointsOf(shared_out)), e.Int(threads * e.launch().blocks),
         [&](Value* point) {
           e.Delinearise(point, shared_out);
           switch (kernel.kind) {
             case kernel::Kernel::Kind::kScan:
               return EmitSerialScan(e);
             case kernel::Kernel::Kind::kScatter:
               return e.InOrder(order.in_order, [&] { e.EmitUpdates(StageId(0)); });
             case kernel::Kernel::Kind::kNest:
             case kernel::Kernel::Kind::kSort:
               return e.EmitSerialStages(StageId(0));
           }
         });
}

void EmitTranspose(GpuEmitter& e) {
  const kernel::Kernel& kernel = e.kernel();
  Builder& b = e.b();
  auto load = *kernel::FindTransposeLoad(kernel);
  const Node& node = kernel.stages.front().nodes[load.node];
  const int64_t tile = e.schedule().tile, step = e.launch().threads / tile;
  const int64_t rows = kernel.variables[load.row].extent;
  const int64_t columns = kernel.variables[load.column].extent;
  const int64_t row_tiles = (rows + tile - 1) / tile, column_tiles = (columns + tile - 1) / tile;
  std::vector<VariableId> rest;
  for (VariableId v : e.OuterVariables()) {
    if (v != load.row && v != load.column) rest.push_back(v);
  }
  Value* x = b.CreateURem(e.thread(), e.Int(tile));
  Value* y = b.CreateUDiv(e.thread(), e.Int(tile));
  Value* shared = e.gpu().Shared();
  auto at = [&](Value* row, Value* column) {  // row, column within the tile
    return b.CreateAdd(b.CreateMul(column, e.Int(tile + 1)), row);
  };
  auto inside = [&] {
    return b.CreateAnd(b.CreateICmpSLT(e.variable(load.row), e.Int(rows)),
                       b.CreateICmpSLT(e.variable(load.column), e.Int(columns)));
  };
  const int64_t tiles = e.kernel().PointsOf(rest) * row_tiles * column_tiles;
  e.Loop(e.block(), e.Int(tiles), e.Int(e.launch().blocks), [&](Value* t) {
    Value* first_column = b.CreateMul(b.CreateURem(t, e.Int(column_tiles)), e.Int(tile));
    t = b.CreateUDiv(t, e.Int(column_tiles));
    Value* first_row = b.CreateMul(b.CreateURem(t, e.Int(row_tiles)), e.Int(tile));
    e.Delinearise(b.CreateUDiv(t, e.Int(row_tiles)), rest);
    // In: threads are along the memory of the input.
    e.Loop(y, e.Int(tile), e.Int(step), [&](Value* column) {
      e.SetVariable(load.row, b.CreateAdd(first_row, x));
      e.SetVariable(load.column, b.CreateAdd(first_column, column));
      e.If(inside(),
           [&] { e.StorePartial(e.Load(StageId(0), node), shared, at(x, column), node.type); });
    });
    e.gpu().Barrier();
    // Out: along the memory of the output.
    e.Loop(y, e.Int(tile), e.Int(step), [&](Value* row) {
      e.SetVariable(load.row, b.CreateAdd(first_row, row));
      e.SetVariable(load.column, b.CreateAdd(first_column, x));
      e.If(inside(), [&] {
        e.SetNode(StageId(0), load.node, e.LoadPartial(shared, at(row, x), node.type));
        e.EmitStores(StageId(0));
      });
    });
    e.gpu().Barrier();
  });
}

llvm::FunctionType* GpuKernelType(llvm::LLVMContext& context, const kernel::Kernel& kernel,
                                  const GpuSchedule& schedule) {
  std::vector<llvm::Type*> params(kernel.params.size() + (schedule.scratch_bytes > 0 ? 1 : 0),
                                  llvm::PointerType::get(context, kGlobalSpace));
  return llvm::FunctionType::get(llvm::Type::getVoidTy(context), params, false);
}

Status EmitGpuKernel(llvm::Function* function, const kernel::Kernel& kernel,
                     const GpuSchedule& schedule, size_t launch, MathOptions math,
                     CombinerFunctions& combiners) {
  GpuEmitter e(function, kernel, schedule, launch, math, combiners);
  switch (schedule.form) {
    case GpuSchedule::Form::kElementwise:
      EmitElementwise(e);
      break;
    case GpuSchedule::Form::kTranspose:
      EmitTranspose(e);
      break;
    case GpuSchedule::Form::kTeams:
      EmitTeams(e);
      break;
    case GpuSchedule::Form::kGemm:
      EmitGemm(e);
      break;
    case GpuSchedule::Form::kSerial:
      EmitSerial(e);
      break;
    case GpuSchedule::Form::kScan:
      EmitScan(e);
      break;
    case GpuSchedule::Form::kSort:
      EmitSort(e);
      break;
    case GpuSchedule::Form::kScatter:
      EmitScatter(e);
      break;
    case GpuSchedule::Form::kOwners:
      EmitOwners(e);
      break;
  }
  e.b().CreateRetVoid();
  return e.status();
}

}  // namespace kiln::codegen
