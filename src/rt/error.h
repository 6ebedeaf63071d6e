// Failures as texts in the caller's memory.
#pragma once

#include <cstdint>
#include <string_view>

#include "base/status.h"
#include "kiln/aot.h"

namespace kiln::rt {

// Appends to the text of an error, as far as there is room.
class ErrorText {
 public:
  explicit ErrorText(char* text) : text_(text) { *text_ = 0; }

  ErrorText& Add(std::string_view piece) {
    for (char c : piece) {
      if (size_ + 1 == KILN_AOT_TEXT_BYTES) break;
      text_[size_++] = c;
    }
    text_[size_] = 0;
    return *this;
  }
  ErrorText& Add(int64_t number) {
    if (number < 0) Add("-");
    auto rest = number < 0 ? -static_cast<uint64_t>(number) : static_cast<uint64_t>(number);
    char digits[20];
    size_t begin = sizeof(digits);
    do {
      digits[--begin] = static_cast<char>('0' + rest % 10);
      rest /= 10;
    } while (rest != 0);
    return Add(std::string_view(digits + begin, sizeof(digits) - begin));
  }

 private:
  char* const text_;
  size_t size_ = 0;
};

// Fills in an error, unless that is null, of pieces and numbers. Returns the code.
template <typename... Pieces>
int32_t Fail(kiln_aot_error* error, Code code, const Pieces&... pieces) {
  if (error) {
    error->code = static_cast<int32_t>(code);
    ErrorText text(error->text);
    (text.Add(pieces), ...);
  }
  return static_cast<int32_t>(code);
}

}  // namespace kiln::rt
