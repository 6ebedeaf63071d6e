#include "codegen/cpu/gemm_kernel.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "base/strings.h"
#include "codegen/cpu/gemm.h"
#include "codegen/cpu/nest_emitter.h"
#include "kernel/contraction.h"

namespace kiln::codegen {
namespace {

using kernel::StageId;

// The kernel's later stages, for one vector of the gemm.
class Epilogue {
 public:
  Epilogue(const kernel::Kernel& kernel, const kernel::CpuGemm& gemm, const target::Cpu& cpu)
      : kernel_(kernel), gemm_(gemm), cpu_(cpu) {}

  void Emit(llvm::IRBuilder<>& b, const GemmVector& result) {
    const kernel::Contraction& c = *gemm_.contraction;
    const int64_t lanes = result.lanes;
    llvm::Function* function = b.GetInsertBlock()->getParent();
    NestEmitter e = function == function_ ? NestEmitter(args_, kernel_, cpu_, b.saveIP())
                                          : NestEmitter(function, kernel_, cpu_, b.saveIP());
    function_ = function;
    args_ = e.args();
    kernel::VariableId along = c.n_variable, across = c.m_variable;
    llvm::Value *first = result.n, *row = result.m;
    if (result.along_m) {
      std::swap(along, across);
      std::swap(first, row);
    }
    if (across.valid()) e.Bind(across, row);
    for (size_t i = 0; i < c.batch_variables.size(); ++i) {
      e.Bind(c.batch_variables[i], result.batch[i]);
    }
    Lanes value{{result.value}, lanes > 1};
    if (along.valid() && lanes > 1) {
      e.BindVector(along, first, lanes, 1, result.mask, result.along_m ? 1 : lanes);
    } else if (along.valid()) {
      e.Bind(along, first);
    } else if (lanes > 1) {
      // One column: the first lane is all there is.
      value = {{e.builder().CreateExtractElement(result.value, uint64_t{0})}, false};
    }
    e.SetReduced(StageId(0), kernel::ReductionId(0), 0, std::move(value));
    for (StageId s : kernel_.stages.ids(StageId(1))) {
      e.EmitReady(s);
      for (size_t i = 0; i < kernel_.stages[s].stores.size(); ++i) {
        e.EmitStore(s, static_cast<int>(i));
      }
    }
    b.restoreIP(e.builder().saveIP());
    if (status_.ok()) status_ = e.status();
  }

  const Status& status() const { return status_; }

 private:
  const kernel::Kernel& kernel_;
  const kernel::CpuGemm& gemm_;
  const target::Cpu& cpu_;
  llvm::Function* function_ = nullptr;  // that was emitted into last
  Values args_;                         // the parameters' addresses, which it loads once
  Status status_;
};

// An operand's elements, from its loads. In a packing kernel the arrays of the other loads come
// behind its two. `columns` is the variable of C's columns, where the operand has it.
class Prologue {
 public:
  Prologue(const kernel::Kernel& kernel, const kernel::Prologue& prologue, bool packing,
           kernel::VariableId columns, const target::Cpu& cpu)
      : stage_(kernel.stages.front()),
        prologue_(prologue),
        packing_(packing),
        columns_(columns),
        cpu_(cpu) {
    for (size_t i = 0; i < prologue.others.size(); ++i) {
      args_.push_back(packing ? 2 + i : NodeOf(prologue.others[i]).param.index());
    }
    code_.compute = [this](llvm::IRBuilder<>& b, llvm::Value* loaded, int lanes, GemmPlace place,
                           llvm::Value* mask) { return Compute(b, loaded, lanes, place, mask); };
    code_.begin = [this](llvm::IRBuilder<>& b, llvm::Value* args) { Begin(b, args); };
    code_.text = Text(prologue.node);
  }
  Prologue(const Prologue&) = delete;

  const GemmPrologue& code() const { return code_; }
  const Status& status() const { return status_; }

 private:
  const kernel::Node& NodeOf(kernel::NodeId node) const { return stage_.nodes[node]; }
  static bool IsScalar(const kernel::Node& load) { return load.index.terms().empty(); }

