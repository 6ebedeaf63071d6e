// The reader of portable bytecode: containers made here, of each format; what is in the tables; and
// what is wrong.
#include <gtest/gtest.h>

#include "ir/text.h"
#include "stablehlo/bytecode/bytecode.h"
#include "stablehlo/bytecode/operations.h"
#include "stablehlo/import/import.h"
#include "stablehlo/mlir/print.h"
#include "support/bytecode_builder.h"

namespace kiln::stablehlo {
namespace {

using Op = BytecodeBuilder::Op;

std::string ReadBytes(const std::string& bytes, bool sources = false) {
  auto module = ReadBytecode(bytes);
  return module.ok() ? mlir::ToText(**module, {.sources = sources}) : module.status().ToString();
}

// f(x, y) = (x + y) * (x + y), with a region that sees values outside.
std::string SampleModule(uint64_t format) {
  BytecodeBuilder b(format);
  const uint64_t f32 = b.VhloType(VarInt(4));
  const uint64_t pred = b.VhloType(VarInt(0));
  const uint64_t tensor = b.VhloType(VarInt(20) + SignedVarInts({2}) + VarInt(f32));
  const uint64_t boolean = b.VhloType(VarInt(20) + SignedVarInts({}) + VarInt(pred));
  const uint64_t ends = b.Operation("vhlo", "return_v1");
  Op constant{.name = b.Operation("vhlo", "constant_v1"), .results = {boolean}};
  constant.properties = {{"value", b.Vhlo(VarInt(15) + VarInt(boolean) + Blob("\1"))}};
  Op add{.name = b.Operation("vhlo", "add_v1"), .operands = {0, 1}, .results = {tensor}};
  Op branch{.name = b.Operation("vhlo", "if_v1"), .operands = {2}, .results = {tensor}};
  Op multiply{.name = b.Operation("vhlo", "multiply_v1"), .operands = {3, 3}, .results = {tensor}};
  // The region's value comes behind those of the function.
  branch.regions = {
      b.Region(1, {}, {b.Encode(multiply), b.Encode({.name = ends, .operands = {5}})}),
      b.Region(0, {}, {b.Encode({.name = ends, .operands = {0}})})};
  const std::string ir = b.Module(5, {tensor, tensor}, {tensor},
                                  {b.Encode(constant), b.Encode(add), b.Encode(branch),
                                   b.Encode({.name = ends, .operands = {4}})});
  return b.Finish(ir);
}

TEST(StablehloBytecode, ReadsEachFormat) {
  const std::string expected = R"("builtin.module"() ({
  "func.func"() ({
  ^bb0(%0: tensor<2xf32>, %1: tensor<2xf32>):
    %2 = "stablehlo.constant"() {value = dense<true> : tensor<i1>} : () -> (tensor<i1>)
    %3 = "stablehlo.add"(%0, %1) : (tensor<2xf32>, tensor<2xf32>) -> (tensor<2xf32>)
    %4 = "stablehlo.if"(%2) ({
      %5 = "stablehlo.multiply"(%3, %3) : (tensor<2xf32>, tensor<2xf32>) -> (tensor<2xf32>)
      "stablehlo.return"(%5) : (tensor<2xf32>) -> ()
    }, {
      "stablehlo.return"(%0) : (tensor<2xf32>) -> ()
    }) : (tensor<i1>) -> (tensor<2xf32>)
    "func.return"(%4) : (tensor<2xf32>) -> ()
  }) {function_type = (tensor<2xf32>, tensor<2xf32>) -> tensor<2xf32>, sym_name = "main"} : () -> ()
}) : () -> ()
)";
  for (uint64_t format = 0; format <= 6; ++format) {
    EXPECT_EQ(ReadBytes(SampleModule(format)), expected) << "format " << format;
  }
  EXPECT_TRUE(IsBytecode(SampleModule(6)));
  EXPECT_FALSE(IsBytecode("module {}"));
  EXPECT_FALSE(IsBytecode("ML"));
}

// In which order values are used is there for whom it matters.
TEST(StablehloBytecode, OrdersOfUsesSayNothing) {
  BytecodeBuilder b;
  const uint64_t f32 = b.VhloType(VarInt(4));
  const std::string head = VarInt(b.Operation("my", "op"));
  const std::string location = VarInt(b.Unknown()), type = VarInt(f32);
  // Results, and orders: of one, without saying of which; of some of two.
  const char mask = 2 | 32;
  const std::string one =
      head + mask + location + VarInt(1) + type + Flagged(2, false) + VarInt(1) + VarInt(0);
  const std::string two = head + mask + location + VarInt(2) + type + type + VarInt(1) + VarInt(1) +
                          Flagged(2, true) + VarInt(0) + VarInt(1);
  const std::string block = Flagged(2, true) + VarInt(1) + Flagged(f32, true) + location + "\1" +
                            Flagged(1, false) + VarInt(0) + one + two;
  const Op outer{.name = b.Operation("my", "outer"), .regions = {VarInt(1) + VarInt(4) + block}};
  EXPECT_EQ(ReadBytes(b.Finish(b.Block({}, {b.Encode(outer)}))), R"("builtin.module"() ({
  "my.outer"() ({
  ^bb0(%0: f32):
    %1 = "my.op"() : () -> (f32)
    %2, %3 = "my.op"() : () -> (f32, f32)
  }) : () -> ()
}) : () -> ()
)");
}

