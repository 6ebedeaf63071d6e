// Compiled graphs.
#pragma once

#include <memory>
#include <vector>

#include "capi/call.h"
#include "capi/handle.h"
#include "kiln/executable.h"

struct kiln_executable : kiln::capi::Counted<kiln_executable> {
 public:
  kiln_executable(kiln_device& device, std::unique_ptr<kiln::runtime::LoadedExecutable> loaded,
                  int64_t compile_microseconds, bool has_partial_cost);

  kiln_context& context() const { return *context_; }
  kiln_device& device() const { return callee_->device(); }
  const std::shared_ptr<const kiln::capi::Callee>& callee() const { return callee_; }
  const kiln::program::Program& program() const { return program_; }
  // Of the arrays: tokens are left out.
  const kiln::program::Signature& signature() const { return callee_->signature(); }
  int64_t code_bytes() const { return code_bytes_; }
  int64_t constant_bytes() const { return constant_bytes_; }
  int64_t compile_microseconds() const { return compile_microseconds_; }
  // Whether the graph has loops or custom calls.
  bool has_partial_cost() const { return has_partial_cost_; }
  // The sizes that the user sees of arguments and results.
  const std::vector<std::vector<int64_t>>& argument_dims() const { return argument_dims_; }
  const std::vector<std::vector<int64_t>>& result_dims() const { return result_dims_; }

 private:
  // Before the callee, whose memory is the context's.
  kiln::capi::Ref<kiln_context> context_;
  std::shared_ptr<const kiln::capi::Callee> callee_;
  const kiln::program::Program& program_;
  int64_t code_bytes_, constant_bytes_, compile_microseconds_;
  bool has_partial_cost_;
  std::vector<std::vector<int64_t>> argument_dims_, result_dims_;
};
