#include "ir/accommodate.h"

#include <algorithm>
#include <numeric>

#include "base/strings.h"
#include "ir/builder.h"

namespace kiln::ir {
namespace {

Result<Shape> Inferred(const Instruction& i) {
  std::vector<const Shape*> operands;
  for (const Instruction* operand : i.operands()) operands.push_back(&operand->shape());
  std::vector<ProgramShape> called;
  for (const Computation* c : i.called()) called.push_back(c->program_shape());
  return InferShape(InferenceInput{i.opcode(), operands, i.attributes(), &i.shape(), called});
}

bool SameKind(const Shape& a, const Shape& b) {
  if (a.is_tuple() != b.is_tuple() || a.is_token() != b.is_token()) return false;
  if (a.is_array()) return a.SameDimensions(b);
  return std::ranges::equal(a.elements(), b.elements(), SameKind);
}

// A type for values of both: complex before floats before integers before pred, the wider before
// the narrower.
ElementType Common(ElementType a, ElementType b) {
  auto rank = [](ElementType type) {
    const int kind = IsComplex(type) ? 3 : IsFloat(type) ? 2 : IsInteger(type) ? 1 : 0;
    return std::pair(kind, BitWidth(type));
  };
  return rank(a) < rank(b) ? b : a;
}

class Accommodation {
 public:
  explicit Accommodation(Instruction* i) : i_(i), computation_(i->parent()), b_(i) {}

  // Whether the instruction was changed.
  bool Run() {
    bool changed = AddDefaults();
    if (Instruction* value = InOtherOps()) return Replace(value);
    Result<Shape> shape = Inferred(*i_);
    auto fits = [&] {
      if (!shape.ok()) return false;
      return HandsOn() ? *shape == i_->shape() : shape->SameTypeAndDimensions(i_->shape());
    };
    // What a loop's computations take is no part of its inferred shape's layout.
    if (fits() && !TakesValues()) return changed;
    if (ConvertOperands()) {
      changed = true;
      shape = Inferred(*i_);
    }
    InstructionSpec spec = CopySpec(*i_, {i_->operands().begin(), i_->operands().end()});
    const bool product = i_->opcode() == Opcode::kDot || i_->opcode() == Opcode::kConvolution;
    if (!shape.ok() && product && i_->operand_count() == 2 && i_->shape().is_array() &&
        i_->operand(0)->shape().is_array()) {
      // A product has its operands' type, and is converted.
      spec.shape = i_->shape();
      spec.shape->set_type(i_->operand(0)->shape().type());
      shape = InferShape(spec);
    }
    if (!shape.ok() || fits()) return changed;
    if (!SameKind(*shape, i_->shape())) {
      // Nobody sees what is declared of it.
      if (!i_->users().empty() || i_->IsRoot()) return changed;
      i_->set_shape(*shape);
      return true;
    }
    if (i_->opcode() == Opcode::kWhile || i_->opcode() == Opcode::kParameter) return changed;
    spec.shape = *shape;
    Instruction* copy = computation_->Create(std::move(spec), i_);
    return Replace(As(copy, i_->shape()));
  }

 private:
  // Whether values go to called computations in the layouts that they have.
  bool TakesValues() const {
    return i_->opcode() == Opcode::kCall || i_->opcode() == Opcode::kFusion ||
           i_->opcode() == Opcode::kConditional || i_->opcode() == Opcode::kWhile;
  }
  // Whether results are existing values, with their layouts.
  bool HandsOn() const {
    return TakesValues() || i_->opcode() == Opcode::kTuple ||
           i_->opcode() == Opcode::kGetTupleElement;
  }

  bool Replace(Instruction* value) {
    computation_->ReplaceAllUses(i_, value);
    computation_->Remove(i_);
    return true;
  }

  // A value as another shape of the same dimensions.
  Instruction* As(Instruction* value, const Shape& wanted) {
    if (value->shape() == wanted) return value;
    if (wanted.is_tuple()) {
      std::vector<Instruction*> elements;
      for (int64_t k = 0; k < std::ssize(wanted.elements()); ++k) {
        elements.push_back(As(b_.Element(value, k), wanted.elements()[static_cast<size_t>(k)]));
      }
      return b_.AddShaped(wanted, Opcode::kTuple, std::move(elements));
    }
    const bool same = value->shape().type() == wanted.type();
    return b_.AddShaped(wanted, same ? Opcode::kCopy : Opcode::kConvert, {value});
  }

