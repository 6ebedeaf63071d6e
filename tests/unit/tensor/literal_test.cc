// Literals that borrow their memory.
#include "tensor/literal.h"

#include <gtest/gtest.h>

#include <memory>
#include <vector>

namespace kiln {
namespace {

class BorrowedLiterals : public ::testing::Test {
 protected:
  Literal Borrow(std::vector<float> values) {
    auto owner = std::make_shared<std::vector<float>>(std::move(values));
    owner_ = owner;
    const Shape shape(ElementType::kF32, {static_cast<int64_t>(owner->size())});
    return Literal::Borrowed(shape, reinterpret_cast<const std::byte*>(owner->data()), owner);
  }

  std::weak_ptr<std::vector<float>> owner_;
};

TEST_F(BorrowedLiterals, AreReadInPlace) {
  const Literal literal = Borrow({1, 2, 3});
  EXPECT_TRUE(literal.is_borrowed());
  EXPECT_EQ(literal.byte_size(), 12);
  EXPECT_EQ(literal.data(), reinterpret_cast<const std::byte*>(owner_.lock()->data()));
  EXPECT_EQ(literal.values<float>().size(), 3u);
  EXPECT_EQ(literal.AsDouble(2), 3);
  EXPECT_EQ(literal.ToString(), "{1, 2, 3}");
  EXPECT_FALSE(literal.IsSplat());
  EXPECT_TRUE(Borrow({2, 2}).IsAll(2));
}

TEST_F(BorrowedLiterals, KeepTheOwnerAsLongAsTheirCopies) {
  auto literal = std::make_unique<Literal>(Borrow({1, 2}));
  auto copy = std::make_unique<const Literal>(*literal);
  EXPECT_EQ(copy->data(), std::as_const(*literal).data());
  literal = nullptr;
  EXPECT_FALSE(owner_.expired());
  copy = nullptr;
  EXPECT_TRUE(owner_.expired());
}

TEST_F(BorrowedLiterals, OwnTheirMemoryOnceTheyAreChanged) {
  const Literal literal = Borrow({1, 2, 3});
  Literal changed = literal;
  EXPECT_EQ(changed, literal);
  changed.values<float>()[1] = 7;
  EXPECT_FALSE(changed.is_borrowed());
  EXPECT_EQ(changed.ToString(), "{1, 7, 3}");
  EXPECT_EQ(literal.ToString(), "{1, 2, 3}");
  EXPECT_NE(changed, literal);
  changed.values<float>()[1] = 2;
  EXPECT_EQ(changed, literal);
}

TEST_F(BorrowedLiterals, MayBeEmpty) {
  Literal literal = Borrow({});
  EXPECT_EQ(literal.byte_size(), 0);
  EXPECT_EQ(literal, Literal(Shape(ElementType::kF32, {0})));
  EXPECT_TRUE(literal.values<float>().empty());
}

}  // namespace
}  // namespace kiln