// A function without a body's operations that has this attribute.
std::string WithAttribute(BytecodeBuilder& b, uint64_t attribute) {
  const uint64_t ends = b.Operation("vhlo", "return_v1");
  const std::string ir = b.Module(0, {}, {}, {b.Encode({.name = ends})}, {{"test", attribute}});
  return b.Finish(ir);
}

// The attribute's text, or the message.
std::string AttributeText(BytecodeBuilder& b, uint64_t attribute) {
  auto module = ReadBytecode(WithAttribute(b, attribute));
  if (!module.ok()) return std::string(module.status().message());
  const mlir::Operation* function = (*module)->body()->operations[0];
  const mlir::Attribute* found = function->attribute("test");
  return found ? mlir::ToText(*found) : "missing";
}

std::string TypeText(BytecodeBuilder& b, uint64_t type) {
  return AttributeText(b, b.Vhlo(VarInt(17) + VarInt(type)));
}

TEST(StablehloBytecode, Types) {
  const std::pair<int, std::string_view> scalars[] = {{0, "i1"},
                                                      {2, "bf16"},
                                                      {3, "f16"},
                                                      {4, "f32"},
                                                      {5, "f64"},
                                                      {6, "f8E4M3FN"},
                                                      {7, "f8E5M2"},
                                                      {9, "index"},
                                                      {10, "i4"},
                                                      {11, "i8"},
                                                      {12, "i16"},
                                                      {13, "i32"},
                                                      {14, "i64"},
                                                      {15, "ui4"},
                                                      {16, "ui8"},
                                                      {17, "ui16"},
                                                      {18, "ui32"},
                                                      {19, "ui64"},
                                                      {27, "f8E4M3FNUZ"},
                                                      {28, "f8E5M2FNUZ"},
                                                      {29, "f8E4M3B11FNUZ"},
                                                      {31, "i2"},
                                                      {32, "ui2"},
                                                      {33, "none"},
                                                      {34, "tf32"},
                                                      {35, "f8E4M3"},
                                                      {36, "f8E3M4"},
                                                      {37, "f4E2M1FN"},
                                                      {38, "f6E2M3FN"},
                                                      {39, "f6E3M2FN"},
                                                      {40, "f8E8M0FNU"},
                                                      {22, "!stablehlo.token"},
                                                      {26, "!shape.witness"}};
  for (auto [code, text] : scalars) {
    BytecodeBuilder b;
    EXPECT_EQ(TypeText(b, b.VhloType(VarInt(static_cast<uint64_t>(code)))), text);
  }
  auto text = [](auto make) {
    BytecodeBuilder b;
    const uint64_t f32 = b.VhloType(VarInt(4)), i8 = b.VhloType(VarInt(11));
    return TypeText(b, make(b, VarInt(f32), VarInt(i8)));
  };
  using B = BytecodeBuilder;
  using S = const std::string&;
  EXPECT_EQ(text([](B& b, S f32, S) { return b.VhloType(VarInt(1) + f32); }), "complex<f32>");
  EXPECT_EQ(text([](B& b, S f32, S i8) {
              return b.VhloType(VarInt(8) + VarInt(1) + f32 + VarInt(2) + i8 + i8);
            }),
            "(f32) -> (i8, i8)");
  EXPECT_EQ(text([](B& b, S f32, S) {
              return b.VhloType(VarInt(20) + SignedVarInts({2, INT64_MIN}) + f32);
            }),
            "tensor<2x?xf32>");
  EXPECT_EQ(text([](B& b, S f32, S) {
              const uint64_t bounds = b.Vhlo(VarInt(18) + SignedVarInts({4, INT64_MIN}));
              return b.VhloType(VarInt(21) + VarInt(bounds) + SignedVarInts({INT64_MIN, 3}) + f32);
            }),
            "tensor<?x3xf32, #stablehlo.bounds<4, ?>>");
  EXPECT_EQ(text([](B& b, S f32, S i8) { return b.VhloType(VarInt(23) + VarInt(2) + f32 + i8); }),
            "tuple<f32, i8>");
  EXPECT_EQ(text([](B& b, S f32, S) { return b.VhloType(VarInt(42) + VarInt(1) + f32); }),
            "!stablehlo.future<f32>");
  EXPECT_EQ(text([](B& b, S f32, S) { return b.VhloType(VarInt(25) + f32); }), "tensor<*xf32>");
  EXPECT_EQ(text([](B& b, S f32, S) {
              return b.VhloType(VarInt(41) + SignedVarInts({2, 3}) + f32);
            }),
            "memref<2x3xf32>");
  const std::string quarter = SignedVarInt(0x3fd0000000000000),
                    half = SignedVarInt(0x3fe0000000000000);
  EXPECT_EQ(text([&](B& b, S f32, S i8) {
              return b.VhloType(VarInt(24) + VarInt(1) + i8 + f32 + quarter + SignedVarInt(-3) +
                                SignedVarInt(-128) + SignedVarInt(127));
            }),
            "!quant.uniform<i8:f32, 0.25:-3>");
  EXPECT_EQ(text([&](B& b, S f32, S i8) {
              return b.VhloType(VarInt(30) + VarInt(0) + i8 + f32 + VarInt(1) + SignedVarInt(0) +
                                SignedVarInt(200) + VarInt(2) + quarter + half +
                                SignedVarInts({0, 7}));
            }),
            "!quant.uniform<u8<0:200>:f32:1, {0.25, 0.5:7}>");
}

