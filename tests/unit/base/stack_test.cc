// Work on stacks of the library's own.
#include "base/stack.h"

#include <gtest/gtest.h>
#include <pthread.h>

#include <cstring>
#include <new>
#include <stdexcept>
#include <thread>
#include <vector>

namespace kiln {
namespace {

// Uses about so many bytes of stack.
__attribute__((noinline)) int Deep(size_t bytes) {
  char frame[4096];
  std::memset(frame, static_cast<int>(bytes), sizeof frame);
  if (bytes <= sizeof frame) return frame[17];
  const int below = Deep(bytes - sizeof frame);
  return below + frame[bytes % sizeof frame];
}

bool IsNear(const void* a, const void* b) {
  const auto distance = static_cast<const char*>(a) - static_cast<const char*>(b);
  return distance > -(1 << 17) && distance < (1 << 17);
}

TEST(OwnStack, IsDeepOnSmallThreads) {
  pthread_attr_t attributes;
  pthread_attr_init(&attributes);
  pthread_attr_setstacksize(&attributes, 128 << 10);
  pthread_t thread;
  ASSERT_EQ(pthread_create(
                &thread, &attributes,
                [](void*) -> void* {
                  bool ran = false;
                  EXPECT_TRUE(OnOwnStack([&] {
                                Deep(kOwnStackBytes / 2);
                                // Within such work nothing changes.
                                int outer = 0;
                                EXPECT_TRUE(OnOwnStack([&] {
                                              int inner = 0;
                                              EXPECT_TRUE(IsNear(&outer, &inner));
                                              ran = true;
                                            }).ok());
                              }).ok());
                  EXPECT_TRUE(ran);
                  return nullptr;
                },
                nullptr),
            0);
  pthread_join(thread, nullptr);
  pthread_attr_destroy(&attributes);
}

TEST(OwnStack, HandsExceptionsOn) {
  for (int round = 0; round < 3; ++round) {
    EXPECT_THROW((void)OnOwnStack([] { throw std::bad_alloc(); }), std::bad_alloc);
    try {
      throw std::runtime_error("outside");
    } catch (const std::runtime_error& e) {
      EXPECT_THROW((void)OnOwnStack([] { throw std::logic_error("inside"); }), std::logic_error);
      EXPECT_STREQ(e.what(), "outside");
    }
  }
}

TEST(OwnStack, CallsUsersOnTheirStack) {
  int here = 0;
  bool near = false, far = false, thrown = false;
  EXPECT_TRUE(OnOwnStack([&] {
                int inside = 0;
                far = kHasOwnStacks == !IsNear(&here, &inside);
                OnCallersStack([&] {
                  int there = 0;
                  near = IsNear(&here, &there);
                  // A call of the library again.
                  EXPECT_TRUE(OnOwnStack([] { Deep(1 << 20); }).ok());
                });
                try {
                  OnCallersStack([] { throw std::runtime_error("the user's"); });
                } catch (const std::runtime_error&) {
                  thrown = true;
                }
              }).ok());
  EXPECT_TRUE(near && far && thrown);
}

TEST(OwnStack, IsAbandoned) {
  if (!kHasOwnStacks) GTEST_SKIP() << "no fibers on this machine";
  EXPECT_FALSE(IsAbandonable());
  for (int round = 0; round < 20; ++round) {
    bool unwound = false, went_on = false;
    struct Sentinel {
      ~Sentinel() { *unwound = true; }
      bool* unwound;
    };
    Status outer = OnOwnStack([&] {
      EXPECT_FALSE(IsAbandonable());
      Status inner = RunAbandonable([&] {
        Sentinel sentinel{&unwound};
        EXPECT_TRUE(IsAbandonable());
        OnCallersStack([] { EXPECT_FALSE(IsAbandonable()); });
        Abandon(Internal("given up"));
      });
      EXPECT_EQ(inner.ToString(), "INTERNAL: given up");
      EXPECT_FALSE(IsAbandonable());
      went_on = true;
    });
    EXPECT_TRUE(outer.ok());
    EXPECT_TRUE(went_on);
    EXPECT_FALSE(unwound);
  }
}

TEST(OwnStack, OnManyThreads) {
  std::vector<std::thread> threads;
  for (int t = 0; t < 16; ++t) {
    threads.emplace_back([t] {
      for (int round = 0; round < 50; ++round) {
        EXPECT_TRUE(OnOwnStack([&] { Deep(static_cast<size_t>(t + 1) << 12); }).ok());
      }
    });
  }
  for (std::thread& t : threads) t.join();
}

}  // namespace
}  // namespace kiln
