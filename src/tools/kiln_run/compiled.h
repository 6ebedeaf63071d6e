// Compiled programs, and their runs on arguments in the host's memory.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/status.h"
#include "draw/graph.h"
#include "ir/ir.h"
#include "tensor/literal.h"
#include "tools/kiln_run/handles.h"
#include "tools/kiln_run/program.h"

namespace kiln::run {

struct CompileSettings {
  std::string disabled_passes;  // names, with commas between
  int64_t memory_limit_bytes = 0;
  std::string dump_folder;         // empty: by the flags
  kiln_dump_forms dump_forms = 0;  // of dumps in the folder; 0: the usual ones
};

struct Figures {
  double compile_ms = 0;
  int64_t kernels = 0, temporary_bytes = 0;
  int64_t flops = 0, bytes = 0;  // of a run, by the cost model
  bool is_partial = false;       // a run may do more
};

// The launches of a kernel, or the calls of a function, in a run.
struct Launches {
  std::string name;  // of the kernel or function
  std::string ops;   // that it does, with ", " between
  draw::Work work;
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
  // Runs it once more, with a record of its launches.
  Result<std::vector<Launches>> Profile(std::span<const Literal> arguments) const;

 private:
  Compiled() = default;
  Result<std::vector<Buffer>> Arguments(std::span<const Literal> arguments) const;
  // Those that a run takes over are made anew.
  Status RefreshDonated(std::span<const Literal> arguments, std::vector<Buffer>& buffers) const;
  // Runs it on the arguments; `trace` may be null. Returns the results.
  Result<std::vector<Buffer>> RunOnce(const std::vector<Buffer>& arguments,
                                      kiln_trace* trace) const;

  kiln_context* context_ = nullptr;
  kiln_device* device_ = nullptr;
  Executable executable_;
  std::vector<Shape> parameters_;
  std::vector<size_t> donated_;  // the numbers of arguments that must be
};

// The arrays and tokens of values, in order; null for a token.
std::vector<const Literal*> LeavesOf(std::span<const Literal> values,
                                     std::span<const Shape> shapes);

}  // namespace kiln::run
