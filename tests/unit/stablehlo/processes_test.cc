// StableHLO programs of several processes, run by the evaluator.
#include <gtest/gtest.h>

#include "base/strings.h"
#include "support/stablehlo_import.h"

namespace kiln::stablehlo {
namespace {

// What each process of a grid gives that runs a function of such lines, which has %x, 10 * replica
// + partition, as tensor<i32>, and gives %r of a type.
std::string Grid(int64_t replicas, int64_t partitions, std::string_view lines,
                 std::string_view type = "tensor<i32>") {
  std::string programs, types, results;
  const int64_t count = replicas * partitions;
  for (int64_t r = 0; r < replicas; ++r) {
    programs += r > 0 ? ", [" : "[";
    for (int64_t p = 0; p < partitions; ++p) programs += p > 0 ? ", @f" : "@f";
    programs += "]";
  }
  for (int64_t k = 0; k < count; ++k) {
    types += Cat(k > 0 ? ", " : "", type);
    results += count == 1 ? "%0" : Cat(k > 0 ? ", " : "", "%0#", k);
  }
  return Value(Cat("func.func @f() -> ", type, R"( {
  %replica = stablehlo.replica_id : tensor<ui32>
  %partition = stablehlo.partition_id : tensor<ui32>
  %ten = stablehlo.constant dense<10> : tensor<ui32>
  %tens = stablehlo.multiply %replica, %ten : tensor<ui32>
  %id = stablehlo.add %tens, %partition : tensor<ui32>
  %x = stablehlo.convert %id : (tensor<ui32>) -> tensor<i32>
)",
                   lines, "\n  return %r : ", type, "\n}\nfunc.func @main() -> (", types, ") {\n  ",
                   count == 1 ? "%0" : Cat("%0:", count),
                   " = \"interpreter.run_parallel\"() {programs = [", programs, "]} : () -> (",
                   types, ")\n  return ", results, " : ", types, "\n}\n"));
}

constexpr std::string_view kAdd =
    R"(({
^bb0(%a: tensor<i32>, %b: tensor<i32>):
  %s = stablehlo.add %a, %b : tensor<i32>
  stablehlo.return %s : tensor<i32>
}))";
constexpr std::string_view kChannel =
    ", channel_handle = #stablehlo.channel_handle<handle = 1, type = 1>";

// "dense<[[0, 1]]> : tensor<1x2xi64>" of "0, 1".
std::string Group(std::string_view numbers) {
  return Cat("replica_groups = dense<[[", numbers, "]]> : tensor<1x", Split(numbers, ',').size(),
             "xi64>");
}

TEST(StablehloProcesses, CollectiveReduceGoesToTheFirst) {
  auto reduce = [](std::string_view attributes) {
    return Cat("  %r = \"stablehlo.collective_reduce\"(%x) ", kAdd, " {", attributes,
               "} : (tensor<i32>) -> tensor<i32>");
  };
  EXPECT_EQ(Grid(3, 1, reduce(Group("1, 2, 0"))), "(0, 30, 0)");
  EXPECT_EQ(Grid(4, 1, reduce("replica_groups = dense<[[1, 2], [3, 0]]> : tensor<2x2xi64>")),
            "(0, 30, 0, 30)");
  EXPECT_EQ(Grid(2, 2, reduce(Group("1, 0"))), "(0, 0, 10, 12)");
  EXPECT_EQ(Grid(2, 2, reduce(Cat(Group("1, 0"), kChannel))), "(0, 0, 22, 0)");
  EXPECT_EQ(Grid(2, 2, reduce(Cat(Group("2, 0, 1, 3"), kChannel, ", use_global_device_ids"))),
            "(0, 0, 22, 0)");
  EXPECT_EQ(Grid(2, 2,
                 reduce(Cat("replica_groups = dense<[[3, 0, 1], [2, -1, -1]]> : tensor<2x3xi64>",
                            kChannel, ", use_global_device_ids"))),
            "(0, 0, 10, 12)");
  EXPECT_EQ(Grid(2, 1, reduce("replica_groups = dense<> : tensor<0x0xi64>")), "(10, 0)");
}

