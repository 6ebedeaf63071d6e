#include "stablehlo/bytecode/input.h"

#include <bit>
#include <cstring>

namespace kiln::stablehlo {

Status FailAtByte(size_t offset, std::string_view found, std::string_view expected) {
  return InvalidArgument("byte ", offset, ": found ", found, "; expected ", expected);
}

Result<uint8_t> Input::Byte(std::string_view what) {
  if (AtEnd()) return Fail("the end", what);
  return static_cast<uint8_t>(bytes_[at_++]);
}

Result<uint64_t> Input::VarInt(std::string_view what) {
  if (AtEnd()) return Fail("the end", what);
  const auto first = static_cast<uint8_t>(bytes_[at_]);
  const auto more = static_cast<size_t>(std::countr_zero(first));  // 8 of zero
  if (more >= remaining()) return Fail("the end", what);
  uint64_t value = 0;
  if (more == 8) {
    std::memcpy(&value, bytes_.data() + at_ + 1, 8);
  } else {
    std::memcpy(&value, bytes_.data() + at_, more + 1);
    value >>= more + 1;
  }
  at_ += more + 1;
  return value;
}

Result<int64_t> Input::SignedVarInt(std::string_view what) {
  KILN_ASSIGN_OR_RETURN(uint64_t value, VarInt(what));
  return static_cast<int64_t>((value >> 1) ^ (uint64_t{0} - (value & 1)));
}

Result<uint64_t> Input::Flagged(bool* flag, std::string_view what) {
  KILN_ASSIGN_OR_RETURN(uint64_t value, VarInt(what));
  *flag = (value & 1) != 0;
  return value >> 1;
}

Result<std::string_view> Input::Bytes(uint64_t size, std::string_view what) {
  if (size > remaining()) {
    return Fail(Cat(remaining(), " bytes up to the end"), Cat(size, " bytes of ", what));
  }
  const std::string_view bytes = bytes_.substr(at_, size);
  at_ += size;
  return bytes;
}

Result<uint64_t> Input::Count(std::string_view what) {
  const size_t at = offset();
  KILN_ASSIGN_OR_RETURN(uint64_t count, VarInt(what));
  if (count > remaining()) {
    return FailAtByte(at, Cat(count),
                      Cat(what, ", at most ", remaining(), " as so many bytes follow"));
  }
  return count;
}

Result<uint64_t> Input::Index(uint64_t limit, std::string_view what) {
  const size_t at = offset();
  KILN_ASSIGN_OR_RETURN(uint64_t index, VarInt(what));
  if (index >= limit) return FailAtByte(at, Cat(index), Cat(what, " below ", limit));
  return index;
}

Result<std::string_view> Input::Text(std::string_view what) {
  const size_t end = bytes_.find('\0', at_);
  if (end == std::string_view::npos) return Fail("no byte of zero", what);
  const std::string_view text = bytes_.substr(at_, end - at_);
  at_ = end + 1;
  return text;
}

Status Input::Align(uint64_t alignment) {
  if (!std::has_single_bit(alignment)) {
    return Fail(Cat("the alignment ", alignment), "a power of two");
  }
  constexpr uint8_t kPadding = 0xCB;
  while ((offset() & (alignment - 1)) != 0) {
    const size_t at = offset();
    KILN_ASSIGN_OR_RETURN(uint8_t byte, Byte("a byte of padding"));
    if (byte != kPadding) return FailAtByte(at, Cat("the byte ", int{byte}), "203, as padding is");
  }
  return OkStatus();
}

Result<Input> Input::AnySection(int* id) {
  constexpr int kAligned = 0x80;
  const size_t at = offset();
  KILN_ASSIGN_OR_RETURN(uint8_t head, Byte("a section"));
  *id = head & (kAligned - 1);
  if (*id >= kNumSections) {
    return FailAtByte(at, Cat("a section of the kind ", *id), Cat("a kind below ", +kNumSections));
  }
  KILN_ASSIGN_OR_RETURN(uint64_t size, VarInt("the size of a section"));
  if ((head & kAligned) != 0) {
    KILN_ASSIGN_OR_RETURN(uint64_t alignment, VarInt("the alignment of a section"));
    KILN_RETURN_IF_ERROR(Align(alignment));
  }
  const size_t begin = offset();
  KILN_ASSIGN_OR_RETURN(std::string_view bytes, Bytes(size, "a section"));
  return Input(bytes, begin);
}

Result<Input> Input::Section(int id) {
  const size_t at = offset();
  int found = 0;
  KILN_ASSIGN_OR_RETURN(Input section, AnySection(&found));
  if (found == id) return section;
  return FailAtByte(at, Cat("a section of the kind ", found), Cat("one of the kind ", id));
}

Status Input::ExpectEnd(std::string_view what) const {
  if (AtEnd()) return OkStatus();
  return Fail(Cat(remaining(), " bytes more"), Cat("the end of ", what));
}

}  // namespace kiln::stablehlo
