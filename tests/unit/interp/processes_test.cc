// Processes in the evaluator: groups, collectives, channels, queues, and what ends in a failure.
#include <gtest/gtest.h>

#include <algorithm>
#include <thread>

#include "support/interp.h"
#include "support/labels.h"

namespace kiln {
namespace {

using testing::ValueOf;

// Computations that programs call.
constexpr std::string_view kFolds = R"(
add {
  a = s32[] parameter(0)
  b = s32[] parameter(1)
  ROOT s = s32[] add(a, b)
}
min {
  a = s32[] parameter(0)
  b = s32[] parameter(1)
  ROOT s = s32[] minimum(a, b)
}
)";

struct InGrid {
  int64_t replicas = 1, partitions = 1;
  // The lines of a program, which all processes run. It has `x`, 10 * replica + partition, and the
  // same as `v`, of one dimension.
  std::string_view program;
  std::string_view shape;  // of its result
  std::string_view computations = "";
  std::vector<std::string_view> infeed = {};  // of the computations
};

std::string TextOf(const InGrid& g) {
  std::string called, shapes;
  for (int64_t k = 0; k < g.replicas * g.partitions; ++k) {
    called += Cat(k > 0 ? ", " : "", "program");
    shapes += Cat(k > 0 ? ", " : "", g.shape);
  }
  for (std::string_view name : g.infeed) called += Cat(", ", name);
  if (g.replicas * g.partitions > 1) shapes = Cat("(", shapes, ")");
  return Cat("HloModule m\n", kFolds, g.computations, R"(
program {
  replica = u32[] replica-id()
  partition = u32[] partition-id()
  ten = u32[] constant(10)
  tens = u32[] multiply(replica, ten)
  id = u32[] add(tens, partition)
  x = s32[] convert(id)
  v = s32[1] reshape(x)
  start = token[] after-all()
)",
             g.program, "\n}\nENTRY e {\n  ROOT c = ", shapes,
             " custom-call(), custom_call_target=\"interpreter.run_parallel\", "
             "called_computations={",
             called, "}, custom_call_has_side_effect=true, backend_config=\"replicas=", g.replicas,
             " partitions=", g.partitions, " infeed=", g.infeed.size(), "\"\n}");
}

std::string Grid(const InGrid& g, const interp::Options& options = {}) {
  return ValueOf(TextOf(g), {}, options);
}

TEST(InterpProcesses, ResultsAreInTheOrderOfReplicas) {
  EXPECT_EQ(Grid({2, 3, "ROOT r = s32[] negate(x)", "s32[]"}), "(0, -1, -2, -10, -11, -12)");
  EXPECT_EQ(Grid({1, 1, "ROOT r = s32[] negate(x)", "s32[]"}), "0");
}

// --- Groups

constexpr std::string_view kGather2 = "ROOT r = s32[2] all-gather(v), dimensions={0}, ";
constexpr std::string_view kGather4 = "ROOT r = s32[4] all-gather(v), dimensions={0}, ";

TEST(InterpProcesses, WithoutChannelGroupsAreOfReplicas) {
  EXPECT_EQ(Grid({2, 2, Cat(kGather2, "replica_groups={{0,1}}"), "s32[2]"}),
            "({0, 10}, {1, 11}, {0, 10}, {1, 11})");
  EXPECT_EQ(Grid({2, 1, Cat(kGather2, "replica_groups={{1,0}}"), "s32[2]"}), "({10, 0}, {10, 0})");
  EXPECT_EQ(Grid({4, 1, Cat(kGather2, "replica_groups={{0,2},{3,1}}"), "s32[2]"}),
            "({0, 20}, {30, 10}, {0, 20}, {30, 10})");
}

TEST(InterpProcesses, WithAChannelGroupsAreOfReplicasAndAllPartitions) {
  EXPECT_EQ(Grid({2, 2, Cat(kGather4, "channel_id=1, replica_groups={{0,1}}"), "s32[4]"}),
            "({0, 10, 1, 11}, {0, 10, 1, 11}, {0, 10, 1, 11}, {0, 10, 1, 11})");
  EXPECT_EQ(Grid({2, 2, Cat(kGather2, "channel_id=1, replica_groups={{1},{0}}"), "s32[2]"}),
            "({0, 1}, {0, 1}, {10, 11}, {10, 11})");
}

TEST(InterpProcesses, GlobalIdsCountReplicasAndPartitions) {
  EXPECT_EQ(
      Grid({2, 2,
            Cat(kGather2, "channel_id=1, use_global_device_ids=true, replica_groups={{3,0},{1,2}}"),
            "s32[2]"}),
      "({11, 0}, {1, 10}, {1, 10}, {11, 0})");
  EXPECT_EQ(
      Grid({2, 1, Cat(kGather2, "use_global_device_ids=true, replica_groups={{0,1}}"), "s32[2]"}),
      "INVALID_ARGUMENT: custom-call 'c': process (0, 0): all-gather 'r': "
      "use_global_device_ids needs a channel_id");
}

TEST(InterpProcesses, NoGroupsAreOneOfAll) {
  EXPECT_EQ(Grid({2, 2, "ROOT r = s32[2] all-gather(v), dimensions={0}", "s32[2]"}),
            "({0, 10}, {1, 11}, {0, 10}, {1, 11})");
  EXPECT_EQ(Grid({2, 2, "ROOT r = s32[4] all-gather(v), dimensions={0}, channel_id=3", "s32[4]"}),
            "({0, 10, 1, 11}, {0, 10, 1, 11}, {0, 10, 1, 11}, {0, 10, 1, 11})");
  EXPECT_EQ(Grid({2, 2,
                  "ROOT r = s32[4] all-gather(v), dimensions={0}, channel_id=3, "
                  "use_global_device_ids=true",
                  "s32[4]"}),
            "({0, 1, 10, 11}, {0, 1, 10, 11}, {0, 1, 10, 11}, {0, 1, 10, 11})");
  EXPECT_EQ(Grid({2, 2, "ROOT r = s32[] collective-broadcast(x)", "s32[]"}), "(0, 1, 0, 1)");
  EXPECT_EQ(Grid({2, 2, "ROOT r = s32[] collective-broadcast(x), channel_id=1", "s32[]"}),
            "(0, 0, 10, 10)");
}

TEST(InterpProcesses, GroupsMayBeOfDifferentSizes) {
  EXPECT_EQ(Grid({3, 1, "ROOT r = s32[] all-reduce(x), replica_groups={{0,2},{1,-1}}, to_apply=add",
                  "s32[]"}),
            "(20, 10, 20)");
  EXPECT_EQ(Grid({3, 1, Cat(kGather2, "replica_groups={{0,2},{1,-1}}"), "s32[2]"}),
            "INVALID_ARGUMENT: custom-call 'c': process (1, 0): all-gather 'r': the result s32[2] "
            "is not what a group of 1 processes gives");
}

TEST(InterpProcesses, GroupsMustBeOfProcessesThatAreThere) {
  EXPECT_EQ(Grid({2, 1, Cat(kGather2, "replica_groups={{0,2},{1,3}}"), "s32[2]"}),
            "INVALID_ARGUMENT: custom-call 'c': process (0, 0): all-gather 'r': 2 is no number of "
            "one of the 2 replicas or 1 partitions");
  EXPECT_EQ(Grid({3, 1, Cat(kGather2, "replica_groups={{1,2}}"), "s32[2]"}),
            "INVALID_ARGUMENT: custom-call 'c': process (0, 0): all-gather 'r': process (0, 0) is "
            "in no group");
}

// --- Collectives

TEST(InterpProcesses, AllGatherAlongAnyDimension) {
  constexpr std::string_view kProgram = R"(
  i = s32[2,2] iota(), iota_dimension=1
  xs = s32[2,2] broadcast(x), dimensions={}
  m = s32[2,2] add(i, xs)
  f = f32[2,1] constant({{0.5}, {1.5}})
  ROOT r = (s32[2,4], f32[2,2]) all-gather(m, f), dimensions={1}, replica_groups={{0,1}})";
  EXPECT_EQ(Grid({2, 1, kProgram, "s32[2,4], f32[2,2]"}),
            "({ { 0, 1, 10, 11 }, { 0, 1, 10, 11 } }, { { 0.5, 0.5 }, { 1.5, 1.5 } }, "
            "{ { 0, 1, 10, 11 }, { 0, 1, 10, 11 } }, { { 0.5, 0.5 }, { 1.5, 1.5 } })");
}

