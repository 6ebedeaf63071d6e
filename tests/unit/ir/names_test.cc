// The graph's own books: names, users, lists.
#include "ir/ir.h"

#include <algorithm>
#include <numeric>
#include <set>
#include <vector>

#include "base/short_list.h"
#include "gtest/gtest.h"

namespace kiln::ir {
namespace {

TEST(Names, AreTheWantedOnesWhereTheseAreFree) {
  Names names;
  EXPECT_EQ(names.Unique("add"), "add");
  EXPECT_EQ(names.Unique("add"), "add.1");
  EXPECT_EQ(names.Unique("add.7"), "add.7");
  EXPECT_EQ(names.Unique("add.3"), "add.3");
  EXPECT_EQ(names.Unique("add.0"), "add.0");
  EXPECT_EQ(names.Unique("mul.5"), "mul.5");
  EXPECT_EQ(names.Unique("mul"), "mul");
}

TEST(Names, CountOnFromTheirStemWhereTheyAreTaken) {
  Names names;
  names.Unique("add.2");
  EXPECT_EQ(names.Unique("add.2"), "add.1");
  EXPECT_EQ(names.Unique("add.2"), "add.3");
  EXPECT_EQ(names.Unique("add.1"), "add.4");
  EXPECT_EQ(names.Unique("add"), "add");
  EXPECT_EQ(names.Unique("add.0"), "add.0");
  EXPECT_EQ(names.Unique("add.0"), "add.5");
}

TEST(Names, TakeForANumberOnlyWhatOneWrites) {
  Names names;
  EXPECT_EQ(names.Unique("x.007"), "x.007");
  EXPECT_EQ(names.Unique("x.007"), "x.007.1");
  EXPECT_EQ(names.Unique("x.7"), "x.7");
  EXPECT_EQ(names.Unique("x.99999999999999999999"), "x.99999999999999999999");
  EXPECT_EQ(names.Unique("x.99999999999999999999"), "x.99999999999999999999.1");
  EXPECT_EQ(names.Unique("x.-1"), "x.-1");
  EXPECT_EQ(names.Unique("x."), "x.");
  EXPECT_EQ(names.Unique("x."), "x..1");
}

TEST(Names, AreMadeValid) {
  Names names;
  EXPECT_EQ(names.Unique("a b/c"), "a_b_c");
  EXPECT_EQ(names.Unique("a_b_c"), "a_b_c.1");
  EXPECT_EQ(names.Unique(""), "_");
  EXPECT_EQ(names.Unique("7"), "_7");
  EXPECT_EQ(names.Unique(".5"), "_.5");
  // XLA has these names to itself.
  EXPECT_EQ(names.Unique("f32"), "f32_");
  EXPECT_EQ(names.Unique("token"), "token_");
  EXPECT_EQ(names.Unique("f32.1"), "f32.1");
  EXPECT_EQ(names.Unique("__x"), "a_x");
  EXPECT_EQ(names.Unique("__xla_x"), "__xla_x");
}

TEST(Names, AreNeverGivenTwice) {
  Names names;
  std::set<std::string> given;
  uint32_t state = 1;
  for (int k = 0; k < 20000; ++k) {
    state = state * 1664525 + 1013904223;
    std::string wanted = state >> 31 ? "add" : "add.1";
    uint32_t number = (state >> 8) % 300;
    if (number < 250) wanted += "." + std::to_string(number);
    EXPECT_TRUE(given.insert(names.Unique(wanted)).second) << wanted;
  }
}

TEST(ShortList, KeepsWhatItIsGiven) {
  ShortList<int, 2> list;
  for (int k = 0; k < 100; ++k) {
    ASSERT_EQ(list.size(), k);
    list.push_back(k);
    std::vector<int> expected(k + 1);
    std::iota(expected.begin(), expected.end(), 0);
    ASSERT_TRUE(std::ranges::equal(list, expected));
  }
  list.erase(list.begin() + 3);
  EXPECT_EQ(list[3], 4);
  EXPECT_EQ(list.size(), 99u);
  ShortList<int, 2> other = std::move(list);
  EXPECT_EQ(other.size(), 99u);
  EXPECT_TRUE(list.empty());  // NOLINT: as documented of a move
  list.push_back(5);
  std::swap(list, other);
  EXPECT_EQ(other.size(), 1u);
  EXPECT_EQ(other[0], 5);
  other.assign(list);
  EXPECT_TRUE(std::ranges::equal(list, other));
  other.truncate(other.begin() + 1);
  EXPECT_EQ(other.size(), 1u);
}

// A parameter that thousands read: users come and go, each stands once.
TEST(Users, StandOnceHoweverManyTheyAre) {
  Module module("m");
  Computation* c = module.AddComputation("main");
  module.set_entry(c);
  Shape f32 = Shape::Scalar(ElementType::kF32);
  auto make = [&](Opcode opcode, std::vector<Instruction*> operands) {
    return c->Create({.opcode = opcode, .operands = std::move(operands), .shape = f32});
  };
  Instruction* x = make(Opcode::kParameter, {});
  Instruction* y = make(Opcode::kConstant, {});
  std::vector<Instruction*> users;
  for (int k = 0; k < 1000; ++k) users.push_back(make(Opcode::kAdd, {x, k % 2 ? x : y}));
  auto check = [&](std::vector<Instruction*> expected) {
    std::vector<Instruction*> found(x->users().begin(), x->users().end());
    std::ranges::sort(found);
    std::ranges::sort(expected);
    EXPECT_EQ(found, expected);
  };
  check(users);
  std::vector<Instruction*> left;
  for (int k = 0; k < 1000; ++k) {
    if (k % 3 == 0) {
      c->Remove(users[k]);
    } else if (k % 3 == 1) {
      c->ReplaceOperand(users[k], 0, y);
      if (users[k]->operand(1) == x) left.push_back(users[k]);
    } else {
      left.push_back(users[k]);
    }
  }
  check(left);
  Instruction* z = make(Opcode::kNegate, {x});
  left.push_back(z);
  check(left);
  c->ReplaceAllUses(x, z);  // but z's own use
  check({z});
  left.pop_back();
  EXPECT_EQ(z->users().size(), left.size());
}

}  // namespace
}  // namespace kiln::ir
