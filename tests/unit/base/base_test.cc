#include <chrono>
#include <cmath>
#include <type_traits>
#include <variant>
#include <vector>

#include <gtest/gtest.h>

#include "base/id.h"
#include "base/interrupt.h"
#include "base/overloaded.h"
#include "base/status.h"
#include "base/strings.h"
#include "base/utf8.h"
#include "support/labels.h"

namespace kiln {
namespace {

TEST(Strings, NumbersReadBack) {
  EXPECT_EQ(Cat("a", 1, ' ', 0.1, ' ', -1.5f, ' ', true), "a1 0.1 -1.5 true");
  EXPECT_EQ(ParseDouble("1e400"), HUGE_VAL);
  EXPECT_EQ(ParseDouble("-1e-400"), -0.0);
  EXPECT_EQ(ParseDouble("0x1.8p1"), 3.0);
  EXPECT_FALSE(ParseDouble("1,5").has_value());
  EXPECT_EQ(ParseInt("-12"), -12);
  EXPECT_FALSE(ParseInt("12x").has_value());
  EXPECT_FALSE(ParseInt("").has_value());
}

TEST(Strings, SplitAndTrim) {
  EXPECT_EQ(Join(Split("a,b,,c", ','), "|"), "a|b||c");
  EXPECT_TRUE(Split("", ',').empty());
  EXPECT_EQ(Trim("  a b\n"), "a b");
  EXPECT_EQ(EscapeJson("a\"\\\b\f\n\x01"), "a\\\"\\\\\\b\\f\\n\\u0001");
}

TEST(Strings, Utf8) {
  for (const char* good : {"", "a", "\x7f", "caf\xc3\xa9", "\xe2\x82\xac", "\xed\x9f\xbf",
                           "\xee\x80\x80", "\xf0\x90\x80\x80", "\xf4\x8f\xbf\xbf"}) {
    EXPECT_TRUE(IsUtf8(good)) << good;
    EXPECT_EQ(ToUtf8(good), good);
  }
  // A byte alone, one that is missing, what is longer than it need be, surrogates, too large.
  for (const char* bad :
       {"\x80", "\xc3", "\xe2\x82", "\xf0\x9f\x98", "\xc0\x80", "\xc1\xbf", "\xe0\x9f\xbf",
        "\xf0\x8f\xbf\xbf", "\xed\xa0\x80", "\xf4\x90\x80\x80", "\xf5\x80\x80\x80", "\xff"}) {
    EXPECT_FALSE(IsUtf8(bad)) << bad;
    std::string replaced;
    for (size_t i = 0; i < std::string_view(bad).size(); ++i) replaced += "\xef\xbf\xbd";
    EXPECT_EQ(ToUtf8(bad), replaced);
  }
  EXPECT_EQ(ToUtf8("a\xc3z\xe2\x82\xac\xff"), "a\xef\xbf\xbdz\xe2\x82\xac\xef\xbf\xbd");
  EXPECT_EQ(EscapeJson("\"\xc3\xa9\xff"), "\\\"\xc3\xa9\xef\xbf\xbd");
}

TEST(Status, CarriesCodeAndMessage) {
  Status s = InvalidArgument("rank ", 3);
  EXPECT_EQ(s.ToString(), "INVALID_ARGUMENT: rank 3");
  EXPECT_EQ(s.WithContext("add").message(), "add: rank 3");
  EXPECT_TRUE(OkStatus().ok());
  Result<int> r = s;
  EXPECT_FALSE(r.ok());
  EXPECT_EQ(Result<int>(4).value(), 4);
}

TEST(Id, IsANumberOfOneKind) {
  using Apple = Id<struct AppleTag>;
  using Pear = Id<struct PearTag>;
  static_assert(sizeof(Apple) == sizeof(int) && std::is_trivially_copyable_v<Apple>);
  static_assert(!std::is_convertible_v<int, Apple> && !std::is_convertible_v<Apple, int>);
  static_assert(!std::is_constructible_v<Apple, Pear>);
  EXPECT_FALSE(Apple().valid());
  EXPECT_TRUE(Apple(0).valid());
  EXPECT_LT(Apple(2), Apple(3));
  EXPECT_EQ(Cat("a", Apple(7)), "a7");
}

TEST(Id, IsTheIndexOfAVector) {
  using Apple = Id<struct AppleTag>;
  IdVector<Apple, int> weights = {5, 6};
  EXPECT_EQ(weights.next(), Apple(2));
  EXPECT_EQ(weights.Add(7), Apple(2));
  weights[Apple(0)] = 4;
  std::vector<int> in_order;
  for (Apple a : weights.ids()) in_order.push_back(weights[a]);
  EXPECT_EQ(in_order, (std::vector<int>{4, 6, 7}));
  IdVector<Apple, bool> red(weights.size(), false);
  red[Apple(1)] = true;
  EXPECT_TRUE(red[Apple(1)]);
}

TEST(Overloaded, VisitsEachAlternative) {
  const Overloaded name{[](int) { return "int"; }, [](bool) { return "bool"; }};
  EXPECT_STREQ(std::visit(name, std::variant<int, bool>(true)), "bool");
  EXPECT_STREQ(std::visit(name, std::variant<int, bool>(1)), "int");
}

TEST(Interrupt, EndsByAFlagOrADeadline) {
  using Clock = Interrupt::Clock;
  int32_t flag = 0;
  EXPECT_TRUE(Interrupt().Check().ok());
  EXPECT_TRUE(Interrupt(nullptr, Clock::now() + std::chrono::hours(1)).Check().ok());
  const Interrupt by_flag(&flag, Clock::now() + std::chrono::hours(1));
  const Interrupt copy = by_flag;
  EXPECT_TRUE(copy.Check().ok());
  flag = -1;
  EXPECT_EQ(copy.Check().code(), Code::kCancelled);
  flag = 0;
  EXPECT_TRUE(by_flag.Check().ok());
  const Interrupt late(&flag, Clock::now());
  EXPECT_EQ(late.Check().code(), Code::kDeadlineExceeded);
  flag = 1;
  EXPECT_EQ(late.Check().code(), Code::kCancelled);
}

KILN_LABEL(text, "Strings");

}  // namespace
}  // namespace kiln
