#include "ir/names.h"

#include <algorithm>
#include <optional>

#include "base/characters.h"
#include "base/strings.h"
#include "tensor/element_type.h"

namespace kiln::ir {
namespace {

bool IsTypeName(std::string_view name) {
  constexpr std::string_view kOthers[] = {"token", "opaque", "s1", "u1"};
  return TypeByName(name) || std::ranges::find(kOthers, name) != std::end(kOthers);
}

// HLO's names are letters, digits, '_', '.' and '-', and do not begin with the last two or a digit.
// XLA keeps the names of types, and those that begin with "__", to itself.
std::string ValidName(std::string_view wanted) {
  std::string name(wanted);
  for (char& c : name) {
    if (!IsLetter(c) && !IsDigit(c) && c != '.' && c != '-') c = '_';
  }
  if (name.empty() || !IsLetter(name[0])) name.insert(name.begin(), '_');
  if (name.starts_with("__") && !name.starts_with("__xla_")) name[0] = 'a';
  if (IsTypeName(name)) name += '_';
  return name;
}

// Where the number behind the last dot begins, if Cat would write it like that.
std::optional<size_t> NumberOf(std::string_view name) {
  size_t digits = name.size();
  while (digits > 0 && IsDigit(name[digits - 1])) --digits;
  size_t count = name.size() - digits;
  if (count == 0 || count > 18 || digits < 2 || name[digits - 1] != '.') return std::nullopt;
  if (name[digits] == '0' && count > 1) return std::nullopt;
  return digits;
}

}  // namespace

Names::Stem& Names::StemOf(std::string_view name) {
  auto it = stems_.find(name);
  if (it == stems_.end()) it = stems_.try_emplace(std::string(name)).first;
  return it->second;
}

std::string Names::Unique(std::string_view wanted) {
  std::string name = ValidName(wanted);
  std::optional<size_t> number = NumberOf(name);
  Stem& stem = StemOf(std::string_view(name).substr(0, number ? *number - 1 : name.size()));
  auto skip = [&] {
    while (stem.others.erase(stem.next) > 0) ++stem.next;
  };
  if (!number) {
    if (!stem.is_taken) {
      stem.is_taken = true;
      return name;
    }
  } else {
    int64_t n = *ParseInt(std::string_view(name).substr(*number));
    if (n == stem.next) {
      ++stem.next;
      skip();
      return name;
    }
    if ((n == 0 || n > stem.next) && stem.others.insert(n).second) return name;
    name.resize(*number - 1);
  }
  name += '.';
  AppendTo(name, stem.next++);
  skip();
  return name;
}

}  // namespace kiln::ir