TEST(StablehloBytecode, BuiltinTypes) {
  const std::pair<std::string, std::string_view> rows[] = {
      {VarInt(0) + VarInt(32 << 2 | 2), "ui32"},
      {VarInt(0) + VarInt(7 << 2 | 1), "si7"},
      {VarInt(0) + VarInt(1 << 2), "i1"},
      {VarInt(1), "index"},
      {VarInt(3), "bf16"},
      {VarInt(4), "f16"},
      {VarInt(5), "f32"},
      {VarInt(6), "f64"},
      {VarInt(12), "none"},
      {VarInt(21), "tf32"},
      {VarInt(24), "f8E4M3FN"},
      {VarInt(32), "f8E8M0FNU"}};
  for (const auto& [bytes, text] : rows) {
    BytecodeBuilder b;
    EXPECT_EQ(TypeText(b, b.Type("builtin", bytes)), text);
  }
  BytecodeBuilder b;
  const uint64_t f32 = b.Type("builtin", VarInt(5));
  EXPECT_EQ(TypeText(b, b.Type("builtin", VarInt(13) + SignedVarInts({4}) + VarInt(f32))),
            "tensor<4xf32>");
  BytecodeBuilder text;
  EXPECT_EQ(TypeText(text, text.Type("builtin", std::string("f8E4M3\0", 7), true)), "f8E4M3");
  BytecodeBuilder other;
  EXPECT_EQ(TypeText(other, other.Type("test", std::string("!test.t<1>\0", 11), true)),
            "!test.t<1>");
}

TEST(StablehloBytecode, Attributes) {
  const std::pair<std::string, std::string_view> rows[] = {
      {VarInt(2) + VarInt(1), "true"},
      {VarInt(3) + VarInt(5), "#stablehlo<comparison_direction LT>"},
      {VarInt(4) + VarInt(2), "#stablehlo<comparison_type TOTALORDER>"},
      {VarInt(5) + VarInt(4), "#stablehlo<custom_call_api_version API_VERSION_TYPED_FFI>"},
      {VarInt(7) + VarInt(3), "#stablehlo<fft_type IRFFT>"},
      {VarInt(11) + VarInt(2), "#stablehlo<precision HIGHEST>"},
      {VarInt(12) + VarInt(2), "#stablehlo<rng_algorithm PHILOX>"},
      {VarInt(13) + VarInt(1), "#stablehlo<rng_distribution UNIFORM>"},
      {VarInt(16) + VarInt(3), "#stablehlo<transpose ADJOINT>"},
      {VarInt(19) + VarInt(2), "#stablehlo.result_accuracy_mode<TOLERANCE>"},
      {VarInt(18) + SignedVarInts({3}), "#stablehlo.type_extensions<bounds = [3]>"},
      {VarInt(10) + SignedVarInts({1}) + SignedVarInt(-2) + SignedVarInts({0, 4}),
       "#stablehlo.output_operand_alias<output_tuple_indices = [1], operand_index = -2, "
       "operand_tuple_indices = [0, 4]>"},
      {VarInt(21) + SignedVarInt(2) + SignedVarInt(4), "(2)4"},
  };
  for (const auto& [bytes, text] : rows) {
    BytecodeBuilder b;
    EXPECT_EQ(AttributeText(b, b.Vhlo(bytes)), text);
  }
  auto number = [](int code, int type, const std::string& value) {
    BytecodeBuilder b;
    const uint64_t t = b.VhloType(VarInt(static_cast<uint64_t>(type)));
    return AttributeText(b, b.Vhlo(VarInt(static_cast<uint64_t>(code)) + VarInt(t) + value));
  };
  EXPECT_EQ(number(9, 14, SignedVarInt(-5)), "-5 : i64");
  EXPECT_EQ(number(9, 19, SignedVarInt(-1)), "18446744073709551615 : ui64");
  EXPECT_EQ(number(9, 11, "\xfe"), "-2 : i8");
  EXPECT_EQ(number(9, 16, "\xfe"), "254 : ui8");
  EXPECT_EQ(number(9, 10, "\x0f"), "-1 : i4");
  EXPECT_EQ(number(9, 15, "\x0f"), "15 : ui4");
  EXPECT_EQ(number(9, 9, SignedVarInt(7)), "7 : index");
  EXPECT_EQ(number(8, 4, SignedVarInt(0x3fc00000)), "1.5 : f32");
  EXPECT_EQ(number(8, 5, SignedVarInt(INT64_MIN)), "-0.0 : f64");
  EXPECT_EQ(number(8, 2, SignedVarInt(0x4000)), "2.0 : bf16");
  EXPECT_EQ(number(8, 34, SignedVarInt(0x1fe00)), "1.5 : tf32");
  EXPECT_EQ(number(8, 6, "\x38"), "1.0 : f8E4M3FN");
  EXPECT_EQ(number(8, 37, "\x03"), "1.5 : f4E2M1FN");
  EXPECT_NE(number(8, 14, SignedVarInt(1)).find("expected a float's type"), std::string::npos);
  EXPECT_NE(number(9, 4, SignedVarInt(1)).find("expected an integer's type"), std::string::npos);
  EXPECT_NE(number(9, 22, SignedVarInt(1)).find("expected the type of a number"),
            std::string::npos);
}

