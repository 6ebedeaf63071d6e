#include "kernel/schedule/cpu/rows.h"

#include <algorithm>
#include <optional>

namespace kiln::kernel {
namespace {

class Rows {
 public:
  Rows(const Kernel& kernel, const target::Cpu& cpu, CpuNestSchedule& schedule)
      : kernel_(kernel), cpu_(cpu), s_(schedule) {
    for (StageId s : s_.stages.ids()) {
      if (OwnVector(s).valid()) walks_.push_back(s);
    }
  }

  void Run() {
    if (s_.vector_width == 1) return;
    bool walks_again = walks_.size() >= 2 && s_.split == 0;
    if (walks_again) extent_ = Extent(OwnVector(walks_[0]));
    for (StageId s : walks_) walks_again = walks_again && Extent(OwnVector(s)) == extent_;
    if (walks_again) {
      StageRows();
      KeepValues();
    }
    KeepWhatIsReadAgain();
    if (kernel_.bytes_read + kernel_.bytes_written <= cpu_.l2_bytes) return;
    if (!walks_again) return PrefetchStreams();
    if (kernel_.outer == 0) return;
    Pipeline();
    PrefetchRows();
  }

 private:
  int64_t Extent(VariableId v) const { return kernel_.variables[v].extent; }

  // The vector variable of a stage's own, or none.
  VariableId OwnVector(StageId s) const {
    const VariableId v = s_.stages[s].vector_variable;
    return kernel_.IsInner(v) ? v : VariableId();
  }

  // The index with one inner variable in another one's place; nothing where it has inner variables
  // but that one, or is not contiguous along it.
  std::optional<Index> Moved(const Index& index, VariableId from, VariableId to) const {
    if (index.StrideOf(from) != 1) return std::nullopt;
    IdVector<VariableId, Index> replacements;
    for (VariableId v : kernel_.variables.ids()) {
      if (kernel_.IsInner(v) && v != from && index.DependsOn(v)) return std::nullopt;
      const VariableId now = v == from ? to : v;
      replacements.push_back(Index::Variable(now, Extent(now)));
    }
    return index.Substitute(replacements);
  }

  int64_t RowBytes(ParamId param) const { return extent_ * ByteWidth(kernel_.params[param].type); }

  // --- Staged rows

  // Rows of an output that walks before the last one store, and the last one replaces, all at the
  // same places.
  bool CanBeStaged(ParamId param) const {
    if (kernel_.params[param].in_place_of.valid() || RowBytes(param) > cpu_.l1_bytes / 3)
      return false;
    const StageId last = walks_.back();
    if (last != kernel_.stages.last()) return false;
    std::optional<Index> place;
    for (const Store& store : kernel_.stages[last].stores) {
      if (store.param != param) continue;
      if (place) return false;
      place = store.index;
    }
    if (!place || place->StrideOf(OwnVector(last)) != 1) return false;
    bool stored_before = false;
    for (StageId s : kernel_.stages.ids()) {
      const Stage& stage = kernel_.stages[s];
      auto same = [&](const Index& index) {
        return OwnVector(s).valid() && Moved(index, OwnVector(s), OwnVector(last)) == place;
      };
      for (const Node& n : stage.nodes) {
        if (n.kind != Node::Kind::kLoad || n.param != param) continue;
        if (n.guard.valid() || !same(n.index)) return false;
      }
      for (const Store& store : stage.stores) {
        if (store.param != param) continue;
        if (!same(store.index)) return false;
        stored_before |= s != last;
      }
    }
    return stored_before;
  }

  void StageRows() {
    int64_t staged_bytes = 0;
    for (ParamId param : kernel_.params.ids()) {
      if (kernel_.params[param].role != Param::Role::kOutput || !CanBeStaged(param)) continue;
      // The stack is the caller's.
      staged_bytes += RowBytes(param);
      if (staged_bytes <= cpu_.l1_bytes) s_.staged.push_back(param);
    }
  }

  bool IsStaged(ParamId param) const {
    return std::find(s_.staged.begin(), s_.staged.end(), param) != s_.staged.end();
  }

