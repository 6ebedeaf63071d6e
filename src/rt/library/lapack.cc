#include "runtime/lib/linear/lapack.h"

#include "rt/library/wrap.h"

namespace kiln::rt {
namespace {

Maker Find(std::string_view target) {
  for (const runtime::lib::Entry& entry : runtime::lib::LapackFunctions()) {
    if (entry.target == target) return entry.make;
  }
  return nullptr;
}

}  // namespace

KILN_AOT_LIBRARY(kiln_aot_lapack, Find);

}  // namespace kiln::rt
