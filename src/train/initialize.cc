// First values of parameters.
#include <array>
#include <cmath>
#include <numbers>
#include <optional>

#include "base/sized_struct.h"
#include "kiln/custom_call.h"
#include "kiln/train.h"
#include "train/value.h"

namespace kiln::train {
namespace {

// The deviation of the normal distribution within -2 and 2.
constexpr double kTruncatedDeviation = 0.87962566103423978;

// FNV-1a's hash of the name, and the seed, mixed as by SplitMix64.
uint64_t KeyOf(int64_t seed, std::string_view name) {
  uint64_t key = 0xcbf29ce484222325;
  for (unsigned char c : name) key = (key ^ c) * 0x100000001b3;
  key += static_cast<uint64_t>(seed) * 0x9e3779b97f4a7c15;
  key = (key ^ (key >> 30)) * 0xbf58476d1ce4e5b9;
  key = (key ^ (key >> 27)) * 0x94d049bb133111eb;
  return key ^ (key >> 31);
}

// An array to be made, with f32 or f64 for its type.
struct Maker {
  kiln_graph* graph;
  kiln_initializer_options o;
  kiln_dtype type;
  std::span<const int64_t> dims;
  uint64_t key;

  // Between -1 and 1: the middles of 2^23, or 2^52, equal parts.
  Value Uniform() const {
    const bool is_wide = type == KILN_F64;
    const std::array<uint64_t, 2> state = {key, 0};
    const int64_t two = 2;
    // Behind the barrier the key is no part of the code: arrays of equal sizes have one kernel.
    const kiln_value start = kiln_op_opt_barrier(
        graph, kiln_op_constant(graph, KILN_U64, &two, 1, state.data(), sizeof state));
    const kiln_value made = kiln_op_rng_bit_generator(
        graph, start, "rng_three_fry", 13, is_wide ? KILN_U64 : KILN_U32, dims.data(), dims.size());
    const Value bits = ValueOf(graph, kiln_op_get_tuple_element(graph, made, 1));
    const Value shift = Scalar(graph, bits.dtype, is_wide ? 12 : 9);
    const Value part{graph, kiln_op_shift_right_logical(graph, bits.id, shift.id), bits.dtype,
                     bits.dims};
    const Value number = Convert(Convert(part, is_wide ? KILN_S64 : KILN_S32), type);
    return (is_wide ? 0x1p-51 : 0x1p-22) * (number + 0.5) - 1;
  }

  // Of deviation 1. The error function of the bound, over sqrt(2), makes it a truncated one.
  Value Normal(double most = 1) const {
    return std::numbers::sqrt2 * Apply(kiln_op_erf_inv, most * Uniform());
  }
  Value TruncatedNormal() const { return Normal(std::erf(std::numbers::sqrt2)); }

  Result<Value> OfVariance(double fan, bool is_uniform) const {
    const double deviation = o.scale / std::sqrt(fan);
    if (is_uniform) return std::sqrt(3.0) * deviation * Uniform();
    return deviation / kTruncatedDeviation * TruncatedNormal();
  }

  struct Places {
    size_t in, out;
  };
  Result<Places> PlacesOf() const {
    const auto rank = static_cast<int64_t>(dims.size());
    const int64_t in = o.in_dimension == 0 ? -2 : o.in_dimension;
    const int64_t out = o.out_dimension == 0 ? -1 : o.out_dimension;
    if (rank < 2) return InvalidArgument("there are ", rank, " dimensions; expected 2 or more");
    for (int64_t d : {in, out}) {
      if (d >= 0 || d < -rank) {
        return InvalidArgument("dimension ", d, " is none; of ", rank, " the first is ", -rank);
      }
    }
    if (in == out) return InvalidArgument("in_dimension and out_dimension are the same");
    for (int64_t size : dims) {
      if (size < 0) return InvalidArgument("a size is a symbol; expected constant ones");
    }
    return Places{static_cast<size_t>(in + rank), static_cast<size_t>(out + rank)};
  }

  // The product of all sizes but one.
  double Others(size_t place) const {
    double product = 1;
    for (size_t d = 0; d < dims.size(); ++d) {
      if (d != place) product *= static_cast<double>(dims[d]);
    }
    return product;
  }

  Result<Value> OfFans(bool is_glorot, bool is_uniform) const {
    KILN_ASSIGN_OR_RETURN(const Places places, PlacesOf());
    const double fan_in = Others(places.out), fan_out = Others(places.in);
    const double fan = (is_glorot ? fan_in + fan_out : fan_in) / 2;
    // Of no elements there are none to make.
    return fan == 0 ? Fill(graph, type, dims, 0) : OfVariance(fan, is_uniform);
  }

  kiln_value Call(const char* target, std::span<const kiln_value> operands,
                  std::span<const std::span<const int64_t>> results) const {
    std::vector<kiln_shape> shapes;
    for (std::span<const int64_t> sizes : results) {
      kiln_shape shape = KILN_SHAPE_INIT;
      shape.dtype = type;
      shape.rank = sizes.size();
      shape.dims = sizes.data();
      shapes.push_back(shape);
    }
    std::vector<const kiln_shape*> pointers;
    for (const kiln_shape& shape : shapes) pointers.push_back(&shape);
    return kiln_op_custom_call(graph, target, std::string_view(target).size(), operands.data(),
                               operands.size(), pointers.data(), pointers.size(), nullptr);
  }

