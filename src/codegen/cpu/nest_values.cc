// Nodes: the order of their emission, and their values.
#include "base/strings.h"
#include "codegen/cpu/nest_emitter.h"

namespace kiln::codegen {

using kernel::Atom;
using kernel::Index;
using kernel::Node;
using llvm::Value;

// More addresses than this exceed the registers available in loops.
constexpr size_t kMostKeptParams = 8;

NestEmitter::NestEmitter(llvm::Function* function, const kernel::Kernel& kernel,
                         const target::Cpu& cpu)
    : b_(llvm::BasicBlock::Create(function->getContext(), "entry", function)),
      kernel_(kernel),
      cpu_(cpu),
      bound_(kernel.variables.size(), nullptr) {
  LoadArgs(function);
  AddAccesses();
}

NestEmitter::NestEmitter(llvm::Function* function, const kernel::Kernel& kernel,
                         const target::Cpu& cpu, Builder::InsertPoint at)
    : b_(function->getContext()),
      kernel_(kernel),
      cpu_(cpu),
      bound_(kernel.variables.size(), nullptr) {
  llvm::BasicBlock& entry = function->getEntryBlock();
  b_.SetInsertPoint(&entry, entry.getFirstInsertionPt());
  if (kernel.params.size() <= kMostKeptParams) {
    LoadArgs(function);
  } else {
    args_.assign(kernel.params.size(), nullptr);
  }
  b_.restoreIP(at);
  AddAccesses();
}

NestEmitter::NestEmitter(Values args, const kernel::Kernel& kernel, const target::Cpu& cpu,
                         Builder::InsertPoint at)
    : b_(at.getBlock()->getContext()),
      kernel_(kernel),
      cpu_(cpu),
      args_(std::move(args)),
      bound_(kernel.variables.size(), nullptr) {
  b_.restoreIP(at);
  AddAccesses();
}

Value* NestEmitter::LoadArg(kernel::ParamId param) {
  Value* args = b_.GetInsertBlock()->getParent()->getArg(1);
  return b_.CreateLoad(b_.getPtrTy(),
                       b_.CreateConstInBoundsGEP1_64(b_.getPtrTy(), args, param.index()));
}

void NestEmitter::LoadArgs(llvm::Function* function) {
  for (kernel::ParamId p : kernel_.params.ids()) args_.push_back(LoadArg(p));
}

void NestEmitter::AddAccesses() {
  FindLive();
  for (StageId s : kernel_.stages.ids()) {
    const kernel::Stage& stage = kernel_.stages[s];
    values_.emplace_back(stage.nodes.size());
    reciprocals_.emplace_back(stage.nodes.size());
    bf16_reciprocals_.emplace_back(stage.nodes.size());
    reduced_.emplace_back();
    for (const auto& r : stage.reductions) reduced_.back().emplace_back(r.inputs.size());
    load_access_.emplace_back(stage.nodes.size(), -1);
    keep_access_.emplace_back(stage.nodes.size(), -1);
    made_access_.emplace_back(stage.nodes.size(), -1);
    store_access_.emplace_back(stage.stores.size(), -1);
    auto add = [&](const Index& index, kernel::ParamId param) {
      return AddAccess(index, kernel_.params[param].type, args_[param], param, s);
    };
    for (NodeId n : stage.nodes.ids()) {
      const Node& node = stage.nodes[n];
      if (node.kind == Node::Kind::kLoad && live_[s][n]) {
        load_access_[s][n] = add(node.index, node.param);
      }
    }
    for (size_t i = 0; i < stage.stores.size() && !dead_[s]; ++i) {
      store_access_[s][i] = add(stage.stores[i].index, stage.stores[i].param);
    }
    update_access_.emplace_back(stage.updates.size());
    for (size_t i = 0; i < stage.updates.size() && !dead_[s]; ++i) {
      const kernel::Update& update = stage.updates[i];
      for (size_t k = 0; k < update.params.size(); ++k) {
        update_access_[s][i].push_back(add(update.indices[k], update.params[k]));
      }
    }
  }
}

namespace {

// Calls f with every node that an index takes values of.
void ForEachValue(const Index& index, const std::function<void(kernel::NodeId)>& f) {
  for (const Index::Term& t : index.terms()) {
    if (t.atom.kind == Atom::Kind::kValue) f(t.atom.node);
    if (t.atom.inner) ForEachValue(*t.atom.inner, f);
  }
}

}  // namespace

void NestEmitter::FindLive() {
  dead_.clear();
  live_.clear();
  for (StageId id : kernel_.stages.ids()) {
    const kernel::Stage& stage = kernel_.stages[id];
    const auto has = [&](const ByNode<int>& access, NodeId n) {
      return id < access.next() && access[id][n] >= 0;
    };
    bool dead = false;
    for (VariableId v : stage.variables) dead |= kernel_.variables[v].extent == 0;
    dead_.push_back(dead);
    IdVector<NodeId, bool> live(stage.nodes.size(), false);
    auto mark = [&](NodeId node) { live[node] = true; };
    for (const auto& r : stage.reductions) {
      for (NodeId n : r.inits) mark(n);
      for (NodeId n : r.inputs) {
        if (!dead) mark(n);
      }
      if (r.guard.valid() && !dead) mark(r.guard);
    }
    for (const auto& s : stage.stores) {
      if (dead) continue;
      mark(s.value);
      ForEachValue(s.index, mark);
    }
    for (const auto& u : stage.updates) {
      if (dead) continue;
      if (u.guard.valid()) mark(u.guard);
      for (NodeId n : u.inputs) mark(n);
      for (const Index& index : u.indices) ForEachValue(index, mark);
    }
    if (stage.sort && !dead) {
      for (NodeId n : stage.sort->inputs) mark(n);
    }
    for (size_t i = stage.nodes.size(); i-- > 0;) {
      const NodeId n(i);
      if (!dead && has(keep_access_, n)) live[n] = true;
      if (!live[n] || has(made_access_, n)) continue;
      const Node& node = stage.nodes[n];
      for (NodeId operand : node.operands) mark(operand);
      if (node.guard.valid()) mark(node.guard);
      ForEachValue(node.index, mark);
    }
    live_.push_back(std::move(live));
  }
}

void NestEmitter::Bind(VariableId variable, Value* value) { bound_[variable] = value; }
void NestEmitter::Unbind(VariableId variable) { bound_[variable] = nullptr; }

void NestEmitter::BindVector(VariableId variable, Value* value, int64_t width, int copies,
                             Value* mask, int64_t aligned) {
  bound_[variable] = value;
  vector_variable_ = variable;
  width_ = width;
  copies_ = copies;
  mask_ = mask;
  aligned_ = aligned;
}

void NestEmitter::BindVectorLike(const NestEmitter& other, VariableId variable) {
  BindVector(variable, other.bound_[other.vector_variable_], other.width_, other.copies_,
             other.mask_, other.aligned_);
  lanes_left_ = other.lanes_left_;
}

void NestEmitter::UnbindVector() {
  bound_[vector_variable_] = nullptr;
  vector_variable_ = {};
  width_ = copies_ = 1;
  aligned_ = 1;
  mask_ = lanes_left_ = nullptr;
}

void NestEmitter::BindTile(VariableId variable, Value* value, int count, int64_t aligned) {
  bound_[variable] = value;
  tile_aligned_ = aligned;
  tile_variable_ = variable;
  copies_ = count;
}

void NestEmitter::UnbindTile() {
  bound_[tile_variable_] = nullptr;
  tile_variable_ = {};
  copies_ = 1;
}

int64_t NestEmitter::CopyOffset(VariableId variable, int copy) const {
  if (variable == tile_variable_) return copy;
  return variable == vector_variable_ && !tile_variable_.valid() ? copy * width_ : 0;
}

void NestEmitter::Rewind(Mark mark) {
  while (emitted_.size() > mark.nodes) {
    const Emitted& last = emitted_.back();
    if (last.reciprocal) {
      reciprocals_[last.stage][last.node].reset();
      bf16_reciprocals_[last.stage][last.node].reset();
    } else {
      values_[last.stage][last.node] = Lanes();
    }
    emitted_.pop_back();
  }
  while (undo_.size() > mark.accesses) {
    Offset& offset = offsets_[undo_.back().offset];
    offset.sum = undo_.back().sum;
    offset.done = std::move(undo_.back().done);
    undo_.pop_back();
  }
}

void NestEmitter::SetReduced(StageId stage, ReductionId reduction, int result, Lanes value) {
  reduced_[stage][reduction][result] = std::move(value);
}

void NestEmitter::ForgetReduced() {
  for (auto& stage : reduced_) {
    for (auto& reduction : stage) {
      for (Lanes& result : reduction) result = Lanes();
    }
  }
}

Value* NestEmitter::Use(StageId stage, NodeId node, int copy, bool vector) {
  Lanes& lanes = values_[stage][node];
  if (!lanes.known()) {
    Fail(Internal("node %", node, " of stage ", stage, " of kernel ", kernel_.name,
                  " is used where it is not known"));
    llvm::Type* type = RegisterType(b_.getContext(), kernel_.stages[stage].nodes[node].type);
    return Splat(b_, llvm::Constant::getNullValue(type), vector ? width_ : 1);
  }
  if (lanes.vector) return lanes.Copy(copy);
  if (!vector || width_ == 1) return lanes.copies[0];
  auto* last = llvm::dyn_cast_or_null<llvm::Instruction>(lanes.splat);
  const bool holds = last && last->getParent() == b_.GetInsertBlock() &&
                     llvm::cast<llvm::FixedVectorType>(last->getType())->getNumElements() == width_;
  if (!holds) lanes.splat = Splat(b_, lanes.copies[0], width_);
  return lanes.splat;
}

bool NestEmitter::TermKnown(StageId stage, const Index::Term& term) const {
  switch (term.atom.kind) {
    case Atom::Kind::kVariable:
      return bound_[term.atom.variable] != nullptr;
    case Atom::Kind::kDiv:
    case Atom::Kind::kMod:
      return Known(stage, *term.atom.inner);
    case Atom::Kind::kValue:
      return stage.valid() && values_[stage][term.atom.node].known();
  }
  return false;
}

bool NestEmitter::Known(StageId stage, const Index& index) const {
  for (const Index::Term& t : index.terms()) {
    if (!TermKnown(stage, t)) return false;
  }
  return true;
}

bool NestEmitter::TermIsVector(StageId stage, const Index::Term& term) const {
  if (width_ == 1) return false;
  switch (term.atom.kind) {
    case Atom::Kind::kVariable:
      return term.atom.variable == vector_variable_ || term.atom.variable == tile_variable_;
    case Atom::Kind::kDiv:
    case Atom::Kind::kMod:
      return IsVectorIndex(stage, *term.atom.inner);
    case Atom::Kind::kValue:
      return stage.valid() && values_[stage][term.atom.node].vector;
  }
  return false;
}

bool NestEmitter::IsVectorIndex(StageId stage, const Index& index) const {
  for (const Index::Term& t : index.terms()) {
    if (TermIsVector(stage, t)) return true;
  }
  return false;
}

bool NestEmitter::Ready(StageId stage, const Node& node) const {
  for (NodeId operand : node.operands) {
    if (!values_[stage][operand].known()) return false;
  }
  if (node.guard.valid() && !values_[stage][node.guard].known()) return false;
  switch (node.kind) {
    case Node::Kind::kConstant:
    case Node::Kind::kOp:
      return true;
    case Node::Kind::kInRange: {
      const Case* of = CaseOf(node);
      return Known(stage, node.index) && (!of || of->begin);
    }
    case Node::Kind::kIndex:
    case Node::Kind::kLoad:
      return Known(stage, node.index);
    case Node::Kind::kReduced:
      return reduced_[node.stage][node.reduction][node.result].known();
    case Node::Kind::kArgument:
      return false;
  }
  return false;
}

bool NestEmitter::ReadsOutput(const Node& node) const {
  return node.kind == Node::Kind::kLoad &&
         kernel_.params[node.param].role == kernel::Param::Role::kOutput;
}

void NestEmitter::EmitReady(StageId stage, bool ahead) {
  const kernel::Stage& s = kernel_.stages[stage];
  for (NodeId n : s.nodes.ids()) {
    if (!live_[stage][n] || values_[stage][n].known()) continue;
    // The earlier stage has not stored it yet.
    if (ahead && ReadsOutput(s.nodes[n])) continue;
    if (const int made = made_access_[stage][n]; made >= 0) {
      AdvanceAccess(made);
      if (Known(stage, offsets_[accesses_[made].offset].index)) EmitNode(stage, n);
      continue;
    }
    if (load_access_[stage][n] >= 0) AdvanceAccess(load_access_[stage][n]);
    if (Ready(stage, s.nodes[n])) {
      EmitNode(stage, n);
    } else {
      EmitReciprocalAhead(stage, n);
    }
  }
  for (int id : store_access_[stage]) {
    if (id >= 0) AdvanceAccess(id);
  }
  for (const Prefetch& p : prefetches_) {
    if (p.stage == stage) AdvanceAccess(p.access);
  }
  for (const std::vector<int>& update : update_access_[stage]) {
    for (int id : update) AdvanceAccess(id);
  }
}

void NestEmitter::EmitReciprocalAhead(StageId stage, NodeId n) {
  const Node& node = kernel_.stages[stage].nodes[n];
  if (node.kind != Node::Kind::kOp || node.opcode != Opcode::kDivide || !IsFloat(node.type) ||
      reciprocals_[stage][n] || bf16_reciprocals_[stage][n] ||
      b_.GetInsertBlock()->getParent()->hasOptNone()) {
    return;
  }
  const Lanes& divisor = values_[stage][node.operands[1]];
  if (!divisor.known() || divisor.vector || values_[stage][node.operands[0]].known()) return;
  if (node.type == ElementType::kBF16) {
    bf16_reciprocals_[stage][n] = EmitBf16Reciprocal(b_, divisor.copies[0]);
  } else if (cpu_.has_fma) {
    reciprocals_[stage][n] = EmitReciprocal(b_, divisor.copies[0]);
  } else {
    return;
  }
  emitted_.push_back({stage, n, true});
}

std::vector<kernel::NodeId> NestEmitter::Costly(StageId stage) const {
  const auto& nodes = kernel_.stages[stage].nodes;
  IdVector<NodeId, bool> costly(nodes.size()), needed(nodes.size());
  for (NodeId n : nodes.ids()) {
    const Node& node = nodes[n];
    if (!live_[stage][n]) continue;
    if (!values_[stage][n].known()) {
      for (NodeId operand : node.operands) needed[operand] = true;
      continue;
    }
    costly[n] = node.kind == Node::Kind::kOp && IsExpensive(node.opcode);
    for (NodeId operand : node.operands) costly[n] = costly[n] || costly[operand];
  }
  std::vector<NodeId> result;
  for (NodeId n : nodes.ids()) {
    if (needed[n] && costly[n] && values_[stage][n].vector) result.push_back(n);
  }
  return result;
}

void NestEmitter::SetValue(StageId stage, NodeId node, Lanes value) {
  values_[stage][node] = std::move(value);
  emitted_.push_back({stage, node});
}

void NestEmitter::EmitReadyInAll() {
  for (StageId s : kernel_.stages.ids()) EmitReady(s, true);
}

bool NestEmitter::IsExponential(StageId stage, NodeId n) const {
  const Node& node = kernel_.stages[stage].nodes[n];
  if (node.kind == Node::Kind::kOp) return node.opcode == Opcode::kExponential;
  if (!ReadsOutput(node) || node.guard.valid()) return false;
  if (kernel_.params[node.param].in_place_of.valid()) return false;
  // The earlier stages' stores at the same index.
  bool stored = false;
  for (StageId s : IdRange(StageId(0), stage)) {
    for (const kernel::Store& store : kernel_.stages[s].stores) {
      if (store.param != node.param) continue;
      if (!IsExponential(s, store.value)) return false;
      stored = true;
    }
  }
  return stored;
}

Dividends NestEmitter::DividendsOf(StageId stage, NodeId n) const {
  const Node& node = kernel_.stages[stage].nodes[n];
  if (node.kind == Node::Kind::kOp && node.opcode == Opcode::kConvert) {
    const ElementType from = kernel_.stages[stage].nodes[node.operands[0]].type;
    // Zeros have no sign, and none is beyond 2^64.
    if (IsInteger(from) || from == ElementType::kPred) return Dividends::kIntegers;
  }
  return IsExponential(stage, n) ? Dividends::kNotNegative : Dividends::kAny;
}

void NestEmitter::OpenCase(VariableId variable, int64_t begin) {
  for (Case& c : cases_) {
    if (c.variable == variable) c.begin = begin;
  }
}

void NestEmitter::CloseCase(VariableId variable) {
  for (Case& c : cases_) {
    if (c.variable == variable) c.begin.reset();
  }
}

bool NestEmitter::IsInCase(VariableId variable) const {
  return std::ranges::any_of(
      cases_, [&](const Case& c) { return c.variable == variable && c.begin.has_value(); });
}

const NestEmitter::Case* NestEmitter::CaseOf(const Node& node) const {
  if (node.kind != Node::Kind::kInRange || node.index.terms().size() != 1) return nullptr;
  const auto of = std::ranges::find_if(
      cases_, [&](const Case& c) { return node.index.StrideOf(c.variable) == 1; });
  return of == cases_.end() ? nullptr : &*of;
}

std::optional<Lanes> NestEmitter::InCase(StageId stage, const Node& node) {
  if (std::ranges::none_of(cases_, [](const Case& c) { return c.begin.has_value(); })) {
    return std::nullopt;
  }
  if (const Case* of = CaseOf(node)) {
    const int64_t place = node.index.constant() + *of->begin;
    return Lanes{{b_.getInt1(place >= 0 && place < node.bound)}};
  }
  if (node.kind != Node::Kind::kOp) return std::nullopt;
  const auto known = [&](size_t operand) {
    const Lanes& test = values_[stage][node.operands[operand]];
    return test.vector ? nullptr : llvm::dyn_cast<llvm::ConstantInt>(test.copies[0]);
  };
  if (node.opcode == Opcode::kSelect) {
    llvm::ConstantInt* test = known(0);
    if (!test) return std::nullopt;
    return values_[stage][node.operands[test->isZero() ? 2 : 1]];
  }
  if (node.opcode != Opcode::kAnd || !IsPred(node.type)) return std::nullopt;
  for (size_t i : {0, 1}) {
    if (llvm::ConstantInt* test = known(i)) {
      return values_[stage][node.operands[test->isZero() ? i : 1 - i]];
    }
  }
  return std::nullopt;
}

void NestEmitter::EmitNode(StageId stage, NodeId n) {
  if (const int made = made_access_[stage][n]; made >= 0) {
    return AddValue(stage, n, LoadFrom(accesses_[made], Lanes()));
  }
  const Node& node = kernel_.stages[stage].nodes[n];
  if (std::optional<Lanes> known = InCase(stage, node)) {
    return AddValue(stage, n, *std::move(known));
  }
  Lanes value;
  switch (node.kind) {
    case Node::Kind::kConstant:
      value.copies = {ConstantOf(b_.getContext(), *node.literal)};
      break;
    case Node::Kind::kIndex:
      value.vector = IsVectorIndex(stage, node.index);
      for (int u = 0; u < (value.vector ? copies_ : 1); ++u) {
        llvm::IntegerType* type = IndexType(node.index, value.vector);
        Value* index = EmitIndex(stage, node.index, u, value.vector, type);
        value.copies.push_back(EmitConvert(
            b_, index, type->getBitWidth() == 32 ? ElementType::kS32 : ElementType::kS64, node.type,
            MathOf(cpu_)));
      }
      break;
    case Node::Kind::kInRange:
      value.vector = IsVectorIndex(stage, node.index);
      for (int u = 0; u < (value.vector ? copies_ : 1); ++u) {
        llvm::IntegerType* type = IndexType(node.index, value.vector);
        if (node.bound > INT32_MAX) type = b_.getInt64Ty();
        Value* index = EmitIndex(stage, node.index, u, value.vector, type);
        value.copies.push_back(b_.CreateICmpULT(
            index, llvm::ConstantInt::get(index->getType(), static_cast<uint64_t>(node.bound))));
      }
      break;
    case Node::Kind::kLoad: {
      Lanes guard = node.guard.valid() ? values_[stage][node.guard] : Lanes();
      value = LoadFrom(accesses_[load_access_[stage][n]], guard);
      break;
    }
    case Node::Kind::kReduced:
      value = reduced_[node.stage][node.reduction][node.result];
      break;
    case Node::Kind::kArgument:
      Fail(Internal("argument node outside a combiner in kernel ", kernel_.name));
      return;
    case Node::Kind::kOp: {
      for (NodeId operand : node.operands) value.vector |= values_[stage][operand].vector;
      std::vector<ElementType> types;
      for (NodeId operand : node.operands) {
        types.push_back(kernel_.stages[stage].nodes[operand].type);
      }
      if (bf16_reciprocals_[stage][n] && value.vector) {
        for (int u = 0; u < copies_; ++u) {
          Value* dividend = Use(stage, node.operands[0], u, true);
          value.copies.push_back(
              EmitDivide(b_, dividend, *bf16_reciprocals_[stage][n], MathOf(cpu_)));
        }
        break;
      }
      if (reciprocals_[stage][n] && value.vector) {
        Values dividends;
        for (int u = 0; u < copies_; ++u) {
          dividends.push_back(Use(stage, node.operands[0], u, true));
        }
        const Dividends known = DividendsOf(stage, node.operands[0]);
        for (Value* quotient :
             EmitDivide(b_, std::move(dividends), *reciprocals_[stage][n], known)) {
          value.copies.push_back(RoundedTo(b_, quotient, node.type, MathOf(cpu_)));
        }
        break;
      }
      for (int u = 0; u < (value.vector ? copies_ : 1); ++u) {
        Values operands;
        for (NodeId operand : node.operands)
          operands.push_back(Use(stage, operand, u, value.vector));
        Result<Value*> result = EmitOp(b_, node, operands, types, MathOf(cpu_));
        if (!result.ok()) {
          Fail(result.status());
          return;
        }
        value.copies.push_back(*result);
      }
      break;
    }
  }
  AddValue(stage, n, std::move(value));
}

void NestEmitter::AddValue(StageId stage, NodeId n, Lanes value) {
  if (const int id = keep_access_[stage][n]; id >= 0) {
    AdvanceAccess(id);
    StoreTo(accesses_[id], value);
  }
  SetValue(stage, n, std::move(value));
}

Values NestEmitter::EmitCombiner(const kernel::Combiner& c, const Values& arguments) {
  IdVector<NodeId, Value*> values;
  auto* vector = llvm::dyn_cast<llvm::FixedVectorType>(arguments[0]->getType());
  const int width = vector ? static_cast<int>(vector->getNumElements()) : 1;
  for (const Node& node : c.nodes) {
    Value* value = nullptr;
    switch (node.kind) {
      case Node::Kind::kArgument:
        value = arguments[node.result];
        break;
      case Node::Kind::kConstant:
        value = Splat(b_, ConstantOf(b_.getContext(), *node.literal), width);
        break;
      case Node::Kind::kOp: {
        Values operands;
        std::vector<ElementType> types;
        for (NodeId operand : node.operands) {
          operands.push_back(values[operand]);
          types.push_back(c.nodes[operand].type);
        }
        Result<Value*> result = EmitOp(b_, node, operands, types, MathOf(cpu_));
        if (!result.ok()) {
          Fail(result.status());
          return {};
        }
        value = *result;
        break;
      }
      case Node::Kind::kIndex:
      case Node::Kind::kInRange:
      case Node::Kind::kLoad:
      case Node::Kind::kReduced:
        Fail(Internal("kernel ", kernel_.name, ": a combiner that reads memory"));
        return {};
    }
    values.push_back(value);
  }
  Values results;
  for (NodeId result : c.results) results.push_back(values[result]);
  return results;
}

}  // namespace kiln::codegen
