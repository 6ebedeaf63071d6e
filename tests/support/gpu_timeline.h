// Runs of a program on a GPU's own memory, and what a timeline says of them.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <memory>
#include <string>
#include <vector>

#include "base/strings.h"
#include "base/trace.h"
#include "compiler/compiler.h"
#include "device/gpu/device.h"
#include "support/hlo.h"

namespace kiln::testing {

// Two kernels, of a launch each.
inline constexpr char kTwoKernels[] = R"(HloModule two
less { a = f32[] parameter(0)
  b = f32[] parameter(1)
  ROOT l = pred[] compare(a, b), direction=LT }
ENTRY e { x = f32[32,32] parameter(0)
  y = f32[32,32] dot(x, x), lhs_contracting_dims={1}, rhs_contracting_dims={0}
  ROOT sorted = f32[32,32] sort(y), dimensions={1}, to_apply=less }
)";

// A program with arguments and results on a device. Its runs are recorded in `trace`.
class TimedProgram {
 public:
  TimedProgram(device::GpuDevice& device, const std::string& text) : device_(device) {
    auto module = ir::ParseOrDie(text);
    auto artefact = compiler::Compile(std::move(module), device.target(), {});
    EXPECT_TRUE(artefact.ok()) << artefact.status().ToString();
    auto loaded = device.Load(*std::move(artefact));
    EXPECT_TRUE(loaded.ok()) << loaded.status().ToString();
    executable_ = *std::move(loaded);
    const program::Signature& signature = executable_->program().signature;
    for (const Shape& shape : signature.parameters) arguments_.push_back(New(shape));
    for (const Shape& shape : signature.results) results_.push_back(New(shape));
  }
  ~TimedProgram() {
    for (auto [memory, bytes] : memory_) device_.Deallocate(memory, bytes);
  }

  Result<std::unique_ptr<runtime::Completion>> Start(TraceSink* trace, void* stream = nullptr) {
    runtime::RunOptions options;
    options.trace = trace;
    options.stream = stream;
    std::vector<const void*> arguments(arguments_.begin(), arguments_.end());
    std::vector<void*> results(results_.begin(), results_.end());
    return executable_->Start(arguments, results, options);
  }
  Status Run(TraceSink* trace, void* stream = nullptr) {
    KILN_ASSIGN_OR_RETURN(auto completion, Start(trace, stream));
    return completion->Wait();
  }

  const std::vector<std::byte*>& arguments() const { return arguments_; }
  const std::vector<std::byte*>& results() const { return results_; }
  runtime::LoadedExecutable& executable() { return *executable_; }

 private:
  std::byte* New(const Shape& shape) {
    auto memory = device_.Allocate(shape.byte_size());
    EXPECT_TRUE(memory.ok()) << memory.status().ToString();
    memory_.push_back({*memory, shape.byte_size()});
    return *memory;
  }

  device::GpuDevice& device_;
  std::unique_ptr<runtime::LoadedExecutable> executable_;
  std::vector<std::pair<std::byte*, int64_t>> memory_;
  std::vector<std::byte*> arguments_, results_;
};

inline std::string ArgOf(const TraceEvent& event, const std::string& name) {
  for (const auto& [key, value] : event.args) {
    if (key == name) return ToText(value);
  }
  return "none";
}

inline int64_t EndOf(const TraceEvent& event) { return event.start_ns + event.duration_ns; }

inline int64_t ErrorOf(const TraceEvent& event) {
  return 1 + static_cast<int64_t>(1000 * std::atof(ArgOf(event, "clock_error_us").c_str()) + 100);
}

// Those of a lane, by their beginning. Checks that none overlaps another one.
inline std::vector<TraceEvent> LaneOf(const TraceSink& trace, const std::string& name) {
  std::vector<TraceEvent> events;
  for (TraceEvent& event : trace.Events()) {
    if (trace.LaneName(event.lane) == name) events.push_back(std::move(event));
  }
  std::stable_sort(events.begin(), events.end(), [](const TraceEvent& a, const TraceEvent& b) {
    return a.start_ns < b.start_ns;
  });
  for (size_t i = 1; i < events.size(); ++i) {
    EXPECT_LE(EndOf(events[i - 1]), events[i].start_ns)
        << name << ": " << events[i - 1].name << ", " << events[i].name;
  }
  return events;
}

inline void ExpectWithin(const std::vector<TraceEvent>& events, int64_t start, int64_t end) {
  for (const TraceEvent& event : events) {
    EXPECT_GE(event.start_ns, start - ErrorOf(event)) << event.name;
    EXPECT_LE(EndOf(event), end + ErrorOf(event)) << event.name;
    EXPECT_GE(event.duration_ns, 0);
  }
}

// An environment variable, for as long as this lives.
class WithVariable {
 public:
  WithVariable(const char* name, const char* value) : name_(name) { setenv(name, value, 1); }
  ~WithVariable() { unsetenv(name_); }
  WithVariable(const WithVariable&) = delete;
  WithVariable& operator=(const WithVariable&) = delete;

 private:
  const char* name_;
};

}  // namespace kiln::testing
