// The checks of an execution.
#include <algorithm>

#include "base/short_list.h"
#include "base/strings.h"
#include "client/execution.h"

namespace kiln::client {
namespace {

Status CheckCount(std::string_view kind, const Executable& executable, size_t given,
                  size_t expected) {
  if (given == expected) return OkStatus();
  return InvalidArgument("'", executable.name(), "': ", given, " ", kind, "s are given; expected ",
                         expected);
}

}  // namespace

Result<Execution> Execution::Bind(Ref<const Executable> executable, ExecuteOptions options,
                                  std::span<Buffer* const> arguments,
                                  std::span<Buffer* const> results) {
  Execution run(std::move(executable));
  run.options_ = std::move(options);
  const program::Signature& signature = run.executable_->signature();
  const FrozenArguments* frozen = run.executable_->frozen();
  KILN_RETURN_IF_ERROR(CheckCount("argument", *run.executable_, arguments.size(),
                                  signature.parameters.size() - (frozen ? frozen->count() : 0)));
  KILN_RETURN_IF_ERROR(
      CheckCount("result", *run.executable_, results.size(), signature.results.size()));
  if (frozen) {
    KILN_ASSIGN_OR_RETURN(run.frozen_, frozen->Bound());
  }
  run.arguments_.reserve(signature.parameters.size());
  run.results_.reserve(results.size());
  auto given = arguments.begin();
  for (size_t i = 0; i < signature.parameters.size(); ++i) {
    if (frozen && frozen->Has(i)) {
      run.arguments_.emplace_back();
      continue;
    }
    KILN_RETURN_IF_ERROR(
        run.BindBuffer("argument", i, *given++, signature.parameters[i], run.arguments_));
  }
  KILN_RETURN_IF_ERROR(run.CheckDonations());
  bool any_given = !run.options_.donated.empty();
  for (size_t i = 0; i < results.size(); ++i) {
    int alias = signature.aliases.empty() ? -1 : signature.aliases[i];
    if (alias >= 0 && run.IsDonated(static_cast<size_t>(alias))) {
      if (results[i]) {
        return InvalidArgument("'", run.executable_->name(), "': a buffer is given for result ", i,
                               ", which is in the memory of argument ", alias,
                               "; expected NULL, as that is donated");
      }
      run.results_.push_back(
          Buffer::InMemoryOf(*run.arguments_[static_cast<size_t>(alias)], signature.results[i]));
    } else if (results[i]) {
      any_given = true;
      KILN_RETURN_IF_ERROR(
          run.BindBuffer("result", i, results[i], signature.results[i], run.results_));
    } else {
      KILN_ASSIGN_OR_RETURN(Ref<Buffer> made,
                            Buffer::Allocate(run.executable_->device(), signature.results[i]));
      run.results_.push_back(std::move(made));
    }
  }
  if (any_given) KILN_RETURN_IF_ERROR(run.CheckOverlaps(results));
  return run;
}

Status Execution::BindBuffer(std::string_view kind, size_t number, Buffer* buffer,
                             const Shape& shape, std::vector<Ref<Buffer>>& bound) const {
  auto fail = [&](const auto&... message) {
    const auto& names = executable_->signature().parameter_names;
    std::string label = kind == "argument" && number < names.size()
                            ? Cat(kind, " ", number, " '", names[number], "'")
                            : Cat(kind, " ", number);
    return InvalidArgument("'", executable_->name(), "': ", label, message...);
  };
  if (!buffer) return fail(" is NULL; expected ", shape);
  Device& device = executable_->device();
  if (&buffer->device() != &device) {
    return fail(" is on ", buffer->device().name(),
                &buffer->client() == &device.client() ? "" : " of another context", "; expected ",
                device.name());
  }
  if (buffer->is_donated()) {
    return FailedPrecondition("'", executable_->name(), "': ", kind, " ", number,
                              " has been donated to an execution");
  }
  if (kind == "result" && buffer->storage().is_read_only()) return fail(" is in read-only memory");
  if (kind == "result") KILN_RETURN_IF_ERROR(buffer->CheckNotFrozen());
  if (!buffer->shape().SameTypeAndDimensions(shape)) {
    return fail(" is ", buffer->shape(), "; expected ", shape);
  }
  bound.push_back(Ref<Buffer>::Share(buffer));
  return OkStatus();
}

Status Execution::CheckDonations() const {
  const program::Signature& signature = executable_->signature();
  for (size_t i = 0; i < options_.donated.size(); ++i) {
    if (!options_.donated[i]) continue;
    if (!arguments_[i]) {
      return InvalidArgument("'", executable_->name(), "': argument ", i,
                             " is donated, and is frozen");
    }
    if (arguments_[i]->storage().is_read_only()) {
      return InvalidArgument("'", executable_->name(), "': argument ", i,
                             " is donated, and is in read-only memory");
    }
  }
  for (size_t r = 0; r < signature.must_alias.size(); ++r) {
    if (!signature.must_alias[r]) continue;
    const auto alias = static_cast<size_t>(std::max(signature.aliases[r], 0));
    if (!IsDonated(alias)) {
      return FailedPrecondition("'", executable_->name(), "': argument ", alias,
                                " must be donated, as result ", r, " is in its memory");
    }
  }
  return OkStatus();
}

Status Execution::CheckOverlaps(std::span<Buffer* const> given_results) const {
  struct Range {
    const std::byte* begin;
    const std::byte* end;
    bool is_result;  // or an argument that is donated
    std::string_view kind;
    size_t number;
  };
  ShortList<Range, 8> ranges;
  auto add = [&](const Buffer& buffer, bool is_result, std::string_view kind, size_t number) {
    if (buffer.bytes() == 0) return;
    ranges.push_back({buffer.data(), buffer.data() + buffer.bytes(), is_result, kind, number});
  };
  for (size_t i = 0; i < arguments_.size(); ++i) {
    if (!arguments_[i]) continue;
    const bool donated = IsDonated(i);
    add(*arguments_[i], donated, donated ? "donated argument" : "argument", i);
  }
  for (size_t i = 0; i < results_.size(); ++i) {
    if (given_results[i]) add(*results_[i], true, "result", i);
  }
  // A few are compared faster than sorted.
  constexpr size_t kFew = 6;
  if (ranges.size() <= kFew) {
    auto overlap = [](const Range& a, const Range& b) {
      return (a.is_result || b.is_result) && a.begin < b.end && b.begin < a.end;
    };
    bool any = false;
    for (const Range* a = ranges.begin(); a != ranges.end(); ++a) {
      for (const Range* b = a + 1; b < ranges.end(); ++b) any = any || overlap(*a, *b);
    }
    if (!any) return OkStatus();
  }
  std::sort(ranges.begin(), ranges.end(),
            [](const Range& a, const Range& b) { return a.begin < b.begin; });
  // Among the ranges so far, the argument and the result that reach farthest.
  const Range* argument = nullptr;
  const Range* result = nullptr;
  for (const Range& range : ranges) {
    const Range* other = nullptr;
    if (result && range.begin < result->end) other = result;
    if (range.is_result && argument && range.begin < argument->end) other = argument;
    if (other) {
      const Range& of = range.is_result ? range : *other;
      const Range& with = range.is_result ? *other : range;
      return InvalidArgument("'", executable_->name(), "': ", of.kind, " ", of.number,
                             " shares memory with ", with.kind, " ", with.number);
    }
    const Range*& farthest = range.is_result ? result : argument;
    if (!farthest || range.end > farthest->end) farthest = &range;
  }
  return OkStatus();
}

}  // namespace kiln::client
