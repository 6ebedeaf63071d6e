#include "random/moves.h"

#include <algorithm>

#include "base/strings.h"
#include "ops/window.h"
#include "random/ops.h"
#include "random/types.h"

namespace kiln::testing {
namespace {

using ir::Computation;
using ir::Instruction;

constexpr ElementType kIndexTypes[] = {ElementType::kS32, ElementType::kS32, ElementType::kS64,
                                       ElementType::kU8,  ElementType::kS8,  ElementType::kU16,
                                       ElementType::kS16, ElementType::kU32, ElementType::kU64};

constexpr ElementType kWords[] = {ElementType::kS8,  ElementType::kU8,  ElementType::kS16,
                                  ElementType::kU16, ElementType::kS32, ElementType::kU32,
                                  ElementType::kS64, ElementType::kU64};

// Of which the numbers that bits come to are exact, whatever they are.
constexpr ElementType kRareWords[] = {
    ElementType::kS4,     ElementType::kU4,         ElementType::kS2,
    ElementType::kU2,     ElementType::kF8E5M2,     ElementType::kF8E4M3FN,
    ElementType::kF8E4M3, ElementType::kF8E3M4,     ElementType::kF8E5M2FNUZ,
    ElementType::kPred,   ElementType::kF8E4M3FNUZ, ElementType::kF8E8M0FNU,
    ElementType::kU8,     ElementType::kF6E2M3FN,   ElementType::kF6E3M2FN,
    ElementType::kS8,     ElementType::kF4E2M1FN,   ElementType::kF8E4M3B11FNUZ};

int64_t BitsOf(ElementType type) { return IsPred(type) ? 1 : BitWidth(type); }

class Generator : public RandomMaker {
 public:
  Generator(const RandomSource& source, Instruction* x) : RandomMaker(source), x_(x) {}

  RandomOp IndexedOp() {
    switch (Pick(0, 3)) {
      case 0:
        return DynamicSlice();
      case 1:
        return DynamicUpdateSlice();
      case 2:
        return Gather();
      default:
        return Scatter();
    }
  }

  RandomOp Bits() {
    const Shape& s = x_->shape();
    if (s.rank() > 0 && Chance(10)) {
      return One({.opcode = Opcode::kGetDimensionSize,
                  .operands = {x_},
                  .attributes = {{Attr::kDimensions, Ints{Pick(0, rank() - 1)}}}});
    }
    if (Chance(25)) {
      Ints dimensions;
      for (int64_t d = 0; d < rank(); ++d) {
        if (Chance(60)) dimensions.push_back(d);
      }
      return One({.opcode = Opcode::kReverse,
                  .operands = {x_},
                  .attributes = {{Attr::kDimensions, std::move(dimensions)}}});
    }
    if (IsFloat(s.type()) && Chance(50)) {
      // All bits of a type, or fewer.
      const int64_t exponent = source_.smooth ? 11 : Pick(1, 9);
      const int64_t mantissa = source_.smooth ? 52 : Pick(0, 25);
      return One(
          {.opcode = Opcode::kReducePrecision,
           .operands = {x_},
           .attributes = {{Attr::kExponentBits, exponent}, {Attr::kMantissaBits, mantissa}}});
    }
    // Bits have no derivative.
    if (source_.smooth) {
      return One({.opcode = Opcode::kBitcast,
                  .operands = {x_},
                  .shape = Shape(s.type(), {s.num_elements()})});
    }
    std::vector<int64_t> dims = s.dims();
    ElementType word = ElementType::kU8;
    if (source_.rare_types && Chance(60)) {
      word = kRareWords[Pick(0, static_cast<int64_t>(std::size(kRareWords)) - 1)];
    } else if (!IsPred(s.type())) {
      word = kWords[Pick(0, static_cast<int64_t>(std::size(kWords)) - 1)];
    }
    if (Chance(30)) return Bytes(word);
    int64_t from = BitsOf(s.type()), to = BitsOf(word);
    if (std::max(from, to) % std::min(from, to) != 0) return {};
    if (to < from) {
      int64_t parts = from / to;
      if (s.num_elements() * parts > source_.max_elements || rank() >= source_.max_rank) return {};
      dims.push_back(parts);
    } else if (to > from) {
      if (dims.empty() || dims.back() != to / from) return {};
      dims.pop_back();
    }
    x_ = WithoutNans(source_, x_);
    // And back, as bits alone make no floats of a reasonable size.
    RandomOp op = One({.opcode = Opcode::kBitcastConvert,
                       .operands = {x_},
                       .shape = Shape(word, std::span<const int64_t>(dims))});
    op.results.push_back(Add(
        {.opcode = Opcode::kBitcastConvert, .operands = {op.results[0]}, .shape = x_->shape()}));
    return op;
  }

