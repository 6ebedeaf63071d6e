#include "kernel/build.h"

#include <algorithm>
#include <ranges>
#include <unordered_map>
#include <unordered_set>
#include <utility>

#include "base/strings.h"
#include "kernel/collapse.h"
#include "kernel/combiner.h"
#include "kernel/fusible.h"
#include "kernel/parts.h"
#include "kernel/region.h"
#include "kernel/retype.h"
#include "kernel/scatter.h"
#include "kernel/sort.h"
#include "kernel/values.h"
#include "kernel/window.h"

namespace kiln::kernel {
namespace {

using ir::Instruction;

const Shape& FirstLeaf(const Shape& shape) {
  return shape.is_tuple() ? shape.elements()[0] : shape;
}

class Builder {
 public:
  Builder(const Group& group, std::string name) : group_(group) { kernel_.name = std::move(name); }

  Result<Kernel> Build() {
    if (group_.roots.empty()) return Unimplemented("fusion: it has no result, and is no kernel");
    KILN_RETURN_IF_ERROR(Collect());
    KILN_RETURN_IF_ERROR(AddParams());
    if (heroes_.empty()) {
      KILN_RETURN_IF_ERROR(BuildLoop());
    } else if (heroes_[0]->opcode() == Opcode::kScatter) {
      KILN_RETURN_IF_ERROR(BuildScattering());
    } else if (IsSort(*heroes_[0])) {
      KILN_RETURN_IF_ERROR(BuildSorting());
      AddCosts();
      return std::move(kernel_);
    } else {
      KILN_RETURN_IF_ERROR(BuildReduction());
    }
    AddCosts();
    CollapseVariables(kernel_);
    SplitPieces(kernel_);
    RetypeMoves(kernel_);
    return std::move(kernel_);
  }

 private:
  // A root, and the number of its first output: a value that is a root twice is stored twice.
  struct Output {
    const Instruction* root;
    int first;
  };

  // The members, heroes among them, and the inputs.
  Status Collect() {
    for (size_t i = 0; i < group_.inputs.size(); ++i) {
      param_of_.emplace(group_.inputs[i], i);
    }
    members_ = MembersOf(group_);
    kernel_.op_names = OpNamesOf(members_);
    for (const Instruction* m : members_) {
      KILN_RETURN_IF_ERROR(CheckTypes(*m, m->shape()));
      for (const Instruction* operand : m->operands()) {
        KILN_RETURN_IF_ERROR(CheckTypes(*m, operand->shape()));
      }
      if (IsHero(m->opcode())) heroes_.push_back(m);
    }
    return OkStatus();
  }

  // The shape of a member or of one of its operands.
  static Status CheckTypes(const Instruction& m, const Shape& shape) {
    bool supported = true;
    ForEachLeaf(shape, [&](const Shape& leaf, std::span<const int64_t>) {
      supported &= leaf.is_array() && IsKernelType(leaf.type());
    });
    if (supported) return OkStatus();
    return Unimplemented(OpcodeName(m.opcode()), ": shape ", shape, " of '", m.name(),
                         "' has no compiled code");
  }

  Status AddParams() {
    for (const Instruction* input : group_.inputs) {
      if (!input->shape().is_array()) {
        return Unimplemented(OpcodeName(input->opcode()), ": '", input->name(), "' of shape ",
                             input->shape(), " is no array and no input of a kernel");
      }
      KILN_RETURN_IF_ERROR(CheckTypes(*input, input->shape()));
      AddParam(Param::Role::kInput, input->shape());
    }
    first_output_ = kernel_.params.next();
    int output = 0;
    for (const Instruction* root : group_.roots) {
      outputs_.push_back({root, output});
      ForEachLeaf(root->shape(), [&](const Shape& leaf, std::span<const int64_t>) {
        AddParam(Param::Role::kOutput, leaf);
        ++output;
      });
    }
    return OkStatus();
  }

  ParamId OutputParam(int output) const { return ParamId(first_output_.value() + output); }

  void AddParam(Param::Role role, const Shape& shape) {
    kernel_.params.push_back({role, shape.type(), shape.num_elements()});
  }

