// The frozen arguments of an executable, bound to buffers.
#pragma once

#include <cstddef>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <vector>

#include "base/ref.h"
#include "base/status.h"
#include "client/buffer.h"
#include "program/frozen.h"
#include "runtime/device.h"

namespace kiln::client {

// What runs read of frozen arguments: immutable, and there until the last run with it has ended.
class BoundArguments {
 public:
  // The memory of an argument that runs read as it is; null of another one.
  const std::byte* address(size_t argument) const;
  const runtime::Binding* binding() const { return binding_.get(); }
  // An argument that runs read as it is, with memory between the addresses.
  std::optional<size_t> FindOverlap(const std::byte* begin, const std::byte* end) const;

 private:
  friend class FrozenArguments;
  class Hold;
  // The memory of a kept argument, or of one before it that ends later.
  struct Range {
    const std::byte *begin, *end;
    size_t argument;
  };

  void FindRanges();

  // By argument.
  std::vector<std::shared_ptr<const Hold>> kept_;
  std::vector<Range> ranges_;  // by `begin`; the ends ascend, too
  std::shared_ptr<const runtime::Binding> binding_;
};

class FrozenArguments {
 public:
  // Of a loaded program on a device, which outlive it.
  FrozenArguments(Device& device, runtime::LoadedExecutable& loaded);
  ~FrozenArguments();

  size_t count() const { return count_; }
  bool Has(size_t argument) const { return program::IsFrozen(program_, argument); }

  // Binds arguments, all or none of them: waits for the buffers' values, and packs, converts and
  // computes what depends on them. Buffers that runs read as they are stay, and those that others
  // are needed with; the rest are let go. Runs that have begun keep the former ones. Any thread.
  Status Bind(std::span<const size_t> arguments, std::span<Buffer* const> buffers);

  // FAILED_PRECONDITION names an argument that is not bound.
  Result<std::shared_ptr<const BoundArguments>> Bound() const;

 private:
  using Hold = BoundArguments::Hold;
  using Holds = std::vector<std::shared_ptr<const Hold>>;

  // "'program': argument 1 'name'", in messages.
  std::string NameOf(size_t argument) const;
  Result<std::shared_ptr<const Hold>> Take(size_t argument, Buffer* buffer) const;
  Result<std::vector<size_t>> GroupsOf(std::span<const size_t> arguments, const Holds& there) const;

  Device& device_;
  runtime::LoadedExecutable& loaded_;
  const program::Program& program_;
  const std::vector<program::FrozenGroup> groups_;
  const std::vector<bool> kept_;                 // by argument
  std::vector<std::optional<size_t>> group_of_;  // by argument
  size_t count_ = 0;

  std::mutex binding_;  // one binds at a time
  Holds waiting_;       // by argument: those whose group is not complete yet
  mutable std::mutex mutex_;
  // By argument whether it is bound, and what has been made of them.
  std::vector<bool> is_bound_;
  size_t missing_ = 0;
  std::shared_ptr<const BoundArguments> bound_;
};

}  // namespace kiln::client
