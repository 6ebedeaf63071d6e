#include "kernel/schedule/gpu/kept.h"

#include <algorithm>
#include <optional>

#include "base/integers.h"

namespace kiln::kernel {
namespace {

// A thread's registers, of 4 bytes, that may be kept, and the steps that its code may be long.
constexpr int64_t kMostKept = 64;
constexpr int64_t kMostSteps = 16;
constexpr int64_t kMostNodes = 2048;

bool HasValues(const Index& index) {
  return std::ranges::any_of(index.terms(), [](const Index::Term& t) {
    return t.atom.kind == Atom::Kind::kValue || (t.atom.inner && HasValues(*t.atom.inner));
  });
}

class Keeper {
 public:
  explicit Keeper(const Kernel& kernel) : kernel_(kernel) {
    for (const Stage& stage : kernel.stages) {
      if (!stage.variables.empty()) {
        walked_ = &stage.variables;
        break;
      }
    }
  }

  GpuKept Run() {
    if (!walked_) return {};
    for (StageId s : kernel_.stages.ids()) Visit(s);
    DropReplacedStores();
    return std::move(kept_);
  }

 private:
  // The registers of an array's elements: the first node that read them, or the last store.
  struct Holder {
    ParamId param;
    Index index;
    GpuKept::Place place;
  };

  // An access by the first walked stage's variables; nothing where it is not at the walked points.
  std::optional<Index> Canonical(const Stage& stage, const Index& index) const {
    if (HasValues(index)) return std::nullopt;
    bool walks = false;
    IdVector<VariableId, Index> replacements;
    for (VariableId v : kernel_.variables.ids()) {
      replacements.push_back(Index::Variable(v, kernel_.variables[v].extent));
    }
    for (size_t i = 0; i < stage.variables.size(); ++i) {
      const VariableId from = stage.variables[i], to = (*walked_)[i];
      walks |= index.DependsOn(from);
      replacements[from] = Index::Variable(to, kernel_.variables[to].extent);
    }
    if (!walks) return std::nullopt;
    return index.Substitute(replacements);
  }

  void Visit(StageId s) {
    const Stage& stage = kernel_.stages[s];
    const bool walks = !stage.variables.empty();
    for (NodeId n : stage.nodes.ids()) {
      const Node& node = stage.nodes[n];
      if (node.kind != Node::Kind::kLoad) continue;
      std::optional<Index> index;
      if (walks && !node.guard.valid()) index = Canonical(stage, node.index);
      auto held = std::ranges::find_if(
          holders_, [&](const Holder& h) { return h.param == node.param && h.index == index; });
      GpuKept::Place here{s, n};
      if (index && held != holders_.end()) {
        if (held->place.stage != s) kept_.loads.push_back({here, held->place});
      } else {
        if (index) holders_.push_back({node.param, *index, here});
        read_.push_back({s, node.param});
      }
    }
    for (const Store& store : stage.stores) {
      std::optional<Index> index;
      if (walks) index = Canonical(stage, store.index);
      // Elements that are held may be among those that are stored.
      std::erase_if(holders_, [&](const Holder& h) { return h.param == store.param; });
      const Node& value = stage.nodes[store.value];
      if (index && value.type == kernel_.params[store.param].type) {
        holders_.push_back({store.param, *index, {s, store.value}});
      }
    }
  }

  // store v at i; ...; store w at i  =>  store w at i     where nobody reads v from memory
  void DropReplacedStores() {
    for (StageId s : kernel_.stages.ids()) {
      const Stage& stage = kernel_.stages[s];
      if (stage.variables.empty()) continue;
      for (size_t k = 0; k < stage.stores.size(); ++k) {
        if (IsReplaced(s, stage.stores[k])) {
          kept_.replaced.push_back({s, static_cast<int>(k)});
        }
      }
    }
  }

  bool IsReplaced(StageId s, const Store& store) const {
    std::optional<Index> index = Canonical(kernel_.stages[s], store.index);
    if (!index) return false;
    for (StageId later : kernel_.stages.ids(StageId(s.value() + 1))) {
      const Stage& stage = kernel_.stages[later];
      for (const Read& r : read_) {
        if (r.stage == later && r.param == store.param) return false;
      }
      if (stage.variables.empty()) continue;
      for (const Store& other : stage.stores) {
        if (other.param == store.param && Canonical(stage, other.index) == index) return true;
      }
    }
    return false;
  }

  struct Read {
    StageId stage;
    ParamId param;
  };

  const Kernel& kernel_;
  const std::vector<VariableId>* walked_ = nullptr;
  std::vector<Holder> holders_;
  std::vector<Read> read_;  // from memory
  GpuKept kept_;
};

// The registers for a thread's kept values of one point.
int64_t RegistersOf(const Kernel& kernel, const GpuKept& kept) {
  std::vector<GpuKept::Place> seen;
  int64_t registers = 0;
  for (const GpuKept::Load& load : kept.loads) {
    if (std::ranges::find(seen, load.from) != seen.end()) continue;
    seen.push_back(load.from);
    const Stage& stage = kernel.stages[load.from.stage];
    const Node& node = stage.nodes[load.from.node];
    registers += CeilDiv(ByteWidth(node.type), 4);
  }
  return registers;
}

}  // namespace

int LanesOfAllStages(const Kernel& kernel, const IdVector<StageId, int>& lanes) {
  const Stage* first = nullptr;
  int least = 0;
  for (StageId s : kernel.stages.ids()) {
    const Stage& stage = kernel.stages[s];
    if (stage.variables.empty()) continue;
    if (!first) {
      first = &stage;
      least = lanes[s];
    }
    auto same = [&](VariableId a, VariableId b) {
      return kernel.variables[a].extent == kernel.variables[b].extent;
    };
    if (!std::ranges::equal(first->variables, stage.variables, same)) return 0;
    least = std::min(least, lanes[s]);
  }
  return least;
}

GpuKept KeepRows(const Kernel& kernel, int lanes, int team) {
  int64_t points = 0, nodes = 0;
  for (const Stage& stage : kernel.stages) {
    if (stage.variables.empty()) continue;
    points = kernel.PointsOf(stage.variables);
    nodes += static_cast<int64_t>(stage.nodes.size());
  }
  const int64_t steps = CeilDiv(points / lanes, team);
  if (steps == 0 || steps > kMostSteps || steps * lanes * nodes > kMostNodes) return {};
  GpuKept kept = Keeper(kernel).Run();
  if (kept.loads.empty() || steps * lanes * RegistersOf(kernel, kept) > kMostKept) return {};
  kept.steps = static_cast<int>(steps);
  return kept;
}

}  // namespace kiln::kernel
