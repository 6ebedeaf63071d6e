// Ops that run in sessions only: their shapes, their HLO text, their effects.
#include <gtest/gtest.h>

#include <algorithm>

#include "ir/analysis/effects.h"
#include "ir/analysis/session_only.h"
#include "ir/verifier.h"
#include "support/hlo.h"

namespace kiln::ir {
namespace {

const ElementType F32 = ElementType::kF32, S32 = ElementType::kS32, C64 = ElementType::kC64,
                  Pred = ElementType::kPred;

Dimension AtMost(int64_t bound) { return Dimension::Bounded(bound); }
Shape Of(ElementType type, std::vector<Dimension> dimensions) {
  return Shape(type, std::move(dimensions));
}

std::string ShapeOf(Opcode opcode, std::vector<Shape> operands, Attributes attributes = {},
                    std::optional<Shape> declared = std::nullopt) {
  std::vector<const Shape*> pointers;
  for (const Shape& s : operands) pointers.push_back(&s);
  Result<Shape> shape =
      InferShape({opcode, pointers, attributes, declared ? &*declared : nullptr, {}});
  return shape.ok() ? shape->ToString() : shape.status().ToString();
}

Attributes Named(Attr key, std::string_view name) { return {{key, QuotedText{std::string(name)}}}; }

TEST(SessionOps, UniqueShapes) {
  EXPECT_EQ(ShapeOf(Opcode::kUnique, {Shape(F32, {5})}), "(f32[<=5], s32[5], s32[<=5])");
  EXPECT_EQ(ShapeOf(Opcode::kUnique, {Shape(Pred, {0})}), "(pred[<=0], s32[0], s32[<=0])");
  EXPECT_EQ(ShapeOf(Opcode::kUnique, {Of(C64, {AtMost(7)})}), "(c64[<=7], s32[<=7], s32[<=7])");
  EXPECT_EQ(
      ShapeOf(Opcode::kUnique, {Shape(F32, {2, 3})}),
      "INVALID_ARGUMENT: kiln.unique: operand has shape f32[2,3]; it must have one dimension");
  EXPECT_EQ(ShapeOf(Opcode::kUnique, {Shape::Scalar(F32)}),
            "INVALID_ARGUMENT: kiln.unique: operand has shape f32[]; it must have one dimension");
  EXPECT_EQ(ShapeOf(Opcode::kUnique, {Shape(Pred, {int64_t{1} << 31})}),
            "INVALID_ARGUMENT: kiln.unique: operand has shape pred[2147483648]; positions in it do "
            "not fit in an s32");
  EXPECT_EQ(ShapeOf(Opcode::kUnique, {Of(F32, {*Dimension::Symbol("N")})}),
            "UNIMPLEMENTED: kiln.unique: operand has shape f32[N]; the size of its result has no "
            "bound, as N is not a number");
  EXPECT_EQ(ShapeOf(Opcode::kUnique, {Shape::Tuple({})}),
            "INVALID_ARGUMENT: kiln.unique: operand has shape (); it must be an array");
}

TEST(SessionOps, NonzeroShapes) {
  EXPECT_EQ(ShapeOf(Opcode::kNonzero, {Shape(F32, {2, 3})}), "s64[<=6,2]");
  EXPECT_EQ(ShapeOf(Opcode::kNonzero, {Shape::Scalar(Pred)}), "s64[<=1,0]");
  EXPECT_EQ(ShapeOf(Opcode::kNonzero, {Of(S32, {AtMost(4), 3, AtMost(2)})}), "s64[<=24,3]");
  EXPECT_EQ(ShapeOf(Opcode::kNonzero, {Shape(Pred, {int64_t{1} << 40, 0, int64_t{1} << 40})}),
            "s64[<=0,3]");
}

TEST(SessionOps, BooleanMaskShapes) {
  EXPECT_EQ(ShapeOf(Opcode::kBooleanMask, {Shape(F32, {4, 3}), Shape(Pred, {4})}), "f32[<=4,3]");
  EXPECT_EQ(ShapeOf(Opcode::kBooleanMask, {Shape(F32, {4, 3}), Shape(Pred, {4, 3})}), "f32[<=12]");
  EXPECT_EQ(ShapeOf(Opcode::kBooleanMask, {Of(F32, {AtMost(4), 3}), Of(Pred, {AtMost(4)})}),
            "f32[<=4,3]");
  EXPECT_EQ(
      ShapeOf(Opcode::kBooleanMask, {Of(F32, {4, *Dimension::Symbol("N")}), Shape(Pred, {4})}),
      "f32[<=4,N]");
  const std::string_view shapes =
      "INVALID_ARGUMENT: kiln.boolean-mask: operands have shapes f32[4,3] and ";
  auto error = [&](Shape mask) {
    return ShapeOf(Opcode::kBooleanMask, {Shape(F32, {4, 3}), std::move(mask)});
  };
  EXPECT_EQ(error(Shape(S32, {4})), Cat(shapes, "s32[4]; the mask must be a pred"));
  EXPECT_EQ(error(Shape::Scalar(Pred)),
            Cat(shapes, "pred[]; the mask must have a dimension at least"));
  for (const Shape& mask : {Shape(Pred, {3}), Shape(Pred, {4, 3, 1}), Of(Pred, {AtMost(4)})}) {
    EXPECT_EQ(error(mask),
              Cat(shapes, mask, "; the mask must have the operand's first dimensions"));
  }
}

TEST(SessionOps, ShapesOfEffects) {
  const Shape x(F32, {2}), pred = Shape::Scalar(Pred);
  EXPECT_EQ(ShapeOf(Opcode::kPrint, {x}), "f32[2]");
  EXPECT_EQ(ShapeOf(Opcode::kPrint, {Of(F32, {AtMost(3)}), x, pred}, Named(Attr::kMessage, "x ")),
            "f32[<=3]");
  EXPECT_EQ(ShapeOf(Opcode::kAssert, {pred, x, pred}), "f32[2]");
  EXPECT_EQ(
      ShapeOf(Opcode::kAssert, {Shape(Pred, {1}), x}),
      "INVALID_ARGUMENT: kiln.assert: operands have shapes pred[1] and f32[2]; the first must "
      "be pred[]");
  EXPECT_EQ(ShapeOf(Opcode::kVariable, {}, Named(Attr::kVariable, "w"), x), "f32[2]");
  EXPECT_EQ(ShapeOf(Opcode::kVariable, {}, Named(Attr::kVariable, ""), x),
            "INVALID_ARGUMENT: kiln.variable; variable is empty");
  EXPECT_EQ(ShapeOf(Opcode::kAssign, {x}, Named(Attr::kVariable, "w")), "f32[2]");
  EXPECT_EQ(ShapeOf(Opcode::kAssign, {x}),
            "INVALID_ARGUMENT: kiln.assign: operand has shape f32[2]; attribute 'variable' is "
            "missing");
  EXPECT_EQ(
      ShapeOf(Opcode::kAssignAdd, {Shape(Pred, {1})}, Named(Attr::kVariable, "w")),
      "INVALID_ARGUMENT: kiln.assign-add: operand has shape pred[1]; the element type must be "
      "an integer, a float or a complex type");
}

TEST(SessionOps, HostCallbackShapes) {
  const Attributes named = Named(Attr::kCallback, "f");
  const Shape pair = Shape::Tuple({Of(F32, {AtMost(3), 2}), Shape::Scalar(S32)});
  EXPECT_EQ(ShapeOf(Opcode::kHostCallback, {}, named, pair), "(f32[<=3,2], s32[])");
  EXPECT_EQ(ShapeOf(Opcode::kHostCallback, {Shape(F32, {2})}, named, Shape::Tuple({})), "()");
  EXPECT_EQ(ShapeOf(Opcode::kHostCallback, {}, Named(Attr::kCallback, ""), pair),
            "INVALID_ARGUMENT: kiln.host-callback; callback is empty");
  EXPECT_EQ(ShapeOf(Opcode::kHostCallback, {}, named, Shape::Tuple({pair})),
            "INVALID_ARGUMENT: kiln.host-callback; the result's shape is ((f32[<=3,2], s32[])); it "
            "must be an array or a tuple of arrays");
}

constexpr std::string_view kText = R"(HloModule m

ENTRY %e (x: f32[4], p: pred[]) -> (f32[<=4], s64[<=4,1]) {
  %x = f32[4]{0} parameter(0)
  %p = pred[] parameter(1)
  %v = f32[4]{0} custom-call(), custom_call_target="kiln.variable", custom_call_has_side_effect=true, backend_config="net/w"
  %a = f32[4]{0} custom-call(%x), custom_call_target="kiln.assign", custom_call_has_side_effect=true, backend_config="net/w"
  %s = f32[4]{0} custom-call(%a), custom_call_target="kiln.assign-add", custom_call_has_side_effect=true, backend_config="net/w"
  %q = f32[4]{0} custom-call(%p, %s, %v), custom_call_target="kiln.assert", custom_call_has_side_effect=true, backend_config="not \"good\""
  %o = f32[4]{0} custom-call(%q), custom_call_target="kiln.print", custom_call_has_side_effect=true
  %u = (f32[<=4]{0}, s32[4]{0}, s32[<=4]{0}) custom-call(%o), custom_call_target="kiln.unique"
  %g = f32[<=4]{0} get-tuple-element(%u), index=0
  %h = (f32[<=9]{0}, s32[]) custom-call(%g), custom_call_target="kiln.host-callback", backend_config="look up"
  %i = (f32[<=9]{0}, s32[]) custom-call(%g), custom_call_target="kiln.host-callback", backend_config="tell", custom_call_has_side_effect=true
  %b = pred[4]{0} compare(%x, %v), direction=LT
  %m = f32[<=4]{0} custom-call(%x, %b), custom_call_target="kiln.boolean-mask"
  %n = s64[<=4,1]{1,0} custom-call(%x), custom_call_target="kiln.nonzero"
  ROOT %r = (f32[<=4]{0}, s64[<=4,1]{1,0}) tuple(%m, %n)
}
)";

TEST(SessionOps, Text) {
  auto module = ParseOrDie(kText);
  EXPECT_TRUE(Verify(*module).ok()) << Verify(*module).ToString();
  auto opcode = [&](std::string_view name) { return FindInstruction(*module, name)->opcode(); };
  EXPECT_EQ(opcode("v"), Opcode::kVariable);
  EXPECT_EQ(opcode("a"), Opcode::kAssign);
  EXPECT_EQ(opcode("s"), Opcode::kAssignAdd);
  EXPECT_EQ(opcode("q"), Opcode::kAssert);
  EXPECT_EQ(opcode("o"), Opcode::kPrint);
  EXPECT_EQ(opcode("u"), Opcode::kUnique);
  EXPECT_EQ(opcode("h"), Opcode::kHostCallback);
  EXPECT_EQ(opcode("m"), Opcode::kBooleanMask);
  EXPECT_EQ(opcode("n"), Opcode::kNonzero);
  const Attributes& assertion = FindInstruction(*module, "q")->attributes();
  EXPECT_EQ(assertion.Text(Attr::kMessage), "not \"good\"");
  EXPECT_EQ(assertion.entries().size(), 1u);
  EXPECT_EQ(FindInstruction(*module, "v")->attributes().Text(Attr::kVariable), "net/w");
  EXPECT_TRUE(FindInstruction(*module, "o")->attributes().entries().empty());
  EXPECT_FALSE(HasSideEffect(*FindInstruction(*module, "h")));
  EXPECT_TRUE(HasSideEffect(*FindInstruction(*module, "i")));
  // As it was, but for the header.
  const std::string printed = ToHloText(*module, {.operand_shapes = false});
  EXPECT_EQ(printed.substr(printed.find("ENTRY")), Cat(kText.substr(kText.find("ENTRY")), "\n"));
}

TEST(SessionOps, TextErrors) {
  EXPECT_NE(ParseError("ENTRY e { x = f32[2] parameter(0)\n"
                       "ROOT u = f32[2] custom-call(x), custom_call_target=\"kiln.unique\" }")
                .find("instruction 'u' has shape f32[2]; inference says (f32[<=2], s32[2], "
                      "s32[<=2])"),
            std::string::npos);
  EXPECT_NE(ParseError("ENTRY e { ROOT v = f32[2] custom-call(), "
                       "custom_call_target=\"kiln.variable\" }")
                .find("kiln.variable; attribute 'variable' is missing"),
            std::string::npos);
}

// The names of the instructions that each one waits for.
std::string Order(std::string_view text) {
  auto module = ParseOrDie(text);
  const EffectOrder order = EffectsBefore(*module->entry());
  std::string out;
  for (const Instruction* i : module->entry()->instructions()) {
    auto it = order.find(i);
    if (it == order.end()) continue;
    out += Cat(out.empty() ? "" : "; ", i->name(), ":");
    for (const Instruction* before : it->second) out += Cat(" ", before->name());
  }
  return out;
}

constexpr std::string_view kEffects = R"(HloModule m
read { ROOT v = f32[] custom-call(), custom_call_target="kiln.variable", backend_config="w" }
write { x = f32[] parameter(0)
  ROOT v = f32[] custom-call(x), custom_call_target="kiln.assign", backend_config="w" }
ENTRY e {
  x = f32[] parameter(0)
  r1 = f32[] custom-call(), custom_call_target="kiln.variable", backend_config="w"
  c1 = f32[] call(), to_apply=read
  a1 = f32[] custom-call(x), custom_call_target="kiln.assign", backend_config="w"
  other = f32[] custom-call(), custom_call_target="kiln.variable", backend_config="b"
  r2 = f32[] custom-call(), custom_call_target="kiln.variable", backend_config="w"
  p = f32[] custom-call(x), custom_call_target="kiln.print"
  pure = f32[] custom-call(x), custom_call_target="kiln.host-callback", backend_config="f"
  c2 = f32[] call(x), to_apply=write
  c3 = f32[] call(), to_apply=read
  a2 = f32[] custom-call(x), custom_call_target="kiln.assign-add", backend_config="b"
  ROOT r = f32[] add(r1, c1)
})";

