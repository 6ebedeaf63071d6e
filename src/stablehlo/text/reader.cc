#include "stablehlo/text/reader.h"

#include <algorithm>

namespace kiln::stablehlo {
namespace {

constexpr int64_t kMaxNesting = 200;
// Deeper call locations are ignored.
constexpr int64_t kMaxLocationDepth = 60;

std::string_view TrimLeft(std::string_view line) {
  const size_t begin = line.find_first_not_of(" \t\r");
  return begin == std::string_view::npos ? std::string_view() : line.substr(begin);
}

// "#name =" or "!name =" at the beginning of a line; the name with its sigil, or "".
std::string_view DefinedName(std::string_view line) {
  if (line.empty() || (line[0] != '#' && line[0] != '!')) return {};
  const size_t end = line.find_first_of(" \t=<", 1);
  if (end == std::string_view::npos || end == 1) return {};
  const std::string_view rest = TrimLeft(line.substr(end));
  return rest.starts_with("=") ? line.substr(0, end) : std::string_view();
}

}  // namespace

Status Reader::Nesting::Check() const {
  if (reader_.depth_ <= kMaxNesting) return OkStatus();
  return reader_.scanner_.Fail(Cat("no more than ", kMaxNesting, " levels inside each other"));
}

Result<std::unique_ptr<mlir::Module>> Reader::Read() {
  FindDefinitions();
  Scope scope;
  while (!scanner_.AtEnd()) {
    if (scanner_.Looking("#") || scanner_.Looking("!")) {
      KILN_RETURN_IF_ERROR(ReadDefinition());
    } else if (scanner_.Looking("{-#")) {
      KILN_RETURN_IF_ERROR(ReadResources());
    } else {
      KILN_RETURN_IF_ERROR(ReadOperation(module_->body(), scope));
    }
  }
  const auto& operations = module_->body()->operations;
  if (operations.size() == 1 && operations[0]->name == "builtin.module") module_->Unwrap();
  return std::move(module_);
}

// Aliases, mostly of locations, may be used before their definition, and resources are at the end.
// The positions of both are therefore found first.
void Reader::FindDefinitions() {
  const std::string_view text = scanner_.Text(0, scanner_.size());
  for (size_t begin = 0; begin < text.size();) {
    const size_t newline = std::min(text.find('\n', begin), text.size());
    const std::string_view line = TrimLeft(text.substr(begin, newline - begin));
    if (std::string_view name = DefinedName(line); !name.empty()) {
      const auto name_end = static_cast<size_t>(name.data() + name.size() - text.data());
      definitions_.try_emplace(name, Definition{.position = text.find('=', name_end) + 1});
    } else if (line.starts_with("{-#")) {
      resource_positions_.push_back(static_cast<size_t>(line.data() - text.data()));
    }
    begin = newline + 1;
  }
}

Status Reader::ReadDefinition() {
  const char sigil = scanner_.Peek();
  const size_t at = scanner_.position();
  KILN_ASSIGN_OR_RETURN(std::string_view name, scanner_.Name(sigil, "an alias"));
  KILN_RETURN_IF_ERROR(scanner_.Expect("="));
  auto found = definitions_.find(scanner_.Text(at, at + name.size() + 1));
  if (found == definitions_.end() || found->second.position != scanner_.end()) {
    return scanner_.FailAt(at, "an alias at the beginning of a line, which no other line defines");
  }
  KILN_ASSIGN_OR_RETURN(const Definition* definition, Define(sigil, name, at));
  scanner_.Rewind(definition->end);
  return OkStatus();
}

Result<const Reader::Definition*> Reader::Define(char sigil, std::string_view name,
                                                 size_t position) {
  auto found = definitions_.find(Cat(sigil, name));
  if (found == definitions_.end()) return scanner_.FailAt(position, "an alias that is defined");
  Definition& definition = found->second;
  if (definition.reading) {
    return scanner_.FailAt(position, "an alias that does not contain itself");
  }
  if (definition.end > 0) return &definition;
  Nesting nesting(*this);
  KILN_RETURN_IF_ERROR(nesting.Check());
  definition.reading = true;
  const size_t resume = scanner_.end();
  scanner_.Rewind(definition.position);
  if (sigil == '!') {
    KILN_ASSIGN_OR_RETURN(definition.type, ReadType());
  } else {
    if (scanner_.TakeKeyword("loc")) {
      definition.is_location = true;
      KILN_ASSIGN_OR_RETURN(definition.source, ReadLocation());
      KILN_ASSIGN_OR_RETURN(definition.attribute,
                            MakeText(AttributeKind::kOpaque, definition.source.ToString()));
    } else {
      KILN_ASSIGN_OR_RETURN(definition.attribute, ReadAttribute());
    }
  }
  definition.end = scanner_.end();
  definition.reading = false;
  scanner_.Rewind(resume);
  return &definition;
}

// {-# dialect_resources: { builtin: { name: "0x..." } }, external_resources: {...} #-}
Status Reader::ReadResources() {
  KILN_RETURN_IF_ERROR(scanner_.Expect("{-#"));
  while (!scanner_.Take("#-}")) {
    const std::string_view section = scanner_.TakeWord();
    if (section.empty()) return scanner_.Fail("a section of resources, or '#-}'");
    KILN_RETURN_IF_ERROR(scanner_.Expect(":"));
    KILN_RETURN_IF_ERROR(scanner_.Expect("{"));
    while (!scanner_.Take("}")) {
      if (scanner_.TakeWord().empty()) return scanner_.Fail("a group of resources, or '}'");
      KILN_RETURN_IF_ERROR(scanner_.Expect(":"));
      KILN_RETURN_IF_ERROR(ReadResourceGroup(section == "dialect_resources"));
      scanner_.Take(",");
    }
    scanner_.Take(",");
  }
  return OkStatus();
}

Status Reader::ReadResourceGroup(bool keep) {
  KILN_RETURN_IF_ERROR(scanner_.Expect("{"));
  while (!scanner_.Take("}")) {
    std::string name;
    if (scanner_.Looking("\"")) {
      KILN_ASSIGN_OR_RETURN(name, scanner_.String());
    } else {
      name = std::string(scanner_.TakeWord());
    }
    if (name.empty()) return scanner_.Fail("the name of a resource, or '}'");
    KILN_RETURN_IF_ERROR(scanner_.Expect(":"));
    if (scanner_.Looking("\"")) {
      KILN_ASSIGN_OR_RETURN(std::string_view value, scanner_.RawString());
      if (keep) resources_.try_emplace(name, value);
    } else if (!scanner_.TakeKeyword("true") && !scanner_.TakeKeyword("false")) {
      return scanner_.Fail("a string, 'true' or 'false'");
    }
    scanner_.Take(",");
  }
  return OkStatus();
}

Result<mlir::Source> Reader::ReadLocation() {
  // It may be read partially.
  const size_t begin = scanner_.position();
  if (!scanner_.Looking("(")) return scanner_.Fail("'('");
  KILN_RETURN_IF_ERROR(scanner_.SkipBalanced());
  const size_t end = scanner_.end();
  scanner_.Rewind(begin + 1);
  mlir::Source source;
  KILN_RETURN_IF_ERROR(ReadLocationInside(source, 0));
  scanner_.Rewind(end);
  return source;
}

// Fills in missing parts.
Status Reader::ReadLocationInside(mlir::Source& source, int64_t depth) {
  if (depth == kMaxLocationDepth) return OkStatus();
  const size_t at = scanner_.position();
  if (scanner_.Looking("#")) {
    KILN_ASSIGN_OR_RETURN(std::string_view name, scanner_.Name('#', "the alias of a location"));
    auto known = definitions_.find(scanner_.Text(at, scanner_.end()));
    // Cyclic or too deep locations are empty.
    if (known != definitions_.end() && known->second.reading) return OkStatus();
    if (depth_ > kMaxNesting / 2) return OkStatus();
    KILN_ASSIGN_OR_RETURN(const Definition* definition, Define('#', name, at));
    if (!definition->is_location) return scanner_.FailAt(at, "the alias of a location");
    if (source.name.empty()) source.name = definition->source.name;
    if (source.file.empty()) {
      source.file = definition->source.file;
      source.line = definition->source.line;
      source.column = definition->source.column;
    }
    return OkStatus();
  }
  if (scanner_.Looking("\"")) {
    KILN_ASSIGN_OR_RETURN(std::string text, scanner_.String());
    if (scanner_.Take(":")) return ReadPlace(source, text);
    if (source.name.empty()) source.name = text;
    if (scanner_.Take("(")) return ReadLocationInside(source, depth + 1);
    return OkStatus();
  }
  if (scanner_.TakeKeyword("unknown")) return OkStatus();
  if (scanner_.TakeKeyword("loc") || scanner_.TakeKeyword("callsite")) {
    // The callee of a call.
    KILN_RETURN_IF_ERROR(scanner_.Expect("("));
    return ReadLocationInside(source, depth + 1);
  }
  if (scanner_.TakeKeyword("fused")) {
    if (scanner_.Looking("<")) KILN_RETURN_IF_ERROR(scanner_.SkipBalanced());
    if (!scanner_.Looking("[")) return scanner_.Fail("'['");
    // The first nonempty one, of a few.
    constexpr int kMost = 8;
    scanner_.Take("[");
    for (int i = 0; i < kMost && !scanner_.Looking("]"); ++i) {
      const size_t begin = scanner_.position();
      KILN_RETURN_IF_ERROR(ReadLocationInside(source, depth + 1));
      if (!source.file.empty()) break;
      // Skips the rest if it is simple; otherwise this is enough.
      scanner_.Rewind(begin);
      if (scanner_.Looking("#")) {
        KILN_RETURN_IF_ERROR(scanner_.Name('#', "the alias of a location").status());
      } else if (scanner_.Looking("\"")) {
        KILN_RETURN_IF_ERROR(scanner_.RawString().status());
        if (scanner_.Looking("(")) KILN_RETURN_IF_ERROR(scanner_.SkipBalanced());
      } else {
        scanner_.TakeWord();
        if (scanner_.Looking("(")) KILN_RETURN_IF_ERROR(scanner_.SkipBalanced());
      }
      if (!scanner_.Take(",")) break;
    }
    return OkStatus();
  }
  return scanner_.Fail("a location");
}

// After "file:".
Status Reader::ReadPlace(mlir::Source& source, std::string_view file) {
  KILN_ASSIGN_OR_RETURN(int64_t line, scanner_.Integer());
  int64_t column = 0;
  if (scanner_.Take(":")) {
    KILN_ASSIGN_OR_RETURN(column, scanner_.Integer());
  }
  if (!source.file.empty() || file.empty()) return OkStatus();
  source.file = std::string(file);
  source.line = static_cast<int32_t>(std::clamp<int64_t>(line, 0, INT32_MAX));
  source.column = static_cast<int32_t>(std::clamp<int64_t>(column, 0, INT32_MAX));
  return OkStatus();
}

Result<const mlir::Source*> Reader::ReadOptionalLocation() {
  const mlir::Source* none = nullptr;
  if (!scanner_.TakeKeyword("loc")) return none;
  KILN_ASSIGN_OR_RETURN(mlir::Source source, ReadLocation());
  return source == mlir::Source() ? none : module_->GetSource(source);
}

Result<std::unique_ptr<mlir::Module>> ReadText(std::string_view text, const TextOptions& options) {
  return Reader(text, options).Read();
}

// Whether a line separates modules: also in a comment, as in MLIR.
bool IsSplit(std::string_view line) {
  line = TrimLeft(line);
  return line.starts_with("//") && line.find("// -----") != line.npos;
}

std::vector<Chunk> SplitChunks(std::string_view text) {
  std::vector<Chunk> chunks;
  Chunk chunk;
  size_t chunk_begin = 0;
  int64_t number = 1;
  for (size_t begin = 0; begin < text.size(); ++number) {
    const size_t newline = text.find('\n', begin);
    const size_t next = newline == std::string_view::npos ? text.size() : newline + 1;
    if (IsSplit(text.substr(begin, next - begin))) {
      chunk.text = text.substr(chunk_begin, begin - chunk_begin);
      chunks.push_back(chunk);
      chunk.first_line = number + 1;
      chunk_begin = next;
    }
    begin = next;
  }
  chunk.text = text.substr(chunk_begin);
  chunks.push_back(chunk);
  return chunks;
}

}  // namespace kiln::stablehlo