  // A bitcast to `word`, or by way of a type whose numbers may be of any size.
  RandomOp Bytes(ElementType word) {
    const Shape& s = x_->shape();
    static constexpr ElementType kBetween[] = {ElementType::kF16, ElementType::kBF16,
                                               ElementType::kF32, ElementType::kF64,
                                               ElementType::kC64, ElementType::kC128};
    const bool between = Chance(25);
    if (between) word = kBetween[Pick(0, static_cast<int64_t>(std::size(kBetween)) - 1)];
    if (s.byte_size() % ByteWidth(word) != 0) return {};
    std::vector<int64_t> dims = {s.byte_size() / ByteWidth(word)};
    if (dims[0] > source_.max_elements) return {};
    if (dims[0] % 2 == 0 && source_.max_rank > 1 && Chance(50)) dims = {2, dims[0] / 2};
    if (dims[0] == 1 && Chance(50)) dims = {};
    x_ = WithoutNans(source_, x_);
    RandomOp op = One({.opcode = Opcode::kBitcast,
                       .operands = {x_},
                       .shape = Shape(word, std::span<const int64_t>(dims))});
    // What keeps all bits goes back.
    if (!IsPred(word) && BitWidth(word) >= 8) {
      Instruction* back =
          Add({.opcode = Opcode::kBitcast, .operands = {op.results[0]}, .shape = x_->shape()});
      if (between) op.results.clear();
      op.results.push_back(back);
    }
    return op;
  }

  RandomOp ReduceWindow() {
    RandomOp op{.data = {x_}};
    Attributes attributes = {{Attr::kWindow, RandomWindow()}};
    if (Chance(20) && !IsComplex(type())) {
      x_ = WithoutNans(source_, x_);
      Shape numbers(ElementType::kS32, x_->shape().dimensions());
      Instruction* positions = OfShape(numbers);
      Instruction* both =
          Add({.opcode = Opcode::kReduceWindow,
               .operands = {x_, positions, Scalar(type(), 0), Scalar(ElementType::kS32, -1)},
               .attributes = std::move(attributes),
               .called = {Larger()}});
      for (int64_t k = 0; k < 2; ++k) {
        op.results.push_back(Add({.opcode = Opcode::kGetTupleElement,
                                  .operands = {both},
                                  .attributes = {{Attr::kIndex, k}}}));
      }
      return op;
    }
    Computation* c = source_.module.AddComputation("window");
    Instruction *total = Argument(*c, type()), *element = Argument(*c, type());
    bool pred = IsPred(type()), sum = !pred && (IsComplex(type()) || Chance(50));
    Opcode opcode = sum ? Opcode::kAdd : Chance(50) ? Opcode::kMaximum : Opcode::kMinimum;
    if (IsCounted(type()) && Chance(30)) opcode = Chance(50) ? Opcode::kXor : Opcode::kAnd;
    c->set_root(AddTo(*c, {.opcode = opcode, .operands = {total, element}}));
    op.rounds = opcode == Opcode::kAdd;
    op.results = {Add({.opcode = Opcode::kReduceWindow,
                       .operands = {x_, Scalar(type(), static_cast<double>(Pick(0, pred ? 1 : 2)))},
                       .attributes = std::move(attributes),
                       .called = {c}})};
    return op;
  }

