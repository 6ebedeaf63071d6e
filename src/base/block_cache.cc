#include "base/block_cache.h"

#include <cstdlib>
#include <utility>

namespace kiln {

void BlockCache::Clear() {
  for (Block*& first : first_) {
    while (first) std::free(std::exchange(first, first->next));
  }
  kept_bytes_ = 0;
}

}  // namespace kiln
