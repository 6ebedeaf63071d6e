#include "draw/graph.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <initializer_list>
#include <string_view>
#include <utility>

#include "base/strings.h"
#include "draw/labels.h"
#include "ir/text_values.h"

namespace kiln::draw {
namespace {

using ir::Computation;
using ir::Instruction;

constexpr size_t kMaxLine = 32;

// Three digits and a unit, the largest one that the value reaches.
std::string Quantity(double value, std::initializer_list<std::pair<double, const char*>> units) {
  const std::pair<double, const char*>* unit = units.begin();
  for (const auto& other : units) {
    if (value >= other.first) unit = &other;
  }
  value /= unit->first;
  const int digits = value >= 100 || value == std::floor(value) ? 0 : value >= 10 ? 1 : 2;
  char text[64];  // to_chars, as the output has no locale
  const auto end =
      std::to_chars(text, text + sizeof(text), value, std::chars_format::fixed, digits);
  return Cat(std::string_view(text, end.ptr), " ", unit->second);
}

// Wide enough for the shape, too, so that shapes of neighbours are apart.
Box BoxOf(const Node& node) {
  size_t longest = 0;
  for (const std::string& line : node.lines) longest = std::max(longest, line.size());
  // The mark of what opens is beside the op.
  if (!node.called.empty()) longest = std::max(longest, node.lines[0].size() + 2);
  return {.width = std::max(2 * kPadding + kCharacterWidth * static_cast<double>(longest),
                            kSmallCharacterWidth * static_cast<double>(node.shape.size())),
          .height = 2 * kPadding + kLineHeight * static_cast<double>(node.lines.size())};
}

Node NodeOf(const Instruction& i, const WorkByName& work,
            const std::unordered_map<const Computation*, int>& numbers) {
  Node node;
  node.instruction = &i;
  std::string op = OpText(i);
  if (i.opcode() == Opcode::kFusion) op += Cat(" ", i.attributes().Text(Attr::kFusionKind));
  if (i.opcode() == Opcode::kCustomCall) {
    op += Cat(" ", i.attributes().Text(Attr::kCustomCallTarget));
  }
  node.lines = {BeginningOf(op, kMaxLine), EndOf(i.name(), kMaxLine)};
  if (!i.op_name().empty()) node.lines.push_back(EndOf(i.op_name(), kMaxLine));
  for (const std::string& mark : MarksOf(i)) node.lines.push_back(BeginningOf(mark, kMaxLine));
  if (const auto it = work.find(i.name()); it != work.end()) {
    node.work = &it->second;
    node.lines.push_back(Cat(TimeText(it->second.nanoseconds), "  ", BytesText(it->second.bytes)));
  }
  node.shape = BeginningOf(ir::ShapeText(i.shape(), false), kMaxLine);
  for (const Computation* c : i.called()) {
    const int number = numbers.at(c);
    if (std::ranges::find(node.called, number) == node.called.end()) node.called.push_back(number);
  }
  node.box = BoxOf(node);
  return node;
}

Group GroupOf(const Computation& computation, const WorkByName& work,
              const std::unordered_map<const Computation*, int>& numbers) {
  Group group;
  group.computation = &computation;
  std::unordered_map<const Instruction*, int> numbers_of_nodes;
  std::vector<int> last_user(static_cast<size_t>(computation.instruction_count()), -1);  // of nodes
  for (const Instruction* i : computation.instructions()) {
    const int to = static_cast<int>(group.nodes.size());
    numbers_of_nodes.emplace(i, to);
    group.nodes.push_back(NodeOf(*i, work, numbers));
    const auto link = [&](const Instruction* from, bool is_control) {
      const int number = numbers_of_nodes.at(from);
      if (std::exchange(last_user[static_cast<size_t>(number)], to) == to) return;
      group.links.push_back({number, to});
      group.is_control.push_back(is_control);
    };
    for (const Instruction* operand : i->operands()) link(operand, false);
    for (const Instruction* before : i->control_predecessors()) link(before, true);
  }
  std::vector<Box> boxes;
  for (const Node& node : group.nodes) boxes.push_back(node.box);
  group.layout = LayOut(boxes, group.links);
  return group;
}

}  // namespace

std::string TimeText(int64_t nanoseconds) {
  return Quantity(static_cast<double>(nanoseconds),
                  {{1, "ns"}, {1e3, "us"}, {1e6, "ms"}, {1e9, "s"}});
}

std::string BytesText(int64_t bytes) {
  return Quantity(static_cast<double>(bytes), {{1, "B"}, {1e3, "kB"}, {1e6, "MB"}, {1e9, "GB"}});
}

Graph GraphOf(const ir::Module& module, const WorkByName& work) {
  Graph graph;
  std::unordered_map<const Computation*, int> numbers;
  for (const auto& c : module.computations()) {
    numbers.emplace(c.get(), static_cast<int>(numbers.size()));
  }
  for (const auto& c : module.computations()) graph.groups.push_back(GroupOf(*c, work, numbers));
  graph.entry = numbers.at(module.entry());
  return graph;
}

}  // namespace kiln::draw
