// Operations of StableHLO as HLO text, and what the corpora have.
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>

#include "support/labels.h"
#include "support/stablehlo_import.h"

namespace kiln::stablehlo {
namespace {

// The root of a function with these parameters whose body is one operation of one result.
std::string Root(std::string_view parameters, std::string_view operation, std::string_view result) {
  auto module = ImportText(Cat("func.func @main(", parameters, ") -> ", result,
                               " {\n%0 = ", operation, "\nreturn %0 : ", result, "\n}"));
  if (!module.ok()) return module.status().ToString();
  return ir::ToHloText(*(*module)->entry()->root(), {.metadata = false});
}

// All instructions of the entry but parameters, one to a line.
std::string Entry(std::string_view text) {
  auto module = ImportText(text);
  if (!module.ok()) return module.status().ToString();
  std::string lines;
  for (const ir::Instruction* i : (*module)->entry()->instructions()) {
    if (i->opcode() == Opcode::kParameter) continue;
    lines += Cat(ir::ToHloText(*i, {.metadata = false}), "\n");
  }
  return lines;
}

TEST(StablehloImportOps, Elementwise) {
  EXPECT_EQ(Root("%x: tensor<2xf32>, %y: tensor<2xf32>",
                 "stablehlo.compare LT, %x, %y, TOTALORDER : (tensor<2xf32>, tensor<2xf32>) -> "
                 "tensor<2xi1>",
                 "tensor<2xi1>"),
            "%compare = pred[2]{0} compare(%arg0, %arg1), direction=LT, type=TOTALORDER");
  EXPECT_EQ(Root("%x: tensor<2xi32>, %y: tensor<2xi32>",
                 "stablehlo.compare NE, %x, %y, SIGNED : (tensor<2xi32>, tensor<2xi32>) -> "
                 "tensor<2xi1>",
                 "tensor<2xi1>"),
            "%compare = pred[2]{0} compare(%arg0, %arg1), direction=NE");
  EXPECT_EQ(Root("%x: tensor<2xf32>", "stablehlo.convert %x : (tensor<2xf32>) -> tensor<2xi1>",
                 "tensor<2xi1>"),
            "%convert = pred[2]{0} convert(%arg0)");
  EXPECT_EQ(Root("%x: tensor<2xf32>",
                 "stablehlo.reduce_precision %x, format = e5m10 : "
                 "tensor<2xf32>",
                 "tensor<2xf32>"),
            "%reduce-precision = f32[2]{0} reduce-precision(%arg0), exponent_bits=5, "
            "mantissa_bits=10");
  EXPECT_EQ(Root("%x: tensor<2xf32>, %y: tensor<2xf32>",
                 "stablehlo.complex %x, %y : tensor<2xcomplex<f32>>", "tensor<2xcomplex<f32>>"),
            "%complex = c64[2]{0} complex(%arg0, %arg1)");
  EXPECT_EQ(Root("%p: tensor<i1>, %x: tensor<2xf32>, %y: tensor<2xf32>",
                 "stablehlo.select %p, %x, %y : tensor<i1>, tensor<2xf32>", "tensor<2xf32>"),
            "%select = f32[2]{0} select(%arg0, %arg1, %arg2)");
}

TEST(StablehloImportOps, Chlo) {
  EXPECT_EQ(Root("%x: tensor<2xf16>", "chlo.erf_inv %x : tensor<2xf16> -> tensor<2xf16>",
                 "tensor<2xf16>"),
            "%kiln.erf-inv = f16[2]{0} custom-call(%arg0), custom_call_target=\"kiln.erf-inv\"");
  const std::string head =
      R"(func.func @main() -> (tensor<3xi1>, tensor<3xi1>, tensor<3xi1>) {
%x = stablehlo.constant dense<[0x7F800000, 0xFF800000, 1.0]> : tensor<3xf32>
)";
  EXPECT_EQ(Value(Cat(head, "%0 = chlo.is_inf %x : tensor<3xf32> -> tensor<3xi1>\n",
                      "%1 = chlo.is_pos_inf %x : tensor<3xf32> -> tensor<3xi1>\n",
                      "%2 = chlo.is_neg_inf %x : tensor<3xf32> -> tensor<3xi1>\n",
                      "return %0, %1, %2 : tensor<3xi1>, tensor<3xi1>, tensor<3xi1>\n}")),
            "({1, 1, 0}, {1, 0, 0}, {0, 1, 0})");
  EXPECT_EQ(BodyValue(Constant("x", "[(1.0, 2.0), (-3.0, 0.5)]", "tensor<2xcomplex<f32>>") +
                          "%0 = chlo.conj %x : tensor<2xcomplex<f32>> -> tensor<2xcomplex<f32>>\n"
                          "%1 = chlo.square %x : tensor<2xcomplex<f32>> -> tensor<2xcomplex<f32>>\n"
                          "%2 = \"chlo.constant_like\"(%x) {value = 2.0 : f32} : "
                          "(tensor<2xcomplex<f32>>) -> tensor<2xcomplex<f32>>",
                      "%0, %1, %2",
                      "tensor<2xcomplex<f32>>, tensor<2xcomplex<f32>>, tensor<2xcomplex<f32>>"),
            "({(1, -2), (-3, -0.5)}, {(-3, 4), (8.75, -3)}, {(2, 0), (2, 0)})");
  EXPECT_EQ(BodyValue(Constant("x", "[0.0, 1.0]", "tensor<2xf64>") +
                          R"(%0 = chlo.cosh %x : tensor<2xf64> -> tensor<2xf64>
%1 = chlo.sinh %x : tensor<2xf64> -> tensor<2xf64>
%2 = chlo.atan %x : tensor<2xf64> -> tensor<2xf64>)",
                      "%0, %1, %2", "tensor<2xf64>, tensor<2xf64>, tensor<2xf64>"),
            "({1, 1.5430806348152437}, {0, 1.1752011936438014}, {0, 0.7853981633974483})");
}

