// What benchmarks of the C ABI share.
#pragma once

#include <cstdint>
#include <vector>

#include "kiln/kiln.h"

namespace kiln::bench {

// Ends the process with the error's message, if there is one.
void Must(kiln_error* error);

class Context {
 public:
  explicit Context(int32_t threads);
  ~Context() { kiln_context_release(context_); }
  Context(const Context&) = delete;
  Context& operator=(const Context&) = delete;

  kiln_context* get() const { return context_; }
  kiln_device* cpu() const { return kiln_context_device(context_, 0); }
  // An array of f32 between -0.1 and 0.1.
  kiln_buffer* NewArray(const std::vector<int64_t>& dims) const;

 private:
  kiln_context* context_ = nullptr;
};

// Runs of a graph in a session of its own, into the same memory each time.
class Run {
 public:
  Run(const Context& context, const kiln_graph* graph, kiln_jit jit, std::vector<kiln_value> feeds,
      std::vector<kiln_value> fetches);
  ~Run();
  Run(const Run&) = delete;
  Run& operator=(const Run&) = delete;

  // The next feed: an array of these sizes.
  void Feed(const std::vector<int64_t>& dims) { arguments_.push_back(context_.NewArray(dims)); }
  // The next feed, shared with the caller.
  void Share(kiln_buffer* buffer);
  // The first run makes the results.
  void operator()();
  kiln_session* session() const { return session_; }

 private:
  const Context& context_;
  kiln_session* session_ = nullptr;
  const std::vector<kiln_value> feeds_, fetches_;
  std::vector<kiln_buffer*> arguments_, results_;
};

}  // namespace kiln::bench
