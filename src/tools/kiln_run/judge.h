// A program run on a platform, and judged by the reference.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/status.h"
#include "tools/kiln_run/arguments.h"
#include "tools/kiln_run/compare.h"
#include "tools/kiln_run/compiled.h"
#include "tools/kiln_run/pictures.h"
#include "tools/kiln_run/program.h"

namespace kiln::run {

struct JudgeOptions {
  std::string device = "CPU:0";
  bool has_reference = true;
  Format format = Format::kAuto;
  Bounds bounds;
  // Runs on the platform. Of several the first one is not counted.
  int iterations = 1;
  ArgumentSource arguments;
  std::string input_folder;   // empty: arguments are not written
  std::string output_folder;  // empty: results are not written
  bool print = false;         // records have the arguments and results as text
  CompileSettings compile;
  PictureOptions pictures;

  // The same for tries of other programs, of which nothing is written or printed.
  JudgeOptions ForTries() const;
};

// A comparison of an array of the result.
struct ResultRecord {
  std::string shape;
  std::optional<Comparison> comparison;  // with a reference
};

// What became of a program, in the order in which it happened.
struct Record {
  std::string module;
  Status failure;         // of what was asked for; else OK
  std::string failed_at;  // "reading", "arguments", "compiling", "running", "the reference", …
  std::vector<std::string> notes;
  Figures figures;
  std::vector<double> seconds;  // of the runs that count, sorted
  double reference_ms = 0;
  std::vector<ResultRecord> results;
  std::vector<std::string> arguments, values, expected;  // as text, if they are printed

  bool differs() const;
  double median_seconds() const;
};

Record Judge(const std::string& path, const JudgeOptions& options);
// The same of a program that was read.
Record Judge(const Program& program, const JudgeOptions& options);
// The same on given arguments, those of the parameters.
Record Judge(const Program& program, std::span<const Literal> arguments,
             const JudgeOptions& options);

// The instruction that an array of the entry's result comes from, by the number of the array.
std::vector<const ir::Instruction*> ResultSources(const ir::Module& module);

}  // namespace kiln::run
