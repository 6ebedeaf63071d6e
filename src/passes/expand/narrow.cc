#include "passes/expand/narrow.h"

#include <algorithm>

#include "base/strings.h"
#include "passes/expand/expand.h"
#include "passes/expand/small_floats.h"
#include "passes/expand/type_legalisation.h"
#include "tensor/element_type.h"

namespace kiln::passes {
namespace {

using expand::Builder;
using ir::Instruction;

bool IsNarrow(ElementType type) { return WideOf(type) != type; }
bool IsNarrowInt(ElementType type) { return IsNarrow(type) && IsInteger(type); }
bool IsNarrowFloat(ElementType type) { return IsNarrow(type) && IsFloat(type); }

// The encoding of an array's bytes.
ElementType CarrierOf(ElementType type) {
  return type != ElementType::kInvalid && IsSigned(type) ? ElementType::kS8 : ElementType::kU8;
}

Shape WithType(Shape shape, ElementType type) {
  shape.set_type(type);
  return shape;
}

class NarrowExpansion : public expand::TypeLegalisation {
 public:
  using TypeLegalisation::TypeLegalisation;

 protected:
  bool Maps(const Shape& leaf) const override { return leaf.is_array() && IsNarrow(leaf.type()); }
  Shape Mapped(const Shape& leaf) const override { return WithType(leaf, CarrierOf(leaf.type())); }

  // The bytes are the same.
  Instruction* FromMemory(Builder& b, Instruction* x) override {
    return Reinterpret(b, x, CarrierOf(x->shape().type()));
  }
  Instruction* ToMemory(Builder& b, Instruction* mapped, const Shape& leaf) override {
    Instruction* x = Reinterpret(b, mapped, leaf.type());
    x->set_shape(leaf);
    return x;
  }

  Result<Instruction*> ValueOf(Builder& b, Instruction* i, const Shape& shape) override {
    if (HasTrait(i->opcode(), kMovesElements) && i->opcode() != Opcode::kBitcast) {
      return Same(b, i, MappedAll(shape));
    }
    switch (i->opcode()) {
      case Opcode::kConstant: {
        Literal bytes(Mapped(i->literal().shape()));
        std::copy_n(i->literal().data(), bytes.byte_size(), bytes.data());
        return b.Constant(std::move(bytes));
      }
      case Opcode::kIota:
        if (IsNarrowInt(shape.type())) {
          return Wrap(b, b.Add(Opcode::kIota, {}, i->attributes(), Mapped(shape)), shape.type());
        }
        return Encode(b,
                      b.Add(Opcode::kIota, {}, i->attributes(), WithType(shape, ElementType::kF32)),
                      shape.type());
      case Opcode::kGetDimensionSize:
        return Same(b, i, MappedAll(shape));
      case Opcode::kBitcast: {
        Instruction* bytes = expand::BytesAs(b, i->operand(0), MappedAll(shape));
        const bool same = TypeOf(i->operand(0)) == shape.type();
        return same || !Maps(shape) ? bytes : LowestBits(b, bytes, shape.type());
      }
      case Opcode::kReal:
        return i->operand(0);
      case Opcode::kReducePrecision:
        return ReducePrecision(b, i->operand(0), *FormatOf(shape.type()),
                               i->attributes().Int(Attr::kExponentBits),
                               i->attributes().Int(Attr::kMantissaBits));
      case Opcode::kNextAfter:
        return NextAfter(b, i->operand(0), i->operand(1), *FormatOf(shape.type()));
      case Opcode::kConvert:
        return Converted(b, i->operand(0), TypeOf(i->operand(0)), shape.type());
      case Opcode::kBitcastConvert:
        return Reinterpreted(b, i, shape);
      case Opcode::kDot:
        return Product(b, i, shape);
      case Opcode::kReduce:
      case Opcode::kReduceWindow:
      case Opcode::kScatter:
      case Opcode::kSort:
      case Opcode::kMap:
        return Folded(b, i, shape);
      case Opcode::kTopK: {
        ElementType type = TypeOf(i->operand(0));
        if (IsNarrowInt(type)) return Same(b, i, MappedAll(shape));
        Instruction* top = b.Add(Opcode::kTopK, {Decode(b, i->operand(0), type)}, i->attributes());
        return b.Tuple({Encode(b, b.Element(top, 0), type), b.Element(top, 1)});
      }
      case Opcode::kCustomCall:
        return Called(b, i);
      default:
        break;
    }
    if (IsElementwise(i->opcode())) return Elementwise(b, i, shape);
    return Unimplemented(OpcodeName(i->opcode()), ": '", i->name(), "' of shape ", shape,
                         " has no compiled code: elements of ", TypeName(NarrowTypeOf(i, shape)));
  }