TEST(StablehloBytecode, AttributesOfOthers) {
  BytecodeBuilder b;
  const uint64_t one = b.Vhlo(VarInt(2) + VarInt(1)), text = b.VhloString("a\"b");
  EXPECT_EQ(AttributeText(b, b.Vhlo(VarInt(1) + VarInts({one, text, one}))),
            "[true, \"a\\22b\", true]");
  BytecodeBuilder dictionary;
  const uint64_t yes = dictionary.Vhlo(VarInt(2) + VarInt(1));
  const uint64_t z = dictionary.VhloString("z"), a = dictionary.VhloString("a");
  EXPECT_EQ(AttributeText(dictionary, dictionary.Vhlo(VarInt(6) + VarInt(2) + VarInt(z) +
                                                      VarInt(yes) + VarInt(a) + VarInt(z))),
            "{a = \"z\", z = true}");
  BytecodeBuilder accuracy;
  const uint64_t mode = accuracy.Vhlo(VarInt(19) + VarInt(2));
  EXPECT_EQ(
      AttributeText(accuracy, accuracy.Vhlo(VarInt(20) + SignedVarInt(0x3fe0000000000000) +
                                            SignedVarInt(0) + SignedVarInt(3) + VarInt(mode))),
      "#stablehlo.result_accuracy<atol = 0.5, rtol = 0.0, ulps = 3, mode = "
      "#stablehlo.result_accuracy_mode<TOLERANCE>>");
  BytecodeBuilder mesh;
  const uint64_t x = mesh.VhloString("x");
  const uint64_t axis = mesh.Vhlo(VarInt(24) + VarInt(x) + SignedVarInt(2));
  const uint64_t axes = mesh.Vhlo(VarInt(1) + VarInts({axis}));
  const uint64_t whole = mesh.Vhlo(VarInt(25) + VarInt(axes) + VarInt(0));
  const uint64_t reference = mesh.Vhlo(VarInt(22) + VarInt(x) + VarInt(0));
  const uint64_t references = mesh.Vhlo(VarInt(1) + VarInts({reference, reference}));
  EXPECT_EQ(AttributeText(mesh, mesh.Vhlo(VarInt(23) + VarInt(whole) + VarInt(references))),
            "#stablehlo.replica_group_mesh_axes<mesh = #stablehlo.mesh<axes = "
            "[#stablehlo.mesh_axis<name = \"x\", size = 2>]>, axes = "
            "[#stablehlo.axis_ref<name = \"x\">, #stablehlo.axis_ref<name = \"x\">]>");
}

// As exports of partitioned programs have it, around values of vhlo's types.
TEST(StablehloBytecode, ShardingConstraints) {
  BytecodeBuilder b;
  const uint64_t f32 = b.VhloType(VarInt(4));
  const uint64_t tensor = b.VhloType(VarInt(20) + SignedVarInts({2}) + VarInt(f32));
  const uint64_t f = b.Type("builtin", VarInt(5));
  const uint64_t builtin = b.Type("builtin", VarInt(13) + SignedVarInts({2}) + VarInt(f));
  const uint64_t cast = b.Operation("builtin", "unrealized_conversion_cast");
  Op first{.name = cast, .operands = {0}, .results = {builtin}};
  Op constraint{
      .name = b.Operation("sdy", "sharding_constraint"), .operands = {1}, .results = {builtin}};
  constraint.properties = {{"sharding", b.Attribute("sdy", VarInt(6))}};
  Op last{.name = cast, .operands = {2}, .results = {tensor}};
  const std::string ir =
      b.Module(4, {tensor}, {tensor},
               {b.Encode(first), b.Encode(constraint), b.Encode(last),
                b.Encode({.name = b.Operation("vhlo", "return_v1"), .operands = {3}})});
  const std::string bytes = b.Finish(ir);
  const std::string text = ReadBytes(bytes);
  EXPECT_NE(text.find("%2 = \"sdy.sharding_constraint\"(%1) : (tensor<2xf32>) -> (tensor<2xf32>)"),
            std::string::npos)
      << text;
  auto tree = ReadBytecode(bytes);
  ASSERT_TRUE(tree.ok()) << tree.status().ToString();
  auto module = Import(**tree);
  ASSERT_TRUE(module.ok()) << module.status().ToString();
  EXPECT_EQ(ir::ToHloText(**module, {.metadata = false}).find("custom-call"), std::string::npos);
}

