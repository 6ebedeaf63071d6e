#include "support/kernel.h"

#include <algorithm>
#include <cmath>
#include <stdexcept>

namespace kiln::testing {

using kernel::Combiner;
using kernel::Index;
using kernel::Kernel;
using kernel::Node;
using kernel::NodeId;
using kernel::ReductionId;
using kernel::StageId;
using kernel::VariableId;

Buffer::Buffer(ElementType type, int64_t elements) : type_(type), elements_(elements) {
  size_ = static_cast<size_t>(elements * ByteWidth(type));
  bytes_.assign(size_ + 2 * kZone + 64, 0xA5);
  auto address = reinterpret_cast<uintptr_t>(bytes_.data()) + kZone;
  offset_ = kZone + (64 - address % 64) % 64;
}

double Buffer::Float(int64_t i) const {
  return VisitKernelType(type_, [&](auto zero) {
    using T = decltype(zero);
    return static_cast<double>(static_cast<const T*>(data())[i]);
  });
}

int64_t Buffer::Int(int64_t i) const {
  return VisitKernelType(type_, [&](auto zero) {
    using T = decltype(zero);
    return static_cast<int64_t>(static_cast<const T*>(data())[i]);
  });
}

void Buffer::Set(int64_t i, double float_value, int64_t int_value) {
  VisitKernelType(type_, [&](auto zero) {
    using T = decltype(zero);
    if constexpr (FloatType<T>) {
      as<T>()[i] = static_cast<T>(float_value);
    } else {
      as<T>()[i] = static_cast<T>(int_value);
    }
  });
}

void Buffer::Fill(unsigned seed) {
  uint64_t state = seed * 2654435761u + 12345;
  for (int64_t i = 0; i < elements_; ++i) {
    state = state * 6364136223846793005ull + 1442695040888963407ull;
    auto number = static_cast<int64_t>((state >> 33) % 17) - 8;
    // Quarters: sums of a few thousand are exact, in whatever order they are taken.
    Set(i, static_cast<double>(number) * 0.25, type_ == ElementType::kPred ? number & 1 : number);
  }
}

bool Buffer::Intact() const {
  auto untouched = [](unsigned char c) { return c == 0xA5; };
  return std::all_of(bytes_.begin(), bytes_.begin() + static_cast<long>(offset_), untouched) &&
         std::all_of(bytes_.begin() + static_cast<long>(offset_ + size_), bytes_.end(), untouched);
}

kernel::NodeId StageBuilder::Add(Node node) const { return get().nodes.Add(std::move(node)); }

kernel::NodeId StageBuilder::Load(kernel::ParamId param, Index index, kernel::NodeId guard) const {
  Node n{.kind = Node::Kind::kLoad, .type = kernel.params[param].type};
  n.param = param;
  n.index = std::move(index);
  n.guard = guard;
  return Add(std::move(n));
}

kernel::NodeId StageBuilder::Op(Opcode opcode, ElementType type,
                                std::vector<kernel::NodeId> operands, Direction direction) const {
  Node n{.kind = Node::Kind::kOp, .type = type, .opcode = opcode, .direction = direction};
  n.operands = std::move(operands);
  return Add(std::move(n));
}

kernel::NodeId StageBuilder::Constant(ElementType type, double value) const {
  Node n{.kind = Node::Kind::kConstant, .type = type};
  n.literal = std::make_shared<Literal>(Literal::ScalarOf(type, value));
  return Add(std::move(n));
}

kernel::NodeId StageBuilder::IndexValue(ElementType type, Index index) const {
  Node n{.kind = Node::Kind::kIndex, .type = type};
  n.index = std::move(index);
  return Add(std::move(n));
}

kernel::NodeId StageBuilder::InRange(Index index, int64_t bound) const {
  Node n{.kind = Node::Kind::kInRange, .type = ElementType::kPred};
  n.index = std::move(index);
  n.bound = bound;
  return Add(std::move(n));
}

kernel::NodeId StageBuilder::Reduced(const StageBuilder& from, int result, ElementType type) const {
  Node n{.kind = Node::Kind::kReduced, .type = type};
  n.stage = from.stage;
  n.reduction = kernel::ReductionId(0);
  n.result = result;
  return Add(std::move(n));
}

void StageBuilder::Store(kernel::ParamId param, Index index, kernel::NodeId value) const {
  get().stores.push_back({param, std::move(index), value});
}

kernel::ReductionId StageBuilder::Reduce(Combiner::Kind kind, ElementType type,
                                         kernel::NodeId input, kernel::NodeId init) const {
  kernel::Reduction r;
  r.combiner.kind = kind;
  r.inputs = {input};
  r.inits = {init};
  r.types = {type};
  return get().reductions.Add(std::move(r));
}

KernelBuilder::KernelBuilder(std::vector<int64_t> outer) {
  kernel.name = "test";
  for (int64_t extent : outer) kernel.variables.push_back({extent, false});
  kernel.outer = static_cast<int>(outer.size());
}

kernel::ParamId KernelBuilder::Input(ElementType type, int64_t elements) {
  kernel.bytes_read += ByteWidth(type) * elements;
  return kernel.params.Add({kernel::Param::Role::kInput, type, elements});
}

kernel::ParamId KernelBuilder::Output(ElementType type, int64_t elements) {
  kernel.bytes_written += ByteWidth(type) * elements;
  return kernel.params.Add({kernel::Param::Role::kOutput, type, elements});
}

VariableId KernelBuilder::Inner(int64_t extent, bool reduction) {
  return kernel.variables.Add({extent, reduction});
}

StageBuilder KernelBuilder::Stage(std::vector<VariableId> variables) {
  kernel.stages.emplace_back();
  kernel.stages.back().variables = std::move(variables);
  return {kernel, kernel.stages.last()};
}

Index KernelBuilder::Var(VariableId v) const {
  return Index::Variable(v, kernel.variables[v].extent);
}

namespace {

// A number of any type: floats in `f`, everything else in `i`.
struct Number {
  double f = 0;
  int64_t i = 0;
};

bool IsFloatType(ElementType t) { return IsFloat(t); }

Number Wrap(ElementType type, Number n) {
  VisitKernelType(type, [&](auto zero) {
    using T = decltype(zero);
    if constexpr (FloatType<T>) {
      n.f = static_cast<double>(static_cast<T>(n.f));
    } else if constexpr (std::is_same_v<T, bool>) {
      n.i = n.i != 0;
    } else {
      n.i = static_cast<int64_t>(static_cast<T>(n.i));
    }
  });
  return n;
}

Number Apply(const Node& node, ElementType from, const std::vector<Number>& v) {
  bool f = IsFloatType(from);
  switch (node.opcode) {
    case Opcode::kAdd:
      return Wrap(node.type, {v[0].f + v[1].f, v[0].i + v[1].i});
    case Opcode::kSubtract:
      return Wrap(node.type, {v[0].f - v[1].f, v[0].i - v[1].i});
    case Opcode::kMultiply:
      return Wrap(node.type, {v[0].f * v[1].f, v[0].i * v[1].i});
    case Opcode::kMaximum:
      return {std::max(v[0].f, v[1].f), std::max(v[0].i, v[1].i)};
    case Opcode::kMinimum:
      return {std::min(v[0].f, v[1].f), std::min(v[0].i, v[1].i)};
    case Opcode::kAnd:
      return {0, v[0].i & v[1].i};
    case Opcode::kOr:
      return {0, v[0].i | v[1].i};
    case Opcode::kXor:
      return {0, v[0].i ^ v[1].i};
    case Opcode::kSelect:
      return v[0].i ? v[1] : v[2];
    case Opcode::kConvert:
      if (IsFloatType(node.type)) {
        return Wrap(node.type, {f ? v[0].f : static_cast<double>(v[0].i), 0});
      }
      if (IsPred(node.type)) return {0, f ? v[0].f != 0 : v[0].i != 0};
      return Wrap(node.type, {0, f ? static_cast<int64_t>(v[0].f) : v[0].i});
    case Opcode::kCompare: {
      int order = f ? (v[0].f > v[1].f) - (v[0].f < v[1].f) : (v[0].i > v[1].i) - (v[0].i < v[1].i);
      switch (node.direction) {
        case Direction::kEq:
          return {0, order == 0};
        case Direction::kNe:
          return {0, order != 0};
        case Direction::kGe:
          return {0, order >= 0};
        case Direction::kGt:
          return {0, order > 0};
        case Direction::kLe:
          return {0, order <= 0};
        case Direction::kLt:
          return {0, order < 0};
      }
      return {};
    }
    default:
      throw std::logic_error("an op that this reference does not know");
  }
}

Opcode OpcodeOf(Combiner::Kind kind) {
  switch (kind) {
    case Combiner::Kind::kSum:
      return Opcode::kAdd;
    case Combiner::Kind::kProduct:
      return Opcode::kMultiply;
    case Combiner::Kind::kMax:
      return Opcode::kMaximum;
    case Combiner::Kind::kMin:
      return Opcode::kMinimum;
    case Combiner::Kind::kAnd:
      return Opcode::kAnd;
    case Combiner::Kind::kOr:
      return Opcode::kOr;
    case Combiner::Kind::kXor:
    case Combiner::Kind::kGeneral:
      return Opcode::kXor;
  }
  return Opcode::kXor;
}

class Evaluator {
 public:
  Evaluator(const Kernel& kernel, std::vector<Buffer*> params)
      : kernel_(kernel), params_(std::move(params)), at_(kernel.variables.size(), 0) {}

