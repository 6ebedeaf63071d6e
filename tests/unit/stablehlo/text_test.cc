// The reader of StableHLO text: pretty forms are the same trees as the generic ones.
#include "stablehlo/text/text.h"
#include "support/labels.h"

#include <bit>
#include <cstring>

#include "support/stablehlo.h"

namespace kiln::stablehlo {
namespace {

using mlir::Attribute;
using mlir::AttributeKind;

// A function whose body is the statement, with parameters of many types.
std::string InFunction(std::string_view statement) {
  return Cat(R"(func.func @f(%f: tensor<2x3xf32>, %g: tensor<2x3xf32>, %i: tensor<2x3xi32>,
    %b: tensor<2x3xi1>, %c: tensor<2x3xcomplex<f32>>, %s: tensor<f32>, %n: tensor<i32>,
    %v: tensor<2xi64>, %u: tensor<2xui64>, %t: !stablehlo.token,
    %p: tuple<tensor<f32>, tensor<i32>>, %y: tensor<?x3xf32>, %m: tensor<3x3xf32>,
    %im: tensor<1x8x8x3xf32>, %k: tensor<3x3x3x4xf32>) {
  )",
             statement, "\n  return\n}\n");
}

struct Form {
  std::string_view pretty;
  std::string_view generic;
};

// Without this the parameter of a test prints as its bytes.
void PrintTo(const Form& form, std::ostream* out) { *out << form.pretty; }

class StablehloForms : public ::testing::TestWithParam<Form> {};

TEST_P(StablehloForms, SameTree) {
  const std::string generic = Generic(InFunction(GetParam().generic));
  EXPECT_NE(generic.find("builtin.module"), std::string::npos) << generic;
  EXPECT_EQ(Generic(InFunction(GetParam().pretty)), generic);
  // What is printed is read as the same.
  EXPECT_EQ(Generic(generic), generic);
}

constexpr Form kElementwise[] = {
    {"%0 = stablehlo.abs %f : tensor<2x3xf32>",
     R"(%0 = "stablehlo.abs"(%f) : (tensor<2x3xf32>) -> tensor<2x3xf32>)"},
    {"%0 = stablehlo.abs %c : (tensor<2x3xcomplex<f32>>) -> tensor<2x3xf32>",
     R"(%0 = "stablehlo.abs"(%c) : (tensor<2x3xcomplex<f32>>) -> (tensor<2x3xf32>))"},
    {"%0 = stablehlo.add %f, %g : tensor<2x3xf32>",
     R"(%0 = "stablehlo.add"(%f, %g) : (tensor<2x3xf32>, tensor<2x3xf32>) -> tensor<2x3xf32>)"},
    {"%0 = stablehlo.add %f, %y : (tensor<2x3xf32>, tensor<?x3xf32>) -> tensor<2x3xf32>",
     R"(%0 = "stablehlo.add"(%f, %y) : (tensor<2x3xf32>, tensor<?x3xf32>) -> tensor<2x3xf32>)"},
    {"%0 = mhlo.add %f, %g : tensor<2x3xf32>",
     R"(%0 = "stablehlo.add"(%f, %g) : (tensor<2x3xf32>, tensor<2x3xf32>) -> tensor<2x3xf32>)"},
    {"%0 = stablehlo.and %b, %b {mhlo.frontend = \"x\"} : tensor<2x3xi1>",
     R"(%0 = "stablehlo.and"(%b, %b) {mhlo.frontend = "x"} : (tensor<2x3xi1>, tensor<2x3xi1>)
        -> tensor<2x3xi1>)"},
    {"%0 = stablehlo.exponential %f {result_accuracy = #stablehlo.result_accuracy<ulps = 3, mode = "
     "#stablehlo.result_accuracy_mode<TOLERANCE>>} : tensor<2x3xf32>",
     R"(%0 = "stablehlo.exponential"(%f) <{result_accuracy = #stablehlo.result_accuracy<
        atol = 0.000000e+00, rtol = 0.0, ulps = 3, mode = #stablehlo<result_accuracy_mode TOLERANCE>
        >}> : (tensor<2x3xf32>) -> tensor<2x3xf32>)"},
    {"%0 = stablehlo.is_finite %f : (tensor<2x3xf32>) -> tensor<2x3xi1>",
     R"(%0 = "stablehlo.is_finite"(%f) : (tensor<2x3xf32>) -> tensor<2x3xi1>)"},
    {"%0 = stablehlo.clamp %s, %f, %s : (tensor<f32>, tensor<2x3xf32>, tensor<f32>) -> "
     "tensor<2x3xf32>",
     R"(%0 = "stablehlo.clamp"(%s, %f, %s) : (tensor<f32>, tensor<2x3xf32>, tensor<f32>)
        -> tensor<2x3xf32>)"},
    {"%0 = stablehlo.clamp %f, %g, %f : tensor<2x3xf32>",
     R"(%0 = "stablehlo.clamp"(%f, %g, %f) :
        (tensor<2x3xf32>, tensor<2x3xf32>, tensor<2x3xf32>) -> tensor<2x3xf32>)"},
    {"%0 = stablehlo.complex %f, %g : tensor<2x3xcomplex<f32>>",
     R"(%0 = "stablehlo.complex"(%f, %g) {} : (tensor<2x3xf32>, tensor<2x3xf32>)
        -> tensor<2x3xcomplex<f32>>)"},
    {"%0 = stablehlo.select %b, %f, %g : tensor<2x3xi1>, tensor<2x3xf32>",
     R"(%0 = "stablehlo.select"(%b, %f, %g) : (tensor<2x3xi1>, tensor<2x3xf32>, tensor<2x3xf32>)
        -> tensor<2x3xf32>)"},
    {"%0 = stablehlo.select %b, %f, %y : (tensor<2x3xi1>, tensor<2x3xf32>, tensor<?x3xf32>) -> "
     "tensor<2x3xf32>",
     R"(%0 = "stablehlo.select"(%b, %f, %y) : (tensor<2x3xi1>, tensor<2x3xf32>, tensor<?x3xf32>)
        -> tensor<2x3xf32>)"},
    {"%0 = stablehlo.compare  LT, %f, %g,  FLOAT : (tensor<2x3xf32>, tensor<2x3xf32>) -> "
     "tensor<2x3xi1>",
     R"(%0 = "stablehlo.compare"(%f, %g) {compare_type = #stablehlo<comparison_type FLOAT>,
        comparison_direction = #stablehlo<comparison_direction LT>} :
        (tensor<2x3xf32>, tensor<2x3xf32>) -> tensor<2x3xi1>)"},
    {"%0 = stablehlo.compare NE, %i, %i : (tensor<2x3xi32>, tensor<2x3xi32>) -> tensor<2x3xi1>",
     R"(%0 = "stablehlo.compare"(%i, %i) {comparison_direction = #mhlo<comparison_direction NE>} :
        (tensor<2x3xi32>, tensor<2x3xi32>) -> tensor<2x3xi1>)"},
    {"%0 = stablehlo.reduce_precision %f, format = e5m10 : tensor<2x3xf32>",
     R"(%0 = "stablehlo.reduce_precision"(%f) {exponent_bits = 5 : i32, mantissa_bits = 10 : i32} :
        (tensor<2x3xf32>) -> tensor<2x3xf32>)"},
    {"%0 = stablehlo.convert %f : (tensor<2x3xf32>) -> tensor<2x3xf8E4M3FN>",
     R"(%0 = "stablehlo.convert"(%f) : (tensor<2x3xf32>) -> tensor<2x3xf8E4M3FN>)"},
    {"%0 = chlo.erf_inv %f : tensor<2x3xf32> -> tensor<2x3xf32>",
     R"(%0 = "chlo.erf_inv"(%f) : (tensor<2x3xf32>) -> tensor<2x3xf32>)"},
    {"%0 = chlo.zeta %f, %g : tensor<2x3xf32>, tensor<2x3xf32> -> tensor<2x3xf32>",
     R"(%0 = "chlo.zeta"(%f, %g) : (tensor<2x3xf32>, tensor<2x3xf32>) -> tensor<2x3xf32>)"},
    {"%0 = chlo.broadcast_add %f, %s {broadcast_dimensions = array<i64>} : (tensor<2x3xf32>, "
     "tensor<f32>) -> tensor<2x3xf32>",
     R"(%0 = "chlo.broadcast_add"(%f, %s) {broadcast_dimensions = array<i64>} :
        (tensor<2x3xf32>, tensor<f32>) -> tensor<2x3xf32>)"},
};