TEST(InterpProcesses, AllReduceFoldsInTheGroupsOrder) {
  constexpr std::string_view kShift = R"(
shift {
  a = s32[] parameter(0)
  b = s32[] parameter(1)
  k = s32[] constant(100)
  m = s32[] multiply(a, k)
  ROOT s = s32[] add(m, b)
}
calls {
  a = s32[] parameter(0)
  b = s32[] parameter(1)
  ROOT s = s32[] call(a, b), to_apply=shift
}
)";
  for (std::string_view name : {"shift", "calls"}) {
    EXPECT_EQ(
        Grid({3, 1, Cat("ROOT r = s32[] all-reduce(x), replica_groups={{1,2,0}}, to_apply=", name),
              "s32[]", kShift}),
        "(102000, 102000, 102000)");
    EXPECT_EQ(Grid({2, 2,
                    Cat("ROOT r = s32[] all-reduce(x), channel_id=1, replica_groups={{1,0}}, "
                        "to_apply=",
                        name),
                    "s32[]", kShift}),
              "(10001101, 10001101, 10001101, 10001101)");
  }
  EXPECT_EQ(Grid({2, 1,
                  R"(n = s32[] negate(x)
ROOT r = (s32[], s32[], s32[1]) all-reduce(x, n, v), replica_groups={{0,1}}, to_apply=min)",
                  "s32[], s32[], s32[1]"}),
            "(0, -10, {0}, 0, -10, {0})");
}

