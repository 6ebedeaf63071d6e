#include "base/random_state.h"

#include <atomic>
#include <cstdlib>
#include <optional>
#include <random>

#include "base/strings.h"

namespace kiln {
namespace {

uint64_t DrawKey() {
  if (const char* seed = std::getenv("KILN_RANDOM_SEED")) {
    if (std::optional<int64_t> number = ParseInt(seed)) return static_cast<uint64_t>(*number);
  }
  std::random_device device;
  return uint64_t{device()} << 32 | device();
}

}  // namespace

std::array<uint64_t, 2> NextRandomState(int64_t count) {
  static const uint64_t key = DrawKey();
  static std::atomic<uint64_t> counter{0};
  return {key, counter.fetch_add(static_cast<uint64_t>(count), std::memory_order_relaxed)};
}

}  // namespace kiln