 private:
  // The element type that an operand had.
  ElementType TypeOf(const Instruction* x) const {
    const Shape* before = Before(x);
    return before ? before->type() : x->shape().type();
  }

  ElementType NarrowTypeOf(const Instruction* i, const Shape& shape) const {
    if (shape.is_array() && IsNarrow(shape.type())) return shape.type();
    for (const Instruction* operand : i->operands()) {
      if (IsNarrow(TypeOf(operand))) return TypeOf(operand);
    }
    return ElementType::kInvalid;
  }

  // Without a change of bytes.
  static Instruction* Reinterpret(Builder& b, Instruction* x, ElementType to) {
    ir::InstructionSpec spec{.opcode = Opcode::kBitcast, .operands = {x}};
    spec.shape = WithType(x->shape(), to);
    return b.computation()->Create(std::move(spec), b.before());
  }

  // The lowest bits of a byte, as the integer that they are.
  static Instruction* Wrap(Builder& b, Instruction* x, ElementType type) {
    const int64_t spare = 8 - BitWidth(type);
    Instruction* by = b.Number(x, static_cast<double>(spare));
    Instruction* up = b.Binary(Opcode::kShiftLeft, x, by);
    return b.Binary(IsSigned(type) ? Opcode::kShiftRightArithmetic : Opcode::kShiftRightLogical, up,
                    by);
  }

  // The element of a byte of memory.
  static Instruction* LowestBits(Builder& b, Instruction* x, ElementType type) {
    if (BitWidth(type) == 8) return x;
    if (IsInteger(type)) return Wrap(b, x, type);
    return b.And(x, b.Number(x, static_cast<double>((1 << BitWidth(type)) - 1)));
  }

  static Instruction* Decode(Builder& b, Instruction* bits, ElementType type) {
    return expand::DecodeFloat(b, *FormatOf(type), bits);
  }
  static Instruction* Encode(Builder& b, Instruction* x, ElementType type) {
    return expand::EncodeFloat(b, *FormatOf(type), x);
  }

  // The same op, on bytes.
  static Instruction* Same(Builder& b, Instruction* i, const Shape& shape) {
    ir::InstructionSpec spec = ir::CopySpec(*i, {i->operands().begin(), i->operands().end()});
    spec.shape = shape;
    spec.name.clear();
    return b.computation()->Create(std::move(spec), b.before());
  }

  // A value whose element type is `from`, held as it is held, in the form of `to`.
  static Instruction* Converted(Builder& b, Instruction* x, ElementType from, ElementType to) {
    if (from == to) return x;
    if (IsComplex(from)) {
      x = b.Unary(Opcode::kReal, x);
      from = PartOf(from);
    }
    if (IsNarrowFloat(from)) {
      x = Decode(b, x, from);
      from = ElementType::kF32;
    }
    if (IsNarrowFloat(to)) {
      if (IsPred(from)) x = b.Convert(x, ElementType::kU8);
      // Rounded once: conversions to the type between are exact, except of integers of 64 bits,
      // whose last bits make no difference to formats of such a range.
      const bool wide = from == ElementType::kF64 || BitWidth(from) > 16;
      const bool single = from == ElementType::kF32;
      return Encode(b, b.Convert(x, wide && !single ? ElementType::kF64 : ElementType::kF32), to);
    }
    if (!IsNarrowInt(to)) return b.Convert(x, to);
    const ElementType carrier = CarrierOf(to);
    if (!IsFloat(from)) return Wrap(b, b.Convert(x, carrier), to);
    // To the nearest number there is; a NaN stays, and is 0 as an integer.
    return b.Convert(WithinRange(b, x, to), carrier);
  }