constexpr Form kShapes[] = {
    {"%0 = stablehlo.constant dense<[1, -2]> : tensor<2xi32>",
     R"(%0 = "stablehlo.constant"() <{value = dense<[1, -2]> : tensor<2xi32>}> : () -> tensor<2xi32>)"},
    {"%0 = stablehlo.constant {mhlo.x} dense<true> : tensor<i1>",
     R"(%0 = "stablehlo.constant"() {mhlo.x, value = dense<true> : tensor<i1>} : () -> tensor<i1>)"},
    {"%0 = stablehlo.constant() <{value = dense<1> : tensor<i8>}> : () -> "
     "tensor<!quant.uniform<i8:f32, 0.5>>",
     R"(%0 = "stablehlo.constant"() {value = dense<1> : tensor<i8>} : () ->
        tensor<!quant.uniform<i8:f32, 0.5>>)"},
    {"%0 = arith.constant 5 : index",
     R"(%0 = "arith.constant"() {value = 5 : index} : () -> index)"},
    {"%0 = stablehlo.iota dim = 1 : tensor<4x5xi32>",
     R"(%0 = "stablehlo.iota"() {iota_dimension = 1 : i64} : () -> tensor<4x5xi32>)"},
    {"%0 = stablehlo.dynamic_iota %v, dim = 0 : (tensor<2xi64>) -> tensor<?x?xi64>",
     R"(%0 = "stablehlo.dynamic_iota"(%v) {iota_dimension = 0 : i64} : (tensor<2xi64>)
        -> tensor<?x?xi64>)"},
    {"%0 = stablehlo.slice %f [0:2, 1:3:2] : (tensor<2x3xf32>) -> tensor<2x1xf32>",
     R"(%0 = "stablehlo.slice"(%f) {limit_indices = array<i64: 2, 3>,
        start_indices = array<i64: 0, 1>, strides = array<i64: 1, 2>} : (tensor<2x3xf32>)
        -> tensor<2x1xf32>)"},
    {"%0 = stablehlo.slice %s [] : (tensor<f32>) -> tensor<f32>",
     R"(%0 = "stablehlo.slice"(%s) {limit_indices = array<i64>, start_indices = array<i64>,
        strides = array<i64>} : (tensor<f32>) -> tensor<f32>)"},
    {"%0 = stablehlo.dynamic_slice %f, %n, %n, sizes = [1, 2] : (tensor<2x3xf32>, tensor<i32>, "
     "tensor<i32>) -> tensor<1x2xf32>",
     R"(%0 = "stablehlo.dynamic_slice"(%f, %n, %n) {slice_sizes = array<i64: 1, 2>} :
        (tensor<2x3xf32>, tensor<i32>, tensor<i32>) -> tensor<1x2xf32>)"},
    {"%0 = stablehlo.dynamic_update_slice %f, %g, %n, %n : (tensor<2x3xf32>, tensor<2x3xf32>, "
     "tensor<i32>, tensor<i32>) -> tensor<2x3xf32>",
     R"(%0 = "stablehlo.dynamic_update_slice"(%f, %g, %n, %n) :
        (tensor<2x3xf32>, tensor<2x3xf32>, tensor<i32>, tensor<i32>) -> tensor<2x3xf32>)"},
    {"%0 = stablehlo.broadcast %s, sizes = [1, 2] : (tensor<f32>) -> tensor<1x2xf32>",
     R"(%0 = "stablehlo.broadcast"(%s) {broadcast_sizes = array<i64: 1, 2>} : (tensor<f32>)
        -> tensor<1x2xf32>)"},
    {"%0 = stablehlo.broadcast_in_dim %f, dims = [0, 2] : (tensor<2x3xf32>) -> tensor<2x4x3xf32>",
     R"(%0 = "stablehlo.broadcast_in_dim"(%f) {broadcast_dimensions = array<i64: 0, 2>} :
        (tensor<2x3xf32>) -> tensor<2x4x3xf32>)"},
    {"%0 = stablehlo.dynamic_broadcast_in_dim %s, %v, dims = [] {known_expanding_dimensions = "
     "array<i64>} : (tensor<f32>, tensor<2xi64>) -> tensor<?x?xf32>",
     R"(%0 = "stablehlo.dynamic_broadcast_in_dim"(%s, %v) {broadcast_dimensions = array<i64>,
        known_expanding_dimensions = array<i64>} : (tensor<f32>, tensor<2xi64>)
        -> tensor<?x?xf32>)"},
    {"%0 = stablehlo.concatenate %f, %g, dim = 1 : (tensor<2x3xf32>, tensor<2x3xf32>) -> "
     "tensor<2x6xf32>",
     R"(%0 = "stablehlo.concatenate"(%f, %g) {dimension = 1 : i64} :
        (tensor<2x3xf32>, tensor<2x3xf32>) -> tensor<2x6xf32>)"},
    {"%0 = stablehlo.reverse %f, dims = [1] : tensor<2x3xf32>",
     R"(%0 = "stablehlo.reverse"(%f) {dimensions = array<i64: 1>} : (tensor<2x3xf32>)
        -> tensor<2x3xf32>)"},
    {"%0 = stablehlo.transpose %f, dims = [1, 0] : (tensor<2x3xf32>) -> tensor<3x2xf32>",
     R"(%0 = "stablehlo.transpose"(%f) {permutation = array<i64: 1, 0>} : (tensor<2x3xf32>)
        -> tensor<3x2xf32>)"},
    {"%0 = stablehlo.reshape %f : (tensor<2x3xf32>) -> tensor<6xf32>",
     R"(%0 = "stablehlo.reshape"(%f) : (tensor<2x3xf32>) -> tensor<6xf32>)"},
    {"%0 = stablehlo.dynamic_reshape %f, %v : (tensor<2x3xf32>, tensor<2xi64>) -> tensor<?x?xf32>",
     R"(%0 = "stablehlo.dynamic_reshape"(%f, %v) : (tensor<2x3xf32>, tensor<2xi64>)
        -> tensor<?x?xf32>)"},
    {"%0 = stablehlo.pad %f, %s, low = [0, -1], high = [2, 1], interior = [1, 0] : "
     "(tensor<2x3xf32>, tensor<f32>) -> tensor<5x3xf32>",
     R"(%0 = "stablehlo.pad"(%f, %s) {edge_padding_high = array<i64: 2, 1>,
        edge_padding_low = array<i64: 0, -1>, interior_padding = array<i64: 1, 0>} :
        (tensor<2x3xf32>, tensor<f32>) -> tensor<5x3xf32>)"},
    {"%0 = stablehlo.get_dimension_size %y, dim = 0 : (tensor<?x3xf32>) -> tensor<i32>",
     R"(%0 = "stablehlo.get_dimension_size"(%y) {dimension = 0 : i64} : (tensor<?x3xf32>)
        -> tensor<i32>)"},
    {"%0 = stablehlo.set_dimension_size %f, %n, dim = 0 : (tensor<2x3xf32>, tensor<i32>) -> "
     "tensor<?x3xf32, #stablehlo.bounds<2, ?>>",
     R"(%0 = "stablehlo.set_dimension_size"(%f, %n) {dimension = 0 : i64} :
        (tensor<2x3xf32>, tensor<i32>) ->
        tensor<?x3xf32, #stablehlo.type_extensions<bounds = [2, ?]>>)"},
    {"%0 = stablehlo.real_dynamic_slice %f, %v, %v, %v : (tensor<2x3xf32>, tensor<2xi64>, "
     "tensor<2xi64>, tensor<2xi64>) -> tensor<?x?xf32>",
     R"(%0 = "stablehlo.real_dynamic_slice"(%f, %v, %v, %v) :
        (tensor<2x3xf32>, tensor<2xi64>, tensor<2xi64>, tensor<2xi64>) -> tensor<?x?xf32>)"},
    {"%0:2 = chlo.top_k(%f, k = 2) : tensor<2x3xf32> -> (tensor<2x2xf32>, tensor<2x2xi32>)",
     R"(%0, %1 = "chlo.top_k"(%f) {k = 2 : i64} : (tensor<2x3xf32>)
        -> (tensor<2x2xf32>, tensor<2x2xi32>))"},
};

