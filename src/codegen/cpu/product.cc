#include "codegen/cpu/product.h"

#include "base/strings.h"
#include "codegen/cpu/gemm.h"
#include "codegen/cpu/nest_emitter.h"
#include "kernel/contraction.h"

namespace kiln::codegen {
namespace {

// The kernel's later stages, for one vector of the product.
class Epilogue {
 public:
  Epilogue(const plan::ScheduledKernel& kernel, const target::Cpu& cpu)
      : kernel_(kernel), cpu_(cpu) {}

  void Emit(llvm::IRBuilder<>& b, const GemmVector& result) {
    const kernel::Contraction& c = *kernel_.contraction;
    int64_t lanes = kernel_.gemm->lanes;
    NestEmitter e(b.GetInsertBlock()->getParent(), kernel_.kernel, cpu_, b.saveIP());
    if (c.m_variable >= 0) e.Bind(c.m_variable, result.m);
    for (size_t i = 0; i < c.batch_variables.size(); ++i) {
      e.Bind(c.batch_variables[i], result.batch[i]);
    }
    Lanes value{{result.value}, lanes > 1};
    if (c.n_variable >= 0) {
      e.BindVector(c.n_variable, result.n, lanes, 1, result.mask, lanes);
    } else if (lanes > 1) {
      // One column: the first lane is all there is.
      value = {{e.builder().CreateExtractElement(result.value, uint64_t{0})}, false};
    }
    e.SetReduced(0, 0, 0, std::move(value));
    for (size_t s = 1; s < kernel_.kernel.stages.size(); ++s) {
      int stage = static_cast<int>(s);
      e.EmitReady(stage);
      for (size_t i = 0; i < kernel_.kernel.stages[s].stores.size(); ++i) {
        e.EmitStore(stage, static_cast<int>(i));
      }
    }
    b.restoreIP(e.builder().saveIP());
    if (status_.ok()) status_ = e.status();
  }

  const Status& status() const { return status_; }

 private:
  const plan::ScheduledKernel& kernel_;
  const target::Cpu& cpu_;
  Status status_;
};

// A packed operand stands in the place of the plain one, which nothing else may then read.
Status CheckPacked(const plan::ScheduledKernel& kernel) {
  const kernel::Contraction& c = *kernel.contraction;
  auto check = [&](int param, bool packed) -> Status {
    int uses = c.a_param == c.b_param ? 1 : 0;
    for (const kernel::Stage& stage : kernel.kernel.stages) {
      for (const kernel::Node& n : stage.nodes) {
        uses += n.kind == kernel::Node::Kind::kLoad && n.param == param;
      }
    }
    if (!packed || uses <= 1) return OkStatus();
    return Internal("kernel ", kernel.kernel.name, ": p", param,
                    " is packed, and is read in another place");
  };
  KILN_RETURN_IF_ERROR(check(c.a_param, kernel.gemm->pack_a));
  return check(c.b_param, kernel.gemm->b == kernel::GemmB::kPrepacked);
}

}  // namespace

Status EmitProduct(llvm::Function* function, const plan::ScheduledKernel& kernel,
                   const target::Cpu& cpu) {
  if (!kernel.contraction || !kernel.gemm) {
    return Internal("kernel ", kernel.kernel.name, ": a product without a schedule");
  }
  const kernel::Contraction& c = *kernel.contraction;
  switch (kernel.form) {
    case plan::ScheduledKernel::Form::kNest:
    case plan::ScheduledKernel::Form::kBundle:
      return Internal("kernel ", kernel.kernel.name, " is no product");
    case plan::ScheduledKernel::Form::kPackLhs:
      return EmitGemmPackA(function, c.problem, *kernel.gemm, 0, 1);
    case plan::ScheduledKernel::Form::kPackRhs:
      return EmitGemmPackB(function, c.problem, *kernel.gemm, 0, 1);
    case plan::ScheduledKernel::Form::kGemm:
      break;
  }
  KILN_RETURN_IF_ERROR(CheckPacked(kernel));
  GemmOperands operands;
  operands.a = c.a_param;
  operands.b = c.b_param;
  operands.c = c.c_param;
  operands.scratch = static_cast<int>(kernel.kernel.params.size());
  if (c.c_param >= 0) return EmitGemm(function, c.problem, *kernel.gemm, operands);
  Epilogue epilogue(kernel, cpu);
  KILN_RETURN_IF_ERROR(
      EmitGemm(function, c.problem, *kernel.gemm, operands,
               [&](llvm::IRBuilder<>& b, const GemmVector& v) { epilogue.Emit(b, v); }));
  return epilogue.status();
}

}  // namespace kiln::codegen