TEST(InterpProcesses, ReduceScatterGivesEachItsPiece) {
  constexpr std::string_view kProgram = R"(
  i = s32[2,4] iota(), iota_dimension=1
  xs = s32[2,4] broadcast(x), dimensions={}
  m = s32[2,4] add(i, xs)
  ROOT r = s32[2,2] reduce-scatter(m), dimensions={1}, replica_groups={{1,0}}, to_apply=add)";
  EXPECT_EQ(Grid({2, 1, kProgram, "s32[2,2]"}),
            "({ { 14, 16 }, { 14, 16 } }, { { 10, 12 }, { 10, 12 } })");
  EXPECT_EQ(Grid({2, 2,
                  "i = s32[4] iota(), iota_dimension=0\n"
                  "ROOT r = s32[1] reduce-scatter(i), dimensions={0}, channel_id=1, "
                  "use_global_device_ids=true, replica_groups={{0,3,2,1}}, to_apply=min",
                  "s32[1]"}),
            "({0}, {3}, {2}, {1})");
}

TEST(InterpProcesses, AllToAllExchanges) {
  // Operand k goes to the group's process k.
  constexpr std::string_view kProgram = R"(
  h = s32[] constant(100)
  y = s32[] add(x, h)
  a = (s32[], s32[]) all-to-all(x, y), replica_groups={{0,1}})";
  constexpr std::string_view kShape = "s32[], s32[]";
  auto with = [&](std::string_view attributes) {
    return Cat(R"(
  h = s32[] constant(100)
  y = s32[] add(x, h)
  ROOT r = (s32[], s32[]) all-to-all(x, y), )",
               attributes);
  };
  EXPECT_EQ(Grid({2, 1, with("replica_groups={{0,1}}"), kShape}), "(0, 10, 100, 110)");
  EXPECT_EQ(Grid({2, 1, with("replica_groups={{1,0}}"), kShape}), "(110, 100, 10, 0)");
  EXPECT_EQ(Grid({1, 2, with("channel_id=1, replica_groups={{0,1}}"), kShape}), "(0, 1, 100, 101)");
  EXPECT_EQ(Grid({2, 2, with("channel_id=1, replica_groups={{0,1}}"), kShape}),
            "(0, 1, 100, 101, 10, 11, 110, 111)");
  EXPECT_EQ(
      Grid({1, 2, Cat(kProgram, "\nROOT r = s32[] get-tuple-element(a), index=0"), "s32[]"}),
      "INVALID_ARGUMENT: custom-call 'c': process (0, 0): all-to-all 'a.2': 1 is no number of "
      "one of the 1 replicas or 2 partitions");
  EXPECT_EQ(Grid({3, 1, with("replica_groups={{0,1,2}}"), kShape}),
            "INVALID_ARGUMENT: custom-call 'c': process (2, 0): all-to-all 'r': has 2 operands for "
            "a group of 3 processes");
}

TEST(InterpProcesses, BroadcastIsOfTheFirst) {
  auto with = [](std::string_view attributes) {
    return Cat("ROOT r = s32[] collective-broadcast(x), ", attributes);
  };
  EXPECT_EQ(Grid({4, 1, with("replica_groups={{2,1}}"), "s32[]"}), "(0, 20, 20, 0)");
  EXPECT_EQ(Grid({2, 2, with("replica_groups={{1,0}}"), "s32[]"}), "(10, 11, 10, 11)");
  EXPECT_EQ(Grid({2, 2, with("channel_id=1, replica_groups={{1,0}}"), "s32[]"}), "(1, 1, 11, 11)");
  EXPECT_EQ(Grid({1, 3, with("channel_id=1, replica_groups={{2},{0}}"), "s32[]"}), "(0, 0, 2)");
}

TEST(InterpProcesses, PermuteGoesFromSourceToTarget) {
  auto with = [](std::string_view attributes) {
    return Cat("ROOT r = s32[] collective-permute(x), ", attributes);
  };
  EXPECT_EQ(Grid({3, 1, with("source_target_pairs={{0,1},{1,2},{2,0}}"), "s32[]"}), "(20, 0, 10)");
  EXPECT_EQ(Grid({3, 1, with("source_target_pairs={{2,1}}"), "s32[]"}), "(0, 20, 0)");
  EXPECT_EQ(Grid({2, 1, with("source_target_pairs={{1,1}}"), "s32[]"}), "(0, 10)");
  EXPECT_EQ(Grid({2, 2, with("source_target_pairs={{0,1},{1,0}}"), "s32[]"}), "(10, 11, 0, 1)");
  EXPECT_EQ(Grid({2, 2, with("channel_id=1, source_target_pairs={{0,1}}"), "s32[]"}),
            "(0, 0, 0, 10)");
}

