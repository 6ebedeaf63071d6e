// Programs compiled for GPUs, and their runs on the emulated one.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "base/status.h"
#include "compiler/compiler.h"
#include "device/gpu/device.h"
#include "ir/ir.h"
#include "plan/plan.h"
#include "tensor/literal.h"

namespace kiln::testing {

// A program on an emulated GPU of one architecture.
struct LoadedOnGpu {
  std::shared_ptr<const plan::Artefact> artefact;
  std::unique_ptr<runtime::LoadedExecutable> executable;
};

// The one emulated GPU of an architecture that tests share. It looks for conflicts in global
// memory, too.
device::GpuDevice& EmulatedGpu(int sm = 80);

Result<LoadedOnGpu> LoadOnGpu(const ir::Module& module, bool fuse, int sm = 80);

// Runs it once. Arguments and results are in device memory of exactly their size.
Result<Literal> RunOnGpu(const LoadedOnGpu& loaded, const std::vector<Literal>& arguments,
                         int sm = 80);

// The same, of a module: runs it twice, the second time with other addresses, as a graph.
Result<Literal> RunOnGpu(const ir::Module& module, const std::vector<Literal>& arguments, bool fuse,
                         int sm = 80);

// What ptxas says against the module's PTX for sm_75, sm_80 and sm_90; "" for nothing. Where there
// is no ptxas the PTX is made and not looked at.
std::string AssembleProgram(const ir::Module& module, bool fuse);

}  // namespace kiln::testing
