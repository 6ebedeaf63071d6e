#include "codegen/gpu/nest.h"

#include <functional>
#include <vector>

#include "base/strings.h"
#include "codegen/elemental.h"
#include "codegen/gpu/primitives.h"

namespace kiln::codegen {
namespace {

using kernel::Atom;
using kernel::GpuNestSchedule;
using kernel::Index;
using kernel::Node;
using kernel::Reduction;
using kernel::Stage;
using llvm::Value;

constexpr int kWarp = 32;

class GpuNest {
 public:
  GpuNest(llvm::Function* function, const kernel::Kernel& kernel, const GpuNestSchedule& schedule,
          MathOptions math)
      : function_(function),
        kernel_(kernel),
        schedule_(schedule),
        math_(math),
        b_(function->getContext()),
        gpu_(b_, *function->getParent()) {
    entry_ = NewBlock("entry");
    b_.SetInsertPoint(entry_);
    variables_.resize(kernel.variables.size());
    values_.resize(kernel.stages.size());
    reduced_.resize(kernel.stages.size());
    for (size_t s = 0; s < kernel.stages.size(); ++s) {
      values_[s].resize(kernel.stages[s].nodes.size());
      for (const Reduction& r : kernel.stages[s].reductions) {
        reduced_[s].emplace_back(r.types.size());
      }
    }
    outer_points_ = 1;
    for (int v = 0; v < kernel.outer; ++v) outer_points_ *= kernel.variables[v].extent;
  }

  Status Emit() {
    Value* thread = gpu_.Thread();
    Value* block = gpu_.Block();
    if (schedule_.first_block > 0) block = b_.CreateSub(block, Int(schedule_.first_block));
    if (kernel_.stages[0].sort) {
      EmitSort(*kernel_.stages[0].sort, thread, block);
      b_.CreateRetVoid();
      return status_;
    }
    switch (schedule_.form) {
      case GpuNestSchedule::Form::kElementwise:
      case GpuNestSchedule::Form::kColumnReduce:
      case GpuNestSchedule::Form::kSerial:
        EmitThreadPerPoint(thread, block);
        break;
      case GpuNestSchedule::Form::kRowReduce:
        EmitBlockPerPoint(thread, block);
        break;
      case GpuNestSchedule::Form::kTranspose:
        EmitTranspose(thread, block);
        break;
    }
    b_.CreateRetVoid();
    return status_;
  }

 private:
  llvm::BasicBlock* NewBlock(const char* name) {
    return llvm::BasicBlock::Create(function_->getContext(), name, function_);
  }
  Value* Int(int64_t value) { return b_.getInt64(static_cast<uint64_t>(value)); }

  // for (i = begin; i < end; i += step); values that nodes got inside are forgotten behind it.
  void Loop(Value* begin, int64_t end, int64_t step, const std::function<void(Value*)>& body) {
    auto saved = values_;
    llvm::BasicBlock *before = b_.GetInsertBlock(), *head = NewBlock("head"),
                     *inside = NewBlock("body"), *after = NewBlock("after");
    b_.CreateBr(head);
    b_.SetInsertPoint(head);
    llvm::PHINode* i = b_.CreatePHI(b_.getInt64Ty(), 2);
    i->addIncoming(begin, before);
    b_.CreateCondBr(b_.CreateICmpSLT(i, Int(end)), inside, after);
    b_.SetInsertPoint(inside);
    body(i);
    i->addIncoming(b_.CreateAdd(i, Int(step)), b_.GetInsertBlock());
    b_.CreateBr(head);
    b_.SetInsertPoint(after);
    values_ = std::move(saved);
  }

  void If(Value* condition, const std::function<void()>& body) {
    auto saved = values_;
    llvm::BasicBlock *inside = NewBlock("then"), *after = NewBlock("endif");
    b_.CreateCondBr(condition, inside, after);
    b_.SetInsertPoint(inside);
    body();
    b_.CreateBr(after);
    b_.SetInsertPoint(after);
    values_ = std::move(saved);
  }

  // Sets variables (outermost first) from their row-major position.
  void Delinearise(Value* position, const std::vector<int>& variables) {
    for (size_t i = variables.size(); i-- > 0;) {
      Value* extent = Int(kernel_.variables[variables[i]].extent);
      if (i == 0) {
        variables_[variables[i]] = position;
      } else {
        variables_[variables[i]] = b_.CreateURem(position, extent);
        position = b_.CreateUDiv(position, extent);
      }
    }
  }