TEST(StablehloImportOps, Movement) {
  EXPECT_EQ(Root("%x: tensor<6x4xf32>",
                 "stablehlo.slice %x [1:5:2, 0:4] : (tensor<6x4xf32>) -> tensor<2x4xf32>",
                 "tensor<2x4xf32>"),
            "%slice = f32[2,4]{1,0} slice(%arg0), slice={[1:5:2], [0:4:1]}");
  EXPECT_EQ(Root("%x: tensor<2xf32>, %v: tensor<f32>",
                 "stablehlo.pad %x, %v, low = [1], high = [-1], interior = [2] : (tensor<2xf32>, "
                 "tensor<f32>) -> tensor<4xf32>",
                 "tensor<4xf32>"),
            "%pad = f32[4]{0} pad(%arg0, %arg1), padding=1_-1_2");
  EXPECT_EQ(Root("%x: tensor<4x4xf32>, %i: tensor<i32>",
                 "stablehlo.dynamic_slice %x, %i, %i, sizes = [2, 1] : (tensor<4x4xf32>, "
                 "tensor<i32>, tensor<i32>) -> tensor<2x1xf32>",
                 "tensor<2x1xf32>"),
            "%dynamic-slice = f32[2,1]{1,0} dynamic-slice(%arg0, %arg1, %arg1), "
            "dynamic_slice_sizes={2,1}");
  EXPECT_EQ(Root("%x: tensor<2x3xf32>",
                 "stablehlo.transpose %x, dims = [1, 0] : (tensor<2x3xf32>) -> tensor<3x2xf32>",
                 "tensor<3x2xf32>"),
            "%transpose = f32[3,2]{1,0} transpose(%arg0), dimensions={1,0}");
  EXPECT_EQ(Root("%x: tensor<2xf32>",
                 "stablehlo.broadcast %x, sizes = [3] : (tensor<2xf32>) -> tensor<3x2xf32>",
                 "tensor<3x2xf32>"),
            "%broadcast = f32[3,2]{1,0} broadcast(%arg0), dimensions={1}");
  EXPECT_EQ(
      Root("%x: tensor<2xf32>", "stablehlo.bitcast_convert %x : (tensor<2xf32>) -> tensor<2x2xf16>",
           "tensor<2x2xf16>"),
      "%bitcast-convert = f16[2,2]{1,0} bitcast-convert(%arg0)");
  EXPECT_EQ(
      Root("", "stablehlo.constant dense<7> : tensor<1000x1000xi32>", "tensor<1000x1000xi32>"),
      "%broadcast = s32[1000,1000]{1,0} broadcast(%constant), dimensions={}");
}