 private:
  RandomOp One(ir::InstructionSpec spec) { return {{Add(std::move(spec))}, {x_}}; }
  int64_t rank() const { return x_->shape().rank(); }
  ElementType type() const { return x_->shape().type(); }

  // An array that there is, or one made of a smaller one.
  Instruction* OfShape(const Shape& shape) {
    std::vector<Instruction*> fitting;
    for (Instruction* v : source_.values) {
      if (v->shape() == shape) fitting.push_back(v);
    }
    if (!fitting.empty() && Chance(70)) {
      return fitting[static_cast<size_t>(Pick(0, static_cast<int64_t>(fitting.size()) - 1))];
    }
    if (shape.rank() > 0 && Chance(30)) {
      return Add({.opcode = Opcode::kBroadcast,
                  .operands = {Parameter(Shape::Scalar(shape.type()))},
                  .attributes = {{Attr::kDimensions, Ints{}}},
                  .shape = shape});
    }
    return Parameter(shape);
  }

  Instruction* IndexConstant(const Shape& shape, int64_t high) {
    Literal l(shape);
    for (int64_t k = 0; k < shape.num_elements(); ++k) {
      int64_t value = Chance(10) ? Pick(-2, high + 2) : Pick(0, std::max<int64_t>(high, 0));
      VisitKernelType(shape.type(), [&](auto zero) {
        using T = decltype(zero);
        if constexpr (std::integral<T>) {
          l.values<T>()[static_cast<size_t>(k)] = static_cast<T>(value);
        }
      });
    }
    return Add({.opcode = Opcode::kConstant,
                .shape = shape,
                .literal = std::make_shared<const Literal>(std::move(l))});
  }

  // Numbers that are mostly between 0 and `high`.
  Instruction* Indices(ElementType index_type, std::span<const int64_t> dims, int64_t high) {
    Shape shape(index_type, dims);
    if (Chance(30)) return IndexConstant(shape, high);
    if (Chance(20) && !dims.empty()) {
      return Add({.opcode = Opcode::kIota,
                  .attributes = {{Attr::kIotaDimension, Pick(0, shape.rank() - 1)}},
                  .shape = shape});
    }
    Instruction* index = nullptr;
    if (Chance(50)) {
      // Integers that something computes.
      for (Instruction* v : source_.values) {
        if (!v->shape().SameDimensions(shape) || !IsInteger(v->shape().type())) continue;
        index = v;
        if (Chance(50)) break;
      }
    }
    if (!index) index = Parameter(shape);
    if (index->shape().type() != index_type) {
      index = Add({.opcode = Opcode::kConvert, .operands = {index}, .shape = shape});
    }
    if (Chance(50)) return index;
    Instruction* bound = Add({.opcode = Opcode::kBroadcast,
                              .operands = {IndexConstant(Shape::Scalar(index_type), high)},
                              .attributes = {{Attr::kDimensions, Ints{}}},
                              .shape = shape});
    return Add(
        {.opcode = Chance(50) ? Opcode::kMinimum : Opcode::kAnd, .operands = {index, bound}});
  }
  ElementType IndexType() {
    return kIndexTypes[Pick(0, static_cast<int64_t>(std::size(kIndexTypes)) - 1)];
  }

  std::vector<int64_t> PartOf(const std::vector<int64_t>& dims) {
    std::vector<int64_t> part;
    for (int64_t size : dims) {
      int64_t least = size > 0 && Chance(95) ? 1 : 0;
      part.push_back(Chance(30) ? size : Pick(least, size));
    }
    return part;
  }
  void AddStarts(std::vector<Instruction*>& operands) {
    ElementType index_type = IndexType();
    for (int64_t d = 0; d < rank(); ++d) {
      if (Chance(30) && d > 0) {
        operands.push_back(operands.back());
      } else {
        operands.push_back(Indices(index_type, {}, std::min<int64_t>(x_->shape().dim(d), 60)));
      }
    }
  }