  std::vector<int> OuterVariables() const {
    std::vector<int> outer;
    for (int v = 0; v < kernel_.outer; ++v) outer.push_back(v);
    return outer;
  }

  // --- Values
  Value* EvalAtom(int stage, const Atom& atom) {
    if (atom.kind == Atom::Kind::kVariable) return variables_[atom.id];
    if (atom.kind == Atom::Kind::kValue) {
      ElementType type = kernel_.stages[stage].nodes[atom.id].type;
      return b_.CreateIntCast(At(stage, static_cast<int>(atom.id)), b_.getInt64Ty(),
                              IsSigned(type));
    }
    Value* inner = Eval(stage, *atom.inner);
    Value* divisor = Int(atom.divisor);
    bool mod = atom.kind == Atom::Kind::kMod;
    if (atom.inner->low() >= 0) {
      return mod ? b_.CreateURem(inner, divisor) : b_.CreateUDiv(inner, divisor);
    }
    // Rounded towards minus infinity.
    Value* rest = b_.CreateSRem(inner, divisor);
    Value* below = b_.CreateICmpSLT(rest, Int(0));
    if (mod) return b_.CreateSelect(below, b_.CreateAdd(rest, divisor), rest);
    Value* quotient = b_.CreateSDiv(inner, divisor);
    return b_.CreateSelect(below, b_.CreateSub(quotient, Int(1)), quotient);
  }

  // An index; `stage` is that of the values in it.
  Value* Eval(int stage, const Index& index) {
    Value* sum = Int(index.constant());
    for (const Index::Term& t : index.terms()) {
      sum = b_.CreateAdd(sum, b_.CreateMul(EvalAtom(stage, t.atom), Int(t.coefficient)));
    }
    return sum;
  }

  // Emits the values in an index, where they hold for all that follows.
  void EvalValues(int stage, const Index& index) {
    for (const Index::Term& t : index.terms()) {
      if (t.atom.kind == Atom::Kind::kValue) At(stage, static_cast<int>(t.atom.id));
      if (t.atom.inner) EvalValues(stage, *t.atom.inner);
    }
  }

  Value* Address(int stage, int param, const Index& index) {
    llvm::Type* type = MemoryType(function_->getContext(), kernel_.params[param].type);
    return b_.CreateGEP(type, function_->getArg(param), Eval(stage, index));
  }

  Value* Load(int stage, const Node& n) {
    llvm::Type* type = MemoryType(function_->getContext(), n.type);
    return FromMemory(b_,
                      b_.CreateAlignedLoad(type, Address(stage, n.param, n.index),
                                           llvm::Align(ByteWidth(n.type))),
                      n.type, math_);
  }

  Value* GuardedLoad(int stage, const Node& n) {
    Value* guard = At(stage, n.guard);
    EvalValues(stage, n.index);
    llvm::BasicBlock *before = b_.GetInsertBlock(), *inside = NewBlock("load"),
                     *after = NewBlock("loaded");
    b_.CreateCondBr(guard, inside, after);
    b_.SetInsertPoint(inside);
    Value* value = Load(stage, n);
    llvm::BasicBlock* end = b_.GetInsertBlock();
    b_.CreateBr(after);
    b_.SetInsertPoint(after);
    llvm::PHINode* phi = b_.CreatePHI(value->getType(), 2);
    phi->addIncoming(llvm::Constant::getNullValue(value->getType()), before);
    phi->addIncoming(value, end);
    return phi;
  }

  void Fail(Status status) {
    if (status_.ok()) status_ = std::move(status);
  }

  Value* Op(const Node& n, const std::vector<Node>& nodes, const std::vector<Value*>& operands) {
    std::vector<ElementType> types;
    for (int o : n.operands) types.push_back(nodes[o].type);
    auto value = EmitOp(b_, n, operands, types, math_);
    if (value.ok()) return *value;
    Fail(value.status());
    return llvm::Constant::getNullValue(RegisterType(function_->getContext(), n.type));
  }