TEST(StablehloBytecode, BuiltinAttributes) {
  auto text = [](auto make) {
    BytecodeBuilder b;
    return AttributeText(b, make(b));
  };
  using B = BytecodeBuilder;
  EXPECT_EQ(text([](B& b) { return b.Builtin(VarInt(7)); }), "unit");
  EXPECT_EQ(text([](B& b) { return b.BuiltinString("x"); }), "\"x\"");
  EXPECT_EQ(text([](B& b) { return b.Builtin(VarInt(4) + VarInt(b.BuiltinString("f"))); }), "@f");
  EXPECT_EQ(text([](B& b) {
              const uint64_t f = b.BuiltinString("f");
              const uint64_t inner = b.Builtin(VarInt(4) + VarInt(f));
              return b.Builtin(VarInt(5) + VarInt(f) + VarInts({inner, inner}));
            }),
            "@f::@f::@f");
  EXPECT_EQ(text([](B& b) {
              const uint64_t i1 = b.Type("builtin", VarInt(0) + VarInt(1 << 2));
              return b.Builtin(VarInt(8) + VarInt(i1) + "\1");
            }),
            "true");
  EXPECT_EQ(text([](B& b) {
              const uint64_t i16 = b.Type("builtin", VarInt(0) + VarInt(16 << 2));
              return b.Builtin(VarInt(17) + VarInt(i16) + VarInt(2) + Blob({"\1\0\xff\xff", 4}));
            }),
            "array<i16: 1, -1>");
  EXPECT_EQ(text([](B& b) {
              const uint64_t f32 = b.Type("builtin", VarInt(5));
              const uint64_t t = b.Type("builtin", VarInt(13) + SignedVarInts({2}) + VarInt(f32));
              return b.Builtin(VarInt(18) + VarInt(t) + Blob({"\0\0\x80\x3f\0\0\0\x40", 8}));
            }),
            "dense<[1.0, 2.0]> : tensor<2xf32>");
  EXPECT_EQ(text([](B& b) { return b.Attribute("sdy", std::string("#sdy.m<>\0", 9), true); }),
            "#sdy.m<>");
  // Shardy's says nothing about values, whatever it holds.
  EXPECT_EQ(text([](B& b) { return b.Attribute("sdy", VarInt(6) + VarInt(99)); }), "#sdy");
  EXPECT_NE(text([](B& b) { return b.Attribute("x", VarInt(1)); }).find("'x'"), std::string::npos);
  EXPECT_NE(text([](B& b) { return b.Unknown(); }).find("found a location"), std::string::npos);
}

TEST(StablehloBytecode, Resources) {
  for (bool fits : {true, false}) {
    BytecodeBuilder b;
    const uint64_t i8 = b.VhloType(VarInt(11));
    const uint64_t type = b.VhloType(VarInt(20) + SignedVarInts({fits ? 3 : 4}) + VarInt(i8));
    b.Resource("declared", "");
    const uint64_t resource = b.Resource("blob", VarInt(1) + Blob("\1\2\3"));
    const std::string text =
        AttributeText(b, b.Builtin(VarInt(16) + VarInt(type) + VarInt(resource)));
    if (fits) {
      EXPECT_EQ(text, "dense<[1, 2, 3]> : tensor<3xi8>");
    } else {
      EXPECT_NE(text.find("found 3 bytes; expected 4 elements of 1 bytes each, or one"),
                std::string::npos)
          << text;
    }
  }
  BytecodeBuilder b;
  const uint64_t type = b.VhloType(VarInt(20) + SignedVarInts({}) + VarInt(b.VhloType(VarInt(11))));
  b.Resource("declared", "");
  EXPECT_NE(AttributeText(b, b.Builtin(VarInt(16) + VarInt(type) + VarInt(0)))
                .find("found the resource 'declared', which has no bytes; expected a blob"),
            std::string::npos);
}

std::string ElementsText(uint64_t code, std::vector<int64_t> sizes, std::string_view blob) {
  BytecodeBuilder b;
  const uint64_t element = b.VhloType(VarInt(code));
  const uint64_t type = b.VhloType(VarInt(20) + SignedVarInts(sizes) + VarInt(element));
  return AttributeText(b, b.Vhlo(VarInt(15) + VarInt(type) + Blob(blob)));
}

