#include "draw/page.h"

#include <cmath>
#include <utility>

#include "base/strings.h"
#include "draw/labels.h"
#include "draw/page_parts.h"
#include "ir/text_values.h"

namespace kiln::draw {
namespace {

std::string Quoted(std::string_view text) { return Cat("\"", EscapeJson(text), "\""); }

// JSON inside of an element of the page: nothing in it may look like the element's end.
std::string Inside(std::string_view json) {
  std::string out;
  out.reserve(json.size());
  for (char c : json) {
    if (c == '<') {
      out += "\\u003c";
    } else {
      out += c;
    }
  }
  return out;
}

int64_t Rounded(double value) { return std::llround(value); }

}  // namespace

size_t Page::NumberOf(std::string text, std::vector<std::string>& table,
                      std::unordered_map<std::string, size_t>& numbers) {
  const auto [it, is_new] = numbers.try_emplace(std::move(text), table.size());
  if (is_new) table.push_back(it->first);
  return it->second;
}

// [name, op, shape, lines, width, height, op_name, text, groups, work].
void Page::AddNode(const Node& node, const ir::PrintOptions& options, std::string& json) {
  const ir::Instruction& i = *node.instruction;
  const size_t op =
      NumberOf(Cat("[", Quoted(OpcodeName(i.opcode())), ", ", Quoted(ColourOf(i.opcode())), "]"),
               ops_, op_numbers_);
  const size_t shape = NumberOf(Quoted(ir::ShapeText(i.shape(), !i.shape().is_row_major())),
                                shapes_, shape_numbers_);
  json += Cat("[", Quoted(i.name()), ",", op, ",", shape, ",", Quoted(Join(node.lines, "\n")), ",",
              Rounded(node.box.width), ",", Rounded(node.box.height), ",", Quoted(i.op_name()), ",",
              Quoted(ir::ToHloText(i, options)), ",[", Join(node.called, ","), "],");
  if (const Work* w = node.work) {
    json += Cat("[", w->count, ",", w->nanoseconds, ",", w->bytes, ",", w->flops, "]]");
  } else {
    json += "0]";
  }
}

void Page::AddGroup(const Group& group, const ir::PrintOptions& options, std::string& json) {
  json += Cat("{\"name\":", Quoted(group.computation->name()), ",\"root\":");
  for (size_t k = 0; k < group.nodes.size(); ++k) {
    if (group.nodes[k].instruction->IsRoot()) json += Cat(k);
  }
  json += ",\"nodes\":[";
  for (size_t k = 0; k < group.nodes.size(); ++k) {
    json += k > 0 ? ",\n" : "\n";
    AddNode(group.nodes[k], options, json);
  }
  json += "],\n\"links\":[";
  for (size_t k = 0; k < group.links.size(); ++k) {
    const Layout& layout = group.layout;
    json += Cat(k > 0 ? "," : "", group.links[k].from, ",", group.links[k].to, ",",
                layout.first_bend[k + 1] - layout.first_bend[k], ",", group.is_control[k] ? 1 : 0);
  }
  json += "],\n\"ranks\":[";
  for (size_t r = 0; r < group.layout.ranks.size(); ++r) {
    json += Cat(r > 0 ? ",[" : "[", Join(group.layout.ranks[r], ","), "]");
  }
  json += "],\n\"x\":[";
  for (size_t k = 0; k < group.layout.x.size(); ++k) {
    json += Cat(k > 0 ? "," : "", Rounded(group.layout.x[k]));
  }
  json += "]}";
}

void Page::AddGraph(std::string_view name, const ir::Module& module,
                    const ir::PrintOptions& options, const WorkByName& work) {
  const Graph graph = GraphOf(module, work);
  std::string json = Cat("{\"name\":", Quoted(name), ",\"entry\":", graph.entry, ",\"groups\":[");
  for (size_t k = 0; k < graph.groups.size(); ++k) {
    if (k > 0) json += ",\n";
    AddGroup(graph.groups[k], options, json);
  }
  graphs_.push_back(json + "]}");
}

std::string Page::ToHtml() const {
  const std::string sizes =
      Cat("{\"boxGap\":", kBoxGap, ",\"rankGap\":", kRankGap, ",\"bendWidth\":", kBendWidth,
          ",\"font\":", kFontSize, ",\"smallFont\":", kSmallFontSize, ",\"line\":", kLineHeight,
          ",\"padding\":", kPadding, "}");
  const std::string data =
      Cat("{\"title\":", Quoted(title_), ",\"sizes\":", sizes, ",\"ops\":[", Join(ops_, ","),
          "],\n\"shapes\":[", Join(shapes_, ","), "],\n\"passes\":", stages_.ToJson(),
          ",\n\"graphs\":[", Join(graphs_, ",\n"), "]}");
  return Cat("<!doctype html>\n<html lang=\"en\"><head><meta charset=\"utf-8\"><title>",
             EscapeMarkup(title_), "</title>\n<style>", kPageStyle, "</style></head>\n", kPageBody,
             "<script type=\"application/json\" id=\"data\">\n", Inside(data),
             "\n</script>\n<script>", kPageScene, kPageView, "</script>\n</body></html>\n");
}

std::string ToHtml(const ir::Module& module, const ir::PrintOptions& options) {
  Page page(module.name());
  page.AddGraph("graph", module, options);
  return page.ToHtml();
}

}  // namespace kiln::draw