TEST(InterpProcesses, CollectivesWhoseResultsAreNotNeededAreMet) {
  // One of the two has use for what both make, also inside of a call.
  constexpr std::string_view kOther = R"(
sum {
  p = s32[] parameter(0)
  ROOT s = s32[] all-reduce(p), replica_groups={{0,1}}, to_apply=add
}
other {
  k = s32[] constant(5)
  dead = s32[] call(k), to_apply=sum
  ROOT z = s32[] constant(0)
}
)";
  std::string text = TextOf({2, 1, "ROOT r = s32[] call(x), to_apply=sum", "s32[]", kOther});
  text.replace(text.find("{program, program}"), 18, "{program, other}");
  EXPECT_EQ(ValueOf(text), "(5, 0)");
}

TEST(InterpProcesses, LoopsMeetAgainAndAgain) {
  constexpr std::string_view kLoop = R"(
go_on {
  p = (s32[], s32[]) parameter(0)
  n = s32[] get-tuple-element(p), index=0
  most = s32[] constant(50)
  ROOT go = pred[] compare(n, most), direction=LT
}
turn {
  p = (s32[], s32[]) parameter(0)
  n = s32[] get-tuple-element(p), index=0
  s = s32[] get-tuple-element(p), index=1
  one = s32[] constant(1)
  m = s32[] add(n, one)
  t = s32[] all-reduce(s), replica_groups={{0,1,2}}, to_apply=min
  u = s32[] add(t, one)
  ROOT r = (s32[], s32[]) tuple(m, u)
}
)";
  EXPECT_EQ(Grid({3, 1,
                  R"(zero = s32[] constant(0)
init = (s32[], s32[]) tuple(zero, x)
loop = (s32[], s32[]) while(init), condition=go_on, body=turn
ROOT r = s32[] get-tuple-element(loop), index=1)",
                  "s32[]", kLoop}),
            "(50, 50, 50)");
}

TEST(InterpProcesses, OperandsOfAGroupAgree) {
  std::string text = TextOf({2, 1, "ROOT r = s32[] all-reduce(x), to_apply=add", "s32[]",
                             R"(other {
  k = s32[3] iota(), iota_dimension=0
  dead = s32[3] all-reduce(k), to_apply=add
  ROOT z = s32[] constant(0)
}
)"});
  text.replace(text.find("{program, program}"), 18, "{program, other}");
  EXPECT_EQ(ValueOf(text),
            "INVALID_ARGUMENT: custom-call 'c': process (1, 0): all-reduce 'dead': the operands "
            "are of other shapes than those of process (0, 0)");
}

// --- Channels

// Both send before they receive.
constexpr std::string_view kExchange = R"(
  s = (s32[], u32[], token[]) send(x, start), channel_id=$C, source_target_pairs=$P
  done = token[] send-done(s), channel_id=$C
  q = (s32[], u32[], token[]) recv(done), channel_id=$C, source_target_pairs=$P
  w = (s32[], token[]) recv-done(q), channel_id=$C
  ROOT r = s32[] get-tuple-element(w), index=0)";

std::string Exchange(std::string_view channel, std::string_view pairs) {
  std::string text(kExchange);
  auto put = [&](std::string_view mark, std::string_view by) {
    for (size_t at; (at = text.find(mark)) != text.npos;) text.replace(at, mark.size(), by);
  };
  if (pairs.empty()) put(", source_target_pairs=$P", "");
  put("$P", pairs);
  put("$C", channel);
  return text;
}

TEST(InterpProcesses, MessagesGoBySourceAndTarget) {
  EXPECT_EQ(Grid({2, 1, Exchange("1", "{{0,1},{1,0}}"), "s32[]"}), "(10, 0)");
  EXPECT_EQ(Grid({1, 3, Exchange("7", "{{0,1},{1,2},{2,0}}"), "s32[]"}), "(2, 0, 1)");
  EXPECT_EQ(Grid({2, 2, Exchange("1", "{{0,3},{3,1}}"), "s32[]"}), "(0, 11, 0, 0)");
  // A process hears itself, if nobody else is first.
  EXPECT_EQ(Grid({1, 1, Exchange("1", ""), "s32[]"}), "0");
  EXPECT_EQ(Grid({2, 1, Exchange("1", "{{0,1},{1,5}}"), "s32[]"}),
            "FAILED_PRECONDITION: custom-call 'c': what process (1, 0) has sent by channel 1 was "
            "not taken");
}

