#include "flags/parse.h"

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <string_view>
#include <variant>

#include "base/characters.h"
#include "base/overloaded.h"
#include "base/strings.h"
#include "flags/table.h"
#include "flags/tokens.h"

namespace kiln::flags {
namespace {

constexpr size_t kMostBytesOfFile = 1 << 20;
constexpr size_t kMostShown = 100;

// Part of a message, in quotes.
std::string Shown(std::string_view text) {
  if (text.size() <= kMostShown) return Cat("'", text, "'");
  while (text.size() > kMostShown || (text.size() > 0 && (text.back() & 0x80))) {
    text.remove_suffix(1);
  }
  return Cat("'", text, "...'");
}

bool IsOneOf(std::string_view value, std::initializer_list<std::string_view> words) {
  return std::ranges::any_of(words, [&](std::string_view word) {
    return std::ranges::equal(value, word, [](char a, char b) { return ToLower(a) == b; });
  });
}

Status Set(Bool& place, std::string_view value) {
  if (IsOneOf(value, {"true", "t", "yes", "y", "1"})) {
    place = true;
  } else if (IsOneOf(value, {"false", "f", "no", "n", "0"})) {
    place = false;
  } else {
    return InvalidArgument("is ", Shown(value), "; expected true or false");
  }
  return OkStatus();
}

Status Set(Int& place, std::string_view value, const FlagInfo& info) {
  const std::optional<int64_t> number = ParseInt(value);
  if (!number || *number < info.least || *number > info.most) {
    return InvalidArgument("is ", Shown(value), "; expected an integer of at least ", info.least,
                           info.most == INT64_MAX ? "" : Cat(" and at most ", info.most));
  }
  place = *number;
  return OkStatus();
}

Status Set(List& place, std::string_view value) {
  place.clear();
  for (std::string_view piece : Split(value, ',')) {
    if (const std::string_view name = Trim(piece); !name.empty()) place.emplace_back(name);
  }
  return OkStatus();
}

Status Set(Regex& place, std::string_view value) {
  Result<Regex> regex = Regex::Compile(value);
  if (!regex.ok()) return InvalidArgument("is refused: ", regex.status().message());
  place = *std::move(regex);
  return OkStatus();
}

Status Set(Level& place, std::string_view value) {
  constexpr Level kLevels[] = {Level::kInfo, Level::kWarning, Level::kError, Level::kOff};
  constexpr std::string_view kNames[] = {"info", "warning", "error", "off"};
  const auto* name = std::ranges::find(kNames, value);
  if (name == std::end(kNames)) {
    return InvalidArgument("is ", Shown(value), "; expected ", Join(kNames, ", "));
  }
  place = kLevels[name - std::begin(kNames)];
  return OkStatus();
}

Status SetFlag(const FlagInfo& info, Flags& flags, std::string_view value) {
  if (value.find('\0') != std::string_view::npos) return InvalidArgument("has a character 0");
  return std::visit(Overloaded{[&](Bool* place) { return Set(*place, value); },
                               [&](Int* place) { return Set(*place, value, info); },
                               [&](Text* place) {
                                 *place = value;
                                 return OkStatus();
                               },
                               [&](List* place) { return Set(*place, value); },
                               [&](Regex* place) { return Set(*place, value); },
                               [&](Level* place) { return Set(*place, value); }},
                    info.place(flags));
}

bool IsBool(const FlagInfo& info) {
  Flags flags;
  return std::holds_alternative<Bool*>(info.place(flags));
}

Result<std::string> ReadFlagFile(const std::string& path) {
  struct Close {
    void operator()(std::FILE* file) const { std::fclose(file); }
  };
  std::unique_ptr<std::FILE, Close> file(std::fopen(path.c_str(), "rbe"));
  if (!file) return InvalidArgument("the file ", Shown(path), " of flags cannot be opened");
  std::string text(kMostBytesOfFile + 1, '\0');
  text.resize(std::fread(text.data(), 1, text.size(), file.get()));
  if (std::ferror(file.get())) {
    return InvalidArgument("the file ", Shown(path), " of flags cannot be read");
  }
  if (text.size() > kMostBytesOfFile) {
    return InvalidArgument("the file ", Shown(path), " of flags has more than ", kMostBytesOfFile,
                           " bytes");
  }
  return text;
}

class Parser {
 public:
  explicit Parser(const Lookup& lookup) : lookup_(lookup) {}

