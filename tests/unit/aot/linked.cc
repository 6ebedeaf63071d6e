#include "unit/aot/linked.h"

#include <dlfcn.h>

#include <cstdlib>
#include <string_view>
#include <utility>

#include "base/strings.h"

namespace kiln::aot {
namespace {

// The library's table, of type Api.
constexpr std::string_view kTable = R"(
__attribute__((visibility("default"))) const void* const kiln_test_api[] = {
    &p_program, (void*)kiln_aot_place, (void*)kiln_aot_create, (void*)kiln_aot_destroy,
    (void*)kiln_aot_run, (void*)kiln_aot_target, (void*)kiln_aot_pool_create,
    (void*)kiln_aot_pool_destroy, programs};
)";

}  // namespace

Status LinkedProgram::Add(const ir::Module& module, const Options& options) {
  KILN_ASSIGN_OR_RETURN(const Built built, Build(module, options));
  if (header_.empty()) header_ = built.header;
  std::string object;
  KILN_RETURN_IF_ERROR(built.object.Write([&](std::string_view bytes) {
    object += bytes;
    return OkStatus();
  }));
  Put(folder_ / (options.name + ".o"), object);
  Put(folder_ / (options.name + ".h"), built.header);
  names_.push_back(options.name);
  return OkStatus();
}

Status LinkedProgram::Finish(const std::string& more) {
  std::string headers, programs, objects;
  for (const std::string& name : names_) {
    headers += Cat("#include \"", name, ".h\"\n");
    programs += Cat("&", name, "_program, ");
    objects += Cat(folder_ / (name + ".o"), " ");
  }
  Put(folder_ / "table.c", Cat(headers, "static const kiln_aot_program* const programs[] = {",
                               programs, "};", kTable, more));
  const std::string library = folder_ / "p.so";
  const std::string command =
      Cat(KILN_TEST_CC " -Wall -Wextra -Werror -std=c99 -shared -fPIC -I" KILN_TEST_INCLUDE " -I",
          folder_.path().string(), " ", folder_ / "table.c", " ", objects,
          KILN_TEST_RUN_TIME " -lm -pthread -o ", library);
  if (std::system(command.c_str()) != 0) return Internal("this failed: ", command);
  library_ = dlopen(library.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (!library_) return Internal(dlerror());
  api_ = static_cast<const Api*>(dlsym(library_, "kiln_test_api"));
  return api_ ? OkStatus() : Internal(dlerror());
}

Result<std::unique_ptr<LinkedProgram>> LinkedProgram::Link(const ir::Module& module,
                                                           std::vector<target::Target> targets,
                                                           const std::string& more, bool packs) {
  std::unique_ptr<LinkedProgram> linked(new LinkedProgram);
  Options options;
  options.name = "p";
  options.targets = std::move(targets);
  options.packs = packs;
  KILN_RETURN_IF_ERROR(linked->Add(module, options));
  KILN_RETURN_IF_ERROR(linked->Finish(more));
  return linked;
}

Result<std::unique_ptr<LinkedProgram>> LinkedProgram::LinkAll(
    std::span<const std::unique_ptr<ir::Module>> modules,
    const std::vector<target::Target>& targets) {
  std::unique_ptr<LinkedProgram> linked(new LinkedProgram);
  for (size_t i = 0; i < modules.size(); ++i) {
    Options options;
    options.name = i == 0 ? "p" : Cat("p", i);
    options.targets = targets;
    KILN_RETURN_IF_ERROR(linked->Add(*modules[i], options));
  }
  KILN_RETURN_IF_ERROR(linked->Finish(""));
  return linked;
}

LinkedProgram::~LinkedProgram() {
  if (library_) dlclose(library_);
}

}  // namespace kiln::aot
