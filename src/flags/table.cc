#include "flags/table.h"

#include <algorithm>
#include <limits>
#include <numeric>

#include "base/overloaded.h"
#include "base/strings.h"

namespace kiln::flags {
namespace {

std::vector<FlagInfo> MakeTable() {
  std::vector<FlagInfo> table = {
#define KILN_CONTEXT_FLAG(Type, member, value, least, most, connected, text) \
  {Reader::kContext,                                                         \
   #member,                                                                  \
   least,                                                                    \
   most,                                                                     \
   connected,                                                                \
   text,                                                                     \
   [](Flags& flags) -> Place { return &flags.context.member; },              \
   {}},
#define KILN_COMPILE_FLAG(Type, member, value, least, most, connected, text) \
  {Reader::kCompile,                                                         \
   #member,                                                                  \
   least,                                                                    \
   most,                                                                     \
   connected,                                                                \
   text,                                                                     \
   [](Flags& flags) -> Place { return &flags.compile.member; },              \
   {}},
#define KILN_SESSION_FLAG(Type, member, value, least, most, connected, text) \
  {Reader::kSession,                                                         \
   #member,                                                                  \
   least,                                                                    \
   most,                                                                     \
   connected,                                                                \
   text,                                                                     \
   [](Flags& flags) -> Place { return &flags.session.member; },              \
   {}},
#include "flags/flags.def"
  };
  auto add = [&](std::string_view flag, Variable variable, std::string_view name) {
    std::ranges::find(table, flag, &FlagInfo::name)->spellings.push_back({variable, name});
  };
#define KILN_SPELLING(member, variable, name) add(#member, Variable::variable, name);
#include "flags/flags.def"
  return table;
}

const char* const kLevels[] = {"", "info", "warning", "error", "off"};

// Levenshtein's distance: single characters added, removed or replaced.
size_t Distance(std::string_view a, std::string_view b) {
  std::vector<size_t> row(b.size() + 1);
  std::iota(row.begin(), row.end(), size_t{0});
  for (size_t i = 0; i < a.size(); ++i) {
    size_t diagonal = row[0];
    row[0] = i + 1;
    for (size_t j = 0; j < b.size(); ++j) {
      const size_t replaced = diagonal + (a[i] == b[j] ? 0 : 1);
      diagonal = row[j + 1];
      row[j + 1] = std::min({replaced, row[j] + 1, diagonal + 1});
    }
  }
  return row.back();
}

}  // namespace

const char* NameOf(Variable variable) {
  switch (variable) {
    case Variable::kKilnFlags:
      return "KILN_FLAGS";
    case Variable::kXlaFlags:
      return "XLA_FLAGS";
    case Variable::kTfXlaFlags:
      return "TF_XLA_FLAGS";
    case Variable::kTfDumpGraphPrefix:
      return "TF_DUMP_GRAPH_PREFIX";
    case Variable::kKilnCache:
      return "KILN_CACHE";
  }
  return "";
}

std::span<const FlagInfo> AllFlags() {
  static const std::vector<FlagInfo> table = MakeTable();
  return table;
}

const FlagInfo* FindFlag(Variable variable, std::string_view name) {
  for (const FlagInfo& flag : AllFlags()) {
    if (variable == Variable::kKilnFlags && flag.name == name) return &flag;
    for (const Spelling& spelling : flag.spellings) {
      if (spelling.variable == variable && spelling.name == name) return &flag;
    }
  }
  return nullptr;
}

std::string ValueText(const FlagInfo& info, Flags& flags) {
  return std::visit(
      Overloaded{[](const Bool* b) { return std::string(*b ? "true" : "false"); },
                 [](const Int* i) { return Cat(*i); }, [](const Text* t) { return *t; },
                 [](const List* l) { return Join(*l, ","); },
                 [](const Regex* r) { return r->text(); },
                 [](const Level* l) -> std::string { return kLevels[static_cast<size_t>(*l)]; }},
      info.place(flags));
}

std::span<const VariableInfo> OtherVariables() {
  static constexpr VariableInfo kTable[] = {
#define KILN_VARIABLE(name, values, text) {name, values, text},
#include "flags/flags.def"
  };
  return kTable;
}

std::string_view NearestFlag(std::string_view name) {
  // A name of another variable is nearest to its own flag.
  for (Variable other : {Variable::kXlaFlags, Variable::kTfXlaFlags}) {
    if (const FlagInfo* flag = FindFlag(other, name)) return flag->name;
  }
  std::string_view nearest;
  size_t least = std::numeric_limits<size_t>::max();
  for (const FlagInfo& flag : AllFlags()) {
    const size_t distance = Distance(name, flag.name);
    if (distance >= least) continue;
    least = distance;
    nearest = flag.name;
  }
  return nearest;
}

}  // namespace kiln::flags
