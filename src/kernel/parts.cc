#include "kernel/parts.h"

#include <algorithm>

#include "tensor/shape.h"

namespace kiln::kernel {
namespace {

using ir::Instruction;

// At one point a kernel does not make more parts.
constexpr int64_t kMostParts = 16;
// Instructions between a root and its parts.
constexpr int kMostSteps = 64;

class Finder {
 public:
  explicit Finder(const std::function<bool(const Instruction&)>& is_input) : is_input_(is_input) {}

  // Whether there is a concatenation in `i`, whose dimensions have these strides among the root's
  // elements. `is_whole` tells whether it has all of them.
  bool Find(const Instruction& i, const std::vector<int64_t>& strides, bool is_whole) {
    if (is_input_(i) || ++steps_ > kMostSteps) return false;
    if (i.opcode() == Opcode::kConcatenate) return FindParts(i, strides);
    if (i.opcode() == Opcode::kReshape) {
      const std::vector<int64_t> from = i.operand(0)->shape().dims();
      if (from == i.shape().dims()) return Find(*i.operand(0), strides, is_whole);
      return is_whole && Find(*i.operand(0), RowMajorStrides(from), true);
    }
    if (!IsElementwise(i.opcode())) return false;
    return std::ranges::any_of(i.operands(), [&](const Instruction* operand) {
      return operand->shape().SameDimensions(i.shape()) && Find(*operand, strides, is_whole);
    });
  }

  struct Found {
    int64_t stride, count;  // of the root's elements from part to part, and of parts
  };
  const std::vector<Found>& found() const { return found_; }

 private:
  bool FindParts(const Instruction& i, const std::vector<int64_t>& strides) {
    const Instruction& first = *i.operand(0);
    const auto dimension = static_cast<size_t>(i.dimensions()[0]);
    const bool are_equal = std::ranges::all_of(i.operands(), [&](const Instruction* operand) {
      return operand->shape().SameDimensions(first.shape());
    });
    if (!are_equal || i.operand_count() < 2 || first.shape().num_elements() == 0) return false;
    found_.push_back(
        {first.shape().dim(i.dimensions()[0]) * strides[dimension], i.operand_count()});
    Find(first, strides, false);
    return true;
  }

  const std::function<bool(const Instruction&)>& is_input_;
  std::vector<Found> found_;
  int steps_ = 0;
};

}  // namespace

std::vector<PartsDimension> PartsOf(const Instruction& root,
                                    const std::function<bool(const Instruction&)>& is_input) {
  if (!root.shape().is_array()) return {};
  const std::vector<int64_t> dims = root.shape().dims(), strides = RowMajorStrides(dims);
  Finder finder(is_input);
  finder.Find(root, strides, true);
  std::vector<PartsDimension> parts;
  int64_t count = 1;
  for (const Finder::Found& found : finder.found()) {
    for (size_t d = 0; d < dims.size(); ++d) {
      const int64_t inner = found.stride / strides[d];
      const bool is_it = found.stride % strides[d] == 0 && dims[d] % (inner * found.count) == 0;
      const bool is_taken = std::ranges::any_of(
          parts, [&](const PartsDimension& p) { return p.dimension == static_cast<int64_t>(d); });
      if (inner == 0 || !is_it || is_taken || count * found.count > kMostParts) continue;
      count *= found.count;
      parts.push_back({static_cast<int64_t>(d), found.count, inner});
      break;
    }
  }
  return parts;
}

}  // namespace kiln::kernel
