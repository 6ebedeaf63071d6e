#include "tools/kiln_run/pictures.h"

#include <stdlib.h>

#include <algorithm>
#include <filesystem>
#include <map>
#include <memory>
#include <utility>

#include "base/characters.h"
#include "base/output_file.h"
#include "base/strings.h"
#include "draw/dot.h"
#include "draw/page.h"
#include "draw/svg.h"
#include "ir/text.h"
#include "tools/folder.h"
#include "tools/input.h"

namespace kiln::run {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kBefore = ".before_optimizations.txt";
constexpr std::string_view kAfter = "_after_optimizations.txt";
// Pipelines that run again to save memory, behind the rest.
constexpr std::string_view kAgain = "memory";
// In pages; a module's own constants need not be read there.
constexpr int64_t kLiteralElements = 64;

// A file of a stage: "PREFIX.0003.optimization.after_cse.before_dce.txt".
struct StageFile {
  std::string pipeline, pass, path;
  int64_t index = 0;
};

// Names of passes and pipelines have no dots.
std::optional<StageFile> StageOf(const fs::path& path, std::string_view prefix) {
  const std::string file = path.filename().string();
  if (!file.starts_with(prefix) || !file.ends_with(".txt")) return std::nullopt;
  const std::vector<std::string_view> parts =
      Split(std::string_view(file).substr(prefix.size()), '.');
  constexpr std::string_view kAfterPass = "after_";
  if (parts.size() != 5 || !parts[2].starts_with(kAfterPass)) return std::nullopt;
  const std::optional<int64_t> index = ParseInt(parts[0]);
  if (!index) return std::nullopt;
  return StageFile{.pipeline = std::string(parts[1]),
                   .pass = std::string(parts[2].substr(kAfterPass.size())),
                   .path = path.string(),
                   .index = *index};
}

struct StageFiles {
  std::vector<StageFile> stages;  // in order
  std::string after;              // the path of the optimised module; empty: there is none
};

StageFiles FilesIn(const std::string& folder) {
  StageFiles files;
  std::error_code error;
  std::vector<fs::path> paths;
  std::string prefix;
  for (const fs::directory_entry& entry : fs::directory_iterator(folder, error)) {
    const std::string file = entry.path().filename().string();
    paths.push_back(entry.path());
    if (file.ends_with(kBefore)) prefix = file.substr(0, file.size() - kBefore.size() + 1);
    if (file.ends_with(kAfter)) files.after = entry.path().string();
  }
  for (const fs::path& path : paths) {
    if (auto stage = StageOf(path, prefix)) files.stages.push_back(*std::move(stage));
  }
  std::ranges::sort(files.stages, {}, [](const StageFile& s) {
    return std::tuple(s.pipeline.starts_with(kAgain), s.pipeline, s.index);
  });
  return files;
}

Status WriteTo(const std::string& folder, const std::string& file, std::string_view text) {
  KILN_RETURN_IF_ERROR(tools::MakeFolder(folder));
  auto out = OutputFile::Create((fs::path(folder) / file).string());
  if (!out.ok()) return out.status();
  KILN_RETURN_IF_ERROR(out->Write(text));
  return out->Commit();
}

// What the launches of an instruction name, in any order.
std::string KeyOf(std::string_view ops) {
  std::vector<std::string_view> names;
  for (size_t at = 0; at <= ops.size();) {
    const size_t end = std::min(ops.find(", ", at), ops.size());
    names.push_back(ops.substr(at, end - at));
    at = end + 2;
  }
  std::ranges::sort(names);
  return Join(names, ", ");
}

void AddNames(const ir::Instruction& i, std::string& ops) {
  if (i.opcode() == Opcode::kFusion) {
    for (const ir::Instruction* member : i.called(0)->instructions()) AddNames(*member, ops);
    return;
  }
  if (i.opcode() == Opcode::kParameter || i.opcode() == Opcode::kTuple || i.IsConstant()) return;
  ops += Cat(ops.empty() ? "" : ", ", i.op_name().empty() ? i.name() : i.op_name());
}

// Equal for instructions that can be one kernel.
std::string ShapesOf(const ir::Instruction& i) {
  std::string shapes = i.shape().ToString();
  for (const ir::Instruction* operand : i.operands()) shapes += Cat(" ", operand->shape());
  return shapes;
}

// A kernel has the name of the first of the instructions that it is of, as a symbol.
std::string SymbolOf(std::string_view name) {
  std::string symbol(name);
  std::ranges::replace_if(
      symbol, [](char c) { return !IsLetter(c) && !IsDigit(c); }, '_');
  return symbol;
}

Result<std::string> PageOf(const ir::Module& before, const ir::Module* after,
                           const draw::WorkByName& work, const std::vector<StageFile>& stages) {
  draw::Page page(before.name());
  const ir::PrintOptions printing{.max_literal_elements = kLiteralElements};
  page.AddGraph("before", before, printing);
  if (after) page.AddGraph("after", *after, printing, work);
  for (const StageFile& stage : stages) {
    KILN_ASSIGN_OR_RETURN(const std::string text, tools::ReadInput(stage.path));
    page.stages().Add(
        stage.pipeline.starts_with(kAgain) ? Cat(stage.pipeline, ": ", stage.pass) : stage.pass,
        text);
  }
  return page.ToHtml();
}

using Instructions = std::vector<const ir::Instruction*>;

// The instructions that launches may be of.
Instructions SourcesOf(const Launches& launches,
                       const std::unordered_map<std::string, Instructions>& by_key,
                       const std::unordered_map<std::string, const ir::Instruction*>& by_symbol) {
  std::string_view ops = launches.ops;
  for (std::string_view prefix : {"pack left operand of ", "pack right operand of "}) {
    if (ops.starts_with(prefix)) ops.remove_prefix(prefix.size());
  }
  const auto named = by_symbol.find(launches.name);
  const auto found = by_key.find(KeyOf(ops));
  if (found == by_key.end()) {
    return named == by_symbol.end() ? Instructions() : Instructions{named->second};
  }
  Instructions sources = found->second;
  if (sources.size() > 1 && named != by_symbol.end()) {
    const std::string shapes = ShapesOf(*named->second);
    std::erase_if(sources, [&](const ir::Instruction* i) { return ShapesOf(*i) != shapes; });
  }
  return sources.empty() ? found->second : sources;
}

}  // namespace

