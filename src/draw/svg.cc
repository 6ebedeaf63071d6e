#include "draw/svg.h"

#include <algorithm>
#include <cmath>
#include <memory>
#include <utility>

#include "draw/labels.h"
#include "ir/text.h"

namespace kiln::draw {
namespace {

// Of open boxes, all together, and one inside the other.
constexpr size_t kMostNodes = 20000;
constexpr int kMostDepth = 16;
constexpr int64_t kLiteralElements = 16;
constexpr size_t kMaxTitle = 400;
constexpr double kMargin = 16;

bool Opens(Opcode opcode) {
  return opcode == Opcode::kFusion || opcode == Opcode::kCall || opcode == Opcode::kWhile ||
         opcode == Opcode::kConditional;
}

// A group with the sizes of what is open in it.
struct Sized {
  const Group* group = nullptr;
  Placed placed;
  std::vector<Box> boxes;
  std::vector<std::vector<std::unique_ptr<Sized>>> inside;  // of nodes; empty: closed
};

double HeaderOf(const Node& node) {
  return kPadding + kLineHeight * static_cast<double>(node.lines.size());
}

// Numbers of SVG: tenths are enough.
std::string Number(double value) {
  const auto tenths = static_cast<int64_t>(std::lround(value * 10));
  if (tenths % 10 == 0) return Cat(tenths / 10);
  return Cat(tenths < 0 ? "-" : "", std::abs(tenths) / 10, ".", std::abs(tenths) % 10);
}

class SvgPrinter {
 public:
  SvgPrinter(const ir::Module& module, const Graph& graph) : module_(module), graph_(graph) {}

  std::string Print() {
    const std::unique_ptr<Sized> entry = Measure(graph_.groups[graph_.entry], 0);
    const double width = entry->placed.width + 2 * kMargin;
    const double height = entry->placed.height + 2 * kMargin;
    Add("<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 ", Number(width), " ",
        Number(height), "\" width=\"", Number(width), "\" height=\"", Number(height),
        "\" font-family=\"ui-monospace, Menlo, 'DejaVu Sans Mono', monospace\" font-size=\"",
        Number(kFontSize), "\">\n<title>", EscapeMarkup(module_.name()), "</title>\n<style>\n",
        "rect { stroke: #667; stroke-width: 1 } rect.root { stroke-width: 2 }\n",
        "path { fill: none; stroke: #667; marker-end: url(#arrow) }\n",
        "path.control { stroke-dasharray: 2 3 } path.far { stroke-dasharray: 6 4; stroke: #aab }\n",
        "text { white-space: pre } text.shape { font-size: ", Number(kSmallFontSize),
        "px; fill: #446; paint-order: stroke; ",
        "stroke: #fff; stroke-width: 3px; text-anchor: middle }\n</style>\n",
        "<defs><marker id=\"arrow\" viewBox=\"0 0 8 8\" refX=\"8\" refY=\"4\" markerWidth=\"7\" ",
        "markerHeight=\"7\" orient=\"auto\"><path d=\"M0 0 8 4 0 8z\" style=\"fill: #667; stroke: ",
        "none; marker-end: none\"/></marker></defs>\n<rect width=\"100%\" height=\"100%\" ",
        "fill=\"#fff\" style=\"stroke: none\"/>\n");
    Draw(*entry, kMargin, kMargin);
    Add("</svg>\n");
    return std::move(out_);
  }

 private:
  template <typename... Args>
  void Add(const Args&... args) {
    (AppendTo(out_, args), ...);
  }

  std::unique_ptr<Sized> Measure(const Group& group, int depth) {
    auto sized = std::make_unique<Sized>();
    sized->group = &group;
    sized->inside.resize(group.nodes.size());
    nodes_ += group.nodes.size();
    for (size_t k = 0; k < group.nodes.size(); ++k) {
      const Node& node = group.nodes[k];
      Box box = node.box;
      if (Opens(node.instruction->opcode()) && depth < kMostDepth) {
        double width = kPadding, height = 0;
        for (int number : node.called) {
          const Group& called = graph_.groups[static_cast<size_t>(number)];
          if (nodes_ + called.nodes.size() > kMostNodes) continue;
          sized->inside[k].push_back(Measure(called, depth + 1));
          const Placed& placed = sized->inside[k].back()->placed;
          width += placed.width + kPadding;
          height = std::max(height, placed.height);
        }
        if (!sized->inside[k].empty()) {
          box.width = std::max(box.width, width);
          box.height = HeaderOf(node) + height + 2 * kPadding + kSmallFontSize;
        }
      }
      sized->boxes.push_back(box);
    }
    sized->placed = Place(group.layout, sized->boxes);
    return sized;
  }

  void Draw(const Sized& sized, double left, double top) {
    for (size_t k = 0; k < sized.group->links.size(); ++k) DrawLink(sized, k, left, top);
    for (size_t k = 0; k < sized.boxes.size(); ++k) DrawNode(sized, k, left, top);
  }

