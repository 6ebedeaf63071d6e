#include "session/unit_compiler.h"

#include <utility>

#include "base/strings.h"
#include "base/trace.h"
#include "client/compile.h"
#include "compiler/backend.h"
#include "program/steps.h"
#include "session/placement.h"

namespace kiln::session {

namespace {

class BackgroundJob : public client::Queue::Job {
 public:
  explicit BackgroundJob(std::function<void()> work) : work_(std::move(work)) {}
  bool Run() noexcept override {
    work_();
    return false;
  }

 private:
  std::function<void()> work_;
};

}  // namespace

UnitCompiler::UnitCompiler(client::Client& client)
    : client_(client), op_by_op_(client.devices().size()), background_(0, "kiln compile") {}

void UnitCompiler::InBackground(std::function<void()> work) {
  background_.Push(std::make_unique<BackgroundJob>(std::move(work)), client::Queue::Order::kLast,
                   [] {});
}

// XLA devices compile everything, and the evaluator goes op by op itself.
bool UnitCompiler::RunsOpByOp(const client::Device& device) {
  return !CompilesAlways(device) && compiler::BackendFor(device.runtime().target())->runs_kernels();
}

Result<MadeProgram> UnitCompiler::Compile(client::Device& device,
                                          std::unique_ptr<ir::Module> module,
                                          const Interrupt& interrupt, int64_t memory_limit_bytes) {
  const std::shared_ptr<TraceSink> trace = client_.trace();
  const TraceSpan span(trace.get(), Cat("compile ", module->name()), "compile");
  client::CompileOptions options{.start_ns = TraceSink::Now()};
  options.compiler.interrupt = interrupt;
  options.compiler.memory_limit_bytes = memory_limit_bytes;
  KILN_ASSIGN_OR_RETURN(Ref<client::CompiledExecutable> compiled,
                        client::Compile(device, std::move(module), std::move(options)));
  return MadeProgram{.executable = Ref<const client::Executable>::Share(compiled.get()),
                     .info = {.kernels = program::CountKernels(compiled->program().steps),
                              .temporary_bytes = compiled->program().arena_bytes,
                              .compile_microseconds = compiled->compile_microseconds()}};
}

Result<MadeProgram> UnitCompiler::Prepare(client::Device& device,
                                          std::unique_ptr<ir::Module> module) {
  const std::shared_ptr<TraceSink> trace = client_.trace();
  const TraceSpan span(trace.get(), Cat("prepare the ops of ", module->name()), "session");
  OpByOpCompiler* compiler = nullptr;
  {
    std::lock_guard lock(mutex_);
    auto& found = op_by_op_[static_cast<size_t>(device.number())];
    if (!found) {
      KILN_ASSIGN_OR_RETURN(found, OpByOpCompiler::Create(device));
    }
    compiler = found.get();
  }
  KILN_ASSIGN_OR_RETURN(Ref<const OpByOpExecutable> prepared, compiler->Prepare(std::move(module)));
  return MadeProgram{.executable = Ref<const client::Executable>::Share(prepared.get()),
                     .info = prepared->info()};
}

}  // namespace kiln::session
