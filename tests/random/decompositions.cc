#include "random/decompositions.h"

#include "random/reducers.h"

namespace kiln::testing {
namespace {

using ir::Instruction;

class Generator : public RandomMaker {
 public:
  Generator(const RandomSource& source, Instruction* x) : RandomMaker(source), x_(x) {}

  RandomOp Decomposition() {
    if (!IsFloat(type()) && !IsComplex(type())) return {};
    switch (Pick(0, 4)) {
      case 0:
      case 1:
        return Fft();
      case 2:
        return One(Cholesky());
      case 3:
        return IsFloat(type()) && Chance(40) ? Lu() : One(TriangularSolve());
      default:
        return SetSize();
    }
  }

 private:
  ElementType type() const { return x_->shape().type(); }
  RandomOp One(Instruction* result) { return {{result}, {x_}, /*rounds=*/true}; }

  RandomOp Fft() {
    const Shape& shape = x_->shape();
    if (shape.rank() == 0 || shape.num_elements() == 0) return {};
    const int64_t last = shape.rank() - 1;
    const char* kind = "RFFT";
    if (IsComplex(type())) {
      constexpr const char* kKinds[] = {"FFT", "IFFT", "IRFFT"};
      kind = OneOf(kKinds);
    }
    Ints lengths = {shape.dim(last)};
    if (std::string_view(kind) == "IRFFT") {
      // The last of these is an odd number or an even one.
      lengths[0] = std::max<int64_t>(1, 2 * (lengths[0] - 1) + Pick(0, 1));
    }
    if (last > 0 && Chance(40)) lengths.insert(lengths.begin(), shape.dim(last - 1));
    return One(
        Add({.opcode = Opcode::kFft,
             .operands = {x_},
             .attributes = {{Attr::kFftType, std::string(kind)}, {Attr::kFftLength, lengths}}}));
  }

  // Matrices with a number added on the diagonal.
  Shape Square(int64_t size) const {
    return Chance(30) ? Shape(type(), {Pick(1, 2), size, size}) : Shape(type(), {size, size});
  }
  Instruction* WithDiagonal(Instruction* matrix, double value) const {
    const Shape& shape = matrix->shape();
    const auto place = [&](int64_t from_last) {
      return Add({.opcode = Opcode::kIota,
                  .attributes = {{Attr::kIotaDimension, shape.rank() - from_last}},
                  .shape = Shape(ElementType::kS32, shape.dimensions())});
    };
    Instruction* on_it = Add({.opcode = Opcode::kCompare,
                              .operands = {place(2), place(1)},
                              .attributes = {{Attr::kDirection, Direction::kEq}}});
    Instruction* diagonal = Op(Opcode::kSelect, {on_it, Full(shape, value), Full(shape, 0)});
    return Op(Opcode::kAdd, {matrix, diagonal});
  }
  Instruction* Conjugate(Instruction* x) const {
    if (!IsComplex(type())) return x;
    Instruction* imag = Op(Opcode::kNegate, {Op(Opcode::kImag, {x})});
    return Op(Opcode::kComplex, {Op(Opcode::kReal, {x}), imag});
  }

  // Of a a^H + n, of which either triangle is read.
  Instruction* Cholesky() {
    const int64_t size = Pick(1, 4);
    Instruction* a = Parameter(Square(size));
    const int64_t rank = a->shape().rank();
    Ints batch;
    if (rank == 3) batch.push_back(0);
    Instruction* product = Add({.opcode = Opcode::kDot,
                                .operands = {a, Conjugate(a)},
                                .attributes = {{Attr::kLhsBatchDims, batch},
                                               {Attr::kRhsBatchDims, batch},
                                               {Attr::kLhsContractingDims, Ints{rank - 1}},
                                               {Attr::kRhsContractingDims, Ints{rank - 1}}},
                                .shape = Shape::Scalar(type())});
    return Add({.opcode = Opcode::kCholesky,
                .operands = {WithDiagonal(product, static_cast<double>(size))},
                .attributes = {{Attr::kLower, Chance(60)}}});
  }

  Instruction* TriangularSolve() {
    const int64_t size = Pick(1, 4);
    Instruction* a = WithDiagonal(Parameter(Square(size)), 4);
    const bool left = Chance(50);
    Shape sides = a->shape();
    sides.set_dimension(sides.rank() - (left ? 1 : 2), Pick(1, 3));
    constexpr const char* kTransposes[] = {"NO_TRANSPOSE", "TRANSPOSE", "ADJOINT"};
    return Add({.opcode = Opcode::kTriangularSolve,
                .operands = {a, Parameter(sides)},
                .attributes = {{Attr::kLeftSide, left},
                               {Attr::kLower, Chance(50)},
                               {Attr::kUnitDiagonal, Chance(30)},
                               {Attr::kTransposeA, std::string(OneOf(kTransposes))}}});
  }

  // The factors of a matrix whose rows stay in their order.
  RandomOp Lu() {
    const int64_t rows = Pick(1, 4), columns = Pick(1, 4);
    const Shape shape(type(), {rows, columns});
    const Shape result =
        Shape::Tuple({shape, Shape(ElementType::kS32, {std::min(rows, columns)}),
                      Shape(ElementType::kS32, {rows}), Shape::Scalar(ElementType::kS32)});
    Instruction* a = WithDiagonal(Parameter(shape), 6);
    Instruction* lu =
        Add({.opcode = Opcode::kCustomCall,
             .operands = {a},
             .attributes = {{Attr::kCustomCallTarget, QuotedText{std::string("lapack.getrf")}}},
             .shape = result});
    return One(Element(lu, 0));
  }

  // The sum along a dimension of which a part is left.
  RandomOp SetSize() {
    const Shape& shape = x_->shape();
    if (shape.rank() == 0) return {};
    const int64_t d = Pick(0, shape.rank() - 1);
    const auto size = static_cast<double>(Pick(0, shape.dim(d)));
    Instruction* part = Add({.opcode = Opcode::kSetDimensionSize,
                             .operands = {x_, Scalar(ElementType::kS32, size)},
                             .attributes = {{Attr::kDimensions, Ints{d}}}});
    return One(Add({.opcode = Opcode::kReduce,
                    .operands = {part, Scalar(type(), 0)},
                    .attributes = {{Attr::kDimensions, Ints{d}}},
                    .called = {Reducer(source_.module, Opcode::kAdd, type())}}));
  }

  Instruction* x_;
};

}  // namespace

RandomOp RandomDecomposition(const RandomSource& source, Instruction* x) {
  return Generator(source, x).Decomposition();
}

}  // namespace kiln::testing
