#include "client/device_name.h"

#include <gtest/gtest.h>

namespace kiln::client {
namespace {

// "GPU:0", with "elsewhere" behind it if the name is of another process; or "no".
std::string Read(std::string_view text) {
  Result<DeviceName> name = ParseDeviceName(text);
  if (!name.ok()) {
    EXPECT_EQ(name.status().code(), Code::kInvalidArgument);
    EXPECT_EQ(name.status().message().find(Cat("'", text, "' names no device; expected")), 0u);
    return "no";
  }
  return name->elsewhere.empty() ? name->ToString() : Cat(name->ToString(), " ", name->elsewhere);
}

TEST(DeviceName, Short) {
  EXPECT_EQ(Read("CPU:0"), "CPU:0");
  EXPECT_EQ(Read("cpu"), "CPU:0");
  EXPECT_EQ(Read("xla_Gpu:12"), "XLA_GPU:12");
  EXPECT_EQ(Read("GPU:007"), "GPU:7");
  EXPECT_EQ(Read("REFERENCE"), "REFERENCE:0");
}

TEST(DeviceName, TensorFlows) {
  EXPECT_EQ(Read("/job:localhost/replica:0/task:0/device:XLA_GPU:0"), "XLA_GPU:0");
  EXPECT_EQ(Read("/device:GPU:1"), "GPU:1");
  EXPECT_EQ(Read("/JOB:LocalHost/Device:cpu"), "CPU:0");
  EXPECT_EQ(Read("/gpu:2"), "GPU:2");
  EXPECT_EQ(Read("/task:0/cpu:0"), "CPU:0");
  EXPECT_EQ(Read("/job:worker/task:1/device:GPU:1"), "GPU:1 job:worker");
  EXPECT_EQ(Read("/replica:2/device:GPU:1"), "GPU:1 replica:2");
}

TEST(DeviceName, OthersAreErrors) {
  for (std::string_view text : {"",
                                ":",
                                ":0",
                                "GPU:",
                                "GPU:x",
                                "GPU:-1",
                                "GPU:0x",
                                "GPU: 0",
                                "GPU:99999999999999999999",
                                "0",
                                "1:GPU",
                                "GPU 0",
                                "G/0",
                                "GPU:0:0",
                                "device:GPU:0",
                                "/",
                                "/job:localhost",
                                "/device:",
                                "/device:GPU:",
                                "/job:/device:GPU:0",
                                "/task:x/device:GPU:0",
                                "/device:GPU:0/device:CPU:0",
                                "/tpu:0",
                                "/GPU",
                                "/xla_gpu:0",
                                "/other:1/device:GPU:0"}) {
    EXPECT_EQ(Read(text), "no") << text;
  }
}

}  // namespace
}  // namespace kiln::client
