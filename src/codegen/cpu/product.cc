#include "codegen/cpu/product.h"

#include <optional>

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

// An operand's elements, from what is loaded. Of a packing kernel the scalars come behind its two
// arrays.
class Prologue {
 public:
  Prologue(const plan::ScheduledKernel& kernel, const kernel::Prologue& prologue, bool packing,
           const target::Cpu& cpu)
      : stage_(kernel.kernel.stages[0]), prologue_(prologue), cpu_(cpu) {
    for (size_t i = 0; i < prologue.scalars.size(); ++i) {
      int param = stage_.nodes[static_cast<size_t>(prologue.scalars[i])].param;
      args_.push_back(packing ? 2 + static_cast<int>(i) : param);
    }
    code_.compute = [this](llvm::IRBuilder<>& b, llvm::Value* loaded, int lanes) {
      return Compute(b, loaded, lanes);
    };
    code_.begin = [this](llvm::IRBuilder<>& b, llvm::Value* args) { LoadScalars(b, args); };
    code_.text = Text(prologue.node);
  }
  Prologue(const Prologue&) = delete;

  const GemmPrologue& code() const { return code_; }
  const Status& status() const { return status_; }

 private:
  void LoadScalars(llvm::IRBuilder<>& b, llvm::Value* args) {
    scalars_.clear();
    for (size_t i = 0; i < args_.size(); ++i) {
      const kernel::Node& n = stage_.nodes[static_cast<size_t>(prologue_.scalars[i])];
      llvm::Value* slot =
          b.CreateConstInBoundsGEP1_64(b.getPtrTy(), args, static_cast<uint64_t>(args_[i]));
      llvm::Value* at =
          b.CreateConstGEP1_64(b.getInt8Ty(), b.CreateLoad(b.getPtrTy(), slot),
                               static_cast<uint64_t>(n.index.constant() * ByteWidth(n.type)));
      llvm::Value* value =
          b.CreateAlignedLoad(MemoryType(b.getContext(), n.type), at,
                              llvm::Align(static_cast<uint64_t>(ByteWidth(n.type))));
      scalars_.push_back(FromMemory(b, value, n.type, MathOf(cpu_)));
    }
  }

  llvm::Value* Compute(llvm::IRBuilder<>& b, llvm::Value* loaded, int lanes) {
    std::vector<llvm::Value*> values(stage_.nodes.size());
    values[static_cast<size_t>(prologue_.load)] = loaded;
    for (size_t i = 0; i < scalars_.size(); ++i) {
      values[static_cast<size_t>(prologue_.scalars[i])] = Splat(b, scalars_[i], lanes);
    }
    return At(b, prologue_.node, lanes, values);
  }

  llvm::Value* At(llvm::IRBuilder<>& b, int node, int lanes, std::vector<llvm::Value*>& values) {
    llvm::Value*& value = values[static_cast<size_t>(node)];
    if (value) return value;
    const kernel::Node& n = stage_.nodes[static_cast<size_t>(node)];
    if (n.kind == kernel::Node::Kind::kConstant) {
      return value = Splat(b, ConstantOf(b.getContext(), *n.literal), lanes);
    }
    std::vector<llvm::Value*> operands;
    std::vector<ElementType> types;
    for (int o : n.operands) {
      operands.push_back(At(b, o, lanes, values));
      types.push_back(stage_.nodes[static_cast<size_t>(o)].type);
    }
    Result<llvm::Value*> result = EmitOp(b, n, operands, types, MathOf(cpu_));
    if (result.ok()) return value = *result;
    if (status_.ok()) status_ = result.status();
    llvm::Type* type = RegisterType(b.getContext(), n.type);
    return value = Splat(b, llvm::Constant::getNullValue(type), lanes);
  }

  std::string Text(int node) const {
    const kernel::Node& n = stage_.nodes[static_cast<size_t>(node)];
    if (node == prologue_.load) return std::string(TypeName(n.type));
    for (size_t i = 0; i < prologue_.scalars.size(); ++i) {
      if (node == prologue_.scalars[i]) {
        return Cat(TypeName(n.type), " args[", args_[i], "][", n.index.constant(), "]");
      }
    }
    if (n.kind == kernel::Node::Kind::kConstant) {
      return Cat(TypeName(n.type), " ", n.literal->ToString());
    }
    std::string text =
        Cat(TypeName(n.type), " ", OpcodeName(n.opcode), " ", static_cast<int>(n.direction),
            n.total_order ? "t" : "", " ", n.exponent_bits, " ", n.mantissa_bits, "(");
    for (int o : n.operands) text += Cat(Text(o), ";");
    return text + ")";
  }

  const kernel::Stage& stage_;
  const kernel::Prologue& prologue_;
  const target::Cpu& cpu_;
  std::vector<int> args_;  // of the scalars
  std::vector<llvm::Value*> scalars_;
  GemmPrologue code_;
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
  const bool packing = kernel.form != plan::ScheduledKernel::Form::kGemm;
  std::optional<Prologue> a, b;
  if (c.a_prologue) a.emplace(kernel, *c.a_prologue, packing, cpu);
  if (c.b_prologue) b.emplace(kernel, *c.b_prologue, packing, cpu);
  auto status = [&] {
    if (a && !a->status().ok()) return a->status();
    return b ? b->status() : OkStatus();
  };
  switch (kernel.form) {
    case plan::ScheduledKernel::Form::kNest:
    case plan::ScheduledKernel::Form::kBundle:
    case plan::ScheduledKernel::Form::kChain:
      return Internal("kernel ", kernel.kernel.name, " is no product");
    case plan::ScheduledKernel::Form::kPackLhs:
      KILN_RETURN_IF_ERROR(
          EmitGemmPackA(function, c.problem, *kernel.gemm, 0, 1, a ? &a->code() : nullptr));
      return status();
    case plan::ScheduledKernel::Form::kPackRhs:
      KILN_RETURN_IF_ERROR(
          EmitGemmPackB(function, c.problem, *kernel.gemm, 0, 1, b ? &b->code() : nullptr));
      return status();
    case plan::ScheduledKernel::Form::kGemm:
      break;
  }
  KILN_RETURN_IF_ERROR(CheckPacked(kernel));
  GemmOperands operands;
  operands.a = c.a_param;
  operands.b = c.b_param;
  operands.c = c.c_param;
  operands.scratch = static_cast<int>(kernel.kernel.params.size());
  if (a && !kernel.gemm->pack_a) operands.a_prologue = &a->code();
  if (b && kernel.gemm->b != kernel::GemmB::kPrepacked) operands.b_prologue = &b->code();
  if (c.c_param >= 0) {
    KILN_RETURN_IF_ERROR(EmitGemm(function, c.problem, *kernel.gemm, operands));
    return status();
  }
  Epilogue epilogue(kernel, cpu);
  KILN_RETURN_IF_ERROR(
      EmitGemm(function, c.problem, *kernel.gemm, operands,
               [&](llvm::IRBuilder<>& b, const GemmVector& v) { epilogue.Emit(b, v); }));
  KILN_RETURN_IF_ERROR(status());
  return epilogue.status();
}

}  // namespace kiln::codegen
