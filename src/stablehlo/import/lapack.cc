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
  const bool is_list = config && config->is(AttributeKind::kDictionary);
  const Attribute* value = is_list ? mlir::Find(config->fields, name) : nullptr;
  const std::optional<int64_t> number = value ? mlir::IntOf(*value) : std::nullopt;
  for (char letter : letters) {
    if (number == letter) return letter;
  }
  return InvalidArgument("mhlo.backend_config must have ", name, ", one of the letters ", letters);
}

// Whether each matrix of the operands and results is column-major. Where they stand is the same for
// all then.
Status RequireMatrices(const Op& op) {
  for (const Instruction* x : op.operands) {
    const bool matrix = x->shape().is_array() && x->shape().is_static() && x->shape().rank() >= 2;
    if (!matrix) return InvalidArgument("found ", x->shape(), "; expected matrices");
  }
  const int64_t rank = op.operands.empty() ? 0 : op.shape(0).rank();
  const Attribute* layouts = op.Find("operand_layouts");
  const size_t found = layouts ? layouts->items.size() : 0;
  bool fits = rank >= 2 && found == op.operands.size();
  for (size_t i = 0; fits && i < found; ++i) {
    const std::optional<Ints> order = mlir::IntsOf(*layouts->items[i]);
    fits = op.shape(i).rank() == rank && order && std::ssize(*order) == rank &&
           (*order)[0] == rank - 2 && (*order)[1] == rank - 1;
  }
  if (fits) return OkStatus();
  return Unimplemented("matrices that are not column-major are not implemented");
}

// The factor, and above or below it what was there; for each matrix 0, or 1 where it has none.
Result<Values> Potrf(Op& op) {
  if (op.operands.size() != 1 || op.result_count() != 2) {
    return InvalidArgument("found ", op.operands.size(), " operands and ", op.result_count(),
                           " results; expected one and two");
  }
  KILN_RETURN_IF_ERROR(RequireMatrices(op));
  KILN_ASSIGN_OR_RETURN(char triangle, LetterOf(op, "uplo", "LU"));
  const bool lower = triangle == 'L';
  Instruction* x = op.operand(0);
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
  if (op.operands.size() != 2 || op.result_count() != 1) {
    return InvalidArgument("found ", op.operands.size(), " operands and ", op.result_count(),
                           " results; expected two and one");
  }
  KILN_RETURN_IF_ERROR(RequireMatrices(op));
  KILN_ASSIGN_OR_RETURN(char triangle, LetterOf(op, "uplo", "LU"));
  KILN_ASSIGN_OR_RETURN(char side, LetterOf(op, "side", "LR"));
  KILN_ASSIGN_OR_RETURN(char diagonal, LetterOf(op, "diag", "NU"));
  KILN_ASSIGN_OR_RETURN(char transpose, LetterOf(op, "trans_x", "NTC"));
  const std::string how = transpose == 'N'   ? "NO_TRANSPOSE"
                          : transpose == 'T' ? "TRANSPOSE"
                                             : "ADJOINT";
  return op.One(op.b.Add(Opcode::kTriangularSolve, op.operands,
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
