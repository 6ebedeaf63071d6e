#include "support/jit.h"

#include "base/strings.h"
#include "runtime/host.h"

namespace kiln::testing {

Result<std::unique_ptr<Jit>> Jit::Load(const std::vector<std::string>& objects) {
  KILN_ASSIGN_OR_RETURN(std::unique_ptr<device::LinkedCode> code, device::Link(objects));
  return std::unique_ptr<Jit>(new Jit(std::move(code)));
}

TestFrame::TestFrame(std::vector<void*> buffers) : buffers_(std::move(buffers)) {
  table_.parallel_for = [](const kiln_frame* frame, kiln_kernel_fn kernel, void* const* args,
                           int64_t items, int64_t tasks, int64_t) {
    ++Of(frame).parallel_calls;
    for (int64_t t = tasks; t-- > 0;) {
      kernel(frame, args, items * t / tasks, items * (t + 1) / tasks);
    }
  };
  table_.call = [](const kiln_frame* frame, int32_t step, void* const* args, const void* config,
                   int64_t size) {
    Of(frame).called = step;
    Of(frame).config.assign(static_cast<const char*>(config), static_cast<size_t>(size));
    Of(frame).events.push_back(Cat("call ", step));
    return Of(frame).call_result;
  };
  table_.trace_begin = [](const kiln_frame* frame, int32_t step) {
    Of(frame).events.push_back(Cat("begin ", step));
  };
  table_.trace_end = [](const kiln_frame* frame, int32_t step) {
    Of(frame).events.push_back(Cat("end ", step));
  };
  table_.launch = runtime::HostTable().launch;
  table_.fail = [](const kiln_frame* frame, int32_t code, const char* message, int64_t size) {
    Of(frame).events.push_back(std::string(message, static_cast<size_t>(size)));
    return code;
  };
  frame_.buffers = buffers_.data();
  frame_.table = &table_;
  frame_.host = this;
  frame_.threads = 2;
}

}  // namespace kiln::testing
