#include "ir/text_foreign.h"

#include <algorithm>

#include "base/strings.h"
#include "ir/builder.h"
#include "ir/dynamic_reshape.h"
#include "ir/ragged_all_to_all.h"
#include "ir/ragged_dot.h"
#include "ir/scaled_dot.h"
#include "ir/text_scanner.h"
#include "ir/text_values.h"

namespace kiln::ir {
namespace {

template <typename... Args>
Status Wrong(const ForeignInstruction& f, const Args&... args) {
  return InvalidArgument(f.name, " ", args...);
}

// An attribute of `more`; its absence is the default.
Result<Ints> IntsOf(const ForeignInstruction& f, std::string_view name) {
  for (const auto& [key, text] : f.more) {
    if (key != name) continue;
    Scanner scanner(text);
    return ReadInts(scanner);
  }
  return Ints();
}
Result<int64_t> IntOf(const ForeignInstruction& f, std::string_view name, int64_t absent) {
  for (const auto& [key, text] : f.more) {
    if (key != name) continue;
    Scanner scanner(text);
    return scanner.Integer();
  }
  return absent;
}
bool FlagOf(const ForeignInstruction& f, std::string_view name) {
  return std::ranges::any_of(
      f.more, [&](const auto& more) { return more.first == name && more.second == "true"; });
}

Instruction* OperandsAs(Builder& b, std::span<Instruction* const> operands, const Shape& shape) {
  if (operands.size() == 1 && operands[0]->shape().SameTypeAndDimensions(shape)) return operands[0];
  if (shape.is_tuple() && shape.elements().size() == operands.size()) {
    return b.Tuple({operands.begin(), operands.end()});
  }
  return b.Zeros(shape);
}

Result<Instruction*> DoneOf(const ForeignInstruction& f) {
  Instruction* start = f.operands[0];
  if (f.op.result < 0) return start;
  if (!start->shape().is_tuple() || std::ssize(start->shape().elements()) <= f.op.result) {
    return Wrong(f, "has operand ", start->shape(), ", which is no pair's beginning");
  }
  return ElementOf(start, f.op.result);
}

// --- scan

// A loop whose state is the index, the inputs, the outputs so far, and the carries.
struct Scan {
  const ForeignInstruction& f;
  int64_t dimension = 0, length = 0;
  size_t carries = 0, inputs = 0, outputs = 0;
  bool reverse = false, one = false;  // result, no tuple of it
  std::vector<Shape> results;         // outputs, then carries

  Result<Instruction*> Make() {
    KILN_RETURN_IF_ERROR(Read());
    Builder b(f.computation, nullptr, f.op_name);
    std::vector<Instruction*> state = {b.Scalar(ElementType::kS32, 0)};
    state.insert(state.end(), f.operands.begin(),
                 f.operands.begin() + std::ssize(f.operands) - static_cast<int64_t>(carries));
    for (size_t k = 0; k < outputs; ++k) state.push_back(b.Zeros(results[k]));
    for (size_t k = 0; k < carries; ++k) state.push_back(f.operands[inputs + k]);
    if (length == 0) return Empty(b, state);
    Instruction* init = b.Tuple(std::move(state));
    if (!init) return b.status();
    KILN_ASSIGN_OR_RETURN(Computation * body, Body(init->shape()));
    Instruction* loop =
        b.Add(Opcode::kWhile, {init}, {}, std::nullopt, {Condition(init->shape()), body});
    std::vector<Instruction*> values;
    for (size_t k = 0; k < outputs + carries; ++k) {
      values.push_back(b.Element(loop, static_cast<int64_t>(1 + inputs + k)));
    }
    Instruction* all = one ? values[0] : b.Tuple(std::move(values));
    if (!b.ok()) return b.status();
    return all;
  }

  // No slice can be taken of inputs without elements.
  Result<Instruction*> Empty(Builder& b, const std::vector<Instruction*>& state) const {
    Instruction* all = b.Tuple({state.begin() + static_cast<int64_t>(1 + inputs), state.end()});
    if (one) all = b.Element(all, 0);
    if (!b.ok()) return b.status();
    return all;
  }

