#include <bit>
#include <chrono>
#include <cmath>

#include <gtest/gtest.h>

#include "ir/verifier.h"
#include "support/hlo.h"
#include "support/labels.h"

namespace kiln::ir {
namespace {

// In the form in which XLA prints it, and Kiln has to.
constexpr std::string_view kEverything =
    R"(HloModule everything, is_scheduled=true, input_output_alias={ {1}: (0, {}, may-alias) }, entry_computation_layout={(f32[2,3]{1,0}, s32[], pred[])->(f32[2]{0}, f32[2,3]{1,0}, s32[], f32[2,3]{1,0}, f32[2,3]{1,0}, /*index=5*/f64[3,3]{1,0})}

%add (x: f32[], y: f32[]) -> f32[] {
  %x = f32[] parameter(0)
  %y = f32[] parameter(1)
  ROOT %add.1 = f32[] add(%x, %y)
}

%condition (s: (s32[], f32[2,3])) -> pred[] {
  %s = (s32[], f32[2,3]{1,0}) parameter(0)
  %i = s32[] get-tuple-element(%s), index=0
  %ten = s32[] constant(10)
  ROOT %less = pred[] compare(%i, %ten), direction=LT
}

%body (s.1: (s32[], f32[2,3])) -> (s32[], f32[2,3]) {
  %s.1 = (s32[], f32[2,3]{1,0}) parameter(0)
  %i.1 = s32[] get-tuple-element(%s.1), index=0
  %v = f32[2,3]{1,0} get-tuple-element(%s.1), index=1
  ROOT %t = (s32[], f32[2,3]{1,0}) tuple(%i.1, %v)
}

%fused (q: f32[2,3]) -> f32[2,3] {
  %q = f32[2,3]{1,0} parameter(0)
  ROOT %e = f32[2,3]{1,0} exponential(%q), metadata={op_name="jit(f)/exp \"x\"\n\303\251"}
}

%then (a: f32[2,3]) -> f32[2,3] {
  ROOT %a = f32[2,3]{1,0} parameter(0)
}

%else (b: f32[2,3]) -> f32[2,3] {
  %b = f32[2,3]{1,0} parameter(0)
  ROOT %n = f32[2,3]{1,0} negate(%b)
}

ENTRY %main (p: f32[2,3], k: s32[], c: pred[]) -> (f32[2], f32[2,3], s32[], f32[2,3], f32[2,3], /*index=5*/f64[3,3]) {
  %p = f32[2,3]{1,0} parameter(0)
  %k = s32[] parameter(1)
  %c = pred[] parameter(2)
  %zero = f32[] constant(0)
  %r = f32[2]{0} reduce(%p, %zero), dimensions={1}, to_apply=%add
  %init = (s32[], f32[2,3]{1,0}) tuple(%k, %p)
  %w = (s32[], f32[2,3]{1,0}) while(%init), condition=%condition, body=%body
  %n.1 = s32[] get-tuple-element(%w), index=0
  %f = f32[2,3]{1,0} fusion(%p), kind=kLoop, calls=%fused
  %cond = f32[2,3]{1,0} conditional(%c, %p, %f), true_computation=%then, false_computation=%else
  %switch = f32[2,3]{1,0} conditional(%k, %p, %f), branch_computations={%then, %else}
  %m = f32[2,3]{1,0} call(%switch), to_apply=%else
  %bc = f32[2,3]{1,0} broadcast(%r), dimensions={0}
  %iota = s32[4,5]{1,0} iota(), iota_dimension=1
  %sl = s32[2,5]{1,0} slice(%iota), slice={[0:4:2], [0:5:1]}
  %sl.1 = s32[1,5]{1,0} slice(%iota), slice={[1:2], [0:5]}
  %cat = s32[3,5]{1,0} concatenate(%sl, %sl.1), dimensions={0}
  %pd = s32[6,5]{1,0} pad(%cat, %k), padding=1_2x0_0
  %pd.1 = s32[5,5]{1,0} pad(%cat, %k), padding=0_0_1x0_0_0
  %tr = f32[3,2]{1,0} transpose(%p), dimensions={1,0}
  %cp = f32[3,2]{0,1} copy(%tr)
  %dot = f64[3,3]{1,0} dot(%cp, %p), lhs_contracting_dims={1}, rhs_contracting_dims={0}
  %rs = f32[3,1,2]{2,1,0} reshape(%tr)
  %dot.1 = f32[3,1,1]{2,1,0} dot(%rs, %rs), lhs_batch_dims={0}, lhs_contracting_dims={2}, rhs_batch_dims={0}, rhs_contracting_dims={2}
  %cl = f32[2,3]{1,0} clamp(%zero, %m, %p)
  ROOT %out = (f32[2]{0}, f32[2,3]{1,0}, s32[], f32[2,3]{1,0}, f32[2,3]{1,0}, /*index=5*/f64[3,3]{1,0}) tuple(%r, %bc, %n.1, %cond, %cl, /*index=5*/%dot)
}

)";

std::string InEntry(std::string_view body) {
  return Cat("HloModule m\n\nENTRY %e {\n", body, "\n}\n");
}

// What the root of an entry of this one instruction becomes.
std::string Reprinted(std::string_view instruction) {
  return ToHloText(*ParseOrDie(InEntry(instruction))->entry()->root());
}

TEST(HloText, PrintsWhatXlaPrints) {
  auto module = ParseOrDie(kEverything);
  EXPECT_EQ(ToHloText(*module), kEverything);
  EXPECT_TRUE(Verify(*module).ok());
  EXPECT_TRUE(module->is_scheduled());
  ASSERT_EQ(module->aliases().size(), 1u);
  EXPECT_EQ(FindInstruction(*module, "e")->op_name(), "jit(f)/exp \"x\"\n\xc3\xa9");
  EXPECT_EQ(FindInstruction(*module, "cp")->shape().minor_to_major(), (std::vector<int64_t>{0, 1}));
  EXPECT_EQ(ToHloText(*module->Clone()), kEverything);
}

TEST(HloText, OpsThatHloLacksKeepTheirAttributes) {
  const std::string text = ToHloText(*ParseOrDie(R"(HloModule m
ENTRY e {
  x = f32[1,9,9,3] parameter(0)
  ROOT p = f32[1,3,3,3,1,3,3,1] custom-call(x), custom_call_target="kiln.patches", window={size=1x3x3x1 stride=1x3x3x1}
})"));
  EXPECT_NE(text.find("window={size=1x3x3x1 stride=1x3x3x1"), std::string::npos) << text;
  EXPECT_EQ(ToHloText(*ParseOrDie(text)), text);
}

TEST(HloText, OperandShapesAndElision) {
  auto module =
      ParseOrDie(InEntry("%c = f32[3]{0} constant({1, 2, 3})\nROOT %n = f32[3]{0} negate(%c)"));
  PrintOptions options{.max_literal_elements = 2, .operand_shapes = true};
  std::string text = ToHloText(*module, options);
  EXPECT_NE(text.find("%c = f32[3]{0} constant({...})\n"), std::string::npos) << text;
  EXPECT_NE(text.find("negate(f32[3]{0} %c)\n"), std::string::npos) << text;
  EXPECT_EQ(FindInstruction(*ParseOrDie(text), "c")->literal().shape().num_elements(), 3);
}

TEST(HloText, ShortFormsMeanTheSame) {
  // No '%', no signature, no ROOT, no header attributes, callee after caller, comments.
  auto module = ParseOrDie(R"(/* head */ HloModule short:
ENTRY main { // entry
  p = f32[2,3] parameter(0)
  zero = f32[] constant(0) /* zero
  of the sum */
  result = f32[2] reduce(f32[2,3]{1,0} p, f32[] zero), to_apply=sum, dimensions={1}
}
sum {
  p = f32[] parameter(0)
  ROOT add = f32[] add(p, f32[] parameter(1))
  unused = f32[] negate(p)
}, execution_thread="main"
)");
  EXPECT_EQ(ToHloText(*module),
            R"(HloModule short, entry_computation_layout={(f32[2,3]{1,0})->f32[2]{0}}

%sum (p.1: f32[], parameter: f32[]) -> f32[] {
  %p.1 = f32[] parameter(0)
  %parameter = f32[] parameter(1)
  ROOT %add = f32[] add(%p.1, %parameter)
  %unused = f32[] negate(%p.1)
}

ENTRY %main (p: f32[2,3]) -> f32[2] {
  %p = f32[2,3]{1,0} parameter(0)
  %zero = f32[] constant(0)
  ROOT %result = f32[2]{0} reduce(%p, %zero), dimensions={1}, to_apply=%sum
}

)");
}

TEST(HloText, WithoutEntryTheLastComputationIsIt) {
  auto module = ParseOrDie("a { x = f32[] constant(1) }\nb { y = s32[] constant(2) }");
  EXPECT_EQ(module->entry()->name(), "b");
}

TEST(HloText, NestedOperandsAndComputations) {
  auto module = ParseOrDie(InEntry(R"(
    x = f32[2] parameter(0)
    y = f32[2] fusion(add(f32[2] multiply(x, x), x)), kind=kLoop, calls={
      q = f32[2] parameter(0)
      ROOT r = f32[2] negate(q)
    }
    ROOT z = f32[2] conditional(s32[] constant(0), y, y), branch_computations={{
      a = f32[2] parameter(0)
    }, {
      b = f32[2] parameter(0)
    }})"));
  EXPECT_EQ(module->entry()->instruction_count(), 6);
  EXPECT_EQ(module->computations().size(), 4u);
  EXPECT_EQ(ToHloText(*ParseOrDie(ToHloText(*module))), ToHloText(*module));
}

TEST(HloText, MissingShapesAreInferred) {
  auto module = ParseOrDie(InEntry("a = f32[2] parameter(0)\nb = negate(a)\nc = tuple(a, b)"));
  EXPECT_EQ(module->entry()->root()->shape().ToString(), "(f32[2], f32[2])");
  EXPECT_NE(
      ParseError(InEntry("a = f32[] parameter(0)\nb = broadcast(a), dimensions={}"))
          .find("line 5, column 5: broadcast: operand has shape f32[]; the result's shape is"),
      std::string::npos);
}

TEST(HloText, SkipsWhatItDoesNotKnow) {
  auto module = ParseOrDie(
      R"(HloModule jit_f, entry_computation_layout={(f32[2]{0:T(256)})->f32[2]{0}}, allow_spmd_sharding_propagation_to_output={true,true}, num_partitions=1, frontend_attributes={xla.sdy.meshes={empty_mesh = #sdy.mesh<[]>}}

FileNames
1 "<embedded module \'_launcher\'>"
2 "b.py"

FunctionNames
1 "f"

FileLocations
1 {file_name_id=1 function_name_id=1 line=6 end_line=6 column=11 end_column=20}

StackFrames
1 {file_location_id=1 parent_frame_id=1}

ENTRY %e (x: f32[2]) -> f32[2] {
  %x = f32[2]{0:T(8,128)(2,1)E(4)S(1)} parameter(0), parameter_replication={true}, sharding={devices=[2,2]<=[4] last_tile_dim_replicate}
  ROOT %y = f32[2]{0} negate(%x), frontend_attributes={a="}",b="\""}, backend_config={"a":[1,{"b":"]"}]}, replica_groups=[2,4]<=[8]T(1,0), foo=bar, control-predecessors={%x}, metadata={op_type="Neg", op_name="n" source_line=3 deduplicated_name="x"}
}
)");
  EXPECT_EQ(module->entry()->root()->op_name(), "n");
  EXPECT_TRUE(module->entry()->root()->shape().is_row_major());
}

TEST(HloText, Literals) {
  for (std::string_view text :
       {"ROOT %c = f32[] constant(1e-05)",
        "ROOT %c = f32[] constant(0.1)",
        "ROOT %c = f32[5]{0} constant({nan, -nan, inf, -inf, -0})",
        "ROOT %c = f32[2]{0} constant({nan(0x400001), -nan(0x7fffff)})",
        "ROOT %c = f64[2]{0} constant({nan(0x1), 1.7976931348623157e+308})",
        "ROOT %c = f32[2]{0} constant({1e-45, 3.4028235e+38})",
        "ROOT %c = pred[] constant(true)",
        "ROOT %c = pred[2,3]{1,0} constant({ { 0, 1, 0 }, { 1, 0, 1 } })",
        "ROOT %c = s64[2]{0} constant({-9223372036854775808, 9223372036854775807})",
        "ROOT %c = u8[2]{0} constant({0, 255})",
        "ROOT %c = s8[2]{0} constant({-128, 127})",
        "ROOT %c = s16[2]{0} constant({-32768, 32767})",
        "ROOT %c = u16[2]{0} constant({0, 65535})",
        "ROOT %c = u32[2]{0} constant({0, 4294967295})",
        "ROOT %c = u64[2]{0} constant({0, 18446744073709551615})",
        "ROOT %c = f16[6]{0} constant({nan, -nan(0x1), inf, -0, 6e-08, 65504})",
        "ROOT %c = bf16[6]{0} constant({nan(0x7f), -nan, -inf, 0.1, 9e-41, 3.39e+38})",
        "ROOT %c = f32[0]{0} constant({})",
        "ROOT %c = f32[2,0]{1,0} constant({ {}, {} })",
        "ROOT %c = s32[2,1]{1,0} constant({ {1}, {2} })",
        "ROOT %c = s32[1,2,2]{2,1,0} constant({ { { 1, 2 }, { 3, 4 } } })",
        "ROOT %c = f32[1000000000000,0]{1,0} constant({})",
        "ROOT %c = (f32[2,1]{1,0}, s32[], ()) constant(({ {1}, {2} }, 42, ()))"}) {
    EXPECT_EQ(Reprinted(text), text.substr(5));
  }
  EXPECT_EQ(Reprinted("ROOT %c = f32[3] constant({/*i0=0*/ 0x1.8p1, +1, 1e-60})"),
            "%c = f32[3]{0} constant({3, 1, 0})");
  EXPECT_EQ(Reprinted("ROOT %c = f16[5] constant({0x1.8p1, 0x1.002p0, 0x1.006p0, 1e-60, 65519})"),
            "%c = f16[5]{0} constant({3, 1, 1.002, 0, 65504})");
  EXPECT_EQ(Reprinted("ROOT %c = bf16[3] constant({0x1.01p0, 0x1.03p0, 3.3895e38})"),
            "%c = bf16[3]{0} constant({1, 1.016, 3.39e+38})");
  EXPECT_EQ(Reprinted("ROOT %c = pred[2] constant({true, false})"),
            "%c = pred[2]{0} constant({1, 0})");
  auto module = ParseOrDie(InEntry("ROOT %c = f32[2] constant({nan(0x400001), -nan(0x7fffff)})"));
  auto values = module->entry()->root()->literal().values<float>();
  EXPECT_EQ(std::bit_cast<uint32_t>(values[0]), 0x7fc00001u);
  EXPECT_EQ(std::bit_cast<uint32_t>(values[1]), 0xffffffffu);
}

TEST(HloText, SymbolsAndBounds) {
  for (std::string_view text : {"ROOT %p = f32[N,<=784]{1,0} parameter(0)",
                                "ROOT %p = (f32[N]{0}, s32[<=3,M]{0,1}) parameter(0)"}) {
    EXPECT_EQ(Reprinted(text), text.substr(5));
  }
  auto module = ParseOrDie(InEntry(R"(
    x = f32[N,784] parameter(0)
    w = f32[784,10] parameter(1)
    h = f32[N,10] dot(x, w), lhs_contracting_dims={1}, rhs_contracting_dims={0}
    s = f32[N,5] slice(h), slice={[0:-1], [0:10:2]}
    ROOT r = f32[5,N] transpose(s), dimensions={1,0})"));
  EXPECT_EQ(ToHloText(*ParseOrDie(ToHloText(*module))), ToHloText(*module));
}

TEST(HloText, EntryLayoutsBecomeThoseOfParametersAndRoot) {
  auto module = ParseOrDie(
      R"(HloModule m, entry_computation_layout={(f32[2,3]{0,1})->(f32[2,3]{1,0}, f32[3]{0})}
ENTRY e {
  p = f32[2,3] parameter(0)
  q = f32[3] constant({1,2,3})
  t = (f32[2,3]{0,1}, f32[3]) tuple(p, q)
})");
  EXPECT_FALSE(module->entry()->parameter(0)->shape().is_row_major());
  const Instruction* root = module->entry()->root();
  EXPECT_EQ(root->operand(0)->opcode(), Opcode::kCopy);
  EXPECT_EQ(root->operand(1)->opcode(), Opcode::kConstant);
  EXPECT_EQ(ToHloText(*ParseOrDie(ToHloText(*module))), ToHloText(*module));
  EXPECT_NE(
      ParseError(
          "HloModule m, entry_computation_layout={()->f32[2]}\nENTRY e { c = f32[] constant(1) }")
          .find("line 1, column 39: found '{'; expected the shapes of the entry computation"),
      std::string::npos);
}

TEST(HloText, ErrorsSayWhereAndWhat) {
  struct Case {
    std::string_view body, error;
  };
  for (const Case& c : std::initializer_list<Case>{
           {"x = f32[2 parameter(0)", "line 4, column 11: found 'parameter'; expected ']'"},
           {"x = f32[2] fictitious-op(y)",
            "UNIMPLEMENTED: line 4, column 12: op 'fictitious-op' is not implemented"},
           {"x = s1[2] parameter(0)",
            "UNIMPLEMENTED: line 4, column 5: type 's1' is not implemented"},
           {"x = opaque[] parameter(0)", "UNIMPLEMENTED: line 4, column 5: type 'opaque' is not"},
           {"x = f32[?] parameter(0)",
            "UNIMPLEMENTED: line 4, column 9: a dimension without a bound"},
           {"x = foo[2] parameter(0)", "line 4, column 5: found 'foo'; expected a shape"},
           {"x = f32[-1] parameter(0)", "line 4, column 9: found '-1'; expected a size"},
           {"x = f32[9223372036854775808] parameter(0)", "an integer of 64 bits"},
           {"x = f32[4611686018427387904] parameter(0)", "more bytes than an int64"},
           {"x = f32[2,3]{0,0} parameter(0)", "expected a permutation of the 2 dimensions"},
           {"x = f32[longer_than_15ch] parameter(0)", "not an identifier"},
           {"x = f32[2] negate(y)", "found 'y'; expected the name of an instruction above"},
           {"x = f32[2] negate(x)", "found 'x'; expected the name of an instruction above"},
           {"x = f32[] constant(1)\nx = f32[] constant(2)",
            "line 5, column 1: found 'x'; expected a name"},
           {"ROOT x = f32[] constant(1)\nROOT y = f32[] constant(2)",
            "line 5, column 1: found 'ROOT'"},
           {"x = f32[] constant(1,2)", "found ','; expected ')'"},
           {"x = f32[2] constant({1})", "found '}'; expected ','"},
           {"x = f32[2] constant({1,2,3})", "expected '}' after 2 elements"},
           {"x = f32[2,2] constant({1,2})", "found '1'; expected '{'"},
           {"x = f32[1000000000] constant({1})", "expected 1000000000 elements"},
           {"x = f32[] constant(1e39)", "a number that f32 holds"},
           {"x = f32[] constant(1,5)", "found ','"},
           {"x = f64[] constant(1.8e308)", "a number that f64 holds"},
           {"x = f32[] constant(--1)", "a number that f32 holds"},
           {"x = s32[] constant(2147483648)", "a number that s32 holds"},
           {"x = s32[] constant(1.5)", "a number that s32 holds"},
           {"x = u8[] constant(-1)", "a number that u8 holds"},
           {"x = u8[] constant(256)", "a number that u8 holds"},
           {"x = s8[] constant(-129)", "a number that s8 holds"},
           {"x = u64[] constant(18446744073709551616)", "a number that u64 holds"},
           {"x = f16[] constant(65520)", "a number that f16 holds"},
           {"x = bf16[] constant(3.4e38)", "a number that bf16 holds"},
           {"x = pred[] constant(0.5)", "a number that pred holds"},
           {"x = f32[] parameter(1)", "parameter 0 in the computation above"},
           {"x = f32[] parameter(99999999)", "a parameter's number"},
           {"x = f32[] parameter(0)\ny = f32[] parameter(0)", "one parameter of number 0"},
           {"x = f32[] parameter(0)\ny = f32[2] negate(x)",
            "line 5, column 12: instruction 'y' has shape f32[2]; inference says f32[]"},
           {"x = f32[2] parameter(0)\ny = f32[2] add(x, f32[3] x)",
            "line 5, column 19: found 'f32'; expected the shape of x"},
           {"x = f32[] parameter(0)\ny = f32[] call(x), to_apply=z",
            "found 'z'; expected the name of a computation"},
           {"x = f32[] parameter(0)\ny = f32[] call(x)", "calls 0 computations; expected 1"},
           {"x = f32[] parameter(0)\ny = f32[] call(x), to_apply=%e",
            "leads back to its own computation"},
           {"x = f32[] parameter(0)\ny = pred[] compare(x, x), direction=ABOVE",
            "found 'ABOVE'; expected EQ"},
           {"x = s32[] parameter(0)\ny = pred[] compare(x, x), direction=LT, type=ORDER",
            "found 'ORDER'; expected SIGNED, UNSIGNED, FLOAT or TOTALORDER"},
           {"x = f32[] parameter(0)\ny = pred[] compare(x, x), direction=LT, direction=GT",
            "each attribute once"},
           {"x = f32[] parameter(0)\ny = f32[] while(x), body=%b",
            "a while with condition and body"},
           {"x = f32[] parameter(0)\ny = f32[] negate(x), metadata={op_name=\"a}",
            "a string that ends"},
           {"x = f32[] parameter(0)\ny = f32[] negate(x), foo={(", "whose brackets are closed"},
           {"x = f32[] constant(1) \x01", "found byte 0x01; expected the name"},
           {"/* x", "a comment that does not end"},
           {"", "an instruction in the computation above"},
       }) {
    std::string error = ParseError(InEntry(c.body));
    EXPECT_NE(error.find(c.error), std::string::npos) << c.body << "\n" << error;
    EXPECT_NE(error.find(": line "), std::string::npos) << error;
  }
  EXPECT_EQ(
      ParseError(""),
      "INVALID_ARGUMENT: line 1, column 1: found the end of the text; expected a computation");
  EXPECT_NE(ParseError("ENTRY a { x = f32[] constant(1) }\nENTRY b { y = f32[] constant(1) }")
                .find("line 2, column 1: found 'ENTRY'; expected a computation without ENTRY"),
            std::string::npos);
  // As in XLA, parameters are what their instructions say.
  EXPECT_EQ(ParseError("%e (p: f32[3]) -> f32[2] { p = f32[2] parameter(0) }"), "OK");
  EXPECT_NE(ParseError("%e (p: f32[2]) -> f32[3] { p = f32[2] parameter(0) }")
                .find("the shape of the root"),
            std::string::npos);
  EXPECT_NE(ParseError("HloModule m, num_partitions=0\nENTRY e { x = f32[] constant(1) }")
                .find("found '0'; expected at least 1"),
            std::string::npos);
}

// The same structure, `depth` times in itself.
std::string Nested(std::string_view open, std::string_view inner, std::string_view close,
                   int depth) {
  std::string text;
  for (int i = 0; i < depth; ++i) text += open;
  text += inner;
  for (int i = 0; i < depth; ++i) text += close;
  return text;
}

TEST(HloText, DepthIsBounded) {
  for (int depth : {50, 1000, 100000}) {
    bool fits = depth == 50;
    std::string operand = Nested("negate(", "x", ")", depth);
    EXPECT_EQ(
        ParseError(InEntry(Cat("x = f32[] constant(1)\ny = f32[] negate(", operand, ")"))) == "OK",
        fits);
    std::string shape = Nested("(", "f32[]", ")", depth);
    EXPECT_EQ(ParseError(InEntry(Cat("x = ", shape, " parameter(0)"))) == "OK", fits);
    std::string call =
        Nested("a = f32[] call(), to_apply={ ", "x = f32[] constant(1)", " }", depth);
    EXPECT_EQ(ParseError(InEntry(call)) == "OK", fits);
    std::string chain = "c0 { x = f32[] constant(1) }\n";
    for (int i = 1; i <= depth; ++i)
      chain += Cat("c", i, " { y = f32[] call(), to_apply=c", i - 1, " }\n");
    EXPECT_EQ(ParseError(chain) == "OK", fits);
    std::string braces = Nested("{", "1", "}", depth);
    EXPECT_NE(ParseError(InEntry(Cat("x = f32[1] constant(", braces, ")"))), "OK");
  }
}

TEST(HloText, ReadingTakesLinearTime) {
  std::string text =
      "HloModule big\n\nENTRY %e (p: f32[8]) -> f32[8] {\n  %p = f32[8]{0} parameter(0)\n";
  std::string_view last = "p";
  std::string name;
  for (int i = 0; i < 100000; ++i) {
    std::string next = Cat("add.", i);
    AppendTo(text,
             Cat("  %", next, " = f32[8]{0} add(%", last, ", %p), metadata={op_name=\"a/b\"}\n"));
    name = next;
    last = name;
  }
  text += "}\n";
  auto start = std::chrono::steady_clock::now();
  auto module = ParseOrDie(text);
  std::string printed = ToHloText(*module);
  std::chrono::duration<double> took = std::chrono::steady_clock::now() - start;
  EXPECT_EQ(module->instruction_count(), 100001);
  EXPECT_LT(took.count(), 20) << "seconds for reading and printing 100,000 ops";
  RecordProperty("milliseconds", static_cast<int>(took.count() * 1000));
}

KILN_LABEL(text, "HloText");

}  // namespace
}  // namespace kiln::ir
