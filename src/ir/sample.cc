#include "ir/sample.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <optional>
#include <set>
#include <utility>

namespace kiln::ir {
namespace {

using Path = std::vector<int64_t>;

// A value whose elements are, or are made of, those in question.
struct Reached {
  const Instruction* instruction;
  Path path;        // of the array in it
  bool is_changed;  // by sums with constants and such
  auto operator<=>(const Reached&) const = default;
};

// Walks from an array to its readers.
class Walk {
 public:
  using Calls = std::vector<std::pair<const Computation*, const Instruction*>>;
  explicit Walk(const Calls& calls) : calls_(calls) {}

  SampleRange Run(const Instruction& start, std::span<const int64_t> path) {
    Reach({&start, Path(path.begin(), path.end()), false});
    while (!work_.empty()) {
      const Reached value = work_.back();
      work_.pop_back();
      if (value.instruction == value.instruction->parent()->root()) Return(value);
      for (const Instruction* user : value.instruction->users()) {
        for (int64_t k = 0; k < user->operand_count(); ++k) {
          if (user->operand(k) == value.instruction) Read(*user, k, value);
        }
      }
    }
    if (highest_) range_.low = 0, range_.high = *highest_;
    return range_;
  }
  bool has_range() const { return highest_.has_value(); }

 private:
  void Reach(Reached value) {
    // Enough for any program that was made by hand or by a framework.
    constexpr size_t kMostValues = 100'000;
    if (seen_.size() < kMostValues && seen_.insert(value).second) work_.push_back(std::move(value));
  }
  void Pass(const Instruction& user, const Reached& value, bool is_changed = false) {
    Reach({&user, value.path, value.is_changed || is_changed});
  }

  // From the root of a computation to the callers' results.
  void Return(const Reached& value) {
    const Computation* from = value.instruction->parent();
    for (const auto& [computation, call] : calls_) {
      if (computation != from) continue;
      const Opcode op = call->opcode();
      const bool is_body = op == Opcode::kWhile && call->called(1) == from;
      if (op != Opcode::kCall && op != Opcode::kFusion && op != Opcode::kConditional && !is_body) {
        continue;
      }
      Pass(*call, value);
      if (is_body) Enter(*call, value, 0);
    }
  }
  // Into all computations of a loop or call.
  void Enter(const Instruction& call, const Reached& value, int64_t parameter) {
    for (const Computation* c : call.called()) Pass(*c->parameter(parameter), value);
  }

  void ReadTuple(const Instruction& user, int64_t k, const Reached& value) {
    Reached next = {&user, value.path, value.is_changed};
    if (user.opcode() == Opcode::kTuple) {
      next.path.insert(next.path.begin(), k);
    } else if (next.path.empty() || next.path[0] != user.attributes().Int(Attr::kIndex)) {
      return;
    } else {
      next.path.erase(next.path.begin());
    }
    Reach(std::move(next));
  }

  void Read(const Instruction& user, int64_t k, const Reached& value) {
    switch (user.opcode()) {
      case Opcode::kTuple:
      case Opcode::kGetTupleElement:
        return ReadTuple(user, k, value);
      case Opcode::kCall:
      case Opcode::kFusion:
        return Enter(user, value, k);
      case Opcode::kWhile:
        Pass(user, value);
        return Enter(user, value, 0);
      case Opcode::kConditional:
        if (k > 0) return Pass(*user.called(k - 1)->parameter(0), value);
        return AtMost(static_cast<int64_t>(user.called().size()) - 1, value);
      case Opcode::kBitcast:
      case Opcode::kBroadcast:
      case Opcode::kConcatenate:
      case Opcode::kConvert:
      case Opcode::kCopy:
      case Opcode::kMaximum:
      case Opcode::kMinimum:
      case Opcode::kOptBarrier:
      case Opcode::kReshape:
      case Opcode::kReverse:
      case Opcode::kSlice:
      case Opcode::kTranspose:
        return Pass(user, value);
      case Opcode::kClamp:
      case Opcode::kSelect:
        if (k > 0) Pass(user, value);
        return;
      case Opcode::kPad:
        return Pass(user, value);
      case Opcode::kSort:
        if (user.operand_count() == 1) return Pass(user, value);
        return Reach({&user, {k}, value.is_changed});
      default:
        return ReadNumbers(user, k, value);
    }
  }

