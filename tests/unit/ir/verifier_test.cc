#include "ir/verifier.h"

#include <gtest/gtest.h>

#include "support/hlo.h"

namespace kiln::ir {
namespace {

constexpr std::string_view kModule = R"(HloModule m
inner {
  q = f32[2] parameter(0)
  r = f32[2] negate(q)
}
ENTRY main {
  p = f32[2] parameter(0)
  a = f32[2] add(p, p)
  c = f32[2] call(a), to_apply=inner
  k = f32[2] constant({1, 2})
  ROOT t = (f32[2], f32[2]) tuple(c, k)
})";

class Verifier : public ::testing::Test {
 protected:
  Instruction* Get(std::string_view name) { return FindInstruction(*module_, name); }
  // The module must be refused, with INTERNAL and this in the message.
  void ExpectInvalid(std::string_view part) {
    Status status = Verify(*module_);
    EXPECT_EQ(status.code(), Code::kInternal);
    EXPECT_NE(status.message().find(part), std::string_view::npos) << status.ToString();
  }
  std::unique_ptr<Module> module_ = ParseOrDie(kModule);
  Computation* entry_ = module_->entry();
};

TEST_F(Verifier, TakesWhatIsRight) {
  EXPECT_TRUE(Verify(*module_).ok());
  module_->aliases() = {{.output_index = {1}, .parameter = 0}};
  EXPECT_TRUE(Verify(*module_).ok()) << Verify(*module_).ToString();
}

TEST_F(Verifier, OperandsComeFirst) {
  entry_->Move(Get("p"), nullptr);
  ExpectInvalid("instruction 'a' uses 'p', which does not come before it");
}

TEST_F(Verifier, OperandsAreOfTheSameComputation) {
  entry_->ReplaceOperand(Get("a"), 1, Get("q"));
  ExpectInvalid("instruction 'a' uses 'q', which does not come before it in computation 'main'");
}

TEST_F(Verifier, ShapesAreWhatInferenceSays) {
  Get("a")->set_shape(Shape(ElementType::kF32, {3}));
  ExpectInvalid("instruction 'a' has shape f32[3]; inference says f32[2]");
}

TEST_F(Verifier, InferenceItselfSpeaks) {
  Get("k")->set_shape(Shape(ElementType::kF32, {3}));
  ExpectInvalid("instruction 'k' has shape f32[3] and a literal of shape f32[2]");
  Get("p")->set_shape(Shape(ElementType::kPred, {2}));
  ExpectInvalid("instruction 'a' has shape f32[2]; inference says pred[2]");
}

TEST_F(Verifier, ArgumentsFitTheirComputations) {
  Get("q")->set_shape(Shape(ElementType::kF32, {5}));
  Get("r")->set_shape(Shape(ElementType::kF32, {5}));
  ExpectInvalid("instruction 'c': call: operand has shape f32[2]; the computation takes (f32[5])");
}

TEST_F(Verifier, MemoryHasOneLayout) {
  auto module = ParseOrDie(R"(ENTRY e {
    p = f32[2,3] parameter(0)
    t = (f32[2,3]) tuple(p)
    ROOT g = f32[2,3] get-tuple-element(t), index=0
  })");
  Shape shape = FindInstruction(*module, "p")->shape();
  shape.set_minor_to_major({0, 1});
  FindInstruction(*module, "p")->set_shape(shape);
  EXPECT_NE(Verify(*module).message().find("instruction 't' has layout (f32[2,3]{1,0})"),
            std::string_view::npos)
      << Verify(*module).ToString();
  shape.set_minor_to_major({1, 1});
  FindInstruction(*module, "p")->set_shape(shape);
  EXPECT_NE(Verify(*module).message().find("no permutation"), std::string_view::npos);
}

TEST_F(Verifier, CallsFormNoCircle) {
  FindComputation(*module_, "inner")
      ->Create({.opcode = Opcode::kCall,
                .operands = {Get("q")},
                .called = {entry_},
                .shape = Get("t")->shape()});
  ExpectInvalid("which leads back to its own computation");
}

TEST_F(Verifier, CalleesAreInTheModule) {
  auto other = ParseOrDie(kModule);
  Get("c")->set_called(0, FindComputation(*other, "inner"));
  ExpectInvalid("instruction 'c' calls a computation that is not in the module");
}

TEST_F(Verifier, ParametersHaveNoGap) {
  entry_->Create({.opcode = Opcode::kParameter,
                  .attributes = {{Attr::kParameterNumber, int64_t{2}}},
                  .shape = Get("p")->shape()});
  ExpectInvalid("computation 'main' lacks a parameter");
}

TEST_F(Verifier, ParametersHaveOneNumber) {
  entry_->Create({.opcode = Opcode::kParameter,
                  .attributes = {{Attr::kParameterNumber, int64_t{0}}},
                  .shape = Get("p")->shape()});
  ExpectInvalid("instruction 'p' is not the parameter of its number, 0");
}

TEST_F(Verifier, ThereIsARootAndAnEntry) {
  entry_->set_root(Get("r"));
  ExpectInvalid("computation 'main' has no root");
  module_->set_entry(nullptr);
  ExpectInvalid("has no entry");
}

TEST_F(Verifier, AttributesAndConstantsAreComplete) {
  entry_->Create(
      {.opcode = Opcode::kTranspose, .operands = {Get("a")}, .shape = Get("a")->shape()});
  ExpectInvalid("attribute 'dimensions' is missing");
  module_ = ParseOrDie(kModule);
  module_->entry()->Create({.opcode = Opcode::kConstant, .shape = Shape(ElementType::kF32, {2})});
  ExpectInvalid("has no literal");
}

TEST_F(Verifier, AliasesFit) {
  auto expect = [&](std::vector<InputOutputAlias> aliases, std::string_view part) {
    module_->aliases() = std::move(aliases);
    ExpectInvalid(part);
  };
  expect({{.output_index = {2}, .parameter = 0}}, "there is no such output");
  expect({{.output_index = {0}, .parameter = 1}}, "there is no such value");
  expect({{.output_index = {0}, .parameter = 0, .parameter_index = {0}}}, "there is no such value");
  expect({{.output_index = {}, .parameter = 0}}, "they must be equal");
  expect({{.output_index = {0}, .parameter = 0}, {.output_index = {1}, .parameter = 0}},
         "parameter 0 {} is an alias of two outputs");
  expect({{.output_index = {0}, .parameter = 0}, {.output_index = {0}, .parameter = 0}},
         "output {0} is an alias of two parameters");
}

TEST(CheckModule, NamesTheCulprit) {
  auto module = ParseOrDie(kModule);
  const Instruction* culprit = nullptr;
  EXPECT_TRUE(CheckModule(*module, &culprit).ok());
  EXPECT_EQ(culprit, nullptr);
  FindInstruction(*module, "a")->set_shape(Shape(ElementType::kF32, {3}));
  Status status = CheckModule(*module, &culprit);
  EXPECT_EQ(status.code(), Code::kInvalidArgument);
  EXPECT_EQ(culprit, FindInstruction(*module, "a"));
}

}  // namespace
}  // namespace kiln::ir