Result<StageFolder> StageFolder::Make() {
  std::error_code error;
  std::string path = (fs::temp_directory_path(error) / "kiln-run-XXXXXX").string();
  if (error || !mkdtemp(path.data())) return Unavailable("cannot make a temporary folder");
  return StageFolder(std::move(path));
}

StageFolder::~StageFolder() {
  std::error_code error;
  if (!path_.empty()) fs::remove_all(path_, error);
}

Status StageFolder::CopyTo(const std::string& folder) const {
  KILN_RETURN_IF_ERROR(tools::MakeFolder(folder));
  std::error_code error;
  fs::copy(path_, folder, fs::copy_options::recursive | fs::copy_options::overwrite_existing,
           error);
  if (error) return Unavailable("cannot write into ", folder, ": ", error.message());
  return OkStatus();
}

draw::WorkByName WorkOf(const ir::Module& optimised, std::span<const Launches> launches) {
  std::unordered_map<std::string, Instructions> by_key;
  std::unordered_map<std::string, const ir::Instruction*> by_symbol;
  for (const auto& computation : optimised.computations()) {
    for (const ir::Instruction* i : computation->instructions()) {
      std::string ops;
      AddNames(*i, ops);
      if (!ops.empty()) by_key[KeyOf(ops)].push_back(i);
      by_symbol.emplace(SymbolOf(i->name()), i);
    }
  }
  draw::WorkByName work;
  for (const Launches& l : launches) {
    const Instructions sources = SourcesOf(l, by_key, by_symbol);
    for (size_t k = 0; k < sources.size(); ++k) {
      // Parts that sum up to the whole.
      const auto part = [&](int64_t all) {
        const auto count = static_cast<int64_t>(sources.size());
        return all / count + (static_cast<int64_t>(k) < all % count ? 1 : 0);
      };
      draw::Work& of = work[sources[k]->name()];
      of.count += part(l.work.count);
      of.nanoseconds += part(l.work.nanoseconds);
      of.bytes += part(l.work.bytes);
      of.flops += part(l.work.flops);
    }
  }
  return work;
}

Status WritePictures(const PictureOptions& options, const std::string& name,
                     const ir::Module& module, const std::string& stages,
                     std::span<const Launches> launches) {
  const StageFiles files = FilesIn(stages);
  std::unique_ptr<ir::Module> after;
  Status unread;
  if (!files.after.empty()) {
    KILN_ASSIGN_OR_RETURN(const std::string text, tools::ReadInput(files.after));
    auto parsed = ir::ParseHloText(text);
    if (parsed.ok()) {
      after = *std::move(parsed);
    } else {
      unread = parsed.status().WithContext("the optimised module");
    }
  }
  const draw::WorkByName work = after ? WorkOf(*after, launches) : draw::WorkByName();
  const auto write = [&](const std::string& folder, std::string_view end,
                         const auto& picture) -> Status {
    if (folder.empty()) return OkStatus();
    KILN_RETURN_IF_ERROR(WriteTo(folder, Cat(name, ".before.", end), picture(module, {})));
    if (!after) return OkStatus();
    return WriteTo(folder, Cat(name, ".after.", end), picture(*after, work));
  };
  KILN_RETURN_IF_ERROR(write(options.dot, "dot", [](const ir::Module& m, const draw::WorkByName&) {
    return draw::ToDot(m);
  }));
  KILN_RETURN_IF_ERROR(write(options.svg, "svg", draw::ToSvg));
  if (!options.html.empty()) {
    KILN_ASSIGN_OR_RETURN(const std::string page, PageOf(module, after.get(), work, files.stages));
    KILN_RETURN_IF_ERROR(WriteTo(options.html, Cat(name, ".html"), page));
  }
  return unread;
}

}  // namespace kiln::run
