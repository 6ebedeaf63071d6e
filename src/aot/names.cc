#include "aot/names.h"

#include <algorithm>

#include "base/strings.h"

namespace kiln::aot {
namespace {

// Of C23, C++20 and GNU C, with what GNU C defines as a macro; each between spaces.
constexpr std::string_view kKeywords =
    " alignas alignof and and_eq asm auto bitand bitor bool break case catch char char16_t "
    "char32_t char8_t class co_await co_return co_yield compl concept const const_cast "
    "consteval constexpr constinit continue decltype default delete do double dynamic_cast "
    "else enum explicit export extern false float for friend goto if inline int linux long mutable "
    "namespace new noexcept not not_eq nullptr operator or or_eq private protected public "
    "register reinterpret_cast requires restrict return short signed sizeof static "
    "static_assert static_cast struct switch template this thread_local throw true try "
    "typedef typeid typename typeof typeof_unqual union unix unsigned using virtual void volatile "
    "wchar_t while xor "
    "xor_eq ";

bool IsLetter(char c) { return c == '_' || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z'); }
bool IsDigit(char c) { return c >= '0' && c <= '9'; }
bool IsKeyword(std::string_view text) {
  return kKeywords.find(Cat(" ", text, " ")) != kKeywords.npos;
}
// "__x" and "_X" belong to compilers and their libraries.
bool IsReserved(std::string_view text) {
  return text.size() > 1 && text[0] == '_' &&
         (text[1] == '_' || (text[1] >= 'A' && text[1] <= 'Z'));
}

}  // namespace

bool IsCName(std::string_view text) {
  return !text.empty() && IsLetter(text[0]) && !IsKeyword(text) && !IsReserved(text) &&
         std::ranges::all_of(text, [](char c) { return IsLetter(c) || IsDigit(c); });
}

std::string CName(std::string_view text) {
  std::string name(text);
  std::ranges::replace_if(
      name, [](char c) { return !IsLetter(c) && !IsDigit(c); }, '_');
  if (IsReserved(name)) return "x" + name;
  return IsCName(name) ? name : "_" + name;
}

std::string UniqueNames::Make(std::string_view text, std::string_view suffix) {
  const std::string name = CName(text);
  std::string unique = name;
  auto is_taken = [&] { return taken_.contains(unique) || taken_.contains(Cat(unique, suffix)); };
  for (int number = 2; is_taken(); ++number) unique = Cat(name, "_", number);
  taken_.insert(unique);
  taken_.insert(Cat(unique, suffix));
  return unique;
}

}  // namespace kiln::aot
