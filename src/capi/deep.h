// The guard around functions with a recursion as deep as a program.
#pragma once

#include "base/block_cache.h"
#include "base/stack.h"
#include "capi/error.h"

namespace kiln::capi {

// As Guard, on a stack of the library's own.
template <typename F>
kiln_error* GuardDeep(F&& f) noexcept {
  return Guard([&]() -> Status {
    const BlockCacheScope blocks;
    Status status;
    KILN_RETURN_IF_ERROR(OnOwnStack([&] { status = f(); }));
    return status;
  });
}

}  // namespace kiln::capi
