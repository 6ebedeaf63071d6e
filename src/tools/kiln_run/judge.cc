#include "tools/kiln_run/judge.h"

#include <algorithm>
#include <chrono>
#include <utility>

#include "base/strings.h"
#include "tensor/array_file.h"
#include "tools/folder.h"

namespace kiln::run {
namespace {

// Writes NAME0.npy and so on into a folder, unless that is "". Tokens, which are null, are left
// out.
Status WriteArrays(const std::string& folder, std::string_view name,
                   const std::vector<const Literal*>& arrays) {
  if (folder.empty()) return OkStatus();
  KILN_RETURN_IF_ERROR(tools::MakeFolder(folder));
  size_t number = 0;
  for (const Literal* array : arrays) {
    if (!array) continue;
    KILN_RETURN_IF_ERROR(WriteNpy(Cat(folder, "/", name, number++, ".npy"), *array));
  }
  return OkStatus();
}

// Fails at a step, which the record names.
class Judging {
 public:
  Judging(const Program& program, const JudgeOptions& options, Record& record)
      : program_(program), options_(options), record_(record) {}

  void Run(std::span<const Literal> arguments) {
    if (!At("writing arguments", WriteArguments(arguments))) return;
    Context context;
    kiln_device* device = nullptr;
    if (!At("the device", OpenContext(options_.device, 0, &context, &device))) return;
    std::vector<Literal> values;
    if (!RunOnPlatform(context.get(), device, arguments, values)) return;
    for (const Literal& value : values) {
      record_.results.push_back({value.shape().ToString(), {}});
      if (options_.print) record_.values.push_back(value.ToString());
    }
    std::vector<const Literal*> arrays;
    for (const Literal& value : values) arrays.push_back(&value);
    if (!At("writing results", WriteArrays(options_.output_folder, "result", arrays))) return;
    if (options_.has_reference) CompareWithReference(context.get(), arguments, values);
  }

 private:
  bool At(std::string_view step, Status status) {
    if (status.ok()) return true;
    record_.failed_at = step;
    record_.failure = std::move(status);
    return false;
  }

  Status WriteArguments(std::span<const Literal> arguments) const {
    std::vector<Shape> shapes;
    for (const Literal& value : arguments) shapes.push_back(value.shape());
    return WriteArrays(options_.input_folder, "argument", LeavesOf(arguments, shapes));
  }

  bool RunOnPlatform(kiln_context* context, kiln_device* device, std::span<const Literal> arguments,
                     std::vector<Literal>& values) {
    CompileSettings settings = options_.compile;
    std::optional<StageFolder> stages;
    if (options_.pictures.any()) {
      auto folder = StageFolder::Make();
      if (!At("pictures", folder.status())) return false;
      stages.emplace(*std::move(folder));
      settings.dump_folder = stages->path();
      settings.dump_forms = KILN_DUMP_TEXT;
    }
    auto compiled = Compiled::Make(context, device, program_, settings);
    if (!At("compiling", compiled.status())) {
      // What there is may show why; the failure is the compilation's.
      if (stages) (void)Draw(*stages, {});
      return false;
    }
    auto figures = compiled->figures();
    if (!At("compiling", figures.status())) return false;
    record_.figures = *figures;
    auto results = compiled->Run(arguments, options_.iterations, &record_.seconds);
    if (stages) {
      std::vector<Launches> launches;
      if (results.ok()) {
        auto profile = compiled->Profile(arguments);
        if (!At("running", profile.status())) return false;
        launches = *std::move(profile);
      }
      if (!At("pictures", Draw(*stages, launches))) return false;
    }
    if (!At("running", results.status())) return false;
    if (record_.seconds.size() > 1) record_.seconds.erase(record_.seconds.begin());
    std::ranges::sort(record_.seconds);
    values = *std::move(results);
    return true;
  }

  Status Draw(const StageFolder& stages, std::span<const Launches> launches) const {
    if (!options_.compile.dump_folder.empty()) {
      KILN_RETURN_IF_ERROR(stages.CopyTo(options_.compile.dump_folder));
    }
    return WritePictures(options_.pictures, program_.name, *program_.module, stages.path(),
                         launches);
  }

