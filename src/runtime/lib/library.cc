#include <algorithm>
#include <iterator>
#include <vector>

#include "runtime/lib/attributes.h"
#include "runtime/lib/checks/checks.h"
#include "runtime/lib/fft/fft.h"
#include "runtime/lib/function.h"
#include "runtime/lib/linear/lapack.h"
#include "runtime/lib/linear/linear.h"
#include "runtime/lib/random/random.h"

namespace kiln::runtime::lib {

std::span<const Entry> Library() {
  static constexpr Entry kOps[] = {
      {"check.eq", MakeEq, nullptr},
      {"check.expect_almost_eq", MakeExpectAlmostEq, nullptr},
      {"check.expect_close", MakeExpectClose, nullptr},
      {"check.expect_eq", MakeExpectEq, nullptr},
      {"kiln.cholesky", MakeCholesky, CholeskyScratchBytes},
      {"kiln.fft", MakeFft, FftScratchBytes},
      {"kiln.rng-get-and-update-state", MakeRngGetAndUpdateState, nullptr},
      {"kiln.triangular-solve", MakeTriangularSolve, TriangularSolveScratchBytes},
  };
  static const std::vector<Entry>& all = *[] {
    auto* entries = new std::vector<Entry>(std::begin(kOps), std::end(kOps));
    const std::span<const Entry> lapack = LapackFunctions();
    entries->insert(entries->end(), lapack.begin(), lapack.end());
    return entries;
  }();
  return all;
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
