#include "passes/transfers.h"

#include <gtest/gtest.h>

#include "ir/verifier.h"
#include "support/interp.h"
#include "support/labels.h"

namespace kiln::passes {
namespace {

// The value of an entry computation where one process runs it, or the error.
std::string Alone(std::string_view body) {
  auto module = ir::ParseOrDie(
      Cat("ENTRY e { x = f32[2] constant({1,2})\nt = token[] after-all()\n", body, " }"));
  ResolveTransfers(*module);
  EXPECT_TRUE(ir::Verify(*module).ok()) << ir::Verify(*module).ToString();
  return testing::ValueOf(ir::ToHloText(*module));
}

TEST(Transfers, OneProcessSendsToItself) {
  constexpr std::string_view kSend =
      "s = (f32[2], u32[], token[]) send(n, t), channel_id=1\n"
      "sd = token[] send-done(s), channel_id=1\n";
  constexpr std::string_view kRecv =
      "r = (f32[2], u32[], token[]) recv(t), channel_id=1\n"
      "rd = (f32[2], token[]) recv-done(r), channel_id=1\n"
      "v = f32[2] get-tuple-element(rd), index=0\n";
  EXPECT_EQ(Alone(Cat("n = f32[2] negate(x)\n", kSend, kRecv, "ROOT a = f32[2] add(v, v)")),
            "{-2, -4}");
  // Also where what is sent is made later.
  EXPECT_EQ(Alone(Cat(kRecv, "n = f32[2] negate(x)\n", kSend, "ROOT a = f32[2] add(v, v)")),
            "{-2, -4}");
  // But not where it is made of what is received.
  EXPECT_NE(Alone(Cat(kRecv, "n = f32[2] negate(v)\n", kSend, "ROOT a = f32[2] add(v, n)"))
                .find("UNIMPLEMENTED"),
            std::string::npos);
}

TEST(Transfers, PairsOfProcesses) {
  auto recv = [](std::string_view pairs) {
    return Cat("r = (f32[2], u32[], token[]) recv(t), channel_id=1, ", pairs,
               "\nrd = (f32[2], token[]) recv-done(r), channel_id=1\n"
               "ROOT v = f32[2] get-tuple-element(rd), index=0");
  };
  EXPECT_EQ(Alone(recv("source_target_pairs={{0,1}}")), "{0, 0}");
  EXPECT_EQ(Alone(recv("frontend_attributes={_xla_send_recv_source_target_pairs={{1,2}}}")),
            "{0, 0}");
  EXPECT_NE(Alone(recv("source_target_pairs={{1,0}}")).find("UNIMPLEMENTED"), std::string::npos);
  EXPECT_EQ(Alone("s = (f32[2], u32[], token[]) send(x, t), channel_id=1, "
                  "source_target_pairs={{1,0}}\nROOT d = token[] send-done(s), channel_id=1"),
            "token");
  EXPECT_NE(Alone("s = (f32[2], u32[], token[]) send(x, t), channel_id=1, "
                  "source_target_pairs={{0,1}}\nROOT d = token[] send-done(s), channel_id=1")
                .find("UNIMPLEMENTED"),
            std::string::npos);
}

TEST(Transfers, Queues) {
  EXPECT_EQ(Alone("o = token[] outfeed(x, t)\nROOT n = f32[2] negate(x)"), "{-1, -2}");
  EXPECT_EQ(Alone("o = token[] outfeed(x, t)\ni = (f32[2], token[]) infeed(o)\n"
                  "ROOT v = f32[2] get-tuple-element(i), index=0"),
            "{1, 2}");
  // The reader makes up other values.
  EXPECT_NE(Alone("i = (f32[<=2], token[]) infeed(t)\n"
                  "ROOT v = f32[<=2] get-tuple-element(i), index=0")
                .find("UNIMPLEMENTED"),
            std::string::npos);
}

}  // namespace
}  // namespace kiln::passes
