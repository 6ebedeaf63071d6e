// The table of the simplifier's rules, from their comments.
//
// A rule begins at a line with " => ", and ends at the next such line or with the comment:
//   lhs => rhs   where a condition holds   (a remark, of float numbers for example)
// Rules on one line are separated by a comma and two spaces, the condition from the algebra by
// three spaces.
#include <algorithm>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <vector>

#include "base/strings.h"
#include "tools/kiln_gen/writers.h"

namespace kiln::gen {
namespace {

namespace fs = std::filesystem;

struct Rule {
  std::string algebra, condition;
};

std::string_view Trimmed(std::string_view text) {
  while (text.starts_with(' ')) text.remove_prefix(1);
  while (text.ends_with(' ')) text.remove_suffix(1);
  return text;
}

void Append(std::string& text, std::string_view more) {
  if (!text.empty() && !more.empty()) text += ' ';
  text += more;
}

// A header's first line: algebra, and the beginning of the condition.
Rule FirstLine(std::string_view line) {
  size_t gap = line.find("   ");
  if (gap == std::string_view::npos) return {std::string(line), ""};
  return {std::string(line.substr(0, gap)), std::string(Trimmed(line.substr(gap)))};
}

// Fails where a line is no header, though it looks like one.
Status Check(const Rule& rule, std::string_view path, int line) {
  bool prose = rule.algebra.size() > 1 && rule.algebra[0] >= 'A' && rule.algebra[0] <= 'Z';
  if (!prose && !rule.algebra.ends_with('.') && !rule.algebra.ends_with("=>")) return OkStatus();
  return InvalidArgument(path, ":", line, ": \"", rule.algebra,
                         "\" does not head a rule: lhs => rhs   where condition   (remark)");
}

Result<std::vector<Rule>> RulesOf(const fs::path& root, const std::string& path) {
  std::ifstream stream(root / path);
  std::vector<Rule> rules;
  bool open = false;
  int number = 0;
  for (std::string text; std::getline(stream, text);) {
    ++number;
    std::string_view line = Trimmed(text);
    if (!line.starts_with("// ")) {
      open = false;
      continue;
    }
    line = Trimmed(line.substr(3));
    if (line.find(" => ") != std::string_view::npos) {
      rules.push_back(FirstLine(line));
      open = true;
      KILN_RETURN_IF_ERROR(Check(rules.back(), path, number));
    } else if (open) {
      Append(rules.back().condition, line);
    }
  }
  if (!stream.eof()) return Unavailable(path, ": cannot be read");
  return rules;
}

// Text of C comments as Markdown that shows as it stands.
std::string Escaped(std::string_view text) {
  std::string out;
  for (char c : text) {
    if (c == ' ' && out.ends_with(' ')) continue;
    if (c == '|' || c == '*' || c == '_' || c == '<' || c == '\\') out += '\\';
    out += c;
  }
  return out;
}

// In a cell, code may hold anything but '|'.
std::string Code(std::string_view algebra) {
  std::string out;
  for (size_t at = 0; at <= algebra.size();) {
    size_t end = std::min(algebra.find(",  ", at), algebra.size());
    std::string_view one = algebra.substr(at, end - at);
    if (!out.empty()) out += "<br>";
    out += '`';
    for (char c : one) out += c == '|' ? "\\|" : std::string(1, c);
    out += '`';
    at = end + 3;
  }
  return out;
}

struct Section {
  std::string title, text;
  size_t rules = 0;
};

// The rules of the files of one folder, without its subfolders.
Result<std::vector<Section>> SectionsOf(const fs::path& root, const std::string& folder) {
  std::vector<std::string> paths;
  std::error_code error;
  for (const auto& entry : fs::directory_iterator(root / folder, error)) {
    if (entry.path().extension() == ".cc") {
      paths.push_back(Cat(folder, "/", entry.path().filename().string()));
    }
  }
  if (error) return Unavailable(folder, ": ", error.message());
  std::ranges::sort(paths);
  std::vector<Section> sections;
  for (const std::string& path : paths) {
    KILN_ASSIGN_OR_RETURN(std::vector<Rule> rules, RulesOf(root, path));
    if (rules.empty()) continue;
    std::string title = path.substr(folder.size() + 1);
    title.resize(title.size() - 3);
    std::ranges::replace(title, '_', '-');
    Section& section = sections.emplace_back();
    section.title = title;
    section.rules = rules.size();
    section.text = Cat("[", path.substr(4), "](../../", path, ")\n\n| rule | holds |\n|---|---|\n");
    for (const Rule& rule : rules) {
      section.text += Cat("| ", Code(rule.algebra), " | ", Escaped(rule.condition), " |\n");
    }
  }
  return sections;
}

constexpr std::string_view kLeftOut = R"(
## Left out

Rules of other compilers that are absent here.

Rules that turn finite results into infinities, zeros or NaNs, or change them by more than the last bit:

- `log(exp(x)) => x`, `exp(x) * exp(y) => exp(x + y)`, `exp(x) / exp(y) => exp(x - y)`,
  `power(exp(x), y) => exp(x * y)`, `log(power(x, y)) => y * log(x)`, `x / exp(y) => x * exp(-y)`;
- `(x / y) / z => x / (y * z)`, `x / (y / z) => x * z / y`, `x / power(y, z) => x * power(y, -z)`,
  `power(power(x, y), z) => power(x, y * z)`;
- `sqrt(x * x) => |x|`, `rsqrt(power(x, -2)) => x`, `rsqrt(1 / x) => sqrt(x)`: the inner op may
  overflow where the whole does not;
- `1 / sqrt(x) => rsqrt(x)`, `x / sqrt(y) => x * rsqrt(y)`: `rsqrt` is off by 1.5 units in the last
  place, the quotient by 1;
- `x / c => x * (1/c)` where `1/c` is not exact, `x / spread(s) => x * spread(1 / s)`;
- of floats `(x * c) * d => x * (c * d)`, `x + c + d => x + (c + d)`, `x - x => 0`,
  `(x - y) + y => x`, `x * c + y * c => (x + y) * c`, `convert(p) * x => select(p, x, 0)`;
- removal of conversions to narrower floats and back;
- of floats `dot(x, pad(y, 0)) => dot(slice(x), y)` and `dot(x, broadcast(y)) =>
  dot(reduce(x), y)`, along contracted dimensions: infinities would be lost, as in `x * 0 => 0`;
- `dot(dot(x, y), z) => dot(x, dot(y, z))`, if that takes fewer products.

Rules that save nothing, because kernels read reshaped, transposed, sliced, reversed, padded and
broadcast operands in place, and ignore dimensions of size 1:

- `constant({0, 1, 2, ...}) => iota()`, because ops on constants are folded and ops on iotas are not;
  `reshape(iota()) => iota() * c + iota()`;
- `pad(x)` of negative amounts `=> slice(pad(x))`, `reshape(transpose(reshape(x)))` as concatenated
  slices, `transpose(scatter(x)) => scatter(transpose(x))`;
- dots without their dimensions of size 1; `gather(x)` in one form of its dimensions;
- `reverse(op(x, c)) => op(reverse(x), c)`, `reverse(reshape(x)) => reshape(reverse(x))`,
  `dot(reverse(x), y) => dot(x, reverse(y))`;
- `op(slice(x)), op(slice(y)) => slice(op(x, y))`, `f(x), f(y) => f(concatenate(x, y))`: siblings
  become one kernel by fusion; so do `reduce(x, max)` and argmax of x;
- `concatenate(convert(x), convert(y)) => convert(concatenate(x, y))`, `convert(reshape(x)) =>
  reshape(convert(x))`, `convert(pad(x)) => pad(convert(x))`: conversions are fused into reads and
  writes;
- dots with their dimensions in order, or fewer of them; `gather` and `scatter` with iota indices as
  batched ones.

Rules that cost more than they save:

- `dot(x, y), dot(x, z) => dot(x, concatenate(y, z))`: factors would be copied in every run;
- `dot(dynamic-slice(c), d) => dynamic-slice(dot(c, d))` of constants, and `gather(pad(x)) =>
  pad(gather(x))`;
- common last ops of all branches of a conditional, moved behind it, and ops behind it, moved into the
  branches: their kernels are fused there, and equal kernels are compiled once;
- `get-tuple-element(x, k) => get-tuple-element(x, j) * c + d` of induction variables with different steps:
  a product replaces a sum, in every iteration;
- loops of constants are not run at compile time, and only loops of one iteration are unrolled;
- masks from iotas before a loop are read in it, not recomputed; the output of a scan does not share
  the array of its input, even of the same size.
)";

}  // namespace