constexpr Form kProducts[] = {
    {"%0 = stablehlo.dot %f, %m, precision = [HIGH, DEFAULT] : (tensor<2x3xf32>, tensor<3x3xf32>) "
     "-> tensor<2x3xf32>",
     R"(%0 = "stablehlo.dot"(%f, %m) {precision_config = [#stablehlo<precision HIGH>,
        #stablehlo<precision DEFAULT>]} : (tensor<2x3xf32>, tensor<3x3xf32>) -> tensor<2x3xf32>)"},
    {"%0 = stablehlo.dot_general %f, %m, contracting_dims = [1] x [0] : (tensor<2x3xf32>, "
     "tensor<3x3xf32>) -> tensor<2x3xf32>",
     R"(%0 = "stablehlo.dot_general"(%f, %m) {dot_dimension_numbers = #stablehlo.dot<
        lhs_contracting_dimensions = [1], rhs_contracting_dimensions = [0]>} :
        (tensor<2x3xf32>, tensor<3x3xf32>) -> tensor<2x3xf32>)"},
    {"%0 = stablehlo.dot_general %m, %m, batching_dims = [0] x [1], contracting_dims = [1] x [0], "
     "precision = [], algorithm = <lhs_precision_type = tf32, rhs_precision_type = tf32, "
     "accumulation_type = f32, lhs_component_count = 1, rhs_component_count = 1, "
     "num_primitive_operations = 3, allow_imprecise_accumulation = false> : (tensor<3x3xf32>, "
     "tensor<3x3xf32>) -> tensor<3xf32>",
     R"(%0 = "stablehlo.dot_general"(%m, %m) <{algorithm = #stablehlo.dot_algorithm<
        lhs_precision_type = tf32, rhs_precision_type = tf32, accumulation_type = f32,
        lhs_component_count = 1, rhs_component_count = 1, num_primitive_operations = 3,
        allow_imprecise_accumulation = false>, dot_dimension_numbers = #stablehlo.dot<
        lhs_batching_dimensions = [0], rhs_batching_dimensions = [1],
        lhs_contracting_dimensions = [1], rhs_contracting_dimensions = [0]>,
        precision_config = []}> : (tensor<3x3xf32>, tensor<3x3xf32>) -> tensor<3xf32>)"},
    {"%0 = stablehlo.convolution(%im, %k) dim_numbers = [b, 0, 1, f]x[0, 1, i, o]->[b, 0, 1, f], "
     "window = {stride = [4, 4], pad = [[0, 0], [1, -1]], lhs_dilate = [2, 2], rhs_dilate = [1, "
     "1], reverse = [0, 1]} {batch_group_count = 1 : i64, feature_group_count = 1 : i64} : "
     "(tensor<1x8x8x3xf32>, tensor<3x3x3x4xf32>) -> tensor<1x4x4x4xf32>",
     R"(%0 = "stablehlo.convolution"(%im, %k) {batch_group_count = 1 : i64,
        dimension_numbers = #stablehlo.conv<raw input_batch_dimension = 0,
          input_feature_dimension = 3, input_spatial_dimensions = [1, 2],
          kernel_input_feature_dimension = 2, kernel_output_feature_dimension = 3,
          kernel_spatial_dimensions = [0, 1], output_batch_dimension = 0,
          output_feature_dimension = 3, output_spatial_dimensions = [1, 2]>,
        feature_group_count = 1 : i64, lhs_dilation = array<i64: 2, 2>,
        padding = dense<[[0, 0], [1, -1]]> : tensor<2x2xi64>, rhs_dilation = array<i64: 1, 1>,
        window_reversal = array<i1: false, true>, window_strides = array<i64: 4, 4>} :
        (tensor<1x8x8x3xf32>, tensor<3x3x3x4xf32>) -> tensor<1x4x4x4xf32>)"},
    {"%0 = stablehlo.convolution(%im, %k) dim_numbers = [f, 1, 0, b]x[o, 0, 1, i]->[b, 0, 1, f], "
     "window = {} {feature_group_count = 1 : i64} : (tensor<1x8x8x3xf32>, tensor<3x3x3x4xf32>) -> "
     "tensor<1x4x4x4xf32>",
     R"(%0 = "stablehlo.convolution"(%im, %k) {
        dimension_numbers = #stablehlo.conv<[f, 1, 0, b]x[o, 0, 1, i]->[b, 0, 1, f]>,
        feature_group_count = 1 : i64} :
        (tensor<1x8x8x3xf32>, tensor<3x3x3x4xf32>) -> tensor<1x4x4x4xf32>)"},
    {"%0 = stablehlo.einsum %f, %m, config = \"ab,bc->ac\" : (tensor<2x3xf32>, tensor<3x3xf32>) -> "
     "tensor<2x3xf32>",
     R"(%0 = "stablehlo.einsum"(%f, %m) {einsum_config = "ab,bc->ac"} :
        (tensor<2x3xf32>, tensor<3x3xf32>) -> tensor<2x3xf32>)"},
    {"%0 = stablehlo.unary_einsum %f, config = \"ab->a\" : (tensor<2x3xf32>) -> tensor<2xf32>",
     R"(%0 = "stablehlo.unary_einsum"(%f) {einsum_config = "ab->a"} : (tensor<2x3xf32>)
        -> tensor<2xf32>)"},
    {"%0 = stablehlo.cholesky %m : tensor<3x3xf32>",
     R"(%0 = "stablehlo.cholesky"(%m) : (tensor<3x3xf32>) -> tensor<3x3xf32>)"},
    {"%0 = stablehlo.cholesky %m, lower = true : tensor<3x3xf32>",
     R"(%0 = "stablehlo.cholesky"(%m) {lower = true} : (tensor<3x3xf32>) -> tensor<3x3xf32>)"},
    {"%0 = stablehlo.fft %c, type = FFT, length = [3] : (tensor<2x3xcomplex<f32>>) -> "
     "tensor<2x3xcomplex<f32>>",
     R"(%0 = "stablehlo.fft"(%c) {fft_length = array<i64: 3>, fft_type = #stablehlo<fft_type FFT>} :
        (tensor<2x3xcomplex<f32>>) -> tensor<2x3xcomplex<f32>>)"},
    {"%0 = stablehlo.rng %s, %s, %v, distribution = NORMAL : (tensor<f32>, tensor<f32>, "
     "tensor<2xi64>) -> tensor<2x3xf32>",
     R"(%0 = "stablehlo.rng"(%s, %s, %v) {rng_distribution = #stablehlo<rng_distribution NORMAL>} :
        (tensor<f32>, tensor<f32>, tensor<2xi64>) -> tensor<2x3xf32>)"},
    {"%a, %o = stablehlo.rng_bit_generator %u, algorithm =  THREE_FRY : (tensor<2xui64>) -> "
     "(tensor<2xui64>, tensor<5xui32>)",
     R"(%0:2 = "stablehlo.rng_bit_generator"(%u) {
        rng_algorithm = #stablehlo<rng_algorithm THREE_FRY>} : (tensor<2xui64>)
        -> (tensor<2xui64>, tensor<5xui32>))"},
};