  Result<Instruction*> Elementwise(Builder& b, Instruction* i, const Shape& shape) {
    const ElementType type = NarrowTypeOf(i, shape);
    std::vector<Instruction*> operands(i->operands().begin(), i->operands().end());
    if (i->opcode() == Opcode::kStochasticConvert) return StochasticConverted(b, i, shape);
    const bool floats = IsFloat(type);
    const ElementType wide = floats ? ElementType::kF32 : CarrierOf(type);
    for (Instruction*& operand : operands) {
      if (!Before(operand)) continue;
      if (floats) {
        operand = Decode(b, operand, TypeOf(operand));
      } else if (IsOfBits(i->opcode())) {
        operand = Unsigned(b, operand, type);
      }
    }
    Instruction* value = nullptr;
    switch (i->opcode()) {
      case Opcode::kMulhi: {
        // The upper half of a product that 16 bits hold.
        const ElementType doubled = IsSigned(type) ? ElementType::kS16 : ElementType::kU16;
        Instruction* product =
            b.Times(b.Convert(operands[0], doubled), b.Convert(operands[1], doubled));
        Instruction* by = b.Number(product, static_cast<double>(BitWidth(type)));
        value = b.Convert(
            b.Binary(IsSigned(type) ? Opcode::kShiftRightArithmetic : Opcode::kShiftRightLogical,
                     product, by),
            wide);
        break;
      }
      case Opcode::kCountLeadingZeros:
        value = b.Unary(i->opcode(), operands[0]);
        value = b.Minus(value, b.Number(value, static_cast<double>(8 - BitWidth(type))));
        value = b.Convert(value, wide);
        break;
      case Opcode::kPopcnt:
        value = b.Convert(b.Unary(i->opcode(), operands[0]), wide);
        break;
      case Opcode::kShiftRightArithmetic: {
        // The highest bit is shifted in, for unsigned types too.
        Instruction* up = b.Number(operands[0], static_cast<double>(8 - BitWidth(type)));
        Instruction* high = b.Bits(b.Binary(Opcode::kShiftLeft, operands[0], up), ElementType::kS8);
        Instruction* x = b.Binary(i->opcode(), high, b.Bits(up, ElementType::kS8));
        x = b.Binary(i->opcode(), x, b.Bits(operands[1], ElementType::kS8));
        value = b.Bits(x, wide);
        break;
      }
      case Opcode::kShiftRightLogical:
        value = b.Convert(b.Binary(i->opcode(), operands[0], operands[1]), wide);
        break;
      default: {
        std::optional<Shape> declared;
        if (!shape.is_tuple()) {
          declared = Maps(shape) ? WithType(shape, wide) : shape;
        }
        value = b.Add(i->opcode(), operands, i->attributes(), declared);
        break;
      }
    }
    if (!Maps(shape)) return value;
    return floats ? Encode(b, value, shape.type()) : Wrap(b, value, shape.type());
  }

  // The nearest number with so many bits of exponent and mantissa, as interp::ReducePrecision.
  static Instruction* ReducePrecision(Builder& b, Instruction* x, const FloatFormat& format,
                                      int64_t exponent_bits, int64_t mantissa_bits) {
    auto byte = [&](uint64_t value) { return b.Number(x, static_cast<double>(value)); };
    Instruction* sign = b.And(x, byte(format.sign_bit()));
    Instruction* magnitude = b.And(x, byte(format.magnitude_mask()));
    Instruction* bits = magnitude;
    if (mantissa_bits < format.mantissa) {
      // Just under half of the last kept bit, or half if that bit is set.
      const int64_t drop = format.mantissa - mantissa_bits;
      const uint64_t last = uint64_t{1} << drop;
      Instruction* odd = b.Binary(Opcode::kShiftRightLogical, bits, byte(drop));
      odd = b.And(odd, byte(1));
      bits = b.And(b.Plus(b.Plus(bits, byte((last >> 1) - 1)), odd), byte(255 & ~(last - 1)));
    }
    // Where the least number is that is too large.
    auto too_large = static_cast<int64_t>(format.largest() + 1);
    Instruction* result = bits;
    if (exponent_bits < format.exponent) {
      const int64_t reach = (int64_t{1} << (exponent_bits - 1)) - 1;
      too_large = std::min(too_large, (format.bias + reach + 1) << format.mantissa);
      const int64_t normal = (format.bias - reach + 1) << format.mantissa;
      Instruction* small = b.Compare(Direction::kLt, bits, byte(normal));
      result = b.Select(small, byte(EncodeScaled(format, false, 0, 0)), bits);
    }
    Instruction* overflow = byte(EncodeOverflow(format, false) & format.magnitude_mask());
    Instruction* overflows = b.Compare(Direction::kGe, bits, byte(too_large));
    if (too_large < 256) result = b.Select(overflows, overflow, result);
    if (format.specials != Specials::kNanAsNegativeZero) {
      result = b.Or(result, sign);
    } else {
      result = b.Select(b.Compare(Direction::kEq, result, byte(0)), result, b.Or(result, sign));
      if (too_large < 256) result = b.Select(overflows, byte(format.sign_bit()), result);
    }
    if (format.specials == Specials::kNone) return result;
    // A NaN stays, but for an infinity that no bit of mantissa tells from one.
    Instruction* nan = nullptr;
    if (format.specials == Specials::kIeee) {
      nan = b.Compare(Direction::kGt, magnitude, byte(format.infinity()));
    } else {
      nan = b.Compare(Direction::kEq, x, byte(EncodeNan(format, false, 0)));
      if (format.specials == Specials::kNan) {
        nan = b.Compare(Direction::kEq, magnitude, byte(format.magnitude_mask()));
      }
    }
    Instruction* kept = x;
    if (mantissa_bits == 0 && format.specials == Specials::kIeee) kept = b.Or(overflow, sign);
    return b.Select(nan, kept, result);
  }