  RandomOp DynamicSlice() {
    std::vector<Instruction*> operands = {x_};
    Ints sizes = PartOf(x_->shape().dims());
    AddStarts(operands);
    Instruction* slice = Add({.opcode = Opcode::kDynamicSlice,
                              .operands = std::move(operands),
                              .attributes = {{Attr::kDynamicSliceSizes, std::move(sizes)}}});
    return {{slice}, {x_}};
  }

  RandomOp DynamicUpdateSlice() {
    std::vector<int64_t> dims = PartOf(x_->shape().dims());
    Instruction* update = OfShape(Shape(type(), std::span<const int64_t>(dims)));
    std::vector<Instruction*> operands = {x_, update};
    AddStarts(operands);
    Instruction* whole =
        Add({.opcode = Opcode::kDynamicUpdateSlice, .operands = std::move(operands)});
    return {{whole}, {x_, update}};
  }

  // What gather and scatter have in common: how the dimensions of the operand are told apart, and
  // those of the array of slices.
  struct DimensionNumbers {
    Ints slice_dims, dropped, start_map, batch, indices_batch;
    std::vector<int64_t> sizes, indices, result;
    int64_t vector_dim = 0;
    Instruction* start = nullptr;
  };

  // False where the array of slices would be too large.
  bool Choose(DimensionNumbers& w) {
    std::vector<int64_t> kept, outside;
    int64_t most = 0;
    for (int64_t d = 0; d < rank(); ++d) {
      int64_t size = x_->shape().dim(d);
      bool batch = w.batch.empty() && rank() > 1 && Chance(15);
      bool placed = !batch && Chance(55), dropped = placed && size > 0 && Chance(60);
      if (batch) w.batch.push_back(d);
      if (placed) w.start_map.push_back(d);
      if (dropped) w.dropped.push_back(d);
      int64_t part = dropped || batch ? std::min<int64_t>(size, 1)
                     : placed         ? Pick(size > 0 ? 1 : 0, size)
                     : Chance(80)     ? size
                                      : Pick(0, size);
      w.sizes.push_back(part);
      if (!dropped && !batch) kept.push_back(part);
      if (placed) most = std::max(most, size - part);
    }
    std::shuffle(w.start_map.begin(), w.start_map.end(), source_.random);
    for (int64_t n = Pick(0, 2); n > 0; --n) outside.push_back(Chance(4) ? 0 : Pick(1, 9));
    if (!w.batch.empty()) {
      int64_t at = Pick(0, static_cast<int64_t>(outside.size()));
      outside.insert(outside.begin() + at, x_->shape().dim(w.batch[0]));
    }
    int64_t elements = 1;
    for (int64_t size : outside) elements *= std::max<int64_t>(size, 1);
    for (int64_t size : kept) elements *= std::max<int64_t>(size, 1);
    size_t rank = kept.size() + outside.size();
    if (elements > source_.max_elements || static_cast<int>(rank) > source_.max_rank) return false;
    // The slices' own dimensions are anywhere among the others.
    for (size_t k = 0, in = 0, out = 0; k < rank; ++k) {
      bool slice = in < kept.size() && (out == outside.size() || Chance(50));
      if (slice) w.slice_dims.push_back(static_cast<int64_t>(k));
      w.result.push_back(slice ? kept[in++] : outside[out++]);
    }
    w.indices = outside;
    bool scalar = w.start_map.size() == 1 && Chance(50);
    w.vector_dim = scalar ? static_cast<int64_t>(outside.size())
                          : Pick(0, static_cast<int64_t>(outside.size()));
    if (!scalar) {
      w.indices.insert(w.indices.begin() + w.vector_dim, static_cast<int64_t>(w.start_map.size()));
    }
    if (!w.batch.empty()) {
      // Any dimension of its size will do.
      for (size_t d = 0; d < w.indices.size(); ++d) {
        bool of_vector = !scalar && static_cast<int64_t>(d) == w.vector_dim;
        if (of_vector || w.indices[d] != x_->shape().dim(w.batch[0])) continue;
        w.indices_batch = {static_cast<int64_t>(d)};
      }
    }
    w.start = Indices(IndexType(), w.indices, std::min<int64_t>(most, 100));
    return true;
  }

