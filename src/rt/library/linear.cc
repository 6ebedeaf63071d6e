#include "runtime/lib/linear/linear.h"
#include "rt/library/wrap.h"

namespace kiln::rt {
namespace {

Maker Find(std::string_view target) {
  if (target == "kiln.cholesky") return runtime::lib::MakeCholesky;
  if (target == "kiln.triangular-solve") return runtime::lib::MakeTriangularSolve;
  return nullptr;
}

}  // namespace

KILN_AOT_LIBRARY(kiln_aot_linear, Find);

}  // namespace kiln::rt