  llvm::Value* Array(llvm::IRBuilder<>& b, llvm::Value* args, uint64_t arg,
                     const kernel::Node& load) {
    llvm::Value* slot = b.CreateConstInBoundsGEP1_64(b.getPtrTy(), args, arg);
    return b.CreateConstGEP1_64(
        b.getInt8Ty(), b.CreateLoad(b.getPtrTy(), slot),
        static_cast<uint64_t>(load.index.constant() * ByteWidth(load.type)));
  }

  llvm::Value* Load(llvm::IRBuilder<>& b, const kernel::Node& load, llvm::Value* at, int lanes,
                    llvm::Value* mask) {
    const llvm::Align align(static_cast<uint64_t>(ByteWidth(load.type)));
    llvm::Type* type = MemoryType(b.getContext(), load.type);
    if (lanes > 1) type = llvm::FixedVectorType::get(type, static_cast<unsigned>(lanes));
    llvm::Value* value = lanes > 1 && mask
                             ? static_cast<llvm::Value*>(b.CreateMaskedLoad(
                                   type, at, align, mask, llvm::Constant::getNullValue(type)))
                             : b.CreateAlignedLoad(type, at, align);
    return FromMemory(b, value, load.type, MathOf(cpu_));
  }

  // Where arrays begin, and the numbers that all elements have in common.
  void Begin(llvm::IRBuilder<>& b, llvm::Value* args) {
    others_.clear();
    begun_ = {};
    const kernel::Node& main = NodeOf(prologue_.load);
    if (!prologue_.axes.empty()) begin_ = Array(b, args, packing_ ? 0 : main.param.index(), main);
    for (size_t i = 0; i < args_.size(); ++i) {
      const kernel::Node& n = NodeOf(prologue_.others[i]);
      llvm::Value* array = Array(b, args, args_[i], n);
      others_.push_back(IsScalar(n) ? Load(b, n, array, 1, nullptr) : array);
    }
  }

  // The points along the axes of the element at an address; null for unused ones.
  std::vector<llvm::Value*> PointsOf(llvm::IRBuilder<>& b, llvm::Value* pointer) {
    const auto& axes = prologue_.axes;
    auto wanted = [&](size_t axis) {
      return std::ranges::any_of(prologue_.others, [&](kernel::NodeId other) {
        return NodeOf(other).index.DependsOn(axes[axis].variable);
      });
    };
    size_t last = axes.size();
    while (last > 0 && !wanted(last - 1)) --last;
    std::vector<llvm::Value*> points(axes.size());
    if (last == 0) return points;
    auto number = [&](int64_t n) { return b.getInt64(static_cast<uint64_t>(n)); };
    llvm::Value* rest = b.CreateSub(b.CreatePtrToInt(pointer, b.getInt64Ty()),
                                    b.CreatePtrToInt(begin_, b.getInt64Ty()));
    rest = prologue_.half.valid()
               ? b.CreateShl(rest, 1)
               : b.CreateUDiv(rest, number(ByteWidth(NodeOf(prologue_.load).type)));
    for (size_t i = 0; i < last; ++i) {
      if (wanted(i)) points[i] = b.CreateUDiv(rest, number(axes[i].stride));
      if (i + 1 < last) rest = b.CreateURem(rest, number(axes[i].stride));
    }
    return points;
  }

  llvm::Value* Compute(llvm::IRBuilder<>& b, llvm::Value* loaded, int lanes, GemmPlace place,
                       llvm::Value* mask) {
    const bool goes_on = place.columns > 0 && columns_.valid() && begun_.first == place.first &&
                         begun_.lanes == lanes;
    if (!goes_on) BeginAt(b, place.pointer, lanes, mask);
    IdVector<kernel::NodeId, llvm::Value*> values(stage_.nodes.size());
    if (prologue_.half.valid()) {
      half_ = loaded;
      const ElementType half = NodeOf(prologue_.half).type;
      values[prologue_.half] = EmitConvert(b, loaded, ElementType::kS32, half, MathOf(cpu_));
    } else {
      values[prologue_.load] = loaded;
    }
    for (size_t i = 0; i < others_.size(); ++i) {
      values[prologue_.others[i]] =
          goes_on ? Further(b, i, place.columns, mask) : begun_.others[i].value;
    }
    return At(b, prologue_.node, lanes, values);
  }