  void ReadNumbers(const Instruction& user, int64_t k, const Reached& value) {
    switch (user.opcode()) {
      case Opcode::kAdd:
      case Opcode::kMultiply:
        if (IsConstant(user.operand(1 - k))) Pass(user, value, true);
        return;
      case Opcode::kLog:
      case Opcode::kRsqrt:
      case Opcode::kSqrt:
        range_.positive = true;
        return;
      case Opcode::kPower:
        range_.positive |= k == 0;
        return;
      case Opcode::kBatchNormInference:
        range_.positive |= k == 4;
        return;
      default:
        if (!value.is_changed) ReadElements(user, k, value);
    }
  }

  void ReadElements(const Instruction& user, int64_t k, const Reached& value) {
    switch (user.opcode()) {
      case Opcode::kCholesky:
      case Opcode::kTriangularSolve:
        range_.dominant_diagonal |= k == 0;
        return;
      case Opcode::kDot:
        return ReadDot(user, k);
      case Opcode::kConvolution:
        return ReadConvolution(user, k);
      case Opcode::kDynamicSlice:
        return ReadSlice(user, k, 1, user.shape(), value);
      case Opcode::kDynamicUpdateSlice:
        if (k <= 1) return Pass(user, value);
        return ReadSlice(user, k, 2, user.operand(1)->shape(), value);
      case Opcode::kGather:
        return ReadGather(user, k, value);
      case Opcode::kScatter:
        return ReadScatter(user, k, value);
      case Opcode::kSetDimensionSize:
        if (k == 0) return Pass(user, value);
        return AtMost(user.operand(0)->shape().dim(user.dimensions()[0]), value);
      case Opcode::kCompare:
        return ReadCompare(user, k, value);
      default:
        return;
    }
  }

  static bool IsConstant(const Instruction* i) {
    while (i->opcode() == Opcode::kBroadcast || i->opcode() == Opcode::kConvert ||
           i->opcode() == Opcode::kReshape) {
      i = i->operand(0);
    }
    return i->IsConstant();
  }

  void AtMost(int64_t highest, const Reached& value) {
    if (value.is_changed) return;
    highest = std::max<int64_t>(highest, 0);
    highest_ = std::min(highest_.value_or(highest), highest);
  }

  // The indices of a slice begin at operand `first`; older text has one array of all.
  void ReadSlice(const Instruction& user, int64_t k, int64_t first, const Shape& slice,
                 const Reached& value) {
    if (k < first) return Pass(user, value);
    const Shape& whole = user.operand(0)->shape();
    const bool each = user.operand(k)->shape().rank() == 0;
    for (int64_t d = 0; d < whole.rank(); ++d) {
      if (!each || d == k - first) AtMost(whole.dim(d) - slice.dim(d), value);
    }
  }

  void ReadVectors(const Instruction& user, const Shape& indices, size_t components) {
    const Attributes& a = user.attributes();
    const bool last = a.Int(Attr::kIndexVectorDim) >= indices.rank() - 1;
    range_.sorted |= a.Bool(Attr::kIndicesAreSorted) && last;
    range_.distinct |= a.Bool(Attr::kUniqueIndices) && last;
    if (range_.sorted || range_.distinct) {
      range_.components = std::max<int64_t>(static_cast<int64_t>(components), 1);
    }
  }

  void ReadGather(const Instruction& user, int64_t k, const Reached& value) {
    if (k == 0) return Pass(user, value);
    const Ints& sizes = user.attributes().IntsOf(Attr::kSliceSizes);
    const Ints& map = user.attributes().IntsOf(Attr::kStartIndexMap);
    const Shape& whole = user.operand(0)->shape();
    for (int64_t d : map) AtMost(whole.dim(d) - sizes[static_cast<size_t>(d)], value);
    ReadVectors(user, user.operand(1)->shape(), map.size());
  }