constexpr Form kControl[] = {
    {"%0 = stablehlo.reduce(%f init: %s) applies stablehlo.add across dimensions = [0, 1] {x} : "
     "(tensor<2x3xf32>, tensor<f32>) -> tensor<f32>",
     R"(%0 = "stablehlo.reduce"(%f, %s) ({
        ^bb0(%a: tensor<f32>, %x: tensor<f32>):
          %1 = "stablehlo.add"(%a, %x) : (tensor<f32>, tensor<f32>) -> tensor<f32>
          "stablehlo.return"(%1) : (tensor<f32>) -> ()
        }) {dimensions = array<i64: 0, 1>, x} : (tensor<2x3xf32>, tensor<f32>) -> tensor<f32>)"},
    {R"(%0:2 = stablehlo.reduce(%f init: %s), (%i init: %n) across dimensions = [] :
        (tensor<2x3xf32>, tensor<2x3xi32>, tensor<f32>, tensor<i32>)
          -> (tensor<2x3xf32>, tensor<2x3xi32>)
        reducer(%x: tensor<f32> loc("x"), %xa: tensor<f32>) (%j: tensor<i32>, %ja: tensor<i32>) {
          stablehlo.return %xa, %j : tensor<f32>, tensor<i32>
        })",
     R"(%0:2 = "stablehlo.reduce"(%f, %i, %s, %n) ({
        ^bb0(%x: tensor<f32>, %j: tensor<i32>, %xa: tensor<f32>, %ja: tensor<i32>):
          "stablehlo.return"(%xa, %j) : (tensor<f32>, tensor<i32>) -> ()
        }) {dimensions = array<i64>} :
        (tensor<2x3xf32>, tensor<2x3xi32>, tensor<f32>, tensor<i32>)
          -> (tensor<2x3xf32>, tensor<2x3xi32>))"},
    {R"(%0:2 = stablehlo.while(%a = %n, %x = %f) : tensor<i32>, tensor<2x3xf32> attributes {y = 1}
        cond {
          %1 = stablehlo.compare LT, %a, %n : (tensor<i32>, tensor<i32>) -> tensor<i1>
          stablehlo.return %1 : tensor<i1>
        } do {
          stablehlo.return %a, %x : tensor<i32>, tensor<2x3xf32>
        })",
     R"(%0:2 = "stablehlo.while"(%n, %f) ({
        ^bb0(%a: tensor<i32>, %x: tensor<2x3xf32>):
          %1 = "stablehlo.compare"(%a, %n) {comparison_direction =
            #stablehlo.comparison_direction<LT>} : (tensor<i32>, tensor<i32>) -> tensor<i1>
          "stablehlo.return"(%1) : (tensor<i1>) -> ()
        }, {
        ^cond(%b1: tensor<i32>, %y1: tensor<2x3xf32>):
          "stablehlo.return"(%b1, %y1) : (tensor<i32>, tensor<2x3xf32>) -> ()
        }) {y = 1 : i64} : (tensor<i32>, tensor<2x3xf32>) -> (tensor<i32>, tensor<2x3xf32>))"},
    {R"(stablehlo.while() cond {
          %1 = stablehlo.constant dense<false> : tensor<i1>
          stablehlo.return %1 : tensor<i1>
        } do {
          stablehlo.return
        })",
     R"("stablehlo.while"() ({
          %1 = "stablehlo.constant"() {value = dense<0> : tensor<i1>} : () -> tensor<i1>
          "stablehlo.return"(%1) : (tensor<i1>) -> ()
        }, {
          "stablehlo.return"() : () -> ()
        }) : () -> ())"},
    {"%0 = stablehlo.custom_call @foo(%f, %s) {backend_config = \"bar\", has_side_effect = true} : "
     "(tensor<2x3xf32>, tensor<f32>) -> tensor<1xf32>",
     R"(%0 = "stablehlo.custom_call"(%f, %s) {backend_config = "bar", call_target_name = "foo",
        has_side_effect = true} : (tensor<2x3xf32>, tensor<f32>) -> tensor<1xf32>)"},
    {"stablehlo.custom_call @\"not-a word\"() : () -> ()",
     R"("stablehlo.custom_call"() {call_target_name = "not-a word"} : () -> ())"},
    {"%0 = stablehlo.composite \"my.op\" %f {composite_attributes = {n = 1 : i32}, decomposition = "
     "@my_op, version = 1 : i32} : (tensor<2x3xf32>) -> tensor<2x3xf32>",
     R"(%0 = "stablehlo.composite"(%f) {composite_attributes = {n = 1 : i32},
        decomposition = @my_op, name = "my.op", version = 1 : i32} : (tensor<2x3xf32>)
        -> tensor<2x3xf32>)"},
    {"%0 = call @g(%f) : (tensor<2x3xf32>) -> tensor<2x3xf32>",
     R"(%0 = "func.call"(%f) {callee = @g} : (tensor<2x3xf32>) -> tensor<2x3xf32>)"},
    {"%0:2 = func.call @g(%f) {x = 1} : (tensor<2x3xf32>) -> (tensor<f32>, tensor<f32>)",
     R"(%0:2 = "func.call"(%f) {callee = @g, x = 1} : (tensor<2x3xf32>)
        -> (tensor<f32>, tensor<f32>))"},
    {"%0 = stablehlo.tuple %s, %n : tuple<tensor<f32>, tensor<i32>>",
     R"(%0 = "stablehlo.tuple"(%s, %n) : (tensor<f32>, tensor<i32>)
        -> tuple<tensor<f32>, tensor<i32>>)"},
    {"%0 = stablehlo.tuple : tuple<>", R"(%0 = "stablehlo.tuple"() : () -> tuple<>)"},
    {"%0 = stablehlo.get_tuple_element %p[1] : (tuple<tensor<f32>, tensor<i32>>) -> tensor<i32>",
     R"(%0 = "stablehlo.get_tuple_element"(%p) {index = 1 : i32} :
        (tuple<tensor<f32>, tensor<i32>>) -> tensor<i32>)"},
    {"%0:2 = stablehlo.optimization_barrier %f, %n : tensor<2x3xf32>, tensor<i32>",
     R"(%0:2 = "stablehlo.optimization_barrier"(%f, %n) : (tensor<2x3xf32>, tensor<i32>)
        -> (tensor<2x3xf32>, tensor<i32>))"},
    {"stablehlo.optimization_barrier()", R"("stablehlo.optimization_barrier"() : () -> ())"},
    {"stablehlo.optimization_barrier {x = 1 : i32}()\n%9 = stablehlo.abs %f : tensor<2x3xf32>",
     R"("stablehlo.optimization_barrier"() {x = 1 : i32} : () -> ()
        %9 = "stablehlo.abs"(%f) : (tensor<2x3xf32>) -> tensor<2x3xf32>)"},
    {"%0 = stablehlo.after_all %t, %t : !stablehlo.token",
     R"(%0 = "stablehlo.after_all"(%t, %t) : (!stablehlo.token, !stablehlo.token)
        -> !stablehlo.token)"},
    {"%0 = stablehlo.after_all : !mhlo.token",
     R"(%0 = "stablehlo.after_all"() : () -> !stablehlo.token)"},
    {"%0 = stablehlo.create_token : !stablehlo.token",
     R"(%0 = "stablehlo.create_token"() : () -> !stablehlo.token)"},
    {"%0 = stablehlo.replica_id : tensor<ui32>",
     R"(%0 = "stablehlo.replica_id"() : () -> tensor<ui32>)"},
    {"stablehlo.trace %f, \"a tag\" : tensor<2x3xf32>",
     R"("stablehlo.trace"(%f) {tag = "a tag"} : (tensor<2x3xf32>) -> ())"},
    {R"(%0:2 = chlo.scan(%v) inits(%n) dimension=0 attributes {is_reverse = true} {
        ^bb0(%x: tensor<i64>, %a: tensor<i32>):
          stablehlo.return %x, %a : tensor<i64>, tensor<i32>
        } : (tensor<2xi64>, tensor<i32>) -> (tensor<2xi64>, tensor<i32>))",
     R"(%0:2 = "chlo.scan"(%v, %n) <{dimension = 0 : i64, is_reverse = true,
        operandSegmentSizes = array<i32: 1, 1>}> ({
        ^bb0(%x: tensor<i64>, %a: tensor<i32>):
          "stablehlo.return"(%x, %a) : (tensor<i64>, tensor<i32>) -> ()
        }) : (tensor<2xi64>, tensor<i32>) -> (tensor<2xi64>, tensor<i32>))"},
};