  Status Read() {
    KILN_ASSIGN_OR_RETURN(const int64_t count, IntOf(f, "num_carries", 0));
    if (f.attributes.IntsOf(Attr::kDimensions).size() != 1 || count < 0 ||
        count > std::ssize(f.operands) || !f.to_apply) {
      return Wrong(f, "needs one of dimensions, num_carries of its operands and to_apply");
    }
    dimension = f.attributes.IntsOf(Attr::kDimensions)[0];
    reverse = FlagOf(f, "is_reverse");
    carries = static_cast<size_t>(count);
    inputs = f.operands.size() - carries;
    KILN_RETURN_IF_ERROR(ReadResults());
    if (results.size() < carries) return Wrong(f, "has fewer results than carries");
    outputs = results.size() - carries;
    if (inputs + outputs == 0) return Wrong(f, "has neither inputs nor outputs");
    if (f.to_apply->parameters().size() != f.operands.size()) {
      return Wrong(f, "has ", f.operands.size(), " operands; its computation takes ",
                   f.to_apply->parameters().size());
    }
    length = -1;
    auto check = [&](const Shape& shape) {
      const bool fits = shape.is_array() && dimension >= 0 && dimension < shape.rank() &&
                        shape.dimension(dimension).is_constant() &&
                        (length < 0 || length == shape.dim(dimension));
      if (!fits) return Wrong(f, "has ", shape, ", whose dimension ", dimension, " is no other's");
      length = shape.dim(dimension);
      return OkStatus();
    };
    for (size_t k = 0; k < outputs; ++k) KILN_RETURN_IF_ERROR(check(results[k]));
    for (size_t k = 0; k < inputs; ++k) KILN_RETURN_IF_ERROR(check(f.operands[k]->shape()));
    for (size_t k = 0; k < carries; ++k) {
      const Shape& shape = f.operands[inputs + k]->shape();
      if (!shape.SameTypeAndDimensions(results[outputs + k])) {
        return Wrong(f, "has a carry of ", shape, " and its result ", results[outputs + k]);
      }
    }
    return OkStatus();
  }

  // As declared, or those of the computation, of which the outputs are slices.
  Status ReadResults() {
    const Shape& shape = f.shape ? *f.shape : f.to_apply->root()->shape();
    one = !shape.is_tuple();
    results = one ? std::vector<Shape>{shape} : shape.elements();
    if (f.shape) return OkStatus();
    for (size_t k = 0; k + carries < results.size(); ++k) {
      const Shape& input = f.operands[0]->shape();
      const bool fits = inputs > 0 && input.is_array() && dimension >= 0 &&
                        dimension < input.rank() && results[k].is_array() &&
                        dimension <= results[k].rank();
      if (!fits) return Wrong(f, "needs a shape");
      std::vector<Dimension> dimensions = results[k].dimensions();
      dimensions.insert(dimensions.begin() + dimension, input.dimension(dimension));
      results[k] = Shape(results[k].type(), std::move(dimensions));
    }
    return OkStatus();
  }

  Computation* Condition(const Shape& state) const {
    Computation* c = f.computation->parent()->AddComputation("scan.condition");
    Builder b(c);
    Instruction* i = b.Element(b.Parameter(state), 0);
    c->set_root(
        b.Compare(Direction::kLt, i, b.Scalar(ElementType::kS32, static_cast<double>(length))));
    return c;
  }

  // The index in each dimension: the loop's along that of the scan.
  std::vector<Instruction*> Starts(Builder& b, Instruction* at, int64_t rank) const {
    std::vector<Instruction*> starts(static_cast<size_t>(rank), b.Scalar(ElementType::kS32, 0));
    starts[static_cast<size_t>(dimension)] = at;
    return starts;
  }

