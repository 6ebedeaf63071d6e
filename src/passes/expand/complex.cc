#include "passes/expand/complex.h"

#include <algorithm>
#include <cstring>

#include "base/strings.h"
#include "kernel/region.h"
#include "passes/expand/complex_functions.h"
#include "passes/expand/type_legalisation.h"
#include "passes/passes.h"

namespace kiln::passes {
namespace {

using expand::Builder;
using expand::Parts;
using ir::Instruction;

ElementType PartType(ElementType type) {
  return type == ElementType::kC64 ? ElementType::kF32 : ElementType::kF64;
}

bool IsComplexArray(const Shape& shape) { return shape.is_array() && IsComplex(shape.type()); }

Shape PartShape(Shape shape) {
  shape.set_type(PartType(shape.type()));
  return shape;
}

// The shape of a complex array's memory as reals: parts in a last dimension, which is the most
// minor one.
Shape MemoryShape(const Shape& shape) {
  std::vector<Dimension> dimensions = shape.dimensions();
  dimensions.push_back(2);
  Shape memory(PartType(shape.type()), std::move(dimensions));
  if (!shape.is_row_major()) {
    std::vector<int64_t> order = {shape.rank()};
    order.insert(order.end(), shape.minor_to_major().begin(), shape.minor_to_major().end());
    memory.set_minor_to_major(std::move(order));
  }
  return memory;
}

class ComplexExpansion : public expand::TypeLegalisation {
 public:
  using TypeLegalisation::TypeLegalisation;

 protected:
  bool Maps(const Shape& leaf) const override { return IsComplexArray(leaf); }
  Shape Mapped(const Shape& leaf) const override {
    return Shape::Tuple({PartShape(leaf), PartShape(leaf)});
  }

  Instruction* FromMemory(Builder& b, Instruction* complex) override {
    const Shape& shape = complex->shape();
    Instruction* memory =
        b.Add(Opcode::kBitcastConvert, {complex}, {}, Shape::Scalar(PartType(shape.type())));
    memory->set_shape(MemoryShape(shape));
    Parts parts = Split(b, memory, shape);
    return b.Tuple({parts.real, parts.imag});
  }
  Instruction* ToMemory(Builder& b, Instruction* pair, const Shape& shape) override {
    Instruction* memory = b.InLayout(Join(b, PartsOf(b, pair), shape), MemoryShape(shape));
    Instruction* complex =
        b.Add(Opcode::kBitcastConvert, {memory}, {}, Shape::Scalar(shape.type()));
    complex->set_shape(shape);
    return complex;
  }

  // Maps give one result, and a pair is two: their computations take all elements at once.
  Status Prepare() override {
    std::vector<Instruction*> maps;
    for (ir::Computation* c : module_.CalleesFirst()) {
      for (Instruction* i : c->instructions()) {
        if (i->opcode() != Opcode::kMap || !kernel::IsScalarRegion(*i->called(0))) continue;
        if (std::ranges::any_of(i->called(0)->instructions(),
                                [](const Instruction* x) { return IsComplexArray(x->shape()); })) {
          maps.push_back(i);
        }
      }
    }
    for (Instruction* map : maps) InlineMap(map);
    return OkStatus();
  }

