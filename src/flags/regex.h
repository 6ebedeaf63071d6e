// Regular expressions of flags: std::regex in ECMAScript's grammar, without its exceptions. The C++
// library's header is in regex.cc alone.
#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "base/status.h"

namespace kiln::flags {

class Regex {
 public:
  // Without an expression: matches nothing.
  Regex() = default;
  // INVALID_ARGUMENT with the expression and its mistake. Back references are one: matching takes
  // time linear in the text. "" gives a Regex without an expression.
  static Result<Regex> Compile(std::string_view text);

  bool empty() const { return compiled_ == nullptr; }
  const std::string& text() const { return text_; }
  // Whether a part of `name` matches. Any thread.
  bool Matches(std::string_view name) const;

  std::string ToString() const { return text_; }
  bool operator==(const Regex& other) const { return text_ == other.text_; }

 private:
  struct Compiled;

  std::string text_;
  std::shared_ptr<const Compiled> compiled_;
};

}  // namespace kiln::flags
