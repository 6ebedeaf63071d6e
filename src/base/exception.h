// Exceptions of the standard library as statuses, at the doors where none may pass.
#pragma once

#include <utility>

#include "base/status.h"

namespace kiln {

// The exception that is being handled: out of memory, of threads, or a mistake of ours. It needs no
// memory where there is none.
Status StatusOfException() noexcept;

// f() -> Status, with an exception as a status.
template <typename F>
Status Try(F&& f) noexcept {
  try {
    return std::forward<F>(f)();
  } catch (...) {
    return StatusOfException();
  }
}

}  // namespace kiln
