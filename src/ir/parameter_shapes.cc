// Modules with other shapes of their parameters.
#include <algorithm>
#include <map>
#include <optional>
#include <unordered_map>
#include <utility>

#include "base/strings.h"
#include "ir/builder.h"
#include "ir/resize.h"
#include "ir/specialise.h"
#include "ir/verifier.h"
#include "tensor/leaves.h"

namespace kiln::ir {
namespace {

// `like` with the dimensions of a shape of its structure: layouts are kept.
Shape WithDimensionsOf(Shape like, const Shape& dimensions) {
  for (int64_t d = 0; d < like.rank(); ++d) like.set_dimension(d, dimensions.dimension(d));
  for (size_t k = 0; k < like.elements().size(); ++k) {
    like.mutable_elements()[k] =
        WithDimensionsOf(std::move(like.mutable_elements()[k]), dimensions.elements()[k]);
  }
  return like;
}

// Shape `a` with the declared dimensions where `b` has others.
Shape Common(Shape a, const Shape& b, const Shape& declared) {
  for (int64_t d = 0; d < a.rank(); ++d) {
    if (a.dimension(d) != b.dimension(d)) a.set_dimension(d, declared.dimension(d));
  }
  for (size_t k = 0; k < a.elements().size(); ++k) {
    Shape& element = a.mutable_elements()[k];
    element = Common(std::move(element), b.elements()[k], declared.elements()[k]);
  }
  return a;
}

// Whether the integer type has the number.
bool Holds(ElementType type, int64_t number) {
  const int64_t bits = BitWidth(type) - (IsSigned(type) ? 1 : 0);
  if (number < 0 && !IsSigned(type)) return false;
  if (bits >= 63) return true;
  const int64_t end = int64_t{1} << bits;
  return number >= -end && number < end;
}

// The value of an integer scalar, if constants and constant dimensions alone determine it.
std::optional<int64_t> KnownValue(const Instruction& i, int depth = 0) {
  constexpr int kMostDepth = 16;
  if (!i.shape().is_array() || !IsInteger(i.shape().type()) || depth > kMostDepth) {
    return std::nullopt;
  }
  std::vector<int64_t> x;
  if (i.opcode() != Opcode::kGetDimensionSize) {
    for (const Instruction* operand : i.operands()) {
      const std::optional<int64_t> value = KnownValue(*operand, depth + 1);
      if (!value) return std::nullopt;
      x.push_back(*value);
    }
  }
  int64_t result = 0;
  switch (i.opcode()) {
    case Opcode::kConstant:
      if (i.literal().shape().num_elements() != 1) return std::nullopt;
      result = i.literal().AsInt(0);
      break;
    case Opcode::kGetDimensionSize: {
      const Dimension& size = i.operand(0)->shape().dimension(i.dimensions()[0]);
      if (!size.is_constant()) return std::nullopt;
      result = size.size();
      break;
    }
    case Opcode::kConvert:
    case Opcode::kCopy:
    case Opcode::kReshape:
      result = x[0];
      break;
    case Opcode::kMinimum:
      result = std::min(x[0], x[1]);
      break;
    case Opcode::kMaximum:
      result = std::max(x[0], x[1]);
      break;
    case Opcode::kAdd:
      if (__builtin_add_overflow(x[0], x[1], &result)) return std::nullopt;
      break;
    case Opcode::kSubtract:
      if (__builtin_sub_overflow(x[0], x[1], &result)) return std::nullopt;
      break;
    case Opcode::kMultiply:
      if (__builtin_mul_overflow(x[0], x[1], &result)) return std::nullopt;
      break;
    default:
      return std::nullopt;
  }
  // Sizes do not wrap.
  if (!Holds(i.shape().type(), result)) return std::nullopt;
  return result;
}

// Array x with zeros behind its elements along constant dimensions, up to the given sizes.
Instruction* Padded(Builder& b, Instruction* x, const std::vector<int64_t>& sizes) {
  std::vector<PaddingDimension> padding(sizes.size());
  bool pads = false;
  for (size_t d = 0; d < sizes.size(); ++d) {
    padding[d].high = sizes[d] - x->shape().dim(static_cast<int64_t>(d));
    pads |= padding[d].high != 0;
  }
  if (!pads) return x;
  Instruction* zero = b.Constant(Literal(Shape::Scalar(x->shape().type())));
  return b.Add(Opcode::kPad, {x, zero}, {{Attr::kPadding, std::move(padding)}});
}

Instruction* SizeConstant(Builder& b, int64_t size) {
  return b.Constant(Literal::Scalar<int32_t>(ElementType::kS32, static_cast<int32_t>(size)));
}

// A value as one of a shape with larger bounds.
Instruction* Grown(Builder& b, Instruction* x, const Shape& to) {
  if (!x || x->shape().SameTypeAndDimensions(to)) return x;
  if (to.is_tuple()) {
    std::vector<Instruction*> elements;
    for (size_t k = 0; k < to.elements().size(); ++k) {
      elements.push_back(Grown(b, b.Element(x, static_cast<int64_t>(k)), to.elements()[k]));
    }
    return b.Tuple(std::move(elements));
  }
  std::vector<Instruction*> sizes;
  const Shape from = x->shape();
  for (int64_t d = 0; d < from.rank(); ++d) {
    sizes.push_back(from.dimension(d).is_bounded()
                        ? b.Add(Opcode::kGetDimensionSize, {x}, {{Attr::kDimensions, Ints{d}}})
                        : nullptr);
  }
  for (int64_t d = 0; d < from.rank(); ++d) {
    if (sizes[static_cast<size_t>(d)]) {
      x = b.WithSize(x, d, SizeConstant(b, from.dim(d)), from.dim(d));
    }
  }
  if (!x) return nullptr;
  x = Padded(b, x, to.dims());
  for (int64_t d = 0; d < from.rank(); ++d) {
    if (!to.dimension(d).is_bounded()) continue;
    Instruction* size = sizes[static_cast<size_t>(d)];
    x = b.WithSize(x, d, size ? size : SizeConstant(b, from.dim(d)), to.dimension(d));
  }
  if (!x || x->shape() == to) return x;
  return b.AddShaped(to, Opcode::kCopy, {x});
}

class Resizing {
 public:
  explicit Resizing(Module& to) : to_(to) {}