  // --- Kept values

  // An index of one walk as another's; nothing where it has inner variables of more than the walk's
  // own, or values.
  std::optional<Index> MovedTo(const Index& index, StageId from, StageId to) const {
    IdVector<VariableId, Index> replacements;
    for (VariableId v : kernel_.variables.ids()) {
      const bool own = v == OwnVector(from);
      if (kernel_.IsInner(v) && !own && index.DependsOn(v)) return std::nullopt;
      const VariableId now = own ? OwnVector(to) : v;
      replacements.push_back(Index::Variable(now, Extent(now)));
    }
    if (HasValues(index)) return std::nullopt;
    return index.Substitute(replacements);
  }
  static bool HasValues(const Index& index) {
    return std::ranges::any_of(index.terms(), [](const Index::Term& t) {
      return t.atom.kind == Atom::Kind::kValue || (t.atom.inner && HasValues(*t.atom.inner));
    });
  }

  // A number for each value of a walk, among those of `distinct`, in which equal ones are one; -1
  // for values that may change between walks. Indices are those of another walk.
  IdVector<NodeId, int> NumbersOf(StageId s, StageId as, std::vector<Node>& distinct) const {
    IdVector<NodeId, int> numbers;
    for (Node key : kernel_.stages[s].nodes) {
      bool known = key.kind == Node::Kind::kConstant || key.kind == Node::Kind::kReduced;
      if (key.kind == Node::Kind::kOp) {
        known = std::ranges::all_of(key.operands, [&](NodeId o) { return numbers[o] >= 0; });
        for (NodeId& operand : key.operands) {
          if (known) operand = NodeId(numbers[operand]);
        }
      } else if (key.kind == Node::Kind::kLoad && !key.guard.valid() &&
                 kernel_.params[key.param].role == Param::Role::kInput) {
        const std::optional<Index> moved = MovedTo(key.index, s, as);
        known = moved.has_value();
        if (known) key.index = *moved;
      }
      if (!known) {
        numbers.push_back(-1);
        continue;
      }
      const auto same = std::ranges::find(distinct, key);
      numbers.push_back(static_cast<int>(same - distinct.begin()));
      if (same == distinct.end()) distinct.push_back(std::move(key));
    }
    return numbers;
  }

  // About how many instructions make a vector of each of a stage's values out of memory; 0 where a
  // value is the same along the row.
  IdVector<NodeId, int> WorkOf(StageId s) const {
    constexpr int kRounding = 5, kMost = 1 << 20;
    IdVector<NodeId, int> work;
    for (const Node& n : kernel_.stages[s].nodes) {
      int all = 0;
      for (NodeId operand : n.operands) all = std::min(kMost, all + work[operand]);
      if (n.kind == Node::Kind::kLoad && n.index.DependsOn(OwnVector(s))) all = 1;
      if (all > 0 && n.kind == Node::Kind::kOp && !HasTrait(n.opcode, kExact)) {
        all += IsHalf(n.type) ? 1 + kRounding : 1;
      }
      work.push_back(all);
    }
    return work;
  }

  // Keeps, for each walk, the value with the most work that the walk before has made.
  void KeepValues() {
    constexpr int kLeastWork = 6;
    constexpr size_t kMostNodes = 256;
    for (size_t w = 1; w < walks_.size(); ++w) {
      const StageId before = walks_[w - 1], now = walks_[w];
      const auto &made = kernel_.stages[before].nodes, &wanted = kernel_.stages[now].nodes;
      if (std::max(made.size(), wanted.size()) > kMostNodes) continue;
      std::vector<Node> distinct;
      const IdVector<NodeId, int> old = NumbersOf(before, now, distinct);
      const IdVector<NodeId, int> numbers = NumbersOf(now, now, distinct);
      const IdVector<NodeId, int> work = WorkOf(now);
      int most = kLeastWork;
      std::optional<CpuKeptValue> best;
      for (NodeId m : wanted.ids()) {
        const int64_t bytes = extent_ * std::max<int64_t>(ByteWidth(wanted[m].type), 4);
        if (work[m] <= most || !IsFloat(wanted[m].type) || bytes > cpu_.l1_bytes / 3) continue;
        const auto same = std::ranges::find(old, numbers[m]);
        if (numbers[m] < 0 || same == old.end()) continue;
        best = CpuKeptValue{before, NodeId(same - old.begin()), now, m};
        most = work[m];
      }
      if (best) s_.kept.push_back(*best);
    }
  }