  RandomOp Gather() {
    DimensionNumbers w;
    if (!Choose(w)) return {};
    Instruction* gather = Add({.opcode = Opcode::kGather,
                               .operands = {x_, w.start},
                               .attributes = {{Attr::kOffsetDims, w.slice_dims},
                                              {Attr::kCollapsedSliceDims, w.dropped},
                                              {Attr::kStartIndexMap, w.start_map},
                                              {Attr::kOperandBatchingDims, w.batch},
                                              {Attr::kStartIndicesBatchingDims, w.indices_batch},
                                              {Attr::kIndexVectorDim, w.vector_dim},
                                              {Attr::kSliceSizes, Ints(w.sizes)}}});
    return {{gather}, {x_}};
  }

  Instruction* Argument(Computation& c, ElementType element) {
    int64_t number = static_cast<int64_t>(c.parameters().size());
    return AddTo(c, {.opcode = Opcode::kParameter,
                     .attributes = {{Attr::kParameterNumber, number}},
                     .shape = Shape::Scalar(element)});
  }

  // One of the larger, the new one, and the old one less the new one.
  Computation* Combiner(bool* rounds) {
    Computation* c = source_.module.AddComputation("combine");
    Instruction *old = Argument(*c, type()), *added = Argument(*c, type());
    if (Chance(25)) {
      c->set_root(added);
      return c;
    }
    bool pred = IsPred(type());
    Opcode opcode = Chance(40) && !IsComplex(type()) ? Opcode::kMaximum
                    : pred                           ? Opcode::kXor
                                                     : Opcode::kAdd;
    // The order of what collides shows in the bits.
    if (!pred && Chance(30)) opcode = Opcode::kSubtract;
    *rounds = opcode == Opcode::kAdd || opcode == Opcode::kSubtract;
    c->set_root(AddTo(*c, {.opcode = opcode, .operands = {old, added}}));
    return c;
  }

  // Of two arrays, the second one of s32: both are replaced where the first's element grows, or
  // stays and the second's falls. So the order does not matter.
  Computation* Larger() {
    Computation* c = source_.module.AddComputation("larger");
    Instruction *old = Argument(*c, type()), *position = Argument(*c, ElementType::kS32);
    Instruction *added = Argument(*c, type()), *at = Argument(*c, ElementType::kS32);
    auto compare = [&](Instruction* a, Instruction* b, Direction direction) {
      Attributes order = {{Attr::kDirection, direction}};
      // Among NaNs and zeros of both signs, too, there is one that is the largest.
      if (IsNarrowFloat(a->shape().type())) {
        order.Set(Attr::kOrderType, std::string("TOTALORDER"));
      }
      return AddTo(*c, {.opcode = Opcode::kCompare, .operands = {a, b}, .attributes = order});
    };
    Instruction* same = compare(added, old, Direction::kEq);
    Instruction* falls = compare(at, position, Direction::kLt);
    same = AddTo(*c, {.opcode = Opcode::kAnd, .operands = {same, falls}});
    Instruction* grows = compare(added, old, Direction::kGt);
    grows = AddTo(*c, {.opcode = Opcode::kOr, .operands = {grows, same}});
    auto chosen = [&](Instruction* a, Instruction* b) {
      return AddTo(*c, {.opcode = Opcode::kSelect, .operands = {grows, a, b}});
    };
    std::vector<Instruction*> results = {chosen(added, old), chosen(at, position)};
    c->set_root(AddTo(*c, {.opcode = Opcode::kTuple, .operands = std::move(results)}));
    return c;
  }