  // The computation for parameters of these shapes, with its callees; its result is grown to
  // `result`, if given.
  Result<Computation*> Make(const Computation& c, const std::vector<Shape>& parameters,
                            const Shape* result = nullptr);

 private:
  using Map = std::unordered_map<const Instruction*, Instruction*>;

  Result<Instruction*> Copy(Computation& c, const Instruction& i,
                            const std::vector<Instruction*>& operands);
  Result<Instruction*> CopyWhile(Computation& c, const Instruction& i, Instruction* state);
  Result<Instruction*> CopyConditional(Computation& c, const Instruction& i,
                                       const std::vector<Instruction*>& operands);
  Result<Instruction*> CopySetDimensionSize(Computation& c, const Instruction& i,
                                            const std::vector<Instruction*>& operands);
  Result<Instruction*> CopyOther(Computation& c, const Instruction& i,
                                 std::vector<Instruction*> operands);
  Result<Instruction*> CopyWith(Computation& c, const Instruction& i,
                                std::vector<Instruction*> operands,
                                std::vector<Computation*> called, Shape shape) {
    InstructionSpec spec = CopySpec(i, std::move(operands));
    spec.called = std::move(called);
    spec.shape = WithDimensionsOf(i.shape(), shape);
    spec.name = NameOf(i);
    return c.Create(std::move(spec));
  }
  // Copies of copies get names of their own, so that the entry's instructions keep theirs.
  std::string NameOf(const Instruction& i) {
    return is_copied_[&i]++ == 0 ? i.name() : Cat(i.name(), ".sized");
  }

