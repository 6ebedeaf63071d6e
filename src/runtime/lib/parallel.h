// The pool's threads for functions outside generated code.
#pragma once

#include <cstdint>
#include <type_traits>

#include "frame/frame.h"

namespace kiln::runtime::lib {

// Whether the run is cancelled: the function then skips the rest of its work, and its caller fails
// the run.
inline bool IsCancelled(const kiln_frame* frame) {
  return frame->cancel && __atomic_load_n(frame->cancel, __ATOMIC_RELAXED) != 0;
}

// Calls f(item) for each item, on the frame's threads; returns when all are done. f must not throw.
template <typename F>
void ForEach(const kiln_frame* frame, int64_t items, F&& f) {
  if (items == 1) {
    f(int64_t{0});
    return;
  }
  using Function = std::remove_reference_t<F>;
  kiln_kernel_fn kernel = [](const kiln_frame*, void* const* args, int64_t begin, int64_t end) {
    Function& function = *static_cast<Function*>(args[0]);
    for (int64_t item = begin; item < end; ++item) function(item);
  };
  void* args[] = {const_cast<void*>(static_cast<const void*>(&f))};
  if (items > 0) frame->table->parallel_for(frame, kernel, args, items, items, 1);
}

}  // namespace kiln::runtime::lib
