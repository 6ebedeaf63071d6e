#include "kernel/scatter.h"

#include <algorithm>

#include "kernel/combiner.h"
#include "ops/gather_scatter.h"

namespace kiln::kernel {
namespace {

using ir::Instruction;

class ScatterBuilder {
 public:
  ScatterBuilder(const Instruction& scatter, StageValues& values, Kernel& kernel)
      : scatter_(scatter),
        count_(scatter.operand_count() / 2),
        operand_(scatter.operand(0)->shape()),
        indices_(*scatter.operand(count_)),
        updates_(scatter.operand(count_ + 1)->shape()),
        map_(SliceMapOf(Opcode::kScatter, scatter.attributes(), operand_.rank(),
                        indices_.shape().rank())),
        values_(values),
        kernel_(kernel) {}

  // An index for each of the updates' dimensions.
  void AddVariables() {
    enum Part { kOuter, kVectors, kSlice };
    std::vector<Part> parts(static_cast<size_t>(updates_.rank()), kOuter);
    bool unique = Holds(Attr::kUniqueIndices) && !SlicesMayOverlap();
    for (size_t d = 0; d < map_.outside.size() && !unique; ++d) {
      if (map_.outside[d] < 0) continue;
      bool batch = std::ranges::find(map_.batch, static_cast<int64_t>(d)) != map_.batch.end();
      if (!batch) parts[map_.outside[d]] = kVectors;
    }
    for (size_t d = 0; d < map_.slice.size() && !unique; ++d) {
      bool moves = map_.component[d] >= 0;
      if (map_.slice[d] >= 0 && moves) parts[map_.slice[d]] = kSlice;
    }
    index_.resize(parts.size());
    for (Part part : {kOuter, kVectors, kSlice}) {
      for (size_t u = 0; u < parts.size(); ++u) {
        if (parts[u] != part) continue;
        int64_t extent = updates_.dim(static_cast<int64_t>(u));
        // Index vectors are taken in order.
        const VariableId id = kernel_.variables.Add({extent, part == kVectors});
        index_[u] = Index::Variable(id, extent);
        if (part == kOuter) {
          ++kernel_.outer;
        } else {
          kernel_.stages.front().variables.push_back(id);
        }
      }
    }
  }

  // The target of the update at index_ in the operand, and its condition.
  Result<std::vector<Index>> Target(NodeId* guard) {
    std::vector<Index> target;
    for (size_t d = 0; d < map_.slice.size(); ++d) {
      int64_t dim = map_.slice[d];
      int64_t size = dim >= 0 ? updates_.dim(dim) : 1;
      int64_t room = operand_.dim(static_cast<int64_t>(d)) - size;
      Index at;
      if (map_.component[d] >= 0) {
        KILN_ASSIGN_OR_RETURN(NodeId node,
                              values_.At(indices_, VectorIndex(map_, index_, map_.component[d])));
        KILN_ASSIGN_OR_RETURN(Index position, values_.Position(node));
        *guard = values_.Both(*guard, values_.InRange(position, room + 1));
        KILN_ASSIGN_OR_RETURN(at, values_.Within(node, room));
      }
      if (map_.batch[d] >= 0) {
        at = at + index_[map_.outside[map_.batch[d]]];
      }
      if (dim >= 0) at = at + index_[dim];
      target.push_back(std::move(at));
    }
    return target;
  }

  Status Build(ParamId first_output, const std::function<ParamId(const Instruction&)>& param_of) {
    AddVariables();
    Update update;
    KILN_ASSIGN_OR_RETURN(update.combiner, CombinerOf(scatter_));
    KILN_ASSIGN_OR_RETURN(std::vector<Index> target, Target(&update.guard));
    for (int64_t k = 0; k < count_; ++k) {
      const Instruction& operand = *scatter_.operand(k);
      const Shape& result =
          scatter_.shape().is_tuple() ? scatter_.shape().elements()[k] : scatter_.shape();
      const ParamId input = param_of(operand), output(first_output.value() + k);
      if (!input.valid() || operand.shape() != result) {
        return Unimplemented("scatter: operand '", operand.name(), "' of '", scatter_.name(),
                             "' is not memory that can be updated in place");
      }
      kernel_.params[output].in_place_of = input;
      KILN_ASSIGN_OR_RETURN(NodeId value, values_.At(*scatter_.operand(count_ + 1 + k), index_));
      update.inputs.push_back(value);
      update.params.push_back(output);
      update.indices.push_back(Linearise(target, result.strides()));
    }
    kernel_.kind = Kernel::Kind::kScatter;
    kernel_.stages.front().updates.push_back(std::move(update));
    return OkStatus();
  }

 private:
  bool Holds(Attr key) const {
    const AttrValue* value = scatter_.attributes().Find(key);
    return value && std::get<bool>(*value);
  }

  // Slices at different places share elements where they are larger than one element.
  bool SlicesMayOverlap() const {
    for (size_t d = 0; d < map_.slice.size(); ++d) {
      int64_t dim = map_.slice[d];
      if (map_.component[d] >= 0 && dim >= 0 && updates_.dim(dim) > 1) return true;
    }
    return false;
  }

  const Instruction& scatter_;
  int64_t count_;
  const Shape& operand_;
  const Instruction& indices_;
  const Shape& updates_;
  SliceMap map_;
  StageValues& values_;
  Kernel& kernel_;
  std::vector<Index> index_;
};

}  // namespace

Status BuildScatter(const Instruction& scatter, ParamId first_output,
                    const std::function<ParamId(const Instruction&)>& param_of, StageValues& values,
                    Kernel& kernel) {
  return ScatterBuilder(scatter, values, kernel).Build(first_output, param_of);
}

}  // namespace kiln::kernel
