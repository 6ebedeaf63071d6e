#include "kernel/schedule/cpu/strips.h"

#include <algorithm>
#include <optional>

#include "base/integers.h"
#include "kernel/schedule/cpu/rows.h"
#include "kernel/selection.h"

namespace kiln::kernel {
namespace {

// Accumulators of a strip, in the first cache beside what is read.
constexpr int64_t kMostSumsBytes = 16 << 10;
// Pieces of memory of a page are as good as longer ones, and of a few lines nearly so.
constexpr int64_t kWidestBytes = 4096;
constexpr int64_t kNarrowestBytes = 512;
// Rows as short as this are combined as columns, transposed in registers: to combine the lanes of a
// row's vector takes longer than the row does.
constexpr int64_t kLongestShortRow = 64;
// Fewer rows than these are read side by side.
constexpr int64_t kFewestRows = 32;
constexpr int kLineBytes = 64;
// Items that suffice for the threads of most machines; of those with scratch there are no more.
constexpr int64_t kItemsWanted = 16;
constexpr int64_t kItemsWithScratch = 32;

// Calls f(param, index, loads).
template <typename F>
void ForEachAccess(const Stage& stage, F&& f) {
  for (const Node& n : stage.nodes) {
    if (n.kind == Node::Kind::kLoad && !n.guard.valid()) f(n.param, n.index, true);
  }
  for (const Store& store : stage.stores) f(store.param, store.index, false);
}

class Strips {
 public:
  Strips(const Kernel& kernel, const target::Cpu& cpu, bool short_rows, CpuNestSchedule& schedule)
      : kernel_(kernel),
        cpu_(cpu),
        short_rows_(short_rows),
        s_(schedule),
        vector_(schedule.stages.front().vector_variable) {}

  bool Run() {
    if (!Apply()) return false;
    KeepWhatIsReadAgain();
    ChooseWidth();
    ChooseItems();
    PlaceWhatIsKept();
    for (StageId s : kernel_.stages.ids()) {
      s_.stages[s].rows = RowsOf(kernel_.stages[s]);
      s_.stages[s].masked = false;
      // Lines of many rows read across would be evicted before their next use.
      s_.stages[s].by_columns = HasSquares(kernel_.stages[s], true);
    }
    AddPrefetches();
    return true;
  }

 private:
  int64_t Extent(VariableId v) const { return kernel_.variables[v].extent; }
  int64_t Bytes(ParamId param) const { return ByteWidth(kernel_.params[param].type); }

  bool Apply() {
    if (!kernel_.IsOuter(vector_) || s_.vector_width < 4) return false;
    if (kernel_.kind != Kernel::Kind::kNest || Extent(vector_) < s_.vector_width) return false;
    transposes_ = StripsTranspose(kernel_, cpu_, vector_, s_.vector_width, short_rows_);
    if (transposes_) return true;
    int walks = 0;
    int64_t rows = 0;
    for (const Stage& stage : kernel_.stages) {
      if (stage.variables.empty()) continue;
      ++walks;
      rows = std::max(rows, Rows(stage));
    }
    const int64_t bytes = kernel_.bytes_read + kernel_.bytes_written;
    if (rows < kFewestRows || bytes <= 2 * cpu_.l2_bytes) return false;
    // A step that takes whole rows needs no strips.
    return walks > 1 || Extent(vector_) > s_.stages.front().unroll * s_.vector_width;
  }

  // --- Kept values

  // The last stage that reads a parameter, the first that reads or stores it.
  struct Span {
    StageId first, last;
  };

  // Where the parameter is read and stored at the same point of the walk by several stages.
  std::optional<Span> SpanOf(ParamId param) const {
    const bool output = kernel_.params[param].role == Param::Role::kOutput;
    if (kernel_.params[param].in_place_of.valid()) return std::nullopt;
    Span span;
    std::optional<Index> place;
    const std::vector<VariableId>* variables = nullptr;
    for (StageId s : kernel_.stages.ids()) {
      const Stage& stage = kernel_.stages[s];
      int accesses = 0;
      bool fits = true;
      auto access = [&](const Index& index) {
        ++accesses;
        fits = fits && (!place || *place == index) && (!variables || *variables == stage.variables);
        place = index;
        variables = &stage.variables;
      };
      for (const Node& n : stage.nodes) {
        if (n.kind != Node::Kind::kLoad || n.param != param) continue;
        access(n.index);
        fits = fits && !n.guard.valid();
      }
      for (const Store& store : stage.stores) {
        if (store.param == param) access(store.index);
      }
      if (!fits) return std::nullopt;
      if (accesses == 0) continue;
      if (!span.first.valid()) span.first = s;
      span.last = s;
    }
    if (!span.first.valid() || span.first == span.last || variables->empty()) return std::nullopt;
    // An element for each point.
    for (VariableId v : *variables) {
      if (place->StrideOf(v).value_or(0) == 0) return std::nullopt;
    }
    if (place->StrideOf(vector_).value_or(0) == 0) return std::nullopt;
    // Only the kernel's last stage puts an output where it belongs.
    if (output && !IsStoredLast(param)) return std::nullopt;
    return span;
  }