  // The replacement of i: a pair for a complex array.
  Result<Instruction*> ValueOf(Builder& b, Instruction* i, const Shape& shape) override {
    if (shape.is_array() && !shape.is_static()) {
      return Unimplemented(OpcodeName(i->opcode()), ": '", i->name(), "' of shape ", shape,
                           " has no compiled code: complex numbers of bounded dimensions");
    }
    auto pair = [&](const Parts& parts) { return b.Tuple({parts.real, parts.imag}); };
    auto parts = [&](int64_t o) { return PartsOf(b, i->operand(o)); };
    if (HasTrait(i->opcode(), kMovesElements)) {
      Instruction* real = Moved(b, i, shape, 0);
      return pair({real, Moved(b, i, shape, 1)});
    }
    switch (i->opcode()) {
      case Opcode::kConstant:
        return pair(SplitConstant(b, i->literal()));
      case Opcode::kIota: {
        Instruction* real = b.Add(Opcode::kIota, {}, i->attributes(), PartShape(shape));
        return pair({real, b.Number(real, 0)});
      }
      case Opcode::kGetDimensionSize:
        return b.Add(i->opcode(), {parts(0).real}, i->attributes());
      case Opcode::kReal:
        return parts(0).real;
      case Opcode::kImag:
        return parts(0).imag;
      case Opcode::kComplex:
        return pair({i->operand(0), i->operand(1)});
      case Opcode::kAbs:
        return expand::ComplexAbs(b, parts(0));
      case Opcode::kCompare: {
        const Direction direction = i->attributes().DirectionOf(Attr::kDirection);
        Parts x = parts(0), y = parts(1);
        Instruction* real = b.Compare(direction, x.real, y.real);
        Instruction* imag = b.Compare(direction, x.imag, y.imag);
        return direction == Direction::kEq ? b.And(real, imag) : b.Or(real, imag);
      }
      case Opcode::kConvert:
        return Converted(b, i, shape);
      case Opcode::kBitcastConvert:
        return Reinterpreted(b, i, shape);
      case Opcode::kDot: {
        // (a + bi)(c + di) = (ac - bd) + (ad + bc)i, of sums of products as of products
        Parts x = parts(0), y = parts(1);
        auto product = [&](Instruction* l, Instruction* r) {
          Instruction* sum = b.Add(i->opcode(), {l, r}, i->attributes(), PartShape(shape));
          return sum;
        };
        Instruction* real = b.Minus(product(x.real, y.real), product(x.imag, y.imag));
        return pair({real, b.Plus(product(x.real, y.imag), product(x.imag, y.real))});
      }
      case Opcode::kReduce:
      case Opcode::kReduceWindow:
      case Opcode::kScatter:
      case Opcode::kSort:
        return Folded(b, i, shape);
      case Opcode::kFft:
      case Opcode::kCholesky:
      case Opcode::kTriangularSolve:
      case Opcode::kCustomCall:
        return Called(b, i);
      default:
        break;
    }
    std::vector<Parts> operands;
    for (Instruction* operand : i->operands()) {
      if (IsPair(operand)) operands.push_back(PartsOf(b, operand));
    }
    std::optional<Parts> result;
    if (!operands.empty() && std::ssize(operands) == i->operand_count()) {
      result = expand::ComplexFunction(b, i->opcode(), operands);
    }
    if (result) return pair(*result);
    return Unimplemented(OpcodeName(i->opcode()), ": '", i->name(), "' of shape ", shape,
                         " has no compiled code: complex numbers");
  }

  static Parts SplitConstant(Builder& b, const Literal& literal) {
    const Shape shape = PartShape(literal.shape());
    Literal real(shape), imag(shape);
    const size_t width = static_cast<size_t>(ByteWidth(shape.type()));
    const size_t count = static_cast<size_t>(shape.num_elements());
    for (size_t k = 0; k < count; ++k) {
      std::memcpy(real.data() + k * width, literal.data() + 2 * k * width, width);
      std::memcpy(imag.data() + k * width, literal.data() + (2 * k + 1) * width, width);
    }
    Instruction* first = b.Constant(std::move(real));
    return {first, b.Constant(std::move(imag))};
  }

  // An op that moves elements, of one of the parts.
  Instruction* Moved(Builder& b, Instruction* i, const Shape& shape, int64_t part) {
    std::vector<Instruction*> operands;
    for (Instruction* operand : i->operands()) {
      operands.push_back(IsPair(operand) ? b.Element(operand, part) : operand);
    }
    ir::InstructionSpec spec = ir::CopySpec(*i, std::move(operands));
    spec.shape = PartShape(shape);
    spec.name.clear();
    return b.computation()->Create(std::move(spec), b.before());
  }

