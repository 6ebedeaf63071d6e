#include "compiler/compiler.h"

#include <algorithm>
#include <chrono>

#include "base/strings.h"
#include "codegen/codegen.h"
#include "compiler/backend.h"
#include "compiler/identify.h"
#include "compiler/optimise.h"
#include "draw/dot.h"
#include "draw/page.h"
#include "draw/svg.h"
#include "frame/frame.h"
#include "ir/analysis/cost.h"
#include "ir/analysis/frozen.h"
#include "ir/analysis/session_only.h"
#include "ir/text.h"
#include "ir/verifier.h"
#include "passes/expand/bounded.h"
#include "passes/pipelines.h"
#include "passes/transfers.h"
#include "program/memory.h"

namespace kiln::compiler {
namespace {

#ifdef NDEBUG
constexpr bool kDebug = false;
#else
constexpr bool kDebug = true;
#endif

constexpr std::string_view kAfter = "_after_optimizations";

// Constants of REFERENCE's programs that are more are not in the text of its code.
constexpr int64_t kMostElementsInCode = 64;

std::string Padded(int64_t number, size_t width) {
  std::string digits = Cat(number);
  return std::string(digits.size() < width ? width - digits.size() : 0, '0') + digits;
}

bool HasSymbol(const Shape& shape) {
  for (const Dimension& d : shape.dimensions()) {
    if (d.is_symbolic()) return true;
  }
  return std::any_of(shape.elements().begin(), shape.elements().end(), HasSymbol);
}

Status CheckSymbols(const ir::Module& module) {
  for (const auto& c : module.computations()) {
    for (ir::Instruction* i : c->instructions()) {
      if (HasSymbol(i->shape()) || !i->attributes().Symbolic().empty()) {
        return InvalidArgument("'", i->name(), "' has the shape ", i->shape(),
                               "; sizes must be put in for symbols before compiling");
      }
    }
  }
  return OkStatus();
}

// The dumps of a compilation, under XLA's names.
class Dumps {
 public:
  Dumps(const ir::Module& module, const Options& options)
      : options_(options), prefix_(DumpPrefix(module.name(), options.module_number)) {
    if (options.dump && options.dump_forms.html) page_ = std::make_unique<draw::Page>(prefix_);
    Module("before_optimizations", module, options.dump_forms);
    if (page_) page_->AddGraph("before", module, printing());
  }

  const std::string& prefix() const { return prefix_; }

  void Text(std::string_view suffix, std::string_view text) const {
    if (options_.dump) options_.dump(Cat(prefix_, suffix), text);
  }
  void Module(std::string_view suffix, const ir::Module& module, const DumpForms& forms) const {
    if (!options_.dump) return;
    if (forms.text) Text(Cat(suffix, ".txt"), ir::ToHloText(module, printing()));
    if (forms.dot) Text(Cat(suffix, ".dot"), draw::ToDot(module));
    if (forms.svg) Text(Cat(suffix, ".svg"), draw::ToSvg(module));
    if (forms.html) Text(Cat(suffix, ".html"), draw::ToHtml(module, printing()));
  }
  void Stage(const passes::Stage& stage) const {
    if (page_) {
      page_->stages().Add(stage.pipeline == kPipelineName ? std::string(stage.after)
                                                          : Cat(stage.pipeline, ": ", stage.after),
                          ir::ToHloText(stage.module, printing()));
    }
    const auto& wanted = options_.dumps_pass;
    if (wanted && !wanted(stage.after) && !wanted(stage.before)) return;
    Module(passes::DumpName(stage), stage.module, options_.dump_stage_forms);
  }
  // An optimised module, or a frozen part of it.
  void Optimised(std::string_view platform, std::string_view part, const ir::Module& module) const {
    Module(Cat(platform, kAfter, part), module, options_.dump_forms);
    if (page_) page_->AddGraph(Cat("after", part), module, printing());
  }
  // The page of what was dumped.
  void Page() const {
    if (page_) Text("passes.html", page_->ToHtml());
  }

 private:
  ir::PrintOptions printing() const {
    return {.max_literal_elements = options_.dump_literal_elements};
  }

