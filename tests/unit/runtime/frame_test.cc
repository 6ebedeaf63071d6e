// The interface between generated code and the library. Saved programs have code of earlier
// libraries: if something here no longer compiles or holds, raise KILN_FRAME_VERSION, and make this
// say what it is now. So does a change of what a function of the table does.
#include "frame/frame.h"

#include <gtest/gtest.h>

#include <cstddef>
#include <type_traits>

namespace kiln {
namespace {

TEST(Frame, ItsLayoutIsThatOfItsVersion) {
  static_assert(KILN_FRAME_VERSION == 3);
  const kiln_frame frame{};
  // All members.
  const auto& [buffers, table, trace, cancel, host, threads, reserved] = frame;
  const auto at = [&](const void* member) {
    return static_cast<const std::byte*>(member) - reinterpret_cast<const std::byte*>(&frame);
  };
  EXPECT_EQ(at(&buffers), 8 * KILN_FRAME_BUFFERS);
  EXPECT_EQ(at(&table), 8 * KILN_FRAME_TABLE);
  EXPECT_EQ(at(&trace), 8 * KILN_FRAME_TRACE);
  EXPECT_EQ(at(&cancel), 8 * KILN_FRAME_CANCEL);
  EXPECT_EQ(at(&host), 8 * KILN_FRAME_HOST);
  EXPECT_EQ(at(&threads), 8 * KILN_FRAME_THREADS);
  EXPECT_EQ(at(&reserved), 44);
  EXPECT_EQ(KILN_FRAME_THREADS, 5);
}

TEST(Frame, ItsTableIsThatOfItsVersion) {
  const kiln_frame_table table{};
  const auto& [parallel_for, call, trace_begin, trace_end, fail, launch] = table;
  const auto at = [&](const auto& member) {
    return reinterpret_cast<const std::byte*>(&member) - reinterpret_cast<const std::byte*>(&table);
  };
  EXPECT_EQ(at(parallel_for), 8 * KILN_TABLE_PARALLEL_FOR);
  EXPECT_EQ(at(call), 8 * KILN_TABLE_CALL);
  EXPECT_EQ(at(trace_begin), 8 * KILN_TABLE_TRACE_BEGIN);
  EXPECT_EQ(at(trace_end), 8 * KILN_TABLE_TRACE_END);
  EXPECT_EQ(at(fail), 8 * KILN_TABLE_FAIL);
  EXPECT_EQ(at(launch), 8 * KILN_TABLE_LAUNCH);
  EXPECT_EQ(KILN_TABLE_LAUNCH, 5);
  using Frame = const kiln_frame*;
  static_assert(std::is_same_v<kiln_entry_fn, int32_t (*)(Frame)>);
  static_assert(std::is_same_v<kiln_kernel_fn, void (*)(Frame, void* const*, int64_t, int64_t)>);
  static_assert(
      std::is_same_v<decltype(table.parallel_for),
                     void (*)(Frame, kiln_kernel_fn, void* const*, int64_t, int64_t, int64_t)>);
  static_assert(std::is_same_v<decltype(table.call),
                               int32_t (*)(Frame, int32_t, void* const*, const void*, int64_t)>);
  static_assert(std::is_same_v<decltype(table.trace_begin), void (*)(Frame, int32_t)>);
  static_assert(std::is_same_v<decltype(table.trace_end), void (*)(Frame, int32_t)>);
  static_assert(
      std::is_same_v<decltype(table.fail), int32_t (*)(Frame, int32_t, const char*, int64_t)>);
  static_assert(
      std::is_same_v<decltype(table.launch),
                     int32_t (*)(Frame, void**, const kiln_kernel_fn*, const int64_t*, int64_t)>);
}

TEST(Frame, TheDataOfALaunchAreThoseOfItsVersion) {
  EXPECT_EQ(KILN_LAUNCH_STEP, 0);
  EXPECT_EQ(KILN_LAUNCH_ITEMS, 1);
  EXPECT_EQ(KILN_LAUNCH_TASKS, 2);
  EXPECT_EQ(KILN_LAUNCH_SLICE, 3);
  EXPECT_EQ(KILN_LAUNCH_FINISH, 4);
  EXPECT_EQ(KILN_LAUNCH_OPERANDS, 5);
  EXPECT_EQ(KILN_LAUNCH_FIELDS, 6);
}

}  // namespace
}  // namespace kiln