// A program sends three messages by two channels, the other one asks for them in another order.
TEST(InterpProcesses, MessagesOfAChannelStayInOrder) {
  for (std::string_view host : {"", ", is_host_transfer=true"}) {
    const std::string computations = Cat(R"(
sends {
  start = token[] after-all()
  a = f32[2] constant({1, 2})
  b = s32[] constant(3)
  c = f32[2] constant({4, 5})
  one = (f32[2], u32[], token[]) send(a, start), channel_id=1)",
                                         host, R"(
  one_done = token[] send-done(one), channel_id=1
  pair = (s32[], f32[2]) tuple(b, c)
  two = ((s32[], f32[2]), u32[], token[]) send(pair, one_done), channel_id=2
  two_done = token[] send-done(two), channel_id=2
  three = (f32[2], u32[], token[]) send(c, two_done), channel_id=1
  three_done = token[] send-done(three), channel_id=1
  ROOT r = () tuple()
}
asks {
  start = token[] after-all()
  two = ((s32[], f32[2]), u32[], token[]) recv(start), channel_id=2
  two_done = ((s32[], f32[2]), token[]) recv-done(two), channel_id=2
  t = token[] get-tuple-element(two_done), index=1
  one = (f32[2], u32[], token[]) recv(t), channel_id=1
  three = (f32[2], u32[], token[]) recv(t), channel_id=1
  three_done = (f32[2], token[]) recv-done(three), channel_id=1
  one_done = (f32[2], token[]) recv-done(one), channel_id=1
  x = f32[2] get-tuple-element(one_done), index=0
  y = (s32[], f32[2]) get-tuple-element(two_done), index=0
  b = s32[] get-tuple-element(y), index=0
  z = f32[2] get-tuple-element(three_done), index=0
  ROOT r = (f32[2], s32[], f32[2]) tuple(x, b, z)
}
)");
    for (bool asks_first : {false, true}) {
      std::string text = TextOf({1, 2, "ROOT r = s32[] negate(x)", "s32[]", computations});
      text.replace(text.find("{program, program}"), 18,
                   asks_first ? "{asks, sends}" : "{sends, asks}");
      text.replace(text.find("(s32[], s32[]) custom-call"), 14, "(f32[2], s32[], f32[2])");
      EXPECT_EQ(ValueOf(text), "({1, 2}, 3, {4, 5})");
    }
  }
}

TEST(InterpProcesses, MessagesThatDoNotFit) {
  EXPECT_EQ(Grid({1, 1,
                  R"(s = (s32[], u32[], token[]) send(x, start), channel_id=1
q = (f32[], u32[], token[]) recv(start), channel_id=1
w = (f32[], token[]) recv-done(q), channel_id=1
ROOT r = f32[] get-tuple-element(w), index=0)",
                  "f32[]"}),
            "INVALID_ARGUMENT: custom-call 'c': process (0, 0): recv-done 'w': s32[] was sent; "
            "expected f32[]");
  EXPECT_EQ(
      Grid({1, 1,
            R"(one = u32[] constant(1)
q = (s32[], u32[], token[]) tuple(x, one, start)
w = (s32[], token[]) recv-done(q), channel_id=1
ROOT r = s32[] get-tuple-element(w), index=0)",
            "s32[]"}),
      "INVALID_ARGUMENT: custom-call 'c': process (0, 0): recv-done 'w': its operand is of no "
      "recv, or of one that is done");
}

// An endless loop around some lines.
std::string Endless(std::string_view lines) {
  return Cat(R"(
for_ever {
  p = s32[] parameter(0)
  ROOT go = pred[] constant(true)
}
turn {
  p = s32[] parameter(0)
  start = token[] after-all()
)",
             lines, "\n  ROOT r = s32[] negate(p)\n}\n");
}
constexpr std::string_view kLoop = "ROOT r = s32[] while(x), condition=for_ever, body=turn";

TEST(InterpProcesses, MessagesThatNobodyTakesAreBounded) {
  EXPECT_EQ(Grid({1, 2, kLoop, "s32[]",
                  Endless("  m = (s32[], u32[], token[]) send(p, start), channel_id=1")}),
            "FAILED_PRECONDITION: custom-call 'c': all processes that have not ended wait: process "
            "(0, 0) in send 'm', as 1024 messages are not taken; process (0, 1) in send 'm', as "
            "1024 messages are not taken");
  EXPECT_EQ(
      Grid({1, 1, kLoop, "s32[]",
            Endless("  m = (s32[], u32[], token[]) recv(start), channel_id=1")}),
      "RESOURCE_EXHAUSTED: custom-call 'c': process (0, 0): recv 'm': more than 1024 messages "
      "are asked for and not taken");
}

// --- Queues

constexpr std::string_view kQueue = R"(
first {
  ROOT k = s32[2] constant({1, 2})
}
second {
  i = s32[2] iota(), iota_dimension=0
  ROOT n = s32[2] negate(i)
}
)";
constexpr std::string_view kInfeed = R"(
  q = (s32[2], token[]) infeed(start)
  ROOT r = s32[2] get-tuple-element(q), index=0)";

