// The ops that are functions outside generated code: their shapes and their HLO text.
#include <gtest/gtest.h>

#include "ir/verifier.h"
#include "support/hlo.h"
#include "support/labels.h"

namespace kiln::ir {
namespace {

const ElementType F32 = ElementType::kF32, F64 = ElementType::kF64, C64 = ElementType::kC64,
                  C128 = ElementType::kC128, S32 = ElementType::kS32, BF16 = ElementType::kBF16;

std::string ShapeOf(Opcode opcode, std::vector<Shape> operands, Attributes attributes,
                    std::optional<Shape> declared = std::nullopt) {
  std::vector<const Shape*> pointers;
  for (const Shape& s : operands) pointers.push_back(&s);
  Result<Shape> shape =
      InferShape({opcode, pointers, attributes, declared ? &*declared : nullptr, {}});
  if (shape.ok()) return shape->ToString();
  EXPECT_EQ(shape.status().code(), Code::kInvalidArgument);
  return std::string(shape.status().message());
}

std::string Fft(std::string type, Shape operand, Ints length) {
  return ShapeOf(Opcode::kFft, {std::move(operand)},
                 {{Attr::kFftType, std::move(type)}, {Attr::kFftLength, std::move(length)}});
}

TEST(CallOps, FftShapes) {
  EXPECT_EQ(Fft("FFT", Shape(C64, {5, 8}), {8}), "c64[5,8]");
  EXPECT_EQ(Fft("IFFT", Shape(C128, {5, 8}), {5, 8}), "c128[5,8]");
  EXPECT_EQ(Fft("RFFT", Shape(F32, {5, 8}), {8}), "c64[5,5]");
  EXPECT_EQ(Fft("RFFT", Shape(F64, {2, 5, 9}), {2, 5, 9}), "c128[2,5,5]");
  EXPECT_EQ(Fft("RFFT", Shape(F32, {3, 0}), {0}), "c64[3,0]");
  EXPECT_EQ(Fft("IRFFT", Shape(C64, {5, 5}), {8}), "f32[5,8]");
  EXPECT_EQ(Fft("IRFFT", Shape(C128, {5, 5}), {5, 9}), "f64[5,9]");
  EXPECT_EQ(Fft("IRFFT", Shape(C128, {5, 0}), {0}), "f64[5,0]");
  EXPECT_EQ(Fft("IRFFT", Shape(C128, {5, 1}), {0}), "f64[5,0]");
  Dimension n = *Dimension::Symbol("N");
  EXPECT_EQ(Fft("FFT", Shape(C64, std::vector<Dimension>{n, 8}), {8}), "c64[N,8]");

  EXPECT_EQ(Fft("DFT", Shape(C64, {8}), {8}),
            "fft: operand has shape c64[8]; fft_type is 'DFT'; expected FFT, IFFT, RFFT, IRFFT");
  EXPECT_EQ(Fft("FFT", Shape(F32, {8}), {8}),
            "fft: operand has shape f32[8]; FFT takes a complex type");
  EXPECT_EQ(Fft("IRFFT", Shape(F64, {8}), {14}),
            "fft: operand has shape f64[8]; IRFFT takes a complex type");
  EXPECT_EQ(Fft("RFFT", Shape(BF16, {8}), {8}),
            "fft: operand has shape bf16[8]; RFFT takes f32 or f64");
  EXPECT_EQ(Fft("RFFT", Shape(F32, {8}), {7}),
            "fft: operand has shape f32[8]; dimension 0 must be of size 7, as RFFT is of "
            "fft_length {7}");
  EXPECT_EQ(Fft("IRFFT", Shape(C64, {4, 8}), {4, 8}),
            "fft: operand has shape c64[4,8]; dimension 1 must be of size 5, as IRFFT is of "
            "fft_length {4,8}");
  EXPECT_EQ(Fft("FFT", Shape(C64, {8}), {}),
            "fft: operand has shape c64[8]; fft_length has 0 numbers; expected 1 to 3");
  EXPECT_EQ(Fft("FFT", Shape(C64, {1, 1, 1, 8}), {1, 1, 1, 8}),
            "fft: operand has shape c64[1,1,1,8]; fft_length has 4 numbers; expected 1 to 3");
  EXPECT_EQ(Fft("FFT", Shape(C64, {8}), {1, 8}),
            "fft: operand has shape c64[8]; fft_length has 2 numbers, more than there are "
            "dimensions");
  EXPECT_EQ(Fft("FFT", Shape(C64, {8}), {-8}),
            "fft: operand has shape c64[8]; fft_length has -8; expected 0 or more");
  EXPECT_EQ(Fft("FFT", Shape(S32, {8}), {8}),
            "fft: operand has shape s32[8]; the element type must be a float or a complex type");
}

TEST(CallOps, CholeskyShapes) {
  auto cholesky = [](Shape a) { return ShapeOf(Opcode::kCholesky, {std::move(a)}, {}); };
  EXPECT_EQ(cholesky(Shape(F32, {3, 3})), "f32[3,3]");
  EXPECT_EQ(cholesky(Shape(C128, {7, 2, 0, 0})), "c128[7,2,0,0]");
  EXPECT_EQ(cholesky(Shape(F32, {3})),
            "cholesky: operand has shape f32[3]; it must have two dimensions at least");
  EXPECT_EQ(cholesky(Shape(F32, {3, 4})),
            "cholesky: operand has shape f32[3,4]; the last two dimensions of it must be equal");
  EXPECT_EQ(cholesky(Shape(S32, {3, 3})),
            "cholesky: operand has shape s32[3,3]; the element type must be a float or a complex "
            "type");
}

TEST(CallOps, TriangularSolveShapes) {
  auto solve = [](Shape a, Shape b, bool left, std::string transpose = "ADJOINT") {
    return ShapeOf(Opcode::kTriangularSolve, {std::move(a), std::move(b)},
                   {{Attr::kLeftSide, left}, {Attr::kTransposeA, std::move(transpose)}});
  };
  EXPECT_EQ(solve(Shape(F32, {3, 3}), Shape(F32, {3, 5}), true), "f32[3,5]");
  EXPECT_EQ(solve(Shape(C64, {2, 3, 3}), Shape(C64, {2, 5, 3}), false), "c64[2,5,3]");
  EXPECT_EQ(solve(Shape(F32, {3, 3}), Shape(F32, {3, 5}), false),
            "triangular-solve: operands have shapes f32[3,3] and f32[3,5]; dimension 1 of b must "
            "be of the size of a, which stands on its right");
  EXPECT_EQ(solve(Shape(F32, {3, 3}), Shape(F32, {5, 3}), true),
            "triangular-solve: operands have shapes f32[3,3] and f32[5,3]; dimension 0 of b must "
            "be of the size of a, which stands on its left");
  EXPECT_NE(solve(Shape(F32, {3, 3}), Shape(F64, {3, 5}), true).find("must be equal"),
            std::string::npos);
  EXPECT_NE(solve(Shape(F32, {3, 3}), Shape(F32, {2, 3, 5}), true).find("number of dimensions"),
            std::string::npos);
  EXPECT_NE(solve(Shape(F32, {4, 3, 3}), Shape(F32, {2, 3, 5}), true).find("before the last two"),
            std::string::npos);
  EXPECT_NE(solve(Shape(F32, {2, 3}), Shape(F32, {3, 5}), true).find("two dimensions of a"),
            std::string::npos);
  EXPECT_NE(solve(Shape(F32, {3, 3}), Shape(F32, {3, 5}), true, "SIDEWAYS")
                .find("transpose_a is 'SIDEWAYS'; expected NO_TRANSPOSE, TRANSPOSE, ADJOINT"),
            std::string::npos);
}

std::string CustomCall(std::vector<OperandAlias> aliases, std::string target = "f") {
  Shape array(F32, {4}), pair = Shape::Tuple({Shape(S32, {2}), array});
  return ShapeOf(Opcode::kCustomCall, {array, pair},
                 {{Attr::kCustomCallTarget, QuotedText{std::move(target)}},
                  {Attr::kOutputToOperandAliasing, std::move(aliases)}},
                 pair);
}

TEST(CallOps, CustomCallShapes) {
  EXPECT_EQ(CustomCall({}), "(s32[2], f32[4])");
  EXPECT_EQ(CustomCall({{{1}, 0, {}}, {{0}, 1, {0}}}), "(s32[2], f32[4])");
  auto problem = [](std::vector<OperandAlias> aliases) {
    std::string text = CustomCall(std::move(aliases));
    return text.substr(text.find(';') + 2);
  };
  EXPECT_EQ(problem({{{0}, 0, {}}}),
            "output_to_operand_aliasing is of f32[4] and s32[2]; they must be equal arrays");
  EXPECT_EQ(problem({{{}, 1, {}}}),
            "output_to_operand_aliasing is of (s32[2], f32[4]) and (s32[2], f32[4]); they must be "
            "equal arrays");
  EXPECT_EQ(problem({{{2}, 0, {}}}),
            "output_to_operand_aliasing names the result at {2}, which is not there");
  EXPECT_EQ(problem({{{1}, 0, {0}}}),
            "output_to_operand_aliasing names operand 0 at {0}, which is not there");
  EXPECT_EQ(problem({{{1}, -1, {}}}),
            "output_to_operand_aliasing names operand -1 at {}, which is not there");
  EXPECT_EQ(problem({{{1}, 0, {}}, {{1}, 1, {1}}}),
            "output_to_operand_aliasing names one array twice");
  std::string empty = CustomCall({}, "");
  EXPECT_NE(empty.find("custom_call_target is empty"), std::string::npos) << empty;
}

// In the form in which XLA prints it, and Kiln has to.
constexpr std::string_view kCalls =
    R"(HloModule calls, entry_computation_layout={(c64[4,8]{1,0}, f32[3,3]{1,0}, f32[3,2]{1,0})->(f32[4,14]{1,0}, f32[3,2]{1,0}, (f32[3,3]{1,0}, s32[]), f32[3]{0}, token[])}

%negate (x: f32[]) -> f32[] {
  %x = f32[] parameter(0)
  ROOT %n = f32[] negate(%x)
}

%same (y: f32[]) -> f32[] {
  ROOT %y = f32[] parameter(0)
}

ENTRY %main (p: c64[4,8], a: f32[3,3], b: f32[3,2]) -> (f32[4,14], f32[3,2], (f32[3,3], s32[]), f32[3], token[]) {
  %p = c64[4,8]{1,0} parameter(0)
  %a = f32[3,3]{1,0} parameter(1)
  %b = f32[3,2]{1,0} parameter(2)
  %forward = c64[4,8]{1,0} fft(%p), fft_type=FFT, fft_length={4,8}
  %real = f32[4,14]{1,0} fft(%forward), fft_type=IRFFT, fft_length={14}
  %l = f32[3,3]{1,0} cholesky(%a), lower=true
  %solved = f32[3,2]{1,0} triangular-solve(%l, %b), left_side=true, lower=true, transpose_a=TRANSPOSE
  %both = (f32[3,3]{1,0}, s32[]) custom-call(%l, %b), custom_call_target="two \"things\"\n\303\251", called_computations={%negate, %same}, custom_call_has_side_effect=true, output_to_operand_aliasing={{0}: (0, {})}, backend_config="a\\b", api_version=API_VERSION_STATUS_RETURNING
  %three = f32[3]{0} custom-call(), custom_call_target="nothing"
  %t = token[] custom-call(%three), custom_call_target="token"
  ROOT %out = (f32[4,14]{1,0}, f32[3,2]{1,0}, (f32[3,3]{1,0}, s32[]), f32[3]{0}, token[]) tuple(%real, %solved, %both, %three, %t)
}

)";

TEST(CallOps, TextIsReadAndPrinted) {
  auto module = ParseOrDie(kCalls);
  ASSERT_TRUE(Verify(*module).ok()) << Verify(*module).ToString();
  EXPECT_EQ(ToHloText(*module), kCalls);
  const Instruction& both = *FindInstruction(*module, "both");
  EXPECT_EQ(both.attributes().Text(Attr::kCustomCallTarget), "two \"things\"\n\303\251");
  EXPECT_EQ(both.attributes().Text(Attr::kBackendConfig), "a\\b");
  EXPECT_TRUE(both.attributes().Bool(Attr::kCustomCallHasSideEffect));
  ASSERT_EQ(both.called().size(), 2u);
  EXPECT_EQ(both.called(1)->name(), "same");
  EXPECT_FALSE(FindInstruction(*module, "solved")->attributes().Bool(Attr::kUnitDiagonal));
  EXPECT_EQ(ToHloText(*module->Clone()), kCalls);
}

// What other printers leave out, write in another order, or know beside.
TEST(CallOps, OtherFormsOfText) {
  auto module = ParseOrDie(R"(
negate { p = f32[] parameter(0) ROOT n = f32[] negate(p) }
ENTRY main {
  a = f32[3,3] parameter(0)
  c = cholesky(a)
  s = triangular-solve(c, a), transpose_a=NO_TRANSPOSE, left_side=false, unit_diagonal=true
  x = f32[3,3]{0,1} custom-call(s), operand_layout_constraints={f32[3,3]{0,1}}, backend_config={"key": {"text": "}\""}, "list": [1, 2]}, to_apply=negate, custom_call_target="t", schedule=SCHEDULE_EARLIEST
  ROOT f = fft(c64[3] constant({(1,0), (2, 0), (3,1)})), fft_length={3}, fft_type=FFT
})");
  EXPECT_EQ(FindInstruction(*module, "c")->shape().ToString(), "f32[3,3]");
  const Instruction& s = *FindInstruction(*module, "s");
  EXPECT_FALSE(s.attributes().Has(Attr::kLeftSide));
  EXPECT_TRUE(s.attributes().Bool(Attr::kUnitDiagonal));
  const Instruction& x = *FindInstruction(*module, "x");
  EXPECT_EQ(x.attributes().Text(Attr::kBackendConfig),
            R"({"key": {"text": "}\""}, "list": [1, 2]})");
  ASSERT_EQ(x.called().size(), 1u);
  EXPECT_EQ(x.called(0)->name(), "negate");
}

