// The parts of the run time's library: which symbol has the functions of a custom-call target.
#pragma once

#include <string_view>

namespace kiln::rt {

// "" where the run time has no such function: then it is one of the program's own, or none.
constexpr std::string_view LibrarySymbol(std::string_view target) {
  if (target == "kiln.fft") return "kiln_aot_fft";
  if (target == "kiln.cholesky" || target == "kiln.triangular-solve") return "kiln_aot_linear";
  if (target == "kiln.rng-get-and-update-state") return "kiln_aot_random";
  if (target.starts_with("lapack.")) return "kiln_aot_lapack";
  for (std::string_view check :
       {"check.eq", "check.expect_almost_eq", "check.expect_close", "check.expect_eq"}) {
    if (target == check) return "kiln_aot_checks";
  }
  return "";
}

}  // namespace kiln::rt