  // A node's value at the current variables, emitted when it is first asked for.
  Value* At(int stage, int node) {
    if (Value* known = values_[stage][node]) return known;
    const Node& n = kernel_.stages[stage].nodes[node];
    Value* value = nullptr;
    switch (n.kind) {
      case Node::Kind::kConstant:
        value = ConstantOf(function_->getContext(), *n.literal);
        break;
      case Node::Kind::kIndex:
        value = EmitConvert(b_, Eval(stage, n.index), ElementType::kS64, n.type, math_);
        break;
      case Node::Kind::kInRange:
        value = b_.CreateICmpULT(Eval(stage, n.index), Int(n.bound));  // Negative ones are large.
        break;
      case Node::Kind::kLoad:
        value = n.guard < 0 ? Load(stage, n) : GuardedLoad(stage, n);
        break;
      case Node::Kind::kReduced:
        value = reduced_[n.stage][n.reduction][n.result];
        break;
      case Node::Kind::kArgument:
        break;
      case Node::Kind::kOp: {
        std::vector<Value*> operands;
        for (int o : n.operands) operands.push_back(At(stage, o));
        value = Op(n, kernel_.stages[stage].nodes, operands);
        break;
      }
    }
    return values_[stage][node] = value;
  }

  void EmitStores(int stage) {
    for (const kernel::Store& s : kernel_.stages[stage].stores) {
      ElementType type = kernel_.params[s.param].type;
      Value* value = ToMemory(b_, At(stage, s.value), type, math_);
      b_.CreateAlignedStore(value, Address(stage, s.param, s.index), llvm::Align(ByteWidth(type)));
    }
  }

  // The old elements are read where the guard holds, all before any is written.
  void EmitUpdates(int stage) {
    for (const kernel::Update& u : kernel_.stages[stage].updates) {
      auto body = [&] {
        std::vector<Value*> old, inputs, addresses;
        for (size_t k = 0; k < u.params.size(); ++k) {
          ElementType type = kernel_.params[u.params[k]].type;
          addresses.push_back(Address(stage, u.params[k], u.indices[k]));
          Value* value = b_.CreateAlignedLoad(MemoryType(function_->getContext(), type),
                                              addresses.back(), llvm::Align(ByteWidth(type)));
          old.push_back(FromMemory(b_, value, type, math_));
          inputs.push_back(At(stage, u.inputs[k]));
        }
        std::vector<Value*> next = CombineByNodes(u.combiner, old, inputs);
        for (size_t k = 0; k < next.size(); ++k) {
          ElementType type = kernel_.params[u.params[k]].type;
          b_.CreateAlignedStore(ToMemory(b_, next[k], type, math_), addresses[k],
                                llvm::Align(ByteWidth(type)));
        }
      };
      if (u.guard < 0) {
        body();
      } else {
        If(At(stage, u.guard), body);
      }
    }
  }

  // --- Sorts: a thread for each element counts those that come before it, which is its place. With
  // a comparator that is no order, places stay empty or are taken twice.

  void EmitSort(const kernel::Sort& sort, Value* thread, Value* block) {
    int64_t size = kernel_.variables[sort.variable].extent;
    std::vector<int> all = OuterVariables();
    all.push_back(sort.variable);
    int64_t step = int64_t{schedule_.threads} * schedule_.blocks;
    Value* first = b_.CreateAdd(b_.CreateMul(block, Int(schedule_.threads)), thread);
    llvm::IRBuilder<> at_entry(entry_, entry_->begin());
    llvm::AllocaInst* place = at_entry.CreateAlloca(b_.getInt64Ty());
    Loop(first, outer_points_ * size, step, [&](Value* point) {
      Delinearise(point, all);
      Value* own = variables_[sort.variable];
      std::vector<Value*> mine = InputsOf(sort);
      b_.CreateStore(Int(0), place);
      Loop(Int(0), size, 1, [&](Value* other) {
        variables_[sort.variable] = other;
        for (auto& value : values_[0]) value = nullptr;
        std::vector<Value*> theirs = InputsOf(sort);
        Value* equal_before =
            b_.CreateAnd(b_.CreateICmpSLT(other, own), b_.CreateNot(IsBefore(sort, mine, theirs)));
        Value* before = b_.CreateOr(IsBefore(sort, theirs, mine), equal_before);
        Value* count = b_.CreateLoad(b_.getInt64Ty(), place);
        b_.CreateStore(b_.CreateAdd(count, b_.CreateZExt(before, b_.getInt64Ty())), place);
      });
      variables_[sort.variable] = b_.CreateLoad(b_.getInt64Ty(), place);
      If(b_.CreateICmpSLT(variables_[sort.variable], Int(sort.keep)), [&] {
        for (size_t k = 0; k < sort.params.size(); ++k) {
          ElementType type = kernel_.params[sort.params[k]].type;
          b_.CreateAlignedStore(ToMemory(b_, mine[k], type, math_),
                                Address(0, sort.params[k], sort.indices[k]),
                                llvm::Align(ByteWidth(type)));
        }
      });
    });
  }

