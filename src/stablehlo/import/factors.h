// Matrix factorisations without an operation in HLO and StableHLO, written in HLO's ops. Matrices
// are [batch, m, n], of floats or complex numbers; k = min(m, n).
#pragma once

#include "stablehlo/import/builder.h"

namespace kiln::stablehlo {

// P A = L U with partial pivoting (Golub and Van Loan, Matrix Computations, 3.4).
struct LuFactors {
  // [batch, m, n]: L below the diagonal, without the ones on it, and U.
  ir::Instruction* factors = nullptr;
  // s32[batch, k]: the row, from i on, swapped with row i at column i.
  ir::Instruction* pivots = nullptr;
  // s32[batch, m]: the row of A for each row of P A.
  ir::Instruction* order = nullptr;
  // s32[batch]: from 1, the first column with a pivot of 0, so that U is singular; 0 without one.
  ir::Instruction* info = nullptr;
};
LuFactors LuDecomposition(Builder& b, ir::Instruction* x);

// A = Q R by Householder's reflections (ibid., 5.2): Q is the product of I - tau v v', where v is 0
// above its column's diagonal and 1 on it.
struct QrFactors {
  ir::Instruction* factors = nullptr;  // [batch, m, n]: each v below the diagonal, and R
  ir::Instruction* taus = nullptr;     // [batch, k]
};
QrFactors QrDecomposition(Builder& b, ir::Instruction* x);
// The first n columns of Q, by the reflections stored in [batch, m, n] matrices as above, one per
// tau.
ir::Instruction* ProductOfReflections(Builder& b, ir::Instruction* x, ir::Instruction* taus);

}  // namespace kiln::stablehlo
