// The scalar value of an instruction at an index, as nodes of a stage.
#pragma once

#include <deque>
#include <functional>
#include <unordered_map>
#include <vector>

#include "base/status.h"
#include "ir/ir.h"
#include "kernel/kernel.h"
#include "ops/gather_scatter.h"

namespace kiln::kernel {

// Builds the nodes of one stage on demand, each instruction once per index and guard.
class StageValues {
 public:
  // The stage's inputs.
  struct Sources {
    // The parameter that holds an instruction's value; none where it must be computed. And its
    // strides there, where they are not those of its shape.
    struct Memory {
      ParamId param;
      const std::vector<int64_t>* strides = nullptr;
    };
    std::function<Memory(const ir::Instruction&)> memory_of;
    // The finished reduction that an instruction is (result `result` of it), or null.
    struct Reduced {
      StageId stage;
      ReductionId reduction;
      // Of its accumulators, by result: what the instruction's own types are converted from.
      const std::vector<ElementType>* types;
      // The index at which this iteration may read it.
      const std::vector<Index>* at;
    };
    std::function<std::optional<Reduced>(const ir::Instruction&)> reduced;
  };

  StageValues(Stage& stage, Sources sources) : stage_(stage), sources_(std::move(sources)) {}

  // The node of array element `index` of an instruction. `guard` is a node under which alone memory
  // may be read, or none. Fails with UNIMPLEMENTED where the instruction is no formula of indices.
  Result<NodeId> At(const ir::Instruction& instruction, const std::vector<Index>& index,
                    NodeId guard = {});
  // The same for result `result` of an instruction of several.
  Result<NodeId> ReducedAt(const ir::Instruction& instruction, int result,
                           const std::vector<Index>& index);

  // Where the update of a dynamic-update-slice begins, in each dimension.
  Result<std::vector<Index>> UpdateStarts(const ir::Instruction& instruction, NodeId guard = {});
  // The value of an integer node as an index, of any value that its type has.
  Result<Index> Position(NodeId node);
  // The same of a node that lies in [0, high] wherever the index is used.
  Result<Index> Within(NodeId node, int64_t high);
  // The conjunction of two nodes, either of which may be none for what always holds.
  NodeId Both(NodeId a, NodeId b);
  // Node of 0 <= index < bound; none where the index's range proves it.
  NodeId InRange(const Index& index, int64_t bound);

  NodeId Add(Node node);
  NodeId Op(Opcode opcode, ElementType type, std::vector<NodeId> operands);
  // A node's value in another type; the node itself where it has the type.
  NodeId Converted(NodeId node, ElementType type);

 private:
  // The same index among indices_.
  const std::vector<Index>& Known(const std::vector<Index>& index);
  Result<NodeId> Compute(const ir::Instruction& instruction, const std::vector<Index>& index,
                         NodeId guard);
  Result<NodeId> Elementwise(const ir::Instruction& instruction, const std::vector<Index>& index,
                             NodeId guard);
  Result<NodeId> Pad(const ir::Instruction& instruction, const std::vector<Index>& index,
                     NodeId guard);
  Result<NodeId> Patches(const ir::Instruction& instruction, const std::vector<Index>& index,
                         NodeId guard);
  // The operand's element at places[d] / steps[d] where these are whole numbers inside of it, else
  // the scalar `fill`, or 0 where that is null.
  Result<NodeId> Spaced(const ir::Instruction& operand, const std::vector<Index>& places,
                        const std::vector<int64_t>& steps, const ir::Instruction* fill,
                        NodeId guard);
  Result<NodeId> Concatenate(const ir::Instruction& instruction, const std::vector<Index>& index,
                             NodeId guard);
  Result<NodeId> Map(const ir::Instruction& instruction, const std::vector<Index>& index,
                     NodeId guard);
  Result<NodeId> BitcastConvert(const ir::Instruction& instruction, const std::vector<Index>& index,
                                NodeId guard);
  Result<NodeId> BitsOfNode(NodeId node, ElementType type, ElementType word);
  NodeId Number(ElementType type, int64_t value);
  Result<NodeId> DynamicSlice(const ir::Instruction& instruction, const std::vector<Index>& index,
                              NodeId guard);
  Result<NodeId> DynamicUpdateSlice(const ir::Instruction& instruction,
                                    const std::vector<Index>& index, NodeId guard);
  Result<NodeId> Gather(const ir::Instruction& instruction, const std::vector<Index>& index,
                        NodeId guard);
  // clamp(0, start[at], high)
  Result<Index> StartOf(const ir::Instruction& start, const std::vector<Index>& at, int64_t high,
                        NodeId guard);
  Result<Index> Clamped(NodeId node, int64_t high);
  Result<Index> DependenceOf(NodeId node) const;

  struct Memo {
    const std::vector<Index>* index;  // of indices_
    NodeId guard;
    NodeId node;
  };
  struct ClampMemo {
    NodeId node;
    int64_t high;
    Index index;
  };
  Stage& stage_;
  Sources sources_;
  std::unordered_map<const ir::Instruction*, std::vector<Memo>> memo_;
  // All that elements were asked for at, which are few: elementwise ops hand theirs on.
  std::deque<std::vector<Index>> indices_;
  std::vector<ClampMemo> clamped_;
};

// The index of a component of the index vector that belongs to an element of the slices' array.
std::vector<Index> VectorIndex(const SliceMap& map, const std::vector<Index>& index,
                               int64_t component);

}  // namespace kiln::kernel