  bool IsStoredLast(ParamId param) const {
    return std::ranges::count(kernel_.stages.back().stores, param, &Store::param) > 0;
  }

  int64_t Rows(const Stage& stage) const { return kernel_.PointsOf(stage.variables); }

  void KeepWhatIsReadAgain() {
    for (ParamId p : kernel_.params.ids()) {
      auto span = SpanOf(p);
      if (!span) continue;
      kept_.push_back({p, *span});
      rows_ = Rows(kernel_.stages[span->first]);
    }
    // An output takes the place of an input of which it is made.
    for (KeptSpan& output : kept_) {
      if (kernel_.params[output.param].role != Param::Role::kOutput) continue;
      for (KeptSpan& input : kept_) {
        bool free = kernel_.params[input.param].role == Param::Role::kInput && !input.shared &&
                    input.span.last <= output.span.first &&
                    Bytes(input.param) == Bytes(output.param);
        if (!free) continue;
        input.shared = true;
        output.place_of = input.param;
        break;
      }
    }
    for (const KeptSpan& k : kept_) {
      if (!k.place_of.valid()) point_bytes_ += rows_ * Bytes(k.param);
    }
  }

  void PlaceWhatIsKept() {
    int64_t offset = 0;
    auto place = [&](ParamId param) {
      for (const CpuStrips::Kept& k : s_.strips.kept) {
        if (k.param == param) return k.offset;
      }
      return int64_t{0};
    };
    // Inputs come first among the parameters.
    for (const KeptSpan& k : kept_) {
      if (k.place_of.valid()) {
        s_.strips.kept.push_back({k.param, place(k.place_of)});
        continue;
      }
      s_.strips.kept.push_back({k.param, offset});
      offset += (rows_ * s_.strips.width * Bytes(k.param) + 63) / 64 * 64;
    }
    s_.strips.piece_bytes = offset;
    s_.scratch_bytes = offset * s_.items;
    // What else a stage stores and reads stays near.
    for (const Stage& stage : kernel_.stages) {
      for (const Node& n : stage.nodes) {
        if (n.kind != Node::Kind::kLoad || kernel_.params[n.param].role != Param::Role::kOutput) {
          continue;
        }
        if (std::ranges::none_of(kept_, [&](const KeptSpan& k) { return k.param == n.param; })) {
          s_.nontemporal = false;
        }
      }
    }
  }

  // --- Strips and items

  void ChooseWidth() {
    int64_t sums = 1, widest = 1;
    for (const Stage& stage : kernel_.stages) {
      for (const Reduction& r : stage.reductions) {
        for (ElementType type : r.types) sums += ByteWidth(type);
      }
      ForEachAccess(stage, [&](ParamId param, const Index&, bool) {
        widest = std::max(widest, Bytes(param));
      });
    }
    const int64_t step = s_.vector_width, extent = Extent(vector_);
    int64_t most = std::min(kMostSumsBytes / sums, kWidestBytes / widest);
    if (!kept_.empty()) {
      // Arrays read across come in whole lines, most of them unused at first.
      const bool across = std::ranges::any_of(
          kernel_.stages, [&](const Stage& stage) { return HasSquares(stage, true); });
      const int64_t room = cpu_.l2_bytes / (across ? 8 : 2) / point_bytes_;
      if (room < step) {
        kept_.clear();
      } else {
        most = std::min(most, room);
      }
    }
    int64_t others = 1;
    for (VariableId v : IdRange(VariableId(0), vector_)) others *= Extent(v);
    const int64_t for_items = CeilDiv(extent * others, kItemsWanted);
    // Rows cut into chunks make items of long pieces of memory.
    if (!IsCutIntoChunks()) most = std::min(most, std::max(for_items, kNarrowestBytes / widest));
    most = std::max(most / step * step, step);
    s_.strips.width = CeilDiv(CeilDiv(extent, CeilDiv(extent, most)), step) * step;
  }

  // Whether a single walk over many rows makes chunks enough (`split` of the nest's schedule).
  bool IsCutIntoChunks() const {
    const Stage& first = kernel_.stages.front();
    if (!kept_.empty() || first.reductions.empty() || first.variables.empty()) return false;
    for (StageId s : kernel_.stages.ids(StageId(1))) {
      if (!kernel_.stages[s].variables.empty()) return false;
    }
    return !AnyGeneral(first) && Extent(first.variables[0]) >= kItemsWanted * kFewestRows;
  }

  void ChooseItems() {
    s_.parallel = vector_.value() + 1;
    int64_t others = 1;
    for (VariableId v : IdRange(VariableId(0), vector_)) others *= Extent(v);
    const int64_t strips = CeilDiv(Extent(vector_), s_.strips.width);
    int64_t together = 1;
    if (!kept_.empty()) together = std::min(CeilDiv(strips * others, kItemsWithScratch), strips);
    s_.block = std::min(s_.strips.width * together, Extent(vector_));
    s_.items = others * CeilDiv(Extent(vector_), s_.block);
  }