  // Stage `stage` may read the reductions of the stages before it, and what they have put down.
  StageValues::Sources Sources(StageId stage) {
    return {[this, stage](const Instruction& i) -> StageValues::Sources::Memory {
              if (auto it = param_of_.find(&i); it != param_of_.end()) return {it->second};
              auto it = kept_.find(&i);
              if (it == kept_.end() || !it->second.IsThereIn(stage)) return {};
              return {it->second.param, &it->second.strides};
            },
            [this, stage](const Instruction& i) -> std::optional<StageValues::Sources::Reduced> {
              auto it = reduction_of_.find(&i);
              if (it == reduction_of_.end() || it->second.stage >= stage) return std::nullopt;
              auto [at, number] = it->second;
              const auto& types = kernel_.stages[at].reductions[number].types;
              return StageValues::Sources::Reduced{at, number, &types, &outer_};
            }};
  }

  // A variable as an index.
  Index AddVariable(int64_t extent, bool reduction) {
    return Index::Variable(kernel_.variables.Add({extent, reduction}), extent);
  }

  void AddOuter(std::span<const int64_t> dims) {
    for (int64_t d : dims) outer_.push_back(AddVariable(d, false));
    kernel_.outer = static_cast<int>(dims.size());
  }

  // Where root element at the outer point is: the same index where dimensions are equal, else (the
  // same number of elements) the row-major one.
  Result<std::vector<Index>> RootIndex(const Instruction& root, std::span<const int64_t> dims) {
    auto known = index_of_.find(&root);
    if (known != index_of_.end()) return known->second;
    std::vector<int64_t> own = FirstLeaf(root.shape()).dims();
    if (std::equal(own.begin(), own.end(), dims.begin(), dims.end())) return outer_;
    if (Product(own) == Product(dims) && Product(own) > 0) {
      return Delinearise(Linearise(outer_, RowMajorStrides(dims)), own);
    }
    return Unimplemented(OpcodeName(root.opcode()), ": output '", root.name(), "' of shape ",
                         root.shape(), " has another iteration space than its kernel");
  }

  void StoreTo(Stage& stage, int output, const Shape& shape, const std::vector<Index>& index,
               NodeId value) {
    stage.stores.push_back({OutputParam(output), Linearise(index, shape.strides()), value});
  }

  // Stores a root (all results of a reduce of several) at the outer point.
  Status StoreRoot(StageValues& values, Stage& stage, Output to, std::span<const int64_t> dims) {
    const auto& [instruction, output] = to;
    const Instruction& root = *instruction;
    KILN_ASSIGN_OR_RETURN(std::vector<Index> index, RootIndex(root, dims));
    if (root.shape().is_tuple()) {
      for (size_t r = 0; r < root.shape().elements().size(); ++r) {
        KILN_ASSIGN_OR_RETURN(NodeId value, values.ReducedAt(root, static_cast<int>(r), index));
        StoreTo(stage, output + static_cast<int>(r), root.shape().elements()[r], index, value);
      }
      return OkStatus();
    }
    KILN_ASSIGN_OR_RETURN(NodeId value, values.At(root, index));
    StoreTo(stage, output, root.shape(), index, value);
    return OkStatus();
  }

  // The only output, where it is an array of the caller's that is written in part.
  const Instruction* UpdatedInPlace() const {
    const Instruction& root = *group_.roots[0];
    if (group_.roots.size() != 1 || root.opcode() != Opcode::kDynamicUpdateSlice) return nullptr;
    const Instruction& operand = *root.operand(0);
    if (!param_of_.contains(&operand) || !(operand.shape() == root.shape())) return nullptr;
    // Beside an update from memory nothing is read.
    const bool is_alone = param_of_.contains(root.operand(1));
    return is_alone || !ReadsBesideUpdate(root) ? &root : nullptr;
  }

  // Writes the region of the update, and leaves the rest of the operand as it is.
  Status BuildUpdate(const Instruction& root) {
    AddOuter(root.operand(1)->shape().dims());
    kernel_.stages.resize(1);
    StageValues values(kernel_.stages.front(), Sources(StageId(0)));
    KILN_ASSIGN_OR_RETURN(std::vector<Index> index, values.UpdateStarts(root));
    for (size_t d = 0; d < index.size(); ++d) index[d] = index[d] + outer_[d];
    KILN_ASSIGN_OR_RETURN(NodeId value, values.At(*root.operand(1), outer_));
    StoreTo(kernel_.stages.front(), 0, root.shape(), index, value);
    kernel_.params[first_output_].in_place_of = param_of_.at(root.operand(0));
    return OkStatus();
  }

