#include "calls/recipes.h"

#include <algorithm>

#include "calls/large_recipes.h"
#include "calls/maker.h"

namespace kiln::fuzz {
namespace {

using Recipe = void (*)(Maker& m);

// Where a slice of an array begins, and how large it is.
struct SliceOf {
  SliceOf(Maker& m, const Value& x) {
    for (int64_t d : x.dims) {
      starts.push_back(m.Scalar(KILN_S32));
      sizes.push_back(m.w.Between(0, d));
    }
  }
  std::vector<Value> starts;
  Ints sizes;
};

// A loss of two arrays.
void Loss(Maker& m, const char* predictions, const char* targets) {
  const Value x = m.Array(kFloatType, 0, false);
  m.Set(predictions, x);
  m.Set(targets, m.w.Chance(50) ? x : m.Of(x.dtype, x.dims));
  m.Set("reduction", m.w.Between(1, 3));
}

const std::map<std::string, Recipe, std::less<>>& Recipes() {
  static const auto* recipes = new std::map<std::string, Recipe, std::less<>>{
      {"kiln_op_parameter",
       [](Maker& m) {
         const Value like = m.Array(kAny, 0, false);
         m.Set("dtype", int64_t{m.w.Chance(50) ? like.dtype : m.Type(kAny)});
         m.Set("dims", m.w.Chance(60) ? like.dims : m.w.Dims(m.w.Chance(95) ? 4 : 12));
         m.SetText("name", m.w.WildText());
       }},
      {"kiln_op_parameter_like",
       [](Maker& m) {
         const auto& other = m.w.Chance(50) ? m.g : *m.w.Pick(m.w.graphs);
         if (other.values.empty() || other.is_broken) return;
         m.SetGraphs("other", {other.handle});
         m.Set("like", m.w.Pick(other.values));
       }},
      {"kiln_op_constant",
       [](Maker& m) {
         const kiln_dtype dtype = m.Type(kAny);
         const Ints dims = m.w.Dims();
         m.Set("dtype", int64_t{dtype});
         m.Set("dims", dims);
         m.SetText("data", RandomBytes(m.w, dtype, dims));
       }},
      {"kiln_op_scalar",
       [](Maker& m) {
         const kiln_dtype dtype = m.Type(kAny);
         m.Set("dtype", int64_t{dtype});
         m.SetReal("value", MaskOf(dtype) & (kFloatType | kComplexType)
                                ? static_cast<double>(m.w.Between(-8, 8)) / 4
                                : static_cast<double>(m.w.Between(0, 1)));
       }},
      {"kiln_op_matmul",
       [](Maker& m) {
         const kiln_dtype dtype = m.Type(kNumber);
         const int64_t k = m.w.Between(1, 17);
         m.Set("lhs", m.Of(dtype, m.w.Chance(80) ? Ints{m.w.Between(1, 9), k} : Ints{k}));
         m.Set("rhs", m.Of(dtype, m.w.Chance(80) ? Ints{k, m.w.Between(1, 9)} : Ints{k}));
       }},
      {"kiln_op_broadcast_like", Like},
      {"kiln_op_reshape_like",
       [](Maker& m) {
         const Value like = m.Array(kAny, 0, false);
         m.Set("like", like);
         m.Set("operand", m.Of(m.Type(kAny), like.dims));
       }},
      {"kiln_op_iota_like",
       [](Maker& m) {
         const Value like = m.Array(kNumber, 1, false);
         m.Set("like", like);
         m.Set("iota_dimension", static_cast<int64_t>(m.Dim(like)));
       }},
      {"kiln_op_reduce_by",
       [](Maker& m) {
         const Value x = m.Array(kAny, 0, false);
         m.Set("operand", x);
         m.Set("dimensions", m.Some(x.dims.size(), 0, false));
         const uint32_t mask = MaskOf(x.dtype);
         m.Set("reducer", mask & (kIntType | kPredType) ? m.w.Between(1, 7)
                          : mask & kComplexType         ? m.w.Between(1, 2)
                                                        : m.w.Between(1, 4));
       }},
      {"kiln_op_iota",
       [](Maker& m) {
         Ints dims = m.w.Dims();
         if (dims.empty()) dims.push_back(3);
         m.Set("dtype", int64_t{m.Type(kNumber)});
         m.Set("dims", dims);
         m.Set("iota_dimension", static_cast<int64_t>(m.w.Below(dims.size())));
       }},
      {"kiln_op_convert",
       [](Maker& m) {
         m.Set("operand", m.Array(kAny, 0, false));
         m.Set("dtype", int64_t{m.Type(kAny)});
       }},
      {"kiln_op_reduce_precision",
       [](Maker& m) {
         m.Set("operand", m.Array(kFloatType, 0, false));
         m.Set("exponent_bits", m.w.Between(1, 12));
         m.Set("mantissa_bits", m.w.Between(0, 30));
       }},
      {"kiln_op_complex",
       [](Maker& m) {
         const Value x = m.Of(m.w.Chance(70) ? KILN_F32 : KILN_F64, m.w.Dims());
         m.Set("lhs", x);
         m.Set("rhs", m.Of(x.dtype, x.dims));
       }},
      {"kiln_op_compare",
       [](Maker& m) {
         const Value x = m.Array(kAny, 0, false);
         m.Set("lhs", x);
         m.Set("rhs", m.w.Chance(20) ? m.Scalar(x.dtype) : m.Of(x.dtype, x.dims));
         const bool is_float = (MaskOf(x.dtype) & kFloatType) != 0;
         const bool is_complex = (MaskOf(x.dtype) & kComplexType) != 0;
         m.Set("direction", m.w.Between(0, is_complex ? 1 : 5) +
                                (is_float && m.w.Chance(20) ? KILN_TOTAL_ORDER : 0));
       }},
      {"kiln_op_stochastic_convert",
       [](Maker& m) {
         const Value x = m.Array(kFloatType);
         const int32_t bits = kiln_dtype_bits(x.dtype);
         m.Set("operand", x);
         m.Set("random", m.Of(bits == 8    ? KILN_U8
                              : bits == 16 ? KILN_U16
                              : bits == 32 ? KILN_U32
                                           : KILN_U64,
                              x.dims));
         m.Set("dtype", int64_t{m.w.Chance(50) ? KILN_S8 : KILN_S32});
       }},
      {"kiln_op_clamp",
       [](Maker& m) {
         const Value x = m.Array(kAny, 0, false);
         m.Set("operand", x);
         m.Set("min", m.w.Chance(50) ? m.Scalar(x.dtype) : m.Of(x.dtype, x.dims));
         m.Set("max", m.w.Chance(50) ? m.Scalar(x.dtype) : m.Of(x.dtype, x.dims));
       }},
      {"kiln_op_select",
       [](Maker& m) {
         const Value x = m.Array(kAny, 0, false);
         m.Set("pred", m.w.Chance(30) ? m.Scalar(KILN_PRED) : m.Of(KILN_PRED, x.dims));
         m.Set("on_true", x);
         m.Set("on_false", m.Of(x.dtype, x.dims));
       }},
      {"kiln_op_reshape",
       [](Maker& m) {
         const Value x = m.Array(kAny);
         Ints dims = x.dims;
         if (m.w.Chance(50))
           dims.insert(dims.begin() + static_cast<int64_t>(m.w.Below(dims.size() + 1)), 1);
         if (dims.size() > 1 && m.w.Chance(60)) {
           const size_t at = m.w.Below(dims.size() - 1);
           dims[at] *= dims[at + 1];
           dims.erase(dims.begin() + static_cast<int64_t>(at) + 1);
         }
         m.Set("operand", x);
         m.Set("dims", dims);
       }},
      {"kiln_op_bitcast_convert",
       [](Maker& m) {
         const Value x = m.Array(kAny);
         m.Set("operand", x);
         static constexpr kiln_dtype kSame[][2] = {{KILN_F32, KILN_U32}, {KILN_S32, KILN_F32},
                                                   {KILN_F64, KILN_S64}, {KILN_F16, KILN_U16},
                                                   {KILN_U8, KILN_S8},   {KILN_F32, KILN_U32}};
         kiln_dtype to = x.dtype;
         for (const auto& pair : kSame) {
           if (pair[0] == x.dtype) to = pair[1];
         }
         m.Set("dtype", int64_t{to});
       }},
      {"kiln_op_broadcast",
       [](Maker& m) {
         const Value x = m.Array(kAny, 0, false, 3);
         Ints dims = x.dims, dimensions;
         const size_t before = m.w.Below(2);
         for (size_t i = 0; i < before; ++i) dims.insert(dims.begin(), m.w.Between(0, 4));
         for (size_t i = 0; i < x.dims.size(); ++i) {
           dimensions.push_back(static_cast<int64_t>(before + i));
         }
         if (m.w.Chance(30)) dims.push_back(m.w.Between(1, 4));
         m.Set("operand", x);
         m.Set("dimensions", dimensions);
         m.Set("dims", dims);
       }},
      {"kiln_op_concatenate",
       [](Maker& m) {
         const Value x = m.Array(kAny, 1, false);
         const size_t d = m.Dim(x);
         std::vector<Value> operands{x};
         for (size_t i = m.w.Below(3); i > 0; --i) {
           Ints dims = x.dims;
           if (x.is_static) dims[d] = m.w.Between(0, 5);
           operands.push_back(m.Of(x.dtype, dims));
         }
         m.Set("operands", operands);
         m.Set("dimensions", Ints{static_cast<int64_t>(d)});
       }},
      {"kiln_op_dynamic_slice",
       [](Maker& m) {
         const Value x = m.Array(kAny, 1);
         const SliceOf slice(m, x);
         m.Set("operand", x);
         m.Set("start_indices", slice.starts);
         m.Set("dynamic_slice_sizes", slice.sizes);
       }},
      {"kiln_op_dynamic_update_slice",
       [](Maker& m) {
         const Value x = m.Array(kAny, 1);
         const SliceOf slice(m, x);
         m.Set("operand", x);
         m.Set("update", m.Of(x.dtype, slice.sizes));
         m.Set("start_indices", slice.starts);
       }},
      {"kiln_op_gather", Gather},
      {"kiln_op_get_dimension_size",
       [](Maker& m) {
         const Value x = m.Array(kAny, 1, false);
         m.Set("operand", x);
         m.Set("dimensions", Ints{static_cast<int64_t>(m.Dim(x))});
       }},
      {"kiln_op_set_dimension_size",
       [](Maker& m) {
         if (!m.g.is_odd) return;
         const Value x = m.Array(kAny, 1);
         m.Set("operand", x);
         m.Set("size", m.Scalar(KILN_S32));
         m.Set("dimensions", Ints{static_cast<int64_t>(m.Dim(x))});
       }},
      {"kiln_op_pad",
       [](Maker& m) {
         const Value x = m.Array(kAny, 0, false);
         Ints low, high, interior;
         for (size_t i = 0; i < x.dims.size(); ++i) {
           low.push_back(m.w.Between(0, 2));
           high.push_back(x.dims[i] > 1 ? m.w.Between(-1, 2) : m.w.Between(0, 2));
           interior.push_back(x.is_static && m.w.Chance(20) ? 1 : 0);
         }
         m.Set("operand", x);
         m.Set("padding_value", m.Scalar(x.dtype));
         m.Set("low", low);
         m.Set("high", high);
         m.Set("interior", interior);
       }},
      {"kiln_op_reverse",
       [](Maker& m) {
         const Value x = m.Array(kAny, 0, false);
         m.Set("operand", x);
         m.Set("dimensions", m.Some(x.dims.size(), 0, false));
       }},
      {"kiln_op_scatter", Scatter},
      {"kiln_op_slice",
       [](Maker& m) {
         const Value x = m.Array(kAny);
         Ints start, limit, stride;
         for (int64_t d : x.dims) {
           start.push_back(m.w.Between(0, d));
           limit.push_back(m.w.Between(start.back(), d));
           stride.push_back(m.w.Between(1, 2));
         }
         m.Set("operand", x);
         m.Set("start", start);
         m.Set("limit", limit);
         m.Set("stride", stride);
       }},
      {"kiln_op_sort",
       [](Maker& m) {
         const Value x = m.Array(kIntType | kFloatType | kPredType, 1);
         std::vector<Value> operands{x};
         std::vector<kiln_dtype> types{x.dtype};
         if (m.w.Chance(30)) {
           operands.push_back(m.Of(KILN_S32, x.dims));
           types.push_back(KILN_S32);
         }
         m.Set("operands", operands);
         m.Set("dimensions", Ints{static_cast<int64_t>(m.Dim(x))});
         m.Set("is_stable", int64_t{m.w.Chance(50)});
         m.SetGraphs("to_apply", {m.Comparator(types)});
       }},
      {"kiln_op_topk",
       [](Maker& m) {
         const Value x = m.Array(kIntType | kFloatType, 1);
         m.Set("operand", x);
         m.Set("k", m.w.Between(0, x.dims.back()));
         m.Set("largest", int64_t{m.w.Chance(50)});
         m.Set("is_stable", int64_t{m.w.Chance(50)});
       }},
      {"kiln_op_transpose",
       [](Maker& m) {
         const Value x = m.Array(kAny, 0, false);
         m.Set("operand", x);
         m.Set("dimensions", m.Permutation(x.dims.size()));
       }},
      {"kiln_op_batch_norm_grad", BatchNorm},
      {"kiln_op_batch_norm_inference", BatchNorm},
      {"kiln_op_batch_norm_training", BatchNorm},
      {"kiln_op_convolution", Convolution},
      {"kiln_op_dot", Dot},
      {"kiln_op_reduce", Reduction},
      {"kiln_op_reduce_window", Reduction},
      {"kiln_op_select_and_scatter",
       [](Maker& m) {
         const Value x = m.Array(kNumber & ~kComplexType, 1, true, 3);
         Ints ones(x.dims.size(), 1), source, size, zeros(x.dims.size(), 0);
         for (int64_t d : x.dims) {
           size.push_back(d > 0 ? m.w.Between(1, std::min<int64_t>(d, 3)) : 1);
           source.push_back(std::max<int64_t>(0, d - size.back() + 1));
         }
         m.Set("operand", x);
         m.Set("source", m.Of(x.dtype, source));
         m.Set("init_value", m.Scalar(x.dtype));
         m.Set("window_dimensions", size);
         m.Set("window_strides", ones);
         m.Set("base_dilations", ones);
         m.Set("window_dilations", ones);
         m.Set("padding_low", zeros);
         m.Set("padding_high", zeros);
         m.SetGraphs("select", {m.Comparator({x.dtype}, false)});
         m.SetGraphs("scatter", {m.Reducer({x.dtype})});
       }},
      {"kiln_op_rng",
       [](Maker& m) {
         const bool normal = m.w.Chance(50);
         const kiln_dtype dtype = m.Type(normal ? kFloatType : kFloatType | kIntType);
         m.Set("a", m.Constant(dtype, 0));
         m.Set("b", m.Constant(dtype, 1));
         m.SetText("distribution", normal ? "rng_normal" : "rng_uniform");
         m.Set("dims", m.w.Dims());
       }},
      {"kiln_op_rng_get_and_update_state", [](Maker& m) { m.Set("delta", m.w.Between(0, 9)); }},
      {"kiln_op_rng_bit_generator",
       [](Maker& m) {
         const size_t which = m.w.Below(3);
         static constexpr const char* kAlgorithms[] = {"rng_default", "rng_three_fry",
                                                       "rng_philox"};
         m.Set("initial_state",
               m.Of(KILN_U64, {which == 2 && m.w.Chance(50) ? int64_t{3} : int64_t{2}}));
         m.SetText("algorithm", kAlgorithms[which]);
         m.Set("dtype", int64_t{m.w.Chance(50) ? KILN_U32 : KILN_U64});
         m.Set("dims", m.w.Dims());
       }},
      {"kiln_op_all_gather", Collective},
      {"kiln_op_all_reduce", Collective},
      {"kiln_op_all_to_all", Collective},
      {"kiln_op_collective_broadcast", Collective},
      {"kiln_op_collective_permute", Collective},
      {"kiln_op_reduce_scatter", Collective},
      {"kiln_op_after_all", [](Maker& m) { m.Set("operands", std::vector<Value>{m.Token()}); }},
      {"kiln_op_infeed", Transfer},
      {"kiln_op_outfeed", Transfer},
      {"kiln_op_recv", Transfer},
      {"kiln_op_recv_done", Transfer},
      {"kiln_op_send", Transfer},
      {"kiln_op_send_done", Transfer},
      {"kiln_op_cholesky",
       [](Maker& m) {
         const int64_t n = m.w.Between(0, 5);
         m.Set("operand", m.Of(m.w.Chance(70) ? KILN_F32 : KILN_C64, {n, n}));
         m.Set("lower", int64_t{m.w.Chance(50)});
       }},
      {"kiln_op_fft",
       [](Maker& m) {
         const int64_t n = m.w.Between(1, 12);
         const int64_t rows = m.w.Between(1, 3);
         static constexpr const char* kTypes[] = {"FFT", "IFFT", "RFFT", "IRFFT"};
         const size_t type = m.w.Below(4);
         m.Set("operand", m.Of(type == 2 ? KILN_F32 : KILN_C64, {rows, type == 3 ? n / 2 + 1 : n}));
         m.SetText("fft_type", kTypes[type]);
         m.Set("fft_length", Ints{n});
       }},
      {"kiln_op_triangular_solve",
       [](Maker& m) {
         const int64_t n = m.w.Between(0, 5), k = m.w.Between(1, 4);
         const bool left = m.w.Chance(50);
         static constexpr const char* kTurns[] = {"NO_TRANSPOSE", "TRANSPOSE", "ADJOINT"};
         const kiln_dtype dtype = m.w.Chance(70) ? KILN_F32 : KILN_C64;
         m.Set("triangle", m.Of(dtype, {n, n}));
         m.Set("sides", m.Of(dtype, left ? Ints{n, k} : Ints{k, n}));
         m.Set("left_side", int64_t{left});
         m.Set("lower", int64_t{m.w.Chance(50)});
         m.Set("unit_diagonal", int64_t{m.w.Chance(50)});
         m.SetText("transpose_a", m.w.Pick(kTurns));
       }},
      {"kiln_op_call",
       [](Maker& m) {
         const Value x = m.Array(kNumber);
         m.Set("operands", std::vector<Value>{x});
         m.SetGraphs("to_apply", {m.Function1(x.dtype, x.dims)});
       }},
      {"kiln_op_conditional", Conditional},
      {"kiln_op_get_tuple_element",
       [](Maker& m) {
         for (int i = 0; i < 10 && !m.g.values.empty(); ++i) {
           const Value& tuple = m.w.Pick(m.g.values);
           if (tuple.dtype != KILN_TUPLE || tuple.elements == 0) continue;
           m.Set("operand", tuple);
           m.Set("index", static_cast<int64_t>(m.w.Below(tuple.elements)));
           return;
         }
         const Value x = m.Array(kAny);
         m.Call("kiln_op_tuple", [&](Maker& n) { n.Set("operands", std::vector<Value>{x, x}); });
         m.Set("operand", m.Last());
         m.Set("index", m.w.Between(0, 1));
       }},
      {"kiln_op_map",
       [](Maker& m) {
         const Value x = m.Array(kNumber);
         m.Set("operands", std::vector<Value>{x});
         Ints dimensions;
         for (size_t i = 0; i < x.dims.size(); ++i) dimensions.push_back(static_cast<int64_t>(i));
         m.Set("dimensions", dimensions);
         m.SetGraphs("to_apply", {m.Function1(x.dtype, {})});
       }},
      {"kiln_op_tuple",
       [](Maker& m) {
         std::vector<Value> operands;
         for (size_t i = m.w.Below(4); i > 0; --i) operands.push_back(m.Array(kAny, 0, false));
         m.Set("operands", operands);
       }},
      {"kiln_op_while", While},
      {"kiln_op_custom_call", CustomCall},
      {"kiln_op_host_callback", HostCallback},
      {"kiln_op_unique",
       [](Maker& m) { m.Set("operand", m.Of(m.Type(kAny), {m.w.Between(0, 8)})); }},
      {"kiln_op_boolean_mask",
       [](Maker& m) {
         const Value x = m.Array(kAny, 1);
         const size_t rank = 1 + m.Dim(x);
         m.Set("operand", x);
         m.Set("mask", m.Of(KILN_PRED, Ints(x.dims.begin(), x.dims.begin() + rank)));
       }},
      {"kiln_op_print", Message},
      {"kiln_op_assert", Message},
      {"kiln_op_variable",
       [](Maker& m) {
         m.SetText("variable", m.w.Chance(90) ? "w" : m.w.WildText());
         m.Set("dtype", int64_t{m.Type(kAny)});
         m.Set("dims", m.w.Dims());
       }},
      {"kiln_op_assign", Assign},
      {"kiln_op_assign_add", Assign},
      {"kiln_nn_broadcast_to",
       [](Maker& m) {
         const Value x = m.Array(kAny, 0, false, 3);
         Ints dims = x.dims;
         for (int64_t& d : dims) {
           if (d == 1 && m.w.Chance(50)) d = m.w.Between(0, 4);
         }
         if (m.w.Chance(50)) dims.insert(dims.begin(), m.w.Between(1, 3));
         m.Set("operand", x);
         m.Set("dims", dims);
       }},
      {"kiln_nn_where", Where},
      {"kiln_nn_clip",
       [](Maker& m) {
         const Value x = m.Array(kIntType | kFloatType, 0, false);
         m.Set("operand", x);
         if (m.w.Chance(80)) m.Set("low", m.Scalar(x.dtype));
         if (m.w.Chance(80)) m.Set("high", m.Scalar(x.dtype));
       }},
      {"kiln_nn_take",
       [](Maker& m) {
         const Value x = m.Array(kNumber & ~kComplexType, 1);
         m.Set("operand", x);
         m.Set("indices", m.Of(KILN_S32, m.w.Dims(2)));
         m.Set("dimension", static_cast<int64_t>(m.Dim(x)) -
                                (m.w.Chance(50) ? static_cast<int64_t>(x.dims.size()) : 0));
         m.Set("mode", m.w.Between(1, 3));
       }},
      {"kiln_nn_one_hot",
       [](Maker& m) {
         m.Set("indices", m.Array(kIntType, 0, false, 3));
         m.Set("classes", m.w.Between(0, 6));
         m.Set("dimension", int64_t{-1});
         m.Set("dtype", int64_t{m.Type(kAny)});
       }},
      {"kiln_nn_attention", Attention},
      {"kiln_train_softmax_cross_entropy",
       [](Maker& m) {
         const Value x = m.Array(kFloatType, 1, false, 3);
         m.Set("logits", x);
         m.Set("labels", m.Of(KILN_S32, Ints(x.dims.begin(), x.dims.end() - 1)));
         m.SetReal("label_smoothing", m.w.Chance(50) ? 0 : 0.1);
         m.Set("reduction", m.w.Between(1, 3));
       }},
      {"kiln_train_sigmoid_cross_entropy", [](Maker& m) { Loss(m, "logits", "labels"); }},
      {"kiln_train_squared_error", [](Maker& m) { Loss(m, "predictions", "targets"); }},
      {"kiln_train_huber",
       [](Maker& m) {
         Loss(m, "predictions", "targets");
         m.SetReal("delta", 1);
       }},
      {"kiln_train_schedule",
       [](Maker& m) {
         m.Set("options", m.w.Between(0, 2));
         m.Set("options.warmup", m.w.Between(0, 5));
         m.Set("step", m.Scalar(m.w.Chance(50) ? KILN_S32 : KILN_F32));
       }},
      {"kiln_train_norm",
       [](Maker& m) { m.Set("values", std::vector<Value>{m.Array(kFloatType, 0, false)}); }},
      {"kiln_train_initialize",
       [](Maker& m) {
         m.Set("options", m.w.Between(0, 10));
         m.Set("dtype", int64_t{m.Type(kFloatType)});
         m.Set("dims", Ints{m.w.Between(0, 4), m.w.Between(0, 4), m.w.Between(1, 4)});
         m.SetText("name", m.w.Chance(90) ? "w" : m.w.WildText());
       }},
  };
  return *recipes;
}

// What operands of a function may hold.
uint32_t MaskOf(const std::string& function) {
  if (function.starts_with("kiln_nn_")) {
    for (const char* name : {"and", "or", "xor"}) {
      if (function == Cat("kiln_nn_", name)) return kLogic;
    }
    if (function.starts_with("kiln_nn_shift")) return kIntType;
    if (function.starts_with("kiln_nn_arg")) return kAny & ~kComplexType;
    if (function == "kiln_nn_remainder") return kIntType | kFloatType;
    for (const char* name : {"add", "subtract", "multiply", "divide", "power", "maximum", "minimum",
                             "mean", "variance", "compare"}) {
      if (function == Cat("kiln_nn_", name)) return kNumber;
    }
    return kFloatType;
  }
  std::string name = function.substr(std::string_view("kiln_op_").size());
  std::replace(name.begin(), name.end(), '_', '-');
  auto opcode = OpcodeByName(name);
  if (!opcode) opcode = OpcodeByName(Cat("kiln.", name));
  return opcode ? InfoOf(*opcode).types : kAny;
}

// By the names and types of parameters: an array for each value, all of one shape.
void Usual(Maker& m, const Function& function) {
  const Value x = m.Array(MaskOf(function.name), 0, false);
  for (size_t i = 1; i < function.parameters.size(); ++i) {
    const Parameter& parameter = function.parameters[i];
    const char* name = parameter.name.c_str();
    if (parameter.type == "kiln_value") {
      const bool is_optional = parameter.name == "scale" || parameter.name == "offset";
      if (is_optional && m.w.Chance(50)) continue;
      m.Set(name, m.w.Chance(70) ? x : m.w.Chance(30) ? m.Scalar(x.dtype) : m.Of(x.dtype, x.dims));
    } else if (parameter.type == "const kiln_value*") {
      m.Set(name, std::vector<Value>{x});
    } else if (parameter.type == "const int64_t*") {
      m.Set(name, m.Some(x.dims.size(), 1, false));
    } else if (parameter.type == "double") {
      m.SetReal(name, parameter.name == "ddof" ? 0 : 1e-5);
    } else if (parameter.type == "kiln_dtype") {
      m.Set(name, int64_t{KILN_S32});
    } else if (parameter.type != "size_t") {
      m.Set(name, m.w.Between(0, 1));
    }
  }
}

}  // namespace

Contents MakeContents(World& world, GraphState& graph, const Function& function) {
  Maker maker(world, graph, function);
  auto recipe = Recipes().find(function.name);
  try {
    if (recipe != Recipes().end()) {
      recipe->second(maker);
    } else {
      Usual(maker, function);
    }
  } catch (const Broken&) {
    // It is called with what there is.
  }
  return maker.Take();
}

}  // namespace kiln::fuzz