  Result<Computation*> Body(const Shape& state) const {
    Computation* c = f.computation->parent()->AddComputation("scan.body");
    Builder b(c);
    Instruction* all = b.Parameter(state);
    auto element = [&](size_t k) { return b.Element(all, static_cast<int64_t>(k)); };
    Instruction* i = element(0);
    Instruction* at = i;
    if (reverse) {
      at = b.Minus(b.Scalar(ElementType::kS32, static_cast<double>(length - 1)), i);
    }
    std::vector<Instruction*> arguments, next = {b.Plus(i, b.Scalar(ElementType::kS32, 1))};
    for (size_t k = 0; k < inputs; ++k) {
      next.push_back(element(1 + k));
      arguments.push_back(SliceOf(b, next.back(), at));
    }
    for (size_t k = 0; k < carries; ++k) arguments.push_back(element(1 + inputs + outputs + k));
    Instruction* result =
        b.Add(Opcode::kCall, std::move(arguments), {}, std::nullopt, {f.to_apply});
    if (!b.ok()) return b.status();
    const bool is_tuple = result->shape().is_tuple();
    const auto count = static_cast<size_t>(result->shape().result_count());
    if (count != outputs + carries) {
      return Wrong(f, "has ", outputs + carries, " results; its computation gives ", count);
    }
    for (size_t k = 0; k < count && b.ok(); ++k) {
      Instruction* value = is_tuple ? b.Element(result, static_cast<int64_t>(k)) : result;
      if (!value->shape().is_array()) return Wrong(f, "has a result ", value->shape());
      value = b.Convert(value, results[k].type());
      next.push_back(k < outputs ? WithSlice(b, element(1 + inputs + k), value, at) : value);
    }
    Instruction* root = b.Tuple(std::move(next));
    if (!b.ok()) return b.status();
    c->set_root(root);
    return c;
  }

  Instruction* SliceOf(Builder& b, Instruction* x, Instruction* at) const {
    Ints sizes = x->shape().dims();
    std::vector<Dimension> dimensions = x->shape().dimensions();
    sizes[static_cast<size_t>(dimension)] = 1;
    dimensions.erase(dimensions.begin() + dimension);
    std::vector<Instruction*> operands = Starts(b, at, x->shape().rank());
    operands.insert(operands.begin(), x);
    Instruction* slice =
        b.Add(Opcode::kDynamicSlice, std::move(operands), {{Attr::kDynamicSliceSizes, sizes}});
    return b.Reshape(slice, std::move(dimensions));
  }