  void ReadScatter(const Instruction& user, int64_t k, const Reached& value) {
    const int64_t arrays = user.operand_count() / 2;
    if (k != arrays) {
      if (arrays == 1 && k == 0) Pass(user, value);
      return;
    }
    const Attributes& a = user.attributes();
    const Shape &whole = user.operand(0)->shape(), &updates = user.operand(arrays + 1)->shape();
    // The window's sizes, by the operand's dimensions.
    std::vector<int64_t> window(static_cast<size_t>(whole.rank()), 1);
    const Ints &absent = a.IntsOf(Attr::kInsertedWindowDims),
               &batching = a.IntsOf(Attr::kInputBatchingDims),
               &dims = a.IntsOf(Attr::kUpdateWindowDims);
    size_t next = 0;
    for (int64_t d = 0; d < whole.rank() && next < dims.size(); ++d) {
      if (std::ranges::count(absent, d) + std::ranges::count(batching, d) > 0) continue;
      window[static_cast<size_t>(d)] = updates.dim(dims[next++]);
    }
    const Ints& map = a.IntsOf(Attr::kScatterDimsToOperandDims);
    for (int64_t d : map) AtMost(whole.dim(d) - window[static_cast<size_t>(d)], value);
    ReadVectors(user, user.operand(arrays)->shape(), map.size());
  }

  // A comparison with positions: one-hot vectors of labels.
  void ReadCompare(const Instruction& user, int64_t k, const Reached& value) {
    if (user.attributes().DirectionOf(Attr::kDirection) != Direction::kEq) return;
    const Instruction* other = user.operand(1 - k);
    while (other->opcode() == Opcode::kBroadcast || other->opcode() == Opcode::kConvert ||
           other->opcode() == Opcode::kReshape) {
      other = other->operand(0);
    }
    if (other->opcode() != Opcode::kIota || other->shape().rank() == 0) return;
    AtMost(other->shape().dim(other->attributes().Int(Attr::kIotaDimension)) - 1, value);
  }

  void ScaleBy(int64_t products) {
    const double magnitude = 2 / std::sqrt(static_cast<double>(std::max<int64_t>(products, 1)));
    range_.magnitude = std::min(range_.magnitude, magnitude);
  }
  void ReadDot(const Instruction& user, int64_t k) {
    int64_t products = 1;
    const Attr key = k == 0 ? Attr::kLhsContractingDims : Attr::kRhsContractingDims;
    for (int64_t d : user.attributes().IntsOf(key)) products *= user.operand(k)->shape().dim(d);
    ScaleBy(products);
  }
  void ReadConvolution(const Instruction& user, int64_t k) {
    if (k != 1) return;
    const Shape& filter = user.operand(1)->shape();
    const int64_t outputs =
        filter.dim(user.attributes().Convolution(Attr::kDimLabels).kernel_output_feature);
    if (outputs > 0) ScaleBy(filter.num_elements() / outputs);
  }

  const Calls& calls_;
  std::vector<Reached> work_;
  std::set<Reached> seen_;
  SampleRange range_;
  std::optional<int64_t> highest_;  // of indices
};

}  // namespace

Sampler::Sampler(const Module& module) {
  for (const auto& computation : module.computations()) {
    if (!computation->MayCall()) continue;
    for (const Instruction* i : computation->instructions()) {
      for (const Computation* called : i->called()) calls_.emplace_back(called, i);
    }
  }
}

SampleRange Sampler::RangeOf(const Instruction& instruction, std::span<const int64_t> path) const {
  Walk walk(calls_);
  SampleRange range = walk.Run(instruction, path);
  if (walk.has_range()) return range;
  const Shape* shape = &instruction.shape();
  for (int64_t k : path) shape = &shape->elements()[static_cast<size_t>(k)];
  range.high = shape->rank() == 0 ? 3 : 9;
  range.low = shape->rank() == 0 || !IsSigned(shape->type()) ? 0 : -9;
  return range;
}

Literal Sampler::Sample(const Instruction& instruction, uint64_t seed) const {
  std::vector<int64_t> path;
  const std::function<Literal(const Shape&, uint64_t)> sample = [&](const Shape& shape,
                                                                    uint64_t part) {
    if (!shape.is_tuple()) return SampleLiteral(shape, part, RangeOf(instruction, path));
    std::vector<Literal> elements;
    for (size_t i = 0; i < shape.elements().size(); ++i) {
      path.push_back(static_cast<int64_t>(i));
      elements.push_back(sample(shape.elements()[i], part * 31 + i));
      path.pop_back();
    }
    return Literal::Tuple(std::move(elements));
  };
  return sample(instruction.shape(), seed);
}

std::vector<Literal> SampleArguments(const Module& module, uint64_t seed) {
  const Sampler sampler(module);
  std::vector<Literal> arguments;
  for (const Instruction* p : module.entry()->parameters()) {
    arguments.push_back(sampler.Sample(*p, seed + arguments.size()));
  }
  return arguments;
}

}  // namespace kiln::ir