  void Run() {
    const IdRange<VariableId> outer = kernel_.OuterVariables();
    ForEach({outer.begin(), outer.end()}, 0, [&] {
      reduced_.clear();
      for (StageId s : kernel_.stages.ids()) RunStage(s);
    });
  }

 private:
  template <typename F>
  void ForEach(const std::vector<VariableId>& variables, size_t i, F&& f) {
    if (i == variables.size()) return f();
    const VariableId v = variables[i];
    for (at_[v] = 0; at_[v] < kernel_.variables[v].extent; ++at_[v]) ForEach(variables, i + 1, f);
    at_[v] = 0;
  }

  // The value of an index whose value atoms are nodes of the stage.
  int64_t ValueOf(const Index& index, const IdVector<NodeId, Number>& values) {
    int64_t sum = index.constant();
    for (const Index::Term& t : index.terms()) {
      int64_t atom = 0;
      if (t.atom.kind == kernel::Atom::Kind::kValue) {
        atom = values[t.atom.node].i;
      } else {
        atom = Index::OfTerm(1, t.atom).Evaluate(at_);
      }
      sum += t.coefficient * atom;
    }
    return sum;
  }

  IdVector<NodeId, Number> Nodes(const IdVector<NodeId, Node>& nodes,
                                 const std::vector<Number>& arguments) {
    IdVector<NodeId, Number> values;
    for (const Node& n : nodes) {
      Number value;
      switch (n.kind) {
        case Node::Kind::kConstant:
          value = {n.literal->AsDouble(0), n.literal->AsInt(0)};
          break;
        case Node::Kind::kIndex: {
          int64_t i = ValueOf(n.index, values);
          value = Wrap(n.type, {static_cast<double>(i), i});
          break;
        }
        case Node::Kind::kInRange: {
          int64_t i = ValueOf(n.index, values);
          value.i = i >= 0 && i < n.bound;
          break;
        }
        case Node::Kind::kLoad:
          if (!n.guard.valid() || values[n.guard].i) {
            const Buffer& b = *params_[n.param.index()];
            int64_t i = ValueOf(n.index, values);
            value = {b.Float(i), IsFloatType(b.type()) ? 0 : b.Int(i)};
          }
          break;
        case Node::Kind::kReduced:
          value = reduced_[n.stage][n.reduction][static_cast<size_t>(n.result)];
          break;
        case Node::Kind::kArgument:
          value = arguments[static_cast<size_t>(n.result)];
          break;
        case Node::Kind::kOp: {
          std::vector<Number> operands;
          for (NodeId o : n.operands) operands.push_back(values[o]);
          ElementType from = nodes[n.operands[0]].type;
          value = Apply(n, from, operands);
          break;
        }
      }
      values.push_back(value);
    }
    return values;
  }

