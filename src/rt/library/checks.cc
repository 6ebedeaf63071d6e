#include "runtime/lib/checks/checks.h"
#include "rt/library/wrap.h"

namespace kiln::rt {
namespace {

Maker Find(std::string_view target) {
  if (target == "check.eq") return runtime::lib::MakeEq;
  if (target == "check.expect_almost_eq") return runtime::lib::MakeExpectAlmostEq;
  if (target == "check.expect_close") return runtime::lib::MakeExpectClose;
  if (target == "check.expect_eq") return runtime::lib::MakeExpectEq;
  return nullptr;
}

}  // namespace

KILN_AOT_LIBRARY(kiln_aot_checks, Find);

}  // namespace kiln::rt
