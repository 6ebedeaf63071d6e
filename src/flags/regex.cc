#include "flags/regex.h"

#include <optional>
#include <regex>

#include "base/stack.h"
#include "base/strings.h"

namespace kiln::flags {
namespace {

// The C++ library's depth grows with the expression.
constexpr size_t kMostCharacters = 1000;

std::string_view MistakeOf(std::regex_constants::error_type code) {
  using namespace std::regex_constants;  // NOLINT: names of its errors only
  // The C++ library says the same of both.
  if (code == error_paren) return "a parenthesis has no partner, or a repetition has no item";
  if (code == error_brack) return "a bracket has no partner";
  if (code == error_brace || code == error_badbrace) return "a repetition in braces is invalid";
  if (code == error_badrepeat) return "a repetition has no item";
  if (code == error_range) return "a range of characters is invalid";
  if (code == error_escape) return "an escape is invalid";
  if (code == error_backref || code == error_complexity) return "back references are not supported";
  if (code == error_ctype) return "a class of characters is unknown";
  if (code == error_collate) return "a collating element is unknown";
  return "it is too large";
}

}  // namespace

struct Regex::Compiled {
  std::regex regex;
};

Result<Regex> Regex::Compile(std::string_view text) {
  Regex made;
  if (text.empty()) return made;
  if (text.size() > kMostCharacters) {
    return InvalidArgument("the regular expression has ", text.size(), " characters; at most ",
                           kMostCharacters, " are supported");
  }
  made.text_ = text;
  auto flags = std::regex::ECMAScript | std::regex::nosubs;
#ifdef __GLIBCXX__
  // Names come from untrusted programs: no backtracking, and no recursion along the text.
  flags |= std::regex_constants::__polynomial;
#endif
  std::optional<std::regex_constants::error_type> mistake;
  KILN_RETURN_IF_ERROR(OnOwnStack([&] {
    try {
      auto compiled = std::make_shared<Compiled>();
      compiled->regex.imbue(std::locale::classic());
      // Its mistakes must not be hidden by what is put around it.
      compiled->regex.assign(made.text_, flags);
      // A search would begin anew at each character.
      compiled->regex.assign(Cat("[^]*?(?:", made.text_, ")"), flags);
      made.compiled_ = std::move(compiled);
    } catch (const std::regex_error& error) {
      mistake = error.code();
    }
  }));
  if (!mistake) return made;
  return InvalidArgument("the regular expression '", text, "' is malformed: ", MistakeOf(*mistake));
}

bool Regex::Matches(std::string_view name) const {
  if (!compiled_) return false;
  bool matches = false;
  Status status = OnOwnStack([&] {
    try {
      matches = std::regex_search(name.begin(), name.end(), compiled_->regex,
                                  std::regex_constants::match_continuous);
    } catch (const std::regex_error&) {
      matches = false;
    }
  });
  return status.ok() && matches;
}

}  // namespace kiln::flags
