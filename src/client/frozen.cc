#include "client/frozen.h"

#include <algorithm>
#include <iterator>
#include <utility>

#include "base/strings.h"
#include "client/buffer_checks.h"

namespace kiln::client {

// A buffer that can be neither donated nor written.
class BoundArguments::Hold {
 public:
  // Of a frozen buffer, which it thaws in the end.
  explicit Hold(Ref<Buffer> buffer) : buffer_(std::move(buffer)) {}
  ~Hold() { buffer_->Thaw(); }
  Hold(const Hold&) = delete;
  Hold& operator=(const Hold&) = delete;

  const std::byte* address() const { return buffer_->data(); }
  int64_t bytes() const { return buffer_->bytes(); }

 private:
  const Ref<Buffer> buffer_;
};

const std::byte* BoundArguments::address(size_t argument) const {
  return kept_[argument] ? kept_[argument]->address() : nullptr;
}

void BoundArguments::FindRanges() {
  ranges_.clear();
  for (size_t a = 0; a < kept_.size(); ++a) {
    if (!kept_[a] || kept_[a]->bytes() == 0) continue;
    const std::byte* begin = kept_[a]->address();
    ranges_.push_back({begin, begin + kept_[a]->bytes(), a});
  }
  std::ranges::sort(ranges_, {}, &Range::begin);
  for (size_t i = 1; i < ranges_.size(); ++i) {
    const Range& before = ranges_[i - 1];
    if (before.end > ranges_[i].end) ranges_[i] = {ranges_[i].begin, before.end, before.argument};
  }
}

std::optional<size_t> BoundArguments::FindOverlap(const std::byte* begin,
                                                  const std::byte* end) const {
  const auto behind = std::ranges::lower_bound(ranges_, end, {}, &Range::begin);
  if (behind == ranges_.begin()) return std::nullopt;
  const Range& last = *std::prev(behind);
  return last.end > begin ? std::optional(last.argument) : std::nullopt;
}

FrozenArguments::FrozenArguments(Device& device, runtime::LoadedExecutable& loaded)
    : device_(device),
      loaded_(loaded),
      program_(loaded.program()),
      groups_(program::FrozenGroups(program_)),
      kept_(program::KeptArguments(program_)),
      group_of_(kept_.size()),
      waiting_(kept_.size()),
      is_bound_(kept_.size()) {
  for (size_t a = 0; a < kept_.size(); ++a) count_ += Has(a);
  missing_ = count_;
  for (size_t g = 0; g < groups_.size(); ++g) {
    for (const size_t argument : groups_[g].arguments) group_of_[argument] = g;
  }
}

FrozenArguments::~FrozenArguments() = default;

std::string FrozenArguments::NameOf(size_t argument) const {
  return Cat("'", program_.name, "': ", ArgumentName(program_.signature, argument));
}

Result<std::shared_ptr<const FrozenArguments::Hold>> FrozenArguments::Take(size_t argument,
                                                                           Buffer* buffer) const {
  if (argument >= kept_.size()) {
    return InvalidArgument(NameOf(argument), " cannot be bound; there are ", kept_.size(),
                           " arguments");
  }
  if (!Has(argument)) return InvalidArgument(NameOf(argument), " is not frozen");
  const Shape& shape = program_.signature.parameters[argument];
  // A donation can be taken back.
  do {
    KILN_RETURN_IF_ERROR(
        CheckBuffer(buffer, device_, shape, Access::kRead, [&] { return NameOf(argument); }));
  } while (!buffer->Freeze());
  auto hold = std::make_shared<const Hold>(Ref<Buffer>::Share(buffer));
  KILN_RETURN_IF_ERROR(buffer->WaitForValue());
  const auto alignment = static_cast<uintptr_t>(loaded_.argument_alignment(argument));
  if (reinterpret_cast<uintptr_t>(buffer->data()) % alignment == 0 || buffer->bytes() == 0) {
    return std::shared_ptr<const Hold>(std::move(hold));
  }
  // A copy takes its place, and it may go.
  KILN_ASSIGN_OR_RETURN(Ref<Buffer> copy, Buffer::Allocate(device_, shape));
  KILN_RETURN_IF_ERROR(device_.runtime().Copy(copy->data(), buffer->data(), buffer->bytes()));
  KILN_RETURN_IF_ERROR(device_.runtime().Synchronise());
  (void)copy->Freeze();
  return std::make_shared<const Hold>(std::move(copy));
}

// The groups that have one of the arguments and can be made now. `there` has all that are at hand.
Result<std::vector<size_t>> FrozenArguments::GroupsOf(std::span<const size_t> arguments,
                                                      const Holds& there) const {
  std::vector<size_t> groups;
  for (const size_t argument : arguments) {
    const std::optional<size_t> group = group_of_[argument];
    if (!group || std::ranges::find(groups, *group) != groups.end()) continue;
    const std::vector<size_t>& members = groups_[*group].arguments;
    const auto lacking =
        std::ranges::find_if(members, [&](size_t member) { return !there[member]; });
    if (lacking == members.end()) {
      groups.push_back(*group);
    } else if (is_bound_[*lacking]) {
      return FailedPrecondition(NameOf(argument), " is bound anew without ",
                                ArgumentName(program_.signature, *lacking),
                                ", which is computed with it and has not been kept");
    }
  }
  return groups;
}

Status FrozenArguments::Bind(std::span<const size_t> arguments, std::span<Buffer* const> buffers) {
  Holds given(kept_.size());
  for (size_t i = 0; i < arguments.size(); ++i) {
    KILN_ASSIGN_OR_RETURN(auto hold, Take(arguments[i], buffers[i]));
    if (std::exchange(given[arguments[i]], std::move(hold))) {
      return InvalidArgument(NameOf(arguments[i]), " is given twice");
    }
  }
  // Let go after the locks: the end of a buffer may call functions of the user.
  Holds there;
  std::shared_ptr<const BoundArguments> old;
  std::lock_guard one(binding_);
  auto next =
      bound_ ? std::make_shared<BoundArguments>(*bound_) : std::make_shared<BoundArguments>();
  next->kept_.resize(kept_.size());
  there = waiting_;
  for (size_t a = 0; a < there.size(); ++a) {
    if (given[a]) {
      there[a] = given[a];
      if (kept_[a]) next->kept_[a] = given[a];
    } else if (!there[a]) {
      there[a] = next->kept_[a];
    }
  }
  KILN_ASSIGN_OR_RETURN(const std::vector<size_t> groups, GroupsOf(arguments, there));
  if (!groups.empty()) {
    std::vector<const void*> addresses(there.size());
    for (size_t a = 0; a < there.size(); ++a)
      addresses[a] = there[a] ? there[a]->address() : nullptr;
    KILN_ASSIGN_OR_RETURN(next->binding_, loaded_.Bind(next->binding_.get(), groups, addresses));
  }
  next->FindRanges();
  std::vector<bool> is_bound = is_bound_;
  // From here on nothing fails.
  for (const size_t argument : arguments) {
    waiting_[argument] = group_of_[argument] ? given[argument] : nullptr;
    is_bound[argument] = true;
  }
  for (const size_t g : groups) {
    for (const size_t member : groups_[g].arguments) waiting_[member] = nullptr;
  }
  std::lock_guard lock(mutex_);
  is_bound_.swap(is_bound);
  missing_ = 0;
  for (size_t a = 0; a < kept_.size(); ++a) missing_ += Has(a) && !is_bound_[a];
  old = std::exchange(bound_, std::move(next));
  return OkStatus();
}

Result<std::shared_ptr<const BoundArguments>> FrozenArguments::Bound() const {
  std::lock_guard lock(mutex_);
  if (missing_ == 0) return bound_;
  for (size_t a = 0; a < kept_.size(); ++a) {
    if (Has(a) && !is_bound_[a]) {
      return FailedPrecondition(NameOf(a), " is frozen and has not been bound");
    }
  }
  return Internal("no frozen argument is missing");
}

}  // namespace kiln::client
