#include "random/shapes.h"

#include <algorithm>
#include <numeric>

namespace kiln::testing {
namespace {

using ir::Instruction;

class Generator : public RandomMaker {
 public:
  Generator(const RandomSource& source, Instruction* x) : RandomMaker(source), x_(x) {}

  Instruction* Reshape() {
    std::vector<int64_t> dims = x_->shape().dims();
    const auto rank = static_cast<int64_t>(dims.size());
    if (rank >= 2 && Chance(50)) {
      auto d = static_cast<size_t>(Pick(0, rank - 2));
      dims[d] *= dims[d + 1];
      dims.erase(dims.begin() + static_cast<int64_t>(d) + 1);
    } else if (rank >= 1 && rank < source_.max_rank) {
      auto d = static_cast<size_t>(Pick(0, rank - 1));
      int64_t divisor = 1;
      for (int64_t k : {2, 3, 4, 5, 7, 8}) {
        if (dims[d] > 0 && dims[d] % k == 0 && Chance(50)) divisor = k;
      }
      dims[d] /= divisor;
      dims.insert(dims.begin() + static_cast<int64_t>(d) + Pick(0, 1), divisor);
    }
    return Add({.opcode = Chance(20) ? Opcode::kBitcast : Opcode::kReshape,
                .operands = {x_},
                .shape = Shape(x_->shape().type(), std::span<const int64_t>(dims))});
  }

  Instruction* Transpose() {
    Ints permutation(static_cast<size_t>(x_->shape().rank()));
    std::iota(permutation.begin(), permutation.end(), 0);
    std::shuffle(permutation.begin(), permutation.end(), source_.random);
    return Add({.opcode = Opcode::kTranspose,
                .operands = {x_},
                .attributes = {{Attr::kDimensions, permutation}}});
  }

  Instruction* Slice() {
    std::vector<SliceDimension> slices;
    for (int64_t size : x_->shape().dims()) {
      SliceDimension s{0, size, 1};
      if (size > 0 && Chance(60)) {
        s.start = Pick(0, size - 1);
        s.limit = Chance(95) ? Pick(s.start + 1, size) : s.start;
        s.stride = Pick(1, 3);
      }
      slices.push_back(s);
    }
    return Add(
        {.opcode = Opcode::kSlice, .operands = {x_}, .attributes = {{Attr::kSlice, slices}}});
  }

  Instruction* Pad() {
    if (x_->shape().num_elements() > source_.max_elements / 8) return nullptr;
    std::vector<PaddingDimension> padding;
    int64_t elements = 1;
    for (int64_t size : x_->shape().dims()) {
      PaddingDimension p;
      if (Chance(60)) {
        p.low = Pick(-1, 2);
        p.high = Pick(-1, 2);
        p.interior = Chance(30) ? Pick(1, 2) : 0;
      }
      auto padded = [&] {
        return size + p.low + p.high + std::max<int64_t>(size - 1, 0) * p.interior;
      };
      if (padded() < 0 || elements * padded() > source_.max_elements) p = {};
      elements *= std::max<int64_t>(padded(), 1);
      padding.push_back(p);
    }
    Instruction* value = Scalar(x_->shape().type(), static_cast<double>(Pick(0, 1)));
    return Add({.opcode = Opcode::kPad,
                .operands = {x_, value},
                .attributes = {{Attr::kPadding, padding}}});
  }

  Instruction* Reverse() {
    Ints dimensions;
    for (int64_t d = 0; d < x_->shape().rank(); ++d) {
      if (Chance(60)) dimensions.push_back(d);
    }
    return Add({.opcode = Opcode::kReverse,
                .operands = {x_},
                .attributes = {{Attr::kDimensions, dimensions}}});
  }

  Instruction* Any() {
    switch (Pick(0, 4)) {
      case 0:
        return Reshape();
      case 1:
        return Transpose();
      case 2:
        return Slice();
      case 3:
        if (Instruction* padded = Pad()) return padded;
        [[fallthrough]];
      default:
        return Reverse();
    }
  }

 private:
  Instruction* x_;
};

// Whether the op's result, or what its computations take, has the layouts of its operands; of a
// bitcast layouts say what it does.
bool HandsOnLayouts(Opcode opcode) {
  switch (opcode) {
    case Opcode::kBitcast:
    case Opcode::kCall:
    case Opcode::kConditional:
    case Opcode::kGetTupleElement:
    case Opcode::kOptBarrier:
    case Opcode::kTuple:
    case Opcode::kWhile:
      return true;
    default:
      return false;
  }
}

}  // namespace

Instruction* RandomReshape(const RandomSource& source, Instruction* x) {
  return Generator(source, x).Reshape();
}
Instruction* RandomTranspose(const RandomSource& source, Instruction* x) {
  return Generator(source, x).Transpose();
}
Instruction* RandomSlice(const RandomSource& source, Instruction* x) {
  return Generator(source, x).Slice();
}
Instruction* RandomPad(const RandomSource& source, Instruction* x) {
  return Generator(source, x).Pad();
}
Instruction* RandomShapeOp(const RandomSource& source, Instruction* x) {
  return Generator(source, x).Any();
}

void AddRandomLayouts(ir::Computation& entry, std::mt19937_64& random) {
  for (Instruction* i : entry.instructions()) {
    if (!i->shape().is_array() || i->shape().rank() < 2 || random() % 8 != 0) continue;
    if (HandsOnLayouts(i->opcode()) || std::ranges::any_of(i->users(), [](const Instruction* user) {
          return HandsOnLayouts(user->opcode());
        })) {
      continue;
    }
    std::vector<int64_t> order(static_cast<size_t>(i->shape().rank()));
    std::iota(order.begin(), order.end(), 0);
    std::shuffle(order.begin(), order.end(), random);
    Shape shape = i->shape();
    shape.set_minor_to_major(std::move(order));
    i->set_shape(shape);
  }
}

}  // namespace kiln::testing