TEST(StablehloBytecode, Elements) {
  using std::string_view;
  // Booleans are packed; a byte of ones is all of them, however many.
  EXPECT_EQ(ElementsText(0, {4}, "\x05"), "dense<[true, false, true, false]> : tensor<4xi1>");
  EXPECT_EQ(ElementsText(0, {4}, "\xff"), "dense<true> : tensor<4xi1>");
  EXPECT_EQ(ElementsText(0, {4}, string_view("\0", 1)), "dense<false> : tensor<4xi1>");
  EXPECT_EQ(ElementsText(0, {}, "\x01"), "dense<true> : tensor<i1>");
  EXPECT_EQ(ElementsText(0, {}, "\xff"), "dense<true> : tensor<i1>");
  EXPECT_EQ(ElementsText(0, {}, string_view("\0", 1)), "dense<false> : tensor<i1>");
  EXPECT_EQ(ElementsText(0, {10}, "\x01\x02"),
            "dense<[true, false, false, false, false, false, false, false, false, true]> : "
            "tensor<10xi1>");
  EXPECT_EQ(ElementsText(0, {100, 100}, "\xff"), "dense<true> : tensor<100x100xi1>");
  EXPECT_EQ(ElementsText(0, {100}, string_view("\0", 1)), "dense<false> : tensor<100xi1>");
  EXPECT_EQ(ElementsText(0, {3}, string_view("\1\0\1", 3)),
            "dense<[true, false, true]> : tensor<3xi1>");
  EXPECT_EQ(ElementsText(0, {0}, ""), "dense<> : tensor<0xi1>");
  EXPECT_NE(ElementsText(0, {20}, "\1\2").find("expected the bits of 20 booleans"),
            std::string::npos);
  // Others have a byte at least, and one element stands for all.
  EXPECT_EQ(ElementsText(11, {2, 2}, "\xff\2\3\4"), "dense<[[-1, 2], [3, 4]]> : tensor<2x2xi8>");
  EXPECT_EQ(ElementsText(11, {2, 2}, "\7"), "dense<7> : tensor<2x2xi8>");
  EXPECT_EQ(ElementsText(11, {2}, "\7\7"), "dense<7> : tensor<2xi8>");
  EXPECT_EQ(ElementsText(10, {2}, "\x0f\x07"), "dense<[-1, 7]> : tensor<2xi4>");
  EXPECT_EQ(ElementsText(15, {2}, "\xff\x07"), "dense<[15, 7]> : tensor<2xui4>");
  EXPECT_EQ(ElementsText(31, {2}, "\x02\x01"), "dense<[-2, 1]> : tensor<2xi2>");
  EXPECT_EQ(ElementsText(37, {2}, "\xf3\x02"), "dense<[1.5, 1.0]> : tensor<2xf4E2M1FN>");
  EXPECT_EQ(ElementsText(14, {0, 3}, ""), "dense<> : tensor<0x3xi64>");
  EXPECT_EQ(ElementsText(4, {2}, {"\0\0\x80\x3f\0\0\xc0\x7f", 8}),
            "dense<[1.0, 0x7FC00000]> : tensor<2xf32>");
  EXPECT_NE(ElementsText(4, {2}, "\1\2\3").find("found 3 bytes; expected 2 elements of 4 bytes"),
            std::string::npos);
  EXPECT_EQ(ElementsText(4, {0}, "\1\2\3\4"), "dense<> : tensor<0xf32>");
  EXPECT_EQ(ElementsText(0, {2, 0}, "\xff"), "dense<> : tensor<2x0xi1>");
  EXPECT_NE(ElementsText(4, {0}, "\1\2").find("expected 0 elements of 4 bytes"), std::string::npos);
  EXPECT_NE(ElementsText(4, {INT64_MIN}, "\1\2\3\4").find("whose sizes are numbers"),
            std::string::npos);
  // A short blob for many elements takes no memory.
  EXPECT_EQ(ElementsText(11, {int64_t{1} << 40}, "\7"), "dense<7> : tensor<1099511627776xi8>");
}

// An operation that has no operands and results, as far as the reader knows.
std::string OperationText(BytecodeBuilder& b, Op op) {
  const uint64_t ends = b.Operation("vhlo", "return_v1");
  const std::string ir = b.Module(0, {}, {}, {b.Encode(op), b.Encode({.name = ends})});
  auto module = ReadBytecode(b.Finish(ir));
  if (!module.ok()) return std::string(module.status().message());
  const mlir::Operation* function = (*module)->body()->operations[0];
  const mlir::Operation* read = function->regions[0]->blocks[0]->operations[0];
  std::string text(read->name);
  for (const mlir::NamedAttribute& a : read->attributes) {
    text += Cat(" ", a.name, "=", mlir::ToText(*a.value));
  }
  return text;
}

struct Values {
  explicit Values(BytecodeBuilder& builder)
      : b(builder), i64(b.VhloType(VarInt(14))), pred(b.VhloType(VarInt(0))) {}
  uint64_t Bool(bool value) { return b.Vhlo(VarInt(2) + VarInt(value ? 1 : 0)); }
  uint64_t Int(int64_t value) { return b.Vhlo(VarInt(9) + VarInt(i64) + SignedVarInt(value)); }
  uint64_t Ints(const std::vector<int64_t>& values) {
    std::string bytes;
    for (int64_t value : values) {
      bytes.append(reinterpret_cast<const char*>(&value), sizeof(value));
    }
    const int64_t size = static_cast<int64_t>(values.size());
    const uint64_t type = b.VhloType(VarInt(20) + SignedVarInts({size}) + VarInt(i64));
    return b.Vhlo(VarInt(15) + VarInt(type) + Blob(bytes));
  }

