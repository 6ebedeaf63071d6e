#include "ir/html.h"

#include <algorithm>
#include <unordered_map>
#include <vector>

#include "base/characters.h"
#include "base/strings.h"
#include "ir/dot.h"

namespace kiln::ir {
namespace {

constexpr std::string_view kStyle = R"(<style>
body { font-family: sans-serif; margin: 1em }
pre { margin: 0 0 0 1em }
details { margin: 0.5em 0 }
summary { font-weight: bold; cursor: pointer }
a { color: inherit }
.i { display: block; border-left: 0.8em solid; padding-left: 0.5em }
:target, .marked { background: #fff3b0 }
</style>
)";

// Marks the definition and the uses of the value under the pointer.
constexpr std::string_view kScript = R"(<script>
document.addEventListener('mouseover', event => {
  for (const old of document.querySelectorAll('.marked')) old.classList.remove('marked');
  const at = event.target.closest('a[href], .i');
  if (!at) return;
  const id = at.hash ? at.hash.slice(1) : at.id;
  const definition = document.getElementById(id);
  if (definition) definition.classList.add('marked');
  for (const use of document.querySelectorAll(`a[href="#${id}"]`)) use.classList.add('marked');
});
</script>
)";

std::string Escaped(std::string_view text) {
  std::string out;
  for (char c : text) {
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

// Of names in HLO text.
bool IsOfName(char c) { return IsLetter(c) || IsDigit(c) || c == '.' || c == '-'; }

class HtmlPrinter {
 public:
  HtmlPrinter(const Module& module, const PrintOptions& options)
      : module_(module), options_(options) {}

  std::string Print() {
    const std::string name = Escaped(module_.name());
    out_ = Cat("<!doctype html>\n<html><head><meta charset=\"utf-8\"><title>", name, "</title>\n",
               kStyle, "</head><body>\n<h1>", name, "</h1>\n<p>", module_.instruction_count(),
               " instructions</p>\n");
    const std::vector<Computation*> callees_first = module_.CalleesFirst();
    for (const Computation* c : callees_first) numbers_.emplace(c, numbers_.size());
    for (auto it = callees_first.rbegin(); it != callees_first.rend(); ++it) Print(**it);
    return out_ + std::string(kScript) + "</body></html>\n";
  }

 private:
  void Print(const Computation& computation) {
    out_ += Cat("<details open id=\"c", numbers_.at(&computation), "\"><summary>",
                &computation == module_.entry() ? "ENTRY " : "", Escaped(computation.name()),
                "</summary><pre>");
    for (const Instruction* i : computation.instructions()) {
      out_ += Cat("<span class=\"i\" id=\"n", i->id(),
                  "\" style=\"border-color:", ColourOf(i->opcode()), "\">",
                  i->IsRoot() ? "ROOT " : "", Linked(ToHloText(*i, options_), *i), "</span>");
    }
    out_ += "</pre></details>\n";
  }

  // The text of an instruction, with links at the names of operands and called computations. The
  // first name is its own; those of the operands follow, then those in attributes.
  std::string Linked(std::string_view text, const Instruction& i) const {
    std::unordered_map<std::string_view, std::string> others;
    for (const Instruction* p : i.control_predecessors()) others[p->name()] = Cat("n", p->id());
    for (const Computation* c : i.called()) others[c->name()] = Cat("c", numbers_.at(c));
    std::string out;
    int64_t operand = -1;
    for (size_t at = 0; at < text.size();) {
      size_t end = at + 1;
      std::string link;
      if (text[at] == '"') {
        for (; end < text.size() && text[end] != '"'; ++end) end += text[end] == '\\';
        end = std::min(end + 1, text.size());
      } else if (text[at] == '%') {
        while (end < text.size() && IsOfName(text[end])) ++end;
        if (operand < 0) {
          // Its own name.
        } else if (operand < i.operand_count()) {
          link = Cat("n", i.operand(operand)->id());
        } else if (auto it = others.find(text.substr(at + 1, end - at - 1)); it != others.end()) {
          link = it->second;
        }
        ++operand;
      }
      const std::string piece = Escaped(text.substr(at, end - at));
      out += link.empty() ? piece : Cat("<a href=\"#", link, "\">", piece, "</a>");
      at = end;
    }
    return out;
  }

  const Module& module_;
  const PrintOptions& options_;
  std::string out_;
  std::unordered_map<const Computation*, size_t> numbers_;
};

}  // namespace

std::string ToHtml(const Module& module, const PrintOptions& options) {
  return HtmlPrinter(module, options).Print();
}

}  // namespace kiln::ir