constexpr Form kChecks[] = {
    {"check.expect_eq %f, %g : tensor<2x3xf32>",
     R"("check.expect_eq"(%f, %g) : (tensor<2x3xf32>, tensor<2x3xf32>) -> ())"},
    {"check.expect_eq %f, %g : tensor<2x3xf32>, tensor<2x3xf32>",
     R"("check.expect_eq"(%f, %g) : (tensor<2x3xf32>, tensor<2x3xf32>) -> ())"},
    {"check.expect_eq_const %n, dense<3> : tensor<i32>",
     R"("check.expect_eq_const"(%n) <{value = dense<3> : tensor<i32>}> : (tensor<i32>) -> ())"},
    {"check.expect_almost_eq %f, %g, tolerance = 0.1 : tensor<2x3xf32>",
     R"("check.expect_almost_eq"(%f, %g) {tolerance = 0.1 : f64} :
        (tensor<2x3xf32>, tensor<2x3xf32>) -> ())"},
    {"check.expect_almost_eq_const %s, dense<5.1> : tensor<f32> {tolerance = 0.1 : f64}",
     R"("check.expect_almost_eq_const"(%s) {tolerance = 0.1 : f64, value = dense<5.1> : tensor<f32>}
        : (tensor<f32>) -> ())"},
    {"check.expect_close %f, %g, max_ulp_difference = 18446744073709551615, min_ulp_difference = 2 "
     ": tensor<2x3xf32>, tensor<2x3xf32>",
     R"("check.expect_close"(%f, %g) {max_ulp_difference = 18446744073709551615 : ui64,
        min_ulp_difference = 2 : ui64} : (tensor<2x3xf32>, tensor<2x3xf32>) -> ())"},
    {"check.expect_close %f, %g, min_ulp_difference = 2 : tensor<2x3xf32>, tensor<2x3xf32>",
     R"("check.expect_close"(%f, %g) {min_ulp_difference = 2 : ui64} :
        (tensor<2x3xf32>, tensor<2x3xf32>) -> ())"},
    {"check.expect_serialized_eq %f, probe_id = \"p\", iter = 1 : tensor<2x3xf32>",
     R"("check.expect_serialized_eq"(%f) {iteration = 1 : i32, probe_id = "p"} : (tensor<2x3xf32>)
        -> ())"},
    {"%0 = interpreter.probe %f, probe_id = \"p\" : tensor<2x3xf32>",
     R"(%0 = "interpreter.probe"(%f) {probe_id = "p"} : (tensor<2x3xf32>) -> tensor<2x3xf32>)"},
    {"%0 = interpreter.print %f : tensor<2x3xf32>",
     R"(%0 = "interpreter.print"(%f) : (tensor<2x3xf32>) -> tensor<2x3xf32>)"},
    {"%0 = sdy.sharding_constraint %f <@mesh, [{\"x\"}, {}]> : tensor<2x3xf32>",
     R"(%0 = "sdy.sharding_constraint"(%f) {sharding = #sdy.sharding<@mesh, [{"x"}, {}]>} :
        (tensor<2x3xf32>) -> tensor<2x3xf32>)"},
};