  bool AddDefaults() {
    const auto needed = Split(InfoOf(i_->opcode()).attributes, ' ');
    auto lacks = [&](Attr key) {
      return !i_->attributes().Has(key) &&
             std::ranges::find(needed, InfoOf(key).name) != needed.end();
    };
    bool changed = false;
    if (lacks(Attr::kDimensions)) {
      const Shape& operand = i_->operand_count() > 0 ? i_->operand(0)->shape() : i_->shape();
      Ints dimensions;
      if (i_->opcode() == Opcode::kMap && operand.is_array()) {
        dimensions.resize(static_cast<size_t>(operand.rank()));
        std::iota(dimensions.begin(), dimensions.end(), 0);
      }
      i_->mutable_attributes().Set(Attr::kDimensions, std::move(dimensions));
      changed = true;
    }
    if (lacks(Attr::kChannelId)) {
      i_->mutable_attributes().Set(Attr::kChannelId, int64_t{0});
      changed = true;
    }
    if (lacks(Attr::kWindow)) {
      i_->mutable_attributes().Set(Attr::kWindow, std::vector<WindowDimension>());
      changed = true;
    }
    // The shape of the result, once more.
    if (i_->opcode() == Opcode::kRng && i_->operand_count() == 3) {
      Instruction* const two[] = {i_->operand(0), i_->operand(1)};
      computation_->SetOperands(i_, two);
      changed = true;
    }
    return changed;
  }

  // The value by ops with other operands or results, or null.
  Instruction* InOtherOps() {
    const Shape& shape = i_->shape();
    switch (i_->opcode()) {
      case Opcode::kCopy:
        return i_->operand_count() == 1 && shape.is_tuple() &&
                       SameKind(i_->operand(0)->shape(), shape)
                   ? CopyOf(i_->operand(0), shape)
                   : nullptr;
      case Opcode::kCollectivePermute: {
        const auto count = static_cast<size_t>(i_->operand_count());
        // Slices into the memory of another operand, at places that two more say.
        if (count == 4 && !(shape.is_tuple() && shape.elements().size() == 4)) {
          return b_.AddShaped(shape, Opcode::kCustomCall,
                              {i_->operands().begin(), i_->operands().end()},
                              {{Attr::kCustomCallTarget, QuotedText{"collective-permute"}}});
        }
        if (count < 2 || !shape.is_tuple() || shape.elements().size() != count) return nullptr;
        std::vector<Instruction*> results;
        for (Instruction* operand : i_->operands()) {
          results.push_back(b_.Add(Opcode::kCollectivePermute, {operand}, i_->attributes()));
        }
        return b_.Tuple(std::move(results));
      }
      case Opcode::kAllToAll:
        return i_->operand_count() == 1 && shape.is_array() ? SplitAllToAll() : nullptr;
      case Opcode::kDynamicSlice:
        return WithStartsApart(1);
      case Opcode::kDynamicUpdateSlice:
        return WithStartsApart(2);
      case Opcode::kBitcast:
        return i_->operand_count() == 1 ? BitcastOfPacked() : nullptr;
      case Opcode::kRngBitGenerator:
        if (i_->operand_count() != 1 || !shape.is_array()) return nullptr;
        return b_.Element(b_.Add(i_->opcode(), {i_->operand(0)}, i_->attributes(),
                                 Shape::Tuple({i_->operand(0)->shape(), shape})),
                          1);
      default:
        return nullptr;
    }
  }

  Instruction* CopyOf(Instruction* value, const Shape& wanted) {
    if (wanted.is_token()) return value;
    if (wanted.is_array()) return b_.AddShaped(wanted, Opcode::kCopy, {value});
    std::vector<Instruction*> elements;
    for (int64_t k = 0; k < std::ssize(wanted.elements()); ++k) {
      elements.push_back(CopyOf(b_.Element(value, k), wanted.elements()[static_cast<size_t>(k)]));
    }
    return b_.AddShaped(wanted, Opcode::kTuple, std::move(elements));
  }

  // The starts of slices were one operand once, an array.
  Instruction* WithStartsApart(int64_t first) {
    if (i_->operand_count() != first + 1) return nullptr;
    Instruction* starts = i_->operand(first);
    const Shape& shape = starts->shape();
    if (!shape.is_array() || shape.rank() != 1 || !shape.is_static()) return nullptr;
    std::vector<Instruction*> operands(i_->operands().begin(), i_->operands().begin() + first);
    for (int64_t d = 0; d < shape.dim(0); ++d) {
      operands.push_back(b_.Reshape(b_.Slice(starts, {{d, d + 1, 1}}), {}));
    }
    InstructionSpec spec = CopySpec(*i_, operands);
    spec.shape.reset();
    if (!InferShape(spec).ok()) return nullptr;
    Instruction* value = b_.Add(i_->opcode(), std::move(operands), i_->attributes());
    return SameKind(value->shape(), i_->shape()) ? As(value, i_->shape()) : nullptr;
  }