  Status BuildScattering() {
    if (heroes_.size() > 1 || group_.roots.size() > 1 || group_.roots[0] != heroes_[0]) {
      return Unimplemented("scatter: '", heroes_[0]->name(), "' cannot be one kernel with others");
    }
    kernel_.stages.resize(1);
    StageValues values(kernel_.stages.front(), Sources(StageId(0)));
    auto param_of = [&](const Instruction& i) {
      auto it = param_of_.find(&i);
      return it == param_of_.end() ? ParamId() : it->second;
    };
    return BuildScatter(*heroes_[0], first_output_, param_of, values, kernel_);
  }

  Status BuildSorting() {
    if (heroes_.size() > 1 || group_.roots.size() > 1 || group_.roots[0] != heroes_[0]) {
      return Unimplemented(OpcodeName(heroes_[0]->opcode()), ": '", heroes_[0]->name(),
                           "' cannot be one kernel with others");
    }
    kernel_.stages.resize(1);
    StageValues values(kernel_.stages.front(), Sources(StageId(0)));
    return BuildSort(*heroes_[0], first_output_, values, kernel_);
  }

  Status BuildLoop() {
    if (const Instruction* root = UpdatedInPlace()) return BuildUpdate(*root);
    std::vector<int64_t> dims = group_.roots[0]->shape().dims();
    AddOuter(dims);
    kernel_.stages.resize(1);
    StageValues values(kernel_.stages.front(), Sources(StageId(0)));
    for (const Output& output : outputs_) {
      KILN_RETURN_IF_ERROR(StoreRoot(values, kernel_.stages.front(), output, dims));
    }
    if (outputs_.size() == 1) MakePartsTogether();
    return OkStatus();
  }

  static int64_t LoadsOf(const Stage& stage) {
    return std::ranges::count(stage.nodes, Node::Kind::kLoad, &Node::kind);
  }

  // Parts of the root that read the same elements are made at the same point, where each element is
  // then read once.
  void MakePartsTogether() {
    const Instruction& root = *group_.roots[0];
    const std::vector<PartsDimension> parts =
        PartsOf(root, [&](const Instruction& i) { return param_of_.contains(&i); });
    if (parts.empty()) return;
    auto variables = std::exchange(kernel_.variables, {});
    auto stages = std::exchange(kernel_.stages, {});
    const int outer = std::exchange(kernel_.outer, 0);
    kernel_.stages.resize(1);
    if (StoreParts(root, parts).ok() && LoadsOf(kernel_.stages.front()) < LoadsOf(stages.front())) {
      return;
    }
    kernel_.variables = std::move(variables);
    kernel_.stages = std::move(stages);
    kernel_.outer = outer;
  }

  Status StoreParts(const Instruction& root, const std::vector<PartsDimension>& parts) {
    // The first part's element at a point, and from there each other part's.
    std::vector<Index> first;
    auto add = [&](int64_t extent) {
      if (extent == 1) return Index(0);
      ++kernel_.outer;
      return AddVariable(extent, false);
    };
    for (int64_t d = 0; d < root.shape().rank(); ++d) {
      const auto it = std::ranges::find(parts, d, &PartsDimension::dimension);
      const PartsDimension part = it == parts.end() ? PartsDimension{d} : *it;
      const int64_t outside = root.shape().dim(d) / part.count / part.inner;
      first.push_back(part.inner == 1 ? add(outside) * part.count
                                      : add(outside) * (part.count * part.inner) + add(part.inner));
    }
    Stage& stage = kernel_.stages.front();
    StageValues values(stage, Sources(StageId(0)));
    int64_t count = 1;
    for (const PartsDimension& part : parts) count *= part.count;
    for (int64_t number = 0; number < count; ++number) {
      std::vector<Index> index = first;
      int64_t rest = number;
      for (const PartsDimension& part : std::views::reverse(parts)) {
        const auto d = static_cast<size_t>(part.dimension);
        index[d] = index[d] + rest % part.count * part.inner;
        rest /= part.count;
      }
      KILN_ASSIGN_OR_RETURN(NodeId value, values.At(root, index));
      StoreTo(stage, 0, root.shape(), index, value);
    }
    return OkStatus();
  }

