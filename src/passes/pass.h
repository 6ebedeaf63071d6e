// Passes: functions from a module to whether they changed it, by name. Every pass can be dumped,
// timed and switched off; the verifier runs after each where the context asks for it.
#pragma once

#include <cstdint>
#include <functional>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "ir/ir.h"
#include "target/target.h"

namespace kiln::passes {

struct PassEvent {
  std::string_view pipeline, pass;
  int64_t index = 0;  // of this run of a pass in its pipeline
  int64_t microseconds = 0;
  bool changed = false;
  const ir::Module& module;
};

struct PassContext {
  // What the code is for; null where a pass runs without a target (kiln-opt): then the reference's.
  const target::Target* target = nullptr;
  std::set<std::string> disabled;
  bool verify = false;
  // Constant folding makes no literal of more bytes than this, unless its operands have more.
  int64_t fold_limit_bytes = 1 << 20;
  std::function<void(const PassEvent&)> after_pass;
};

struct Pass {
  std::string_view name;
  std::string_view summary;  // one line: what kiln-opt lists
  Result<bool> (*run)(ir::Module&, const PassContext&);
};

// A step of a pipeline: a pass, or passes that run again and again until none changes anything.
struct PipelineStep {
  std::vector<std::string_view> passes;
  bool to_fixed_point = false;
};
using Pipeline = std::vector<PipelineStep>;

// All passes, by name.
std::span<const Pass> AllPasses();
const Pass* FindPass(std::string_view name);

// Fails where a pass fails, and with INTERNAL where one leaves the module broken or a fixed point
// is not reached.
Status RunPipeline(std::string_view name, const Pipeline& pipeline, ir::Module& module,
                   const PassContext& context);

}  // namespace kiln::passes