TEST(SessionOps, EffectsKeepTheirOrder) {
  EXPECT_EQ(Order(kEffects), "a1: r1 c1; r2: a1; p: a1; c2: r2 p; c3: c2; a2: other c2");
}

TEST(SessionOps, PostOrderKeepsReadsInTheirPlaces) {
  auto module = ParseOrDie(R"(HloModule m
ENTRY e {
  x = f32[] parameter(0)
  before = f32[] custom-call(), custom_call_target="kiln.variable", backend_config="w"
  a = f32[] custom-call(x), custom_call_target="kiln.assign", backend_config="w"
  after = f32[] custom-call(), custom_call_target="kiln.variable", backend_config="w"
  ROOT r = f32[] subtract(after, before)
})");
  std::vector<std::string> names;
  for (const Instruction* i : module->entry()->PostOrder()) names.push_back(i->name());
  auto place = [&](std::string_view name) {
    return std::ranges::find(names, name) - names.begin();
  };
  EXPECT_EQ(names.size(), 5u);
  EXPECT_LT(place("before"), place("a"));
  EXPECT_LT(place("a"), place("after"));
}

TEST(SessionOps, Purity) {
  auto module = ParseOrDie(kText);
  for (std::string_view name : {"v", "a", "s", "q", "o", "h", "i"}) {
    EXPECT_FALSE(IsPure(*FindInstruction(*module, name))) << name;
  }
  for (std::string_view name : {"u", "m", "n"}) {
    EXPECT_TRUE(IsPure(*FindInstruction(*module, name))) << name;
    EXPECT_FALSE(HasSideEffect(*FindInstruction(*module, name))) << name;
  }
  EXPECT_FALSE(HasSideEffect(*FindInstruction(*module, "v")));
}

TEST(SessionOps, WhyNotCompiled) {
  for (int k = 0; k < kOpcodeCount; ++k) {
    const auto opcode = static_cast<Opcode>(k);
    EXPECT_EQ(WhyNotCompiled(opcode).empty(), !HasTrait(opcode, kSessionOnly))
        << OpcodeName(opcode);
  }
  auto module = ParseOrDie(kEffects);
  EXPECT_EQ(CheckNotSessionOnly(*module).ToString(),
            "INVALID_ARGUMENT: 'r1' (kiln.variable) cannot be compiled: variables belong to a "
            "session; run it in a session");
  EXPECT_EQ(SessionOnlyIn(*FindInstruction(*module, "c2")),
            FindComputation(*module, "write")->root());
  EXPECT_EQ(SessionOnlyIn(*module->entry()->root()), nullptr);
  EXPECT_TRUE(CheckNotSessionOnly(*ParseOrDie("ENTRY e { x = f32[] parameter(0) }")).ok());
}

}  // namespace
}  // namespace kiln::ir