  void RunStage(StageId s) {
    const kernel::Stage& stage = kernel_.stages[s];
    IdVector<ReductionId, std::vector<Number>> results;
    {
      // Inits need no inner variable; guards keep other loads from mattering at point 0.
      for (const auto& r : stage.reductions) {
        std::vector<Number> inits;
        for (NodeId init : r.inits) {
          const Node& n = stage.nodes[init];
          inits.push_back(Nodes({n}, {}).front());
        }
        results.push_back(inits);
      }
    }
    ForEach(stage.variables, 0, [&] {
      IdVector<NodeId, Number> values = Nodes(stage.nodes, {});
      for (ReductionId i : stage.reductions.ids()) {
        const auto& r = stage.reductions[i];
        std::vector<Number> arguments = results[i];
        for (NodeId input : r.inputs) arguments.push_back(values[input]);
        if (r.combiner.kind == Combiner::Kind::kGeneral) {
          IdVector<NodeId, Number> out = Nodes(r.combiner.nodes, arguments);
          for (size_t k = 0; k < r.inputs.size(); ++k) {
            results[i][k] = out[r.combiner.results[k]];
          }
        } else {
          Node op{.kind = Node::Kind::kOp, .type = r.types[0]};
          op.opcode = OpcodeOf(r.combiner.kind);
          results[i][0] = Apply(op, r.types[0], arguments);
        }
      }
      for (const auto& store : stage.stores) {
        Number v = values[store.value];
        params_[store.param.index()]->Set(ValueOf(store.index, values), v.f, v.i);
      }
    });
    reduced_.push_back(std::move(results));
  }

  const Kernel& kernel_;
  std::vector<Buffer*> params_;
  IdVector<VariableId, int64_t> at_;
  IdVector<StageId, IdVector<ReductionId, std::vector<Number>>> reduced_;
};

}  // namespace

void Evaluate(const Kernel& kernel, std::vector<Buffer*> params) {
  Evaluator(kernel, std::move(params)).Run();
}

}  // namespace kiln::testing