  Module& to_;
  std::map<std::pair<const Computation*, std::string>, Computation*> made_;
  std::unordered_map<const Instruction*, int64_t> is_copied_;
};

std::string Key(const std::vector<Shape>& parameters, const Shape* result) {
  std::string key;
  for (const Shape& shape : parameters) key += Cat(shape.ToString(true), ";");
  return result ? Cat(key, "->", result->ToString(true)) : key;
}

Result<Computation*> Resizing::Make(const Computation& c, const std::vector<Shape>& parameters,
                                    const Shape* result) {
  if (result) {
    KILN_ASSIGN_OR_RETURN(Computation * plain, Make(c, parameters));
    if (plain->root()->shape() == *result) return plain;
  }
  const auto key = std::make_pair(&c, Key(parameters, result));
  if (auto it = made_.find(key); it != made_.end()) return it->second;
  Computation* to = to_.AddComputation(c.name());
  Map map;
  for (const Instruction* i : c.instructions()) {
    if (i->opcode() == Opcode::kParameter) {
      const auto number = static_cast<size_t>(i->attributes().Int(Attr::kParameterNumber));
      KILN_ASSIGN_OR_RETURN(map[i], CopyWith(*to, *i, {}, {}, parameters[number]));
      continue;
    }
    std::vector<Instruction*> operands;
    for (const Instruction* operand : i->operands()) operands.push_back(map.at(operand));
    KILN_ASSIGN_OR_RETURN(map[i], Copy(*to, *i, operands));
    for (const Instruction* before : i->control_predecessors()) {
      KILN_RETURN_IF_ERROR(to->AddControlDependency(map.at(before), map.at(i)));
    }
  }
  Instruction* root = map.at(c.root());
  if (result) {
    if (!MayBe(root->shape(), *result)) {
      return InvalidArgument("'", root->name(), "' of '", c.name(), "' is ", root->shape(),
                             "; expected ", *result);
    }
    Builder b(to);
    root = Grown(b, root, *result);
    KILN_RETURN_IF_ERROR(b.status());
  }
  to->set_root(root);
  made_[key] = to;
  return to;
}

Result<Instruction*> Resizing::Copy(Computation& c, const Instruction& i,
                                    const std::vector<Instruction*>& operands) {
  switch (i.opcode()) {
    case Opcode::kWhile:
      return CopyWhile(c, i, operands[0]);
    case Opcode::kConditional:
      return CopyConditional(c, i, operands);
    case Opcode::kSetDimensionSize:
      return CopySetDimensionSize(c, i, operands);
    case Opcode::kCall:
    case Opcode::kFusion: {
      std::vector<Shape> shapes;
      for (const Instruction* operand : operands) shapes.push_back(operand->shape());
      KILN_ASSIGN_OR_RETURN(Computation * callee, Make(*i.called(0), shapes));
      return CopyWith(c, i, operands, {callee}, callee->root()->shape());
    }
    default:
      return CopyOther(c, i, operands);
  }
}

// The state has the operand's sizes where the body keeps them, and else the declared bounds.
Result<Instruction*> Resizing::CopyWhile(Computation& c, const Instruction& i, Instruction* state) {
  Shape shape = WithDimensionsOf(i.shape(), state->shape());
  Computation* body = nullptr;
  while (!body) {
    KILN_ASSIGN_OR_RETURN(Computation * made, Make(*i.called(1), {shape}));
    Shape common = Common(shape, made->root()->shape(), i.shape());
    if (common == shape) {
      KILN_ASSIGN_OR_RETURN(body, Make(*i.called(1), {shape}, &shape));
    }
    shape = std::move(common);
  }
  KILN_ASSIGN_OR_RETURN(Computation * condition, Make(*i.called(0), {shape}));
  Builder b(&c);
  state = Grown(b, state, shape);
  KILN_RETURN_IF_ERROR(b.status());
  return CopyWith(c, i, {state}, {condition, body}, shape);
}

Result<Instruction*> Resizing::CopyConditional(Computation& c, const Instruction& i,
                                               const std::vector<Instruction*>& operands) {
  std::optional<Shape> result;
  for (size_t k = 0; k < i.called().size(); ++k) {
    KILN_ASSIGN_OR_RETURN(Computation * made, Make(*i.called()[k], {operands[k + 1]->shape()}));
    const Shape shape = WithDimensionsOf(i.shape(), made->root()->shape());
    result = result ? Common(*result, shape, i.shape()) : shape;
  }
  std::vector<Computation*> branches;
  for (size_t k = 0; k < i.called().size(); ++k) {
    KILN_ASSIGN_OR_RETURN(Computation * branch,
                          Make(*i.called()[k], {operands[k + 1]->shape()}, &*result));
    branches.push_back(branch);
  }
  return CopyWith(c, i, operands, std::move(branches), *result);
}

// By a known size it is a slice or a pad.
Result<Instruction*> Resizing::CopySetDimensionSize(Computation& c, const Instruction& i,
                                                    const std::vector<Instruction*>& operands) {
  const int64_t along = i.dimensions()[0], bound = i.operand(0)->shape().dim(along);
  const std::optional<int64_t> size = KnownValue(*operands[1]);
  Builder b(&c);
  Instruction* x = operands[0];
  const Dimension before = x->shape().dimension(along);
  if (!size) {
    // The size may be anything up to the declared bound.
    Shape shape = x->shape();
    shape.set_dimension(along, before.is_bounded() ? Dimension::Bounded(bound) : bound);
    x = Grown(b, x, shape);
    KILN_RETURN_IF_ERROR(b.status());
    Shape result = x->shape();
    result.set_dimension(along, i.shape().dimension(along));
    return CopyWith(c, i, {x, operands[1]}, {}, result);
  }
  if (*size < 0 || *size > bound) {
    return InvalidArgument("'", i.name(), "': the size of dimension ", along, " of ", x->shape(),
                           " is ", *size, "; expected 0 to ", bound);
  }
  if (i.shape().dimension(along).is_constant() && i.shape().dim(along) != *size) {
    return InvalidArgument("'", i.name(), "': the size of dimension ", along, " is ", *size,
                           "; expected ", i.shape().dim(along));
  }
  if (before.is_bounded()) {
    x = b.WithSize(x, along, SizeConstant(b, before.size()), before.size());
    if (!x) return b.status();
  }
  InstructionSpec spec{
      .name = NameOf(i), .op_name = i.op_name(), .frontend_attributes = i.frontend_attributes()};
  Shape shape = x->shape();
  shape.set_dimension(along, *size);
  spec.shape = WithDimensionsOf(i.shape(), shape);
  if (*size <= x->shape().dim(along)) {
    std::vector<SliceDimension> slices;
    for (const Dimension& d : shape.dimensions()) slices.push_back({0, d.size(), 1});
    spec.opcode = Opcode::kSlice;
    spec.operands = {x};
    spec.attributes = {{Attr::kSlice, std::move(slices)}};
  } else {
    std::vector<PaddingDimension> padding(static_cast<size_t>(shape.rank()));
    padding[static_cast<size_t>(along)].high = *size - x->shape().dim(along);
    spec.opcode = Opcode::kPad;
    spec.operands = {x, b.Constant(Literal(Shape::Scalar(shape.type())))};
    spec.attributes = {{Attr::kPadding, std::move(padding)}};
  }
  KILN_RETURN_IF_ERROR(b.status());
  return c.Create(std::move(spec));
}

Result<Instruction*> Resizing::CopyOther(Computation& c, const Instruction& i,
                                         std::vector<Instruction*> operands) {
  std::vector<Computation*> called;
  std::vector<ProgramShape> programs;
  for (const Computation* callee : i.called()) {
    KILN_ASSIGN_OR_RETURN(Computation * made, Make(*callee, callee->program_shape().parameters));
    programs.push_back(made->program_shape());
    called.push_back(made);
  }
  std::vector<const Shape*> shapes;
  bool is_known = true, is_same = true;
  for (size_t k = 0; k < operands.size(); ++k) {
    const Shape& declared = i.operand(static_cast<int64_t>(k))->shape();
    shapes.push_back(&operands[k]->shape());
    is_known &= shapes[k]->is_static();
    is_same &= shapes[k]->SameTypeAndDimensions(declared);
  }
  if (is_same) return CopyWith(c, i, std::move(operands), std::move(called), i.shape());
  Result<InstructionSpec> spec = WithOperandShapes(i, shapes, programs);
  if (spec.ok()) {
    spec->operands = std::move(operands);
    spec->called = std::move(called);
    spec->shape = WithDimensionsOf(i.shape(), *spec->shape);
    spec->name = NameOf(i);
    return c.Create(*std::move(spec));
  }
  if (is_known) return spec.status().WithContext(Cat("instruction '", i.name(), "'"));
  // Sizes known at run time only go together with those of the declared shapes.
  Builder b(&c);
  for (size_t k = 0; k < operands.size(); ++k) {
    operands[k] = Grown(b, operands[k], i.operand(static_cast<int64_t>(k))->shape());
  }
  KILN_RETURN_IF_ERROR(b.status());
  return CopyWith(c, i, std::move(operands), std::move(called), i.shape());
}

}  // namespace

Result<std::unique_ptr<Module>> WithParameterShapes(const Module& module,
                                                    std::span<const Shape> shapes) {
  KILN_ASSIGN_OR_RETURN(SymbolSizes sizes, MatchSymbols(module, shapes));
  KILN_ASSIGN_OR_RETURN(std::unique_ptr<Module> special, Specialise(module, sizes));
  auto result = std::make_unique<Module>(module.name());
  std::vector<Shape> parameters;
  for (size_t k = 0; k < shapes.size(); ++k) {
    const Shape& declared = special->entry()->parameter(static_cast<int64_t>(k))->shape();
    parameters.push_back(WithDimensionsOf(declared, shapes[k]));
  }
  Resizing resizing(*result);
  KILN_ASSIGN_OR_RETURN(Computation * entry, resizing.Make(*special->entry(), parameters));
  result->set_entry(entry);
  result->set_is_scheduled(module.is_scheduled());
  result->RemoveUnusedComputations();
  result->SortComputations();
  // A result and a parameter in its memory may have got different sizes.
  for (const InputOutputAlias& alias : module.aliases()) {
    const Shape* to = PartAt(entry->root()->shape(), alias.output_index);
    const Shape* from =
        PartAt(parameters[static_cast<size_t>(alias.parameter)], alias.parameter_index);
    if (alias.must_alias || (to && from && to->SameTypeAndDimensions(*from))) {
      result->aliases().push_back(alias);
    }
  }
  KILN_RETURN_IF_ERROR(CheckModule(*result, nullptr));
  return result;
}

}  // namespace kiln::ir