TEST(StablehloProcesses, CollectiveReduceGoesToARootThatIsAnOperand) {
  auto reduce = [](std::string_view attributes) {
    return Cat("  %n = stablehlo.negate %x : tensor<i32>\n",
               "  %roots = stablehlo.constant dense<[1, 0]> : tensor<2xi32>\n",
               "  %y:2 = \"stablehlo.collective_reduce\"(%x, %n, %roots) ", kAdd,
               " {has_dynamic_root, ", attributes,
               "} : (tensor<i32>, tensor<i32>, tensor<2xi32>) -> (tensor<i32>, tensor<i32>)\n",
               "  %h = stablehlo.constant dense<1000> : tensor<i32>\n",
               "  %m = stablehlo.multiply %y#1, %h : tensor<i32>\n",
               "  %r = stablehlo.add %y#0, %m : tensor<i32>");
  };
  EXPECT_EQ(Grid(3, 1, reduce(Group("1, 2, 0"))), "(0, -30000, 30)");
  // Place 1 is of replica 0 and partition 0.
  EXPECT_EQ(Grid(2, 2, reduce(Cat(Group("1, 0"), kChannel))), "(22, 0, -22000, 0)");
  EXPECT_EQ(Grid(2, 2,
                 reduce(Cat("replica_groups = dense<[[3, 0], [1, 2]]> : tensor<2x2xi64>", kChannel,
                            ", use_global_device_ids"))),
            "(11, -11000, 11, -11000)");
  // Place 1 is of partition 1 in groups of one replica.
  EXPECT_EQ(
      Grid(2, 2, reduce(Cat("replica_groups = dense<[[1], [0]]> : tensor<2x1xi64>", kChannel))),
      "(-1000, 1, -21000, 21)");
}

TEST(StablehloProcesses, CollectiveBroadcastComesFromARootThatIsAnOperand) {
  auto broadcast = [](std::string_view attributes) {
    return Cat(
        R"(  %root = stablehlo.constant dense<1> : tensor<1xi32>
  %r = "stablehlo.collective_broadcast"(%x, %root) {has_dynamic_root, )",
        attributes, "} : (tensor<i32>, tensor<1xi32>) -> tensor<i32>");
  };
  EXPECT_EQ(Grid(3, 1, broadcast(Group("0, 2"))), "(20, 0, 20)");
  EXPECT_EQ(Grid(2, 2, broadcast(Group("0, 1"))), "(10, 11, 10, 11)");
  EXPECT_EQ(Grid(2, 3, broadcast(Cat(Group("2, 1"), kChannel))), "(0, 1, 1, 0, 11, 11)");
}

TEST(StablehloProcesses, RootsMustBeNumbersOfThePlaces) {
  EXPECT_EQ(Grid(1, 1,
                 "  %root = stablehlo.constant dense<1> : tensor<2xi32>\n"
                 "  %r = \"stablehlo.collective_broadcast\"(%x, %root) {has_dynamic_root, "
                 "replica_groups = dense<[[0]]> : tensor<1x1xi64>} : (tensor<i32>, tensor<2xi32>) "
                 "-> tensor<i32>"),
            "INVALID_ARGUMENT: line 9, column 8: 'stablehlo.collective_broadcast': the roots are "
            "s32[2]; expected 1 integers");
  EXPECT_EQ(Grid(1, 1,
                 Cat(R"(  %root = stablehlo.constant dense<1> : tensor<0xi32>
  %r = "stablehlo.collective_reduce"(%root) )",
                     kAdd,
                     " {has_dynamic_root, replica_groups = dense<[[0]]> : tensor<1x1xi64>} : "
                     "(tensor<0xi32>) -> tensor<i32>")),
            "INVALID_ARGUMENT: line 9, column 8: 'stablehlo.collective_reduce': found no operand "
            "beside the roots");
}

TEST(StablehloProcesses, ChannelsMatterMoreThanTheirTypes) {
  for (std::string_view type : {"0", "1", "2"}) {
    EXPECT_EQ(Grid(2, 1,
                   Cat("  %r = \"stablehlo.collective_permute\"(%x) {channel_handle = "
                       "#stablehlo.channel_handle<handle = 0, type = ",
                       type,
                       ">, source_target_pairs = dense<[[1, 0]]> : tensor<1x2xi64>} : "
                       "(tensor<i32>) -> tensor<i32>")),
              "(10, 0)");
  }
}