  RandomOp Scatter() {
    DimensionNumbers w;
    if (!Choose(w)) return {};
    Attributes attributes = {{Attr::kUpdateWindowDims, w.slice_dims},
                             {Attr::kInsertedWindowDims, w.dropped},
                             {Attr::kScatterDimsToOperandDims, w.start_map},
                             {Attr::kInputBatchingDims, w.batch},
                             {Attr::kScatterIndicesBatchingDims, w.indices_batch},
                             {Attr::kIndexVectorDim, w.vector_dim}};
    Instruction* update = OfShape(Shape(type(), std::span<const int64_t>(w.result)));
    RandomOp op{.data = {x_, update}};
    if (Chance(20) && !IsComplex(type())) {
      x_ = WithoutNans(source_, x_);
      update = WithoutNans(source_, update);
      Shape numbers(ElementType::kS32, x_->shape().dimensions());
      Instruction* positions = OfShape(numbers);
      Instruction* at = OfShape(Shape(ElementType::kS32, std::span<const int64_t>(w.result)));
      Instruction* both = Add({.opcode = Opcode::kScatter,
                               .operands = {x_, positions, w.start, update, at},
                               .attributes = std::move(attributes),
                               .called = {Larger()}});
      for (int64_t k = 0; k < 2; ++k) {
        op.results.push_back(Add({.opcode = Opcode::kGetTupleElement,
                                  .operands = {both},
                                  .attributes = {{Attr::kIndex, k}}}));
      }
      return op;
    }
    op.results = {Add({.opcode = Opcode::kScatter,
                       .operands = {x_, w.start, update},
                       .attributes = std::move(attributes),
                       .called = {Combiner(&op.rounds)}})};
    return op;
  }

  // Along each dimension a window that moves not at all, a few elements, or over all before.
  std::vector<WindowDimension> RandomWindow() {
    std::vector<WindowDimension> window;
    int64_t places = 1, reads = 1;
    bool cumulative = Chance(40);
    int64_t along = rank() > 0 ? Pick(0, rank() - 1) : 0;
    for (int64_t d = 0; d < rank(); ++d) {
      int64_t size = x_->shape().dim(d);
      WindowDimension w;
      if (cumulative && d == along && size > 0) {
        w.size = size + (Chance(20) ? Pick(0, 3) : 0);
        int64_t before = Chance(80) ? w.size - 1 : w.size, after = size - 1 - before;
        (Chance(50) ? w.low : w.high) = before;
        (w.low == before ? w.high : w.low) = after + (w.size - size);
      } else if (!cumulative && Chance(60)) {
        w = {.size = Pick(1, 4),
             .stride = Pick(1, 3),
             .low = Pick(-1, 3),
             .high = Pick(-1, 3),
             .base_dilation = Chance(20) ? 2 : 1,
             .window_dilation = Chance(20) ? 2 : 1};
      }
      int64_t count = *WindowPlaces(w, size);
      int64_t rest = 1;
      for (int64_t k = d + 1; k < rank(); ++k) rest *= std::max<int64_t>(x_->shape().dim(k), 1);
      if (places * count * rest > source_.max_elements ||
          reads * count * w.size * rest > source_.max_elements) {
        w = {};
        count = size;
      }
      places *= std::max<int64_t>(count, 1);
      reads *= std::max<int64_t>(count * w.size, 1);
      window.push_back(w);
    }
    return window;
  }

  Instruction* x_;
};

}  // namespace

RandomOp RandomIndexedOp(const RandomSource& source, Instruction* x) {
  return Generator(source, x).IndexedOp();
}

RandomOp RandomReduceWindow(const RandomSource& source, Instruction* x) {
  return Generator(source, x).ReduceWindow();
}

RandomOp RandomBitsOp(const RandomSource& source, Instruction* x) {
  return Generator(source, x).Bits();
}

}  // namespace kiln::testing