  // next-after(x, y) => bits(x) + 1 or - 1, as the bits of a magnitude count up with it
  static Instruction* NextAfter(Builder& b, Instruction* x, Instruction* y,
                                const FloatFormat& format) {
    Instruction *from = expand::DecodeFloat(b, format, x), *to = expand::DecodeFloat(b, format, y);
    auto byte = [&](uint64_t value) { return b.Number(x, static_cast<double>(value)); };
    Instruction *zero = b.Number(from, 0), *one = byte(1);
    Instruction* below = b.Compare(Direction::kLt, from, zero);
    Instruction* negative =
        b.Select(b.Compare(Direction::kEq, from, zero), b.Compare(Direction::kLt, to, zero), below);
    Instruction* away = b.Binary(Opcode::kXor, b.Compare(Direction::kLt, from, to), negative);
    Instruction* magnitude = b.And(x, byte(format.magnitude_mask()));
    Instruction* next = b.Select(away, b.Plus(magnitude, one), b.Minus(magnitude, one));
    Instruction* sign = b.Select(negative, byte(format.sign_bit()), byte(0));
    if (format.specials == Specials::kNanAsNegativeZero) {
      sign = b.Select(b.Compare(Direction::kEq, next, byte(0)), byte(0), sign);
    }
    next = b.Select(b.Compare(Direction::kEq, from, to), y, b.Or(next, sign));
    if (format.specials == Specials::kNone) return next;
    Instruction* ordered =
        b.And(b.Compare(Direction::kEq, from, from), b.Compare(Direction::kEq, to, to));
    return b.Select(ordered, next, byte(EncodeNan(format, false, 0)));
  }

  // The fraction, cut to as many bits as the random number has, is the larger one where the whole
  // is larger than the number with ones behind it.
  Instruction* StochasticConverted(Builder& b, Instruction* i, const Shape& shape) {
    Instruction *x = i->operand(0), *random = i->operand(1);
    if (IsNarrowFloat(TypeOf(x))) {
      const int64_t bits = BitWidth(TypeOf(x));
      x = Decode(b, x, TypeOf(x));
      random = b.Convert(random, ElementType::kU32);
      Instruction* by = b.Number(random, static_cast<double>(32 - bits));
      random = b.Or(b.Binary(Opcode::kShiftLeft, random, by),
                    b.Number(random, static_cast<double>((int64_t{1} << (32 - bits)) - 1)));
    }
    const Shape wide = Shape::Scalar(WideOf(shape.type()));
    Instruction* value = b.Add(Opcode::kStochasticConvert, {x, random}, {}, wide);
    return Maps(shape) ? WithinRange(b, value, shape.type()) : value;
  }

  // The nearest number of a narrow integer type.
  static Instruction* WithinRange(Builder& b, Instruction* x, ElementType type) {
    const Shape scalar = Shape::Scalar(x->shape().type());
    const int64_t bits = BitWidth(type);
    const double least = IsSigned(type) ? -static_cast<double>(1 << (bits - 1)) : 0;
    const double most = static_cast<double>((1 << (IsSigned(type) ? bits - 1 : bits)) - 1);
    return b.Add(Opcode::kClamp, {b.Number(scalar, least), x, b.Number(scalar, most)});
  }

  // Whether the op reads its operands as bits, without a sign.
  static bool IsOfBits(Opcode opcode) {
    return opcode == Opcode::kPopcnt || opcode == Opcode::kCountLeadingZeros ||
           opcode == Opcode::kShiftRightLogical;
  }
  static Instruction* Unsigned(Builder& b, Instruction* x, ElementType type) {
    Instruction* bits = b.Bits(x, ElementType::kU8);
    return b.And(bits, b.Number(bits, static_cast<double>((1 << BitWidth(type)) - 1)));
  }