  Status BuildReduction() {
    const Instruction& first = *heroes_[0];
    for (const Instruction* hero : heroes_) {
      bool alike = hero->opcode() == Opcode::kReduce && first.opcode() == Opcode::kReduce &&
                   hero->dimensions() == first.dimensions() &&
                   hero->operand(0)->shape().SameDimensions(first.operand(0)->shape());
      if (hero != &first && !alike) {
        return Unimplemented(OpcodeName(hero->opcode()), ": '", hero->name(), "' and '",
                             first.name(), "' cannot be one kernel");
      }
    }
    std::vector<int64_t> dims = FirstLeaf(first.shape()).dims();
    if (auto scan = ScanFormOfFirst()) {
      AddScan(dims, *scan);
    } else {
      AddOuter(dims);
    }
    FindLevels();
    FollowHeroes();
    if (first.opcode() == Opcode::kReduce) {
      MakeFull();
      KILN_RETURN_IF_ERROR(FollowWhole());
    }
    std::vector<Output> whole, pointwise;
    for (const Output& output : outputs_)
      (IsWhole(*output.root) ? whole : pointwise).push_back(output);
    int levels = 0, last = -1;
    for (const Instruction* hero : heroes_) levels = std::max(levels, LevelOf(hero));
    for (const Output& output : whole) last = std::max(last, LevelOf(output.root));
    const int inner = std::max(levels, last + 1);
    KeepForLater();
    // Stages are made up front: values hold references to them.
    kernel_.stages.resize(static_cast<size_t>(inner) + (pointwise.empty() ? 0 : 1));
    const StageId end(inner);
    for (StageId s : IdRange(StageId(0), end)) {
      StageValues values(kernel_.stages[s], Sources(s));
      KILN_RETURN_IF_ERROR(BuildInner(s, values));
    }
    if (pointwise.empty()) return OkStatus();
    if (kernel_.kind == Kernel::Kind::kScan) kernel_.stages.back().variables = inner_;
    StageValues after(kernel_.stages.back(), Sources(end));
    for (const Output& output : pointwise) {
      KILN_RETURN_IF_ERROR(StoreRoot(after, kernel_.stages.back(), output, dims));
    }
    return OkStatus();
  }

  // One stage over the reduced elements: the reductions that depend on `s` others, and the stores
  // of the reduced size.
  Status BuildInner(StageId s, StageValues& values) {
    for (const Instruction* hero : heroes_) {
      if (StageOfHero(hero) != s) continue;
      const ReductionId number = kernel_.stages[s].reductions.next();
      if (hero->opcode() == Opcode::kDot) {
        KILN_RETURN_IF_ERROR(AddDot(*hero, values));
      } else if (hero->opcode() == Opcode::kReduceWindow) {
        kernel_.stages[s].variables = inner_;
        KILN_RETURN_IF_ERROR(AddWindowReduction(*hero, outer_, kernel_.stages[s], values, kernel_));
      } else {
        KILN_RETURN_IF_ERROR(AddReduce(*hero, s, values));
      }
      reduction_of_[hero] = {s, number};
    }
    auto store = [&](const Instruction& value, const std::vector<Index>& index, ParamId param,
                     const std::vector<int64_t>& strides) -> Status {
      EnterInner(s);
      KILN_ASSIGN_OR_RETURN(NodeId node, values.At(value, index));
      kernel_.stages[s].stores.push_back({param, Linearise(index, strides), node});
      return OkStatus();
    };
    for (const Instruction* m : members_) {
      auto it = kept_.find(m);
      if (it == kept_.end() || it->second.stage != s) continue;
      KILN_RETURN_IF_ERROR(store(*m, full_, it->second.param, it->second.strides));
    }
    for (const auto& [root, output] : outputs_) {
      if (!IsWhole(*root) || FirstStageOf(root) != s) continue;
      KILN_RETURN_IF_ERROR(
          store(*root, WholeIndex(*root), OutputParam(output), root->shape().strides()));
    }
    return OkStatus();
  }

