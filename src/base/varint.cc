#include "base/varint.h"

namespace kiln {

void AppendVarint(std::string& bytes, uint64_t number) {
  for (; number > 127; number >>= 7) bytes += static_cast<char>(number | 128);
  bytes += static_cast<char>(number);
}

}  // namespace kiln