  BytecodeBuilder& b;
  uint64_t i64;
  uint64_t pred;
};

TEST(StablehloBytecode, OldOperationsAreThoseOfToday) {
  for (uint64_t format : {3, 6}) {
    BytecodeBuilder b(format);
    Values v(b);
    Op gather{.name = b.Operation("vhlo", "gather_v1")};
    gather.properties = {{"collapsed_slice_dims", v.Ints({0})}, {"index_vector_dim", v.Int(1)},
                         {"indices_are_sorted", v.Bool(false)}, {"offset_dims", v.Ints({1, 2})},
                         {"slice_sizes", v.Ints({1, 4, 4})},    {"start_index_map", v.Ints({0})}};
    EXPECT_EQ(OperationText(b, gather),
              "stablehlo.gather dimension_numbers=#stablehlo.gather<offset_dims = [1, 2], "
              "collapsed_slice_dims = [0], operand_batching_dims = [], "
              "start_indices_batching_dims = [], start_index_map = [0], index_vector_dim = 1> "
              "slice_sizes=array<i64: 1, 4, 4>")
        << format;
  }
  BytecodeBuilder b;
  Values v(b);
  Op permute{.name = b.Operation("vhlo", "collective_permute_v1")};
  permute.properties = {{"channel_id", v.Int(3)}, {"source_target_pairs", v.Ints({0, 1})}};
  EXPECT_EQ(OperationText(b, permute),
            "stablehlo.collective_permute channel_handle=#stablehlo.channel_handle<handle = 3, "
            "type = 0> source_target_pairs=dense<[0, 1]> : tensor<2xi64>");
}

TEST(StablehloBytecode, DefaultsAreLeftOut) {
  BytecodeBuilder b;
  Values v(b);
  const uint64_t none = b.Vhlo(VarInt(1) + VarInt(0)), text = b.VhloString("");
  const uint64_t no = v.Bool(false);
  auto call = [&](uint64_t api, uint64_t layouts) {
    BytecodeBuilder copy = b;
    Op op{.name = copy.Operation("vhlo", "custom_call_v1")};
    op.properties = {{"api_version", api},
                     {"backend_config", text},
                     {"call_target_name", copy.VhloString("f")},
                     {"called_computations", none},
                     {"has_side_effect", no},
                     {"operand_layouts", layouts},
                     {"output_operand_aliases", none},
                     {"result_layouts", none}};
    return OperationText(copy, op);
  };
  const uint64_t original = b.Vhlo(VarInt(5) + VarInt(1)), typed = b.Vhlo(VarInt(5) + VarInt(4));
  const uint64_t some = b.Vhlo(VarInt(1) + VarInts({no}));
  EXPECT_EQ(call(original, none), "stablehlo.custom_call call_target_name=\"f\"");
  EXPECT_EQ(call(typed, some),
            "stablehlo.custom_call api_version=4 : i32 call_target_name=\"f\" "
            "operand_layouts=[false] result_layouts=[]");
}

// In properties there are no names, so that the order is what tells them apart.
TEST(StablehloBytecode, PropertiesAreInOrder) {
  int found = 0;
  for (std::string_view name : {"all_gather_v1",
                                "all_to_all_v2",
                                "batch_norm_grad_v1",
                                "collective_reduce_v1",
                                "convolution_v1",
                                "custom_call_v2",
                                "dot_general_v2",
                                "dynamic_broadcast_in_dim_v1",
                                "dynamic_conv_v1",
                                "dynamic_conv_v2",
                                "dynamic_gather_v2",
                                "func_v1",
                                "gather_v2",
                                "pad_v1",
                                "recv_v2",
                                "reduce_scatter_v1",
                                "reduce_window_v1",
                                "scatter_v2",
                                "select_and_scatter_v1",
                                "slice_v1",
                                "sort_v1",
                                "triangular_solve_v1"}) {
    const VhloOperation* operation = FindVhloOperation(name);
    ASSERT_TRUE(operation) << name;
    std::string_view last;
    for (const VhloAttribute& attribute : operation->attributes) {
      if (attribute.added) continue;
      EXPECT_LT(last, attribute.name) << name;
      last = attribute.name;
      ++found;
    }
  }
  EXPECT_GT(found, 120);
  EXPECT_FALSE(FindVhloOperation("add"));
  EXPECT_FALSE(FindVhloOperation("add_v2"));
  EXPECT_TRUE(FindVhloOperation("cross-replica-sum_v1"));
}