  // Outputs with streaming stores should not be read by the kernel itself.
  void KeepWhatIsReadAgain() {
    for (const Stage& stage : kernel_.stages) {
      for (const Node& n : stage.nodes) {
        if (n.kind == Node::Kind::kLoad && !IsStaged(n.param) &&
            kernel_.params[n.param].role == Param::Role::kOutput) {
          s_.nontemporal = false;
        }
      }
    }
  }

  // --- Software-pipelined rows

  // Whether no staged row is read later than in the next walk. In a pipeline each walk is a row
  // ahead of the next one, and there is one staged row: later walks would find another row in it.
  bool StagedRowsAreReadNext() const {
    for (ParamId param : s_.staged) {
      size_t stored = walks_.size(), read = 0;
      for (size_t w = 0; w < walks_.size(); ++w) {
        const Stage& stage = kernel_.stages[walks_[w]];
        for (const Node& n : stage.nodes) {
          if (n.kind == Node::Kind::kLoad && n.param == param) read = w;
        }
        for (const Store& store : stage.stores) {
          if (store.param == param) stored = std::min(stored, w);
        }
      }
      if (read > stored + 1) return false;
    }
    return true;
  }

  void Pipeline() {
    if (walks_.size() != s_.stages.size() || !StagedRowsAreReadNext()) return;
    for (const Stage& stage : kernel_.stages) {
      if (stage.variables.size() != 1) return;
    }
    if (!kernel_.stages.back().reductions.empty()) return;
    // An item walks the last outer variable.
    bool many = s_.parallel < kernel_.outer || (s_.parallel == kernel_.outer && s_.block > 1);
    if (!many) return;
    s_.pipelined = true;
    LengthenBlocks();
    int unroll = 64;
    for (const CpuStageSchedule& stage : s_.stages) unroll = std::min(unroll, stage.unroll);
    for (CpuStageSchedule& stage : s_.stages) {
      stage.unroll = unroll;
      stage.masked = unroll == 1 && cpu_.has_masks;
    }
  }

  // A pipeline that is filled and emptied often does not pay: items get more rows where that leaves
  // items enough.
  void LengthenBlocks() {
    constexpr int64_t kMostRows = 48, kItemsEnough = 64;
    if (s_.parallel != kernel_.outer) return;
    int64_t extent = Extent(kernel_.LastOuter()),
            outside = s_.items / ((extent + s_.block - 1) / s_.block);
    int64_t block = std::min(kMostRows, extent * outside / kItemsEnough);
    if (block <= s_.block) return;
    s_.block = std::min(block, extent);
    s_.items = outside * ((extent + s_.block - 1) / s_.block);
    s_.max_tasks = std::min(s_.max_tasks, s_.items);
  }

  // --- Prefetches

  void AddPrefetch(CpuPrefetch prefetch) {
    auto same = std::find(s_.prefetches.begin(), s_.prefetches.end(), prefetch);
    if (same == s_.prefetches.end()) s_.prefetches.push_back(std::move(prefetch));
  }

  // A row that leaves room in the first cache, and has many lines.
  bool IsRow(ParamId param) const {
    return RowBytes(param) >= 512 && RowBytes(param) <= cpu_.l1_bytes / 4;
  }

  // Whether values of the kernel tell where rows are, as those of a table: what is behind a row is
  // not what is read next.
  static bool IsAtRandom(const Index& index) {
    return std::ranges::any_of(index.terms(), [](const Index::Term& t) {
      if (t.atom.kind == Atom::Kind::kValue) return !t.atom.inner->is_constant();
      return t.atom.inner && IsAtRandom(*t.atom.inner);
    });
  }

