// Large elements of bytecode that are used where they are in a file.
#include <gtest/gtest.h>

#include <cstring>
#include <memory>
#include <string>
#include <string_view>

#include "ir/ir.h"
#include "stablehlo/bytecode/bytecode.h"
#include "stablehlo/import/import.h"
#include "support/bytecode_builder.h"

namespace kiln::stablehlo {
namespace {

using Op = BytecodeBuilder::Op;

constexpr int64_t kElements = 20000;

// A function that returns a constant of f32 with these bytes.
std::string ConstantProgram(std::string_view elements) {
  BytecodeBuilder b;
  const uint64_t f32 = b.VhloType(VarInt(4));
  const uint64_t tensor = b.VhloType(VarInt(20) + SignedVarInts({kElements}) + VarInt(f32));
  Op constant{.name = b.Operation("vhlo", "constant_v1"), .results = {tensor}};
  constant.properties = {{"value", b.Vhlo(VarInt(15) + VarInt(tensor) + Blob(elements))}};
  const Op ends{.name = b.Operation("vhlo", "return_v1"), .operands = {0}};
  return b.Finish(b.Module(1, {}, {tensor}, {b.Encode(constant), b.Encode(ends)}));
}

std::string Elements() {
  std::string elements;
  for (int64_t i = 0; i < kElements; ++i) {
    const auto value = static_cast<float>(i % 777);
    elements.append(reinterpret_cast<const char*>(&value), sizeof(value));
  }
  return elements;
}

// The bytes as a file has them, from an address on that is `shift` bytes behind a multiple of 64.
struct Lent {
  Lent(const std::string& file, size_t shift) : memory(new char[file.size() + 128]) {
    const auto begin = reinterpret_cast<uintptr_t>(memory.get());
    char* at = memory.get() + (64 - begin % 64) % 64 + shift;
    std::memcpy(at, file.data(), file.size());
    bytes = {at, file.size()};
  }
  std::shared_ptr<char[]> memory;
  std::string_view bytes;
};

const Literal* ConstantOf(const ir::Module& module) {
  for (const ir::Instruction* i : module.entry()->instructions()) {
    if (i->IsConstant()) return &i->literal();
  }
  return nullptr;
}

TEST(LentElements, StayWhereTheyAreAligned) {
  const std::string elements = Elements(), file = ConstantProgram(elements);
  int borrowed = 0;
  for (size_t shift = 0; shift < 4; ++shift) {
    Lent lent(file, shift);
    auto tree = ReadBytecode(lent.bytes, lent.memory);
    ASSERT_TRUE(tree.ok()) << tree.status().ToString();
    auto module = Import(**tree);
    ASSERT_TRUE(module.ok()) << module.status().ToString();
    tree->reset();
    const std::string_view bytes = lent.bytes;
    const auto users = lent.memory.use_count();
    lent.memory.reset();
    const Literal* constant = ConstantOf(**module);
    ASSERT_NE(constant, nullptr);
    ASSERT_EQ(constant->byte_size(), static_cast<int64_t>(elements.size()));
    EXPECT_EQ(std::memcmp(constant->data(), elements.data(), elements.size()), 0);
    const auto* at = reinterpret_cast<const char*>(constant->data());
    const bool is_inside = at >= bytes.data() && at < bytes.data() + bytes.size();
    EXPECT_EQ(is_inside, constant->is_borrowed());
    EXPECT_EQ(users > 1, is_inside);
    borrowed += is_inside;
  }
  EXPECT_EQ(borrowed, 1);
}

TEST(LentElements, AreCopiedWithoutAnOwner) {
  const std::string file = ConstantProgram(Elements());
  auto tree = ReadBytecode(file);
  ASSERT_TRUE(tree.ok()) << tree.status().ToString();
  auto module = Import(**tree);
  ASSERT_TRUE(module.ok()) << module.status().ToString();
  EXPECT_FALSE(ConstantOf(**module)->is_borrowed());
}

// Equal elements are one, however many there are.
TEST(LentElements, EqualOnesAreOne) {
  const Lent lent(ConstantProgram(std::string(4 * kElements, '\1')), 0);
  for (size_t shift = 0; shift < 4; ++shift) {
    const Lent moved(std::string(lent.bytes), shift);
    auto tree = ReadBytecode(moved.bytes, moved.memory);
    ASSERT_TRUE(tree.ok()) << tree.status().ToString();
    auto module = Import(**tree);
    ASSERT_TRUE(module.ok()) << module.status().ToString();
    EXPECT_EQ(ConstantOf(**module)->byte_size(), 4);
    EXPECT_EQ(moved.memory.use_count(), 1);
  }
}

}  // namespace
}  // namespace kiln::stablehlo
