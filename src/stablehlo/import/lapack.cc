// What JAX calls LAPACK and BLAS for on CPUs and StableHLO has operations for: Cholesky's factors
// and triangular systems. Matrices are column-major there, which is how memory is laid out and
// changes no element.
#include "stablehlo/import/extensions.h"

namespace kiln::stablehlo {
namespace {

using ir::Instruction;
using mlir::Attribute;
using mlir::AttributeKind;

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

// The operands that say no sizes, so many: matrices, each column-major. Where they stand is the
// same for all then.
Result<Values> MatricesOf(Op& op, size_t count) {
  KILN_ASSIGN_OR_RETURN(ShapeOperands operands, ShapeOperandsOf(op));
  const Values& matrices = operands.others;
  if (matrices.size() != count) {
    return InvalidArgument("found ", matrices.size(), " operands; expected ", count);
  }
  const Attribute* layouts = op.Find("operand_layouts");
  bool fits = layouts && layouts->items.size() == op.operands.size();
  for (size_t i = 0; fits && i < count; ++i) {
    const Shape& shape = matrices[i]->shape();
    if (!shape.is_array() || !shape.is_static() || shape.rank() < 2) {
      return InvalidArgument("found ", shape, "; expected matrices");
    }
    // Those that say sizes stand behind them.
    const std::optional<Ints> order = mlir::IntsOf(*layouts->items[i]);
    fits = matrices[i] == op.operand(i) && order && std::ssize(*order) == shape.rank() &&
           (*order)[0] == shape.rank() - 2 && (*order)[1] == shape.rank() - 1;
  }
  if (!fits) return Unimplemented("matrices that are not column-major are not implemented");
  return matrices;
}

// The factor, and above or below it what was there; for each matrix 0, or 1 where it has none.
Result<Values> Potrf(Op& op) {
  if (op.result_count() != 2) {
    return InvalidArgument("found ", op.result_count(), " results; expected two");
  }
  KILN_ASSIGN_OR_RETURN(Values matrices, MatricesOf(op, 1));
  KILN_ASSIGN_OR_RETURN(char triangle, LetterOf(op, "uplo", "LU"));
  const bool lower = triangle == 'L';
  Instruction* x = matrices[0];
  const Shape& shape = x->shape();
  const int64_t rank = shape.rank();
  Shape places = shape;
  places.set_type(ElementType::kS32);
  auto iota = [&](int64_t d) {
    return op.b.Add(Opcode::kIota, {}, {{Attr::kIotaDimension, d}}, &places);
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

Result<Values> Trsm(Op& op) {
  if (op.result_count() != 1) {
    return InvalidArgument("found ", op.result_count(), " results; expected one");
  }
  KILN_ASSIGN_OR_RETURN(Values matrices, MatricesOf(op, 2));
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

}  // namespace

// "lapack_spotrf_ffi", where s stands for the element type, which the operands have.
Lowering FindLapack(std::string_view target) {
  constexpr std::string_view kBegin = "lapack_";
  if (!target.starts_with(kBegin) || target.size() <= kBegin.size()) return nullptr;
  const std::string_view name = target.substr(kBegin.size() + 1);
  if (std::string_view("sdcz").find(target[kBegin.size()]) == std::string_view::npos)
    return nullptr;
  if (name == "potrf_ffi") return Potrf;
  return name == "trsm_ffi" ? Trsm : nullptr;
}

}  // namespace kiln::stablehlo
