// Programs in HLO text over rows of f32, for benchmarks on any device.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace kiln::bench {

inline constexpr int64_t kColumns = 1024;

// A module whose entry has these lines; the reducers `add` and `max` are there.
std::string Module(std::string_view body);

// Softmax of an array of `rows` rows of kColumns, of each row or (along 0) of each column; with
// `transposed` the result is turned.
std::string Softmax(int64_t rows, int along = 1, bool transposed = false);
// Layer normalisation with a scale and an offset for each column; along 0 as in batch
// normalisation.
std::string Normalised(int64_t rows, int along = 1);
std::string BiasGeluScale(int64_t rows);
std::string Transpose(int64_t rows, int64_t columns);

}  // namespace kiln::bench
