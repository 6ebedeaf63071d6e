#include <algorithm>

#include "runtime/lib/attributes.h"
#include "runtime/lib/checks/checks.h"
#include "runtime/lib/fft/fft.h"
#include "runtime/lib/function.h"
#include "runtime/lib/linear/linear.h"
#include "runtime/lib/random/random.h"

namespace kiln::runtime::lib {

std::span<const Entry> Library() {
  static constexpr Entry kEntries[] = {
      {"check.eq", MakeEq, nullptr},
      {"check.expect_almost_eq", MakeExpectAlmostEq, nullptr},
      {"check.expect_close", MakeExpectClose, nullptr},
      {"check.expect_eq", MakeExpectEq, nullptr},
      {"kiln.cholesky", MakeCholesky, CholeskyScratchBytes},
      {"kiln.fft", MakeFft, FftScratchBytes},
      {"kiln.rng-get-and-update-state", MakeRngGetAndUpdateState, nullptr},
      {"kiln.triangular-solve", MakeTriangularSolve, TriangularSolveScratchBytes},
  };
  return kEntries;
}

const Entry* FindInLibrary(std::string_view target) {
  for (const Entry& entry : Library()) {
    if (entry.target == target) return &entry;
  }
  return nullptr;
}

std::string_view AttributeOf(std::string_view attributes, std::string_view name) {
  while (!attributes.empty()) {
    const size_t end = std::min(attributes.find(' '), attributes.size());
    const std::string_view word = attributes.substr(0, end);
    attributes.remove_prefix(std::min(end + 1, attributes.size()));
    if (word.size() > name.size() && word.starts_with(name) && word[name.size()] == '=') {
      return word.substr(name.size() + 1);
    }
  }
  return "";
}

}  // namespace kiln::runtime::lib
