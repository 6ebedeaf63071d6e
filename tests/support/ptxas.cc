#include "support/ptxas.h"

#include <unistd.h>
#include <cstdlib>

#include <filesystem>
#include <fstream>
#include <iterator>

#include "base/strings.h"

namespace kiln::testing {
namespace {

std::string FindPtxas() {
  for (const char* path : {"/usr/local/cuda/bin/ptxas", "/usr/bin/ptxas"}) {
    if (std::filesystem::exists(path)) return path;
  }
  return "";
}

}  // namespace

bool HasPtxas() { return !FindPtxas().empty(); }

std::string Assemble(int sm, const std::string& ptx) {
  std::string ptxas = FindPtxas();
  if (ptxas.empty()) return "";
  auto folder = std::filesystem::temp_directory_path();
  std::string base = (folder / Cat("kiln_ptx_", getpid())).string();
  std::ofstream(base + ".ptx") << ptx;
  std::string command =
      Cat(ptxas, " -arch=sm_", sm, " -o /dev/null ", base, ".ptx > ", base, ".log 2>&1");
  int status = std::system(command.c_str());
  std::ifstream log(base + ".log");
  std::string text((std::istreambuf_iterator<char>(log)), {});
  std::filesystem::remove(base + ".ptx");
  std::filesystem::remove(base + ".log");
  return status == 0 ? "" : text + "\n" + ptx;
}

}  // namespace kiln::testing