  std::optional<ScanForm> ScanFormOfFirst() const {
    if (heroes_[0]->opcode() != Opcode::kReduceWindow) return std::nullopt;
    return ScanFormOf(*heroes_[0]);
  }

  // Outer variables but for the dimension that is scanned, whose variable is an inner one; outer_
  // is the index of a result's element all the same.
  void AddScan(const std::vector<int64_t>& dims, const ScanForm& scan) {
    size_t along = static_cast<size_t>(scan.dimension);
    std::vector<int64_t> others = dims;
    others.erase(others.begin() + scan.dimension);
    AddOuter(others);
    inner_ = {kernel_.variables.next()};
    Index step = AddVariable(dims[along], true);
    if (scan.backward) step = step * -1 + (dims[along] - 1);
    outer_.insert(outer_.begin() + scan.dimension, step);
    kernel_.kind = Kernel::Kind::kScan;
  }

  // The number of consecutive reductions that a value depends on.
  void FindLevels() {
    for (const Instruction* m : members_) {
      int level = 0;
      for (const Instruction* operand : m->operands()) level = std::max(level, LevelOf(operand));
      level_[m] = level + (IsHero(m->opcode()) ? 1 : 0);
    }
  }

  int LevelOf(const Instruction* i) const {
    auto it = level_.find(i);
    return it == level_.end() ? 0 : it->second;
  }

  // The stage that folds a hero, and the first one that may have a value.
  StageId StageOfHero(const Instruction* hero) const { return StageId(LevelOf(hero) - 1); }
  StageId FirstStageOf(const Instruction* value) const { return StageId(LevelOf(value)); }

  // Whether a root has an element for each reduced element, not for each result.
  bool IsWhole(const Instruction& root) const {
    if (whole_of_.contains(&root)) return true;
    return !index_of_.contains(&root) && root.shape().is_array() &&
           heroes_[0]->opcode() == Opcode::kReduce &&
           root.shape().SameDimensions(heroes_[0]->operand(0)->shape());
  }

  // The index in such a root of the element for a reduced element.
  const std::vector<Index>& WholeIndex(const Instruction& root) const {
    auto it = whole_of_.find(&root);
    return it == whole_of_.end() ? full_ : it->second;
  }

  // The index of every member that a reduction's result is broadcast to, as a function of the
  // reduced point: transposes and reshapes may follow.
  Status FollowWhole() {
    const Shape& reduced = heroes_[0]->operand(0)->shape();
    for (const Instruction* m : members_) {
      if (LevelOf(m) == 0 || IsHero(m->opcode()) || index_of_.contains(m) ||
          !m->shape().is_array()) {
        continue;
      }
      if (m->opcode() == Opcode::kBroadcast && m->shape().SameDimensions(reduced)) {
        whole_of_[m] = full_;
        continue;
      }
      const Instruction* from = nullptr;
      for (const Instruction* operand : m->operands()) {
        if (!whole_of_.contains(operand)) continue;
        if (from && whole_of_[from] != whole_of_[operand]) {
          return Unimplemented(OpcodeName(m->opcode()), ": '", m->name(),
                               "' takes two elements of a row kernel's at once");
        }
        from = operand;
      }
      if (!from) continue;
      const std::vector<Index>& index = whole_of_[from];
      if (IsElementwise(m->opcode()) && m->shape().SameDimensions(from->shape())) {
        whole_of_[m] = index;
      } else if (auto moved = Moved(*m, *from, index)) {
        whole_of_[m] = *std::move(moved);
      }
    }
    return OkStatus();
  }

  // The index of a transpose's or a reshape's element, by that of its operand's.
  static std::optional<std::vector<Index>> Moved(const Instruction& m, const Instruction& from,
                                                 const std::vector<Index>& index) {
    if (m.opcode() == Opcode::kTranspose) {
      std::vector<Index> permuted;
      for (int64_t d : m.dimensions()) permuted.push_back(index[d]);
      return permuted;
    }
    if (m.opcode() != Opcode::kReshape || m.shape().num_elements() == 0) return std::nullopt;
    return Delinearise(Linearise(index, RowMajorStrides(from.shape().dims())), m.shape().dims());
  }

