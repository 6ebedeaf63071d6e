#include "compiler/gpu/library_gemm.h"

#include <algorithm>
#include <numeric>
#include <utility>
#include <vector>

#include "kernel/schedule/gpu/gemm.h"
#include "program/program.h"

namespace kiln::compiler {
namespace {

using kernel::Atom;
using kernel::GpuFactors;
using kernel::GpuPiece;
using kernel::Index;
using kernel::Kernel;
using kernel::Node;
using kernel::Param;
using kernel::Reduction;
using kernel::Stage;
using kernel::StageId;
using kernel::Store;
using kernel::VariableId;
using program::LibraryGemm;
using program::LibraryMatrix;

// Where the elements of a matrix are, by its two groups of variables.
struct Strides {
  int64_t points = 0, inner = 0, batch = 0;
};

std::optional<Strides> StridesOf(const Kernel& kernel, const Index& index, const GpuFactors& f,
                                 const std::vector<VariableId>& points,
                                 const std::vector<VariableId>& inner) {
  for (const Index::Term& t : index.terms()) {
    if (t.atom.kind != Atom::Kind::kVariable) return std::nullopt;
  }
  auto by_points = kernel::GpuStrideOf(kernel, index, points),
       by_inner = kernel::GpuStrideOf(kernel, index, inner),
       by_batch = kernel::GpuStrideOf(kernel, index, f.batch);
  if (!by_points || !by_inner || !by_batch) return std::nullopt;
  return Strides{*by_points, *by_inner, *by_batch};
}

void SetAlignment(LibraryMatrix& matrix, int64_t width) {
  matrix.alignment = std::gcd(program::kAlignment, matrix.offset * width);
  matrix.alignment = std::gcd(matrix.alignment, matrix.batch_stride * width);
}

// A plainly loaded factor; lossless conversions have been stripped already.
std::optional<LibraryMatrix> FactorOf(const Kernel& kernel, const GpuFactors& f,
                                      const GpuPiece& piece, bool is_x, int64_t points, int64_t k) {
  const Node& node = kernel.stages.front().nodes[piece.node];
  if (node.kind != Node::Kind::kLoad || node.guard.valid() || node.type != piece.type) {
    return std::nullopt;
  }
  auto strides = StridesOf(kernel, node.index, f, is_x ? f.rows : f.columns, f.inner);
  if (!strides || strides->batch < 0 || kernel.params[node.param].role != Param::Role::kInput) {
    return std::nullopt;
  }
  LibraryMatrix matrix{.argument = node.param.value(), .offset = node.index.constant()};
  matrix.batch_stride = strides->batch;
  if (strides->inner == 1 && strides->points >= k) {
    matrix.along_k = true;
    matrix.stride = strides->points;
  } else if (strides->points == 1 && strides->inner >= points) {
    matrix.stride = strides->inner;
  } else {
    return std::nullopt;
  }
  SetAlignment(matrix, ByteWidth(node.type));
  return matrix;
}

bool IsZero(const Node& node) {
  if (node.kind != Node::Kind::kConstant || !node.literal) return false;
  const auto* bytes = static_cast<const std::byte*>(node.literal->data());
  return std::all_of(bytes, bytes + node.literal->byte_size(),
                     [](std::byte b) { return b == std::byte{0}; });
}

// The one store of the sum as it is, or rounded once to a factor's type.
const Store* PlainStore(const Kernel& kernel, ElementType factor) {
  if (kernel.stages.size() != 2 || kernel.stages[StageId(1)].stores.size() != 1) return nullptr;
  const Stage& stage = kernel.stages[StageId(1)];
  const Store& store = stage.stores[0];
  const Node* node = &stage.nodes[store.value];
  if (node->kind == Node::Kind::kOp && node->opcode == Opcode::kConvert && node->type == factor) {
    node = &stage.nodes[node->operands[0]];
  }
  if (node->kind != Node::Kind::kReduced || node->stage != StageId(0)) return nullptr;
  const Param& param = kernel.params[store.param];
  if (param.role != Param::Role::kOutput || param.in_place_of.valid()) return nullptr;
  return &store;
}

bool IsKnown(ElementType factor, ElementType sum, ElementType out, int64_t k) {
  switch (factor) {
    case ElementType::kF32:
    case ElementType::kF64:
      return sum == factor && out == factor;
    case ElementType::kF16:
    case ElementType::kBF16:
      return sum == ElementType::kF32 && (out == factor || out == sum);
    case ElementType::kS8:
      // Longer sums may wrap around, or not.
      return sum == ElementType::kS32 && out == sum && k < (1 << 17);
    default:
      return false;
  }
}

}  // namespace

std::optional<LibraryGemm> AsLibraryGemm(const kernel::ScheduledKernel& scheduled) {
  const Kernel& kernel = scheduled.kernel;
  const auto* schedule = std::get_if<kernel::GpuSchedule>(&scheduled.schedule);
  if (!schedule || schedule->form != kernel::GpuSchedule::Form::kGemm) return std::nullopt;
  auto f = kernel::FindGpuFactors(kernel);
  const kernel::GpuTile& tile = schedule->gemm;
  if (!f || tile.x.type != tile.y.type) return std::nullopt;
  const Reduction& reduction = kernel.stages.front().reductions.front();
  const Node& init = kernel.stages.front().nodes[reduction.inits[0]];
  const Store* store = PlainStore(kernel, tile.x.type);
  if (!store || !IsZero(init)) return std::nullopt;

  LibraryGemm p;
  p.m = kernel.PointsOf(f->rows);
  p.n = kernel.PointsOf(f->columns);
  p.k = kernel.PointsOf(f->inner);
  p.batch = kernel.PointsOf(f->batch);
  p.factor = tile.x.type;
  p.sum = tile.sum;
  p.out = kernel.params[store->param].type;
  p.tf32 = tile.unit == kernel::GpuUnit::kTF32;
  if (!IsKnown(p.factor, p.sum, p.out, p.k)) return std::nullopt;
  auto x = FactorOf(kernel, *f, tile.x, true, p.m, p.k);
  auto y = FactorOf(kernel, *f, tile.y, false, p.n, p.k);
  auto out = StridesOf(kernel, store->index, *f, f->rows, f->columns);
  if (!x || !y || !out) return std::nullopt;
  p.x = *x;
  p.y = *y;
  // If it is contiguous along the rows, it is the transposed gemm.
  if (out->inner != 1 && out->points == 1) {
    std::swap(p.x, p.y);
    std::swap(p.m, p.n);
    std::swap(out->points, out->inner);
  }
  // No two matrices of a batch may be one.
  if (out->inner != 1 || out->points < p.n || (p.batch > 1 && out->batch < 1)) return std::nullopt;
  p.out_matrix = {.argument = store->param.value(),
                  .offset = store->index.constant(),
                  .stride = out->points,
                  .batch_stride = out->batch};
  SetAlignment(p.out_matrix, ByteWidth(p.out));
  return p;
}

}  // namespace kiln::compiler