  std::vector<Value*> InputsOf(const kernel::Sort& sort) {
    std::vector<Value*> inputs;
    for (int input : sort.inputs) inputs.push_back(At(0, input));
    return inputs;
  }

  Value* IsBefore(const kernel::Sort& sort, const std::vector<Value*>& x,
                  const std::vector<Value*>& y) {
    std::vector<Value*> arguments;
    for (size_t k = 0; k < x.size(); ++k) {
      arguments.push_back(x[k]);
      arguments.push_back(y[k]);
    }
    return CombineByNodes(sort.comparator, arguments, {})[0];
  }

  // --- Reductions
  // Accumulators live in stack slots, which become registers (see PromoteStackSlots).
  using Accumulators = std::vector<std::vector<llvm::AllocaInst*>>;

  Accumulators MakeAccumulators(int stage, bool from_inits = false) {
    Accumulators result;
    for (const Reduction& r : kernel_.stages[stage].reductions) {
      auto& slots = result.emplace_back();
      for (size_t k = 0; k < r.types.size(); ++k) {
        llvm::IRBuilder<> at_entry(entry_, entry_->begin());
        slots.push_back(at_entry.CreateAlloca(RegisterType(function_->getContext(), r.types[k])));
        bool general = from_inits || r.combiner.kind == kernel::Combiner::Kind::kGeneral;
        Value* first = general ? At(stage, r.inits[k])
                               : IdentityOf(function_->getContext(), r.combiner.kind, r.types[k]);
        b_.CreateStore(first, slots.back());
      }
    }
    return result;
  }

  std::vector<Value*> Combine(const Reduction& r, const std::vector<Value*>& x,
                              const std::vector<Value*>& y) {
    if (r.combiner.kind != kernel::Combiner::Kind::kGeneral) {
      return {EmitCombine(b_, r.combiner.kind, r.types[0], x[0], y[0], math_)};
    }
    return CombineByNodes(r.combiner, x, y);
  }

  std::vector<Value*> CombineByNodes(const kernel::Combiner& combiner, const std::vector<Value*>& x,
                                     const std::vector<Value*>& y) {
    std::vector<Value*> nodes;
    for (const Node& n : combiner.nodes) {
      if (n.kind == Node::Kind::kArgument) {
        size_t k = static_cast<size_t>(n.result);
        nodes.push_back(k < x.size() ? x[k] : y[k - x.size()]);
      } else if (n.kind == Node::Kind::kConstant) {
        nodes.push_back(ConstantOf(function_->getContext(), *n.literal));
      } else {
        std::vector<Value*> operands;
        for (int o : n.operands) operands.push_back(nodes[o]);
        nodes.push_back(Op(n, combiner.nodes, operands));
      }
    }
    std::vector<Value*> results;
    for (int result : combiner.results) results.push_back(nodes[result]);
    return results;
  }

  std::vector<Value*> Current(const std::vector<llvm::AllocaInst*>& slots) {
    std::vector<Value*> values;
    for (llvm::AllocaInst* slot : slots) {
      values.push_back(b_.CreateLoad(slot->getAllocatedType(), slot));
    }
    return values;
  }

  // Folds the stage's inputs at the current point into the accumulators.
  void Accumulate(int stage, const Accumulators& accumulators) {
    const auto& reductions = kernel_.stages[stage].reductions;
    for (size_t i = 0; i < reductions.size(); ++i) {
      std::vector<Value*> inputs;
      for (int input : reductions[i].inputs) inputs.push_back(At(stage, input));
      std::vector<Value*> last = Current(accumulators[i]);
      std::vector<Value*> next = Combine(reductions[i], last, inputs);
      int guard = reductions[i].guard;
      for (size_t k = 0; k < next.size(); ++k) {
        if (guard >= 0) next[k] = b_.CreateSelect(At(stage, guard), next[k], last[k]);
        b_.CreateStore(next[k], accumulators[i][k]);
      }
    }
  }

