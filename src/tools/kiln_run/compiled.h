// Compiled programs, and their runs on arguments in the host's memory.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/status.h"
#include "ir/ir.h"
#include "tensor/literal.h"
#include "tools/kiln_run/handles.h"
#include "tools/kiln_run/program.h"

namespace kiln::run {

struct CompileSettings {
  std::string disabled_passes;  // names, with commas between
  int64_t memory_limit_bytes = 0;
  std::string dump_folder;  // empty: by the flags
};

struct Figures {
  double compile_ms = 0;
  int64_t kernels = 0, temporary_bytes = 0;
  int64_t flops = 0, bytes = 0;  // of a run, by the cost model
  bool is_partial = false;       // a run may do more
};

class Compiled {
 public:
  // The device belongs to the context, which outlives the object.
  static Result<Compiled> Make(kiln_context* context, kiln_device* device, const Program& program,
                               const CompileSettings& settings);

  Result<Figures> figures() const;

  // Runs it `iterations` times on the same arguments, the parameters' values in order. Returns the
  // arrays of the last run's result; tokens are left out. `seconds` gets the time of each run,
  // without copies from and to the device.
  Result<std::vector<Literal>> Run(std::span<const Literal> arguments, int iterations,
                                   std::vector<double>* seconds) const;

 private:
  Compiled() = default;
  Result<std::vector<Buffer>> Arguments(std::span<const Literal> arguments) const;
  // Those that a run takes over are made anew.
  Status RefreshDonated(std::span<const Literal> arguments, std::vector<Buffer>& buffers) const;

  kiln_device* device_ = nullptr;
  Executable executable_;
  std::vector<Shape> parameters_;
  std::vector<size_t> donated_;  // the numbers of arguments that must be
};

// The arrays and tokens of values, in order; null for a token.
std::vector<const Literal*> LeavesOf(std::span<const Literal> values,
                                     std::span<const Shape> shapes);

}  // namespace kiln::run
