#include "unit/aot/linked.h"

#include <dlfcn.h>

#include <cstdlib>
#include <string_view>
#include <utility>

#include "base/strings.h"

namespace kiln::aot {
namespace {

constexpr std::string_view kTable = R"(
#include "p.h"
__attribute__((visibility("default"))) const void* const kiln_test_api[] = {
    &p_program, (void*)kiln_aot_place, (void*)kiln_aot_create, (void*)kiln_aot_destroy,
    (void*)kiln_aot_run, (void*)kiln_aot_target, (void*)kiln_aot_pool_create,
    (void*)kiln_aot_pool_destroy};
)";

}  // namespace

Result<std::unique_ptr<LinkedProgram>> LinkedProgram::Link(const ir::Module& module,
                                                           std::vector<target::Target> targets,
                                                           const std::string& more, bool packs) {
  std::unique_ptr<LinkedProgram> linked(new LinkedProgram);
  Options options;
  options.name = "p";
  options.targets = std::move(targets);
  options.packs = packs;
  KILN_ASSIGN_OR_RETURN(const Built built, Build(module, options));
  linked->header_ = built.header;
  const TestFolder& folder = linked->folder_;
  std::string object;
  KILN_RETURN_IF_ERROR(built.object.Write([&](std::string_view bytes) {
    object += bytes;
    return OkStatus();
  }));
  Put(folder / "p.o", object);
  Put(folder / "p.h", built.header);
  Put(folder / "table.c", Cat(kTable, more));
  const std::string library = folder / "p.so";
  const std::string command =
      Cat(KILN_TEST_CC " -Wall -Wextra -Werror -std=c99 -shared -fPIC -I" KILN_TEST_INCLUDE " -I",
          folder.path().string(), " ", folder / "table.c", " ", folder / "p.o",
          " " KILN_TEST_RUN_TIME " -lm -pthread -o ", library);
  if (std::system(command.c_str()) != 0) return Internal("this failed: ", command);
  linked->library_ = dlopen(library.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (!linked->library_) return Internal(dlerror());
  linked->api_ = static_cast<const Api*>(dlsym(linked->library_, "kiln_test_api"));
  if (!linked->api_) return Internal(dlerror());
  return linked;
}

LinkedProgram::~LinkedProgram() {
  if (library_) dlclose(library_);
}

}  // namespace kiln::aot
