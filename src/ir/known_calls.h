// Custom calls of XLA's passes and of its GPU backend, as the ops that they stand for. Private to
// the text reader.
#pragma once

#include "ir/text_foreign.h"

namespace kiln::ir {

// The value of a custom call whose target is `call.name`, at the end of the computation:
//   TopK, __gpu$TopK             topk, by the direction of its comparator
//   __op$block_scaled_dot        scaled-dot
//   __cublas$gemm, __cublas$lt$matmul, __cublas$lt$matmul$f8
//                                dot, times alpha and the scales of operands in eight bits, plus
//                                beta times the third operand, a bias; of it relu, gelu or silu
//   __cudnn$convForward, __cudnn$convBiasActivationForward, __cudnn$convBackwardInput,
//   __cudnn$convBackwardFilter   convolutions, scaled, with a bias, a side input and relu
//   AllocateBuffer               zeros
//   those of pass_calls.h
// A workspace in the result is zeros. Null for other targets, and for what these do not tell.
Instruction* KnownCall(const ForeignInstruction& call);

}  // namespace kiln::ir
