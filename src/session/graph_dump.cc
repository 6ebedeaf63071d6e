#include "session/graph_dump.h"

#include <array>
#include <string_view>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "base/strings.h"
#include "draw/dot.h"
#include "ir/frontend_attributes.h"
#include "ir/text.h"

namespace kiln::session {
namespace {

using ir::Instruction;

constexpr std::string_view kClusterAttribute = "_XlaCluster";

constexpr std::array<std::string_view, 8> kColours = {"#dcedc8", "#a7c7e7", "#fce8b2", "#f5b7b1",
                                                      "#d7bde2", "#b2dfdb", "#ffe0b2", "#cfd8dc"};

const std::string& DeviceOf(const Placement& placement, const Instruction& i) {
  return placement.devices[static_cast<size_t>(placement.device_of.at(&i))].name;
}

class DotWriter {
 public:
  DotWriter(const ir::Module& module, const Placement* placement, const Clustering* clustering)
      : module_(module), placement_(placement), clustering_(clustering) {}

  std::string Write() {
    out_ =
        Cat("digraph \"", draw::EscapeDot(module_.name()), "\" {\n",
            "  node [shape=box, style=\"filled,rounded\", fontname=\"Helvetica\", fontsize=10];\n");
    if (clustering_) {
      for (size_t c = 0; c < clustering_->clusters().size(); ++c) Box(c);
    }
    for (const Instruction* i : module_.entry()->instructions()) {
      const bool is_boxed = clustering_ && clustering_->ClusterOf(i) >= 0;
      if (!i->IsRoot() && !is_boxed) Node(*i, "  ");
    }
    for (const Instruction* i : module_.entry()->instructions()) {
      for (const Instruction* operand : i->operands()) Edge(*operand, *i, "");
      for (const Instruction* before : i->control_predecessors()) {
        Edge(*before, *i, " [style=dotted]");
      }
    }
    return out_ + "}\n";
  }

 private:
  void Box(size_t number) {
    const Cluster& cluster = clustering_->clusters()[number];
    out_ += Cat("  subgraph cluster_", number, " {\n    label=\"", draw::EscapeDot(cluster.name),
                " on ", placement_->devices[static_cast<size_t>(cluster.device)].name,
                "\"; style=rounded; color=\"#666666\";\n");
    for (const Instruction* i : cluster.instructions) Node(*i, "    ");
    out_ += "  }\n";
  }

  void Node(const Instruction& i, std::string_view indent) {
    if (static_cast<int64_t>(drawn_.size()) >= draw::kMostDotNodes) return;
    drawn_.insert(&i);
    std::string_view colour = "white";
    const std::string* mark = i.FindFrontendAttribute(ir::kDeviceAttribute);
    std::string device = mark ? *mark : "";
    if (placement_) {
      colour = kColours[static_cast<size_t>(placement_->device_of.at(&i)) % kColours.size()];
      device = DeviceOf(*placement_, i);
    }
    out_ += Cat(indent, "n", i.id(), " [label=\"", draw::EscapeDot(i.name()), "\\n",
                OpcodeName(i.opcode()), "\\n", i.shape(), device.empty() ? "" : "\\n",
                draw::EscapeDot(device), "\", fillcolor=\"", colour, "\"];\n");
  }

  void Edge(const Instruction& from, const Instruction& to, std::string_view style) {
    if (!drawn_.contains(&from) || !drawn_.contains(&to)) return;
    out_ += Cat("  n", from.id(), " -> n", to.id(), style, ";\n");
  }

  const ir::Module& module_;
  const Placement* const placement_;
  const Clustering* const clustering_;
  std::unordered_set<const Instruction*> drawn_;
  std::string out_;
};

}  // namespace

std::string PlacedText(const ir::Module& module, const Placement& placement,
                       const Clustering* clustering) {
  std::unordered_map<const Instruction*, Instruction*> copies;
  const std::unique_ptr<ir::Module> copy = module.Clone(&copies);
  for (const Instruction* i : module.entry()->instructions()) {
    if (i->IsRoot()) continue;
    ir::FrontendAttributesRef attributes = ir::WithFrontendAttribute(
        i->frontend_attributes(), ir::kDeviceAttribute, DeviceOf(placement, *i));
    const int32_t cluster = clustering ? clustering->ClusterOf(i) : -1;
    if (cluster >= 0) {
      attributes = ir::WithFrontendAttribute(
          attributes, kClusterAttribute, clustering->clusters()[static_cast<size_t>(cluster)].name);
    }
    copies.at(i)->set_frontend_attributes(std::move(attributes));
  }
  return ir::ToHloText(*copy);
}

std::string PlacedDot(const ir::Module& module, const Placement* placement,
                      const Clustering* clustering) {
  return DotWriter(module, placement, clustering).Write();
}

}  // namespace kiln::session
