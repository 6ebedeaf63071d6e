#include "draw/labels.h"

#include "base/strings.h"
#include "base/utf8.h"

namespace kiln::draw {
namespace {

constexpr int64_t kMaxLiteralElements = 8;
constexpr std::string_view kDots = "...";

// Of the following bytes of a character of UTF-8.
bool IsContinuation(char c) { return (c & 0xc0) == 0x80; }

bool Calls(Opcode opcode) {
  for (std::string_view name : Split(InfoOf(opcode).attributes, ' ')) {
    if (IsComputationAttribute(name)) return true;
  }
  return false;
}

}  // namespace

std::string_view ColourOf(Opcode opcode) {
  if (opcode == Opcode::kParameter) return "#fce8b2";
  if (opcode == Opcode::kConstant) return "#eeeeee";
  if (opcode == Opcode::kDot) return "#a7c7e7";
  if (opcode == Opcode::kReduce) return "#d7bde2";
  if (Calls(opcode)) return "#f5b7b1";
  if (IsElementwise(opcode)) return IsTranscendental(opcode) ? "#c5e1a5" : "#dcedc8";
  if (OpCostOf(opcode) == OpCost::kFree) return "#ffffff";
  return "#b2dfdb";
}

std::string BeginningOf(std::string_view text, size_t most) {
  if (text.size() <= most) return std::string(text);
  size_t end = most;
  while (end > 0 && IsContinuation(text[end])) --end;
  return Cat(text.substr(0, end), kDots);
}

std::string EndOf(std::string_view text, size_t most) {
  if (text.size() <= most) return std::string(text);
  text.remove_prefix(text.size() - (most - kDots.size()));
  while (!text.empty() && IsContinuation(text[0])) text.remove_prefix(1);
  return Cat(kDots, text);
}

std::string OpText(const ir::Instruction& i) {
  std::string text(OpcodeName(i.opcode()));
  if (i.IsConstant() && i.shared_literal()) {
    text += Cat(" ", i.literal().ToString(kMaxLiteralElements));
  }
  return text;
}

std::vector<std::string> MarksOf(const ir::Instruction& i) {
  std::vector<std::string> marks;
  if (const std::string* device = i.FindFrontendAttribute(ir::kDeviceAttribute)) {
    marks.push_back(Cat("device ", *device));
  }
  const std::string* compile = i.FindFrontendAttribute(ir::kCompileAttribute);
  const std::string* scope = i.FindFrontendAttribute(ir::kScopeAttribute);
  if (compile || scope) {
    marks.push_back(
        Cat(compile && *compile == "false" ? "no jit" : "jit", scope ? Cat(" ", *scope) : ""));
  }
  if (i.FindFrontendAttribute(ir::kMustCompileAttribute)) marks.push_back("must compile");
  return marks;
}

std::string EscapeMarkup(std::string_view text) {
  std::string out;
  for (char c : ToUtf8(text)) {
    switch (c) {
      case '&':
        out += "&amp;";
        break;
      case '<':
        out += "&lt;";
        break;
      case '>':
        out += "&gt;";
        break;
      case '"':
        out += "&quot;";
        break;
      default:
        out += static_cast<unsigned char>(c) < 0x20 && c != '\n' ? ' ' : c;
    }
  }
  return out;
}

}  // namespace kiln::draw