INSTANTIATE_TEST_SUITE_P(Elementwise, StablehloForms, ::testing::ValuesIn(kElementwise));
INSTANTIATE_TEST_SUITE_P(Shapes, StablehloForms, ::testing::ValuesIn(kShapes));
INSTANTIATE_TEST_SUITE_P(Products, StablehloForms, ::testing::ValuesIn(kProducts));
INSTANTIATE_TEST_SUITE_P(Control, StablehloForms, ::testing::ValuesIn(kControl));
INSTANTIATE_TEST_SUITE_P(Checks, StablehloForms, ::testing::ValuesIn(kChecks));

TEST(StablehloText, Values) {
  auto module = Read(R"(
    func.func @f(%arg0: tensor<f32>) -> (tensor<f32>, tensor<f32>) {
      %a, %b:2, %c = "x.many"(%arg0) : (tensor<f32>)
        -> (tensor<1xf32>, tensor<2xf32>, tensor<3xf32>, tensor<4xf32>)
      "x.use"(%b, %b#1, %c, %a#0) : (tensor<2xf32>, tensor<3xf32>, tensor<4xf32>, tensor<1xf32>)
        -> ()
      %0 = "x.region"() ({
        %1 = "x.inner"(%arg0) : (tensor<f32>) -> tensor<f32>
        "x.end"() : () -> ()
      }, {
        %1 = "x.inner"(%c) : (tensor<4xf32>) -> tensor<f32>
      }) : () -> tensor<f32>
      return %0, %arg0 : tensor<f32>, tensor<f32>
    })");
  const mlir::Operation& function = *module->body()->operations[0];
  EXPECT_EQ(function.name, "func.func");
  const mlir::Block& block = *function.regions[0]->blocks[0];
  ASSERT_EQ(block.operations.size(), 4u);
  const mlir::Operation& many = *block.operations[0];
  ASSERT_EQ(many.results.size(), 4u);
  EXPECT_EQ(many.operands[0], block.arguments[0]);
  const std::vector<mlir::Value*> expected = {many.results[1], many.results[2], many.results[3],
                                              many.results[0]};
  EXPECT_EQ(block.operations[1]->operands, expected);
  const mlir::Operation& region = *block.operations[2];
  EXPECT_EQ(region.regions[1]->blocks[0]->operations[0]->operands[0], many.results[3]);
  EXPECT_EQ(block.operations[3]->name, "func.return");
  EXPECT_EQ(many.results[2]->index, 2);
  EXPECT_EQ(many.results[2]->operation, &many);
  EXPECT_EQ(module->num_values(), 8);
  EXPECT_EQ(many.location.line, 3);
  EXPECT_EQ(many.location.column, 22);
}

TEST(StablehloText, Functions) {
  auto module = Read(R"(module @m attributes {mhlo.num_replicas = 1 : i32, "quoted name"} {
    func.func private @declared(tensor<f32>, tensor<2xf32> {x.y = 1}) -> (tensor<f32> {z})
    func.func public @main(%a: tensor<f32> {jax.arg_info = "x", mhlo.sharding = "{}"} loc("a"),
                           %b: tensor<f32>) -> tensor<f32> attributes {k = [1, 2]} {
      %0 = func.call @later(%b) : (tensor<f32>) -> tensor<f32>
      return %0 : tensor<f32>
    }
    func.func nested @later(%arg0: tensor<f32>) -> tensor<f32> {
      return %arg0 : tensor<f32>
    }
    func.func @none() { return }
  })");
  const mlir::Operation& root = *module->root();
  EXPECT_EQ(root.attribute("sym_name")->text, "m");
  EXPECT_EQ(root.attribute("mhlo.num_replicas")->integer, 1);
  EXPECT_TRUE(root.attribute("quoted name")->is(AttributeKind::kUnit));
  ASSERT_EQ(module->body()->operations.size(), 4u);
  const mlir::Operation& declared = *module->body()->operations[0];
  EXPECT_EQ(declared.attribute("sym_visibility")->text, "private");
  EXPECT_TRUE(declared.regions[0]->blocks.empty());
  EXPECT_EQ(declared.attribute("function_type")->type->ToString(),
            "(tensor<f32>, tensor<2xf32>) -> tensor<f32>");
  ASSERT_EQ(declared.attribute("arg_attrs")->items.size(), 2u);
  EXPECT_EQ(Find(declared.attribute("arg_attrs")->items[1]->fields, "x.y")->integer, 1);
  EXPECT_EQ(declared.attribute("res_attrs")->items.size(), 1u);
  const mlir::Operation& main = *module->body()->operations[1];
  EXPECT_EQ(main.attribute("sym_visibility"), nullptr);
  EXPECT_EQ(main.attribute("k")->items.size(), 2u);
  EXPECT_EQ(main.regions[0]->blocks[0]->arguments.size(), 2u);
  EXPECT_EQ(module->body()->operations[3]->attribute("arg_attrs"), nullptr);
}

TEST(StablehloText, WithoutModule) {
  EXPECT_EQ(Generic("func.func @f() { return }"),
            Generic("module { func.func @f() { func.return } }"));
  EXPECT_EQ(Generic(R"("func.func"() <{function_type = () -> (), sym_name = "f",
                      sym_visibility = "public"}> ({ "func.return"() : () -> () }) : () -> ())"),
            Generic("module { func.func public @f() { func.return } }"));
  EXPECT_TRUE(Read("// nothing\n")->body()->operations.empty());
}

