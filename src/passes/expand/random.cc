// Salmon, Moraes, Dror, Shaw: Parallel Random Numbers: As Easy as 1, 2, 3 (SC 2011). The bits of
// key and counter in the state, and the bits of a block for each element, are those of XLA.
#include <array>
#include <cmath>
#include <numbers>

#include "passes/expand/expand.h"

namespace kiln::passes::expand {
namespace {

using ir::Instruction;

// Arithmetic on unsigned integers, of arrays of one shape.
class Words {
 public:
  explicit Words(Builder& b) : b_(b) {}

  template <typename T>
  Instruction* Number(const Instruction* like, T value) {
    return b_.Splat(like->shape(), Literal::Scalar(like->shape().type(), value));
  }
  Instruction* Word(const Instruction* like, uint32_t value) { return Number(like, value); }
  Instruction* Xor(Instruction* x, Instruction* y) { return b_.Binary(Opcode::kXor, x, y); }
  Instruction* RotateLeft(Instruction* x, uint32_t by) {
    return b_.Or(b_.Binary(Opcode::kShiftLeft, x, Word(x, by)),
                 b_.Binary(Opcode::kShiftRightLogical, x, Word(x, 32 - by)));
  }
  Instruction* Low(Instruction* x) { return b_.Convert(x, ElementType::kU32); }
  Instruction* High(Instruction* x) {
    return Low(b_.Binary(Opcode::kShiftRightLogical, x, Number<uint64_t>(x, 32)));
  }
  Instruction* Joined(Instruction* low, Instruction* high) {
    Instruction* upper = b_.Convert(high, ElementType::kU64);
    return b_.Or(b_.Convert(low, ElementType::kU64),
                 b_.Binary(Opcode::kShiftLeft, upper, Number<uint64_t>(upper, 32)));
  }
  // A scalar at each of n places, and its number added: start, start + 1, ...
  Instruction* Count(Instruction* start, int64_t n) {
    const Shape shape(ElementType::kU64, {n});
    Instruction* iota = b_.Add(Opcode::kIota, {}, {{Attr::kIotaDimension, int64_t{0}}}, shape);
    return b_.Plus(b_.Spread(shape, start), iota);
  }

