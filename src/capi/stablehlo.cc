// Graphs from StableHLO.
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "base/input_file.h"
#include "base/strings.h"
#include "capi/deep.h"
#include "capi/error.h"
#include "capi/graph.h"
#include "capi/options.h"
#include "capi/text.h"
#include "stablehlo/bytecode/bytecode.h"
#include "stablehlo/import/import.h"
#include "stablehlo/text/text.h"

using kiln::Cat;
using kiln::InvalidArgument;
using kiln::OkStatus;
using kiln::Result;
using kiln::Status;
using kiln::capi::GuardDeep;
using kiln::capi::NotNull;

namespace {

constexpr std::string_view kOptions = "kiln_stablehlo_options";

Result<kiln::stablehlo::ImportOptions> OptionsOf(const kiln_stablehlo_options* given) {
  KILN_ASSIGN_OR_RETURN(kiln_stablehlo_options read, kiln::capi::ReadOptions(kOptions, given));
  kiln::stablehlo::ImportOptions options;
  KILN_ASSIGN_OR_RETURN(std::string_view entry,
                        kiln::capi::TextOf(Cat(kOptions, ".entry"), read.entry, read.entry_length));
  options.entry = entry;
  if (!read.arguments && read.argument_count > 0) {
    return InvalidArgument(kOptions, ".arguments is NULL, with a count of ", read.argument_count);
  }
  KILN_ASSIGN_OR_RETURN(options.interrupt,
                        kiln::capi::InterruptOf(kOptions, read.cancel, read.timeout_ns));
  for (size_t i = 0; i < read.argument_count; ++i) {
    const std::string name = Cat(kOptions, ".arguments[", i, "]");
    if (!read.arguments[i]) return InvalidArgument(name, " is NULL");
    Result<kiln_shape> argument = kiln::capi::ReadOptions(name, read.arguments[i]);
    if (!argument.ok()) return argument.status();
    auto shape = kiln::capi::ShapeOf(argument->dtype, argument->dims, argument->rank);
    if (!shape.ok()) return shape.status().WithContext(name);
    options.arguments.push_back(*std::move(shape));
  }
  return options;
}

const char* AttributeOf(const std::vector<kiln::stablehlo::EntryAttributes::Map>& all, size_t index,
                        const char* name, size_t name_length, size_t* length) {
  const std::string* found = nullptr;
  if (name && index < all.size()) {
    auto it = all[index].find(std::string_view(name, name_length));
    if (it != all[index].end()) found = &it->second;
  }
  if (length) *length = found ? found->size() : 0;
  return found ? found->c_str() : nullptr;
}

Result<kiln::FilePages> PagesOf(const std::string& path) {
  KILN_ASSIGN_OR_RETURN(kiln::InputFile file, kiln::InputFile::Open(path));
  const std::optional<int64_t> bytes = file.remaining();
  if (!bytes) return InvalidArgument("'", path, "' is no regular file");
  Result<kiln::FilePages> pages = file.Rest(*bytes);
  if (!pages.ok()) return pages.status().WithContext(Cat("'", path, "'"));
  return pages;
}

// `owner`, unless null, keeps the bytes for the graph's large constants.
Status MakeGraph(kiln_context* context, std::string_view bytes, std::shared_ptr<const void> owner,
                 const kiln_stablehlo_options* options, kiln_graph** graph) {
  KILN_ASSIGN_OR_RETURN(kiln::stablehlo::ImportOptions wanted, OptionsOf(options));
  kiln::stablehlo::EntryAttributes attributes;
  wanted.entry_attributes = &attributes;
  KILN_ASSIGN_OR_RETURN(std::unique_ptr<kiln::mlir::Module> tree,
                        kiln::stablehlo::IsBytecode(bytes)
                            ? kiln::stablehlo::ReadBytecode(bytes, std::move(owner))
                            : kiln::stablehlo::ReadText(bytes));
  KILN_ASSIGN_OR_RETURN(std::unique_ptr<kiln::ir::Module> module,
                        kiln::stablehlo::Import(*tree, wanted));
  kiln_graph* made = kiln::capi::GraphOf(*kiln::capi::Unwrap(context), std::move(module));
  made->entry_attributes() = std::move(attributes);
  *graph = made;
  return OkStatus();
}

}  // namespace

void kiln_stablehlo_options_init(kiln_stablehlo_options* options, size_t size) {
  kiln::capi::InitOptions(options, size);
}

kiln_error* kiln_graph_from_stablehlo(kiln_context* context, const void* program,
                                      size_t program_size, const kiln_stablehlo_options* options,
                                      kiln_graph** graph) {
  return GuardDeep([&]() -> Status {
    KILN_RETURN_IF_ERROR(
        NotNull("kiln_graph_from_stablehlo", {{"context", context}, {"graph", graph}}));
    KILN_ASSIGN_OR_RETURN(
        std::string_view bytes,
        kiln::capi::TextOf("program", static_cast<const char*>(program), program_size));
    return MakeGraph(context, bytes, nullptr, options, graph);
  });
}

kiln_error* kiln_graph_from_stablehlo_file(kiln_context* context, const char* path,
                                           size_t path_length,
                                           const kiln_stablehlo_options* options,
                                           kiln_graph** graph) {
  return GuardDeep([&]() -> Status {
    KILN_RETURN_IF_ERROR(
        NotNull("kiln_graph_from_stablehlo_file", {{"context", context}, {"graph", graph}}));
    KILN_ASSIGN_OR_RETURN(std::string_view name, kiln::capi::TextOf("path", path, path_length));
    const auto pages = std::make_shared<kiln::FilePages>();
    KILN_ASSIGN_OR_RETURN(*pages, PagesOf(std::string(name)));
    const std::string_view bytes(reinterpret_cast<const char*>(pages->bytes().data()),
                                 pages->bytes().size());
    const Status status = MakeGraph(context, bytes, pages, options, graph);
    return status.ok() ? status : status.WithContext(Cat("'", name, "'"));
  });
}

const char* kiln_graph_argument_attribute(const kiln_graph* graph, size_t index, const char* name,
                                          size_t name_length, size_t* length) {
  static const std::vector<kiln::stablehlo::EntryAttributes::Map> none;
  return AttributeOf(graph ? graph->entry_attributes().arguments : none, index, name, name_length,
                     length);
}

const char* kiln_graph_result_attribute(const kiln_graph* graph, size_t index, const char* name,
                                        size_t name_length, size_t* length) {
  static const std::vector<kiln::stablehlo::EntryAttributes::Map> none;
  return AttributeOf(graph ? graph->entry_attributes().results : none, index, name, name_length,
                     length);
}
