// Text helpers independent of the locale: numbers always print and parse as in C.
#pragma once

#include <charconv>
#include <concepts>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace kiln {

inline void AppendTo(std::string& out, std::string_view s) { out.append(s); }
inline void AppendTo(std::string& out, const char* s) { out.append(s); }
inline void AppendTo(std::string& out, char c) { out.push_back(c); }
inline void AppendTo(std::string& out, bool b) { out.append(b ? "true" : "false"); }
template <std::integral T>
void AppendTo(std::string& out, T value) {
  char buffer[24];
  auto end = std::to_chars(buffer, buffer + sizeof(buffer), value).ptr;
  out.append(buffer, end);
}
// The shortest text that reads back to the same value.
void AppendTo(std::string& out, double value);
void AppendTo(std::string& out, float value);
template <typename T>
requires requires(const T& t) {
  { t.ToString() } -> std::convertible_to<std::string>;
}
void AppendTo(std::string& out, const T& value) { out.append(value.ToString()); }

// Concatenates strings, characters, numbers and everything with ToString().
template <typename... Args>
std::string Cat(const Args&... args) {
  std::string out;
  (AppendTo(out, args), ...);
  return out;
}

// "a, b, c" of any values accepted by Cat.
template <typename Range>
std::string Join(const Range& range, std::string_view separator) {
  std::string out;
  bool first = true;
  for (const auto& item : range) {
    if (!first) out.append(separator);
    first = false;
    AppendTo(out, item);
  }
  return out;
}

// Pieces between separators; "" gives no piece.
std::vector<std::string_view> Split(std::string_view text, char separator);
std::string_view Trim(std::string_view text);
std::optional<int64_t> ParseInt(std::string_view text);
std::optional<double> ParseDouble(std::string_view text);  // also inf, nan and hex floats
bool StartsWith(std::string_view text, std::string_view prefix);
// In ASCII whatever the locale is.
std::string ToUpper(std::string_view text);
std::string ToLower(std::string_view text);
// With C's escapes, octal for unprintable characters, as in XLA's strings; without the quotes.
std::string EscapeC(std::string_view text);
// With JSON's escapes, without the quotes around it.
std::string EscapeJson(std::string_view text);

}  // namespace kiln