 private:
  Builder& b_;
};

// Element k of a vector, as a scalar.
Instruction* At(Builder& b, Instruction* vector, int64_t k) {
  return b.Reshape(
      b.Add(Opcode::kSlice, {vector}, {{Attr::kSlice, std::vector<SliceDimension>{{k, k + 1, 1}}}}),
      {});
}

Instruction* Vector(Builder& b, const std::vector<Instruction*>& scalars) {
  std::vector<Instruction*> parts;
  for (Instruction* scalar : scalars) parts.push_back(b.Reshape(scalar, {1}));
  return b.Concatenate(std::move(parts), 0);
}

// Threefry-2x32 of 20 rounds, of a scalar key and an array of counters.
std::array<Instruction*, 2> ThreeFry(Builder& b, Instruction* key, Instruction* counters) {
  constexpr uint32_t kRotations[] = {13, 15, 26, 6, 17, 29, 16, 24};
  Words w(b);
  Instruction *x = w.Low(counters), *y = w.High(counters);
  Instruction *low = w.Low(key), *high = w.High(key);
  Instruction* parity = w.Xor(w.Word(low, 0x1BD11BDA), w.Xor(low, high));
  const Shape& shape = x->shape();
  Instruction* keys[] = {b.Spread(shape, low), b.Spread(shape, high), b.Spread(shape, parity)};
  x = b.Plus(x, keys[0]);
  y = b.Plus(y, keys[1]);
  for (uint32_t round = 0; round < 20; ++round) {
    x = b.Plus(x, y);
    y = w.Xor(w.RotateLeft(y, kRotations[round % 8]), x);
    if (round % 4 != 3) continue;
    const uint32_t injection = round / 4 + 1;
    x = b.Plus(x, keys[injection % 3]);
    y = b.Plus(b.Plus(y, keys[(injection + 1) % 3]), w.Word(y, injection));
  }
  return {x, y};
}

// Philox-4x32 of 10 rounds, of a scalar key and arrays of the counters' halves.
std::array<Instruction*, 4> Philox(Builder& b, Instruction* key, Instruction* low,
                                   Instruction* high) {
  Words w(b);
  std::array<Instruction*, 4> c = {w.Low(low), w.High(low), w.Low(high), w.High(high)};
  Instruction *k0 = w.Low(key), *k1 = w.High(key);
  const Shape& shape = c[0]->shape();
  for (int round = 0; round < 10; ++round) {
    Instruction *a = w.Word(c[0], 0xD2511F53), *d = w.Word(c[2], 0xCD9E8D57);
    c = {w.Xor(w.Xor(b.Binary(Opcode::kMulhi, c[2], d), c[1]), b.Spread(shape, k0)),
         b.Times(c[2], d),
         w.Xor(w.Xor(b.Binary(Opcode::kMulhi, c[0], a), c[3]), b.Spread(shape, k1)),
         b.Times(c[0], a)};
    k0 = b.Plus(k0, w.Word(k0, 0x9E3779B9));
    k1 = b.Plus(k1, w.Word(k1, 0xBB67AE85));
  }
  return c;
}

// Elements of up to 32 bits are paired along a dimension, a block for each pair: the first even
// dimension, or else the longest one, as if it were longer by one.
int64_t PairedDimension(const Shape& shape) {
  int64_t longest = 0;
  for (int64_t d = 0; d < shape.rank(); ++d) {
    if (shape.dim(d) % 2 == 0) return d;
    if (shape.dim(d) > shape.dim(longest)) longest = d;
  }
  return longest;
}

Instruction* Cut(Builder& b, Instruction* x, const Shape& to) {
  if (x->shape().dimensions() == to.dimensions()) return x;
  std::vector<SliceDimension> slices;
  for (const Dimension& d : to.dimensions()) slices.push_back({0, d.size(), 1});
  return b.Add(Opcode::kSlice, {x}, {{Attr::kSlice, std::move(slices)}});
}

// Arrays of n places each, whose elements take turns, in an array of `shape`.
Instruction* TakingTurns(Builder& b, const std::vector<Instruction*>& arrays, int64_t n,
                         const Shape& shape) {
  std::vector<Instruction*> parts;
  for (Instruction* array : arrays) parts.push_back(b.Reshape(array, {n, 1}));
  const int64_t all = n * static_cast<int64_t>(arrays.size());
  Instruction* flat = b.Reshape(b.Concatenate(std::move(parts), 1), {all});
  flat = Cut(b, flat, Shape(flat->shape().type(), {shape.num_elements()}));
  return b.Reshape(flat, shape.dimensions());
}

// Bits of words in the element type of `shape`, which has no more.
Instruction* InType(Builder& b, Instruction* words, const Shape& shape) {
  const ElementType type = shape.type();
  if (BitWidth(words->shape().type()) == BitWidth(type)) return b.Bits(words, type);
  return b.Convert(words, type);
}

struct Generated {
  Instruction* state;
  Instruction* bits;
};

Generated ByThreeFry(Builder& b, Instruction* state, const Shape& shape) {
  Words w(b);
  Instruction *key = At(b, state, 0), *counter = At(b, state, 1);
  int64_t blocks = 0;
  Instruction* bits = nullptr;
  if (BitWidth(shape.type()) == 64) {
    blocks = shape.num_elements();
    auto [x, y] = ThreeFry(b, key, w.Count(counter, blocks));
    bits = b.Reshape(w.Joined(x, y), shape.dimensions());
  } else if (shape.rank() == 0) {
    blocks = 1;
    bits = b.Reshape(ThreeFry(b, key, w.Count(counter, 1))[0], {});
  } else {
    const size_t paired = static_cast<size_t>(PairedDimension(shape));
    std::vector<Dimension> halves = shape.dimensions();
    halves[paired] = (halves[paired].size() + 1) / 2;
    blocks = Shape(shape.type(), halves).num_elements();
    std::vector<Dimension> whole = halves, apart = halves;
    whole[paired] = 2 * halves[paired].size();
    apart.insert(apart.begin() + static_cast<int64_t>(paired) + 1, 1);
    auto [x, y] = ThreeFry(b, key, w.Count(counter, blocks));
    bits =
        b.Concatenate({b.Reshape(x, apart), b.Reshape(y, apart)}, static_cast<int64_t>(paired) + 1);
    bits = Cut(b, b.Reshape(bits, std::move(whole)), shape);
  }
  Instruction* next = b.Plus(counter, w.Number(counter, static_cast<uint64_t>(blocks)));
  return {Vector(b, {key, next}), InType(b, bits, shape)};
}

Generated ByPhilox(Builder& b, Instruction* state, const Shape& shape) {
  Words w(b);
  const bool wide_counter = state->shape().dim(0) == 3;
  Instruction *key = At(b, state, 0), *low = At(b, state, 1);
  Instruction* high = wide_counter ? At(b, state, 2) : key;
  const bool doubles = BitWidth(shape.type()) == 64;
  const int64_t n = shape.num_elements(), each = doubles ? 2 : 4, blocks = (n + each - 1) / each;
  // The upper half goes on where the lower one has come round.
  auto carried = [&](Instruction* sum) {
    const Shape& all = sum->shape();
    Instruction* next = b.Plus(high, w.Number<uint64_t>(high, 1));
    return b.Select(b.Compare(Direction::kLt, sum, b.Spread(all, low)), b.Spread(all, next),
                    b.Spread(all, high));
  };
  Instruction* counters = w.Count(low, blocks);
  std::array<Instruction*, 4> c = Philox(b, key, counters, carried(counters));
  std::vector<Instruction*> turns(c.begin(), c.end());
  if (doubles) turns = {w.Joined(c[0], c[1]), w.Joined(c[2], c[3])};
  Instruction* bits = TakingTurns(b, turns, blocks, shape);
  Instruction* next = b.Plus(low, w.Number(low, static_cast<uint64_t>(blocks)));
  std::vector<Instruction*> after = {key, next};
  if (wide_counter) after.push_back(carried(next));
  return {Vector(b, after), InType(b, bits, shape)};
}

// Random bits of a state that no other run of the op has.
Instruction* FreshBits(Builder& b, ElementType type, const Shape& shape) {
  Instruction* state =
      b.Add(Opcode::kRngGetAndUpdateState, {}, {{Attr::kDelta, shape.num_elements()}});
  return ByPhilox(b, state, Shape(type, shape.dimensions())).bits;
}

// integers from a to below b => a + bits mod (b - a)
Instruction* UniformIntegers(Builder& b, Instruction* a, Instruction* end, const Shape& shape) {
  Words w(b);
  // Differences of all types are right in 64 bits, which wrap.
  auto wide = [&](Instruction* x) {
    if (IsSigned(x->shape().type())) x = b.Convert(x, ElementType::kS64);
    return b.Convert(x, ElementType::kU64);
  };
  Instruction *first = wide(a), *range = b.Minus(wide(end), first);
  // Where there is none, a is all.
  range = b.Binary(Opcode::kMaximum, range, w.Number<uint64_t>(range, 1));
  Instruction* bits = FreshBits(b, ElementType::kU64, shape);
  const Shape& all = bits->shape();
  Instruction* rest = b.Binary(Opcode::kRemainder, bits, b.Spread(all, range));
  Instruction* sum = b.Plus(b.Spread(all, first), rest);
  return b.Convert(b.Convert(sum, ElementType::kS64), shape.type());
}

// Numbers (k + offset) / 2^n for the upper n bits k of random ones, in f32 or f64.
Instruction* Fractions(Builder& b, ElementType type, int n, double offset, const Shape& shape) {
  const ElementType word = type == ElementType::kF64 ? ElementType::kU64 : ElementType::kU32;
  Instruction* bits = FreshBits(b, word, shape);
  bits = b.Binary(Opcode::kShiftRightLogical, bits,
                  b.Number(bits, static_cast<double>(BitWidth(word) - n)));
  Instruction* k = b.Convert(bits, type);
  if (offset != 0) k = b.Plus(k, b.Number(k, offset));
  return b.Times(k, b.Number(k, std::ldexp(1.0, -n)));
}

// floats from a to below b => a (1 - u) + b u   for u from 0 to below 1
Instruction* UniformFloats(Builder& b, Instruction* a, Instruction* end, const Shape& shape) {
  const bool is_double = shape.type() == ElementType::kF64;
  const ElementType type = is_double ? ElementType::kF64 : ElementType::kF32;
  Instruction* u = Fractions(b, type, is_double ? 53 : 24, 0, shape);
  const Shape& all = u->shape();
  Instruction* sum = b.Plus(b.Times(b.Spread(all, b.Convert(a, type)), b.Minus(b.Number(u, 1), u)),
                            b.Times(b.Spread(all, b.Convert(end, type)), u));
  Instruction* rounded = b.Convert(sum, shape.type());
  // Results rounded to b.
  const Shape& result = rounded->shape();
  return b.Select(b.Compare(Direction::kGe, rounded, b.Spread(result, end)), b.Spread(result, a),
                  rounded);
}

// normal(mean, deviation) => mean + deviation * sqrt(2) erf-inv(2u - 1)   for u between 0 and 1
Instruction* Normal(Builder& b, Instruction* mean, Instruction* deviation, const Shape& shape) {
  const bool is_double = shape.type() == ElementType::kF64;
  const ElementType type = is_double ? ElementType::kF64 : ElementType::kF32;
  // (k + 1/2) / 2^n: neither end occurs, and 2u - 1 is exact.
  Instruction* u = Fractions(b, type, is_double ? 52 : 23, 0.5, shape);
  const Shape& all = u->shape();
  Instruction* at = b.Minus(b.Times(u, b.Number(u, 2)), b.Number(u, 1));
  Instruction* z = b.Times(b.Unary(Opcode::kErfInv, at), b.Number(u, std::numbers::sqrt2));
  Instruction* scaled = b.Times(b.Spread(all, b.Convert(deviation, type)), z);
  return b.Convert(b.Plus(b.Spread(all, b.Convert(mean, type)), scaled), shape.type());
}

}  // namespace

Result<Instruction*> Rng(Builder& b, Instruction* i) {
  Instruction *x = i->operand(0), *y = i->operand(1);
  if (i->attributes().Text(Attr::kDistribution) == "rng_normal") {
    return Normal(b, x, y, i->shape());
  }
  return IsFloat(i->shape().type()) ? UniformFloats(b, x, y, i->shape())
                                    : UniformIntegers(b, x, y, i->shape());
}

Result<Instruction*> RngBitGenerator(Builder& b, Instruction* i) {
  const Shape& shape = i->shape().elements()[1];
  const bool three_fry = i->attributes().Text(Attr::kAlgorithm) == "rng_three_fry";
  Generated g = three_fry ? ByThreeFry(b, i->operand(0), shape) : ByPhilox(b, i->operand(0), shape);
  return b.Tuple({g.state, g.bits});
}

}  // namespace kiln::passes::expand
