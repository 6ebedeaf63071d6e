// A reduction over windows as a kernel: a nest, or a scan.
#pragma once

#include <optional>

#include "base/status.h"
#include "ir/ir.h"
#include "kernel/kernel.h"
#include "kernel/values.h"

namespace kiln::kernel {

// A reduce-window with windows that each extend the preceding one by one element: it moves along
// `dimension` alone. At result element i the operand's elements up to i + shift have been taken;
// `backward`, those from i + shift on.
struct ScanForm {
  int64_t dimension = 0, shift = 0;
  bool backward = false;
};
std::optional<ScanForm> ScanFormOf(const ir::Instruction& reduce_window);

// How often elements of the operand are read by the kernel.
int64_t WindowReads(const ir::Instruction& reduce_window);

// Adds the reduction to stage `values` is of: `at` is the index of the result's element, by the
// kernel's variables. Variables of the window's own are added to the kernel and the stage.
Status AddWindowReduction(const ir::Instruction& reduce_window, const std::vector<Index>& at,
                          Stage& stage, StageValues& values, Kernel& kernel);

}  // namespace kiln::kernel