  const Options& options_;
  const std::string prefix_;
  std::unique_ptr<draw::Page> page_;  // null: not wanted
};

// The module as PTX, whatever it is compiled for.
Status DumpPtx(std::unique_ptr<ir::Module> module, const std::string& prefix,
               const Options& options) {
  KILN_ASSIGN_OR_RETURN(target::Target gpu, target::NvidiaGpu(options.dump_ptx_sm));
  Options quiet = options;
  quiet.dump_ptx_sm = 0;
  quiet.trace = nullptr;
  quiet.dump_forms = quiet.dump_stage_forms = {};
  quiet.at_stage = nullptr;
  quiet.dump = [&](const std::string& name, std::string_view text) {
    if (name == Cat(prefix, "ptx")) options.dump(name, text);
  };
  return Compile(std::move(module), gpu, quiet).status();
}

Result<program::Artefact> CompileModule(std::unique_ptr<ir::Module> module,
                                        const target::Target& given, const Options& options);

}  // namespace

std::string DumpPrefix(std::string_view module_name, int64_t number) {
  return Cat("module_", Padded(number, 4), ".", module_name, ".");
}

Result<program::Artefact> Compile(std::unique_ptr<ir::Module> module, const target::Target& target,
                                  const Options& options) {
  const std::string name = module->name();
  Result<program::Artefact> artefact = CompileModule(std::move(module), target, options);
  const Code code = artefact.status().code();
  if (code != Code::kCancelled && code != Code::kDeadlineExceeded) return artefact;
  return artefact.status().WithContext(Cat("compiling '", name, "'"));
}

namespace {

Result<program::Artefact> CompileModule(std::unique_ptr<ir::Module> module,
                                        const target::Target& given, const Options& options) {
  target::Target target = given;
  target.gpu.tf32 = options.allow_tf32;
  target.cpu.allow_bf16 = options.allow_bf16;
  target.cpu.keep_subnormals = options.keep_subnormals;
  auto start = std::chrono::steady_clock::now();
  KILN_RETURN_IF_ERROR(options.interrupt.Check());
  {
    TraceSpan span(options.trace, "verify", "stage");
    KILN_RETURN_IF_ERROR(ir::CheckNotSessionOnly(*module));
    KILN_RETURN_IF_ERROR(CheckSymbols(*module));
    if (!options.is_verified || options.verify || kDebug) KILN_RETURN_IF_ERROR(ir::Verify(*module));
    KILN_RETURN_IF_ERROR(passes::PrepareBounded(*module));
    passes::ResolveTransfers(*module);
  }
  ir::MarkFrozen(*module, options.frozen);
  const Dumps dumps(*module, options);

  program::Artefact artefact;
  const ir::Operations operations = ir::OperationsOf(*module);
  const std::unique_ptr<const Backend> backend = BackendFor(target);
  if (!backend->runs_kernels()) {
    program::Program& program = artefact.program;
    program.name = module->name();
    program.target = target.ToString();
    program.frame_version = KILN_FRAME_VERSION;
    program.signature = SignatureOf(*module);
    program.argument_alignments.assign(program.signature.parameters.size(), 1);
    program.flops = operations.flops;
    program.transcendentals = operations.transcendentals;
    program.frozen = ir::FrozenLeaves(*module);
    artefact.code = {ir::ToHloText(
        *module, {.max_literal_elements = kMostElementsInCode, .elided = &program.constants})};
    program.id = IdOfText(program, target, artefact.code[0]);
    dumps.Page();
  } else {
    if (options.dump && options.dump_ptx_sm != 0) {
      KILN_RETURN_IF_ERROR(DumpPtx(module->Clone(), dumps.prefix(), options));
    }
    passes::PassContext context;
    context.target = &target;
    context.disabled = options.disabled_passes;
    context.verify = options.verify || kDebug;
    context.interrupt = options.interrupt;
    if (options.trace) {
      context.after_pass = [&](const passes::PassEvent& event) {
        const int64_t duration = 1000 * event.microseconds;
        options.trace->Add({std::string(event.pass),
                            "pass",
                            TraceSink::Now() - duration,
                            duration,
                            TraceSink::LaneOfThisThread(),
                            {{"changed", int64_t{event.changed}}}});
      };
    }
    if (options.dump || options.at_stage) {
      context.at_stage = [&](const passes::Stage& stage) {
        dumps.Stage(stage);
        if (options.at_stage) options.at_stage(stage, backend->platform());
      };
    }
    const passes::Pipeline& pipeline =
        options.fuse ? backend->pipeline() : passes::OpByOpPipeline();
    const std::string after = Cat(backend->platform(), kAfter);
    const auto dump_after = [&](std::string_view part, const ir::Module& of) {
      dumps.Optimised(backend->platform(), part, of);
    };
    KILN_ASSIGN_OR_RETURN(Lowered lowered, OptimiseAndLower(module, *backend, pipeline, context,
                                                            options, dump_after));
    lowered.program.flops = operations.flops;
    lowered.program.transcendentals = operations.transcendentals;
    dumps.Page();
    if (options.dump) {
      dumps.Text(Cat(after, "-buffer-assignment.txt"), lowered.assignment.ToString());
      dumps.Text("plan.txt", lowered.ToString());
      dumps.Text(Cat(after, "-memory-usage-report.txt"),
                 program::MemoryReport(lowered.program) + lowered.assignment.MemoryReport());
      dumps.Text(Cat(after, "-cost-analysis.txt"), program::CostReport(lowered.program));
    }
    if (options.lowered) options.lowered(lowered);
    codegen::Options codegen;
    codegen.optimization = options.optimization;
    codegen.threads = options.threads;
    codegen.interrupt = options.interrupt;
    codegen.trace = options.trace;
    if (options.dump) {
      codegen.dump = [&](std::string_view suffix, std::string_view text) {
        dumps.Text(suffix, text);
      };
    }
    TraceSpan generation(options.trace, "generate code", "stage");
    KILN_ASSIGN_OR_RETURN(artefact.code, backend->Generate(lowered, codegen));
    artefact.program = std::move(lowered.program);
  }
  artefact.compile_microseconds = std::chrono::duration_cast<std::chrono::microseconds>(
                                      std::chrono::steady_clock::now() - start)
                                      .count();
  return artefact;
}

}  // namespace
}  // namespace kiln::compiler