TEST(InterpProcesses, InfeedsTakeTheQueueInOrder) {
  constexpr std::string_view kTwice = R"(
  p = (s32[2], token[]) infeed(start)
  t = token[] get-tuple-element(p), index=1
  q = (s32[2], token[]) infeed(t)
  a = s32[2] get-tuple-element(q), index=0
  b = s32[2] get-tuple-element(p), index=0
  ROOT r = (s32[2], s32[2]) tuple(a, b))";
  EXPECT_EQ(Grid({1, 1, kTwice, "(s32[2], s32[2])", kQueue, {"first", "second"}}),
            "({0, -1}, {1, 2})");
  EXPECT_EQ(Grid({1, 2, kInfeed, "s32[2]", kQueue, {"second", "first"}}), "({0, -1}, {1, 2})");
  EXPECT_EQ(Grid({1, 2, kInfeed, "s32[2]", kQueue, {"first"}}),
            "FAILED_PRECONDITION: custom-call 'c': process (0, 1): infeed 'q': the queue is empty");
  EXPECT_EQ(Grid({1, 1, kInfeed, "s32[2]", "one {\n  ROOT k = s32[] constant(1)\n}\n", {"one"}}),
            "INVALID_ARGUMENT: custom-call 'c': process (0, 0): infeed 'q': the queue has s32[]; "
            "expected s32[2]");
}

TEST(InterpProcesses, OutfeedsGoNowhere) {
  EXPECT_EQ(Grid({2, 1, "o = token[] outfeed(v, start)\nROOT r = s32[] negate(x)", "s32[]"}),
            "(0, -10)");
}

// --- Failures

TEST(InterpProcesses, AllWaiting) {
  // Each begins with a channel of its own.
  constexpr std::string_view kCrossed = R"(
one {
  p = s32[] parameter(0)
  ROOT t = s32[] all-reduce(p), channel_id=1, replica_groups={{0}}, to_apply=add
}
two {
  p = s32[] parameter(0)
  ROOT u = s32[] all-reduce(p), channel_id=2, replica_groups={{0}}, to_apply=add
}
)";
  EXPECT_EQ(Grid({1, 2,
                  R"(k = s32[] constant(1)
first = pred[] compare(x, k), direction=LT
ROOT r = s32[] conditional(first, x, x), true_computation=one, false_computation=two)",
                  "s32[]", kCrossed}),
            "FAILED_PRECONDITION: custom-call 'c': all processes that have not ended wait: process "
            "(0, 0) in all-reduce 't' for process (0, 1); process (0, 1) in all-reduce 'u' for "
            "process (0, 0)");
}

TEST(InterpProcesses, WaitingForOneThatHasEnded) {
  std::string text = TextOf({2, 2, "ROOT r = s32[] all-reduce(x), channel_id=1, to_apply=add",
                             "s32[]", "other {\n  ROOT z = s32[] constant(0)\n}\n"});
  text.replace(text.find("{program, program, program, program}"), 36,
               "{program, other, program, other}");
  EXPECT_EQ(ValueOf(text),
            "FAILED_PRECONDITION: custom-call 'c': all processes that have not ended wait: process "
            "(0, 0) in all-reduce 'r' for process (0, 1), process (1, 1); process (1, 0) in "
            "all-reduce 'r' for process (0, 1), process (1, 1)");
  EXPECT_EQ(Grid({1, 1,
                  R"(q = (s32[], u32[], token[]) recv(start), channel_id=1
w = (s32[], token[]) recv-done(q), channel_id=1
ROOT r = s32[] get-tuple-element(w), index=0)",
                  "s32[]"}),
            "FAILED_PRECONDITION: custom-call 'c': all processes that have not ended wait: process "
            "(0, 0) in recv-done 'w' for channel 1");
}

TEST(InterpProcesses, OneThatFailsEndsAll) {
  std::string text =
      TextOf({3, 1, "ROOT r = s32[] all-reduce(x), to_apply=add", "s32[]",
              "other {\n  ROOT z = s32[] custom-call(), custom_call_target=\"absent\"\n}\n"});
  text.replace(text.find("{program, program, program}"), 27, "{program, other, program}");
  EXPECT_EQ(ValueOf(text),
            "NOT_FOUND: custom-call 'c': process (1, 0): custom-call 'z': no function is "
            "registered for the target 'absent'");
}

TEST(InterpProcesses, InstructionsOfAllAreCounted) {
  interp::Options options;
  options.max_work = 100000;
  EXPECT_EQ(Grid({1, 2, kLoop, "s32[]", Endless("")}, options),
            "DEADLINE_EXCEEDED: custom-call 'c': process (0, 0): evaluation takes more work than "
            "100000");
  EXPECT_EQ(
      Grid({1, 2, kLoop, "s32[]", Endless("  s = s32[] all-reduce(p), channel_id=1, to_apply=add")},
           options)
          .substr(0, 18),
      "DEADLINE_EXCEEDED:");
}