TEST(StablehloText, Types) {
  for (std::string_view type :
       {"i1",
        "i64",
        "ui8",
        "si4",
        "index",
        "none",
        "f16",
        "bf16",
        "f64",
        "tf32",
        "f8E5M2",
        "f8E4M3FN",
        "f8E8M0FNU",
        "f6E2M3FN",
        "f4E2M1FN",
        "complex<f64>",
        "tensor<f32>",
        "tensor<0x3xi4>",
        "tensor<?x2xcomplex<f32>>",
        "tensor<*xf32>",
        "tensor<?x3xf32, #stablehlo.bounds<4, ?>>",
        "tensor<2xf32, #x.layout<a -> b>>",
        "tuple<>",
        "tuple<tuple<tensor<f32>>, !stablehlo.token>",
        "!stablehlo.future<tensor<f32>, tensor<i1>>",
        "() -> ()",
        "(i32, (i32) -> i32) -> (i32, i32)",
        "() -> (() -> ())",
        "memref<2xf32>",
        "!tf_type.string",
        "!shape.shape<a, [b]>",
        "tensor<2x!tf_type.string>",
        "!quant.uniform<i8:f32, 0.5>",
        "!quant.uniform<u8:f16, 2.0:128>",
        "!quant.uniform<i8<-127:127>:f32:1, {0.1:-30, 0.5}>",
        "tensor<2x4x!quant.uniform<i8:f32:{0:1, 1:2}, {{0.5:1, 2.0}, {3.0, 4.0:-4}}>>"}) {
    std::unique_ptr<mlir::Module> module;
    const Attribute* attribute = ReadAttribute(module, type);
    ASSERT_TRUE(attribute) << type;
    ASSERT_TRUE(attribute->is(AttributeKind::kType)) << type;
    EXPECT_EQ(attribute->type->ToString(), type);
  }
  auto module = Read("\"x.x\"() {a = tensor<2xui8>, b = tensor<2xui8>} : () -> ()");
  const mlir::Operation& operation = *module->body()->operations[0];
  EXPECT_EQ(operation.attribute("a")->type, operation.attribute("b")->type);
}

TEST(StablehloText, Quantization) {
  std::unique_ptr<mlir::Module> module;
  const Attribute* attribute =
      ReadAttribute(module, "!quant.uniform<ui4<1:15>:f32:2, {1.5e-3:7,2.0:-1,3.0}>");
  const mlir::Quantization& q = attribute->type->quantization;
  EXPECT_EQ(q.storage->ToString(), "ui4");
  EXPECT_EQ(q.expressed->ToString(), "f32");
  EXPECT_EQ(q.storage_min, 1);
  EXPECT_EQ(q.storage_max, 15);
  EXPECT_EQ(q.axes, (std::vector<int64_t>{2}));
  EXPECT_EQ(q.scales, (std::vector<double>{1.5e-3, 2, 3}));
  EXPECT_EQ(q.zero_points, (std::vector<int64_t>{7, -1, 0}));
  attribute = ReadAttribute(module, "!quant.uniform<i8:f32, 0.5>");
  EXPECT_EQ(attribute->type->quantization.storage->signedness, mlir::Signedness::kSigned);
  EXPECT_EQ(attribute->type->quantization.storage_min, -128);
  EXPECT_TRUE(attribute->type->quantization.axes.empty());
}

TEST(StablehloText, Attributes) {
  for (std::string_view text :
       {"unit",
        "true",
        "5 : i64",
        "-1 : i8",
        "255 : ui8",
        "1.5 : f32",
        "0x7F800000 : f32",
        "0xFC00 : f16",
        "-0.0 : f64",
        "\"a\\22\\0A\\5C\"",
        "@f",
        "@\"f g\"",
        "@m::@f",
        "[]",
        "[1 : i32, [\"a\"], {b}]",
        "{a = 1 : i64, \"b c\"}",
        "array<i64>",
        "array<i32: 1, -2>",
        "array<i1: true, false>",
        "array<f32: 1.5, -2.0>",
        "tensor<2xf32>",
        "#stablehlo<precision HIGH>",
        "#chlo<comparison_direction LT>",
        "#stablehlo.result_accuracy_mode<HIGHEST>",
        "#stablehlo.channel_handle<handle = 1, type = 0>",
        "#stablehlo.gather<offset_dims = [1], collapsed_slice_dims = [], operand_batching_dims = "
        "[0], start_indices_batching_dims = [0], start_index_map = [2], index_vector_dim = 3>",
        "#stablehlo.output_operand_alias<output_tuple_indices = [0], operand_index = 1, "
        "operand_tuple_indices = []>",
        "#stablehlo.type_extensions<bounds = [3, ?]>",
        "#chlo.ragged_dot<lhs_batching_dimensions = [], rhs_batching_dimensions = [], "
        "lhs_contracting_dimensions = [1], rhs_contracting_dimensions = [1], "
        "lhs_ragged_dimensions = [0], rhs_group_dimensions = [0]>",
        "#stablehlo.replica_group_mesh_axes<mesh = @m, axes = [#stablehlo.axis_ref<name = \"x\", "
        "sub_axis_info = (1)2>]>",
        "#sdy.sharding<@mesh, [{\"x\"}, {}]>",
        "affine_map<(d0) -> (d0)>",
        "loc(\"a\":1:2)",
        "#vhlo.array_v1<[]>",
        "\"\\22\\5C\\5C \\22\""}) {
    std::unique_ptr<mlir::Module> module;
    const Attribute* attribute = ReadAttribute(module, text);
    ASSERT_TRUE(attribute) << text;
    EXPECT_EQ(mlir::ToText(*attribute), text);
  }
}

TEST(StablehloText, Records) {
  std::unique_ptr<mlir::Module> module;
  const Attribute* gather = ReadAttribute(module, "#mhlo.gather<start_index_map = [1, 0]>");
  EXPECT_EQ(gather->name, "stablehlo.gather");
  EXPECT_EQ(gather->fields.size(), 6u);
  EXPECT_EQ(IntsOf(*Find(gather->fields, "start_index_map")), (std::vector<int64_t>{1, 0}));
  EXPECT_EQ(IntsOf(*Find(gather->fields, "offset_dims")), std::vector<int64_t>());
  EXPECT_EQ(IntOf(*Find(gather->fields, "index_vector_dim")), 0);
  const Attribute* conv =
      ReadAttribute(module, "#stablehlo.conv<[f, 1, 0, b]x[o, 0, 1, i]->[b, 0, 1, f]>");
  EXPECT_EQ(IntsOf(*Find(conv->fields, "input_spatial_dimensions")), (std::vector<int64_t>{2, 1}));
  EXPECT_EQ(IntOf(*Find(conv->fields, "input_batch_dimension")), 3);
  EXPECT_EQ(IntOf(*Find(conv->fields, "kernel_output_feature_dimension")), 0);
}

