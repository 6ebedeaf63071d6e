#include "backend/fingerprint.h"

#include "llvm/ADT/ArrayRef.h"
#include "llvm/Support/xxhash.h"

namespace kiln::backend {

uint64_t FingerprintOf(std::string_view bytes) {
  return llvm::xxh3_64bits(
      llvm::ArrayRef(reinterpret_cast<const uint8_t*>(bytes.data()), bytes.size()));
}

}  // namespace kiln::backend
