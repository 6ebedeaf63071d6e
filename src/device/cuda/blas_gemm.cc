// Gemms by cuBLASLt. Its matrices are column-major, so it computes the transposed gemm, the same in
// memory.

#include "base/strings.h"
#include "device/cuda/blas.h"

namespace kiln::device::cuda {
namespace {

using program::LibraryMatrix;

// The types of plain gemms.
BlasType TypeOf(ElementType type) {
  switch (type) {
    case ElementType::kF64:
      return BlasType::kF64;
    case ElementType::kF16:
      return BlasType::kF16;
    case ElementType::kBF16:
      return BlasType::kBF16;
    case ElementType::kS8:
      return BlasType::kS8;
    case ElementType::kS32:
      return BlasType::kS32;
    default:
      return BlasType::kF32;
  }
}

BlasCompute ComputeOf(const program::LibraryGemm& gemm) {
  if (gemm.sum == ElementType::kF64) return BlasCompute::k64F;
  if (gemm.sum == ElementType::kS32) return BlasCompute::k32I;
  return gemm.tf32 ? BlasCompute::k32FFastTF32 : BlasCompute::k32F;
}

// The allowed units: factors are rounded only by request, and sums have the type of the sum.
uint64_t ImplementationsOf(const program::LibraryGemm& gemm) {
  uint64_t excluded = kBlasSumF16;
  if (gemm.sum != ElementType::kS32) excluded |= kBlasTensorInteger;
  if (gemm.factor == ElementType::kF64) excluded |= kBlasTensor16;
  if (gemm.factor == ElementType::kF32) excluded |= kBlasInputF16 | kBlasInputBF16;
  if (gemm.factor == ElementType::kF32 && !gemm.tf32) {
    excluded |= kBlasTensor16 | kBlasInputTF32;
  }
  return ~excluded;
}

// Factors 1 and 0, of the type of the sum.
union Scale {
  float f32;
  double f64;
  int32_t s32;
};
Scale ScaleOf(ElementType sum, int value) {
  Scale scale{};
  if (sum == ElementType::kF64) {
    scale.f64 = value;
  } else if (sum == ElementType::kS32) {
    scale.s32 = value;
  } else {
    scale.f32 = static_cast<float>(value);
  }
  return scale;
}

std::byte* FirstOf(const GpuSpan& span, const program::LibraryMatrix& matrix, ElementType type) {
  return span.address + matrix.offset * ByteWidth(type);
}

}  // namespace

Result<std::unique_ptr<BlasGemm>> BlasGemm::Make(std::shared_ptr<Blas> blas,
                                                 const program::LibraryGemm& gemm) {
  std::unique_ptr<BlasGemm> made(new BlasGemm(std::move(blas), gemm));
  KILN_RETURN_IF_ERROR(made->Describe());
  KILN_ASSIGN_OR_RETURN(const bool chosen, made->Choose());
  if (!chosen) made.reset();
  return made;
}

BlasGemm::~BlasGemm() {
  for (BlasLayout layout : {a_, b_, out_}) Blas::GiveBack(blas_->api().LayoutDestroy, layout);
  Blas::GiveBack(blas_->api().DescDestroy, desc_);
}

// out' = y' x', if neighbours in a column of y' are along j; otherwise y itself is taken
// transposed.
Status BlasGemm::Describe() {
  const program::LibraryGemm& p = gemm_;
  const BlasFunctions& api = blas_->api();
  KILN_RETURN_IF_ERROR(blas_->Call(api.DescCreate, &desc_, ComputeOf(p), TypeOf(p.sum)));
  const int32_t a = p.y.along_k ? kBlasTransposed : kBlasPlain;
  const int32_t b = p.x.along_k ? kBlasPlain : kBlasTransposed;
  KILN_RETURN_IF_ERROR(blas_->Call(api.DescSet, desc_, BlasDescAttribute::kTransposeA,
                                   static_cast<const void*>(&a), sizeof(a)));
  KILN_RETURN_IF_ERROR(blas_->Call(api.DescSet, desc_, BlasDescAttribute::kTransposeB,
                                   static_cast<const void*>(&b), sizeof(b)));
  const BlasType factor = TypeOf(p.factor);
  KILN_RETURN_IF_ERROR(p.y.along_k ? MakeLayout(&a_, factor, p.k, p.n, p.y)
                                   : MakeLayout(&a_, factor, p.n, p.k, p.y));
  KILN_RETURN_IF_ERROR(p.x.along_k ? MakeLayout(&b_, factor, p.k, p.m, p.x)
                                   : MakeLayout(&b_, factor, p.m, p.k, p.x));
  return MakeLayout(&out_, TypeOf(p.out), p.n, p.m, p.out_matrix);
}

Status BlasGemm::MakeLayout(BlasLayout* layout, BlasType type, int64_t rows, int64_t columns,
                            const program::LibraryMatrix& matrix) {
  const BlasFunctions& api = blas_->api();
  KILN_RETURN_IF_ERROR(blas_->Call(api.LayoutCreate, layout, type, static_cast<uint64_t>(rows),
                                   static_cast<uint64_t>(columns), matrix.stride));
  if (gemm_.batch == 1) return OkStatus();
  const auto batch = static_cast<int32_t>(gemm_.batch);
  KILN_RETURN_IF_ERROR(blas_->Call(api.LayoutSet, *layout, BlasLayoutAttribute::kBatch,
                                   static_cast<const void*>(&batch), sizeof(batch)));
  return blas_->Call(api.LayoutSet, *layout, BlasLayoutAttribute::kBatchStride,
                     static_cast<const void*>(&matrix.batch_stride), sizeof(matrix.batch_stride));
}

Status BlasGemm::Prefer(BlasPreference preference) {
  const BlasFunctions& api = blas_->api();
  auto set = [&](BlasPreferenceAttribute attribute, auto value) {
    return blas_->Call(api.PreferenceSet, preference, attribute, static_cast<const void*>(&value),
                       sizeof(value));
  };
  using Attribute = BlasPreferenceAttribute;
  KILN_RETURN_IF_ERROR(set(Attribute::kMostWorkspaceBytes, uint64_t{kMostBlasWorkspaceBytes}));
  KILN_RETURN_IF_ERROR(set(Attribute::kReductionSchemes, kBlasReduceInComputeType));
  KILN_RETURN_IF_ERROR(set(Attribute::kImplementations, ImplementationsOf(gemm_)));
  const std::pair<Attribute, const program::LibraryMatrix*> matrices[] = {
      {Attribute::kAlignmentA, &gemm_.y},
      {Attribute::kAlignmentB, &gemm_.x},
      {Attribute::kAlignmentC, &gemm_.out_matrix},
      {Attribute::kAlignmentD, &gemm_.out_matrix}};
  for (const auto& [attribute, matrix] : matrices) {
    KILN_RETURN_IF_ERROR(set(attribute, static_cast<uint32_t>(matrix->alignment)));
  }
  return OkStatus();
}

Result<bool> BlasGemm::Choose() {
  const BlasFunctions& api = blas_->api();
  BlasPreference preference = nullptr;
  KILN_RETURN_IF_ERROR(blas_->Call(api.PreferenceCreate, &preference));
  int count = 0;
  Status status = Prefer(preference);
  if (status.ok()) {
    status = blas_->Call(api.GetHeuristic, blas_->handle(), desc_, a_, b_, out_, out_, preference,
                         1, &choice_, &count);
  }
  Blas::GiveBack(api.PreferenceDestroy, preference);
  // The status for no algorithm.
  if (status.code() == Code::kUnimplemented) return false;
  KILN_RETURN_IF_ERROR(status);
  return count > 0 && choice_.state == BlasError::kSuccess &&
         choice_.workspace_bytes <= size_t{kMostBlasWorkspaceBytes};
}

Status BlasGemm::LaunchOn(StreamHandle stream, std::span<const GpuSpan> args) {
  const bool has_workspace = choice_.workspace_bytes > 0;
  if (args.size() != (has_workspace ? 4u : 3u) ||
      (has_workspace && args[3].bytes < workspace_bytes())) {
    return InvalidArgument("a gemm by cuBLASLt takes three arrays, and a workspace of ",
                           workspace_bytes(), " bytes");
  }
  const Scale one = ScaleOf(gemm_.sum, 1), zero = ScaleOf(gemm_.sum, 0);
  const void* x = FirstOf(args[0], gemm_.x, gemm_.factor);
  const void* y = FirstOf(args[1], gemm_.y, gemm_.factor);
  void* out = FirstOf(args[2], gemm_.out_matrix, gemm_.out);
  return blas_->Call(blas_->api().Matmul, blas_->handle(), desc_, static_cast<const void*>(&one), y,
                     a_, x, b_, static_cast<const void*>(&zero), static_cast<const void*>(out),
                     out_, out, out_, &choice_.algorithm,
                     static_cast<void*>(has_workspace ? args[3].address : nullptr),
                     choice_.workspace_bytes, stream);
}

}  // namespace kiln::device::cuda
