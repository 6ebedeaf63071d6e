#include "draw/dot.h"

#include <algorithm>
#include <unordered_map>
#include <unordered_set>

#include "draw/labels.h"
#include "ir/text.h"
#include "ir/text_values.h"

namespace kiln::draw {
namespace {

using ir::Computation;
using ir::Instruction;
using ir::Module;

constexpr size_t kMaxText = 60;

std::string Escape(std::string_view text) { return EscapeDot(BeginningOf(text, kMaxText)); }

class DotPrinter {
 public:
  explicit DotPrinter(const Module& module) : module_(module) {}

  std::string Print() {
    CountCallers();
    Line("digraph \"", Escape(module_.name()), "\" {");
    Line("  rankdir=TB; compound=true;");
    Line("  node [shape=box, style=\"filled,rounded\", fontname=\"Helvetica\", fontsize=10];");
    Line("  edge [fontname=\"Helvetica\", fontsize=8];");
    for (const Computation* computation : module_.CalleesFirst()) {
      if (!IsInlined(*computation)) Cluster(*computation, nullptr, 1);
    }
    for (const auto& computation : module_.computations()) Edges(*computation);
    Line("}");
    return std::move(out_);
  }

 private:
  template <typename... Args>
  void Line(const Args&... args) {
    (AppendTo(out_, args), ...);
    out_ += '\n';
  }

  void CountCallers() {
    for (const auto& computation : module_.computations()) {
      for (Instruction* i : computation->instructions()) {
        for (const Computation* callee : i->called()) ++callers_[callee];
        // A fusion's only computation is drawn in its place.
        if (i->opcode() == Opcode::kFusion) fusions_[i->called(0)] = i;
      }
    }
  }

  bool IsInlined(const Computation& computation) const {
    return fusions_.contains(&computation) && callers_.at(&computation) == 1;
  }
  bool IsDrawnAsCluster(const Instruction& i) const {
    return i.opcode() == Opcode::kFusion && IsInlined(*i.called(0));
  }

  void Cluster(const Computation& computation, const Instruction* fusion, int64_t depth) {
    std::string indent(static_cast<size_t>(2 * std::min<int64_t>(depth, 20)), ' ');
    Line(indent, "subgraph cluster_", clusters_++, " {");
    if (fusion) {
      const std::string& op_name = fusion->op_name();
      Line(indent, "  label=\"fusion ", Escape(fusion->name()), "\\n",
           Escape(fusion->attributes().Text(Attr::kFusionKind)),
           op_name.empty() ? "" : Cat("\\n", Escape(EndOf(op_name, kMaxText))),
           "\"; style=\"filled,rounded\"; fillcolor=\"#f7f7f7\"; color=\"#666666\";");
    } else {
      bool entry = &computation == module_.entry();
      Line(indent, "  label=\"", entry ? "ENTRY " : "", Escape(computation.name()),
           "\"; style=rounded; color=\"#999999\";");
    }
    int64_t omitted = 0;
    for (Instruction* i : computation.instructions()) {
      if (static_cast<int64_t>(drawn_.size()) >= kMostDotNodes) {
        ++omitted;
      } else if (IsDrawnAsCluster(*i)) {
        Cluster(*i->called(0), i, depth + 1);
      } else {
        Node(*i, indent);
      }
    }
    if (omitted > 0) {
      Line(indent, "  omitted_", clusters_, " [label=\"... and ", omitted,
           " more\", shape=plaintext, style=\"\"];");
    }
    Line(indent, "}");
  }

  void Node(const Instruction& i, std::string_view indent) {
    drawn_.insert(&i);
    std::string label = Cat(Escape(i.name()), "\\n", Escape(OpText(i)));
    for (const auto& [key, value] : i.attributes().entries()) {
      if (key == Attr::kSymbolic) continue;
      label += Cat("\\n", InfoOf(key).name, "=", Escape(AttributeText(i.attributes(), key)));
    }
    label += Cat("\\n", Escape(ir::ShapeText(i.shape(), !i.shape().is_row_major())));
    if (!i.op_name().empty()) label += Cat("\\n", Escape(EndOf(i.op_name(), kMaxText)));
    for (const std::string& mark : MarksOf(i)) label += Cat("\\n", Escape(mark));
    Line(indent, "  n", i.id(), " [label=\"", label, "\", fillcolor=\"", ColourOf(i.opcode()), "\"",
         i.IsRoot() ? ", penwidth=2" : "",
         i.op_name().empty() ? "" : Cat(", tooltip=\"", Escape(i.op_name()), "\""), "];");
  }

  // The node of a value; for a fusion drawn as a cluster, the node of its root.
  const Instruction* NodeOf(const Instruction* i) const {
    while (IsDrawnAsCluster(*i)) i = i->called(0)->root();
    return i;
  }

  void Edge(const Instruction* from, const Instruction* to, std::string_view attributes) {
    from = NodeOf(from);
    if (!drawn_.contains(from) || !drawn_.contains(to)) return;
    Line("  n", from->id(), " -> n", to->id(), attributes, ";");
  }

  void Edges(const Computation& computation) {
    for (Instruction* i : computation.instructions()) {
      for (int64_t o = 0; o < i->operand_count(); ++o) {
        if (IsDrawnAsCluster(*i)) {
          Edge(i->operand(o), i->called(0)->parameter(o), "");
        } else {
          Edge(i->operand(o), i, i->operand_count() > 1 ? Cat(" [label=\"", o, "\"]") : "");
        }
      }
      for (const Instruction* predecessor : i->control_predecessors()) {
        Edge(predecessor, NodeOf(i), " [style=dotted]");
      }
      if (IsDrawnAsCluster(*i)) continue;
      for (const Computation* callee : i->called()) {
        Edge(callee->root(), i, " [style=dashed, arrowhead=empty, color=\"#999999\"]");
      }
    }
  }

  const Module& module_;
  std::string out_;
  int64_t clusters_ = 0;
  std::unordered_map<const Computation*, int64_t> callers_;
  std::unordered_map<const Computation*, const Instruction*> fusions_;
  std::unordered_set<const Instruction*> drawn_;
};

}  // namespace

std::string EscapeDot(std::string_view text) {
  std::string out;
  for (char c : text) {
    if (c == '"' || c == '\\') out += '\\';
    out += static_cast<unsigned char>(c) < 0x20 ? ' ' : c;
  }
  return out;
}

std::string ToDot(const Module& module) { return DotPrinter(module).Print(); }

}  // namespace kiln::draw