  // --- Stages

  // Whether squares are loaded, or else stored.
  bool HasSquares(const Stage& stage, bool loaded) const {
    bool squares = false;
    const StageId number(&stage - kernel_.stages.data());
    ForEachAccess(stage, [&](ParamId param, const Index& index, bool loads) {
      squares |= transposes_ && loads == loaded && IsInMemory(param, number, loads) &&
                 IsSquareInStrips(stage, index, vector_);
    });
    return squares;
  }

  int RowsOf(const Stage& stage) const {
    if (stage.variables.empty()) return 1;
    if (HasSquares(stage, true) || HasSquares(stage, false)) return s_.vector_width;
    const int weight = WeightOf(stage);
    // Prefetches ask for as many rows ahead. Of eight, whose vectors are half a line each, the
    // lines would be evicted before their second half is read: often rows lie a multiple of a page
    // apart.
    const int most = cpu_.vector_bytes < kLineBytes ? 4 : 8;
    int rows = weight <= 8 ? most : weight <= 40 ? 4 : 2;
    while (rows > Extent(stage.variables.back())) rows /= 2;
    return std::max(rows, 1);
  }

  // Whether a stage's access of a parameter goes to its memory, and not to what is kept.
  bool IsInMemory(ParamId param, StageId stage, bool loads) const {
    auto kept = std::ranges::find(kept_, param, &KeptSpan::param);
    if (kept == kept_.end()) return true;
    if (!loads) return stage == kernel_.stages.last();
    return kernel_.params[param].role == Param::Role::kInput && stage == kept->span.first;
  }

  // The next rows, of what comes from far or goes there.
  void AddPrefetches() {
    for (StageId s : kernel_.stages.ids()) {
      const Stage& stage = kernel_.stages[s];
      // Streams of which there are few are seen by the hardware.
      if (stage.variables.empty() || s_.stages[s].by_columns) continue;
      const VariableId last = stage.variables.back();
      ForEachAccess(stage, [&](ParamId param, const Index& index, bool loads) {
        if (!IsInMemory(param, s, loads)) return;
        if (loads ? kernel_.params[param].role == Param::Role::kOutput : s_.nontemporal) return;
        if (kernel_.params[param].elements * Bytes(param) <= cpu_.l2_bytes / 2) return;
        std::optional<int64_t> row = index.StrideOf(last);
        if (!row || *row == 0 || index.StrideOf(vector_).value_or(0) == 0) return;
        CpuPrefetch prefetch{s, param, index + *row * s_.stages[s].rows, !loads};
        auto same = std::find(s_.prefetches.begin(), s_.prefetches.end(), prefetch);
        if (same == s_.prefetches.end()) s_.prefetches.push_back(std::move(prefetch));
      });
    }
  }

  struct KeptSpan {
    ParamId param;
    Span span;
    bool shared = false;  // its place is an output's later
    ParamId place_of;
  };

  const Kernel& kernel_;
  const target::Cpu& cpu_;
  const bool short_rows_;
  CpuNestSchedule& s_;
  const VariableId vector_;
  bool transposes_ = false;
  std::vector<KeptSpan> kept_;
  int64_t rows_ = 1;         // points of the inner variables
  int64_t point_bytes_ = 0;  // of what is kept, at one point of the vector variable
};

}  // namespace

bool StripsTranspose(const Kernel& kernel, const target::Cpu& cpu, VariableId vector,
                     int vector_width, bool short_rows) {
  if (kernel.kind != Kernel::Kind::kNest || !kernel.IsOuter(vector)) return false;
  if (vector_width < 4 || vector_width > kLargestSquare) return false;
  if (kernel.bytes_read + kernel.bytes_written <= cpu.l1_bytes) return false;
  if (kernel.variables[vector].extent < vector_width) return false;
  bool along = false, across = false, reduced = false;
  int64_t longest = 0;
  for (const Stage& stage : kernel.stages) {
    if (stage.variables.empty()) continue;
    const VariableId last = stage.variables.back();
    if (kernel.variables[last].extent < vector_width) return false;
    longest = std::max(longest, kernel.PointsOf(stage.variables));
    reduced |= !stage.reductions.empty();
    ForEachAccess(stage, [&](ParamId, const Index& index, bool) {
      along |= index.StrideOf(vector) == 1 && index.StrideOf(last).value_or(0) != 0;
      across |= IsSquareInStrips(stage, index, vector);
    });
  }
  return across && (along || (short_rows && reduced && longest <= kLongestShortRow));
}

bool IsSquareInStrips(const Stage& stage, const Index& index, VariableId vector) {
  if (stage.variables.empty() || index.StrideOf(stage.variables.back()) != 1) return false;
  return std::abs(index.StrideOf(vector).value_or(0)) > 1;
}

bool ScheduleStrips(const Kernel& kernel, const target::Cpu& cpu, bool short_rows,
                    CpuNestSchedule& schedule) {
  return Strips(kernel, cpu, short_rows, schedule).Run();
}

}  // namespace kiln::kernel
