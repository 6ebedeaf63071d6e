// The user's runs: options and lists of buffers, checked and converted.
#pragma once

#include <span>
#include <string_view>

#include "base/status.h"
#include "client/execution.h"
#include "kiln/executable.h"

namespace kiln::capi {

// A program of any kind, for the checks of the options of its runs.
struct RunSubject {
  client::Client& client;
  std::string_view name;
  const program::Signature& signature;
  std::string_view devices;
  bool takes_streams = false;
};

// Without options of the user a run has the defaults, at no cost.
Result<client::ExecuteOptions> ReadExecuteOptions(const kiln_execute_options& options,
                                                  const RunSubject& subject);
// Checks a list of buffers, `kind`s.
Status CheckBufferList(std::string_view name, std::string_view kind, size_t count,
                       const void* list);

// Checks the options and the lists of buffers, and binds the new execution to them.
Status BindExecution(const kiln_execute_options* options, kiln_buffer* const* arguments,
                     size_t argument_count, kiln_buffer* const* results, size_t result_count,
                     client::Execution& execution);

// After success: a reference to each result without a buffer of the user.
void HandOverResults(std::span<const Ref<client::Buffer>> bound, kiln_buffer** results);

}  // namespace kiln::capi