  // Sums of products of floats are taken in f32. Factors are bf16, which has the values of all
  // types but f8e8m0fnu.
  Result<Instruction*> Product(Builder& b, Instruction* i, const Shape& shape) {
    const ElementType type = TypeOf(i->operand(0));
    if (IsInteger(type)) {
      const ElementType sum = Maps(shape) ? CarrierOf(shape.type()) : shape.type();
      Instruction* product =
          b.Add(i->opcode(), {i->operand(0), i->operand(1)}, i->attributes(), WithType(shape, sum));
      return Maps(shape) ? Wrap(b, product, shape.type()) : product;
    }
    const ElementType factor =
        type == ElementType::kF8E8M0FNU ? ElementType::kF32 : ElementType::kBF16;
    auto operand = [&](int64_t k) { return b.Convert(Decode(b, i->operand(k), type), factor); };
    const ElementType sum =
        shape.type() == ElementType::kF64 ? ElementType::kF64 : ElementType::kF32;
    Instruction *lhs = operand(0), *rhs = operand(1);
    Instruction* product = b.Add(i->opcode(), {lhs, rhs}, i->attributes(), WithType(shape, sum));
    if (Maps(shape)) return Encode(b, product, shape.type());
    return b.Convert(product, shape.type());
  }

  // Bits in the order of memory, where the lowest ones come first.
  Result<Instruction*> Reinterpreted(Builder& b, Instruction* i, const Shape& shape) {
    const ElementType from = TypeOf(i->operand(0)), to = shape.type();
    const int64_t from_bits = IsPred(from) ? 1 : BitWidth(from);
    const int64_t to_bits = IsPred(to) ? 1 : BitWidth(to);
    Instruction* x = i->operand(0);
    std::vector<Dimension> dimensions = x->shape().dimensions();
    // Pieces of a byte at most, without a sign.
    int64_t piece = std::min<int64_t>(from_bits, 8);
    if (from_bits > 8) {
      x = b.Add(Opcode::kBitcastConvert, {x}, {}, Shape::Scalar(ElementType::kU8));
      dimensions = x->shape().dimensions();
    } else {
      x = IsPred(from)     ? b.Convert(x, ElementType::kU8)
          : from_bits == 8 ? b.Bits(x, ElementType::kU8)
                           : Unsigned(b, x, from);
    }
    const int64_t wanted = std::min<int64_t>(to_bits, 8);
    if (piece > wanted) {
      // A piece falls into several, the lowest bits first.
      const int64_t parts = piece / wanted;
      std::vector<Dimension> cut = dimensions;
      cut.push_back(parts);
      Ints all(dimensions.size());
      for (size_t d = 0; d < all.size(); ++d) all[d] = static_cast<int64_t>(d);
      const Shape cut_shape(ElementType::kU8, cut);
      Instruction* spread = b.Add(Opcode::kBroadcast, {x}, {{Attr::kDimensions, all}}, cut_shape);
      Instruction* by = b.Times(ShiftsOf(b, cut_shape), b.Number(cut_shape, double(wanted)));
      x = b.Binary(Opcode::kShiftRightLogical, spread, by);
      x = b.And(x, b.Number(x, static_cast<double>((1 << wanted) - 1)));
      dimensions = std::move(cut);
    } else if (piece < wanted) {
      const int64_t parts = wanted / piece;
      std::vector<Dimension> groups = dimensions;
      groups.back() = groups.back().size() / parts;
      dimensions = groups;
      groups.push_back(parts);
      x = b.Reshape(x, groups);
      Instruction* by = b.Times(ShiftsOf(b, x->shape()), b.Number(x, static_cast<double>(piece)));
      x = b.Sum(b.Binary(Opcode::kShiftLeft, x, by), {x->shape().rank() - 1});
    }
    if (to_bits > 8) {
      // Bytes become elements.
      std::vector<Dimension> bytes = shape.dimensions();
      bytes.push_back(to_bits / 8);
      x = b.Reshape(x, std::move(bytes));
      return b.Add(Opcode::kBitcastConvert, {x}, {}, Shape::Scalar(to));
    }
    x = b.Reshape(x, shape.dimensions());
    if (IsPred(to)) return b.Convert(x, to);
    if (!IsNarrow(to)) return b.Bits(x, to);
    if (!IsInteger(to)) return x;
    return Wrap(b, b.Bits(x, CarrierOf(to)), to);
  }

