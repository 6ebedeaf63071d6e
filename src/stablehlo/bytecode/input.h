// A piece of bytecode, read from its beginning to its end. It knows its offset in the whole, for
// messages. Private to the bytecode reader.
#pragma once

#include <cstdint>
#include <string_view>

#include "base/status.h"

namespace kiln::stablehlo {

// "byte N: found X; expected Y"
Status FailAtByte(size_t offset, std::string_view found, std::string_view expected);

class Input {
 public:
  Input() = default;
  // The bytes begin at `offset` of the whole.
  Input(std::string_view bytes, size_t offset) : bytes_(bytes), offset_(offset) {}

  // The offset of the next byte in the whole.
  size_t offset() const { return offset_ + at_; }
  size_t remaining() const { return bytes_.size() - at_; }
  bool AtEnd() const { return remaining() == 0; }

  Result<uint8_t> Byte(std::string_view what);
  // One byte up to 127, and up to nine bytes: as many more as the first has zeros in front of its
  // lowest set bit.
  Result<uint64_t> VarInt(std::string_view what);
  // The lowest bit is the sign.
  Result<int64_t> SignedVarInt(std::string_view what);
  // The lowest bit is a flag.
  Result<uint64_t> Flagged(bool* flag, std::string_view what);
  Result<std::string_view> Bytes(uint64_t size, std::string_view what);
  // A number of items of at least one byte each: at most the number of remaining bytes.
  Result<uint64_t> Count(std::string_view what);
  // A number below `limit`.
  Result<uint64_t> Index(uint64_t limit, std::string_view what);
  // Up to a zero byte, which is consumed, too.
  Result<std::string_view> Text(std::string_view what);
  // An expected id, and the contents behind it.
  Result<Input> Section(int id);
  Result<Input> AnySection(int* id);
  // Skips the bytes up to a multiple of the alignment, in the whole.
  Status Align(uint64_t alignment);

  Status ExpectEnd(std::string_view what) const;
  Status Fail(std::string_view found, std::string_view expected) const {
    return FailAtByte(offset(), found, expected);
  }

 private:
  std::string_view bytes_;
  size_t offset_ = 0;
  size_t at_ = 0;
};

// The contents of sections.
enum SectionId : int {
  kStringSection,
  kDialectSection,
  kTableSection,
  kTableOffsetSection,
  kIrSection,
  kResourceSection,
  kResourceOffsetSection,
  kDialectVersionSection,
  kPropertySection,
  kNumSections,
};

}  // namespace kiln::stablehlo