  static size_t RankOf(const Sized& sized, int item) {
    return static_cast<size_t>(sized.group->layout.rank[static_cast<size_t>(item)]);
  }

  // The upper edge of a box of a height, in the middle of its rank.
  static double TopOf(const Sized& sized, size_t rank, double height) {
    const double room = sized.placed.bottom[rank] - sized.placed.top[rank];
    return sized.placed.top[rank] + (room - height) / 2;
  }

  void DrawNode(const Sized& sized, size_t k, double left, double top) {
    const Node& node = sized.group->nodes[k];
    const ir::Instruction& i = *node.instruction;
    const Box& box = sized.boxes[k];
    const bool is_open = !sized.inside[k].empty();
    const double x = left + sized.placed.x[k] - box.width / 2;
    const double y = top + TopOf(sized, RankOf(sized, static_cast<int>(k)), box.height);
    Add("<g><title>",
        EscapeMarkup(
            BeginningOf(ir::ToHloText(i, {.max_literal_elements = kLiteralElements}), kMaxTitle)),
        "</title><rect x=\"", Number(x), "\" y=\"", Number(y), "\" width=\"", Number(box.width),
        "\" height=\"", Number(box.height), "\" rx=\"4\" fill=\"",
        is_open ? "#f7f7f7" : ColourOf(i.opcode()), i.IsRoot() ? "\" class=\"root" : "", "\"/>");
    // The results of computations have no links, but a shape.
    const bool has_shape = i.IsRoot() || !i.users().empty();
    if (has_shape) {
      Add("<text class=\"shape\" x=\"", Number(x + box.width / 2), "\" y=\"",
          Number(y + box.height + kSmallFontSize), "\">", EscapeMarkup(node.shape), "</text>");
    }
    for (size_t l = 0; l < node.lines.size(); ++l) {
      Add("<text x=\"", Number(x + kPadding), "\" y=\"",
          Number(y + kPadding - 3 + kLineHeight * static_cast<double>(l + 1)),
          l == 0 ? "\" font-weight=\"bold" : "", "\">", EscapeMarkup(node.lines[l]), "</text>");
    }
    Add("</g>\n");
    double at = x + kPadding;
    for (const auto& inside : sized.inside[k]) {
      Draw(*inside, at, y + HeaderOf(node) + kPadding);
      at += inside->placed.width + kPadding;
    }
  }

  // Down from the box of the operand, through the bends, to that of the user.
  void DrawLink(const Sized& sized, size_t k, double left, double top) {
    const Group& group = *sized.group;
    const Layout& layout = group.layout;
    const Placed& placed = sized.placed;
    const Link& link = group.links[k];
    const size_t from = RankOf(sized, link.from), to = RankOf(sized, link.to);
    const auto bends = static_cast<size_t>(layout.first_bend[k + 1] - layout.first_bend[k]);
    const bool is_far = from + bends + 1 != to;
    double x = left + placed.x[static_cast<size_t>(link.from)];
    const double height = sized.boxes[static_cast<size_t>(link.from)].height;
    double y = top + TopOf(sized, from, height) + height;
    std::string path = Cat("M", Number(x), " ", Number(y));
    const auto line_to = [&](double next) {
      if (next != y) path += Cat("V", Number(next));
      y = next;
    };
    const auto curve_to = [&](double next_x, double next_y) {
      const double middle = (y + next_y) / 2;
      path += Cat("C", Number(x), " ", Number(middle), " ", Number(next_x), " ", Number(middle),
                  " ", Number(next_x), " ", Number(next_y));
      x = next_x;
      y = next_y;
    };
    if (!is_far) line_to(top + placed.bottom[from]);
    for (size_t b = 0; b < bends; ++b) {
      const size_t rank = from + 1 + b;
      curve_to(left + placed.x[static_cast<size_t>(layout.first_bend[k]) + b],
               top + placed.top[rank]);
      line_to(top + placed.bottom[rank]);
    }
    const double end_x = left + placed.x[static_cast<size_t>(link.to)];
    const double end = top + TopOf(sized, to, sized.boxes[static_cast<size_t>(link.to)].height);
    if (is_far) {
      curve_to(end_x, end);
    } else {
      curve_to(end_x, top + placed.top[to]);
      line_to(end);
    }
    Add("<path d=\"", path,
        is_far                ? "\" class=\"far"
        : group.is_control[k] ? "\" class=\"control"
                              : "",
        "\"/>\n");
  }

  const ir::Module& module_;
  const Graph& graph_;
  std::string out_;
  size_t nodes_ = 0;
};

}  // namespace

std::string ToSvg(const ir::Module& module, const WorkByName& work) {
  const Graph graph = GraphOf(module, work);
  return SvgPrinter(module, graph).Print();
}

}  // namespace kiln::draw
