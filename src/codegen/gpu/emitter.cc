#include "codegen/gpu/emitter.h"

#include <algorithm>
#include <limits>

#include "base/strings.h"
#include "kernel/schedule/gpu/gemm.h"
#include "kernel/schedule/gpu/vectors.h"
#include "kernel/selection.h"

namespace kiln::codegen {

using kernel::Atom;
using kernel::Index;
using kernel::Node;
using kernel::Reduction;
using kernel::ReductionId;
using kernel::Stage;
using kernel::StageId;
using kernel::VariableId;
using llvm::Value;

namespace {

// A combiner occurs several times in a kernel, and in each launch of a sort: larger ones are
// functions, so that compile time stays near-linear in a program's size.
constexpr size_t kMostCombinerNodes = 256;

bool FitsInt32(const Index& index) {
  constexpr int64_t low = std::numeric_limits<int32_t>::min();
  constexpr int64_t high = std::numeric_limits<int32_t>::max();
  if (index.low() < low || index.high() > high) return false;
  return std::ranges::all_of(index.terms(), [](const Index::Term& t) {
    if (t.coefficient < low || t.coefficient > high) return false;
    if (t.atom.low < low || t.atom.high > high || t.atom.divisor > high) return false;
    return t.atom.kind == Atom::Kind::kVariable || t.atom.kind == Atom::Kind::kValue ||
           FitsInt32(*t.atom.inner);
  });
}

// Whether 32 bits hold all indices and all counts of points. Intermediate sums and products may
// wrap: final ones are right, and dividends are in range.
bool FitsInt32(const kernel::Kernel& kernel) {
  // With room for the steps of loops.
  constexpr int64_t most = int64_t{1} << 30;
  int64_t outer = 1;
  for (VariableId v : kernel.OuterVariables()) {
    outer *= kernel.variables[v].extent;
    if (outer > most) return false;
  }
  for (const Stage& stage : kernel.stages) {
    int64_t points = outer;
    for (VariableId v : stage.variables) {
      points *= kernel.variables[v].extent;
      if (points > most && v == stage.variables.back() && stage.sort) return false;
    }
    int64_t inner = 1;
    for (VariableId v : stage.variables) {
      inner *= kernel.variables[v].extent;
      if (inner > most) return false;
    }
    if (stage.sort) {
      inner = outer * kernel.variables[stage.sort->variable].extent;
      if (inner > most) return false;
      if (!std::ranges::all_of(stage.sort->indices, [](const Index& i) { return FitsInt32(i); })) {
        return false;
      }
    }
    for (const Node& n : stage.nodes) {
      if (!FitsInt32(n.index) || n.bound > most) return false;
    }
    for (const kernel::Store& s : stage.stores) {
      if (!FitsInt32(s.index)) return false;
    }
    for (const kernel::Update& u : stage.updates) {
      if (!std::ranges::all_of(u.indices, [](const Index& i) { return FitsInt32(i); }))
        return false;
    }
  }
  return true;
}

}  // namespace

GpuEmitter::GpuEmitter(llvm::Function* function, const kernel::Kernel& kernel,
                       const kernel::GpuSchedule& schedule, size_t launch, MathOptions math,
                       CombinerFunctions& combiners)
    : function_(function),
      kernel_(kernel),
      schedule_(schedule),
      launch_(launch),
      math_(math),
      combiners_(combiners),
      b_(function->getContext()),
      gpu_(b_, *function->getParent()) {
  entry_ = llvm::BasicBlock::Create(context(), "entry", function_);
  b_.SetInsertPoint(entry_);
  index_type_ = FitsInt32(kernel) ? b_.getInt32Ty() : b_.getInt64Ty();
  variables_.resize(kernel.variables.size());
  values_.resize(kernel.stages.size());
  reduced_.resize(kernel.stages.size());
  for (StageId s : kernel.stages.ids()) {
    values_[s].resize(kernel.stages[s].nodes.size());
    for (const Reduction& r : kernel.stages[s].reductions) {
      reduced_[s].emplace_back(r.types.size());
    }
  }
  outer_points_ = kernel.OuterPoints();
  thread_ = b_.CreateIntCast(gpu_.Thread(), index_type_, false);
  block_ = b_.CreateIntCast(gpu_.Block(), index_type_, false);
  if (schedule.first_block > 0) block_ = b_.CreateSub(block_, Int(schedule.first_block));
}

void GpuEmitter::Fail(Status status) {
  if (status_.ok()) status_ = std::move(status);
}

Value* GpuEmitter::Int(int64_t value) { return llvm::ConstantInt::getSigned(index_type_, value); }

std::vector<VariableId> GpuEmitter::OuterVariables() const {
  const IdRange<VariableId> outer = kernel_.OuterVariables();
  return {outer.begin(), outer.end()};
}

// --- Control

llvm::AllocaInst* GpuEmitter::NewSlot(llvm::Type* type) {
  llvm::IRBuilder<> at_entry(entry_, entry_->begin());
  return at_entry.CreateAlloca(type);
}

void GpuEmitter::Loop(Value* begin, Value* end, Value* step,
                      llvm::function_ref<void(Value*)> body) {
  Scope scope(*this);
  auto inside = [&](const Values& v) { return b_.CreateICmpSLT(v[0], end); };
  auto point = [&](Values& v) {
    body(v[0]);
    v[0] = b_.CreateAdd(v[0], step);
  };
  EmitWhile(b_, {begin}, inside, point, {.head = "head", .body = "body", .after = "after"});
}

void GpuEmitter::InOrder(std::span<const VariableId> variables, const std::function<void()>& body) {
  if (variables.empty()) return body();
  const VariableId v = variables[0];
  Loop(Int(0), Int(kernel_.variables[v].extent), Int(1), [&](Value* i) {
    SetVariable(v, i);
    InOrder(variables.subspan(1), body);
  });
}

void GpuEmitter::If(Value* condition, llvm::function_ref<void()> body) {
  Scope scope(*this);
  EmitIf(b_, condition, body, {.after = "endif"});
}

// --- Points

void GpuEmitter::Delinearise(Value* position, const std::vector<VariableId>& variables) {
  for (size_t i = variables.size(); i-- > 0;) {
    if (i == 0) {
      SetVariable(variables[i], position);
    } else {
      Value* extent = Int(kernel_.variables[variables[i]].extent);
      SetVariable(variables[i], b_.CreateURem(position, extent));
      position = b_.CreateUDiv(position, extent);
    }
  }
}

void GpuEmitter::DelineariseSteps(Value* position, const std::vector<VariableId>& variables,
                                  int lanes) {
  const VariableId last = variables.back();
  const std::vector<VariableId> rest(variables.begin(), variables.end() - 1);
  Value* step = position;
  if (!rest.empty()) {
    Value* steps = Int(kernel_.variables[last].extent / lanes);
    step = b_.CreateURem(position, steps);
    Delinearise(b_.CreateUDiv(position, steps), rest);
  }
  SetVariable(last, lanes > 1 ? b_.CreateMul(step, Int(lanes)) : step);
}

void GpuEmitter::Forget(StageId stage) { std::ranges::fill(values_[stage], nullptr); }

Value* GpuEmitter::EvalAtom(StageId stage, const Atom& atom) {
  if (atom.kind == Atom::Kind::kVariable) return variable(atom.variable);
  if (atom.kind == Atom::Kind::kValue) {
    const auto& nodes = kernel_.stages[stage].nodes;
    ElementType type = nodes[atom.node].type;
    return b_.CreateIntCast(At(stage, atom.node), index_type_, IsSigned(type));
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

Value* GpuEmitter::Eval(StageId stage, const Index& index) {
  Value* sum = Int(index.constant());
  for (const Index::Term& t : index.terms()) {
    sum = b_.CreateAdd(sum, b_.CreateMul(EvalAtom(stage, t.atom), Int(t.coefficient)));
  }
  return sum;
}

// Emits the values in an index, where they hold for all that follows.
void GpuEmitter::EvalValues(StageId stage, const Index& index) {
  for (const Index::Term& t : index.terms()) {
    if (t.atom.kind == Atom::Kind::kValue) At(stage, t.atom.node);
    if (t.atom.inner) EvalValues(stage, *t.atom.inner);
  }
}

Value* GpuEmitter::Address(StageId stage, kernel::ParamId param, const Index& index) {
  llvm::Type* type = MemoryType(context(), kernel_.params[param].type);
  return b_.CreateGEP(type, function_->getArg(param.value()), Eval(stage, index));
}

// --- Values

Value* GpuEmitter::Load(StageId stage, const Node& n) {
  llvm::Type* type = MemoryType(context(), n.type);
  Value* loaded = b_.CreateAlignedLoad(type, Address(stage, n.param, n.index),
                                       llvm::Align(static_cast<uint64_t>(ByteWidth(n.type))));
  return FromMemory(b_, loaded, n.type, math_);
}

Value* GpuEmitter::GuardedLoad(StageId stage, const Node& n) {
  Value* guard = At(stage, n.guard);
  EvalValues(stage, n.index);
  Value* value = nullptr;
  IfEnds ends =
      EmitIf(b_, guard, [&] { value = Load(stage, n); }, {.then = "load", .after = "loaded"});
  Value* zero = llvm::Constant::getNullValue(value->getType());
  return EmitPhi(b_, {zero, ends.otherwise}, {value, ends.then});
}

Value* GpuEmitter::Op(const Node& n, const IdVector<NodeId, Node>& nodes,
                      const std::vector<Value*>& operands) {
  std::vector<ElementType> types;
  for (NodeId o : n.operands) types.push_back(nodes[o].type);
  auto value = EmitOp(b_, n, operands, types, math_);
  if (value.ok()) return *value;
  Fail(value.status());
  return llvm::Constant::getNullValue(RegisterType(context(), n.type));
}

void GpuEmitter::SetNode(StageId stage, NodeId node, Value* value) { values_[stage][node] = value; }

Value* GpuEmitter::At(StageId stage, NodeId node) {
  if (Value* known = values_[stage][node]) return known;
  const kernel::Stage& in = kernel_.stages[stage];
  const Node& n = in.nodes[node];
  Value* value = nullptr;
  switch (n.kind) {
    case Node::Kind::kConstant:
      value = ConstantOf(context(), *n.literal);
      break;
    case Node::Kind::kIndex:
      value = EmitConvert(b_, b_.CreateSExt(Eval(stage, n.index), b_.getInt64Ty()),
                          ElementType::kS64, n.type, math_);
      break;
    case Node::Kind::kInRange:
      value = b_.CreateICmpULT(Eval(stage, n.index), Int(n.bound));  // Negative ones are large.
      break;
    case Node::Kind::kLoad:
      value = !n.guard.valid() ? Load(stage, n) : GuardedLoad(stage, n);
      break;
    case Node::Kind::kReduced:
      value = reduced_[n.stage][n.reduction][n.result];
      break;
    case Node::Kind::kArgument:
      break;
    case Node::Kind::kOp: {
      std::vector<Value*> operands;
      for (NodeId o : n.operands) operands.push_back(At(stage, o));
      value = Op(n, in.nodes, operands);
      break;
    }
  }
  return values_[stage][node] = value;
}

void GpuEmitter::Store(Value* value, Value* address, ElementType type) {
  b_.CreateAlignedStore(ToMemory(b_, value, type, math_), address,
                        llvm::Align(static_cast<uint64_t>(ByteWidth(type))));
}

// Outputs may be in the memory of inputs: all is read before anything is written.
std::vector<const kernel::Store*> GpuEmitter::StoresOf(StageId stage) const {
  std::vector<const kernel::Store*> stores;
  const auto& all = kernel_.stages[stage].stores;
  for (size_t k = 0; k < all.size(); ++k) {
    bool replaced = std::ranges::any_of(schedule_.kept.replaced, [&](const auto& r) {
      return r.stage == stage && r.store == static_cast<int>(k);
    });
    if (!replaced) stores.push_back(&all[k]);
  }
  return stores;
}

void GpuEmitter::EmitStores(StageId stage) {
  std::vector<const kernel::Store*> stores = StoresOf(stage);
  std::vector<Value*> values, addresses;
  for (const kernel::Store* s : stores) {
    values.push_back(At(stage, s->value));
    addresses.push_back(Address(stage, s->param, s->index));
  }
  for (size_t k = 0; k < stores.size(); ++k) {
    Store(values[k], addresses[k], kernel_.params[stores[k]->param].type);
  }
}

// The old elements are read where the guard holds, all before any is written.
void GpuEmitter::EmitUpdates(StageId stage) {
  for (const kernel::Update& u : kernel_.stages[stage].updates) {
    auto body = [&] {
      std::vector<Value*> old, inputs, addresses;
      std::vector<ElementType> types;
      for (size_t k = 0; k < u.params.size(); ++k) {
        types.push_back(kernel_.params[u.params[k]].type);
        addresses.push_back(Address(stage, u.params[k], u.indices[k]));
        Value* value =
            b_.CreateAlignedLoad(MemoryType(context(), types[k]), addresses.back(),
                                 llvm::Align(static_cast<uint64_t>(ByteWidth(types[k]))));
        old.push_back(FromMemory(b_, value, types[k], math_));
        inputs.push_back(At(stage, u.inputs[k]));
      }
      std::vector<Value*> next = CombineByNodes(u.combiner, old, inputs);
      for (size_t k = 0; k < next.size(); ++k) Store(next[k], addresses[k], types[k]);
    };
    if (!u.guard.valid()) {
      body();
    } else {
      If(At(stage, u.guard), body);
    }
  }
}

// --- Lanes

IdVector<kernel::NodeId, bool> GpuEmitter::NodesAlong(StageId stage, VariableId variable,
                                                      bool reduced) const {
  const auto& nodes = kernel_.stages[stage].nodes;
  IdVector<NodeId, bool> along(nodes.size(), false);
  std::function<bool(const Index&)> depends = [&](const Index& index) {
    return std::ranges::any_of(index.terms(), [&](const Index::Term& t) {
      if (t.atom.kind == Atom::Kind::kVariable) return t.atom.variable == variable;
      if (t.atom.kind == Atom::Kind::kValue) return bool{along[t.atom.node]};
      return depends(*t.atom.inner);
    });
  };
  for (NodeId k : nodes.ids()) {
    const Node& n = nodes[k];
    bool is = depends(n.index) || (n.guard.valid() && along[n.guard]) ||
              (reduced && n.kind == Node::Kind::kReduced);
    for (NodeId o : n.operands) is = is || along[o];
    along[k] = is;
  }
  return along;
}

// Words of a vector, of which a narrow element is a part: the back end takes vectors of narrow
// elements apart by way of memory.
Value* GpuEmitter::LoadPacked(Value* address, ElementType type, int lanes) {
  const int64_t width = ByteWidth(type), bytes = width * lanes;
  const int64_t word_bytes = std::min<int64_t>(std::max<int64_t>(width, 4), bytes);
  llvm::Type* loaded = b_.getIntNTy(static_cast<unsigned>(8 * word_bytes));
  if (bytes > word_bytes) {
    loaded = llvm::FixedVectorType::get(loaded, static_cast<unsigned>(bytes / word_bytes));
  }
  return b_.CreateAlignedLoad(loaded, address, llvm::Align(static_cast<uint64_t>(bytes)));
}

void GpuEmitter::StorePacked(Value* packed, Value* address) {
  uint64_t bytes = packed->getType()->getPrimitiveSizeInBits() / 8;
  b_.CreateAlignedStore(packed, address, llvm::Align(bytes));
}

std::vector<Value*> GpuEmitter::Unpack(Value* packed, ElementType type, int lanes) {
  const int64_t width = ByteWidth(type);
  const bool is_vector = packed->getType()->isVectorTy();
  const int64_t in_word = packed->getType()->getScalarSizeInBits() / (8 * width);
  llvm::IntegerType* narrow = b_.getIntNTy(static_cast<unsigned>(8 * width));
  std::vector<Value*> values;
  for (int lane = 0; lane < lanes; ++lane) {
    Value* word = packed;
    if (is_vector) word = b_.CreateExtractElement(packed, static_cast<uint64_t>(lane / in_word));
    auto shift = static_cast<uint64_t>(8 * width * (lane % in_word));
    Value* bits = b_.CreateTrunc(shift > 0 ? b_.CreateLShr(word, shift) : word, narrow);
    values.push_back(
        FromMemory(b_, b_.CreateBitCast(bits, MemoryType(context(), type)), type, math_));
  }
  return values;
}

Value* GpuEmitter::Pack(const std::vector<Value*>& values, ElementType type) {
  const int64_t width = ByteWidth(type);
  const int64_t bytes = width * static_cast<int64_t>(values.size());
  const int64_t word_bytes = std::min<int64_t>(std::max<int64_t>(width, 4), bytes);
  const int64_t words = bytes / word_bytes, in_word = word_bytes / width;
  llvm::IntegerType* word_type = b_.getIntNTy(static_cast<unsigned>(8 * word_bytes));
  llvm::IntegerType* narrow = b_.getIntNTy(static_cast<unsigned>(8 * width));
  Value* packed = nullptr;
  for (int64_t w = 0; w < words; ++w) {
    Value* word = nullptr;
    for (int64_t k = 0; k < in_word; ++k) {
      Value* bits = b_.CreateBitCast(ToMemory(b_, values[w * in_word + k], type, math_), narrow);
      bits = b_.CreateZExt(bits, word_type);
      if (k > 0) bits = b_.CreateShl(bits, static_cast<uint64_t>(8 * width * k));
      word = word ? b_.CreateOr(word, bits) : bits;
    }
    if (words == 1) return word;
    if (!packed) {
      packed = llvm::PoisonValue::get(
          llvm::FixedVectorType::get(word_type, static_cast<unsigned>(words)));
    }
    packed = b_.CreateInsertElement(packed, word, static_cast<uint64_t>(w));
  }
  return packed;
}

std::vector<Value*> GpuEmitter::LoadVector(Value* address, ElementType type, int lanes) {
  const int most = static_cast<int>(kernel::kGpuAccessBytes / ByteWidth(type));
  std::vector<Value*> all;
  for (int first = 0; first < lanes; first += most) {
    int part = std::min(most, lanes - first);
    Value* at =
        b_.CreateConstGEP1_32(MemoryType(context(), type), address, static_cast<unsigned>(first));
    for (Value* v : Unpack(LoadPacked(at, type, part), type, part)) all.push_back(v);
  }
  return all;
}

void GpuEmitter::StoreVector(const std::vector<Value*>& values, Value* address, ElementType type) {
  const int64_t lanes = static_cast<int64_t>(values.size());
  const int64_t most = kernel::kGpuAccessBytes / ByteWidth(type);
  for (int64_t first = 0; first < lanes; first += most) {
    int64_t part = std::min(most, lanes - first);
    Value* at =
        b_.CreateConstGEP1_32(MemoryType(context(), type), address, static_cast<unsigned>(first));
    StorePacked(Pack({values.begin() + first, values.begin() + first + part}, type), at);
  }
}

void GpuEmitter::ForLanes(StageId stage, VariableId variable, int lanes,
                          const std::function<void(int lane)>& f, NodeId node) {
  EachLane(stage, variable, lanes, /*reduced=*/false, node, f);
}

void GpuEmitter::EachLane(StageId stage, VariableId variable, int lanes, bool reduced, NodeId node,
                          const std::function<void(int lane)>& f) {
  if (lanes == 1) return f(0);
  const auto& nodes = kernel_.stages[stage].nodes;
  Value* base = this->variable(variable);
  IdVector<NodeId, bool> along = NodesAlong(stage, variable, reduced);
  IdVector<NodeId, std::vector<Value*>> vectors(nodes.size());
  IdVector<NodeId, bool> wanted(nodes.size(), !node.valid());
  if (node.valid()) {
    for (NodeId n : kernel::GpuNodesOf(kernel_.stages[stage], node)) wanted[n] = true;
  }
  for (NodeId k : nodes.ids()) {
    const Node& n = nodes[k];
    if (!wanted[k]) continue;
    if (n.kind != Node::Kind::kLoad || n.guard.valid() || !along[k] || values_[stage][k]) continue;
    if (!kernel::IsGpuVector(n.index, variable, lanes)) continue;
    vectors[k] = LoadVector(Address(stage, n.param, n.index), n.type, lanes);
  }
  for (int lane = 0; lane < lanes; ++lane) {
    if (lane > 0) SetVariable(variable, b_.CreateAdd(base, Int(lane)));
    for (NodeId k : nodes.ids()) {
      if (!along[k]) continue;
      values_[stage][k] = vectors[k].empty() ? nullptr : vectors[k][lane];
    }
    f(lane);
  }
  for (NodeId k : nodes.ids()) {
    if (along[k]) values_[stage][k] = nullptr;
  }
  SetVariable(variable, base);
}

void GpuEmitter::StoreLanes(StageId stage, VariableId variable, int lanes,
                            const std::function<void(int lane)>& prepare) {
  if (lanes == 1) {
    if (prepare) prepare(0);
    return EmitStores(stage);
  }
  std::vector<const kernel::Store*> stores = StoresOf(stage);
  std::vector<std::vector<Value*>> vectors(stores.size());
  std::vector<Value*> vector_addresses(stores.size());
  EachLane(stage, variable, lanes, prepare != nullptr, {}, [&](int lane) {
    if (prepare) prepare(lane);
    std::vector<Value*> values(stores.size()), addresses(stores.size());
    for (size_t k = 0; k < stores.size(); ++k) {
      values[k] = At(stage, stores[k]->value);
      addresses[k] = Address(stage, stores[k]->param, stores[k]->index);
    }
    for (size_t k = 0; k < stores.size(); ++k) {
      if (kernel::IsGpuVector(stores[k]->index, variable, lanes)) {
        if (lane == 0) vector_addresses[k] = addresses[k];
        vectors[k].push_back(values[k]);
      } else {
        Store(values[k], addresses[k], kernel_.params[stores[k]->param].type);
      }
    }
  });
  for (size_t k = 0; k < stores.size(); ++k) {
    if (vectors[k].empty()) continue;
    StoreVector(vectors[k], vector_addresses[k], kernel_.params[stores[k]->param].type);
  }
}

// --- Reductions

std::vector<Value*> GpuEmitter::Identity(StageId stage, ReductionId i) {
  const Reduction& r = reduction(stage, i);
  std::vector<Value*> values;
  for (size_t k = 0; k < r.types.size(); ++k) {
    values.push_back(r.combiner.kind == kernel::Combiner::Kind::kGeneral
                         ? At(stage, r.inits[k])
                         : IdentityOf(context(), r.combiner.kind, r.types[k]));
  }
  return values;
}

std::vector<Value*> GpuEmitter::Combine(const Reduction& r, const std::vector<Value*>& x,
                                        const std::vector<Value*>& y) {
  if (r.combiner.kind != kernel::Combiner::Kind::kGeneral) {
    return {EmitCombine(b_, r.combiner.kind, r.types[0], x[0], y[0], math_)};
  }
  return CombineByNodes(r.combiner, x, y);
}

std::vector<Value*> GpuEmitter::CombineParts(StageId stage, ReductionId i, std::vector<Value*> x,
                                             std::vector<Value*> y) {
  const Reduction& r = reduction(stage, i);
  if (r.combiner.kind == kernel::Combiner::Kind::kGeneral) {
    auto [known, is_new] = orders_.try_emplace(&r);
    if (is_new) {
      if (const auto sequences = kernel::SequencesOf(kernel_, kernel_.stages[stage], r)) {
        known->second = sequences->by;
      }
    }
    if (const std::optional<size_t> by = known->second) EmitOrder(b_, r.types[*by], *by, x, y);
  }
  return Combine(r, x, y);
}

std::vector<Value*> GpuEmitter::CombineByNodes(const kernel::Combiner& combiner,
                                               const std::vector<Value*>& x,
                                               const std::vector<Value*>& y) {
  if (combiner.nodes.size() <= kMostCombinerNodes) return EmitCombiner(combiner, x, y);
  std::vector<Value*> arguments = x;
  arguments.insert(arguments.end(), y.begin(), y.end());
  Value* all = b_.CreateCall(FunctionOf(combiner, arguments, x.size()), arguments);
  std::vector<Value*> results;
  for (unsigned i = 0; i < combiner.results.size(); ++i) {
    results.push_back(b_.CreateExtractValue(all, i));
  }
  return results;
}

llvm::Function* GpuEmitter::FunctionOf(const kernel::Combiner& combiner,
                                       const std::vector<Value*>& arguments, size_t split) {
  llvm::Function*& function = combiners_[&combiner];
  if (function) return function;
  std::vector<llvm::Type*> types, result_types;
  for (Value* argument : arguments) types.push_back(argument->getType());
  for (NodeId result : combiner.results) {
    result_types.push_back(RegisterType(context(), combiner.nodes[result].type));
  }
  llvm::StructType* type = llvm::StructType::get(context(), result_types);
  function = llvm::Function::Create(
      llvm::FunctionType::get(type, types, false), llvm::Function::InternalLinkage,
      Cat(function_->getName().str(), "_combine"), function_->getParent());
  function->setAttributes(function_->getAttributes());
  Builder::InsertPointGuard back(b_);
  b_.SetInsertPoint(llvm::BasicBlock::Create(context(), "entry", function));
  std::vector<Value*> x, y;
  for (llvm::Argument& a : function->args()) (a.getArgNo() < split ? x : y).push_back(&a);
  Value* all = llvm::PoisonValue::get(type);
  unsigned i = 0;
  for (Value* result : EmitCombiner(combiner, x, y)) all = b_.CreateInsertValue(all, result, i++);
  b_.CreateRet(all);
  return function;
}

std::vector<Value*> GpuEmitter::EmitCombiner(const kernel::Combiner& combiner,
                                             const std::vector<Value*>& x,
                                             const std::vector<Value*>& y) {
  IdVector<NodeId, Value*> nodes;
  for (const Node& n : combiner.nodes) {
    if (n.kind == Node::Kind::kArgument) {
      size_t k = static_cast<size_t>(n.result);
      nodes.push_back(k < x.size() ? x[k] : y[k - x.size()]);
    } else if (n.kind == Node::Kind::kConstant) {
      nodes.push_back(ConstantOf(context(), *n.literal));
    } else {
      std::vector<Value*> operands;
      for (NodeId o : n.operands) operands.push_back(nodes[o]);
      nodes.push_back(Op(n, combiner.nodes, operands));
    }
  }
  std::vector<Value*> results;
  for (NodeId result : combiner.results) results.push_back(nodes[result]);
  return results;
}

GpuEmitter::Accumulators GpuEmitter::MakeAccumulators(StageId stage, bool from_inits) {
  Accumulators result;
  const auto& reductions = kernel_.stages[stage].reductions;
  for (ReductionId i : reductions.ids()) {
    Slots& slots = result.emplace_back();
    for (ElementType type : reductions[i].types) {
      slots.push_back(NewSlot(RegisterType(context(), type)));
    }
    // They are read before the threads of a team wait for each other: a result may be in the memory
    // of an init.
    std::vector<Value*> inits;
    for (NodeId init : reductions[i].inits) inits.push_back(At(stage, init));
    SetSlots(slots, from_inits ? inits : Identity(stage, i));
  }
  return result;
}

std::vector<Value*> GpuEmitter::Current(const Slots& slots) {
  std::vector<Value*> values;
  for (llvm::AllocaInst* slot : slots) {
    values.push_back(b_.CreateLoad(slot->getAllocatedType(), slot));
  }
  return values;
}

void GpuEmitter::SetSlots(const Slots& slots, const std::vector<Value*>& values) {
  for (size_t k = 0; k < slots.size(); ++k) b_.CreateStore(values[k], slots[k]);
}

void GpuEmitter::Accumulate(StageId stage, const Accumulators& accumulators, Value* active) {
  const auto& reductions = kernel_.stages[stage].reductions;
  for (ReductionId i : reductions.ids()) {
    Value* condition = active;
    if (NodeId guard = reductions[i].guard; guard.valid()) {
      Value* holds = At(stage, guard);
      condition = condition ? b_.CreateAnd(condition, holds) : holds;
    }
    std::vector<Value*> last = Current(accumulators[i]);
    std::vector<Value*> next;
    const auto* factors =
        math_.has_fma ? FusedFactors(kernel_.stages[stage], reductions[i]) : nullptr;
    if (factors) {
      next = {EmitFma(b_, At(stage, (*factors)[0]), At(stage, (*factors)[1]), last[0])};
    } else {
      std::vector<Value*> inputs;
      for (NodeId input : reductions[i].inputs) inputs.push_back(At(stage, input));
      next = Combine(reductions[i], last, inputs);
    }
    for (size_t k = 0; k < next.size(); ++k) {
      if (condition) next[k] = b_.CreateSelect(condition, next[k], last[k]);
    }
    SetSlots(accumulators[i], next);
  }
}

void GpuEmitter::SetReduced(StageId stage, ReductionId i, std::vector<Value*> values) {
  reduced_[stage][i] = std::move(values);
}

void GpuEmitter::FinishReduction(StageId stage, ReductionId i, const std::vector<Value*>& total) {
  const Reduction& r = reduction(stage, i);
  bool general = r.combiner.kind == kernel::Combiner::Kind::kGeneral;
  SetReduced(stage, i, general ? total : Combine(r, {At(stage, r.inits[0])}, total));
}

void GpuEmitter::EmitSerialStage(StageId stage) {
  const Stage& s = kernel_.stages[stage];
  const Accumulators accumulators = MakeAccumulators(stage);
  std::function<void(size_t)> nest = [&](size_t depth) {
    if (depth == s.variables.size()) {
      Accumulate(stage, accumulators);
      EmitStores(stage);
      EmitUpdates(stage);
      return;
    }
    const VariableId v = s.variables[depth];
    Loop(Int(0), Int(kernel_.variables[v].extent), Int(1), [&](Value* i) {
      SetVariable(v, i);
      nest(depth + 1);
    });
  };
  nest(0);
  for (ReductionId i : accumulators.ids()) {
    FinishReduction(stage, i, Current(accumulators[i]));
  }
}

void GpuEmitter::EmitSerialStages(StageId first) {
  for (StageId s : kernel_.stages.ids(first)) EmitSerialStage(s);
}

// --- Partial results

Value* GpuEmitter::LoadPartial(Value* base, Value* at, ElementType type) {
  llvm::Type* memory = PartialType(type);
  Value* loaded = b_.CreateAlignedLoad(memory, b_.CreateGEP(memory, base, at),
                                       llvm::Align(static_cast<uint64_t>(ByteWidth(type))));
  return FromMemory(b_, loaded, type, math_);
}

void GpuEmitter::StorePartial(Value* value, Value* base, Value* at, ElementType type) {
  Store(value, b_.CreateGEP(PartialType(type), base, at), type);
}

Value* GpuEmitter::Scratch(int64_t offset) {
  Value* scratch = function_->getArg(static_cast<unsigned>(kernel_.params.size()));
  return b_.CreateConstGEP1_64(b_.getInt8Ty(), scratch, static_cast<uint64_t>(offset));
}

Value* GpuEmitter::Partials(ReductionId reduction, size_t result) {
  const std::span<const Reduction> all = kernel_.stages.front().reductions;
  int64_t offset =
      kernel::GpuPartialBytes(all.first(reduction.index()), outer_points_, schedule_.chunks);
  for (size_t k = 0; k < result; ++k) {
    ElementType type = this->reduction(StageId(0), reduction).types[k];
    offset += kernel::GpuPartialBytes(type, outer_points_, schedule_.chunks);
  }
  return Scratch(offset);
}

}  // namespace kiln::codegen