  // The inputs of an inner stage, by the values of the reduced size.
  std::unordered_set<const Instruction*> NeededIn(StageId s) const {
    std::vector<const Instruction*> work;
    for (const Instruction* hero : heroes_) {
      if (StageOfHero(hero) != s) continue;
      work.insert(work.end(), hero->operands().begin(), hero->operands().end());
    }
    for (const Instruction* root : group_.roots) {
      if (IsWhole(*root) && FirstStageOf(root) == s) work.push_back(root);
    }
    std::unordered_set<const Instruction*> needed;
    while (!work.empty()) {
      const Instruction* i = work.back();
      work.pop_back();
      if (!level_.contains(i) || IsHero(i->opcode()) || index_of_.contains(i)) continue;
      if (!needed.insert(i).second) continue;
      if (auto it = kept_.find(i); it != kept_.end() && it->second.IsThereIn(s)) continue;
      work.insert(work.end(), i->operands().begin(), i->operands().end());
    }
    return needed;
  }

  // Expensive values needed by a stage and again by a later one are kept in the memory of an output
  // stored last: softmax's exponentials in place of the result.
  void KeepForLater() {
    for (const auto& [root, output] : outputs_) {
      if (!IsWhole(*root)) continue;
      const StageId last = FirstStageOf(root);
      const ParamId param = OutputParam(output);
      std::optional<std::vector<int64_t>> strides = WholeStrides(*root);
      if (!strides) continue;
      IdVector<StageId, std::unordered_set<const Instruction*>> needed;
      while (needed.next() <= last) needed.push_back(NeededIn(needed.next()));
      // The latest one spares the most.
      for (auto it = members_.rbegin(); it != members_.rend(); ++it) {
        const Instruction* m = *it;
        if (!IsExpensive(m->opcode()) || kept_.contains(m) ||
            m->shape().type() != root->shape().type())
          continue;
        if (!m->shape().SameDimensions(heroes_[0]->operand(0)->shape())) continue;
        if (WholeIndex(*m) != full_) continue;
        const StageId first = FirstStageOf(m);
        if (first >= last || !needed[last].contains(m) || !needed[first].contains(m)) continue;
        kept_[m] = {first, last, param, *strides};
        break;
      }
    }
  }

  // The strides in a whole root's memory along the dimensions of what is reduced.
  std::optional<std::vector<int64_t>> WholeStrides(const Instruction& root) const {
    Index place = Linearise(WholeIndex(root), root.shape().strides());
    std::vector<int64_t> strides;
    for (const Index& d : full_) {
      const bool constant = d.terms().empty();
      auto stride = constant ? 0 : place.StrideOf(d.terms()[0].atom.variable);
      if (!stride) return std::nullopt;
      strides.push_back(*stride);
    }
    if (!(Linearise(full_, strides) == place)) return std::nullopt;
    return strides;
  }

  // The inner variables, the same in every stage that walks what is reduced.
  void MakeFull() {
    const Instruction& hero = *heroes_[0];
    std::vector<int64_t> operand_dims = hero.operand(0)->shape().dims();
    const Ints& reduced = hero.dimensions();
    int64_t kept = 0;
    for (size_t d = 0; d < operand_dims.size(); ++d) {
      if (std::find(reduced.begin(), reduced.end(), static_cast<int64_t>(d)) == reduced.end()) {
        full_.push_back(outer_[kept++]);
        continue;
      }
      inner_.push_back(kernel_.variables.next());
      full_.push_back(AddVariable(operand_dims[d], true));
    }
  }

  void EnterInner(StageId s) { kernel_.stages[s].variables = inner_; }

  Status AddReduce(const Instruction& hero, StageId s, StageValues& values) {
    EnterInner(s);
    Reduction reduction;
    KILN_ASSIGN_OR_RETURN(reduction.combiner, CombinerOf(hero));
    int64_t count = hero.operand_count() / 2;
    for (int64_t i = 0; i < count; ++i) {
      KILN_ASSIGN_OR_RETURN(NodeId input, values.At(*hero.operand(i), full_));
      KILN_ASSIGN_OR_RETURN(NodeId init, values.At(*hero.operand(count + i), {}));
      ElementType type = AccumulatorOf(reduction.combiner, hero.operand(i)->shape().type());
      reduction.inputs.push_back(values.Converted(input, type));
      reduction.inits.push_back(values.Converted(init, type));
      reduction.types.push_back(type);
    }
    kernel_.stages[s].reductions.push_back(std::move(reduction));
    return OkStatus();
  }

