#include "tools/kiln_run/shrink.h"

#include <utility>
#include <vector>

#include "base/output_file.h"
#include "base/strings.h"
#include "ir/sample.h"
#include "ir/text.h"
#include "tensor/array_file.h"
#include "tools/reduce/reduce.h"

namespace kiln::run {
namespace {

class Shrinker {
 public:
  Shrinker(const Program& program, std::string kind, const JudgeOptions& options, int deadline_s)
      : program_(program), kind_(std::move(kind)), options_(options.ForTries()) {
    workers_.deadline_s = deadline_s;
  }

  // The smallest module found, or why there is none.
  Result<std::unique_ptr<ir::Module>> Run() {
    KILN_ASSIGN_OR_RETURN(Arguments arguments, MakeArguments(*program_.module, options_.arguments));
    given_ = std::move(arguments.values);
    if (!Fails(*program_.module)) return Internal("the failure did not happen again");
    return tools::Reduce(*program_.module, [&](const ir::Module& m) { return Fails(m); });
  }

  // Those of a parameter of the program where it has one of that name and shape.
  std::vector<Literal> ArgumentsOf(const ir::Module& module) const {
    std::vector<Literal> values;
    if (options_.arguments.files.empty()) {
      auto made = MakeArguments(module, options_.arguments);
      return made.ok() ? std::move(made->values) : std::move(values);
    }
    values = ir::SampleArguments(module, options_.arguments.seed);
    for (size_t k = 0; k < values.size(); ++k) {
      const ir::Instruction* p = module.entry()->parameter(static_cast<int64_t>(k));
      for (const ir::Instruction* old : program_.module->entry()->parameters()) {
        if (old->name() != p->name() || !old->shape().SameTypeAndDimensions(p->shape())) continue;
        values[k] = given_[static_cast<size_t>(old->attributes().Int(Attr::kParameterNumber))];
      }
    }
    return values;
  }

 private:
  bool Fails(const ir::Module& module) const {
    Outcome outcome;
    ForEachFile(
        {""}, workers_,
        [&](const std::string&) {
          const Record record = Judge(ProgramOf(module), ArgumentsOf(module), options_);
          return Outcome{Verdict::kFail, DumpJson(ToJson(record, options_))};
        },
        [&](size_t, const Outcome& made) { outcome = made; });
    return FailureKind(FileReport("", outcome)) == kind_;
  }

  const Program& program_;
  const std::string kind_;
  const JudgeOptions options_;
  WorkerOptions workers_;
  std::vector<Literal> given_;
};

Status WriteText(const std::string& path, std::string_view text) {
  auto file = OutputFile::Create(path);
  if (!file.ok()) return file.status();
  KILN_RETURN_IF_ERROR(file->Write(text));
  return file->Commit();
}

// The command that shows the failure, as a comment of the file.
std::string Comment(const std::string& kind, const JudgeOptions& options, const std::string& to,
                    size_t inputs) {
  std::string command = "kiln-run";
  if (options.device == "GPU:0") command += " --platform=gpu";
  if (options.bounds.absolute) command += Cat(" --abs-error=", *options.bounds.absolute);
  if (options.bounds.relative) command += Cat(" --rel-error=", *options.bounds.relative);
  const std::string& disabled = options.compile.disabled_passes;
  if (!disabled.empty()) command += Cat(" --disable=", disabled);
  if (options.arguments.seed != 0) command += Cat(" --seed=", options.arguments.seed);
  for (size_t k = 0; k < inputs; ++k)
    command += Cat(k == 0 ? " --inputs=" : ",", to, ".", k, ".npy");
  std::string line = kind;
  for (char& c : line) {
    if (c == '\n' || c == '\r') c = ' ';
  }
  return Cat("// ", line, ": ", command, " ", to, "\n");
}

Result<Json> Shrink(const std::string& path, const std::string& kind, const JudgeOptions& options,
                    int deadline_s, const std::string& to) {
  KILN_ASSIGN_OR_RETURN(const Program program, ReadProgram(path, options.format));
  Shrinker shrinker(program, kind, options, deadline_s);
  KILN_ASSIGN_OR_RETURN(const auto small, shrinker.Run());
  std::vector<Literal> inputs;
  if (!options.arguments.files.empty()) inputs = shrinker.ArgumentsOf(*small);
  for (size_t k = 0; k < inputs.size(); ++k) {
    if (!inputs[k].shape().is_array()) return Unimplemented("arguments in tuples as files");
    KILN_RETURN_IF_ERROR(WriteNpy(Cat(to, ".", k, ".npy"), inputs[k]));
  }
  KILN_RETURN_IF_ERROR(
      WriteText(to, Cat(Comment(kind, options, to, inputs.size()), ir::ToHloText(*small))));
  return Json{{"file", to},
              {"instructions_before", program.module->instruction_count()},
              {"instructions", small->instruction_count()}};
}

}  // namespace

Json ReduceFailure(const std::string& path, const Json& report, const JudgeOptions& options,
                   int deadline_s, const std::string& to) {
  auto reduced = Shrink(path, FailureKind(report), options, deadline_s, to);
  if (reduced.ok()) return *std::move(reduced);
  return {{"failure", reduced.status().ToString()}};
}

}  // namespace kiln::run