  // The orthonormal factor Q of a normal matrix [rows, columns] with R's diagonal positive, by
  // which all such matrices are equally likely (Mezzadri, arXiv:math-ph/0609050).
  Value Factor(int64_t rows, int64_t columns) const {
    const std::array<int64_t, 2> sizes = {rows, columns};
    Maker matrix = *this;
    matrix.dims = sizes;
    const kiln_value normal = matrix.Normal().id;
    const std::array<std::span<const int64_t>, 2> parts = {sizes, {&columns, 1}};
    const kiln_value found = Call("lapack.geqrf", {&normal, 1}, parts);
    const Value r = ValueOf(graph, kiln_op_get_tuple_element(graph, found, 0));
    const std::array<kiln_value, 2> reflections = {r.id,
                                                   kiln_op_get_tuple_element(graph, found, 1)};
    const Value q = ValueOf(graph, Call("lapack.orgqr", reflections, {parts.data(), 1}));
    const Value row{graph, kiln_op_iota(graph, 0, KILN_S32, sizes.data(), 2), KILN_S32, q.dims};
    const Value column{graph, kiln_op_iota(graph, 1, KILN_S32, sizes.data(), 2), KILN_S32, q.dims};
    const int64_t down = 0;
    const Value diagonal = Reduce(Select(Compare(row, KILN_EQ, column), r, Scalar(graph, type, 0)),
                                  {&down, 1}, KILN_REDUCER_SUM);
    const Value sign =
        Select(Compare(diagonal, KILN_LT, 0), Scalar(graph, type, -1), Scalar(graph, type, 1));
    return q * Unfold(sign, q, 0);
  }

  Result<Value> Orthogonal() const {
    KILN_ASSIGN_OR_RETURN(const Places places, PlacesOf());
    const int64_t out = dims[places.out];
    const double elements = Others(places.out) * static_cast<double>(out);
    if (elements == 0) return Fill(graph, type, dims, 0);
    if (elements > 0x1p40) return InvalidArgument("a matrix of ", elements, " elements");
    const auto others = static_cast<int64_t>(Others(places.out));
    // [out, others], or transposed where that has more rows.
    Value q = Factor(std::max(out, others), std::min(out, others));
    // The dimensions of q, in order: `out` first, or last.
    std::vector<int64_t> sizes, order;
    for (size_t d = 0; d < dims.size(); ++d) {
      if (d != places.out) sizes.push_back(dims[d]);
    }
    const bool out_first = out > others;
    sizes.insert(out_first ? sizes.begin() : sizes.end(), out);
    q.id = kiln_op_reshape(graph, q.id, sizes.data(), sizes.size());
    int64_t next = out_first ? 1 : 0;
    const int64_t place = out_first ? 0 : static_cast<int64_t>(sizes.size()) - 1;
    for (size_t d = 0; d < dims.size(); ++d) order.push_back(d == places.out ? place : next++);
    return o.scale * ValueOf(graph, kiln_op_transpose(graph, q.id, order.data(), order.size()));
  }

  Result<Value> Make() const {
    switch (o.kind) {
      case KILN_INITIALIZER_ZEROS:
        return Fill(graph, type, dims, 0);
      case KILN_INITIALIZER_ONES:
        return Fill(graph, type, dims, o.scale);
      case KILN_INITIALIZER_UNIFORM:
        return o.scale * Uniform();
      case KILN_INITIALIZER_NORMAL:
        return o.scale * Normal();
      case KILN_INITIALIZER_TRUNCATED_NORMAL:
        return o.scale * TruncatedNormal();
      case KILN_INITIALIZER_GLOROT_UNIFORM:
      case KILN_INITIALIZER_GLOROT_NORMAL:
        return OfFans(true, o.kind == KILN_INITIALIZER_GLOROT_UNIFORM);
      case KILN_INITIALIZER_HE_UNIFORM:
      case KILN_INITIALIZER_HE_NORMAL:
        return OfFans(false, o.kind == KILN_INITIALIZER_HE_UNIFORM);
      case KILN_INITIALIZER_ORTHOGONAL:
        return Orthogonal();
    }
    return InvalidArgument("kiln_initializer_options.kind ", o.kind, " is none");
  }
};

Result<kiln_initializer_options> ReadInitializer(const kiln_initializer_options* options) {
  KILN_ASSIGN_OR_RETURN(kiln_initializer_options o,
                        ReadOptions("kiln_initializer_options", options));
  if (o.reserved != 0) return InvalidArgument("kiln_initializer_options.reserved is not 0");
  if (o.kind == 0) o.kind = KILN_INITIALIZER_ZEROS;
  if (o.scale == 0) o.scale = 1;
  KILN_RETURN_IF_ERROR(CheckNumber("scale", o.scale, -1e30, 1e30));
  return o;
}

}  // namespace
}  // namespace kiln::train

using namespace kiln;         // NOLINT: the functions below are the namespace's face
using namespace kiln::train;  // NOLINT

void kiln_initializer_options_init(kiln_initializer_options* options, size_t size) {
  InitOptions(options, size);
}

kiln_value kiln_train_initialize(kiln_graph* graph, const kiln_initializer_options* options,
                                 kiln_dtype dtype, const int64_t* dims, size_t rank,
                                 const char* name, size_t name_length) {
  return Built(graph, "kiln_train_initialize", [&]() -> Result<Value> {
    KILN_ASSIGN_OR_RETURN(const kiln_initializer_options o, ReadInitializer(options));
    if (!IsFloat(dtype)) {
      return InvalidArgument("dtype is ", kiln_dtype_name(dtype), "; expected a float type");
    }
    if ((!dims && rank > 0) || (!name && name_length > 0)) {
      return InvalidArgument("dims or name is NULL, with a count above 0");
    }
    const std::string_view text(name ? name : "", name_length);
    const Maker maker{graph, o, ComputedType(dtype), {dims, rank}, KeyOf(o.seed, text)};
    KILN_ASSIGN_OR_RETURN(const Value made, maker.Make());
    const Value value = Convert(made, dtype);
    KILN_RETURN_IF_ERROR(SetName(value, std::string(text)));
    return value;
  });
}
