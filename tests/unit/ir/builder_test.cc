// The builder of instructions, and the reducers that it makes.
#include "ir/builder.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "ir/reducer.h"
#include "ir/text.h"
#include "ir/verifier.h"

namespace kiln::ir {
namespace {

constexpr ElementType kF32 = ElementType::kF32;

Shape Vector(int64_t size) { return Shape(kF32, {size}); }

// A module whose entry has a parameter of three numbers.
struct Fodder {
  Fodder() : module("m"), entry(module.AddComputation("entry")) {
    module.set_entry(entry);
    x = Builder(entry).Parameter(Vector(3));
  }
  Module module;
  Computation* entry;
  Instruction* x;
};

TEST(Builder, AppendsOrInsertsWithAnOpName) {
  Fodder f;
  Builder b(f.entry, nullptr, "end");
  Instruction* root = b.Negate(f.x);
  f.entry->set_root(root);
  Instruction* twice = Builder(f.entry, root, "before").Plus(f.x, f.x);
  Instruction* abs = Builder(root).Abs(twice);
  std::vector<const Instruction*> order;
  for (const Instruction* i : f.entry->instructions()) order.push_back(i);
  EXPECT_EQ(order, (std::vector<const Instruction*>{f.x, twice, abs, root}));
  EXPECT_EQ(twice->op_name(), "before");
  EXPECT_EQ(abs->op_name(), "end");
  EXPECT_EQ(abs->name(), "abs");
}

TEST(Builder, OfCheckedOperandsKeepsTheFirstFailureAndStops) {
  Fodder f;
  Builder b(f.entry);
  Instruction* two = b.Number(Vector(2), 1);
  const int64_t count = f.entry->instruction_count();
  EXPECT_EQ(b.Plus(f.x, two), nullptr);
  EXPECT_EQ(b.status().code(), Code::kInvalidArgument);
  const std::string first = b.status().ToString();
  EXPECT_EQ(b.Negate(f.x), nullptr);
  EXPECT_EQ(b.Convert(nullptr, kF32), nullptr);
  EXPECT_EQ(b.Scalar(kF32, 1), nullptr);
  EXPECT_EQ(b.Fail(InvalidArgument("later")), nullptr);
  EXPECT_EQ(b.status().ToString(), first);
  EXPECT_EQ(f.entry->instruction_count(), count);
}

TEST(Builder, OfCheckedOperandsTellsThatOneIsMissing) {
  Fodder f;
  Builder b(f.entry);
  EXPECT_EQ(b.Plus(f.x, nullptr), nullptr);
  EXPECT_EQ(b.status().ToString(), "INTERNAL: add: an operand is missing");
}

TEST(Builder, OfTrustedOperandsGoesOnAfterItsMistake) {
  Fodder f;
  Builder b(f.entry, nullptr, "", Builder::Operands::kTrusted);
  Instruction* sum = b.Plus(f.x, b.Number(Vector(2), 1));
  ASSERT_NE(sum, nullptr);
  EXPECT_NE(b.Negate(sum), nullptr);
  EXPECT_EQ(b.status().code(), Code::kInternal);
}

TEST(Builder, MakesNothingWhereNothingWouldChange) {
  Fodder f;
  Builder b(f.entry);
  const int64_t count = f.entry->instruction_count();
  EXPECT_EQ(b.Convert(f.x, kF32), f.x);
  EXPECT_EQ(b.Bits(f.x, kF32), f.x);
  EXPECT_EQ(b.Reshape(f.x, {3}), f.x);
  EXPECT_EQ(b.Transpose(f.x, {0}), f.x);
  EXPECT_EQ(b.Broadcast(f.x, {3}, {0}), f.x);
  EXPECT_EQ(b.Concatenate({f.x}, 0), f.x);
  EXPECT_EQ(b.OneOrTuple({f.x}), f.x);
  EXPECT_EQ(f.entry->instruction_count(), count);
  Instruction* pair = b.Tuple({f.x, f.x});
  EXPECT_EQ(b.Element(pair, 1), f.x);
  EXPECT_EQ(b.Element(pair, 2), nullptr);
  EXPECT_FALSE(b.ok());
}

TEST(Builder, MakesAValidModule) {
  Fodder f;
  Builder b(f.entry);
  Instruction* y = b.Times(f.x, b.Number(f.x, 2));
  Instruction* table = b.Broadcast(y, {4, 3}, {1});
  Instruction* places = b.Iota(Shape(kF32, {4, 3}), 0);
  Instruction* chosen = b.Select(b.Compare(Direction::kLt, places, table), places, table);
  Instruction* turned = b.Transpose(chosen, {1, 0});
  Instruction* cut = b.Slice(turned, {{0, 3, 1}, {0, 4, 2}});
  Instruction* sums = b.Sum(cut, {1});
  Instruction* most = b.Reduce(Opcode::kMaximum, sums, -1, {0});
  f.entry->set_root(b.Tuple({most, b.Convert(sums, ElementType::kF64)}));
  ASSERT_TRUE(b.ok()) << b.status().ToString();
  f.module.SortComputations();
  EXPECT_TRUE(Verify(f.module).ok()) << ToHloText(f.module);
  EXPECT_EQ(sums->called(0)->name(), "sum");
  EXPECT_EQ(most->called(0)->name(), "maximum");
  EXPECT_EQ(ReducerOf(*most->called(0)), Opcode::kMaximum);
}

TEST(Reducer, IsRefusedWhereTheOpDoesNotTakeTheType) {
  Module module("m");
  EXPECT_FALSE(AddReducer(module, Opcode::kXor, kF32).ok());
}

TEST(Reducer, IsOneOpOfBothParameters) {
  Module module("m");
  Computation* twice = module.AddComputation("twice");
  Builder b(twice);
  Instruction *x = b.Parameter(Shape::Scalar(kF32)), *y = b.Parameter(Shape::Scalar(kF32));
  twice->set_root(b.Plus(x, x));
  EXPECT_EQ(ReducerOf(*twice), std::nullopt);
  twice->set_root(b.Minus(x, y));
  EXPECT_EQ(ReducerOf(*twice), std::nullopt);
  twice->set_root(b.Times(y, x));
  EXPECT_EQ(ReducerOf(*twice), Opcode::kMultiply);
}

TEST(Reducer, IdentitiesChangeNothing) {
  const double infinity = std::numeric_limits<double>::infinity();
  EXPECT_TRUE(std::signbit(IdentityOf(Opcode::kAdd, kF32)->AsDouble(0)));
  EXPECT_EQ(IdentityOf(Opcode::kMultiply, ElementType::kS8)->AsInt(0), 1);
  EXPECT_EQ(IdentityOf(Opcode::kMaximum, ElementType::kBF16)->AsDouble(0), -infinity);
  EXPECT_EQ(IdentityOf(Opcode::kMinimum, ElementType::kU8)->AsInt(0), 255);
  EXPECT_EQ(IdentityOf(Opcode::kMaximum, ElementType::kS16)->AsInt(0), -32768);
  EXPECT_EQ(IdentityOf(Opcode::kMinimum, ElementType::kPred)->AsInt(0), 1);
  EXPECT_EQ(IdentityOf(Opcode::kAnd, ElementType::kS32)->AsInt(0), -1);
  EXPECT_EQ(IdentityOf(Opcode::kAnd, ElementType::kU4)->AsInt(0), 15);
  EXPECT_EQ(IdentityOf(Opcode::kAnd, ElementType::kPred)->AsInt(0), 1);
  EXPECT_EQ(IdentityOf(Opcode::kXor, ElementType::kU64)->AsInt(0), 0);
  EXPECT_EQ(IdentityOf(Opcode::kSubtract, kF32), std::nullopt);
}

}  // namespace
}  // namespace kiln::ir
