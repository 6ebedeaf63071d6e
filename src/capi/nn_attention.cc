// Scaled dot product attention.
#include <cmath>
#include <limits>

#include "base/strings.h"
#include "capi/formula.h"
#include "capi/options.h"
#include "kiln/nn.h"

using namespace kiln;        // NOLINT: the functions below are the namespace's face
using namespace kiln::capi;  // NOLINT
using V = Formula::Value;

namespace {

// The sizes of the operands, with a batch dimension.
struct Sizes {
  Dimension batches, queries, heads, size, keys, key_heads, group;
};

std::vector<Dimension> WithBatch(const Shape& shape) {
  std::vector<Dimension> dims = shape.dimensions();
  if (dims.size() == 3) dims.insert(dims.begin(), 1);
  return dims;
}

// The number of query heads per key head.
std::optional<Dimension> GroupOf(const Dimension& heads, const Dimension& key_heads) {
  if (heads == key_heads) return Dimension(1);
  if (!heads.is_constant() || !key_heads.is_constant() || key_heads.size() == 0 ||
      heads.size() % key_heads.size() != 0) {
    return std::nullopt;
  }
  return Dimension(heads.size() / key_heads.size());
}

Result<Sizes> SizesOf(V query, V key, V value) {
  auto fail = [&](const auto&... reason) {
    return InvalidArgument("query is ", Formula::Describe(query), ", key ", Formula::Describe(key),
                           " and value ", Formula::Describe(value), "; ", reason...);
  };
  for (V v : {query, key, value}) {
    if (v->shape().rank() != query->shape().rank() || v->shape().rank() < 3 ||
        v->shape().rank() > 4) {
      return fail("expected [B,T,N,H], [B,S,K,H] and [B,S,K,H], all with B or all without");
    }
    if (v->shape().type() != query->shape().type()) return fail("expected one element type");
    for (const Dimension& d : v->shape().dimensions()) {
      if (d.is_bounded()) return fail("bounded sizes are not supported");
    }
  }
  const std::vector<Dimension> q = WithBatch(query->shape()), k = WithBatch(key->shape());
  if (!key->shape().SameDimensions(value->shape())) return fail("key and value must be alike");
  if (q[0] != k[0]) return fail("the numbers of batches are ", q[0], " and ", k[0]);
  if (q[3] != k[3]) return fail("the sizes of heads are ", q[3], " and ", k[3]);
  std::optional<Dimension> group = GroupOf(q[2], k[2]);
  if (!group) return fail(k[2], " heads of keys do not divide ", q[2], " of queries");
  return Sizes{q[0], q[1], q[2], q[3], k[1], k[2], *group};
}

// Reshapes an array broadcast to [B,N,T,S] to the logits' form [B,K,T,G,S], or [B,N,T,S] for groups
// of one head.
V LikeProducts(Formula& f, V array, const Sizes& s) {
  array = f.BroadcastTo(array, {s.batches, s.heads, s.queries, s.keys});
  if (s.group == Dimension(1)) return array;
  array = f.Reshape(array, {s.batches, s.key_heads, s.group, s.queries, s.keys});
  return f.Transpose(array, {0, 1, 3, 2, 4});
}

V Attention(Formula& f, V query, V key, V value, V mask, V bias, bool causal, double scale) {
  if (!f.ok()) return nullptr;
  Result<Sizes> sizes = SizesOf(query, key, value);
  if (!sizes.ok()) return f.Fail(sizes.status());
  const Sizes& s = *sizes;
  if (scale == 0) {
    if (!s.size.is_constant()) {
      return f.Fail("query is ", Formula::Describe(query),
                    "; a scale must be given where the size of heads is a symbol");
    }
    scale = 1 / std::sqrt(static_cast<double>(s.size.size()));
  }
  const Shape shape = query->shape();
  const ElementType computed = ComputedType(shape.type());
  const bool grouped = s.group != Dimension(1);
  key = f.Reshape(key, WithBatch(key->shape()));
  value = f.Reshape(value, WithBatch(value->shape()));
  query = grouped ? f.Reshape(query, {s.batches, s.queries, s.key_heads, s.group, s.size})
                  : f.Reshape(query, WithBatch(shape));

  // [B,N,T,S], or [B,K,T,G,S].
  std::vector<Dimension> dims = {s.batches, s.heads, s.queries, s.keys};
  if (grouped) dims = {s.batches, s.key_heads, s.queries, s.group, s.keys};
  V products = f.Add(Opcode::kDot, {query, key},
                     {{Attr::kLhsBatchDims, Ints{0, 2}},
                      {Attr::kRhsBatchDims, Ints{0, 2}},
                      {Attr::kLhsContractingDims, Ints{grouped ? 4 : 3}},
                      {Attr::kRhsContractingDims, Ints{3}}},
                     Shape(computed, dims));
  if (!f.ok()) return nullptr;
  products = f.Add(Opcode::kMultiply, {products, f.Like(products, scale)});
  if (bias) {
    products = f.Add(Opcode::kAdd, {products, LikeProducts(f, f.Convert(bias, computed), s)});
  }
  V seen = mask ? LikeProducts(f, mask, s) : nullptr;
  if (causal) {
    V queries = f.Iota(Shape(ElementType::kS32, dims), 2);
    V keys = f.Iota(Shape(ElementType::kS32, dims), std::ssize(dims) - 1);
    V before = f.Compare(Direction::kLe, keys, queries);
    seen = seen ? f.Add(Opcode::kAnd, {seen, before}) : before;
  }
  if (!f.ok()) return nullptr;
  if (seen) {
    const double lowest = computed == ElementType::kF64 ? std::numeric_limits<double>::max()
                                                        : std::numeric_limits<float>::max();
    products = f.Add(Opcode::kSelect, {seen, products, f.Like(products, -0.7 * lowest)});
  }
  const Ints keys = {std::ssize(dims) - 1};
  V most = f.Unfold(f.Fold(products, keys, KILN_REDUCER_MAX), products, keys);
  V weights = f.Add(Opcode::kExponential, {f.Add(Opcode::kSubtract, {products, most})});
  V sum = f.Fold(weights, keys, KILN_REDUCER_SUM);
  weights = f.Add(Opcode::kDivide, {weights, f.Unfold(sum, weights, keys)});
  weights = f.Convert(weights, shape.type());
  // [B,N,T,H], or [B,K,T,G,H].
  dims.back() = s.size;
  V result = f.Add(Opcode::kDot, {weights, value},
                   {{Attr::kLhsBatchDims, Ints{0, 1}},
                    {Attr::kRhsBatchDims, Ints{0, 2}},
                    {Attr::kLhsContractingDims, keys},
                    {Attr::kRhsContractingDims, Ints{1}}},
                   Shape(shape.type(), dims));
  result = f.Transpose(result, grouped ? Ints{0, 2, 1, 3, 4} : Ints{0, 2, 1, 3});
  return f.Reshape(result, shape.dimensions());
}

}  // namespace

void kiln_attention_options_init(kiln_attention_options* options, size_t size) {
  InitOptions(options, size);
}

kiln_value kiln_nn_attention(kiln_graph* graph, kiln_value query, kiln_value key, kiln_value value,
                             const kiln_attention_options* options) {
  return Word(graph, "attention", [&](Formula& f) -> V {
    auto read = ReadOptions("kiln_attention_options", options);
    if (!read.ok()) return f.Fail(read.status());
    if (read->reserved != 0) return f.Fail("kiln_attention_options.reserved is not 0");
    if (!std::isfinite(read->scale)) return f.Fail("scale is ", read->scale);
    const bool causal = f.Flag("causal", read->causal);
    V q = f.Array("query", query, kFloatType), k = f.Array("key", key, kFloatType);
    V v = f.Array("value", value, kFloatType);
    V mask = f.OptionalArray("mask", read->mask, kPredType);
    V bias = f.OptionalArray("bias", read->bias, kFloatType);
    return Attention(f, q, k, v, mask, bias, causal, read->scale);
  });
}
