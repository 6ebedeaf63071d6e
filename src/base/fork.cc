#include "base/fork.h"

#include <pthread.h>

namespace kiln {
namespace internal {
std::atomic<uint32_t> fork_generation{0};
}

namespace {

// Runs when the library is loaded; the handler is removed with it. Without memory for the handler,
// children are not recognised.
[[maybe_unused]] const int registered = pthread_atfork(
    nullptr, nullptr, [] { internal::fork_generation.fetch_add(1, std::memory_order_relaxed); });

}  // namespace
}  // namespace kiln
