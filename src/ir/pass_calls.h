// Custom calls that XLA's builders and passes make for the passes behind them, as the ops that they
// stand for. Private to the text reader.
#pragma once

#include <string_view>

#include "ir/text_foreign.h"

namespace kiln::ir {

// Whether the target is one of these:
//   X64SplitLow, X64SplitHigh, X64Combine
//                             halves of 64 bits; of an f64 the f32 next to it, and the rest
//   SliceToDynamic, PadToStatic
//                             an array with sizes below its bounds, and back
//   __op$quantize, __op$dequantize
//                             blocks of the last dimension with a scale each
//   _SPMDInternalOp_RotateRight
//                             the last elements along a dimension in front of the others
//   xla.gpu.ext.cub_sort*, __cub$DeviceRadixSort*
//                             sort of keys, and of values with them
//   SetBound, __xla_internal_call_marker_*
//                             the operands
//   xla_builder.math.*        the function of that name
bool IsPassCall(std::string_view target);

// The value of such a call, at the end of the computation; null for what its text does not tell.
Instruction* PassCall(const ForeignInstruction& call);

}  // namespace kiln::ir
