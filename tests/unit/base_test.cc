#include <chrono>
#include <cmath>

#include <gtest/gtest.h>

#include "base/interrupt.h"
#include "base/status.h"
#include "base/strings.h"

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
  EXPECT_EQ(EscapeJson("a\"\\\n\x01"), "a\\\"\\\\\\n\\u0001");
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

}  // namespace
}  // namespace kiln