TEST(StablehloImportOps, Windows) {
  EXPECT_EQ(
      Root("%x: tensor<2x8x8x3xf32>, %k: tensor<3x3x3x4xf32>",
           "stablehlo.convolution(%x, %k) dim_numbers = [b, 0, 1, f]x[0, 1, i, o]->[b, 0, 1, f], "
           "window = {stride = [2, 1], pad = [[1, 1], [0, 2]], lhs_dilate = [1, 2], rhs_dilate = "
           "[2, 1], reverse = [true, false]} {batch_group_count = 1 : i64, feature_group_count = 1 "
           ": i64} : (tensor<2x8x8x3xf32>, tensor<3x3x3x4xf32>) -> tensor<2x3x15x4xf32>",
           "tensor<2x3x15x4xf32>"),
      "%convolution = f32[2,3,15,4]{3,2,1,0} convolution(%arg0, %arg1), window={size=3x3 "
      "stride=2x1 "
      "pad=1_1x0_2 lhs_dilate=1x2 rhs_dilate=2x1 rhs_reversal=1x0}, dim_labels=b01f_01io->b01f");
  EXPECT_EQ(Root("%x: tensor<5x4xf32>, %i: tensor<2x1xi32>",
                 "\"stablehlo.gather\"(%x, %i) {dimension_numbers = #stablehlo.gather<offset_dims "
                 "= [1], collapsed_slice_dims = [0], start_index_map = [0], index_vector_dim = 1>, "
                 "slice_sizes = array<i64: 1, 4>, indices_are_sorted = true} : (tensor<5x4xf32>, "
                 "tensor<2x1xi32>) -> tensor<2x4xf32>",
                 "tensor<2x4xf32>"),
            "%gather = f32[2,4]{1,0} gather(%arg0, %arg1), offset_dims={1}, "
            "collapsed_slice_dims={0}, start_index_map={0}, index_vector_dim=1, slice_sizes={1,4}, "
            "indices_are_sorted=true");
  EXPECT_EQ(Root("%x: tensor<4x6xf32>, %z: tensor<f32>",
                 "\"stablehlo.reduce_window\"(%x, %z) ({\n^bb0(%a: tensor<f32>, %b: tensor<f32>):\n"
                 "%m = stablehlo.maximum %a, %b : tensor<f32>\nstablehlo.return %m : tensor<f32>\n"
                 "}) {window_dimensions = array<i64: 2, 2>, window_strides = array<i64: 2, 1>, "
                 "padding = dense<[[0, 0], [1, 0]]> : tensor<2x2xi64>} : (tensor<4x6xf32>, "
                 "tensor<f32>) -> tensor<2x6xf32>",
                 "tensor<2x6xf32>"),
            "%reduce-window = f32[2,6]{1,0} reduce-window(%arg0, %arg1), window={size=2x2 "
            "stride=2x1 pad=0_0x1_0}, to_apply=%region");
}

TEST(StablehloImportOps, SortsAndFolds) {
  const std::string text =
      R"(func.func @main(%x: tensor<4xf32>, %y: tensor<4xi32>) -> (tensor<4xf32>, tensor<4xi32>) {
%0:2 = "stablehlo.sort"(%x, %y) ({
^bb0(%a: tensor<f32>, %b: tensor<f32>, %c: tensor<i32>, %d: tensor<i32>):
%p = stablehlo.compare LT, %a, %b : (tensor<f32>, tensor<f32>) -> tensor<i1>
stablehlo.return %p : tensor<i1>
}) {is_stable = true} : (tensor<4xf32>, tensor<4xi32>) -> (tensor<4xf32>, tensor<4xi32>)
return %0#0, %0#1 : tensor<4xf32>, tensor<4xi32>
})";
  EXPECT_EQ(Entry(text),
            "%sort = (f32[4]{0}, s32[4]{0}) sort(%arg0, %arg1), dimensions={0}, is_stable=true, "
            "to_apply=%comparator\n"
            "%get-tuple-element = f32[4]{0} get-tuple-element(%sort), index=0\n"
            "%get-tuple-element.1 = s32[4]{0} get-tuple-element(%sort), index=1\n"
            "%tuple = (f32[4]{0}, s32[4]{0}) tuple(%get-tuple-element, %get-tuple-element.1)\n");
}

