#include "runtime/binding.h"

namespace kiln::runtime {

using program::Allocation;
using program::AllocationId;

class Binding::Memory {
 public:
  explicit Memory(MemorySource& source) : source_(source) {}
  ~Memory() {
    for (const Block& block : blocks_) source_.Deallocate(block.address, block.bytes);
  }
  Memory(const Memory&) = delete;
  Memory& operator=(const Memory&) = delete;

  Result<std::byte*> Allocate(int64_t bytes) {
    blocks_.reserve(blocks_.size() + 1);
    KILN_ASSIGN_OR_RETURN(std::byte * address, source_.Allocate(bytes));
    blocks_.push_back({address, bytes});
    return address;
  }

 private:
  struct Block {
    std::byte* address;
    int64_t bytes;
  };
  MemorySource& source_;
  std::vector<Block> blocks_;
};

Binder::Binder(MemorySource& source, const program::Program& program)
    : source_(source),
      program_(program),
      groups_(program::FrozenGroups(program)),
      used_(program::AllocationUses(program)) {}
Binder::~Binder() = default;

Result<std::shared_ptr<const Binding>> Binder::Bind(const Binding* previous,
                                                    const program::Addresses& constants,
                                                    std::span<const size_t> groups,
                                                    std::span<const void* const> arguments,
                                                    const RunGroup& run) const {
  auto next = std::make_shared<Binding>();
  next->addresses_ = previous ? previous->addresses_ : constants;
  if (previous) next->groups_ = previous->groups_;
  next->groups_.resize(groups_.size());
  for (const size_t group : groups) {
    KILN_ASSIGN_OR_RETURN(next->groups_[group], BindGroup(group, arguments, next->addresses_, run));
  }
  return std::shared_ptr<const Binding>(std::move(next));
}

// What only the steps of the group read is freed at their end.
Result<std::shared_ptr<const Binding::Memory>> Binder::BindGroup(
    size_t group, std::span<const void* const> arguments, program::Addresses& addresses,
    const RunGroup& run) const {
  auto kept = std::make_shared<Binding::Memory>(source_);
  Binding::Memory temporary(source_);
  program::Addresses during = addresses;
  for (AllocationId id : program_.allocations.ids()) {
    const Allocation& a = program_.allocations[id];
    if (a.kind == Allocation::Kind::kParameter) {
      during[id] = static_cast<std::byte*>(const_cast<void*>(arguments[a.number]));
    }
  }
  for (AllocationId id : groups_[group].memory) {
    Binding::Memory& memory = used_[id] ? *kept : temporary;
    KILN_ASSIGN_OR_RETURN(during[id], memory.Allocate(program_.allocations[id].bytes));
    if (used_[id]) addresses[id] = during[id];
  }
  KILN_RETURN_IF_ERROR(run(group, during));
  return std::shared_ptr<const Binding::Memory>(std::move(kept));
}

}  // namespace kiln::runtime
