// JAX's calls of LAPACK and BLAS on CPUs, and XLA's own calls for the same: triangular systems, and
// the decompositions of Cholesky, LU and QR. LAPACK's matrices are column-major, a layout in memory
// with the same elements.
#include <algorithm>
#include <optional>

#include "stablehlo/import/extensions.h"
#include "stablehlo/import/factors.h"
#include "stablehlo/import/matrices.h"

namespace kiln::stablehlo {
namespace {

using ir::Instruction;
using mlir::Attribute;
using mlir::AttributeKind;

constexpr std::string_view kLapack = "lapack_";

// A letter of the configuration, one of two or three: 'L' or 'U'.
Result<char> LetterOf(const Op& op, std::string_view name, std::string_view letters) {
  const Attribute* config = op.Find("mhlo.backend_config");
  if (!config) config = op.Find("backend_config");
  const bool is_list = config && config->is(AttributeKind::kDictionary);
  const Attribute* value = is_list ? mlir::Find(config->fields, name) : nullptr;
  const std::optional<int64_t> number = value ? mlir::IntOf(*value) : std::nullopt;
  for (char letter : letters) {
    if (number == letter) return letter;
  }
  return InvalidArgument("backend_config must have ", name, ", one of the letters ", letters);
}

Status ExpectNumbers(const Shape& shape, int64_t least_rank, std::string_view what) {
  if (!shape.is_array() || !shape.is_static() || shape.rank() < least_rank ||
      !(IsFloat(shape.type()) || IsComplex(shape.type()))) {
    return InvalidArgument("found ", shape, "; expected ", what, " of floats or complex numbers");
  }
  return OkStatus();
}

// The operands that say no sizes: so many matrices, and so many vectors behind them. LAPACK's
// matrices are column-major: each of them then, and where its elements stand is the same for all.
Result<Values> OperandsOf(Op& op, size_t matrices, size_t vectors, size_t results) {
  KILN_ASSIGN_OR_RETURN(ShapeOperands operands, ShapeOperandsOf(op));
  const Values& found = operands.others;
  if (found.size() != matrices + vectors || op.result_count() != results) {
    return InvalidArgument("found ", found.size(), " operands and ", op.result_count(),
                           " results; expected ", matrices + vectors, " and ", results);
  }
  for (size_t i = 0; i < found.size(); ++i) {
    const bool is_matrix = i < matrices;
    KILN_RETURN_IF_ERROR(
        ExpectNumbers(found[i]->shape(), is_matrix ? 2 : 1, is_matrix ? "matrices" : "vectors"));
  }
  KILN_ASSIGN_OR_RETURN(std::string target, op.Word("call_target_name"));
  if (!target.starts_with(kLapack)) return found;
  const Attribute* layouts = op.Find("operand_layouts");
  bool fits = layouts && layouts->items.size() == op.operands.size();
  for (size_t i = 0; fits && i < matrices; ++i) {
    const int64_t rank = found[i]->shape().rank();
    // Operands for sizes come after the matrices.
    const std::optional<Ints> order = mlir::IntsOf(*layouts->items[i]);
    fits = found[i] == op.operand(i) && order && std::ssize(*order) == rank &&
           (*order)[0] == rank - 2 && (*order)[1] == rank - 1;
  }
  if (!fits) return Unimplemented("matrices that are not column-major are not implemented");
  return found;
}

// Matrices as [batch, m, n], and vectors as [batch, n].
Instruction* Flat(Builder& b, Instruction* x, int64_t rank) {
  Ints sizes = x->shape().dims(), flat = {1};
  const auto outer = sizes.end() - rank;
  for (auto size = sizes.begin(); size != outer; ++size) flat[0] *= *size;
  flat.insert(flat.end(), outer, sizes.end());
  return b.Reshape(x, flat);
}
// And back, for the batch that such matrices have.
Instruction* OfBatch(Builder& b, Instruction* x, const Shape& matrices) {
  if (!x) return nullptr;
  Ints sizes = matrices.dims(), flat = x->shape().dims();
  sizes.resize(sizes.size() - 2);
  sizes.insert(sizes.end(), flat.begin() + 1, flat.end());
  return b.Reshape(x, sizes);
}

// The factor, and above or below it what was there; for each matrix 0, or 1 where it has none.
Result<Values> Potrf(Op& op) {
  KILN_ASSIGN_OR_RETURN(Values matrices, OperandsOf(op, 1, 0, 2));
  KILN_ASSIGN_OR_RETURN(char triangle, LetterOf(op, "uplo", "LU"));
  const bool lower = triangle == 'L';
  Instruction* x = matrices[0];
  const Shape& shape = x->shape();
  const int64_t rank = shape.rank();
  Shape places = shape;
  places.set_type(ElementType::kS32);
  auto iota = [&](int64_t d) {
    return op.b.Add(Opcode::kIota, {}, {{Attr::kIotaDimension, d}}, places);
  };
  Instruction *row = iota(rank - 2), *column = iota(rank - 1);
  Instruction* factor = op.b.Add(Opcode::kCholesky, {x}, {{Attr::kLower, lower}});
  Instruction* inside = op.b.Compare(lower ? Direction::kGe : Direction::kLe, row, column);
  Instruction* wrong = op.b.Add(Opcode::kAnd, {op.b.Compare(Direction::kEq, row, column),
                                               op.b.Compare(Direction::kNe, factor, factor)});
  Instruction* info = op.b.Reduce(Opcode::kMaximum, op.b.Convert(wrong, ElementType::kS32), 0,
                                  {rank - 2, rank - 1});
  return Values{op.b.Select(inside, factor, x), info};
}

// The library has functions for f32 and f64; other types go by ops, as do arrays without elements.
bool IsOfLibrary(const Shape& shape) {
  return (shape.type() == ElementType::kF32 || shape.type() == ElementType::kF64) &&
         shape.num_elements() > 0;
}

Values CallLapack(Builder& b, std::string_view name, Values operands, std::vector<Shape> results) {
  const size_t count = results.size();
  const Shape whole = count == 1 ? results[0] : Shape::Tuple(std::move(results));
  Instruction* call = b.Add(Opcode::kCustomCall, std::move(operands),
                            {{Attr::kCustomCallTarget, QuotedText{Cat("lapack.", name)}}}, whole);
  if (count == 1) return {call};
  Values parts;
  for (size_t i = 0; i < count; ++i) parts.push_back(b.Element(call, static_cast<int64_t>(i)));
  return parts;
}

// By the library, without the batch's dimensions as one.
LuFactors LuOfLibrary(Op& op, Instruction* x) {
  const Shape& shape = x->shape();
  const Ints sizes = shape.dims(), batch(sizes.begin(), sizes.end() - 2);
  auto counts = [&](std::optional<int64_t> size) {
    Ints dims = batch;
    if (size) dims.push_back(*size);
    return ArrayShape(ElementType::kS32, dims);
  };
  const int64_t m = shape.dim(shape.rank() - 2), n = shape.dim(shape.rank() - 1);
  const Values found = CallLapack(
      op.b, "getrf", {x},
      {ArrayShape(shape.type(), sizes), counts(std::min(m, n)), counts(m), counts(std::nullopt)});
  return {found[0], found[1], found[2], found[3]};
}

// In ops, for matrices of any type.
LuFactors LuOfOps(Op& op, Instruction* x) {
  const Shape shape = x->shape();
  LuFactors found = LuDecomposition(op.b, Flat(op.b, x, 2));
  for (Instruction** part : {&found.factors, &found.pivots, &found.order, &found.info}) {
    *part = OfBatch(op.b, *part, shape);
  }
  return found;
}

Result<LuFactors> LuOf(Op& op, Instruction* x) {
  if (IsOfLibrary(x->shape())) return LuOfLibrary(op, x);
  const LuFactors found = LuOfOps(op, x);
  KILN_RETURN_IF_ERROR(op.b.status());
  return found;
}

// The factors; pivots, from 1; and which of them is 0.
Result<Values> Getrf(Op& op) {
  KILN_ASSIGN_OR_RETURN(Values matrices, OperandsOf(op, 1, 0, 3));
  KILN_ASSIGN_OR_RETURN(LuFactors found, LuOf(op, matrices[0]));
  Instruction* pivots =
      op.b.Add(Opcode::kAdd, {found.pivots, op.b.Number(found.pivots->shape(), 1)});
  return Values{found.factors, pivots, found.info};
}

// The factors; pivots, from 0; and the order of the rows.
Result<Values> XlaLu(Op& op) {
  KILN_ASSIGN_OR_RETURN(Values matrices, OperandsOf(op, 1, 0, 3));
  KILN_ASSIGN_OR_RETURN(LuFactors found, LuOf(op, matrices[0]));
  return Values{found.factors, found.pivots, found.order};
}

Result<Values> Geqrf(Op& op) {
  KILN_ASSIGN_OR_RETURN(Values matrices, OperandsOf(op, 1, 0, 2));
  const Shape& shape = matrices[0]->shape();
  if (IsOfLibrary(shape)) {
    Ints taus = shape.dims();
    taus.pop_back();
    taus.back() = std::min(taus.back(), shape.dims().back());
    return CallLapack(op.b, "geqrf", {matrices[0]},
                      {ArrayShape(shape.type(), shape.dims()), ArrayShape(shape.type(), taus)});
  }
  const QrFactors found = QrDecomposition(op.b, Flat(op.b, matrices[0], 2));
  return Values{OfBatch(op.b, found.factors, shape), OfBatch(op.b, found.taus, shape)};
}

Result<Values> Orgqr(Op& op) {
  KILN_ASSIGN_OR_RETURN(Values operands, OperandsOf(op, 1, 1, 1));
  const Shape &shape = operands[0]->shape(), &taus = operands[1]->shape();
  const int64_t rank = shape.rank(), m = shape.dim(rank - 2), n = shape.dim(rank - 1);
  bool fits = taus.rank() == rank - 1 && taus.type() == shape.type() && m >= n &&
              n >= taus.dim(taus.rank() - 1);
  for (int64_t d = 0; fits && d < rank - 2; ++d) fits = taus.dim(d) == shape.dim(d);
  if (!fits) {
    return InvalidArgument("found ", shape, " and ", taus,
                           "; expected matrices of at least as many rows as columns, and vectors "
                           "of at most as many elements as these have columns");
  }
  if (IsOfLibrary(shape)) {
    return CallLapack(op.b, "orgqr", operands, {ArrayShape(shape.type(), shape.dims())});
  }
  return op.One(OfBatch(
      op.b, ProductOfReflections(op.b, Flat(op.b, operands[0], 2), Flat(op.b, operands[1], 1)),
      shape));
}

Result<Values> Trsm(Op& op) {
  KILN_ASSIGN_OR_RETURN(Values matrices, OperandsOf(op, 2, 0, 1));
  KILN_ASSIGN_OR_RETURN(char triangle, LetterOf(op, "uplo", "LU"));
  KILN_ASSIGN_OR_RETURN(char side, LetterOf(op, "side", "LR"));
  KILN_ASSIGN_OR_RETURN(char diagonal, LetterOf(op, "diag", "NU"));
  KILN_ASSIGN_OR_RETURN(char transpose, LetterOf(op, "trans_x", "NTC"));
  const std::string how = transpose == 'N'   ? "NO_TRANSPOSE"
                          : transpose == 'T' ? "TRANSPOSE"
                                             : "ADJOINT";
  return op.One(op.b.Add(Opcode::kTriangularSolve, std::move(matrices),
                         {{Attr::kLeftSide, side == 'L'},
                          {Attr::kLower, triangle == 'L'},
                          {Attr::kUnitDiagonal, diagonal == 'U'},
                          {Attr::kTransposeA, how}}));
}

struct Function {
  std::string_view name;
  Lowering lower;
};
// "lapack_spotrf_ffi" and its like, where s stands for the element type, which the operands have.
constexpr Function kFunctions[] = {{"geqrf_ffi", Geqrf}, {"getrf_ffi", Getrf},
                                   {"orgqr_ffi", Orgqr}, {"potrf_ffi", Potrf},
                                   {"trsm_ffi", Trsm},   {"ungqr_ffi", Orgqr}};
constexpr Function kXlaFunctions[] = {
    {"LuDecomposition", XlaLu}, {"ProductOfElementaryHouseholderReflectors", Orgqr}, {"Qr", Geqrf}};

}  // namespace

Lowering FindLinearAlgebra(std::string_view target) {
  const std::string_view full = target;
  std::span<const Function> functions = kXlaFunctions;
  if (target.starts_with(kLapack) && target.size() > kLapack.size() &&
      std::string_view("sdcz").find(target[kLapack.size()]) != std::string_view::npos) {
    functions = kFunctions;
    target.remove_prefix(kLapack.size() + 1);
  }
  const auto found = std::ranges::find(functions, target, &Function::name);
  return found == functions.end() ? FindLapack(full) : found->lower;
}

}  // namespace kiln::stablehlo