  // Sequential arrays are prefetched farther ahead than the hardware prefetches, which restarts at
  // every page. Behind long arithmetic the hardware suffices.
  void PrefetchStreams() {
    constexpr int kMostWeight = 60;
    constexpr int64_t kPage = 4096;
    if (s_.tile_variable.valid() || s_.interleaved.valid()) return;
    for (StageId s : s_.stages.ids()) {
      const Stage& stage = kernel_.stages[s];
      const VariableId vector = s_.stages[s].vector_variable;
      if (!vector.valid() || WeightOf(stage) > kMostWeight) continue;
      for (const Node& n : stage.nodes) {
        if (n.kind != Node::Kind::kLoad || n.guard.valid() || n.index.StrideOf(vector) != 1 ||
            IsAtRandom(n.index)) {
          continue;
        }
        const Param& param = kernel_.params[n.param];
        int64_t size = ByteWidth(param.type);
        if (param.elements * size <= cpu_.l2_bytes) continue;
        AddPrefetch({s, n.param, n.index + kPage / size, false});
      }
    }
  }

  // Rows are read by the first walk and written by the last: memory is idle in between. One of the
  // walks prefetches the next row, and the last but one prefetches the lines to be written.
  void PrefetchRows() {
    // A core waits for few lines at a time: the next row comes with the walk that takes longest.
    // In a pipeline all go together.
    StageId longest = s_.pipelined ? walks_.front() : walks_.back();
    for (StageId s : walks_) {
      if (s_.pipelined) break;
      if (WeightOf(kernel_.stages[s]) > WeightOf(kernel_.stages[longest])) longest = s;
    }
    std::vector<ParamId> written;
    const VariableId next = kernel_.LastOuter();
    for (size_t w = 0; w < walks_.size(); ++w) {
      const Stage& stage = kernel_.stages[walks_[w]];
      const VariableId own = OwnVector(walks_[w]);
      for (const Node& n : stage.nodes) {
        if (n.kind != Node::Kind::kLoad || n.guard.valid()) continue;
        if (kernel_.params[n.param].role == Param::Role::kOutput || !IsRow(n.param)) continue;
        std::optional<int64_t> row = n.index.StrideOf(next);
        std::optional<Index> index = Moved(n.index, own, OwnVector(longest));
        if (row && *row != 0 && index) {
          AddPrefetch({longest, n.param, *index + *row, false});
        }
      }
      for (const Store& store : stage.stores) {
        bool staged = IsStaged(store.param);
        if (staged && walks_[w] != walks_.back()) continue;
        // Lines written by an earlier walk are in the caches already.
        bool first = std::find(written.begin(), written.end(), store.param) == written.end();
        written.push_back(store.param);
        if (!first || w == 0 || !IsRow(store.param) || s_.nontemporal) continue;
        const VariableId before = OwnVector(walks_[w - 1]);
        std::optional<Index> index = Moved(store.index, own, before);
        if (index) AddPrefetch({walks_[w - 1], store.param, *index, true});
      }
    }
  }

  const Kernel& kernel_;
  const target::Cpu& cpu_;
  CpuNestSchedule& s_;
  std::vector<StageId> walks_;  // the stages with vectors along a variable of their own
  int64_t extent_ = 0;          // of each of these variables
};

}  // namespace

int WeightOf(const Node& node) {
  if (node.kind == Node::Kind::kOp) return IsTranscendental(node.opcode) ? 20 : 1;
  return node.kind == Node::Kind::kLoad ? 1 : 0;
}

int WeightOf(const Stage& stage) {
  int weight = static_cast<int>(stage.stores.size());
  for (const Node& n : stage.nodes) weight += WeightOf(n);
  return weight;
}

void ScheduleRows(const Kernel& kernel, const target::Cpu& cpu, CpuNestSchedule& schedule) {
  Rows(kernel, cpu, schedule).Run();
}

}  // namespace kiln::kernel
