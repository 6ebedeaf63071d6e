#include "runtime/lib/fft/fft.h"
#include "rt/library/wrap.h"

namespace kiln::rt {
namespace {

Maker Find(std::string_view target) {
  if (target == "kiln.fft") return runtime::lib::MakeFft;
  return nullptr;
}

}  // namespace

KILN_AOT_LIBRARY(kiln_aot_fft, Find);

}  // namespace kiln::rt
