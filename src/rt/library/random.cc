#include "runtime/lib/random/random.h"
#include "rt/library/wrap.h"

namespace kiln::rt {
namespace {

Maker Find(std::string_view target) {
  if (target == "kiln.rng-get-and-update-state") return runtime::lib::MakeRngGetAndUpdateState;
  return nullptr;
}

}  // namespace

KILN_AOT_LIBRARY(kiln_aot_random, Find);

}  // namespace kiln::rt
