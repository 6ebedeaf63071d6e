#include "base/fork.h"

#include <pthread.h>

namespace kiln {
namespace internal {
std::atomic<uint32_t> fork_generation{0};
}

namespace {

// When the library is loaded; the handler goes with it. Without memory for it nothing is told
// apart.
[[maybe_unused]] const int registered = pthread_atfork(
    nullptr, nullptr, [] { internal::fork_generation.fetch_add(1, std::memory_order_relaxed); });

}  // namespace
}  // namespace kiln
