// Chains: a gemm and a kernel over the rows of its result, as one kernel. A block of rows is
// computed, and consumed while it is in the cache.
#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "base/status.h"
#include "ir/ir.h"
#include "kernel/kernel.h"

namespace kiln::kernel {

class FusionAnalysis;  // fusion_analysis.h

// A chain is a fusion of two fusions: its computation holds parameters, a gemm fusion, a fusion
// that reads its results, get-tuple-elements of their results, and results of both as the root.
bool IsChain(const ir::Instruction& instruction);

struct ChainPart {
  const ir::Instruction* fusion = nullptr;  // of the chain's computation
  std::vector<int64_t> operands;  // of the fusion's operands: the chain's; ~r: the gemm's result r
  std::vector<int64_t> results;   // of the fusion's results: the chain's, or -1 where it has none
  Kernel kernel;
};

struct Chain {
  ChainPart gemm, rows;
  // Of each of the gemm's results: the result of the rows' kernel in whose memory it is made, or
  // -1. The rows' kernel then puts its own elements where it has read the gemm's.
  std::vector<int64_t> home;

  // The parameters of the kernels that a result of the gemm is.
  ParamId GemmParam(int64_t result) const;
  std::vector<ParamId> RowsParams(int64_t result) const;
  // Whether the rows' kernel reads it.
  bool IsLinked(int64_t result) const { return !RowsParams(result).empty(); }
};

// UNIMPLEMENTED where a fusion of fusions that depend on each other is anything but a chain.
Result<Chain> BuildChain(const ir::Instruction& chain, FusionAnalysis& analysis);
// The chain of two kernels of a program; `is_used` tells whether a result of the gemm has other
// readers. Operands are numbered as in the chain, the gemm's first.
Result<Chain> BuildChain(const ir::Instruction& gemm, const ir::Instruction& rows,
                         const std::function<bool(int64_t result)>& is_used,
                         FusionAnalysis& analysis);

// As MayShareBuffer (fusible.h), of a chain.
bool MayShareInChain(const ir::Instruction& chain, int64_t operand, int64_t output,
                     FusionAnalysis& analysis);

}  // namespace kiln::kernel