// Bits beyond a type's width say nothing.
TEST(StablehloText, HexadecimalElementsOfAnyWidth) {
  for (const auto& [text, expected] : std::vector<std::pair<std::string, std::string>>{
           {"dense<\"0x0100000002000000\"> : tensor<3xi33>", "dense<1> : tensor<3xi33>"},
           {"dense<\"0xFFFFFFFF01000000\"> : tensor<3xi33>", "dense<-1> : tensor<3xi33>"},
           {"dense<\"0xFFFFFFFF03000000\"> : tensor<3xui33>", "dense<8589934591> : tensor<3xui33>"},
           {"dense<\"0xFF17\"> : tensor<2xi4>", "dense<[-1, 7]> : tensor<2xi4>"},
           {"dense<\"0xF1\"> : tensor<3xf4E2M1FN>", "dense<5.0e-1> : tensor<3xf4E2M1FN>"}}) {
    std::unique_ptr<mlir::Module> module, same;
    EXPECT_EQ(ReadAttribute(module, text)->bytes, ReadAttribute(same, expected)->bytes) << text;
  }
}

TEST(StablehloText, NamesInQuotesReadBack) {
  const std::string text = "\"x.of \\22quotes\\22 and\\0Alines\"() : () -> ()\n";
  auto module = Read(text);
  const std::string printed = mlir::ToText(*module);
  EXPECT_NE(printed.find("\"x.of \\22quotes\\22 and\\0Alines\"()"), std::string::npos) << printed;
  EXPECT_EQ(mlir::ToText(*Read(printed)), printed);
}

// Integers of old and new text.
TEST(StablehloText, IntsOfAnyForm) {
  std::unique_ptr<mlir::Module> module;
  for (std::string_view text : {"array<i64: 1, 1>", "dense<1> : tensor<2xi64>",
                                "dense<[1, 1]> : tensor<2xi32>", "[1, 1 : i32]"}) {
    EXPECT_EQ(IntsOf(*ReadAttribute(module, text)), (std::vector<int64_t>{1, 1})) << text;
  }
  EXPECT_EQ(IntsOf(*ReadAttribute(module, "array<i1: true, false>")), (std::vector<int64_t>{1, 0}));
  EXPECT_EQ(IntsOf(*ReadAttribute(module, "dense<-1> : tensor<1xi4>")), (std::vector<int64_t>{-1}));
  EXPECT_EQ(IntsOf(*ReadAttribute(module, "1.5")), std::nullopt);
  EXPECT_EQ(IntsOf(*ReadAttribute(module, "dense<1> : tensor<9999999xi64>")), std::nullopt);
  EXPECT_EQ(IntOf(*ReadAttribute(module, "dense<7> : tensor<i64>")), 7);
  EXPECT_EQ(IntOf(*ReadAttribute(module, "true")), 1);
}

TEST(StablehloText, Locations) {
  auto module = Read(R"(#loc1 = loc("file.py":3:4)
    module {
      "x.a"() : () -> () loc("name")
      "x.b"() : () -> () loc("file.py":1:2)
      "x.c"() : () -> () loc("outer"("inner"("file.py":5:6 to :7)))
      "x.d"() : () -> () loc(callsite("f"(#loc1) at callsite("g" at unknown)))
      "x.e"() : () -> () loc(fused<"meta">["n", #loc1, "other.py":9:9])
      "x.f"() : () -> () loc(unknown)
      "x.g"() : () -> () loc(#loc2)
      "x.h"() : () -> ()
    } loc(#loc)
    #loc = loc(unknown)
    #loc2 = loc("late"(#loc1)))");
  const mlir::Source expected[] = {{"name", "", 0, 0},         {"", "file.py", 1, 2},
                                   {"outer", "file.py", 5, 6}, {"f", "file.py", 3, 4},
                                   {"n", "file.py", 3, 4},     {"", "", 0, 0},
                                   {"late", "file.py", 3, 4},  {"", "", 0, 0}};
  for (size_t i = 0; i < std::size(expected); ++i) {
    const mlir::Operation& operation = *module->body()->operations[i];
    const mlir::Source source = operation.source ? *operation.source : mlir::Source();
    EXPECT_EQ(source, expected[i]) << operation.name << ": " << source.name << " " << source.file;
  }
  EXPECT_EQ(module->root()->source, nullptr);
  const std::string printed = mlir::ToText(*module, {.sources = true});
  EXPECT_EQ(Generic(printed, {.sources = true}), printed);
}

TEST(StablehloText, Aliases) {
  EXPECT_EQ(Generic(R"(
    func.func @f(%a: !t) -> !t attributes {x = #list, y = #late} { return %a : !t }
    #item = 1 : i32
    #list = [#item, #item]
    !t = tensor<2xf32, #layout>
    #layout = #stablehlo.bounds<?>
    #late = {v = dense<1> : !t2}
    !t2 = tensor<3xi32>)"),
            Generic(R"(
    func.func @f(%a: tensor<2xf32, #stablehlo.bounds<?>>) -> tensor<2xf32, #stablehlo.bounds<?>>
      attributes {x = [1 : i32, 1 : i32], y = {v = dense<1> : tensor<3xi32>}} {
      return %a : tensor<2xf32, #stablehlo.bounds<?>>
    })"));
}

TEST(StablehloText, Resources) {
  const std::string text = R"("x.x"() {a = dense_resource<one> : tensor<2xf32>,
      b = dense_resource<"two words"> : tensor<3xi1>} : () -> ()
    {-#
      dialect_resources: {
        builtin: {
          one: "0x040000000000803F000000C0",
          "two words": "0x04000000010001"
        }
      },
      external_resources: {
        mlir_reproducer: { verify_each: true, pipeline: "x" }
      }
    #-})";
  EXPECT_EQ(Generic(text), Generic(R"("x.x"() {a = dense<[1.0, -2.0]> : tensor<2xf32>,
      b = dense<[true, false, true]> : tensor<3xi1>} : () -> ())"));
}

TEST(StablehloText, Chunks) {
  const std::vector<Chunk> chunks = SplitChunks("a\n// -----\nb\nc\n  // ----- //\n\nd");
  ASSERT_EQ(chunks.size(), 3u);
  EXPECT_EQ(chunks[0].text, "a\n");
  EXPECT_EQ(chunks[1].text, "b\nc\n");
  EXPECT_EQ(chunks[1].first_line, 3);
  EXPECT_EQ(chunks[2].text, "\nd");
  EXPECT_EQ(chunks[2].first_line, 6);
  auto module = ReadText(chunks[2].text, {.first_line = chunks[2].first_line});
  EXPECT_EQ(module.status().message(), "line 7, column 1: found 'd'; expected an operation");
  EXPECT_EQ(SplitChunks("").size(), 1u);
  // In a comment, too, and not in a string.
  EXPECT_EQ(SplitChunks("a\n// // -----\nb\n").size(), 2u);
  EXPECT_EQ(SplitChunks("a \"// -----\"\nb\n//-----\n").size(), 1u);
}

KILN_LABEL(text, "StablehloText");

}  // namespace
}  // namespace kiln::stablehlo