  // What the other loads have beside the first of some elements, whose place takes divisions.
  struct Begun {
    struct Other {
      llvm::Value* at = nullptr;
      llvm::Value* value = nullptr;
      int64_t column = 0;  // bytes to the next column of C
      bool along = false;  // the vector
    };
    llvm::Value* first = nullptr;
    llvm::Value* mask = nullptr;
    int lanes = 0;
    std::vector<Other> others;
  };

  void BeginAt(llvm::IRBuilder<>& b, llvm::Value* pointer, int lanes, llvm::Value* mask) {
    begun_ = {pointer, mask, lanes, {}};
    std::vector<llvm::Value*> points = PointsOf(b, pointer);
    for (size_t i = 0; i < others_.size(); ++i) {
      const kernel::Node& n = NodeOf(prologue_.others[i]);
      Begun::Other& other = begun_.others.emplace_back();
      if (IsScalar(n)) {
        other.value = Splat(b, others_[i], lanes);
        continue;
      }
      llvm::Value* offset = b.getInt64(0);
      for (size_t a = 0; a < points.size(); ++a) {
        const kernel::VariableId variable = prologue_.axes[a].variable;
        int64_t stride = *n.index.StrideOf(variable);
        if (stride == 0) continue;
        other.along = other.along || prologue_.axes[a].stride == 1;
        int64_t bytes = stride * ByteWidth(n.type);
        if (variable == columns_) other.column = bytes;
        offset =
            b.CreateAdd(offset, b.CreateMul(points[a], b.getInt64(static_cast<uint64_t>(bytes))));
      }
      other.at = b.CreateGEP(b.getInt8Ty(), others_[i], offset);
      other.value = LoadOther(b, n, other, other.at, mask);
    }
  }

  llvm::Value* LoadOther(llvm::IRBuilder<>& b, const kernel::Node& load, const Begun::Other& other,
                         llvm::Value* at, llvm::Value* mask) {
    if (other.along) return Load(b, load, at, begun_.lanes, mask);
    return Splat(b, Load(b, load, at, 1, nullptr), begun_.lanes);
  }

  llvm::Value* Further(llvm::IRBuilder<>& b, size_t i, int64_t columns, llvm::Value* mask) {
    const Begun::Other& other = begun_.others[i];
    if (other.column == 0 && (!other.along || mask == begun_.mask)) return other.value;
    llvm::Value* at = b.CreateGEP(b.getInt8Ty(), other.at,
                                  b.getInt64(static_cast<uint64_t>(columns * other.column)));
    return LoadOther(b, NodeOf(prologue_.others[i]), other, at, mask);
  }

  llvm::Value* At(llvm::IRBuilder<>& b, kernel::NodeId node, int lanes,
                  IdVector<kernel::NodeId, llvm::Value*>& values) {
    llvm::Value*& value = values[node];
    if (value) return value;
    const kernel::Node& n = stage_.nodes[node];
    if (n.kind == kernel::Node::Kind::kConstant) {
      return value = Splat(b, ConstantOf(b.getContext(), *n.literal), lanes);
    }
    if (n.opcode == Opcode::kConvert && prologue_.half.valid() && n.operands[0] == prologue_.half) {
      return value = EmitConvert(b, half_, ElementType::kS32, n.type, MathOf(cpu_));
    }
    std::vector<llvm::Value*> operands;
    std::vector<ElementType> types;
    for (kernel::NodeId o : n.operands) {
      operands.push_back(At(b, o, lanes, values));
      types.push_back(stage_.nodes[o].type);
    }
    Result<llvm::Value*> result = EmitOp(b, n, operands, types, MathOf(cpu_));
    if (result.ok()) return value = *result;
    if (status_.ok()) status_ = result.status();
    llvm::Type* type = RegisterType(b.getContext(), n.type);
    return value = Splat(b, llvm::Constant::getNullValue(type), lanes);
  }