  // A real number has no imaginary part, and a complex one becomes real by leaving it out.
  Instruction* Converted(Builder& b, Instruction* i, const Shape& shape) {
    Instruction* x = i->operand(0);
    if (!IsComplexArray(shape)) return b.Convert(b.Element(x, 0), shape.type());
    const ElementType part = PartType(shape.type());
    if (!IsPair(x)) {
      Instruction* real = b.Convert(x, part);
      return b.Tuple({real, b.Number(real, 0)});
    }
    Instruction* real = b.Convert(b.Element(x, 0), part);
    return b.Tuple({real, b.Convert(b.Element(x, 1), part)});
  }

  // Bits as in memory: an array of parts, with a last dimension of size 2.
  Instruction* Reinterpreted(Builder& b, Instruction* i, const Shape& shape) {
    Instruction* x = i->operand(0);
    if (IsPair(x)) x = Join(b, PartsOf(b, x), *Before(x));
    auto convert = [&](Instruction* value, ElementType type) {
      return b.Add(Opcode::kBitcastConvert, {value}, {}, Shape::Scalar(type));
    };
    const bool to_complex = IsComplexArray(shape);
    const ElementType to = to_complex ? PartType(shape.type()) : shape.type();
    const Shape result = to_complex ? MemoryShape(shape) : shape;
    if (IsPred(x->shape().type())) {
      // Eight bits are a byte.
      std::vector<Dimension> dimensions = x->shape().dimensions();
      dimensions.back() = dimensions.back().size() / 8;
      dimensions.push_back(8);
      x = convert(b.Reshape(x, std::move(dimensions)), ElementType::kU8);
    } else if (IsPred(to)) {
      return b.Reshape(convert(convert(x, ElementType::kU8), to), result.dimensions());
    }
    const int64_t from_bits = BitWidth(x->shape().type()), to_bits = BitWidth(to);
    if (from_bits < to_bits) {
      // A last dimension for the parts of one element.
      std::vector<Dimension> dimensions = result.dimensions();
      dimensions.push_back(to_bits / from_bits);
      x = b.Reshape(x, std::move(dimensions));
    }
    x = b.Reshape(from_bits == to_bits ? b.Bits(x, to) : convert(x, to), result.dimensions());
    if (!to_complex) return x;
    Parts parts = Split(b, x, shape);
    return b.Tuple({parts.real, parts.imag});
  }

 private:
  static Parts PartsOf(Builder& b, Instruction* pair) {
    return {b.Element(pair, 0), b.Element(pair, 1)};
  }

  // Memory of reals => the parts.
  static Parts Split(Builder& b, Instruction* memory, const Shape& complex) {
    auto part = [&](int64_t k) {
      std::vector<SliceDimension> slices;
      for (const Dimension& d : complex.dimensions()) slices.push_back({0, d.size(), 1});
      slices.push_back({k, k + 1, 1});
      Instruction* slice = b.Add(Opcode::kSlice, {memory}, {{Attr::kSlice, std::move(slices)}});
      return b.Reshape(slice, complex.dimensions());
    };
    Instruction* real = part(0);
    return {real, part(1)};
  }

  // The parts => memory of reals.
  static Instruction* Join(Builder& b, const Parts& parts, const Shape& complex) {
    std::vector<Dimension> dimensions = complex.dimensions();
    dimensions.push_back(1);
    Instruction* real = b.Reshape(parts.real, dimensions);
    Instruction* imag = b.Reshape(parts.imag, dimensions);
    Instruction* memory = b.Concatenate({real, imag}, complex.rank());
    memory->set_shape(MemoryShape(complex));
    return memory;
  }

  bool IsPair(const Instruction* x) const {
    const Shape* before = Before(x);
    return before && before->is_array();
  }
};

}  // namespace

Result<bool> ExpandComplex(ir::Module& module, const PassContext& context) {
  return ComplexExpansion(module).Run(context);
}

}  // namespace kiln::passes
