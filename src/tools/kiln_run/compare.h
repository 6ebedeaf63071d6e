// Results held against those of the reference.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "ir/ir.h"
#include "tensor/literal.h"

namespace kiln::run {

// Floats agree if they differ by at most `absolute`, or by `relative` of the largest finite
// magnitude in the reference's array; NaNs with NaNs, and infinities with themselves. Everything
// else agrees if it is equal.
struct Bounds {
  std::optional<double> absolute, relative;  // nothing: the default
};

struct Element {
  std::vector<int64_t> index;
  std::string actual, expected;  // as in HLO text
  double difference = 0;         // infinity where one of them is not finite
};

struct Comparison {
  std::string shape;       // of the reference
  std::string mismatch;    // of the shapes; "": they are equal
  bool is_random = false;  // not compared
  double relative = -1;    // the bound that was used; -1: not of floats
  double largest = 0;      // the largest finite magnitude in the reference
  double difference = 0;   // the largest difference of finite numbers
  int64_t elements = 0, wrong = 0;
  std::vector<Element> worst;  // of those that are wrong, the worst ones first
  bool agrees() const { return mismatch.empty() && wrong == 0; }
};

// `source` is the instruction of the arrays in its computation. The default of the relative bound
// is by the coarsest of the float types that they are made of: f64 1e-6, f32 1e-3, f16 and bf16
// 1e-2, and narrower ones a unit of their mantissa.
Comparison Compare(const Literal& actual, const Literal& expected, const ir::Instruction& source,
                   const Bounds& bounds);

}  // namespace kiln::run