// A sends to B, which answers.
TEST(StablehloProcesses, MessagesGoBackAndForth) {
  for (bool host : {false, true}) {
    auto transfer = [&](std::string_view name, std::string_view operands, int channel,
                        std::string_view type) {
      const bool sends = name == "send";
      return Cat("\"stablehlo.", name, "\"(", operands,
                 ") {channel_handle = #stablehlo.channel_handle<handle = ", channel,
                 ", type = ", host ? (sends ? 2 : 3) : 1, ">",
                 host ? ", is_host_transfer = true" : "", "} : ", type, "\n");
    };
    constexpr std::string_view kSend =
        "(tensor<2xi64>, tensor<f32>, !stablehlo.token) -> !stablehlo.token";
    constexpr std::string_view kRecv =
        "(!stablehlo.token) -> (tensor<2xi64>, tensor<f32>, !stablehlo.token)";
    const std::string text = Cat(
        "func.func @a(%t: !stablehlo.token, %x: tensor<2xi64>, %f: tensor<f32>) -> "
        "(tensor<2xi64>, tensor<f32>) {\n  %0 = ",
        transfer("send", "%x, %f, %t", 1, kSend), "  %1:3 = ", transfer("recv", "%0", 2, kRecv),
        R"(  return %1#0, %1#1 : tensor<2xi64>, tensor<f32>
}
func.func @b(%t: !stablehlo.token) -> (tensor<2xi64>, !stablehlo.token) {
  %0:3 = )",
        transfer("recv", "%t", 1, kRecv), "  %1 = stablehlo.negate %0#0 : tensor<2xi64>\n  %2 = ",
        transfer("send", "%1, %0#1, %0#2", 2, kSend),
        "  return %0#0, %2 : tensor<2xi64>, !stablehlo.token\n}\n", R"(
func.func @main() -> (tensor<2xi64>, tensor<f32>, tensor<2xi64>) {
  %t = stablehlo.after_all : !stablehlo.token
  %x = stablehlo.constant dense<[3, 4]> : tensor<2xi64>
  %f = stablehlo.constant dense<0.5> : tensor<f32>
  %0:4 = "interpreter.run_parallel"(%t, %x, %f, %t) {programs = [[@a, @b]]} :
    (!stablehlo.token, tensor<2xi64>, tensor<f32>, !stablehlo.token) ->
    (tensor<2xi64>, tensor<f32>, tensor<2xi64>, !stablehlo.token)
  return %0#0, %0#1, %0#2 : tensor<2xi64>, tensor<f32>, tensor<2xi64>
}
)");
    EXPECT_EQ(Value(text), "({-3, -4}, 0.5, {3, 4})");
  }
}

TEST(StablehloProcesses, WhatIsBegunIsMetAtOnce) {
  EXPECT_EQ(Grid(2, 1,
                 Cat(R"(  %f = "stablehlo.async_start"(%x) ({
^bb0(%y: tensor<i32>):
  %g = "stablehlo.all_reduce"(%y) )",
                     kAdd, " {", Group("0, 1"),
                     R"(} : (tensor<i32>) -> tensor<i32>
  stablehlo.return %g : tensor<i32>
}) : (tensor<i32>) -> !stablehlo.future<tensor<i32>>
  %r = "stablehlo.async_done"(%f) : (!stablehlo.future<tensor<i32>>) -> tensor<i32>)")),
            "(10, 10)");
}

TEST(StablehloProcesses, SumsOfWiderNumbers) {
  EXPECT_EQ(Grid(2, 1,
                 Cat(R"(  %r = "stablehlo.all_reduce"(%x) ({
^bb0(%a: tensor<i64>, %b: tensor<i64>):
  %k = stablehlo.constant dense<4294967296> : tensor<i64>
  %p = stablehlo.add %a, %k : tensor<i64>
  %s = stablehlo.add %p, %b : tensor<i64>
  stablehlo.return %s : tensor<i64>
}) {)",
                     Group("0, 1"), "} : (tensor<i32>) -> tensor<i64>"),
                 "tensor<i64>"),
            "(4294967306, 4294967306)");
}

}  // namespace
}  // namespace kiln::stablehlo