  // dot[b.., m.., n..] = sum over k.. of lhs * rhs, taken in the result's type: in f32 and rounded
  // at last for half types, in 32 bits of which the lower ones stay for narrower integers.
  Status AddDot(const Instruction& dot, StageValues& values) {
    const Attributes& a = dot.attributes();
    const Shape &lhs = dot.operand(0)->shape(), &rhs = dot.operand(1)->shape();
    std::vector<Index> lhs_index(lhs.rank()), rhs_index(rhs.rank());
    std::vector<bool> lhs_done(lhs.rank()), rhs_done(rhs.rank());
    auto put = [](std::vector<Index>& index, std::vector<bool>& done, int64_t d, const Index& v) {
      index[d] = v;
      done[d] = true;
    };
    size_t next = 0;
    const Ints &lb = a.IntsOf(Attr::kLhsBatchDims), &rb = a.IntsOf(Attr::kRhsBatchDims);
    for (size_t i = 0; i < lb.size(); ++i, ++next) {
      put(lhs_index, lhs_done, lb[i], outer_[next]);
      put(rhs_index, rhs_done, rb[i], outer_[next]);
    }
    const Ints &lc = a.IntsOf(Attr::kLhsContractingDims), &rc = a.IntsOf(Attr::kRhsContractingDims);
    for (size_t i = 0; i < lc.size(); ++i) {
      kernel_.stages.front().variables.push_back(kernel_.variables.next());
      Index k = AddVariable(lhs.dim(lc[i]), true);
      put(lhs_index, lhs_done, lc[i], k);
      put(rhs_index, rhs_done, rc[i], k);
    }
    for (int64_t d = 0; d < lhs.rank(); ++d) {
      if (!lhs_done[d]) lhs_index[d] = outer_[next++];
    }
    for (int64_t d = 0; d < rhs.rank(); ++d) {
      if (!rhs_done[d]) rhs_index[d] = outer_[next++];
    }
    ElementType type = dot.shape().type();
    if (IsHalf(type)) type = ElementType::kF32;
    if (IsInteger(type) && BitWidth(type) < 32) {
      type = IsSigned(type) ? ElementType::kS32 : ElementType::kU32;
    }
    KILN_ASSIGN_OR_RETURN(NodeId x, values.At(*dot.operand(0), lhs_index));
    KILN_ASSIGN_OR_RETURN(NodeId y, values.At(*dot.operand(1), rhs_index));
    x = values.Converted(x, type);
    y = values.Converted(y, type);
    Reduction reduction;
    reduction.combiner = CombinerOf(Opcode::kAdd, type);
    reduction.inputs = {values.Op(Opcode::kMultiply, type, {x, y})};
    Node zero{.kind = Node::Kind::kConstant, .type = type};
    zero.literal = std::make_shared<Literal>(Shape::Scalar(type));
    reduction.inits = {values.Add(std::move(zero))};
    reduction.types = {type};
    reduction.fused = IsFloat(type);
    kernel_.stages.front().reductions.push_back(std::move(reduction));
    return OkStatus();
  }

  // The index of every member that depends on a hero, as a function of the outer point: reshapes
  // and transposes are bijections, so they can be followed from operand to user.
  void FollowHeroes() {
    for (const Instruction* hero : heroes_) index_of_[hero] = outer_;
    for (const Instruction* m : members_) {
      if (index_of_.contains(m) || !m->shape().is_array()) continue;
      const Instruction* from = nullptr;
      for (const Instruction* operand : m->operands()) {
        if (index_of_.contains(operand)) from = operand;
      }
      if (!from) continue;
      const std::vector<Index>& index = index_of_[from];
      if (auto moved = Moved(*m, *from, index)) {
        index_of_[m] = *std::move(moved);
      } else if (m->opcode() == Opcode::kGetTupleElement ||
                 m->shape().SameDimensions(from->shape())) {
        index_of_[m] = index;
      }
    }
  }

