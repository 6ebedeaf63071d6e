#include "capi/run_plan.h"

#include <algorithm>
#include <span>
#include <vector>

#include "capi/execute.h"
#include "capi/handle.h"
#include "client/execution.h"

namespace kiln::capi {
namespace {

bool AreOn(const client::Device& device, std::span<client::Buffer* const> buffers) {
  return std::ranges::all_of(buffers, [&](const client::Buffer* buffer) {
    return !buffer || &buffer->device() == &device;
  });
}

}  // namespace

Status RunPlan(const session::Plan& plan, const kiln_execute_options* options,
               kiln_buffer* const* feeds, size_t feed_count, kiln_buffer** fetches,
               size_t fetch_count) {
  const client::Executable* single = plan.single();
  if (single && feeds && AreOn(single->device(), UnwrapList(feeds, feed_count))) {
    client::Execution execution(Ref<const client::Executable>::Share(single));
    KILN_RETURN_IF_ERROR(
        BindExecution(options, feeds, feed_count, fetches, fetch_count, execution));
    KILN_RETURN_IF_ERROR(execution.RunNow());
    HandOverResults(execution.results(), fetches);
    return OkStatus();
  }
  client::ExecuteOptions execute;
  if (options) {
    KILN_ASSIGN_OR_RETURN(execute,
                          ReadExecuteOptions(*options, {.client = plan.client(),
                                                        .name = plan.name(),
                                                        .signature = plan.signature(),
                                                        .devices = "the devices of a session"}));
  }
  KILN_RETURN_IF_ERROR(CheckBufferList(plan.name(), "feed", feed_count, feeds));
  KILN_RETURN_IF_ERROR(CheckBufferList(plan.name(), "fetch", fetch_count, fetches));
  std::vector<Ref<client::Buffer>> results;
  for (size_t i = 0; i < fetch_count; ++i) {
    results.push_back(Ref<client::Buffer>::Share(Unwrap(fetches[i])));
  }
  KILN_RETURN_IF_ERROR(plan.Run(execute, UnwrapList(feeds, feed_count), results));
  HandOverResults(results, fetches);
  return OkStatus();
}

}  // namespace kiln::capi
