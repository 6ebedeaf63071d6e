#include "runtime/constants.h"

#include <utility>

#include "program/steps.h"

namespace kiln::runtime {

using program::Allocation;
using program::AllocationId;

namespace {

bool IsAligned(const std::byte* address) {
  return reinterpret_cast<uintptr_t>(address) % program::kAlignment == 0;
}

}  // namespace

LoadedConstants::~LoadedConstants() {
  for (AllocationId id : addresses_.ids()) Free(id);
}

Status LoadedConstants::Load(const Copy& copy) {
  addresses_.assign(program_.allocations.size(), nullptr);
  borrowed_.assign(program_.allocations.size(), nullptr);
  for (AllocationId id : addresses_.ids()) {
    const Allocation& a = program_.allocations[id];
    if (a.kind != Allocation::Kind::kConstant) continue;
    // Frees the literal, unless others on the host have it.
    const auto literal = std::move(program_.constants[a.number]);
    if (in_host_memory_ && literal && literal->is_borrowed() && IsAligned(literal->data())) {
      // Nothing writes to it.
      addresses_[id] = const_cast<std::byte*>(literal->data());
      borrowed_[id] = literal;
      continue;
    }
    KILN_ASSIGN_OR_RETURN(addresses_[id], source_.Allocate(a.bytes));
    if (a.bytes > 0) {
      KILN_RETURN_IF_ERROR(copy(addresses_[id], literal ? literal->data() : nullptr, a.bytes));
    }
  }
  return OkStatus();
}

Status LoadedConstants::Save(program::Program& saved, const Copy& copy) const {
  saved.prologue.clear();
  for (AllocationId id : addresses_.ids()) {
    Allocation& a = saved.allocations[id];
    if (a.kind != Allocation::Kind::kConstant) continue;
    if (!addresses_[id]) a.bytes = 0;  // only the prologue has read it
    auto literal = std::make_shared<Literal>(Shape(ElementType::kU8, {a.bytes}));
    if (a.bytes > 0) KILN_RETURN_IF_ERROR(copy(literal->data(), addresses_[id], a.bytes));
    saved.constants[a.number] = std::move(literal);
  }
  return OkStatus();
}

void LoadedConstants::FreeUnused() {
  const auto used = program::LaterUses(program_);
  for (AllocationId id : addresses_.ids()) {
    if (!used[id]) Free(id);
  }
}

void LoadedConstants::Free(AllocationId id) {
  std::byte* memory = std::exchange(addresses_[id], nullptr);
  if (memory && !std::exchange(borrowed_[id], nullptr)) {
    source_.Deallocate(memory, program_.allocations[id].bytes);
  }
}

}  // namespace kiln::runtime