  void AddCosts() {
    const int64_t outer = kernel_.OuterPoints();
    for (const Stage& stage : kernel_.stages) {
      int64_t points = outer * kernel_.PointsOf(stage.variables);
      int64_t flops = static_cast<int64_t>(stage.reductions.size()), transcendentals = 0;
      for (const Node& n : stage.nodes) {
        if (n.kind != Node::Kind::kOp) continue;
        (IsTranscendental(n.opcode) ? transcendentals : flops) += 1;
      }
      kernel_.flops += points * flops;
      kernel_.transcendentals += points * transcendentals;
    }
    AddBytes(outer);
  }

  // No more than an array has is counted, and no more than is read or written of it.
  void AddBytes(int64_t outer) {
    IdVector<ParamId, int64_t> touched(kernel_.params.size());
    for (const Stage& stage : kernel_.stages) {
      int64_t points = outer * kernel_.PointsOf(stage.variables);
      auto touch = [&](ParamId param) {
        int64_t& sum = touched[param];
        sum = std::min(sum + points, kernel_.params[param].elements);
      };
      for (const Node& n : stage.nodes) {
        if (n.kind == Node::Kind::kLoad) touch(n.param);
      }
      for (const Store& s : stage.stores) touch(s.param);
      for (const Update& u : stage.updates) {
        for (ParamId param : u.params) touch(param);
      }
      if (!stage.sort) continue;
      points = outer * stage.sort->keep;
      for (ParamId param : stage.sort->params) touch(param);
    }
    for (ParamId p : kernel_.params.ids()) {
      const Param& param = kernel_.params[p];
      (param.role == Param::Role::kInput ? kernel_.bytes_read : kernel_.bytes_written) +=
          touched[p] * ByteWidth(param.type);
    }
  }

  const Group& group_;
  Kernel kernel_;
  std::vector<const Instruction*> members_, heroes_;
  std::vector<Output> outputs_;
  std::unordered_map<const Instruction*, ParamId> param_of_;
  std::unordered_map<const Instruction*, int> level_;  // of members
  // Of a reduction: its stage, and its number there.
  struct Reduced {
    StageId stage;
    ReductionId number;
  };
  std::unordered_map<const Instruction*, Reduced> reduction_of_;
  // Of a value that waits in an output's memory: the stage that puts it there, and the one that
  // stores the output itself at last.
  struct Kept {
    StageId stage, last;
    ParamId param;
    std::vector<int64_t> strides;
    bool IsThereIn(StageId s) const { return s > stage && s <= last; }
  };
  std::unordered_map<const Instruction*, Kept> kept_;
  std::unordered_map<const Instruction*, std::vector<Index>> index_of_, whole_of_;
  std::vector<Index> outer_, full_;  // of a result element, of an element that is reduced
  std::vector<VariableId> inner_;
  ParamId first_output_;
};

}  // namespace

Result<Kernel> BuildKernel(const Group& group, std::string name) {
  return Builder(group, std::move(name)).Build();
}

namespace {

// What reads or makes other types gives memory another name, or has no code.
bool IsOfKernelTypes(const Instruction& i) {
  auto is_kernel_type = [](const Shape& shape) {
    return !shape.is_array() || IsKernelType(shape.type());
  };
  return is_kernel_type(i.shape()) && std::ranges::all_of(i.operands(), [&](const Instruction* o) {
           return is_kernel_type(o->shape());
         });
}

}  // namespace

bool IsElemental(const Instruction& instruction) {
  // Types come last: tuples may have thousands of operands.
  switch (instruction.opcode()) {
    case Opcode::kConstant:
      return instruction.shape().is_array() && instruction.shape().rank() == 0 &&
             IsOfKernelTypes(instruction);
    case Opcode::kMap:
      return IsOfKernelTypes(instruction) && IsScalarRegion(*instruction.called(0));
    case Opcode::kBitcast:
      return IsOfKernelTypes(instruction) &&
             instruction.shape().type() == instruction.operand(0)->shape().type();
    default:
      return OpRoleOf(instruction.opcode()) == OpRole::kElemental && IsOfKernelTypes(instruction);
  }
}

}  // namespace kiln::kernel
