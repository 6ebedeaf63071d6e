#include "draw/stages.h"

#include <algorithm>
#include <span>
#include <utility>

#include "base/strings.h"
#include "draw/labels.h"

namespace kiln::draw {
namespace {

constexpr size_t kMostLines = 200, kMostInLine = 300;
// Texts of stages, each and all together.
constexpr size_t kMostText = size_t{64} << 10, kMostTexts = size_t{2} << 20;

// The parts of "  ROOT %name = shape opcode(...)".
struct Parsed {
  std::string_view name, opcode;
};

// Behind the shape at the beginning: parentheses of tuples have spaces inside.
std::string_view SkipShape(std::string_view text) {
  int depth = 0;
  for (size_t k = 0; k < text.size(); ++k) {
    if (text[k] == '(' || text[k] == '{' || text[k] == '[') ++depth;
    if (text[k] == ')' || text[k] == '}' || text[k] == ']') --depth;
    if (text[k] == ' ' && depth == 0) return text.substr(k + 1);
  }
  return {};
}

// Names are empty where a line is no instruction.
Parsed ParseLine(std::string_view line) {
  if (!line.starts_with("  ")) return {};
  line = Trim(line);
  if (line.starts_with("ROOT ")) line.remove_prefix(5);
  const size_t equals = line.find(" = ");
  if (equals == std::string_view::npos) return {};
  const std::string_view rest = SkipShape(line.substr(equals + 3));
  return {line.substr(0, equals), rest.substr(0, rest.find('('))};
}

std::string Quoted(std::string_view text) {
  return Cat("\"", EscapeJson(BeginningOf(text, kMostInLine)), "\"");
}

// A member: the number of all, and the first ones.
std::string ListOf(std::string_view name, std::span<const std::string> quoted) {
  const auto first = quoted.first(std::min(quoted.size(), kMostLines));
  return Cat(", \"", name, "\": {\"count\": ", quoted.size(), ", \"lines\": [", Join(first, ", "),
             "]}");
}

}  // namespace

void Stages::Add(std::string_view pass, std::string_view text) {
  std::string json = Cat("{\"pass\": ", Quoted(pass));
  const bool is_first = json_.empty();
  if (is_first || text != text_) {
    Lines lines;
    std::vector<std::string> order;
    for (std::string_view line : Split(text, '\n')) {
      const Parsed parsed = ParseLine(line);
      if (parsed.name.empty()) continue;
      order.emplace_back(parsed.name);
      lines[order.back()] = {std::string(Trim(line)), std::string(parsed.opcode)};
    }
    if (!is_first) json += Cat(", \"is_changed\": true", ChangesTo(lines, order));
    if (text.size() <= kMostText && text_bytes_ + text.size() <= kMostTexts) {
      text_bytes_ += text.size();
      json += Cat(", \"text\": \"", EscapeJson(text), "\"");
    }
    text_ = text;
    lines_ = std::move(lines);
    order_ = std::move(order);
  }
  json_.push_back(json + Cat(", \"instructions\": ", order_.size(), "}"));
}

std::string Stages::ChangesTo(const Lines& lines, const std::vector<std::string>& order) const {
  std::map<std::string_view, std::pair<int64_t, int64_t>> counts;  // before and after
  std::vector<std::string> added, removed, changed, ops;
  for (const std::string& name : order_) {
    const Line& line = lines_.at(name);
    ++counts[line.opcode].first;
    if (!lines.contains(name)) removed.push_back(Quoted(line.text));
  }
  for (const std::string& name : order) {
    const Line& line = lines.at(name);
    ++counts[line.opcode].second;
    const auto before = lines_.find(name);
    if (before == lines_.end()) {
      added.push_back(Quoted(line.text));
    } else if (before->second.text != line.text) {
      changed.push_back(Cat("[", Quoted(before->second.text), ", ", Quoted(line.text), "]"));
    }
  }
  for (const auto& [opcode, count] : counts) {
    if (count.first == count.second) continue;
    ops.push_back(Cat("[\"", EscapeJson(opcode), "\", ", count.first, ", ", count.second, "]"));
  }
  return Cat(", \"ops\": [", Join(ops, ", "), "]", ListOf("added", added),
             ListOf("removed", removed), ListOf("changed", changed));
}

std::string Stages::ToJson() const { return Cat("[", Join(json_, ",\n"), "]"); }

}  // namespace kiln::draw