  // A bitcast from or to elements of less than a byte, which XLA has packed in memory.
  Instruction* BitcastOfPacked() {
    Instruction* x = i_->operand(0);
    const Shape &from = x->shape(), &to = i_->shape();
    if (!from.is_array() || !to.is_array() || !from.is_static() || !to.is_static()) return nullptr;
    const int64_t bits = BitWidth(from.type()), wanted = BitWidth(to.type());
    if (std::min(bits, wanted) >= 8 || bits == wanted || IsPred(from.type()) || IsPred(to.type()) ||
        from.num_elements() * bits != to.num_elements() * wanted) {
      return nullptr;
    }
    if (bits < wanted) {
      x = b_.Reshape(x, {Dimension(to.num_elements()), Dimension(wanted / bits)});
    }
    x = b_.Add(Opcode::kBitcastConvert, {x}, {}, Shape::Scalar(to.type()));
    return As(b_.Reshape(x, to.dimensions()), to);
  }

  // Exchanges pieces of one array along a dimension.
  Instruction* SplitAllToAll() {
    Instruction* x = i_->operand(0);
    const Groups& groups = i_->attributes().GroupsOf(Attr::kReplicaGroups);
    const int64_t pieces = groups.empty() ? 1 : std::ssize(groups[0]);
    const int64_t d = i_->dimensions().size() == 1 ? i_->dimensions()[0] : 0;
    const Shape& shape = x->shape();
    if (!shape.is_array() || d < 0 || d >= shape.rank() || !shape.is_static() || pieces < 1 ||
        shape.dim(d) % pieces != 0) {
      return nullptr;
    }
    Attributes attributes = i_->attributes();
    attributes.Erase(Attr::kDimensions);
    const int64_t size = shape.dim(d) / pieces;
    std::vector<Instruction*> parts;
    for (int64_t k = 0; k < pieces; ++k) {
      std::vector<SliceDimension> slices;
      for (int64_t e = 0; e < shape.rank(); ++e) slices.push_back({0, shape.dim(e), 1});
      slices[static_cast<size_t>(d)] = {k * size, (k + 1) * size, 1};
      parts.push_back(b_.Slice(x, std::move(slices)));
    }
    Instruction* all = b_.Add(Opcode::kAllToAll, std::move(parts), std::move(attributes));
    std::vector<Instruction*> results;
    for (int64_t k = 0; k < pieces; ++k) results.push_back(b_.Element(all, k));
    return As(b_.Concatenate(std::move(results), d), i_->shape());
  }

  // Makes an operand the shape that the op wants; whether it was another one.
  bool Want(int64_t k, const Shape& wanted) {
    Instruction* operand = i_->operand(k);
    if (operand->shape() == wanted || !SameKind(operand->shape(), wanted)) return false;
    computation_->ReplaceOperand(i_, k, As(operand, wanted));
    return true;
  }
  bool WantType(int64_t k, ElementType type) {
    Instruction* operand = i_->operand(k);
    if (!operand->shape().is_array() || operand->shape().type() == type) return false;
    computation_->ReplaceOperand(i_, k, b_.Convert(operand, type));
    return true;
  }
  bool WantCommonType(int64_t begin, int64_t end, std::optional<ElementType> also = {}) {
    end = std::min(end, i_->operand_count());
    std::optional<ElementType> type = also;
    for (int64_t k = begin; k < end; ++k) {
      const Shape& shape = i_->operand(k)->shape();
      if (!shape.is_array()) return false;
      type = type ? Common(*type, shape.type()) : shape.type();
    }
    bool changed = false;
    for (int64_t k = begin; k < end; ++k) changed |= WantType(k, *type);
    return changed;
  }
  // Operands 0, 1, ... as parameters `from`, from + 1, ... of a computation of scalars.
  bool WantScalarsOf(int64_t from, int64_t operands) {
    if (i_->called().empty()) return false;
    auto parameters = i_->called(0)->parameters();
    bool changed = false;
    for (int64_t k = 0; k < std::min(operands, std::ssize(parameters) - from); ++k) {
      const Shape& shape = parameters[static_cast<size_t>(from + k)]->shape();
      if (shape.is_array()) changed |= WantType(k, shape.type());
    }
    return changed;
  }
  bool WantParameters(const Computation& computation, int64_t first) {
    bool changed = false;
    auto parameters = computation.parameters();
    for (int64_t k = 0; k < std::min(std::ssize(parameters), i_->operand_count() - first); ++k) {
      changed |= Want(first + k, parameters[static_cast<size_t>(k)]->shape());
    }
    return changed;
  }