  void CompareWithReference(kiln_context* context, std::span<const Literal> arguments,
                            const std::vector<Literal>& values) {
    const auto start = std::chrono::steady_clock::now();
    kiln_device* device = nullptr;
    if (!At("the reference",
            StatusOf(kiln_context_find_device(context, "REFERENCE:0", 11, &device)))) {
      return;
    }
    auto compiled = Compiled::Make(context, device, program_, {});
    if (!At("the reference", compiled.status())) return;
    auto expected = compiled->Run(arguments, 1, nullptr);
    if (!At("the reference", expected.status())) return;
    const std::chrono::duration<double, std::milli> time = std::chrono::steady_clock::now() - start;
    record_.reference_ms = time.count();
    const std::vector<const ir::Instruction*> sources = ResultSources(*program_.module);
    for (size_t k = 0; k < values.size(); ++k) {
      record_.results[k].comparison =
          Compare(values[k], (*expected)[k], *sources[k], options_.bounds);
      if (options_.print) record_.expected.push_back((*expected)[k].ToString());
    }
  }

  const Program& program_;
  const JudgeOptions& options_;
  Record& record_;
};

void AddSources(const ir::Instruction* i, const Shape& shape,
                std::vector<const ir::Instruction*>& sources) {
  if (!shape.is_tuple()) {
    if (shape.is_array()) sources.push_back(i);
    return;
  }
  for (size_t k = 0; k < shape.elements().size(); ++k) {
    const bool known =
        i->opcode() == Opcode::kTuple && i->shape().is_tuple() && &i->shape() == &shape;
    const ir::Instruction* element = known ? i->operand(static_cast<int64_t>(k)) : i;
    AddSources(element, known ? element->shape() : shape.elements()[k], sources);
  }
}

}  // namespace

JudgeOptions JudgeOptions::ForTries() const {
  JudgeOptions options = *this;
  options.iterations = 1;
  options.print = false;
  options.input_folder.clear();
  options.output_folder.clear();
  options.compile.dump_folder.clear();
  options.pictures = {};
  return options;
}

bool Record::differs() const {
  return std::ranges::any_of(
      results, [](const ResultRecord& r) { return r.comparison && !r.comparison->agrees(); });
}

double Record::median_seconds() const {
  if (seconds.empty()) return 0;
  const size_t half = seconds.size() / 2;
  return seconds.size() % 2 == 1 ? seconds[half] : (seconds[half - 1] + seconds[half]) / 2;
}

std::vector<const ir::Instruction*> ResultSources(const ir::Module& module) {
  std::vector<const ir::Instruction*> sources;
  const ir::Instruction* root = module.entry()->root();
  AddSources(root, root->shape(), sources);
  return sources;
}

Record Judge(const std::string& path, const JudgeOptions& options) {
  auto program = ReadProgram(path, options.format);
  if (program.ok()) return Judge(*program, options);
  Record record;
  record.failed_at = "reading";
  record.failure = program.status();
  return record;
}

Record Judge(const Program& program, const JudgeOptions& options) {
  auto arguments = MakeArguments(*program.module, options.arguments);
  if (!arguments.ok()) {
    Record record;
    record.module = program.module->name();
    record.failed_at = "the arguments";
    record.failure = arguments.status();
    return record;
  }
  Record record = Judge(program, arguments->values, options);
  if (!options.arguments.files.empty() && arguments->seeded > 0) {
    record.notes.push_back(Cat(arguments->seeded, " arguments are in no file, and were made up"));
  }
  if (!arguments->unused.empty()) {
    record.notes.push_back(Cat(arguments->unused.size(), " arrays of the files are no arguments: ",
                               Join(arguments->unused, ", ")));
  }
  return record;
}

Record Judge(const Program& program, std::span<const Literal> arguments,
             const JudgeOptions& options) {
  Record record;
  record.module = program.module->name();
  if (options.print) {
    for (const Literal& argument : arguments) record.arguments.push_back(argument.ToString());
  }
  Judging(program, options, record).Run(arguments);
  return record;
}

}  // namespace kiln::run