TEST(InterpProcesses, AsManyAsAllowed) {
  const std::string sum =
      Grid({16, 16, "ROOT r = s32[] all-reduce(x), channel_id=1, to_apply=add", "s32[]"});
  EXPECT_EQ(std::ranges::count(sum, ','), 255);
  EXPECT_EQ(sum.substr(0, 14), "(21120, 21120,");
  EXPECT_EQ(Grid({257, 1, "ROOT r = s32[] negate(x)", "s32[]"}),
            "RESOURCE_EXHAUSTED: custom-call 'c': 257 times 1 processes are more than 256");
}

// Each of two processes runs a grid of its own, of `inner` ones.
std::string Nested(int64_t inner) {
  std::string called = "inner", shapes = "u32[]";
  for (int64_t k = 1; k < inner; ++k) called += ", inner", shapes += ", u32[]";
  return Cat("ROOT r = (", shapes,
             ") custom-call(), custom_call_target=\"interpreter.run_parallel\", "
             "called_computations={",
             called, "}, backend_config=\"replicas=", inner, " partitions=1 infeed=0\"");
}
constexpr std::string_view kInner = R"(
inner {
  p = u32[] replica-id()
  ROOT n = u32[] collective-permute(p), source_target_pairs={{0,1},{1,0}}
}
)";

TEST(InterpProcesses, GridsInsideOfOthers) {
  EXPECT_EQ(Grid({2, 1, Nested(2), "u32[], u32[]", kInner}), "(1, 0, 1, 0)");
  std::string shapes = "u32[]";
  for (int k = 1; k < 255; ++k) shapes += ", u32[]";
  EXPECT_EQ(Grid({2, 1, Nested(255), shapes, kInner}),
            "RESOURCE_EXHAUSTED: custom-call 'c': process (0, 0): custom-call 'r': grids inside of "
            "others have more than 256 processes");
}

TEST(InterpProcesses, MistakesInCalls) {
  const std::string text = TextOf(
      {2, 1, "ROOT r = s32[] negate(x)", "s32[]", "takes {\n  ROOT p = s32[] parameter(0)\n}\n"});
  auto with = [&](std::string_view what, std::string_view by) {
    std::string changed = text;
    changed.replace(changed.find(what), what.size(), by);
    return ValueOf(changed);
  };
  EXPECT_EQ(with("replicas=2", "replicas=0"),
            "INVALID_ARGUMENT: custom-call 'c': the config must say replicas, at least 1");
  EXPECT_EQ(with("replicas=2 ", "replicas=9223372036854775807 "),
            "RESOURCE_EXHAUSTED: custom-call 'c': 9223372036854775807 times 1 processes are more "
            "than 256");
  EXPECT_EQ(with("replicas=2", "replicas=3"),
            "INVALID_ARGUMENT: custom-call 'c': calls 2 computations; expected 3 programs and 0 of "
            "the queue");
  EXPECT_EQ(with("infeed=0", "infeed=1"),
            "INVALID_ARGUMENT: custom-call 'c': calls 2 computations; expected 2 programs and 1 of "
            "the queue");
  EXPECT_EQ(with("{program, program}", "{program, takes}"),
            "INVALID_ARGUMENT: custom-call 'c': has 0 operands, too few for all programs");
  EXPECT_EQ(with("(s32[], s32[]) custom-call", "(s32[], f32[]) custom-call"),
            "INVALID_ARGUMENT: custom-call 'c': the programs give (s32[], s32[]); expected (s32[], "
            "f32[])");
}

// --- What the evaluation around them has

TEST(InterpProcesses, TheUsersFunctionsAreCalledOnHisThread) {
  const std::thread::id own = std::this_thread::get_id();
  int calls = 0, foreign = 0;
  interp::Options options;
  options.custom_call =
      [&](const interp::CalledFunction&,
          std::span<const Literal* const> operands) -> Result<std::vector<Literal>> {
    ++calls;
    foreign += std::this_thread::get_id() != own ? 1 : 0;
    return std::vector<Literal>(1, *operands[0]);
  };
  constexpr std::string_view kProgram = R"(
  s = s32[] all-reduce(x), to_apply=add
  ROOT r = s32[] custom-call(s), custom_call_target="own")";
  EXPECT_EQ(Grid({3, 1, kProgram, "s32[]"}, options), "(30, 30, 30)");
  EXPECT_EQ(calls, 3);
  // From grids inside of others, too.
  constexpr std::string_view kCalling = R"(
inner {
  p = u32[] replica-id()
  ROOT n = u32[] custom-call(p), custom_call_target="own"
}
)";
  EXPECT_EQ(Grid({2, 1, Nested(2), "u32[], u32[]", kCalling}, options), "(0, 1, 0, 1)");
  EXPECT_EQ(calls, 7);
  EXPECT_EQ(foreign, 0);
}