TEST(StablehloImportOps, Statistics) {
  EXPECT_EQ(Root("%x: tensor<2x3xf32>, %s: tensor<3xf32>",
                 "\"stablehlo.batch_norm_inference\"(%x, %s, %s, %s, %s) {epsilon = 1.0e-3 : f32, "
                 "feature_index = 1 : i64} : (tensor<2x3xf32>, tensor<3xf32>, tensor<3xf32>, "
                 "tensor<3xf32>, tensor<3xf32>) -> tensor<2x3xf32>",
                 "tensor<2x3xf32>"),
            "%batch-norm-inference = f32[2,3]{1,0} batch-norm-inference(%arg0, %arg1, %arg1, "
            "%arg1, %arg1), epsilon=0.0010000000474974513, feature_index=1");
  EXPECT_EQ(Root("%a: tensor<f32>, %s: tensor<2xi64>",
                 "stablehlo.rng %a, %a, %s, distribution = NORMAL : (tensor<f32>, tensor<f32>, "
                 "tensor<2xi64>) -> tensor<2x3xf32>",
                 "tensor<2x3xf32>"),
            "%rng = f32[2,3]{1,0} rng(%arg0, %arg0), distribution=rng_normal");
  EXPECT_EQ(
      Entry("func.func @main(%s: tensor<2xui64>) -> tensor<4xf32> {\n"
            "%0:2 = stablehlo.rng_bit_generator %s, algorithm = THREE_FRY : "
            "(tensor<2xui64>) -> (tensor<2xui64>, tensor<4xf32>)\n"
            "return %0#1 : tensor<4xf32>\n}"),
      R"(%rng-bit-generator = (u64[2]{0}, u32[4]{0}) rng-bit-generator(%arg0), algorithm=rng_three_fry
%get-tuple-element = u64[2]{0} get-tuple-element(%rng-bit-generator), index=0
%get-tuple-element.1 = u32[4]{0} get-tuple-element(%rng-bit-generator), index=1
%bitcast-convert = f32[4]{0} bitcast-convert(%get-tuple-element.1)
)");
}

TEST(StablehloImportOps, LinearAlgebra) {
  EXPECT_EQ(Root("%x: tensor<3x3xf32>", "stablehlo.cholesky %x, lower = true : tensor<3x3xf32>",
                 "tensor<3x3xf32>"),
            "%cholesky = f32[3,3]{1,0} cholesky(%arg0), lower=true");
  EXPECT_EQ(Root("%a: tensor<3x3xf32>, %b: tensor<3x2xf32>",
                 "\"stablehlo.triangular_solve\"(%a, %b) {left_side = true, lower = false, "
                 "unit_diagonal = false, transpose_a = #stablehlo<transpose NO_TRANSPOSE>} : "
                 "(tensor<3x3xf32>, tensor<3x2xf32>) -> tensor<3x2xf32>",
                 "tensor<3x2xf32>"),
            "%triangular-solve = f32[3,2]{1,0} triangular-solve(%arg0, %arg1), left_side=true, "
            "lower=false, unit_diagonal=false, transpose_a=NO_TRANSPOSE");
  EXPECT_EQ(Root("%x: tensor<2x9xcomplex<f32>>",
                 "stablehlo.fft %x, type = IRFFT, length = [16] : (tensor<2x9xcomplex<f32>>) -> "
                 "tensor<2x16xf32>",
                 "tensor<2x16xf32>"),
            "%fft = f32[2,16]{1,0} fft(%arg0), fft_type=IRFFT, fft_length={16}");
}