Result<std::string> RulesReference(const std::string& root) {
  KILN_ASSIGN_OR_RETURN(auto algebra, SectionsOf(root, "src/passes/simplify"));
  KILN_ASSIGN_OR_RETURN(auto control, SectionsOf(root, "src/passes/control"));
  KILN_ASSIGN_OR_RETURN(auto others, SectionsOf(root, "src/passes"));
  size_t count = 0;
  for (const auto* sections : {&algebra, &control, &others}) {
    for (const Section& section : *sections) count += section.rules;
  }
  std::string out = Cat(
      "<!-- ", Notice("the headers of the rules in src/passes"),
      " -->\n# Rules of the simplifier\n\n", "The ", count,
      " rewrites that keep a program's meaning and make it smaller. Results keep their bits,\n"
      "except the sign and payload of NaNs, unless a rule states its rounding. No rule makes a NaN "
      "of\n"
      "finite operands, unless an intermediate sum or product overflows.\n"
      "\n"
      "- `c`, `d` are constants, or a constant repeated; `spread(s)` repeats a scalar.\n"
      "- `op` is any elementwise op.\n"
      "- *order*: sums of floats are taken in another order.\n"
      "- *form*: a canonical form, which saves nothing by itself but enables other rules.\n"
      "- `>>>` shifts in zeros, `>>` the sign.\n"
      "\n"
      "Every rule reduces a well-founded order, so rewriting terminates; the order is in\n"
      "`src/passes/simplify/simplify.h`. Any pass can be disabled\n"
      "([Debugging](../debugging.md#finding-the-faulty-pass)).\n"
      "\n"
      "Rewrites omitted on purpose are listed [at the end](#left-out).\n"
      "\n## algebraic-simplifier\n");
  for (const Section& section : algebra) out += Cat("\n### ", section.title, "\n\n", section.text);
  for (const auto* sections : {&control, &others}) {
    for (const Section& section : *sections)
      out += Cat("\n## ", section.title, "\n\n", section.text);
  }
  return out + std::string(kLeftOut);
}

}  // namespace kiln::gen
