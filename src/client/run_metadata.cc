#include "client/run_metadata.h"

#include <algorithm>
#include <map>
#include <tuple>
#include <utility>
#include <variant>

namespace kiln::client {
namespace {

// The categories of work on devices. Others are nested in these, or are compilations.
constexpr std::string_view kKinds[] = {"kernel", "call", "host", "transfer", "copy", "execute"};

const TraceValue* Find(const TraceEvent& event, std::string_view key) {
  auto it = std::ranges::find(event.args, key, &TraceArg::first);
  return it == event.args.end() ? nullptr : &it->second;
}

int64_t NumberOf(const TraceEvent& event, std::string_view key) {
  const TraceValue* value = Find(event, key);
  const auto* number = value ? std::get_if<int64_t>(value) : nullptr;
  return number ? *number : 0;
}

// Kernels are known by their ops, if these have names.
const std::string& OpOf(const TraceEvent& event) {
  const TraceValue* ops = Find(event, "ops");
  const auto* names = ops ? std::get_if<std::string>(ops) : nullptr;
  return names && !names->empty() ? *names : event.name;
}

}  // namespace

std::vector<OpMetadata> Summarise(const TraceSink& trace) {
  std::map<std::tuple<std::string, std::string, std::string_view>, OpMetadata> sums;
  for (const TraceEvent& event : trace.Events()) {
    const auto* kind = std::ranges::find(kKinds, event.category);
    if (kind == std::end(kKinds)) continue;
    const std::string& op = OpOf(event);
    OpMetadata& sum = sums[{op, event.device, *kind}];
    if (sum.count == 0) {
      sum.op = op;
      sum.device = event.device;
      sum.kind = *kind;
    }
    ++sum.count;
    sum.nanoseconds += event.duration_ns;
    sum.bytes += NumberOf(event, "bytes");
    sum.flops += NumberOf(event, "flops");
  }
  std::vector<OpMetadata> rows;
  for (auto& [key, sum] : sums) rows.push_back(std::move(sum));
  std::ranges::stable_sort(rows, std::greater<>(), &OpMetadata::nanoseconds);
  return rows;
}

}  // namespace kiln::client
