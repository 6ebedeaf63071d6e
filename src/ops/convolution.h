// The dimension numbers of a convolution's operands and result.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"

namespace kiln {

// Spatial dimension i of the window is dimension input_spatial[i] of lhs, kernel_spatial[i] of rhs
// and output_spatial[i] of the result.
struct ConvolutionDimensions {
  int64_t input_batch = 0, input_feature = 0;
  std::vector<int64_t> input_spatial;
  int64_t kernel_input_feature = 0, kernel_output_feature = 0;
  std::vector<int64_t> kernel_spatial;
  int64_t output_batch = 0, output_feature = 0;
  std::vector<int64_t> output_spatial;
  bool operator==(const ConvolutionDimensions&) const = default;

  int64_t rank() const { return static_cast<int64_t>(input_spatial.size()) + 2; }
  // Of dimensions that are each named once.
  std::string ToString() const;  // "b01f_01io->b01f"
};

// From HLO's text. Each of the three parts names each of its dimensions once.
Result<ConvolutionDimensions> ParseConvolutionDimensions(std::string_view text);

}  // namespace kiln
