// kiln_graph_compile: options, symbols, aliases, marks of arguments.
#include <algorithm>
#include <optional>
#include <set>
#include <span>

#include "base/strings.h"
#include "base/trace.h"
#include "capi/deep.h"
#include "capi/error.h"
#include "capi/graph.h"
#include "capi/handle.h"
#include "capi/options.h"
#include "client/compile.h"
#include "compiler/lower.h"
#include "ir/specialise.h"
#include "passes/pass.h"

using kiln::Cat;
using kiln::InvalidArgument;
using kiln::OkStatus;
using kiln::Ref;
using kiln::Result;
using kiln::Status;
using kiln::capi::GuardDeep;
using kiln::capi::NotNull;
using kiln::capi::Unwrap;
using kiln::client::Client;
using kiln::client::CompiledExecutable;
using kiln::client::Device;

namespace {

constexpr kiln_dump_forms kAllForms =
    KILN_DUMP_TEXT | KILN_DUMP_DOT | KILN_DUMP_HTML | KILN_DUMP_SVG;

Status CheckOptions(const kiln_compile_options& options) {
  auto one = [](std::string_view name, int32_t count) -> Status {
    if (count < 0) return InvalidArgument("kiln_compile_options.", name, " is ", count);
    if (count > 1) return kiln::Unimplemented(count, " ", name, " of an executable");
    return OkStatus();
  };
  KILN_RETURN_IF_ERROR(one("replicas", options.replicas));
  KILN_RETURN_IF_ERROR(one("partitions", options.partitions));
  if (options.dump_ptx_sm != 0) {
    KILN_RETURN_IF_ERROR(kiln::target::NvidiaGpu(options.dump_ptx_sm).status());
  }
  if (options.optimization < KILN_OPTIMIZATION_AUTO ||
      options.optimization > KILN_OPTIMIZATION_FULL) {
    return InvalidArgument("kiln_compile_options.optimization is ", options.optimization);
  }
  if (options.memory_limit_bytes < 0) {
    return InvalidArgument("kiln_compile_options.memory_limit_bytes is ",
                           options.memory_limit_bytes);
  }
  if ((options.dump_forms & ~kAllForms) != 0) {
    return InvalidArgument("kiln_compile_options.dump_forms is ", options.dump_forms);
  }
  return OkStatus();
}

void SetDumpForms(kiln_dump_forms forms, kiln::compiler::Options& compiler) {
  if (forms == 0) return;
  compiler.dump_forms = {.text = (forms & KILN_DUMP_TEXT) != 0,
                         .dot = (forms & KILN_DUMP_DOT) != 0,
                         .html = (forms & KILN_DUMP_HTML) != 0,
                         .svg = (forms & KILN_DUMP_SVG) != 0};
  compiler.dump_stage_forms = compiler.dump_forms;
}

kiln::codegen::Optimization OptimizationOf(const kiln_compile_options& options) {
  switch (options.optimization) {
    case KILN_OPTIMIZATION_QUICK:
      return kiln::codegen::Optimization::kQuick;
    case KILN_OPTIMIZATION_FULL:
      return kiln::codegen::Optimization::kFull;
    default:
      return kiln::codegen::Optimization::kAuto;
  }
}

Result<std::set<std::string>> DisabledPasses(const kiln_compile_options& options) {
  KILN_ASSIGN_OR_RETURN(
      std::string_view text,
      kiln::capi::TextOf("kiln_compile_options.disabled_passes", options.disabled_passes,
                         options.disabled_passes_length));
  std::set<std::string> disabled;
  for (std::string_view piece : kiln::Split(text, ',')) {
    std::string_view name = kiln::Trim(piece);
    if (name.empty()) continue;
    if (!kiln::passes::FindPass(name)) {
      std::vector<std::string_view> names;
      for (const kiln::passes::Pass& pass : kiln::passes::AllPasses()) names.push_back(pass.name);
      return kiln::NotFound("kiln_compile_options.disabled_passes: there is no pass '", name,
                            "'; there are ", kiln::Join(names, ", "));
    }
    disabled.emplace(name);
  }
  return disabled;
}

Result<kiln::SymbolSizes> SizesOf(const kiln_compile_options& options) {
  if (!options.symbols && options.symbol_count > 0) {
    return InvalidArgument("kiln_compile_options.symbols is NULL");
  }
  kiln::SymbolSizes sizes;
  for (size_t i = 0; i < options.symbol_count; ++i) {
    const kiln_symbol_size& symbol = options.symbols[i];
    KILN_ASSIGN_OR_RETURN(std::string_view name,
                          kiln::capi::TextOf("the symbol's name", symbol.name, symbol.name_length));
    if (symbol.size < 0) {
      return InvalidArgument("symbol '", name, "' is given the size ", symbol.size);
    }
    if (!sizes.emplace(name, symbol.size).second) {
      return InvalidArgument("symbol '", name, "' is given a size twice");
    }
  }
  return sizes;
}

// An array or token of a value that may have several: the part, the path inside it, and the shape.
struct LeafPlace {
  size_t part;
  std::vector<int64_t> path;
  kiln::Shape shape;
};
Result<LeafPlace> LeafAt(std::string_view what, const std::vector<kiln::Shape>& parts,
                         size_t number) {
  std::optional<LeafPlace> found;
  size_t next = 0;
  for (size_t part = 0; part < parts.size(); ++part) {
    kiln::ForEachLeaf(parts[part], [&](const kiln::Shape& leaf, std::span<const int64_t> path) {
      if (next++ == number) found.emplace(part, std::vector(path.begin(), path.end()), leaf);
    });
  }
  if (found) return *std::move(found);
  return InvalidArgument("kiln_compile_options.aliases: there is no ", what, " ", number,
                         "; there are ", next);
}

Status AddAliases(const kiln_compile_options& options, kiln::ir::Module& module) {
  if (!options.aliases && options.alias_count > 0) {
    return InvalidArgument("kiln_compile_options.aliases is NULL");
  }
  std::vector<kiln::Shape> parameters;
  for (const auto* p : module.entry()->parameters()) parameters.push_back(p->shape());
  for (size_t i = 0; i < options.alias_count; ++i) {
    const kiln_alias& given = options.aliases[i];
    if (given.reserved != 0) return InvalidArgument("kiln_alias.reserved is not 0");
    KILN_ASSIGN_OR_RETURN(LeafPlace from, LeafAt("argument", parameters, given.argument));
    KILN_ASSIGN_OR_RETURN(LeafPlace to,
                          LeafAt("result", {module.entry()->root()->shape()}, given.result));
    if (!to.shape.SameTypeAndDimensions(from.shape) || to.shape.is_token()) {
      return InvalidArgument("kiln_compile_options.aliases: result ", given.result, " is ",
                             to.shape, ", and argument ", given.argument, " ", from.shape);
    }
    kiln::ir::InputOutputAlias alias;
    alias.output_index = std::move(to.path);
    alias.parameter = static_cast<int64_t>(from.part);
    alias.parameter_index = std::move(from.path);
    alias.must_alias = given.must != 0;
    for (const kiln::ir::InputOutputAlias& other : module.aliases()) {
      if (other.output_index == alias.output_index) {
        return InvalidArgument("kiln_compile_options.aliases: result ", given.result,
                               " is an alias of two arguments");
      }
      if (other.parameter == alias.parameter && other.parameter_index == alias.parameter_index) {
        return InvalidArgument("kiln_compile_options.aliases: argument ", given.argument,
                               " is an alias of two results");
      }
    }
    module.aliases().push_back(std::move(alias));
  }
  return OkStatus();
}

// Adds the arguments that the program marks by an attribute that is true.
void AddMarked(const kiln_graph& graph, const kiln::ir::Module& module, std::string_view attribute,
               std::vector<size_t>& numbers) {
  // Marks are by parameters; arguments are the arrays and tokens in these.
  const auto parameters = module.entry()->parameters();
  size_t number = 0;
  for (size_t p = 0; p < graph.entry_attributes().arguments.size() && p < parameters.size(); ++p) {
    const auto& attributes = graph.entry_attributes().arguments[p];
    const auto mark = attributes.find(attribute);
    const bool is_marked = mark != attributes.end() && mark->second == "true";
    kiln::ForEachLeaf(parameters[p]->shape(), [&](const kiln::Shape&, auto) {
      if (is_marked) numbers.push_back(number);
      ++number;
    });
  }
}

// The marks of the program, and the option.
Result<std::vector<size_t>> DonorsOf(const kiln_graph& graph, const kiln::ir::Module& module,
                                     const kiln_compile_options& options) {
  if (!options.donors && options.donor_count > 0) {
    return InvalidArgument("kiln_compile_options.donors is NULL");
  }
  std::vector<size_t> donors(options.donors, options.donors + options.donor_count);
  AddMarked(graph, module, kiln::stablehlo::kBufferDonor, donors);
  return donors;
}

// Whether a text is as a pattern, in which '*' stands for any characters.
bool MatchesPattern(std::string_view text, std::string_view pattern) {
  // The last star, and the text behind what it stands for so far.
  size_t t = 0, p = 0, star = std::string_view::npos, after = 0;
  while (t < text.size()) {
    if (p < pattern.size() && pattern[p] == '*') {
      star = p++;
      after = t;
    } else if (p < pattern.size() && pattern[p] == text[t]) {
      ++p, ++t;
    } else if (star != std::string_view::npos) {
      p = star + 1;
      t = ++after;
    } else {
      return false;
    }
  }
  while (p < pattern.size() && pattern[p] == '*') ++p;
  return p == pattern.size();
}

// The marks of the program, and the two options.
Result<std::vector<size_t>> FrozenOf(const kiln_graph& graph, const kiln::ir::Module& module,
                                     const kiln_compile_options& options) {
  if (!options.frozen && options.frozen_count > 0) {
    return InvalidArgument("kiln_compile_options.frozen is NULL");
  }
  std::vector<size_t> frozen(options.frozen, options.frozen + options.frozen_count);
  AddMarked(graph, module, kiln::stablehlo::kFrozen, frozen);
  KILN_ASSIGN_OR_RETURN(std::string_view text,
                        kiln::capi::TextOf("kiln_compile_options.frozen_names",
                                           options.frozen_names, options.frozen_names_length));
  if (text.empty()) return frozen;
  const std::vector<std::string> names = kiln::compiler::SignatureOf(module).parameter_names;
  for (std::string_view pattern : kiln::Split(text, '\n')) {
    if (pattern.empty()) continue;
    const size_t before = frozen.size();
    for (size_t number = 0; number < names.size(); ++number) {
      if (MatchesPattern(names[number], pattern)) frozen.push_back(number);
    }
    if (frozen.size() > before) continue;
    // A model has hundreds.
    constexpr size_t kShown = 16;
    const std::span some(names.data(), std::min(names.size(), kShown));
    return kiln::NotFound("kiln_compile_options.frozen_names: there is no argument '", pattern,
                          "'; there are ", kiln::Join(some, ", "),
                          names.size() > kShown ? ", …" : "");
  }
  return frozen;
}

Status CheckSymbolsAreThere(const kiln_graph& graph, const kiln::SymbolSizes& sizes) {
  if (sizes.empty()) return OkStatus();
  std::set<std::string> names = kiln::ir::SymbolsOf(graph.module());
  for (std::string& name : graph.symbols().Names()) names.insert(std::move(name));
  for (const auto& [name, size] : sizes) {
    if (names.contains(name)) continue;
    return InvalidArgument("the graph '", graph.module().name(), "' has no symbol '", name, "'",
                           names.empty() ? "" : "; there are ", kiln::Join(names, ", "));
  }
  return OkStatus();
}

bool HasUnknownSizes(const kiln::ir::Module& module) {
  for (const auto& computation : module.computations()) {
    for (kiln::ir::Instruction* instruction : computation->instructions()) {
      if (!instruction->shape().is_static() || !instruction->attributes().Symbolic().empty()) {
        return true;
      }
    }
  }
  return false;
}

// The graph's module with its symbols substituted: a copy, or, where the graph is given up, itself.
Result<std::unique_ptr<kiln::ir::Module>> Specialised(kiln_graph& graph,
                                                      const kiln::SymbolSizes& sizes, bool takes) {
  const bool has_unknown = HasUnknownSizes(graph.module());
  if (!takes) {
    if (has_unknown) return kiln::ir::Specialise(graph.module(), sizes);
    return graph.module().Clone();
  }
  std::unique_ptr<kiln::ir::Module> module = graph.Take();
  if (has_unknown) return kiln::ir::Specialise(*module, sizes);
  // As in a copy.
  module->RemoveUnusedComputations();
  module->SortComputations();
  return module;
}

Result<Ref<CompiledExecutable>> Compile(kiln_graph& graph, const kiln_compile_options& options) {
  Client& client = graph.client();
  KILN_ASSIGN_OR_RETURN(Device * device, kiln::capi::ChosenDevice(client, options.device));
  KILN_RETURN_IF_ERROR(CheckOptions(options));
  const std::shared_ptr<kiln::TraceSink> trace = client.trace();
  kiln::TraceSpan whole(trace.get(), Cat("compile ", graph.module().name()), "compile");
  kiln::client::CompileOptions compile;
  compile.start_ns = kiln::TraceSink::Now();
  compile.can_be_saved = true;
  kiln::compiler::Options& compiler = compile.compiler;
  KILN_ASSIGN_OR_RETURN(
      compiler.interrupt,
      kiln::capi::InterruptOf("kiln_compile_options", options.cancel, options.timeout_ns));
  compiler.verify = options.verify != 0;
  compiler.optimization = OptimizationOf(options);
  compiler.allow_tf32 = options.allow_tf32 != 0;
  compiler.allow_bf16 = options.allow_bf16 != 0;
  compiler.keep_subnormals = options.keep_subnormals != 0;
  compiler.memory_limit_bytes = options.memory_limit_bytes;
  KILN_ASSIGN_OR_RETURN(compiler.disabled_passes, DisabledPasses(options));
  KILN_ASSIGN_OR_RETURN(compile.dump_folder,
                        kiln::capi::TextOf("kiln_compile_options.dump_folder", options.dump_folder,
                                           options.dump_folder_length));
  compiler.dump_ptx_sm = options.dump_ptx_sm;
  SetDumpForms(options.dump_forms, compiler);
  if (options.dump_large_constants != 0) compiler.dump_literal_elements = INT64_MAX;
  KILN_ASSIGN_OR_RETURN(auto sizes, SizesOf(options));
  KILN_RETURN_IF_ERROR(CheckSymbolsAreThere(graph, sizes));
  kiln::TraceSpan preparation(trace.get(), "prepare the graph", "stage");
  compiler.is_verified = graph.IsAsRead() && sizes.empty() && options.alias_count == 0;
  KILN_ASSIGN_OR_RETURN(auto module, Specialised(graph, sizes, options.takes_graph != 0));
  KILN_RETURN_IF_ERROR(AddAliases(options, *module));
  KILN_ASSIGN_OR_RETURN(compile.donors, DonorsOf(graph, *module, options));
  KILN_ASSIGN_OR_RETURN(compiler.frozen, FrozenOf(graph, *module, options));
  preparation.End();
  return kiln::client::Compile(*device, std::move(module), std::move(compile));
}

}  // namespace

void kiln_compile_options_init(kiln_compile_options* options, size_t size) {
  kiln::capi::InitOptions(options, size);
}

kiln_error* kiln_graph_compile(const kiln_graph* graph, const kiln_compile_options* options,
                               kiln_executable** executable) {
  return GuardDeep([&]() -> Status {
    KILN_RETURN_IF_ERROR(
        NotNull("kiln_graph_compile", {{"graph", graph}, {"executable", executable}}));
    KILN_RETURN_IF_ERROR(graph->CheckComplete());
    KILN_ASSIGN_OR_RETURN(kiln_compile_options read,
                          kiln::capi::ReadOptions("kiln_compile_options", options));
    // Where the options take the graph, it changes.
    KILN_ASSIGN_OR_RETURN(Ref<CompiledExecutable> compiled,
                          Compile(const_cast<kiln_graph&>(*graph), read));
    *executable = kiln::capi::HandOver(std::move(compiled));
    return OkStatus();
  });
}