TEST(StablehloImportOps, Collectives) {
  EXPECT_EQ(Root("%x: tensor<2x2xf32>",
                 "\"stablehlo.all_gather\"(%x) {all_gather_dim = 1 : i64, replica_groups = "
                 "dense<[[0, 1], [2, -1]]> : tensor<2x2xi64>, channel_handle = "
                 "#stablehlo.channel_handle<handle = 3, type = 0>, use_global_device_ids} : "
                 "(tensor<2x2xf32>) -> tensor<2x4xf32>",
                 "tensor<2x4xf32>"),
            "%all-gather = f32[2,4]{1,0} all-gather(%arg0), dimensions={1}, "
            "replica_groups={{0,1},{2}}, channel_id=3, use_global_device_ids=true");
  EXPECT_EQ(Entry("func.func @main(%x: tensor<2x4xf32>) -> tensor<4x2xf32> {\n"
                  "%0 = \"stablehlo.all_to_all\"(%x) {split_dimension = 1 : i64, concat_dimension "
                  "= 0 : i64, split_count = 2 : i64, replica_groups = dense<[[1, 0]]> : "
                  "tensor<1x2xi64>} : (tensor<2x4xf32>) -> tensor<4x2xf32>\n"
                  "return %0 : tensor<4x2xf32>\n}"),
            R"(%slice = f32[2,2]{1,0} slice(%arg0), slice={[0:2], [0:2]}
%slice.1 = f32[2,2]{1,0} slice(%arg0), slice={[0:2], [2:4]}
%all-to-all = (f32[2,2]{1,0}, f32[2,2]{1,0}) all-to-all(%slice, %slice.1), replica_groups={{1,0}}
%get-tuple-element = f32[2,2]{1,0} get-tuple-element(%all-to-all), index=0
%get-tuple-element.1 = f32[2,2]{1,0} get-tuple-element(%all-to-all), index=1
%concatenate = f32[4,2]{1,0} concatenate(%get-tuple-element, %get-tuple-element.1), dimensions={0}
)");
  EXPECT_EQ(Root("%x: tensor<2xf32>",
                 "\"stablehlo.collective_permute\"(%x) {source_target_pairs = dense<[[0, 1], [1, "
                 "2]]> : tensor<2x2xi64>} : (tensor<2xf32>) -> tensor<2xf32>",
                 "tensor<2xf32>"),
            "%collective-permute = f32[2]{0} collective-permute(%arg0), "
            "source_target_pairs={{0,1},{1,2}}");
  EXPECT_EQ(Root("%x: tensor<4xf32>",
                 "\"stablehlo.reduce_scatter\"(%x) ({\n^bb0(%a: tensor<f32>, %b: tensor<f32>):\n"
                 "%s = stablehlo.add %a, %b : tensor<f32>\nstablehlo.return %s : tensor<f32>\n}) "
                 "{scatter_dimension = 0 : i64, replica_groups = dense<[[0, 1]]> : "
                 "tensor<1x2xi64>} : (tensor<4xf32>) -> tensor<2xf32>",
                 "tensor<2xf32>"),
            "%reduce-scatter = f32[2]{0} reduce-scatter(%arg0), dimensions={0}, "
            "replica_groups={{0,1}}, to_apply=%region");
  EXPECT_EQ(Entry(R"(func.func @main(%x: tensor<2xf32>) -> tensor<2xf32> {
%0 = "stablehlo.collective_reduce"(%x) ({
^bb0(%a: tensor<f32>, %b: tensor<f32>):
%s = stablehlo.add %a, %b : tensor<f32>
stablehlo.return %s : tensor<f32>
}) {replica_groups = dense<[[1, 0]]> : tensor<1x2xi64>} : (tensor<2xf32>) -> tensor<2xf32>
return %0 : tensor<2xf32>
})"),
            R"(%all-reduce = f32[2]{0} all-reduce(%arg0), replica_groups={{1,0}}, to_apply=%region
%replica-id = u32[] replica-id()
%constant = u32[] constant(1)
%compare = pred[] compare(%replica-id, %constant), direction=EQ
%constant.1 = f32[] constant(0)
%broadcast = f32[2]{0} broadcast(%constant.1), dimensions={}
%select = f32[2]{0} select(%compare, %all-reduce, %broadcast)
)");
}