TEST(StablehloBytecode, ModulesAndOtherDialects) {
  BytecodeBuilder b;
  const uint64_t i32 = b.Type("builtin", VarInt(0) + VarInt(32 << 2));
  Op inner{.name = b.Operation("check", "expect_eq")};
  inner.others = {{"a", b.Builtin(VarInt(7))}};
  Op unknown{.name = b.Operation("my", "op", false)};
  unknown.properties = {{"", b.Dictionary({{"k", b.Builtin(VarInt(7))}})}};
  Op module{.name = b.Operation("builtin", "module"), .isolated = true};
  module.regions = {b.Region(0, {}, {b.Encode(inner), b.Encode(unknown)})};
  module.others = {{"mhlo.num_partitions", b.Builtin(VarInt(8) + VarInt(i32) + SignedVarInt(1))}};
  // A name, with a flag that it is there, and no visibility.
  const uint64_t name = b.BuiltinString("m");
  module.properties = {{"sym_name", name << 1 | 1}, {"sym_visibility", 0}};
  EXPECT_EQ(ReadBytes(b.Finish(b.Block({}, {b.Encode(module)}))), R"("builtin.module"() ({
  "check.expect_eq"() {a} : () -> ()
  "my.op"() {k} : () -> ()
}) {mhlo.num_partitions = 1 : i32, sym_name = "m"} : () -> ()
)");
}

TEST(StablehloBytecode, Locations) {
  BytecodeBuilder b;
  const uint64_t file =
      b.Builtin(VarInt(11) + VarInt(b.BuiltinString("a.py")) + VarInt(7) + VarInt(3));
  const uint64_t range =
      b.Builtin(VarInt(22) + VarInt(b.BuiltinString("b.py")) + VarInts({9, 2, 9, 5}));
  const uint64_t call = b.Builtin(VarInt(10) + VarInt(file) + VarInt(range));
  const uint64_t named =
      b.Builtin(VarInt(14) + VarInt(b.BuiltinString("jit(f)/add")) + VarInt(call));
  const uint64_t fused = b.Builtin(VarInt(12) + VarInts({b.Unknown(), range, file}));
  const uint64_t with_more =
      b.Builtin(VarInt(13) + VarInts({named, range}) + VarInt(b.BuiltinString("more")));
  const uint64_t name = b.Operation("my", "op");
  std::vector<std::string> operations;
  for (uint64_t location : {file, range, call, named, fused, with_more, b.Unknown()}) {
    operations.push_back(b.Encode({.name = name, .location = location}));
  }
  EXPECT_EQ(ReadBytes(b.Finish(b.Block({}, operations)), true), R"("builtin.module"() ({
  "my.op"() : () -> () loc("a.py":7:3)
  "my.op"() : () -> () loc("b.py":9:2)
  "my.op"() : () -> () loc("a.py":7:3)
  "my.op"() : () -> () loc("jit(f)/add"("a.py":7:3))
  "my.op"() : () -> () loc("b.py":9:2)
  "my.op"() : () -> () loc("jit(f)/add"("a.py":7:3))
  "my.op"() : () -> ()
}) : () -> ()
)");
}

TEST(StablehloBytecode, NamesOfArguments) {
  for (uint64_t format : {3, 6}) {
    BytecodeBuilder b(format);
    const uint64_t f32 = b.VhloType(VarInt(4));
    const uint64_t named =
        b.Builtin(VarInt(14) + VarInt(b.BuiltinString("p['layer00']['b1']")) + VarInt(b.Unknown()));
    const uint64_t fused = b.Builtin(VarInt(12) + VarInts({b.Unknown(), named}));
    const uint64_t ends = b.Operation("vhlo", "return_v1");
    const std::string bytes = b.Finish(b.Module(3, {f32, f32, f32}, {}, {b.Encode({.name = ends})},
                                                {}, {named, b.Unknown(), fused}));
    auto module = ReadBytecode(bytes);
    ASSERT_TRUE(module.ok()) << module.status().ToString();
    const mlir::Operation* function = (*module)->body()->operations[0];
    const std::vector<mlir::Value*>& arguments = function->regions[0]->blocks[0]->arguments;
    ASSERT_EQ(arguments.size(), 3u);
    ASSERT_NE(arguments[0]->source, nullptr);
    EXPECT_EQ(arguments[0]->source->name, "p['layer00']['b1']");
    EXPECT_EQ(arguments[1]->source, nullptr);
    ASSERT_NE(arguments[2]->source, nullptr);
    EXPECT_EQ(arguments[2]->source->name, "p['layer00']['b1']");
  }
}

// Locations may go in circles, which tell what they tell on the way.
TEST(StablehloBytecode, LocationsInCircles) {
  BytecodeBuilder b;
  const uint64_t text = b.BuiltinString("round");
  const uint64_t first = b.Builtin(VarInt(14) + VarInt(text) + VarInt(text + 2));
  const uint64_t many = b.Builtin(VarInt(12) + VarInts({first, first, first, text + 2, text + 2}));
  ASSERT_EQ(many, text + 2);
  const uint64_t name = b.Operation("my", "op");
  EXPECT_NE(ReadBytes(b.Finish(b.Block({}, {b.Encode({.name = name, .location = many})})), true)
                .find("loc(\"round\")"),
            std::string::npos);
}

}  // namespace
}  // namespace kiln::stablehlo
