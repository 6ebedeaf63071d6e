// Programs compiled for GPUs, and their runs on the emulated one; or, where the environment
// variable KILN_TEST_DEVICE is CUDA, on the first GPU of the CUDA driver, by code for the same
// architectures.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "base/status.h"
#include "compiler/compiler.h"
#include "device/gpu/device.h"
#include "ir/ir.h"
#include "program/program.h"
#include "support/compiled.h"
#include "tensor/literal.h"

namespace kiln::testing {

// The one GPU of an architecture that tests share. An emulated one looks for conflicts in global
// memory, too. One of CUDA's has the architecture or an older one that is its own. The process ends
// where there is none. Without loops on the device they are driven from the host.
device::GpuDevice& SharedGpu(int sm = 80, bool loops_on_device = true);

// A program on the GPU of its target's architecture, as below.
Result<std::unique_ptr<runtime::LoadedExecutable>> LoadOnGpu(
    const std::shared_ptr<const program::Artefact>& artefact);

// A module's program on a GPU. Arguments and results of runs are in the host's memory; on the
// device they have arrays of exactly their size, elsewhere in each run.
Result<Loaded> LoadOnGpu(const ir::Module& module, bool fuse, device::GpuDevice& device,
                         std::vector<size_t> frozen = {});
Result<Loaded> LoadOnGpu(const ir::Module& module, bool fuse, int sm = 80);
Result<Loaded> LoadOnGpu(std::shared_ptr<const program::Artefact> artefact,
                         device::GpuDevice& device);

// Runs it once.
Result<Literal> RunOnGpu(const Loaded& loaded, const std::vector<Literal>& arguments);

// What ptxas says against the module's PTX for sm_75, sm_80 and sm_90, the last for sm_120 too,
// which runs it; "" for nothing. Where there is no ptxas the PTX is made and not looked at.
std::string AssembleProgram(const ir::Module& module, bool fuse);

// The module's program, fused and op by op, as PTX and on the GPU, twice each, with random
// arguments: the results must be the evaluator's, but for `bound` of them or, by default, what
// functions of its types may be off. How its kernels run, fused and op by op.
std::vector<kernel::GpuSchedule> CheckOnGpu(const std::string& text, double bound = -1);

}  // namespace kiln::testing