  // The init goes in once, at the end: its place in the order is free where there is an identity.
  void FinishReduction(int stage, size_t i, const std::vector<Value*>& total) {
    const Reduction& r = kernel_.stages[stage].reductions[i];
    if (r.combiner.kind == kernel::Combiner::Kind::kGeneral) {
      reduced_[stage][i] = total;
      return;
    }
    reduced_[stage][i] = Combine(r, {At(stage, r.inits[0])}, total);
  }

  // --- Forms
  // Both stages of a scan at each point of their variable.
  void EmitScan() {
    Accumulators accumulators = MakeAccumulators(0, /*from_inits=*/true);
    int v = kernel_.stages[0].variables[0];
    Loop(Int(0), kernel_.variables[v].extent, 1, [&](Value* i) {
      variables_[v] = i;
      Accumulate(0, accumulators);
      for (size_t k = 0; k < accumulators.size(); ++k) reduced_[0][k] = Current(accumulators[k]);
      EmitStores(1);
    });
  }

  void EmitSerialStage(int stage) {
    const Stage& s = kernel_.stages[stage];
    Accumulators accumulators = MakeAccumulators(stage);
    std::function<void(size_t)> nest = [&](size_t depth) {
      if (depth == s.variables.size()) {
        Accumulate(stage, accumulators);
        EmitStores(stage);
        EmitUpdates(stage);
        return;
      }
      int v = s.variables[depth];
      Loop(Int(0), kernel_.variables[v].extent, 1, [&](Value* i) {
        variables_[v] = i;
        nest(depth + 1);
      });
    };
    nest(0);
    for (size_t i = 0; i < accumulators.size(); ++i) {
      FinishReduction(stage, i, Current(accumulators[i]));
    }
  }

  void EmitThreadPerPoint(Value* thread, Value* block) {
    Value* first = b_.CreateAdd(b_.CreateMul(block, Int(schedule_.threads)), thread);
    Loop(first, outer_points_, schedule_.blocks * schedule_.threads, [&](Value* point) {
      Delinearise(point, OuterVariables());
      if (kernel_.kind == kernel::Kernel::Kind::kScan) return EmitScan();
      for (size_t s = 0; s < kernel_.stages.size(); ++s) EmitSerialStage(static_cast<int>(s));
    });
  }

  void EmitBlockPerPoint(Value* thread, Value* block) {
    const Stage& s = kernel_.stages[0];
    int64_t inner = 1;
    for (int v : s.variables) inner *= kernel_.variables[v].extent;
    int warps = schedule_.threads / kWarp;
    Value* lane = b_.CreateURem(thread, Int(kWarp));
    Value* warp = b_.CreateUDiv(thread, Int(kWarp));
    Value* shared = gpu_.Shared();
    Loop(block, outer_points_, schedule_.blocks, [&](Value* point) {
      Delinearise(point, OuterVariables());
      Accumulators accumulators = MakeAccumulators(0);
      Loop(thread, inner, schedule_.threads, [&](Value* i) {
        Delinearise(i, s.variables);
        Accumulate(0, accumulators);
        EmitStores(0);
      });
      // Lanes of a warp by shuffles, then the warps in order by the first thread.
      auto slot = [&](size_t reduction, Value* of_warp, llvm::Type* type) {
        Value* at = b_.CreateAdd(of_warp, Int(static_cast<int64_t>(reduction) * warps));
        return b_.CreateGEP(b_.getInt64Ty(), shared, at);
      };
      for (size_t i = 0; i < accumulators.size(); ++i) {
        std::vector<Value*> total = Current(accumulators[i]);
        for (int delta = kWarp / 2; delta > 0; delta /= 2) {
          total = Combine(s.reductions[i], total, {gpu_.ShuffleDown(total[0], delta)});
        }
        If(b_.CreateICmpEQ(lane, Int(0)), [&] {
          Value* value = ToMemory(b_, total[0], s.reductions[i].types[0], math_);
          b_.CreateAlignedStore(value, slot(i, warp, value->getType()), llvm::Align(8));
        });
      }
      gpu_.Barrier();
      If(b_.CreateICmpEQ(thread, Int(0)), [&] {
        for (size_t i = 0; i < accumulators.size(); ++i) {
          ElementType type = s.reductions[i].types[0];
          llvm::Type* memory = MemoryType(function_->getContext(), type);
          std::vector<Value*> total;
          for (int w = 0; w < warps; ++w) {
            Value* value = FromMemory(
                b_, b_.CreateAlignedLoad(memory, slot(i, Int(w), memory), llvm::Align(8)), type,
                math_);
            total = w == 0 ? std::vector<Value*>{value} : Combine(s.reductions[i], total, {value});
          }
          FinishReduction(0, i, total);
        }
        for (size_t k = 1; k < kernel_.stages.size(); ++k) EmitSerialStage(static_cast<int>(k));
      });
      // The next point's partial results must not come before these have been read.
      gpu_.Barrier();
    });
  }

