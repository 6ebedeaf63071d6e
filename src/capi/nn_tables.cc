// Embedding lookups and one-hot encodings.
#include <limits>

#include "base/strings.h"
#include "capi/formula.h"
#include "kiln/nn.h"

using namespace kiln;        // NOLINT: the functions below are the namespace's face
using namespace kiln::capi;  // NOLINT
using V = Formula::Value;

namespace {

// Indices as s32 or s64, whichever holds the positions of a dimension. Larger indices stay out of
// bounds.
V SignedIndices(Formula& f, V indices, const Dimension& size) {
  if (!f.ok()) return nullptr;
  const ElementType type = indices->shape().type();
  if (type == ElementType::kU64) {
    V most = f.Like(indices, 0x1p62);
    return f.Convert(f.Add(Opcode::kMinimum, {indices, most}), ElementType::kS64);
  }
  const bool wide = type == ElementType::kS64 || type == ElementType::kU32 ||
                    (size.is_constant() && size.size() > INT32_MAX);
  return f.Convert(indices, wide ? ElementType::kS64 : ElementType::kS32);
}

// The fill value for a missing element.
V Missing(Formula& f, ElementType type) {
  if (!f.ok()) return nullptr;
  return VisitType(type, [&](auto zero) -> V {
    using T = decltype(zero);
    T value{};
    if constexpr (std::same_as<T, bool>) {
      value = true;
    } else if constexpr (ComplexType<T>) {
      value = T(std::numeric_limits<typename T::value_type>::quiet_NaN());
    } else if constexpr (IntType<T>) {
      value = std::numeric_limits<T>::is_signed ? std::numeric_limits<T>::min()
                                                : std::numeric_limits<T>::max();
    } else {
      if (!std::numeric_limits<T>::has_quiet_NaN) {
        return f.Fail(TypeName(type), " has no NaN for indices that are not in the table; other ",
                      "modes need none");
      }
      value = std::numeric_limits<T>::quiet_NaN();
    }
    return f.Constant(Literal::Scalar<T>(type, value));
  });
}

// The slices of x along a dimension, with indices clamped to it.
V Gathered(Formula& f, V x, V indices, int64_t dimension, std::vector<Dimension> dims) {
  if (!f.ok()) return nullptr;
  const int64_t rank = x->shape().rank(), within = indices->shape().rank();
  Ints offsets, sizes;
  for (int64_t d = 0; d < rank; ++d) {
    // -1 for a symbol, which means the whole dimension.
    sizes.push_back(d == dimension ? 1 : x->shape().dim(d));
    if (d != dimension) offsets.push_back(d < dimension ? d : d + within - 1);
  }
  return f.Add(Opcode::kGather, {x, indices},
               {{Attr::kOffsetDims, offsets},
                {Attr::kCollapsedSliceDims, Ints{dimension}},
                {Attr::kStartIndexMap, Ints{dimension}},
                {Attr::kIndexVectorDim, within},
                {Attr::kSliceSizes, sizes}},
               Shape(x->shape().type(), std::move(dims)));
}

V Taken(Formula& f, V x, V given, int64_t wanted, kiln_take_mode mode) {
  if (!f.ok()) return nullptr;
  if (mode < KILN_TAKE_FILL || mode > KILN_TAKE_WRAP) return f.Fail("mode ", mode, " is none");
  const int64_t dimension = f.Dimension("dimension", wanted, x->shape().rank());
  if (!f.ok()) return nullptr;
  const Dimension size = x->shape().dimension(dimension);
  std::vector<Dimension> dims = x->shape().dimensions();
  const auto at = dims.erase(dims.begin() + dimension);
  const std::vector<Dimension>& inserted = given->shape().dimensions();
  dims.insert(at, inserted.begin(), inserted.end());

  V missing = mode == KILN_TAKE_FILL ? Missing(f, x->shape().type()) : nullptr;
  if (!f.ok()) return nullptr;
  if (size == Dimension(0)) {
    if (missing) return f.Broadcast(missing, std::move(dims), {});
    return f.Fail("operand is ", Formula::Describe(x), "; dimension ", dimension, " is empty");
  }
  V indices = SignedIndices(f, given, size);
  if (!f.ok()) return nullptr;
  const ElementType type = indices->shape().type();
  if (mode == KILN_TAKE_CLIP) return Gathered(f, x, indices, dimension, std::move(dims));

  V count = f.BroadcastTo(f.Size(x, dimension, type), inserted);
  if (mode == KILN_TAKE_WRAP) indices = f.Add(Opcode::kRemainder, {indices, count});
  V none = f.Like(indices, 0);
  V negative = f.Compare(Direction::kLt, indices, none);
  indices = f.Add(Opcode::kSelect, {negative, f.Add(Opcode::kAdd, {indices, count}), indices});
  V slices = Gathered(f, x, indices, dimension, dims);
  if (mode == KILN_TAKE_WRAP) return slices;
  V inside = f.Add(Opcode::kAnd, {f.Compare(Direction::kGe, indices, none),
                                  f.Compare(Direction::kLt, indices, count)});
  Ints places;
  for (int64_t d = 0; d < std::ssize(inserted); ++d) places.push_back(dimension + d);
  inside = f.Broadcast(inside, dims, std::move(places));
  return f.Add(Opcode::kSelect, {inside, slices, f.Broadcast(missing, dims, {})});
}

}  // namespace

kiln_value kiln_nn_take(kiln_graph* graph, kiln_value operand, kiln_value indices,
                        int64_t dimension, kiln_take_mode mode) {
  return Word(graph, "take", [&](Formula& f) {
    V x = f.Array("operand", operand, kAnyType);
    V given = f.Array("indices", indices, kIntType);
    return Taken(f, x, given, dimension, mode);
  });
}

kiln_value kiln_nn_one_hot(kiln_graph* graph, kiln_value indices, int64_t classes,
                           int64_t dimension, kiln_dtype dtype) {
  return Word(graph, "one_hot", [&](Formula& f) -> V {
    V given = f.Array("indices", indices, kIntType);
    auto size = graph->Dimensions(&classes, 1);
    if (!size.ok()) return f.Fail(size.status().WithContext("classes"));
    if (!IsElementType(dtype)) return f.Fail("dtype ", dtype, " is not an element type");
    if (!f.ok()) return nullptr;
    const int64_t rank = given->shape().rank();
    const int64_t place = f.Dimension("dimension", dimension, rank + 1);
    if (!f.ok()) return nullptr;
    V positions = SignedIndices(f, given, size->front());
    if (!f.ok()) return nullptr;
    std::vector<Dimension> dims = given->shape().dimensions();
    dims.insert(dims.begin() + place, size->front());
    Ints others;
    for (int64_t d = 0; d < rank; ++d) others.push_back(d < place ? d : d + 1);
    V wanted = f.Broadcast(positions, dims, std::move(others));
    V all = f.Iota(Shape(positions->shape().type(), std::move(dims)), place);
    return f.Convert(f.Compare(Direction::kEq, wanted, all), static_cast<ElementType>(dtype));
  });
}