TEST(StablehloImportOps, Transfers) {
  EXPECT_EQ(
      Entry("func.func @main(%x: tensor<2xf32>, %t: !stablehlo.token) -> !stablehlo.token {\n"
            "%0 = \"stablehlo.send\"(%x, %t) {channel_handle = #stablehlo.channel_handle<"
            "handle = 5, type = 2>, is_host_transfer = true} : (tensor<2xf32>, "
            "!stablehlo.token) -> !stablehlo.token\n"
            "%1:2 = \"stablehlo.recv\"(%0) {channel_handle = #stablehlo.channel_handle<handle "
            "= 6, type = 3>} : (!stablehlo.token) -> (tensor<3xi32>, !stablehlo.token)\n"
            "%2:3 = \"stablehlo.infeed\"(%1#1) {infeed_config = \"q\"} : (!stablehlo.token) -> "
            "(tensor<f32>, tensor<i1>, !stablehlo.token)\n"
            "%3 = \"stablehlo.outfeed\"(%1#0, %2#2) : (tensor<3xi32>, !stablehlo.token) -> "
            "!stablehlo.token\n"
            "%4 = stablehlo.after_all %3, %0 : !stablehlo.token\n"
            "return %4 : !stablehlo.token\n}"),
      R"(%send = (f32[2]{0}, u32[], token[]) send(%arg0, %arg1), channel_id=5, is_host_transfer=true
%send-done = token[] send-done(%send), channel_id=5, is_host_transfer=true
%recv = (s32[3]{0}, u32[], token[]) recv(%send-done), channel_id=6
%recv-done = (s32[3]{0}, token[]) recv-done(%recv), channel_id=6
%get-tuple-element = s32[3]{0} get-tuple-element(%recv-done), index=0
%get-tuple-element.1 = token[] get-tuple-element(%recv-done), index=1
%infeed = ((f32[], pred[]), token[]) infeed(%get-tuple-element.1), infeed_config="q"
%get-tuple-element.2 = (f32[], pred[]) get-tuple-element(%infeed), index=0
%get-tuple-element.3 = f32[] get-tuple-element(%get-tuple-element.2), index=0
%get-tuple-element.4 = pred[] get-tuple-element(%get-tuple-element.2), index=1
%get-tuple-element.5 = token[] get-tuple-element(%infeed), index=1
%outfeed = token[] outfeed(%get-tuple-element, %get-tuple-element.5)
%after-all = token[] after-all(%outfeed, %send-done)
)");
}

TEST(StablehloImportOps, CustomCalls) {
  EXPECT_EQ(Entry("func.func @main(%x: tensor<2xf32>) -> tensor<2xf32> {\n"
                  "%0:2 = stablehlo.custom_call @my.call(%x, %x) {has_side_effect = true, "
                  "backend_config = \"a \\22b\\22\", api_version = 2 : i32, called_computations = "
                  "[@f], output_operand_aliases = [#stablehlo.output_operand_alias<"
                  "output_tuple_indices = [0], operand_index = 1, operand_tuple_indices = []>]} : "
                  "(tensor<2xf32>, tensor<2xf32>) -> (tensor<2xf32>, tensor<i32>)\n"
                  "return %0#0 : tensor<2xf32>\n}\n"
                  "func.func private @f(%x: tensor<f32>) -> tensor<f32> {\nreturn %x : "
                  "tensor<f32>\n}"),
            "%custom-call = (f32[2]{0}, s32[]) custom-call(%arg0, %arg0), "
            "custom_call_target=\"my.call\", called_computations={%f}, "
            "custom_call_has_side_effect=true, output_to_operand_aliasing={{0}: (1, {})}, "
            "backend_config=\"a \\\"b\\\"\", api_version=API_VERSION_STATUS_RETURNING\n"
            "%get-tuple-element = f32[2]{0} get-tuple-element(%custom-call), index=0\n"
            "%get-tuple-element.1 = s32[] get-tuple-element(%custom-call), index=1\n");
  EXPECT_EQ(Entry("func.func @main(%x: tensor<2x2xf32>) {\n"
                  "stablehlo.custom_call @f(%x) {operand_layouts = [dense<[0, 1]> : "
                  "tensor<2xindex>], result_layouts = []} : (tensor<2x2xf32>) -> ()\nreturn\n}"),
            "%transpose = f32[2,2]{1,0} transpose(%arg0), dimensions={1,0}\n"
            "%custom-call = () custom-call(%transpose), custom_call_target=\"f\"\n%tuple = () "
            "tuple()\n");
}