  void EmitTranspose(Value* thread, Value* block) {
    auto load = *kernel::FindTransposeLoad(kernel_);
    const Node& node = kernel_.stages[0].nodes[load.node];
    llvm::Type* memory = MemoryType(function_->getContext(), node.type);
    int64_t tile = schedule_.tile, step = schedule_.threads / tile;
    int64_t rows = kernel_.variables[load.row].extent;
    int64_t columns = kernel_.variables[load.column].extent;
    int64_t row_tiles = (rows + tile - 1) / tile, column_tiles = (columns + tile - 1) / tile;
    std::vector<int> rest;
    int64_t rest_points = 1;
    for (int v = 0; v < kernel_.outer; ++v) {
      if (v == load.row || v == load.column) continue;
      rest.push_back(v);
      rest_points *= kernel_.variables[v].extent;
    }
    Value* x = b_.CreateURem(thread, Int(tile));
    Value* y = b_.CreateUDiv(thread, Int(tile));
    Value* shared = gpu_.Shared();
    auto at = [&](Value* row, Value* column) {  // row, column within the tile
      return b_.CreateGEP(memory, shared, b_.CreateAdd(b_.CreateMul(column, Int(tile + 1)), row));
    };
    auto inside = [&] {
      return b_.CreateAnd(b_.CreateICmpSLT(variables_[load.row], Int(rows)),
                          b_.CreateICmpSLT(variables_[load.column], Int(columns)));
    };
    Loop(block, rest_points * row_tiles * column_tiles, schedule_.blocks, [&](Value* t) {
      Value* first_column = b_.CreateMul(b_.CreateURem(t, Int(column_tiles)), Int(tile));
      t = b_.CreateUDiv(t, Int(column_tiles));
      Value* first_row = b_.CreateMul(b_.CreateURem(t, Int(row_tiles)), Int(tile));
      Delinearise(b_.CreateUDiv(t, Int(row_tiles)), rest);
      // In: threads run along the memory of what is read.
      Loop(y, tile, step, [&](Value* column) {
        variables_[load.row] = b_.CreateAdd(first_row, x);
        variables_[load.column] = b_.CreateAdd(first_column, column);
        If(inside(), [&] {
          b_.CreateAlignedStore(ToMemory(b_, Load(0, node), node.type, math_), at(x, column),
                                llvm::Align(ByteWidth(node.type)));
        });
      });
      gpu_.Barrier();
      // Out: along the memory of what is written.
      Loop(y, tile, step, [&](Value* row) {
        variables_[load.row] = b_.CreateAdd(first_row, row);
        variables_[load.column] = b_.CreateAdd(first_column, x);
        If(inside(), [&] {
          values_[0][load.node] = FromMemory(
              b_, b_.CreateAlignedLoad(memory, at(row, x), llvm::Align(ByteWidth(node.type))),
              node.type, math_);
          EmitStores(0);
        });
      });
      gpu_.Barrier();
    });
  }

  llvm::Function* function_;
  const kernel::Kernel& kernel_;
  const GpuNestSchedule& schedule_;
  MathOptions math_;
  Builder b_;
  GpuPrimitives gpu_;
  llvm::BasicBlock* entry_;
  Status status_;
  std::vector<Value*> variables_;
  std::vector<std::vector<Value*>> values_;                // by stage and node
  std::vector<std::vector<std::vector<Value*>>> reduced_;  // by stage, reduction and result
  int64_t outer_points_ = 1;
};

}  // namespace

llvm::FunctionType* GpuKernelType(llvm::LLVMContext& context, const kernel::Kernel& kernel) {
  std::vector<llvm::Type*> params(kernel.params.size(),
                                  llvm::PointerType::get(context, kGlobalSpace));
  return llvm::FunctionType::get(llvm::Type::getVoidTy(context), params, false);
}

Status EmitGpuNest(llvm::Function* function, const kernel::Kernel& kernel,
                   const GpuNestSchedule& schedule, MathOptions math) {
  return GpuNest(function, kernel, schedule, math).Emit();
}

}  // namespace kiln::codegen
