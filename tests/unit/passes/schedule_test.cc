// The schedule's memory beside that of simple orders.
#include "passes/memory/schedule.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <string>
#include <unordered_map>
#include <vector>

#include "base/strings.h"
#include "support/hlo.h"

namespace kiln::passes {
namespace {

using ir::Instruction;
using Order = std::vector<Instruction*>;

// Products of several sizes, of values made not long before; what nothing used is added up.
std::string Products(int count, uint64_t seed) {
  std::mt19937_64 random(seed);
  auto below = [&](size_t n) { return random() % n; };
  constexpr int kWidths[] = {16, 32, 64, 128, 256};
  struct Value {
    std::string name;
    int width;
    bool used = false;
  };
  std::vector<Value> values = {{"x", 64}};
  std::string text = "  x = f32[64,64] parameter(0)\n";
  int parameters = 1;
  auto product = [&](Value& v, int width) {
    v.used = true;
    std::string name = Cat("v", parameters);
    text += Cat("  w", parameters, " = f32[", v.width, ",", width, "] parameter(", parameters,
                ")\n  ", name, " = f32[64,", width, "] dot(", v.name, ", w", parameters,
                "), lhs_contracting_dims={1}, rhs_contracting_dims={0}\n");
    ++parameters;
    return name;
  };
  for (int i = 0; i < count; ++i) {
    int width = kWidths[below(5)];
    size_t recent = std::min<size_t>(values.size(), 12);
    std::string made = product(values[values.size() - 1 - below(recent)], width);
    values.push_back({made, width});
  }
  std::string sum;
  for (size_t i = 0; i < values.size(); ++i) {
    if (values[i].used) continue;
    std::string last = product(values[i], 16);
    if (!sum.empty()) {
      text += Cat("  s", i, " = f32[64,16] add(", sum, ", ", last, ")\n");
      last = Cat("s", i);
    }
    sum = last;
  }
  return Cat("HloModule products\nENTRY e {\n", text, "  ROOT r = f32[64,16] negate(", sum,
             ")\n}\n");
}

// The most bytes that are live at once, but for arguments and results.
int64_t Peak(const Order& order) {
  std::unordered_map<const Instruction*, size_t> uses;
  for (const Instruction* i : order) uses[i] = i->users().size();
  int64_t live = 0, peak = 0;
  for (const Instruction* i : order) {
    if (i->opcode() == Opcode::kParameter || i->IsRoot()) continue;
    live += i->shape().byte_size();
    peak = std::max(peak, live);
    for (const Instruction* o : i->operands()) {
      if (o->opcode() != Opcode::kParameter && --uses[o] == 0) live -= o->shape().byte_size();
    }
  }
  return peak;
}

Order BreadthFirst(const ir::Computation& c) {
  std::unordered_map<const Instruction*, size_t> waits;
  Order order(c.parameters().begin(), c.parameters().end());
  for (Instruction* i : c.instructions()) waits[i] = static_cast<size_t>(i->operand_count());
  for (size_t k = 0; k < order.size(); ++k) {
    for (Instruction* user : order[k]->users()) {
      if (--waits[user] == 0) order.push_back(user);
    }
  }
  return order;
}

TEST(Schedule, TakesNoMoreMemoryThanSimpleOrders) {
  int better = 0;
  for (uint64_t seed = 1; seed <= 40; ++seed) {
    SCOPED_TRACE(seed);
    auto module = ir::ParseOrDie(Products(20 + static_cast<int>(seed) * 4, seed));
    ir::Computation& c = *module->entry();
    int64_t post = Peak(c.PostOrder()), breadth = Peak(BreadthFirst(c));
    ASSERT_TRUE(Schedule(*module).ok());
    Order scheduled;
    for (Instruction* i : c.instructions()) scheduled.push_back(i);
    int64_t peak = Peak(scheduled);
    EXPECT_LE(peak, post);
    EXPECT_LE(peak, breadth);
    better += peak < std::min(post, breadth);
  }
  EXPECT_GT(better, 10);
}

}  // namespace
}  // namespace kiln::passes
