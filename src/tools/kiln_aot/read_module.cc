#include "tools/kiln_aot/read_module.h"

#include <optional>
#include <set>
#include <span>
#include <string_view>
#include <utility>

#include "base/strings.h"
#include "ir/specialise.h"
#include "ir/text.h"
#include "stablehlo/bytecode/bytecode.h"
#include "stablehlo/import/import.h"
#include "stablehlo/text/text.h"
#include "tensor/element_type.h"
#include "tensor/shape.h"
#include "tools/input.h"

namespace kiln::aot {
namespace {

// "f32[2,3]".
Result<Shape> ParseShape(std::string_view text) {
  const auto wrong = [&] {
    return InvalidArgument("--argument ", text, " is no shape of the form f32[2,3]");
  };
  const size_t open = text.find('[');
  if (open == text.npos || !text.ends_with(']')) return wrong();
  const std::optional<ElementType> type = TypeByName(text.substr(0, open));
  if (!type) return wrong();
  std::vector<int64_t> dims;
  for (std::string_view dim : Split(text.substr(open + 1, text.size() - open - 2), ',')) {
    const std::optional<int64_t> size = ParseInt(Trim(dim));
    if (!size || *size < 0) return wrong();
    dims.push_back(*size);
  }
  Shape shape(*type, std::span<const int64_t>(dims));
  KILN_RETURN_IF_ERROR(ValidateShape(shape));
  return shape;
}

Result<SymbolSizes> ParseSymbols(const std::set<std::string>& symbols,
                                 const std::vector<std::string>& texts) {
  SymbolSizes sizes;
  for (const std::string& text : texts) {
    const std::vector<std::string_view> parts = Split(text, '=');
    const std::optional<int64_t> size = parts.size() == 2 ? ParseInt(parts[1]) : std::nullopt;
    if (!size || *size < 0) {
      return InvalidArgument("--symbol ", text, " is not of the form NAME=SIZE");
    }
    const std::string symbol(parts[0]);
    if (!symbols.contains(symbol)) {
      return InvalidArgument("--symbol ", text, ": there is no such symbol in the program",
                             symbols.empty() ? "" : ", but ", Join(symbols, ", "));
    }
    if (!sizes.emplace(symbol, *size).second) {
      return InvalidArgument("--symbol ", text, ": ", symbol, " has a size already");
    }
  }
  for (const std::string& symbol : symbols) {
    if (sizes.contains(symbol)) continue;
    return InvalidArgument("the program has no size for its symbol ", symbol, "; --symbol ", symbol,
                           "=SIZE gives it");
  }
  return sizes;
}

Result<std::unique_ptr<ir::Module>> ReadHlo(std::string_view text, const ModuleOptions& options,
                                            std::span<const Shape> arguments) {
  if (!options.entry.empty()) {
    return InvalidArgument("--entry is for StableHLO; HLO text has its ENTRY");
  }
  int64_t made_up = 0;
  auto module = ir::ParseHloText(text, {.made_up = &made_up});
  if (!module.ok()) return tools::AtPlace(options.file, module.status());
  if (made_up > 0) {
    return InvalidArgument(options.file, ": ", made_up, " values, of constants \"{...}\" or of ",
                           "infeeds, are missing, which the program needs");
  }
  const std::set<std::string> symbols = ir::SymbolsOf(**module);
  SymbolSizes sizes;
  if (arguments.empty()) {
    KILN_ASSIGN_OR_RETURN(sizes, ParseSymbols(symbols, options.symbols));
  } else {
    KILN_ASSIGN_OR_RETURN(sizes, ir::MatchSymbols(**module, arguments));
  }
  return symbols.empty() ? std::move(module) : ir::Specialise(**module, sizes);
}

Result<std::unique_ptr<ir::Module>> ReadStableHlo(std::string_view text,
                                                  const ModuleOptions& options,
                                                  std::vector<Shape> arguments) {
  if (!options.symbols.empty()) {
    return InvalidArgument("--symbol is for HLO text; --argument gives the shapes of StableHLO");
  }
  auto tree =
      stablehlo::IsBytecode(text) ? stablehlo::ReadBytecode(text) : stablehlo::ReadText(text);
  if (!tree.ok()) return tools::AtPlace(options.file, tree.status());
  stablehlo::ImportOptions import;
  import.entry = options.entry;
  import.arguments = std::move(arguments);
  auto module = stablehlo::Import(**tree, import);
  if (!module.ok()) return tools::AtPlace(options.file, module.status());
  return module;
}

}  // namespace

Result<std::unique_ptr<ir::Module>> ReadModule(const ModuleOptions& options) {
  std::vector<Shape> arguments;
  for (const std::string& text : options.arguments) {
    KILN_ASSIGN_OR_RETURN(Shape shape, ParseShape(text));
    arguments.push_back(std::move(shape));
  }
  KILN_ASSIGN_OR_RETURN(const std::string text, tools::ReadInput(options.file));
  const bool is_hlo = !stablehlo::IsBytecode(text) && tools::IsHloText(text);
  return is_hlo ? ReadHlo(text, options, arguments)
                : ReadStableHlo(text, options, std::move(arguments));
}

}  // namespace kiln::aot