  Instruction* WithSlice(Builder& b, Instruction* whole, Instruction* value,
                         Instruction* at) const {
    std::vector<Dimension> dimensions = whole->shape().dimensions();
    dimensions[static_cast<size_t>(dimension)] = Dimension(1);
    std::vector<Instruction*> operands = Starts(b, at, whole->shape().rank());
    operands.insert(operands.begin(), {whole, b.Reshape(value, std::move(dimensions))});
    return b.Add(Opcode::kDynamicUpdateSlice, std::move(operands));
  }
};

// --- Products

Result<Instruction*> ScaledDotOf(const ForeignInstruction& f) {
  if (f.operands.size() != 4 || !f.shape || !f.shape->is_array()) {
    return Wrong(f, "needs a shape and four operands");
  }
  Builder b(f.computation, nullptr, f.op_name);
  Instruction* dot = ScaledDot(b, f.operands, f.attributes, f.shape->type());
  if (!b.ok()) return Wrong(f, b.status().message());
  return dot;
}

Result<Instruction*> RaggedDotOf(const ForeignInstruction& f) {
  KILN_ASSIGN_OR_RETURN(const Ints ragged, IntsOf(f, "lhs_ragged_dims"));
  KILN_ASSIGN_OR_RETURN(const Ints group, IntsOf(f, "rhs_group_dims"));
  if (f.operands.size() != 3 || ragged.size() != 1 || group.size() > 1 ||
      (f.shape && !f.shape->is_array())) {
    return Wrong(f, "needs three operands, one of lhs_ragged_dims, at most one of rhs_group_dims ",
                 "and an array as its result");
  }
  Builder b(f.computation, nullptr, f.op_name);
  Instruction* dot = RaggedDot(b, f.operands[0], f.operands[1], f.operands[2], f.attributes,
                               ragged[0], group.empty() ? -1 : group[0],
                               (f.shape ? *f.shape : f.operands[0]->shape()).type());
  if (!b.ok()) return Wrong(f, b.status().message());
  return dot;
}

// --- Others

Result<Instruction*> DynamicReshapeOf(const ForeignInstruction& f) {
  if (!f.shape) return Wrong(f, "needs a shape");
  Builder b(f.computation, nullptr, f.op_name);
  Instruction* value = DynamicReshape(b, f.operands, *f.shape);
  if (!b.ok()) return Wrong(f, b.status().message());
  return value;
}

// Between processes it is a call, which is refused where it would run.
Result<Instruction*> RaggedAllToAllOf(const ForeignInstruction& f) {
  Builder b(f.computation, nullptr, f.op_name);
  Instruction* value = f.alone ? RaggedAllToAll(b, f.operands) : nullptr;
  if (!b.ok()) return Wrong(f, b.status().message());
  if (value) return value;
  if (!f.shape) return Wrong(f, "needs a shape");
  return b.AddShaped(*f.shape, Opcode::kCustomCall, f.operands,
                     {{Attr::kCustomCallTarget, QuotedText{std::string(f.name)}}});
}

}  // namespace

std::optional<ForeignOp> ForeignOpByName(std::string_view name) {
  // Of tokens, domains of partitioners: order and attributes that decide nothing here.
  if (name == "add-dependency" || name == "domain")
    return ForeignOp{ForeignOp::kSame, Opcode::kTuple};
  if (name == "scan") return ForeignOp{ForeignOp::kScan, Opcode::kReduce};
  if (name == "ragged-dot") return ForeignOp{ForeignOp::kRaggedDot, Opcode::kDot};
  if (name == "scaled-dot") return ForeignOp{ForeignOp::kScaledDot, Opcode::kDot};
  if (name == "dynamic-reshape") return ForeignOp{ForeignOp::kDynamicReshape, Opcode::kTuple};
  if (name == "ragged-all-to-all") return ForeignOp{ForeignOp::kRaggedAllToAll, Opcode::kAllToAll};
  const size_t dash = name.rfind('-');
  if (dash == std::string_view::npos) return std::nullopt;
  const std::string_view stem = name.substr(0, dash), part = name.substr(dash + 1);
  std::optional<Opcode> opcode = stem == "async" ? Opcode::kCall : OpcodeByName(stem);
  if (const auto foreign = ForeignOpByName(stem); foreign && foreign->kind >= ForeignOp::kScan) {
    opcode = foreign->opcode;
  }
  if (!opcode || *opcode == Opcode::kParameter || *opcode == Opcode::kConstant) return std::nullopt;
  const int64_t result = *opcode == Opcode::kAllReduce ? -1 : *opcode == Opcode::kCopy ? 0 : 1;
  if (part == "start") return ForeignOp{ForeignOp::kStart, *opcode, result};
  if (part == "update") return ForeignOp{ForeignOp::kSame, Opcode::kTuple};
  if (part == "done") return ForeignOp{ForeignOp::kDone, Opcode::kTuple, result};
  return std::nullopt;
}

Instruction* PairOf(Instruction* result, std::span<Instruction* const> operands,
                    const ForeignOp& op, const Shape& declared) {
  if (op.result < 0) return result;
  Builder b(result->parent(), nullptr, {}, Builder::Operands::kTrusted);
  std::vector<Instruction*> elements;
  for (int64_t k = 0; k < std::ssize(declared.elements()); ++k) {
    const Shape& shape = declared.elements()[static_cast<size_t>(k)];
    elements.push_back(k == op.result       ? result
                       : k == 1 - op.result ? OperandsAs(b, operands, shape)
                                            : b.Zeros(shape));
  }
  return b.Tuple(std::move(elements));
}

Result<Instruction*> MakeForeign(const ForeignInstruction& foreign) {
  if (foreign.operands.empty()) return Wrong(foreign, "has no operand");
  switch (foreign.op.kind) {
    case ForeignOp::kStart:
    case ForeignOp::kSame:
      return foreign.operands[0];
    case ForeignOp::kDone:
      return DoneOf(foreign);
    case ForeignOp::kScan:
      return Scan{foreign}.Make();
    case ForeignOp::kRaggedDot:
      return RaggedDotOf(foreign);
    case ForeignOp::kScaledDot:
      return ScaledDotOf(foreign);
    case ForeignOp::kDynamicReshape:
      return DynamicReshapeOf(foreign);
    case ForeignOp::kRaggedAllToAll:
      return RaggedAllToAllOf(foreign);
  }
  return Wrong(foreign, "is no op");
}

}  // namespace kiln::ir
