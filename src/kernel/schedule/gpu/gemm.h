// Gemms on a GPU: a block computes a tile of the result from pieces of both factors in shared
// memory.
//
//   sum over k of x[batch, m, k] * y[batch, n, k]
//
// m, n, k and batch stand for any number of variables. The factors may be anything that the kernel
// computes, and so may be what is made of the sum.
#pragma once

#include <optional>
#include <vector>

#include "kernel/kernel.h"
#include "kernel/schedule/gpu/schedule.h"
#include "target/target.h"

namespace kiln::kernel {

// The parts of a gemm; the schedule's tiles are of `rows` and `columns`.
struct GpuFactors {
  NodeId x, y;  // of stage 0
  std::vector<VariableId> batch, rows, columns, inner;
};

// Nothing where stage 0 is not one sum of products, each factor of which has variables of its own.
// Columns are those along which results lie in order, where one of both has them.
std::optional<GpuFactors> FindGpuFactors(const Kernel& kernel);

// The nodes of stage 0 that a node is made of, itself among them.
std::vector<NodeId> GpuNodesOf(const Stage& stage, NodeId node);

// By how many elements an index grows from point to point of several variables, the last of which
// goes fastest; nothing where that is not the same everywhere. 0 without variables.
std::optional<int64_t> GpuStrideOf(const Kernel& kernel, const Index& index,
                                   const std::vector<VariableId>& variables);

// Every schedule that a gemm could have, the best one first.
std::vector<GpuSchedule> GpuGemmSchedules(const Kernel& kernel, const target::Gpu& gpu);
std::optional<GpuSchedule> ScheduleGpuGemm(const Kernel& kernel, const target::Gpu& gpu);

}  // namespace kiln::kernel