TEST(StablehloImportOps, CallsWithAttributesAndLayouts) {
  auto call = [](std::string_view attributes) {
    return Entry(
        Cat("func.func @main(%x: tensor<2x3xf32>, %n: tensor<i32>) -> tensor<3x2xf32> {\n"
            "%0 = stablehlo.custom_call @f(%x, %n) {",
            attributes,
            "} : (tensor<2x3xf32>, tensor<i32>) -> tensor<3x2xf32>\nreturn %0 : "
            "tensor<3x2xf32>\n}"));
  };
  // Results are copied to row-major order, in which values of programs are.
  EXPECT_EQ(call("api_version = 1 : i32, mhlo.backend_config = {b = \"t\", a = dense<[1, 2]> : "
                 "tensor<2xi64>}, operand_layouts = [dense<[1, 0]> : tensor<2xindex>, dense<> : "
                 "tensor<0xindex>], result_layouts = [dense<[0, 1]> : tensor<2xindex>]"),
            "%custom-call = f32[3,2]{0,1} custom-call(%arg0, %arg1), custom_call_target=\"f\", "
            "backend_config=\"{a = dense<[1, 2]> : tensor<2xi64>, b = \\\"t\\\"}\", "
            "api_version=API_VERSION_TYPED_FFI, "
            "operand_layout_constraints={f32[2,3]{1,0}, s32[]}\n"
            "%copy = f32[3,2]{1,0} copy(%custom-call)\n");
  auto has = [&](std::string_view attributes, std::string_view part) {
    EXPECT_NE(call(attributes).find(part), std::string::npos) << call(attributes);
  };
  has("operand_layouts = [dense<[1, 1]> : tensor<2xindex>, dense<> : tensor<0xindex>]",
      "operand_layouts has no layout of f32[2,3] at 0");
  has("result_layouts = [dense<> : tensor<0xindex>]", "result_layouts has no layout");
  has("operand_layouts = [dense<[1, 0]> : tensor<2xindex>]",
      "operand_layouts has 1 layouts; expected 2");
}

TEST(StablehloImportOps, Processes) {
  EXPECT_EQ(
      Entry("func.func @p(%x: tensor<i32>) -> tensor<i32> {\nreturn %x : tensor<i32>\n}\n"
            "func.func @q() -> tensor<i32> {\n%0 = stablehlo.constant dense<1> : "
            "tensor<i32>\nreturn %0 : tensor<i32>\n}\n"
            "func.func @main() {\n%0 = stablehlo.constant dense<3> : tensor<i32>\n"
            "%1:2 = \"interpreter.run_parallel\"(%0, %0) {infeed = [@q], programs = [[@p, "
            "@p]]} : (tensor<i32>, tensor<i32>) -> (tensor<i32>, tensor<i32>)\nreturn\n}"),
      "%constant.1 = s32[] constant(3)\n"
      "%custom-call = (s32[], s32[]) custom-call(%constant.1, %constant.1), "
      "custom_call_target=\"interpreter.run_parallel\", called_computations={%p, %p, %q}, "
      "custom_call_has_side_effect=true, backend_config=\"replicas=1 partitions=2 infeed=1\"\n"
      "%get-tuple-element = s32[] get-tuple-element(%custom-call), index=0\n"
      "%get-tuple-element.1 = s32[] get-tuple-element(%custom-call), index=1\n"
      "%tuple = () tuple()\n");
}

// --- Corpora

std::string ReadFile(const std::filesystem::path& path) {
  std::ifstream in(path);
  std::stringstream text;
  text << in.rdbuf();
  return text.str();
}

TEST(CorpusStablehloImport, AllFilesAreImported) {
  const char* folder = std::getenv("KILN_CONFORMANCE_DIR");
  if (!folder) GTEST_SKIP() << "KILN_CONFORMANCE_DIR is not set";
  int files = 0;
  for (const char* part : {"testdata", "quantized", "interpret", "math"}) {
    for (const auto& entry :
         std::filesystem::directory_iterator(std::filesystem::path(folder) / "stablehlo" / part)) {
      const std::string text = ReadFile(entry.path());
      ++files;
      for (const Chunk& chunk : SplitChunks(text)) {
        auto tree = ReadText(chunk.text, {.first_line = chunk.first_line});
        ASSERT_TRUE(tree.ok()) << entry.path() << ": " << tree.status().ToString();
        if ((*tree)->body()->operations.empty()) continue;
        auto module = Import(**tree);
        EXPECT_TRUE(module.ok()) << entry.path() << ": " << module.status().ToString();
      }
    }
  }
  EXPECT_GT(files, 0);
  std::cout << files << " files were imported\n";
}

KILN_LABEL(corpus, "CorpusStablehloImport");

}  // namespace
}  // namespace kiln::stablehlo
