#include "ops/convolution.h"

#include "base/strings.h"

namespace kiln {
namespace {

// One of the three parts: its two letters, and the digits.
struct Part {
  char first, second;
  int64_t* first_at;
  int64_t* second_at;
  std::vector<int64_t>* spatial;
};

bool ReadPart(std::string_view text, const Part& part) {
  if (text.size() < 2 || text.size() > 10 + 2) return false;
  part.spatial->assign(text.size() - 2, -1);
  *part.first_at = *part.second_at = -1;
  for (size_t i = 0; i < text.size(); ++i) {
    int64_t* at = nullptr;
    if (text[i] == part.first) at = part.first_at;
    if (text[i] == part.second) at = part.second_at;
    if (text[i] >= '0' && static_cast<size_t>(text[i] - '0') < part.spatial->size()) {
      at = &(*part.spatial)[static_cast<size_t>(text[i] - '0')];
    }
    if (!at || *at >= 0) return false;
    *at = static_cast<int64_t>(i);
  }
  return true;
}

void AppendPart(std::string& out, char first, int64_t first_at, char second, int64_t second_at,
                const std::vector<int64_t>& spatial) {
  std::string part(spatial.size() + 2, '?');
  part[static_cast<size_t>(first_at)] = first;
  part[static_cast<size_t>(second_at)] = second;
  for (size_t i = 0; i < spatial.size(); ++i) {
    part[static_cast<size_t>(spatial[i])] = static_cast<char>('0' + i);
  }
  out += part;
}

}  // namespace

std::string ConvolutionDimensions::ToString() const {
  std::string out;
  AppendPart(out, 'b', input_batch, 'f', input_feature, input_spatial);
  out += '_';
  AppendPart(out, 'i', kernel_input_feature, 'o', kernel_output_feature, kernel_spatial);
  out += "->";
  AppendPart(out, 'b', output_batch, 'f', output_feature, output_spatial);
  return out;
}

Result<ConvolutionDimensions> ParseConvolutionDimensions(std::string_view text) {
  ConvolutionDimensions d;
  size_t kernel = text.find('_'), output = text.find("->");
  bool fits =
      kernel != text.npos && output != text.npos && kernel < output &&
      ReadPart(text.substr(0, kernel),
               {'b', 'f', &d.input_batch, &d.input_feature, &d.input_spatial}) &&
      ReadPart(text.substr(kernel + 1, output - kernel - 1),
               {'i', 'o', &d.kernel_input_feature, &d.kernel_output_feature, &d.kernel_spatial}) &&
      ReadPart(text.substr(output + 2),
               {'b', 'f', &d.output_batch, &d.output_feature, &d.output_spatial}) &&
      d.input_spatial.size() == d.kernel_spatial.size() &&
      d.input_spatial.size() == d.output_spatial.size();
  if (fits) return d;
  return InvalidArgument("dimension labels are '", text,
                         "'; expected three lists like b01f_01io->b01f");
}

}  // namespace kiln
