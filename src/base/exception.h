// Exceptions of the standard library as statuses, at boundaries that no exception may cross.
#pragma once

#include <utility>

#include "base/status.h"

namespace kiln {

// The current exception as a status: out of memory, out of threads, or a mistake of ours. Allocates
// nothing when out of memory.
Status StatusOfException() noexcept;

// f() -> Status; exceptions become statuses.
template <typename F>
Status Try(F&& f) noexcept {
  try {
    return std::forward<F>(f)();
  } catch (...) {
    return StatusOfException();
  }
}

// The status with context() -> text, or without one if there is no memory for it.
template <typename Context>
Status WithContextIfPossible(const Status& status, Context&& context) noexcept {
  Status named = status;
  (void)Try([&] {
    named = status.WithContext(std::forward<Context>(context)());
    return OkStatus();
  });
  return named;
}

}  // namespace kiln
