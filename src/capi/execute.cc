#include "capi/execute.h"

#include <algorithm>
#include <chrono>
#include <memory>
#include <string_view>

#include "capi/handle.h"
#include "capi/options.h"
#include "capi/trace.h"

namespace kiln::capi {
namespace {

Status CheckOptions(const kiln_execute_options& options, const RunSubject& subject) {
  if (options.stream && !subject.takes_streams) {
    return InvalidArgument("kiln_execute_options.stream is set; '", subject.name, "' runs on ",
                           subject.devices,
                           ", and only executables on GPUs of the CUDA driver take a stream");
  }
  if (options.timeout_ns < 0) {
    return InvalidArgument("kiln_execute_options.timeout_ns is ", options.timeout_ns);
  }
  if (options.threads < 0) {
    return InvalidArgument("kiln_execute_options.threads is ", options.threads);
  }
  if (options.trace && &options.trace->client() != &subject.client) {
    return InvalidArgument("kiln_execute_options.trace is of another context than '", subject.name,
                           "'");
  }
  return CheckSwitch("kiln_execute_options.donate_aliased", options.donate_aliased);
}

// By argument; empty where none is donated.
Result<std::vector<bool>> DonationsOf(const kiln_execute_options& options,
                                      const RunSubject& subject) {
  std::vector<bool> donated;
  if (options.donated_count == 0 && options.donate_aliased == 0 && options.kept_count == 0) {
    return donated;
  }
  const program::Signature& signature = subject.signature;
  donated.resize(signature.parameters.size(), false);
  auto mark = [&](std::string_view name, const size_t* list, size_t count, bool value) -> Status {
    if (!list && count > 0) {
      return InvalidArgument("kiln_execute_options.", name, " is NULL, with ", count, " numbers");
    }
    for (size_t i = 0; i < count; ++i) {
      if (list[i] >= donated.size()) {
        return InvalidArgument("kiln_execute_options.", name, ": '", subject.name,
                               "' has no argument ", list[i], "; there are ", donated.size());
      }
      donated[list[i]] = value;
    }
    return OkStatus();
  };
  KILN_RETURN_IF_ERROR(mark("donated", options.donated, options.donated_count, true));
  if (options.donate_aliased != 0) {
    for (int alias : signature.aliases) {
      if (alias >= 0) donated[static_cast<size_t>(alias)] = true;
    }
  }
  KILN_RETURN_IF_ERROR(mark("kept", options.kept, options.kept_count, false));
  if (std::find(donated.begin(), donated.end(), true) == donated.end()) donated.clear();
  return donated;
}

}  // namespace

Result<client::ExecuteOptions> ReadExecuteOptions(const kiln_execute_options& options,
                                                  const RunSubject& subject) {
  KILN_ASSIGN_OR_RETURN(kiln_execute_options read, ReadOptions("kiln_execute_options", &options));
  KILN_RETURN_IF_ERROR(CheckOptions(read, subject));
  client::ExecuteOptions execute{
      .threads = read.threads, .cancel = read.cancel, .stream = read.stream};
  KILN_ASSIGN_OR_RETURN(execute.donated, DonationsOf(read, subject));
  if (read.trace) execute.trace = read.trace->sink();
  if (read.timeout_ns > 0) {
    const auto limit = std::make_shared<client::TimeLimit>(
        subject.client.time_limits(), read.cancel,
        client::TimeLimit::Clock::now() + std::chrono::nanoseconds(read.timeout_ns));
    execute.cancel = limit->flag();
    execute.limit = limit;
  }
  return execute;
}

Status CheckBufferList(std::string_view name, std::string_view kind, size_t count,
                       const void* list) {
  if (list || count == 0) return OkStatus();
  return InvalidArgument("'", name, "': the list of ", kind, "s is NULL");
}

Status BindExecution(const kiln_execute_options* options, kiln_buffer* const* arguments,
                     size_t argument_count, kiln_buffer* const* results, size_t result_count,
                     client::Execution& execution) {
  const client::Executable& executable = execution.executable();
  if (options) {
    KILN_ASSIGN_OR_RETURN(
        client::ExecuteOptions read,
        ReadExecuteOptions(*options, {.client = executable.client(),
                                      .name = executable.name(),
                                      .signature = executable.signature(),
                                      .devices = executable.device().name(),
                                      .takes_streams = executable.takes_streams()}));
    execution.set_options(std::move(read));
  }
  KILN_RETURN_IF_ERROR(CheckBufferList(executable.name(), "argument", argument_count, arguments));
  KILN_RETURN_IF_ERROR(CheckBufferList(executable.name(), "result", result_count, results));
  return execution.Bind(UnwrapList(arguments, argument_count), UnwrapList(results, result_count));
}

void HandOverResults(std::span<const Ref<client::Buffer>> bound, kiln_buffer** results) {
  for (size_t i = 0; i < bound.size(); ++i) {
    if (!results[i]) results[i] = HandOver(bound[i]);
  }
}

}  // namespace kiln::capi