  Result<Parsed> Run() {
    // The last one wins.
    ReadPlain(Variable::kTfDumpGraphPrefix);
    ReadFlags(Variable::kTfXlaFlags);
    ReadFlags(Variable::kXlaFlags);
    ReadPlain(Variable::kKilnCache);
    ReadFlags(Variable::kKilnFlags);
    KILN_RETURN_IF_ERROR(error_);
    return std::move(parsed_);
  }

 private:
  void ReadFlags(Variable variable) {
    std::optional<std::string> text = lookup_(NameOf(variable));
    if (!text) return;
    const std::string_view trimmed = Trim(*text);
    if (trimmed.empty()) return;
    if (trimmed[0] != '-') {
      Result<std::string> contents = ReadFlagFile(std::string(trimmed));
      if (!contents.ok()) return Refuse(variable, contents.status().message());
      text = *std::move(contents);
    }
    for (const Token& token : Tokenise(*text)) Apply(variable, token);
  }

  void ReadPlain(Variable variable) {
    const std::optional<std::string> text = lookup_(NameOf(variable));
    if (!text || text->empty()) return;
    const FlagInfo* flag = FindFlag(variable, "");
    Status status = SetFlag(*flag, parsed_.flags, *text);
    if (!status.ok()) return Refuse(variable, status.message());
    if (!flag->is_connected) Log(true, Cat(NameOf(variable), " is not supported yet"));
  }

  void Apply(Variable variable, const Token& token) {
    if (!token.mistake.empty())
      return Refuse(variable, Cat(Shown(token.text), ": ", token.mistake));
    const FlagInfo* flag = FindFlag(variable, token.name);
    std::optional<std::string> value = token.value;
    if (flag && !value && IsBool(*flag)) value = "true";
    if (!flag && token.name.starts_with("no")) {
      flag = FindFlag(variable, std::string_view(token.name).substr(2));
      if (flag && !IsBool(*flag)) flag = nullptr;
      if (flag && value) {
        return Refuse(variable, Cat("--", token.name, " has a value; expected none"));
      }
      if (flag) value = "false";
    }
    if (!flag) return RefuseUnknown(variable, token);
    if (!value) {
      return Refuse(variable,
                    Cat("--", token.name, " needs a value, as in --", token.name, "=value"));
    }
    Status status = SetFlag(*flag, parsed_.flags, *value);
    if (!status.ok()) return Refuse(variable, Cat("--", token.name, " ", status.message()));
    if (!flag->is_connected) {
      Log(true, Cat(NameOf(variable), ": the flag --", token.name, " is not supported yet"));
    }
  }

  void RefuseUnknown(Variable variable, const Token& token) {
    const std::string unknown = Cat("there is no flag ", Shown(Cat("--", token.name)));
    if (variable == Variable::kKilnFlags) {
      return Refuse(variable, Cat(unknown, "; the nearest is --", NearestFlag(token.name)));
    }
    for (Variable other : {Variable::kXlaFlags, Variable::kTfXlaFlags}) {
      if (FindFlag(other, token.name)) {
        return Log(false,
                   Cat(NameOf(variable), ": ignored: ", unknown, "; ", NameOf(other), " has it"));
      }
    }
    Log(false, Cat(NameOf(variable), ": ignored: ", unknown));
  }

  void Refuse(Variable variable, std::string_view what) {
    if (variable != Variable::kKilnFlags) {
      return Log(true, Cat(NameOf(variable), ": ignored: ", what));
    }
    if (error_.ok()) error_ = InvalidArgument(NameOf(variable), ": ", what);
  }

  void Log(bool is_warning, std::string text) {
    parsed_.messages.push_back({is_warning, std::move(text)});
  }

  const Lookup& lookup_;
  Parsed parsed_;
  Status error_;
};

}  // namespace

Result<Parsed> Parse(const Lookup& lookup) { return Parser(lookup).Run(); }

Result<Parsed> FromEnvironment() {
  return Parse([](const char* variable) -> std::optional<std::string> {
    const char* value = secure_getenv(variable);
    if (!value) return std::nullopt;
    return value;
  });
}

}  // namespace kiln::flags
