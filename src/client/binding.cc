// The checks of an execution.
#include <algorithm>
#include <optional>
#include <string>
#include <utility>

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

// The memory of one of an execution's buffers.
struct Range {
  const std::byte* begin;
  const std::byte* end;
  size_t buffer;    // by number
  bool is_written;  // a result, or an argument that is donated
};

// Two ranges that share memory, at least the first of which is written; null where there are none.
std::pair<const Range*, const Range*> FindOverlap(std::span<Range> ranges) {
  // A few are compared faster than sorted.
  constexpr size_t kFew = 6;
  if (ranges.size() <= kFew) {
    for (const Range& a : ranges) {
      if (!a.is_written) continue;
      for (const Range& b : ranges) {
        if (&a != &b && a.begin < b.end && b.begin < a.end) return {&a, &b};
      }
    }
    return {};
  }
  std::ranges::sort(ranges, {}, &Range::begin);
  // Among the ranges so far, the one that is only read and the one that is written that reach
  // farthest.
  const Range* read = nullptr;
  const Range* written = nullptr;
  for (const Range& range : ranges) {
    if (written && range.begin < written->end) return {written, &range};
    if (range.is_written && read && range.begin < read->end) return {&range, read};
    const Range*& farthest = range.is_written ? written : read;
    if (!farthest || range.end > farthest->end) farthest = &range;
  }
  return {};
}

}  // namespace

Status Execution::Bind(std::span<Buffer* const> arguments, std::span<Buffer* const> results) {
  const program::Signature& signature = executable_->signature();
  const FrozenArguments* frozen = executable_->frozen();
  KILN_RETURN_IF_ERROR(CheckCount("argument", *executable_, arguments.size(),
                                  signature.parameters.size() - (frozen ? frozen->count() : 0)));
  KILN_RETURN_IF_ERROR(
      CheckCount("result", *executable_, results.size(), signature.results.size()));
  if (frozen) {
    KILN_ASSIGN_OR_RETURN(frozen_, frozen->Bound());
  }
  argument_count_ = signature.parameters.size();
  buffers_.reserve(argument_count_ + results.size());
  auto given = arguments.begin();
  for (size_t i = 0; i < argument_count_; ++i) {
    if (frozen && frozen->Has(i)) {
      buffers_.emplace_back();
      continue;
    }
    KILN_RETURN_IF_ERROR(BindBuffer(Access::kRead, i, *given++, signature.parameters[i]));
  }
  for (size_t i = 0; i < options_.donated.size(); ++i) {
    if (!options_.donated[i]) continue;
    if (!buffers_[i]) {
      return InvalidArgument("'", executable_->name(), "': argument ", i,
                             " is donated, and is frozen");
    }
    if (buffers_[i]->storage().is_read_only()) {
      return InvalidArgument("'", executable_->name(), "': argument ", i,
                             " is donated, and is in read-only memory");
    }
  }
  bool any_given = !options_.donated.empty();
  for (size_t i = 0; i < results.size(); ++i) {
    if (results[i]) any_given = true;
    KILN_RETURN_IF_ERROR(BindResult(i, results[i]));
  }
  return any_given ? CheckOverlaps(results) : OkStatus();
}

Status Execution::BindResult(size_t number, Buffer* given) {
  const program::Signature& signature = executable_->signature();
  const int alias = signature.aliases.empty() ? -1 : signature.aliases[number];
  if (alias >= 0) {
    const auto argument = static_cast<size_t>(alias);
    if (IsDonated(argument)) {
      if (given) {
        return InvalidArgument("'", executable_->name(), "': a buffer is given for result ", number,
                               ", which is in the memory of argument ", argument,
                               "; expected NULL, as that is donated");
      }
      buffers_.push_back(Buffer::InMemoryOf(*buffers_[argument], signature.results[number]));
      return OkStatus();
    }
    if (signature.must_alias[number]) {
      return FailedPrecondition("'", executable_->name(), "': argument ", argument,
                                " must be donated, as result ", number, " is in its memory");
    }
  }
  if (given) return BindBuffer(Access::kWrite, number, given, signature.results[number]);
  KILN_ASSIGN_OR_RETURN(Ref<Buffer> made,
                        Buffer::Reserve(executable_->device(), signature.results[number]));
  buffers_.push_back(std::move(made));
  return OkStatus();
}

// An argument is read, a result written.
Status Execution::BindBuffer(Access access, size_t number, Buffer* buffer, const Shape& shape) {
  KILN_RETURN_IF_ERROR(CheckBuffer(buffer, executable_->device(), shape, access, [&] {
    return Cat("'", executable_->name(), "': ",
               access == Access::kRead ? ArgumentName(executable_->signature(), number)
                                       : Cat("result ", number));
  }));
  buffers_.push_back(Ref<Buffer>::Share(buffer));
  return OkStatus();
}

Status Execution::CheckOverlaps(std::span<Buffer* const> given_results) const {
  ShortList<Range, 8> ranges;
  for (size_t i = 0; i < buffers_.size(); ++i) {
    const bool is_result = i >= argument_count_;
    if (is_result && !given_results[i - argument_count_]) continue;
    const Ref<Buffer>& buffer = buffers_[i];
    if (!buffer || buffer->bytes() == 0) continue;
    const bool is_written = is_result || IsDonated(i);
    if (const Storage& storage = buffer->storage(); storage.is_reserved()) {
      // Two buffers of memory that may not be there yet.
      const auto* object = reinterpret_cast<const std::byte*>(&storage);
      ranges.push_back({object, object + 1, i, is_written});
    }
    if (std::byte* const data = buffer->data()) {
      ranges.push_back({data, data + buffer->bytes(), i, is_written});
    }
  }
  auto name_of = [&](const Range& range) {
    const size_t i = range.buffer;
    if (i >= argument_count_) return Cat("result ", i - argument_count_);
    return Cat(range.is_written ? "donated argument " : "argument ", i);
  };
  auto fail = [&](const Range& written, const std::string& other) {
    return InvalidArgument("'", executable_->name(), "': ", name_of(written),
                           " shares memory with ", other);
  };
  const std::span all(ranges.data(), ranges.size());
  const auto [one, other] = FindOverlap(all);
  if (one) return fail(*one, name_of(*other));
  for (const Range& range : frozen_ ? all : std::span<Range>()) {
    // A frozen buffer is not donated: Claim.
    if (!range.is_written || buffers_[range.buffer]->is_frozen()) continue;
    const std::optional<size_t> bound = frozen_->FindOverlap(range.begin, range.end);
    if (bound) return fail(range, Cat("frozen argument ", *bound));
  }
  return OkStatus();
}

}  // namespace kiln::client
