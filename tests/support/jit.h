// Runs generated objects in the test process, with a frame whose functions are the test's own.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "base/status.h"
#include "device/cpu/link.h"
#include "frame/frame.h"

namespace kiln::testing {

// Objects linked in memory. No symbol of the process is visible to them.
class Jit {
 public:
  static Result<std::unique_ptr<Jit>> Load(const std::vector<std::string>& objects);
  // NULL where there is no such symbol.
  void* Lookup(const std::string& symbol) {
    Result<void*> address = code_->Find(symbol);
    return address.ok() ? *address : nullptr;
  }

 private:
  explicit Jit(std::unique_ptr<device::LinkedCode> code) : code_(std::move(code)) {}
  std::unique_ptr<device::LinkedCode> code_;
};

// A frame over these buffers. parallel_for runs its pieces one after another, the last one first:
// results must not depend on the order.
class TestFrame {
 public:
  explicit TestFrame(std::vector<void*> buffers);
  kiln_frame& frame() { return frame_; }

  int parallel_calls = 0;
  std::vector<std::string> events;
  // What the table's call returns, and the step it was last called for.
  int32_t call_result = 0;
  int32_t called = -1;
  std::string config;

 private:
  static TestFrame& Of(const kiln_frame* frame) { return *static_cast<TestFrame*>(frame->host); }
  std::vector<void*> buffers_;
  kiln_frame_table table_{};
  kiln_frame frame_{};
};

}  // namespace kiln::testing
