// The compiler's part for one kind of target. A backend is a folder here, and a row of BackendFor.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "codegen/codegen.h"
#include "codegen/lowered_program.h"
#include "compiler/waves.h"
#include "kernel/schedule/scheduler.h"
#include "passes/pass.h"
#include "target/target.h"

namespace kiln::compiler {

class Backend {
 public:
  virtual ~Backend() = default;
  Backend(const Backend&) = delete;
  Backend& operator=(const Backend&) = delete;

  const target::Target& target() const { return target_; }
  const kernel::Scheduler& scheduler() const { return *scheduler_; }

  // In the names of dumps.
  virtual std::string_view platform() const = 0;
  // Whether its programs are kernels. If not, a program's code is the module's text, and none of
  // the functions below is called.
  virtual bool runs_kernels() const = 0;
  // The pipeline of a module before lowering, with fusion.
  virtual const passes::Pipeline& pipeline() const = 0;
  // Whether functions outside generated code find their scratch in the program's arena.
  virtual bool calls_have_scratch() const = 0;
  // Whether loops are told how often they run: where it costs something to ask their conditions.
  virtual bool counts_trips() const = 0;
  // The last additions, when all steps exist and the program has its id.
  virtual void Finish(codegen::LoweredProgram& lowered) const = 0;
  // For a program whose launches are run one by one, on so many threads: those that may run at the
  // same time. May reorder its steps. By default there are none.
  virtual Waves FindWaves(codegen::LoweredProgram& lowered, int threads) const {
    (void)lowered, (void)threads;
    return {};
  }
  virtual Result<std::vector<std::string>> Generate(const codegen::LoweredProgram& lowered,
                                                    const codegen::Options& options) const = 0;

 protected:
  explicit Backend(const target::Target& target)
      : target_(target), scheduler_(kernel::SchedulerFor(target_)) {}

 private:
  const target::Target target_;
  const std::unique_ptr<const kernel::Scheduler> scheduler_;
};

std::unique_ptr<const Backend> BackendFor(const target::Target& target);

}  // namespace kiln::compiler
