#include "tools/kiln_gen/flags_page.h"

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <regex>
#include <set>
#include <sstream>
#include <variant>

#include "base/overloaded.h"
#include "base/strings.h"

namespace kiln::gen {
namespace {

namespace fs = std::filesystem;
using flags::FlagInfo;
using flags::Reader;

constexpr std::string_view kHead = R"(
# Flags

Users who cannot change a program give it flags by environment variables. A flag is a default: it holds
where the program leaves the member of an options struct at 0. A context reads the variables once, when
it is made; contexts of one process may have different flags.

```sh
KILN_FLAGS="--dump_to=/tmp/dump --dump_hlo_pass_re=fusion" ./program
```

- `--name=value` sets a flag; `--name` and `--noname` set a flag of true or false. Flags are separated by
  white space, and one dash is as good as two. A value may be in quotes, `--name="a value"`; a backslash
  in double quotes keeps the next character as it is.
- A variable whose value does not begin with a dash names a file with the flags.
- The last one of several equal flags holds. `KILN_FLAGS` goes before the other variables.
- A mistake in `KILN_FLAGS` is an error of `kiln_context_create`, `INVALID_ARGUMENT`, which names the
  nearest flag for an unknown one.
- `XLA_FLAGS` and `TF_XLA_FLAGS` are shared with XLA and TensorFlow. Unknown flags there are ignored with
  an information in the log, malformed ones with a warning. A flag that Kiln knows and does not support
  gives a warning.
- Regular expressions are ECMAScript's, without back references. They match if a part of the name
  matches.
- Programs with more rights than their user (set-user-ID) ignore all flags.
)";

std::string_view TitleOf(Reader reader) {
  switch (reader) {
    case Reader::kContext:
      return "Contexts";
    case Reader::kCompile:
      return "Compilations";
    case Reader::kSession:
      return "Sessions";
  }
  return "";
}

std::string FormOf(const FlagInfo& info) {
  flags::Flags defaults;
  const std::string_view value = std::visit(
      Overloaded{[](flags::Bool*) { return ""; }, [](flags::Int*) { return "=N"; },
                 [](flags::Text*) { return "=TEXT"; }, [](flags::List*) { return "=A,B"; },
                 [](flags::Regex*) { return "=REGEX"; }, [](flags::Level*) { return "=LEVEL"; }},
      info.place(defaults));
  return Cat("`--", info.name, value, "`");
}

std::string DefaultOf(const FlagInfo& info) {
  flags::Flags defaults;
  const flags::Place place = info.place(defaults);
  if (const auto* number = std::get_if<flags::Int*>(&place)) {
    if (**number == INT64_MAX || **number == INT32_MAX) return "no limit";
  }
  const std::string text = flags::ValueText(info, defaults);
  return text.empty() ? "" : Cat("`", text, "`");
}

std::string SpellingsOf(const FlagInfo& info) {
  // A name with all its variables.
  std::vector<std::string> texts;
  std::set<std::string_view> done;
  for (const flags::Spelling& spelling : info.spellings) {
    if (!done.insert(spelling.name).second) continue;
    std::vector<std::string> variables;
    for (const flags::Spelling& other : info.spellings) {
      if (other.name == spelling.name) variables.push_back(Cat("`", NameOf(other.variable), "`"));
    }
    const std::string in = Join(variables, ", ");
    texts.push_back(spelling.name.empty() ? in : Cat("`--", spelling.name, "` in ", in));
  }
  return Join(texts, "; ");
}

}  // namespace

std::string FlagsPage(std::string_view notice, std::span<const FlagInfo> flags,
                      std::span<const flags::VariableInfo> variables) {
  std::string out = Cat("<!-- ", notice, " -->\n", kHead.substr(1));
  for (Reader reader : {Reader::kContext, Reader::kCompile, Reader::kSession}) {
    std::string rows;
    for (const FlagInfo& flag : flags) {
      if (flag.reader != reader || !flag.is_connected) continue;
      rows += Cat("| ", FormOf(flag), " | ", DefaultOf(flag), " | ", SpellingsOf(flag), " | ",
                  flag.documentation, " |\n");
    }
    if (rows.empty()) continue;
    out += Cat("\n## ", TitleOf(reader), "\n\n| in `KILN_FLAGS` | default | also | meaning |\n",
               "|---|---|---|---|\n", rows);
  }
  out += "\n## Other environment variables\n\n| variable | values | meaning |\n|---|---|---|\n";
  for (const flags::VariableInfo& variable : variables) {
    out +=
        Cat("| `", variable.name, "` | ", variable.values, " | ", variable.documentation, " |\n");
  }
  return out;
}

Status CheckVariables(const std::string& root, std::span<const flags::VariableInfo> variables) {
  std::set<std::string> read;
  std::error_code error;
  const std::regex call(R"x(\bgetenv\("(\w+)"\))x");
  for (const auto& entry : fs::recursive_directory_iterator(fs::path(root) / "src", error)) {
    const std::string path = entry.path().string();
    if (!path.ends_with(".cc") && !path.ends_with(".h") && !path.ends_with(".c")) continue;
    std::ifstream stream(entry.path(), std::ios::binary);
    std::ostringstream text;
    text << stream.rdbuf();
    const std::string source = std::move(text).str();
    for (std::sregex_iterator it(source.begin(), source.end(), call), end; it != end; ++it) {
      const std::string name = (*it)[1].str();
      read.insert(name);
      if (!std::ranges::count(variables, name, &flags::VariableInfo::name)) {
        return NotFound("src/flags/flags.def: ", path, " reads ", name, ", which has no row");
      }
    }
  }
  if (error) return Unavailable(root, "/src: ", error.message());
  for (const flags::VariableInfo& variable : variables) {
    if (!read.contains(std::string(variable.name))) {
      return NotFound("src/flags/flags.def: nothing reads ", variable.name);
    }
  }
  return OkStatus();
}

}  // namespace kiln::gen