  // 0, 1, 2, ... along the last dimension.
  static Instruction* ShiftsOf(Builder& b, const Shape& shape) {
    return b.Add(Opcode::kIota, {}, {{Attr::kIotaDimension, shape.rank() - 1}}, shape);
  }

  // fold(x : f8[...]) => convert(fold'(convert(x) : f32[...]))   where fold' rounds nothing: a sum
  // or a product of floats is rounded once. Another computation that rounds does so step by step.
  Status Prepare() override {
    std::vector<Instruction*> folds;
    for (const auto& c : module_.computations()) {
      for (Instruction* i : c->instructions()) {
        if (i->opcode() != Opcode::kReduce && i->opcode() != Opcode::kReduceWindow) continue;
        if (std::ranges::any_of(
                i->operands(),
                [](const Instruction* o) { return IsNarrowFloat(o->shape().type()); }) &&
            (IsSumOrProduct(*i->called(0)) || RoundsNothing(*i->called(0)))) {
          folds.push_back(i);
        }
      }
    }
    for (Instruction* i : folds) KILN_RETURN_IF_ERROR(WidenFold(*i->parent(), i));
    return OkStatus();
  }

  static bool IsSumOrProduct(const ir::Computation& c) {
    const Instruction* root = c.root();
    return (root->opcode() == Opcode::kAdd || root->opcode() == Opcode::kMultiply) &&
           root->operand(0) != root->operand(1) &&
           std::ranges::all_of(root->operands(), [](const Instruction* o) {
             return o->opcode() == Opcode::kParameter;
           });
  }

  // Whether narrow floats are only moved.
  static bool RoundsNothing(const ir::Computation& c) {
    auto has_any = [](const Instruction* i) { return IsNarrowFloat(i->shape().type()); };
    return std::ranges::all_of(c.instructions(), [&](const Instruction* i) {
      switch (i->opcode()) {
        case Opcode::kClamp:
        case Opcode::kCompare:
        case Opcode::kConstant:
        case Opcode::kCopy:
        case Opcode::kMaximum:
        case Opcode::kMinimum:
        case Opcode::kParameter:
        case Opcode::kSelect:
        case Opcode::kTuple:
          return true;
        default:
          return !has_any(i) && std::ranges::none_of(i->operands(), has_any);
      }
    });
  }

  static Shape Widened(Shape shape) {
    if (shape.is_array() && IsNarrowFloat(shape.type())) shape.set_type(ElementType::kF32);
    for (Shape& element : shape.mutable_elements()) element = Widened(std::move(element));
    return shape;
  }

  Status WidenFold(ir::Computation& c, Instruction* i) {
    Builder b(i);
    std::vector<Instruction*> operands;
    for (Instruction* operand : i->operands()) {
      operands.push_back(b.Convert(operand, Widened(operand->shape()).type()));
    }
    ir::Computation* region = module_.CloneComputation(*i->called(0), i->called(0)->name());
    std::vector<Instruction*> all(region->instructions().begin(), region->instructions().end());
    for (Instruction* x : all) {
      if (x->IsConstant() && IsNarrowFloat(x->shape().type())) {
        Builder inside(x);
        region->ReplaceAllUses(x, inside.Number(Widened(x->shape()), x->literal().AsDouble(0)));
        region->Remove(x);
      } else {
        x->set_shape(Widened(x->shape()));
      }
    }
    ir::InstructionSpec spec = ir::CopySpec(*i, std::move(operands));
    spec.called = {region};
    spec.shape = Widened(i->shape());
    spec.name.clear();
    Instruction* folded = c.Create(std::move(spec), i);
    const Shape shape = i->shape();
    Instruction* result = folded;
    if (shape.is_tuple()) {
      std::vector<Instruction*> elements;
      for (size_t k = 0; k < shape.elements().size(); ++k) {
        elements.push_back(
            b.Convert(b.Element(folded, static_cast<int64_t>(k)), shape.elements()[k].type()));
      }
      result = b.Tuple(std::move(elements));
    } else {
      result = b.Convert(folded, shape.type());
    }
    c.ReplaceAllUses(i, b.InLayout(result, shape));
    c.Remove(i);
    return b.status();
  }
};

}  // namespace

Result<bool> ExpandNarrow(ir::Module& module, const PassContext& context) {
  return NarrowExpansion(module).Run(context);
}

}  // namespace kiln::passes