TEST(InterpProcesses, ProbesAndPrintsAreOfTheWholeEvaluation) {
  std::string printed;
  interp::Options options;
  options.print = [&](std::string_view text) { printed += Cat(text, ";"); };
  constexpr std::string_view kProgram = R"(
  p = () custom-call(x), custom_call_target="interpreter.print", custom_call_has_side_effect=true
  s = s32[] all-reduce(x), to_apply=add
  q = () custom-call(s), custom_call_target="interpreter.print", custom_call_has_side_effect=true
  t = s32[] custom-call(x), custom_call_target="interpreter.probe", backend_config="probe_id=p"
  k = s32[] constant(10)
  u = s32[] all-reduce(t), to_apply=add
  e = () custom-call(k), custom_call_target="check.expect_serialized_eq",
      custom_call_has_side_effect=true, backend_config="iter=0 probe_id=p"
  ROOT r = s32[] negate(u))";
  // Who comes last to a meeting goes on first.
  EXPECT_EQ(Grid({2, 1, kProgram, "s32[]"}, options), "(-10, -10)");
  EXPECT_EQ(printed, "0;10;10;10;");
}

// --- One process alone

std::string Alone(std::string_view lines) {
  return ValueOf(Cat("HloModule m\n", kFolds, "ENTRY e {\n  x = s32[2] constant({3, 4})\n",
                     "  start = token[] after-all()\n  ", lines, "\n}\n"));
}

TEST(InterpProcesses, OneAloneIsReplica0OfPartition0) {
  EXPECT_EQ(Alone("ROOT r = u32[] replica-id()"), "0");
  EXPECT_EQ(Alone("ROOT r = u32[] partition-id()"), "0");
  EXPECT_EQ(Alone("ROOT r = s32[2] all-gather(x), dimensions={0}, replica_groups={{0}}"), "{3, 4}");
  EXPECT_EQ(Alone("ROOT r = s32[2] all-reduce(x), to_apply=add"), "{3, 4}");
  EXPECT_EQ(Alone("ROOT r = s32[2] reduce-scatter(x), dimensions={0}, channel_id=1, "
                  "use_global_device_ids=true, replica_groups={{0},{1}}, to_apply=add"),
            "{3, 4}");
  EXPECT_EQ(Alone("ROOT r = (s32[2]) all-to-all(x), replica_groups={{0}}"), "({3, 4})");
  EXPECT_EQ(Alone("ROOT r = s32[2] collective-broadcast(x), replica_groups={{0,1}}"), "{3, 4}");
  EXPECT_EQ(Alone("ROOT r = s32[2] collective-broadcast(x), replica_groups={{1,2}}"), "{0, 0}");
  EXPECT_EQ(Alone("ROOT r = s32[2] collective-permute(x), source_target_pairs={{0,0}}"), "{3, 4}");
  EXPECT_EQ(Alone("ROOT r = s32[2] collective-permute(x), source_target_pairs={{0,1}}"), "{0, 0}");
}

TEST(InterpProcesses, SizesMustBeKnown) {
  EXPECT_EQ(Alone("ROOT r = s32[<=4] all-gather(x), dimensions={0}, replica_groups={{0}}"),
            "UNIMPLEMENTED: all-gather: the evaluator has no code for shape s32[<=4]");
}

TEST(InterpProcesses, OneAloneHasNoOthers) {
  constexpr std::string_view kOthers = "needs other processes; one process alone has none";
  EXPECT_EQ(Alone("ROOT r = s32[4] all-gather(x), dimensions={0}, replica_groups={{0,1}}"),
            Cat("UNIMPLEMENTED: all-gather: 'r' ", kOthers));
  EXPECT_EQ(Alone("ROOT r = s32[2] all-reduce(x), replica_groups={{1}}, to_apply=add"),
            Cat("UNIMPLEMENTED: all-reduce: 'r' ", kOthers));
  EXPECT_EQ(Alone("ROOT r = s32[2] collective-broadcast(x), replica_groups={{1,0}}"),
            Cat("UNIMPLEMENTED: collective-broadcast: 'r' ", kOthers));
  EXPECT_EQ(Alone("ROOT r = s32[2] collective-permute(x), source_target_pairs={{1,0}}"),
            Cat("UNIMPLEMENTED: collective-permute: 'r' ", kOthers));
  // The reader makes up other values.
  EXPECT_EQ(Alone("ROOT r = (s32[<=2], token[]) infeed(start)"),
            "UNIMPLEMENTED: infeed: the evaluator has no code for shape (s32[<=2], token[])");
  EXPECT_EQ(Alone("ROOT r = token[] outfeed(x, start)"),
            "UNIMPLEMENTED: outfeed: 'r' needs a queue; one process alone has none");
  EXPECT_EQ(Alone("ROOT r = (s32[2], u32[], token[]) send(x, start), channel_id=1"),
            "UNIMPLEMENTED: send: 'r' needs a channel; one process alone has none");
  EXPECT_EQ(Alone("ROOT r = (s32[2], u32[], token[]) recv(start), channel_id=1"),
            "UNIMPLEMENTED: recv: 'r' needs a channel; one process alone has none");
}

KILN_LABEL(text, "InterpProcesses.ProbesAndPrintsAreOfTheWholeEvaluation");

}  // namespace
}  // namespace kiln