  bool ConvertOperands() {
    const int64_t count = i_->operand_count();
    switch (i_->opcode()) {
      case Opcode::kDot:
      case Opcode::kConvolution:
        return i_->shape().is_array() && WantCommonType(0, 2, i_->shape().type());
      case Opcode::kPad:
      case Opcode::kDynamicUpdateSlice:
      case Opcode::kRng:
        return WantCommonType(0, 2);
      case Opcode::kSelect:
        return WantCommonType(1, 3);
      case Opcode::kConcatenate:
        return WantCommonType(0, count);
      case Opcode::kMap:
      case Opcode::kAllReduce:
      case Opcode::kReduceScatter:
      case Opcode::kReduce:
      case Opcode::kReduceWindow:
        return WantScalarsOf(0, count);
      case Opcode::kScatter: {
        if (count % 2 == 0) return false;
        const int64_t half = count / 2;
        bool changed = WantScalarsOf(0, half);
        auto parameters =
            i_->called().empty() ? std::span<Instruction* const>() : i_->called(0)->parameters();
        for (int64_t k = half; k < std::min(std::ssize(parameters), 2 * half); ++k) {
          const Shape& shape = parameters[static_cast<size_t>(k)]->shape();
          if (shape.is_array()) changed |= WantType(k + 1, shape.type());
        }
        return changed;
      }
      case Opcode::kTuple: {
        bool changed = false;
        if (!i_->shape().is_tuple() || std::ssize(i_->shape().elements()) != count) return false;
        for (int64_t k = 0; k < count; ++k) {
          changed |= Want(k, i_->shape().elements()[static_cast<size_t>(k)]);
        }
        return changed;
      }
      case Opcode::kCall:
      case Opcode::kFusion:
        return !i_->called().empty() && WantParameters(*i_->called(0), 0);
      case Opcode::kConditional: {
        bool changed = false;
        for (int64_t k = 0; k < std::min(std::ssize(i_->called()), count - 1); ++k) {
          auto parameters = i_->called(k)->parameters();
          if (parameters.size() == 1) changed |= Want(k + 1, parameters[0]->shape());
        }
        return changed;
      }
      case Opcode::kWhile:
        return AgreeOnState();
      default:
        break;
    }
    if (!IsElementwise(i_->opcode()) || count < 2) return false;
    const bool changed = WantCommonSizes();
    return (i_->opcode() != Opcode::kStochasticConvert && WantCommonType(0, count)) || changed;
  }

  // An array of the bounds beside a value of bounded dimensions has that value's sizes.
  bool WantCommonSizes() {
    bool changed = false;
    auto within = [](const Dimension& bounded, const Dimension& d) {
      return bounded == d ||
             (bounded.is_bounded() && d.is_constant() && d.size() == bounded.size());
    };
    for (Instruction* like : i_->operands()) {
      if (!like->shape().is_array() || like->shape().is_static()) continue;
      for (int64_t k = 0; k < i_->operand_count(); ++k) {
        Instruction* x = i_->operand(k);
        if (!x->shape().is_array() || x->shape().SameDimensions(like->shape()) ||
            !std::ranges::equal(like->shape().dimensions(), x->shape().dimensions(), within)) {
          continue;
        }
        computation_->ReplaceOperand(i_, k, b_.WithSizesOf(like, x));
        changed = true;
      }
    }
    return changed;
  }

  // The state of a loop is what its own shape says.
  bool AgreeOnState() {
    if (i_->operand_count() != 1 || i_->called().size() != 2) return false;
    const Shape wanted = i_->shape();
    bool changed = Want(0, wanted);
    for (Computation* c : i_->called()) {
      if (c->parameters().size() != 1 || c->call_count() != 1) continue;
      Instruction* parameter = c->parameter(0);
      if (parameter->shape() == wanted || !SameKind(parameter->shape(), wanted)) continue;
      changed = true;
      const Shape before = parameter->shape();
      const std::vector<Instruction*> users(parameter->users().begin(), parameter->users().end());
      parameter->set_shape(wanted);
      auto next = ++std::ranges::find(c->instructions(), parameter);
      Accommodation inside(next == c->instructions().end() ? parameter : *next);
      Instruction* as_before = inside.As(parameter, before);
      for (Instruction* user : users) {
        for (int64_t k = 0; k < user->operand_count(); ++k) {
          if (user->operand(k) == parameter) c->ReplaceOperand(user, k, as_before);
        }
      }
      if (c->root() == parameter) c->set_root(as_before);
    }
    Computation* body = i_->called(1);
    if (body->root()->shape() != wanted && SameKind(body->root()->shape(), wanted)) {
      Builder end(body, nullptr, {}, Builder::Operands::kTrusted);
      Accommodation inside(body->root());
      inside.b_ = end;
      body->set_root(inside.As(body->root(), wanted));
      changed = true;
    }
    return changed;
  }

  Instruction* i_;
  Computation* computation_;
  Builder b_;
};

}  // namespace

bool Accommodate(Module& module) {
  bool changed = false;
  for (Computation* c : module.CalleesFirst()) {
    const std::vector<Instruction*> all(c->instructions().begin(), c->instructions().end());
    for (Instruction* i : all) changed |= Accommodation(i).Run();
  }
  return changed;
}

}  // namespace kiln::ir