TEST(CallOps, LayoutsOfCalls) {
  constexpr std::string_view kCall =
      "%t = (f32[3,2]{0,1}, f32[2,3]{0,1}) custom-call(%b, %a), custom_call_target=\"f\", "
      "output_to_operand_aliasing={{1}: (0, {})}, backend_config=\"{k = 1 : i64}\", "
      "api_version=API_VERSION_TYPED_FFI, "
      "operand_layout_constraints={f32[2,3]{0,1}, f32[2,3]{1,0}}";
  auto module = ParseOrDie(Cat("ENTRY main {\n  a = f32[2,3] parameter(0)\n  b = f32[2,3]{0,1} ",
                               "copy(a)\n  ROOT ", kCall, "\n}"));
  EXPECT_NE(ToHloText(*module).find(kCall), std::string::npos) << ToHloText(*module);

  auto call = [](std::string_view attributes) {
    return Cat("ENTRY main {\n  a = f32[2,3] parameter(0)\n  ROOT r = f32[2,3] custom-call(a), ",
               "custom_call_target=\"f\", ", attributes, "\n}\n");
  };
  // A layout that the operand does not have is copied to, for typed calls.
  module =
      ParseOrDie(call("operand_layout_constraints={f32[2,3]{0,1}}, "
                      "api_version=API_VERSION_TYPED_FFI"));
  EXPECT_EQ(FindInstruction(*module, "r")->operand(0)->opcode(), Opcode::kCopy);
  EXPECT_EQ(FindInstruction(*module, "r")->operand(0)->shape().ToString(), "f32[2,3]{0,1}");
  module = ParseOrDie(call("operand_layout_constraints={f32[2,3]{0,1}}"));
  EXPECT_EQ(FindInstruction(*module, "r")->operand(0)->name(), "a");

  EXPECT_EQ(ParseError(call("operand_layout_constraints={f32[3,2]{0,1}}")),
            "INVALID_ARGUMENT: line 3, column 89: found 'f32'; expected the shape of operand 0, "
            "f32[2,3]");
  const std::string error = ParseError(
      call("operand_layout_constraints={f32[2,3]{0,1}}, output_to_operand_aliasing={{}: (0, {})}, "
           "api_version=API_VERSION_TYPED_FFI"));
  EXPECT_NE(error.find("output_to_operand_aliasing is of f32[2,3]{0,1} and f32[2,3]{1,0}; their "
                       "layouts must be equal"),
            std::string::npos)
      << error;
}