  std::string Text(kernel::NodeId node) const {
    const kernel::Node& n = stage_.nodes[node];
    if (node == prologue_.half) return Cat(TypeName(n.type), " half of ", Text(prologue_.load));
    if (node == prologue_.load) {
      std::string text(TypeName(n.type));
      // By its place others are found.
      if (!prologue_.axes.empty()) text += Cat(" args[", n.param, "][", n.index.ToString(), "]");
      return text;
    }
    for (size_t i = 0; i < prologue_.others.size(); ++i) {
      if (node == prologue_.others[i]) {
        return Cat(TypeName(n.type), " args[", args_[i], "][", n.index.ToString(), "]");
      }
    }
    if (n.kind == kernel::Node::Kind::kConstant) {
      return Cat(TypeName(n.type), " ", n.literal->ToString());
    }
    std::string text = Cat(TypeName(n.type), " ", OpcodeName(n.opcode), " ",
                           static_cast<int>(n.direction), n.total_order ? "t" : "", " ",
                           n.exponent_bits, " ", n.mantissa_bits, n.at_most_zero ? " z(" : "(");
    for (kernel::NodeId o : n.operands) text += Cat(Text(o), ";");
    return text + ")";
  }

  const kernel::Stage& stage_;
  const kernel::Prologue& prologue_;
  const bool packing_;
  const kernel::VariableId columns_;
  const target::Cpu& cpu_;
  std::vector<uint64_t> args_;        // of the other loads
  llvm::Value* begin_ = nullptr;      // the first element's address
  llvm::Value* half_ = nullptr;       // of halves of bytes, the elements as s32
  std::vector<llvm::Value*> others_;  // numbers, or where arrays begin
  Begun begun_;
  GemmPrologue code_;
  Status status_;
};

// Ops of an epilogue that has few instructions.
constexpr int kShortOps = 6;

bool IsShort(const kernel::Kernel& kernel) {
  int ops = 0;
  for (StageId s : kernel.stages.ids(StageId(1))) {
    for (const kernel::Node& n : kernel.stages[s].nodes) {
      if (n.kind != kernel::Node::Kind::kOp) continue;
      if (IsExpensive(n.opcode) || ++ops > kShortOps) return false;
    }
  }
  return true;
}

// So many results that their way through memory takes microseconds: thousands of runs make good
// the time that LLVM takes for the gemm's own code.
constexpr int64_t kManyResults = 1 << 16;
// Steps of a sum so short that this way takes a hundredth of the time or more.
constexpr int64_t kShortSum = 256;

// More arrays would take more registers than the loop over k leaves.
constexpr size_t kMostReads = 2;

// What an epilogue reads by rows that have not stayed in the first cache: matrices, that is.
std::vector<GemmRows> ReadsOf(const kernel::Kernel& kernel, const kernel::Contraction& c,
                              const target::Cpu& cpu) {
  std::vector<GemmRows> reads;
  if (!c.m_variable.valid() || !c.n_variable.valid()) return reads;
  for (StageId s : kernel.stages.ids(StageId(1))) {
    for (const kernel::Node& n : kernel.stages[s].nodes) {
      if (n.kind != kernel::Node::Kind::kLoad || reads.size() == kMostReads) continue;
      const int64_t m = n.index.StrideOf(c.m_variable).value_or(0);
      const int64_t bytes = ByteWidth(n.type);
      if (m <= 0 || n.index.StrideOf(c.n_variable) != 1) continue;
      if (kernel.params[n.param].elements * bytes <= cpu.l1_bytes) continue;
      GemmRows rows{.arg = static_cast<int>(n.param.value()),
                    .element_bytes = bytes,
                    .first = n.index.constant(),
                    .m = m};
      bool known = true;
      for (kernel::VariableId v : c.batch_variables) {
        const std::optional<int64_t> stride = n.index.StrideOf(v);
        known = known && stride;
        rows.batch.push_back(stride.value_or(0));
      }
      if (known && std::ranges::find(reads, rows) == reads.end()) reads.push_back(std::move(rows));
    }
  }
  return reads;
}

// Whether what an epilogue stores is contiguous along m, and not along n: vectors along n would be
// scattered.
bool IsAlongM(const kernel::Kernel& kernel, const kernel::CpuGemm& gemm) {
  const kernel::Contraction& c = *gemm.contraction;
  if (!MayFinishAlongM(c.problem, *gemm.schedule) || !c.m_variable.valid() ||
      !c.n_variable.valid()) {
    return false;
  }
  auto is_along = [&](const kernel::Index& index) {
    const std::optional<int64_t> m = index.StrideOf(c.m_variable), n = index.StrideOf(c.n_variable);
    return m == 1 && n && *n > 1;
  };
  bool found = false;
  for (StageId stage : kernel.stages.ids(StageId(1))) {
    for (const kernel::Store& store : kernel.stages[stage].stores) {
      if (!is_along(store.index)) return false;
      found = true;
    }
  }
  return found;
}

// A packed operand replaces the plain one, which must have no other reads.
Status CheckPacked(const kernel::Kernel& kernel, const kernel::CpuGemm& gemm) {
  const kernel::Contraction& c = *gemm.contraction;
  auto check = [&](kernel::ParamId param, bool packed) -> Status {
    int uses = c.a_param == c.b_param ? 1 : 0;
    for (const kernel::Stage& stage : kernel.stages) {
      for (const kernel::Node& n : stage.nodes) {
        uses += n.kind == kernel::Node::Kind::kLoad && n.param == param;
      }
    }
    if (!packed || uses <= 1) return OkStatus();
    return Internal("kernel ", kernel.name, ": p", param,
                    " is packed, and is read in another place");
  };
  KILN_RETURN_IF_ERROR(check(c.a_param, gemm.schedule->pack_a));
  return check(c.b_param, gemm.schedule->b == kernel::GemmB::kPrepacked);
}

}  // namespace

Status EmitGemmKernel(llvm::Function* function, const kernel::Kernel& kernel,
                      const kernel::CpuGemm& gemm, const target::Cpu& cpu, bool own_gemm,
                      bool of_any_size) {
  using Role = kernel::CpuGemm::Role;
  const kernel::Contraction& c = *gemm.contraction;
  const bool packing = gemm.role != Role::kGemm;
  std::optional<Prologue> a, b;
  if (c.a_prologue) a.emplace(kernel, *c.a_prologue, packing, kernel::VariableId(), cpu);
  if (c.b_prologue) b.emplace(kernel, *c.b_prologue, packing, c.n_variable, cpu);
  auto status = [&] {
    if (a && !a->status().ok()) return a->status();
    return b ? b->status() : OkStatus();
  };
  switch (gemm.role) {
    case Role::kPackLhs:
      KILN_RETURN_IF_ERROR(
          EmitGemmPackA(function, c.problem, *gemm.schedule, 0, 1, a ? &a->code() : nullptr));
      return status();
    case Role::kPackRhs:
      KILN_RETURN_IF_ERROR(
          EmitGemmPackB(function, c.problem, *gemm.schedule, 0, 1, b ? &b->code() : nullptr));
      return status();
    case Role::kGemm:
      break;
  }
  KILN_RETURN_IF_ERROR(CheckPacked(kernel, gemm));
  GemmOperands operands;
  operands.a = c.a_param.value();
  operands.b = c.b_param.value();
  operands.c = c.c_param.value();
  operands.scratch = static_cast<int>(kernel.params.size());
  operands.of_any_size = of_any_size;
  if (a && !gemm.schedule->pack_a) operands.a_prologue = &a->code();
  if (b && gemm.schedule->b != kernel::GemmB::kPrepacked) operands.b_prologue = &b->code();
  if (c.c_param.valid()) {
    KILN_RETURN_IF_ERROR(EmitGemm(function, c.problem, *gemm.schedule, operands));
    return status();
  }
  Epilogue code(kernel, gemm, cpu);
  GemmEpilogue epilogue = {
      .emit = [&](llvm::IRBuilder<>& b, const GemmVector& v) { code.Emit(b, v); },
      .may_have_own_gemm = own_gemm,
      .along_m = IsAlongM(kernel, gemm)};
  if (own_gemm) epilogue.reads = ReadsOf(kernel, c, cpu);
  KILN_RETURN_IF_ERROR(EmitGemm(function, c.problem, *gemm.schedule, operands, epilogue));
  KILN_RETURN_IF_ERROR(status());
  return code.status();
}

bool GainsByOwnGemm(const kernel::Kernel& kernel, const kernel::CpuGemm& gemm) {
  const kernel::GemmProblem& p = gemm.contraction->problem;
  return gemm.role == kernel::CpuGemm::Role::kGemm && !gemm.contraction->c_param.valid() &&
         p.TotalK() <= kShortSum && p.m * p.n * p.BatchSize() >= kManyResults && IsShort(kernel);
}

}  // namespace kiln::codegen
