#include "c_abi.h"

#include <cstdio>
#include <cstdlib>
#include <utility>

namespace kiln::bench {

void Must(kiln_error* error) {
  if (!error) return;
  std::fprintf(stderr, "%s\n", kiln_error_message(error, nullptr));
  std::exit(1);
}

Context::Context(int32_t threads) {
  kiln_context_options options = KILN_CONTEXT_OPTIONS_INIT;
  options.threads = threads;
  Must(kiln_context_create(&options, &context_));
}

kiln_buffer* Context::NewArray(const std::vector<int64_t>& dims) const {
  int64_t count = 1;
  for (int64_t dim : dims) count *= dim;
  std::vector<float> numbers(static_cast<size_t>(count));
  for (int64_t i = 0; i < count; ++i) {
    numbers[static_cast<size_t>(i)] = static_cast<float>(i * 40503 % 65536 - 32768) / 327680;
  }
  kiln_buffer* buffer = nullptr;
  Must(kiln_buffer_copy_host(cpu(), KILN_F32, dims.data(), dims.size(), numbers.data(),
                             numbers.size() * sizeof(float), &buffer));
  return buffer;
}

Run::Run(const Context& context, const kiln_graph* graph, kiln_jit jit,
         std::vector<kiln_value> feeds, std::vector<kiln_value> fetches)
    : context_(context),
      feeds_(std::move(feeds)),
      fetches_(std::move(fetches)),
      results_(fetches_.size()) {
  kiln_session_options options = KILN_SESSION_OPTIONS_INIT;
  options.jit = jit;
  Must(kiln_session_create(graph, &options, &session_));
}

Run::~Run() {
  for (kiln_buffer* buffer : arguments_) kiln_buffer_release(buffer);
  for (kiln_buffer* buffer : results_) kiln_buffer_release(buffer);
  kiln_session_release(session_);
}

void Run::Share(kiln_buffer* buffer) {
  kiln_buffer_retain(buffer);
  arguments_.push_back(buffer);
}

void Run::operator()() {
  Must(kiln_session_run(session_, nullptr, feeds_.data(), arguments_.data(), arguments_.size(),
                        fetches_.data(), results_.data(), fetches_.size(), nullptr, 0));
}

}  // namespace kiln::bench
