// Module and target in, artefact out.
#pragma once

#include <functional>
#include <memory>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "base/interrupt.h"
#include "base/status.h"
#include "base/trace.h"
#include "codegen/codegen.h"
#include "ir/ir.h"
#include "passes/pass.h"
#include "program/program.h"
#include "target/target.h"

namespace kiln::compiler {

// Enough for tables and masks of programs that are read again; a model's weights take gigabytes as
// text. (XLA's dumps leave out constants of more than 10 elements.)
inline constexpr int64_t kDumpLiteralElements = 256;

// The forms of a module in dumps.
struct DumpForms {
  bool text = false;  // HLO
  bool dot = false;
  bool html = false;  // of `dump_forms`, also a page of the graphs and passes
  bool svg = false;
};

struct Options {
  std::set<std::string> disabled_passes;
  // Every op a kernel of its own, for op-by-op execution.
  bool fuse = true;
  // Verify after every pass and every emission; always on in debug builds.
  bool verify = false;
  // The module was verified before, as it is.
  bool is_verified = false;
  codegen::Optimization optimization = codegen::Optimization::kAuto;
  // GPUs that have tf32 may use it for products of f32.
  bool allow_tf32 = false;
  // CPUs that multiply bf16 may do so for products of f32; where they keep no subnormal numbers in
  // products of bf16, they may not.
  bool allow_bf16 = false;
  bool keep_subnormals = false;
  // Frozen arguments (program/frozen.h), by number: the leaves of the parameters, arrays whose
  // memory no result has.
  std::vector<size_t> frozen;
  // The most bytes of the program's temporaries; 0: no limit. They fit in it, or compiling fails
  // with RESOURCE_EXHAUSTED.
  int64_t memory_limit_bytes = 0;
  int threads = 1;
  // Ends compiling with CANCELLED or DEADLINE_EXCEEDED.
  Interrupt interrupt;
  // Receives every stage as text under XLA's file names ("module_0001.name.suffix").
  std::function<void(const std::string& file_name, std::string_view text)> dump;
  // The forms of the module before and after optimization, and between its passes.
  DumpForms dump_forms = {.text = true}, dump_stage_forms = {.dot = true};
  // Of the stages between passes, those before and after a pass of such a name; null: all.
  std::function<bool(std::string_view pass)> dumps_pass;
  // Sees the module before each pass and at the end of the pipeline, unless null; the platform is
  // "cpu" or "gpu".
  std::function<void(const passes::Stage& stage, std::string_view platform)> at_stage;
  // Constants of more elements are "{...}" in dumps.
  int64_t dump_literal_elements = kDumpLiteralElements;
  int64_t module_number = 0;  // in those names
  // Where not 0 and `dump` is set, every kernel is dumped as PTX for this architecture too (75, 80,
  // 86, 89 or 90), for any target: the GPU's form of the same kernels.
  int dump_ptx_sm = 0;
  // Sees the program and its kernels before code is generated of them.
  std::function<void(const codegen::LoweredProgram& lowered)> lowered;
  // Gets a bar for each pass and each other piece of the work, unless it is null.
  TraceSink* trace = nullptr;
};

// "module_0001.name.": the prefix of the names of a module's dumps, as in XLA.
std::string DumpPrefix(std::string_view module_name, int64_t number);

// The module must be static (specialised). UNIMPLEMENTED names the op that the target lacks,
// INVALID_ARGUMENT one that runs in sessions only.
Result<program::Artefact> Compile(std::unique_ptr<ir::Module> module, const target::Target& target,
                                  const Options& options);

}  // namespace kiln::compiler
