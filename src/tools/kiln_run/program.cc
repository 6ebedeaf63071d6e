#include "tools/kiln_run/program.h"

#include <filesystem>
#include <utility>

#include "ir/text.h"
#include "stablehlo/bytecode/bytecode.h"
#include "stablehlo/import/import.h"
#include "stablehlo/text/text.h"
#include "tools/input.h"

namespace kiln::run {
namespace {

Result<std::unique_ptr<ir::Module>> Read(const Program& program) {
  if (program.format == Format::kHlo) return ir::ParseHloText(program.text);
  KILN_ASSIGN_OR_RETURN(const auto tree, stablehlo::IsBytecode(program.text)
                                             ? stablehlo::ReadBytecode(program.text)
                                             : stablehlo::ReadText(program.text));
  return stablehlo::Import(*tree);
}

}  // namespace

Result<Program> ReadProgram(const std::string& path, Format format) {
  Program program;
  KILN_ASSIGN_OR_RETURN(program.text, tools::ReadInput(path));
  program.format = format;
  if (format == Format::kAuto) {
    const bool is_hlo = !stablehlo::IsBytecode(program.text) && tools::IsHloText(program.text);
    program.format = is_hlo ? Format::kHlo : Format::kStableHlo;
  }
  auto module = Read(program);
  if (!module.ok()) return tools::AtPlace(path, module.status());
  program.module = *std::move(module);
  program.name = path == tools::kStandardInput ? program.module->name()
                                               : std::filesystem::path(path).stem().string();
  return program;
}

Program ProgramOf(const ir::Module& module) {
  return {module.name(), Format::kHlo, ir::ToHloText(module), module.Clone()};
}

Result<Graph> GraphOf(kiln_context* context, const Program& program) {
  kiln_graph* graph = nullptr;
  const std::string& text = program.text;
  KILN_RETURN_IF_ERROR(StatusOf(
      program.format == Format::kHlo
          ? kiln_graph_from_hlo_text(context, text.data(), text.size(), &graph)
          : kiln_graph_from_stablehlo(context, text.data(), text.size(), nullptr, &graph)));
  return Graph(graph);
}

}  // namespace kiln::run
