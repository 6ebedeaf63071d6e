#include "support/standin_library.h"

#include <dlfcn.h>
#include <gtest/gtest.h>

#include <cstdlib>

namespace kiln::testing {

StandinLibrary::StandinLibrary(const std::string& path)
    : library_(dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL)) {
  if (library_ != nullptr) return;
  ADD_FAILURE() << dlerror();
  std::abort();
}

void* StandinLibrary::Address(const char* name) const { return dlsym(library_, name); }

}  // namespace kiln::testing