TEST(CallOps, TextErrors) {
  auto error = [](std::string_view instruction) {
    return ParseError(
        Cat("ENTRY main {\n  a = f32[3,3] parameter(0)\n  ROOT r = ", instruction, "\n}\n"));
  };
  EXPECT_EQ(error("f32[3,3] custom-call(a)"),
            "INVALID_ARGUMENT: line 3, column 21: instruction 'r': custom-call: operand has shape "
            "f32[3,3]; attribute 'custom_call_target' is missing");
  EXPECT_EQ(error("f32[3,3] custom-call(a), custom_call_target=name"),
            "INVALID_ARGUMENT: line 3, column 56: found 'name'; expected a string");
  EXPECT_EQ(error("custom-call(a), custom_call_target=\"t\""),
            "INVALID_ARGUMENT: line 3, column 12: custom-call: operand has shape f32[3,3]; the "
            "result's shape is missing");
  EXPECT_EQ(error("f32[3,3] custom-call(a), custom_call_target=\"t\", "
                  "output_to_operand_aliasing={{}: (0 {})}"),
            "INVALID_ARGUMENT: line 3, column 96: found '{'; expected ','");
  EXPECT_EQ(error("f32[3,3] triangular-solve(a, a), left_side=true"),
            "INVALID_ARGUMENT: line 3, column 21: instruction 'r': triangular-solve: operands have "
            "shapes f32[3,3] and f32[3,3]; attribute 'transpose_a' is missing");
}

KILN_LABEL(text, "CallOps");

}  // namespace
}  // namespace kiln::ir
