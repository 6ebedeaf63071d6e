// The kernel of a fused group, as data. It knows no graph, no device and no LLVM; CPU and GPU code
// are made from the same kernel by different schedules, and equal kernels are one.
//
// A kernel runs
//
//   for every point of the outer variables (independent of each other)
//     for each stage, in order
//       for every point of the stage's inner variables (independent, or a reduction's)
//         evaluate the stage's nodes; fold them into its reductions, or store them
//
// Elementwise work is one stage without inner variables. A reduction is a stage whose inner
// variables are the reduced dimensions, followed by one for the result's consumers. A dot is a
// reduction of a product, recognised by its form (contraction.h) and given a schedule of its own.
// Softmax is three stages over one row. A kernel of kind kScatter has updates in place of stores,
// one of kind kSort a sort, and one of kind kScan stores what its reductions are after every point.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/id.h"
#include "kernel/index.h"
#include "ops/attributes.h"
#include "ops/op.h"
#include "tensor/literal.h"

namespace kiln::kernel {

// An array that the kernel reads or writes. Elements are addressed by offset from its first one.
struct Param;
using ParamId = Id<Param>;  // of Kernel::params
struct Param {
  enum class Role : uint8_t { kInput, kOutput };
  Role role = Role::kInput;
  ElementType type = ElementType::kInvalid;
  int64_t elements = 0;
  // Of an output that the kernel writes in part: the input whose elements the others are. When the
  // kernel runs the two share memory, or the input has been copied to the output.
  ParamId in_place_of;
  // Of an input that is another one's array once more, for a load of its own: that one. Such inputs
  // are the last parameters.
  ParamId same_as;
};

struct Stage;
using StageId = Id<Stage>;  // of Kernel::stages
struct Reduction;
using ReductionId = Id<Reduction>;  // of Stage::reductions

// One scalar value of a stage, of type `type`. Nodes are in an order in which operands come first;
// a node may use nodes of its own stage and kReduced ones of earlier stages only.
struct Node {
  enum class Kind : uint8_t {
    kConstant,  // `literal`, a scalar
    kIndex,     // `index` as a number of the node's type
    kInRange,   // pred: 0 <= `index` < `bound`
    kLoad,      // params[param] at `index`; where `guard` is false, 0 without touching memory
    kOp,        // an elementwise op of the op table on `operands` (compare: `direction`), or a
                // bitcast-convert between types of one width
    kReduced,   // result `result` of reduction `reduction` of an earlier stage `stage`
    kArgument,  // argument `result` of the enclosing combiner
  };
  Kind kind = Kind::kConstant;
  ElementType type = ElementType::kInvalid;
  Opcode opcode = Opcode::kAdd;
  Direction direction = Direction::kEq;
  bool total_order = false;                      // of compare
  int64_t exponent_bits = 0, mantissa_bits = 0;  // of reduce-precision
  bool at_most_zero = false;  // of exponential: its operand is, or NaN, whatever the inputs are
  std::vector<NodeId> operands;
  Index index;
  int64_t bound = 0;
  ParamId param;
  NodeId guard;  // of type pred; none for always
  StageId stage;
  ReductionId reduction;
  int result = -1;
  std::shared_ptr<const Literal> literal;

  bool operator==(const Node&) const;
};

// How accumulators (arguments 0..n-1) and new elements (n..2n-1) become accumulators.
struct Combiner {
  // Properties guaranteed to codegen. kGeneral is folded strictly in order and never split, unless
  // it is shown to be a selection (selection.h); the others are associative and commutative, with
  // `identity` as their identity element.
  enum class Kind : uint8_t { kGeneral, kSum, kProduct, kMax, kMin, kAnd, kOr, kXor };
  Kind kind = Kind::kGeneral;
  IdVector<NodeId, Node> nodes;  // kArgument, kConstant and kOp only
  std::vector<NodeId> results;   // one node per accumulator
};

// Folds `inputs` over the stage's reduction variables, once for each point of outer and the stage's
// parallel inner variables.
struct Reduction {
  Combiner combiner;
  std::vector<NodeId> inputs;  // nodes of the stage
  std::vector<NodeId> inits;   // nodes of the stage that depend on no inner variable
  NodeId guard;                // of type pred; none for always; where it is false nothing is folded
  std::vector<ElementType> types;
  // Of a dot: products of floats are not rounded before they are added, where the machine has an
  // instruction for that.
  bool fused = false;
};

struct Store {
  ParamId param;
  Index index;
  NodeId value;  // a node of the stage
};

// Elements of outputs become the combiner's results for them and new values.
struct Update {
  NodeId guard;  // of type pred; none for always; where it is false nothing is done
  Combiner combiner;
  std::vector<NodeId> inputs;   // nodes of the stage
  std::vector<ParamId> params;  // outputs, which are read as well
  std::vector<Index> indices;   // of each
};

// The sort key, if one number per element decides.
struct SortKey {
  enum class Order : uint8_t {
    kInteger,  // of integers and pred
    kTotal,    // of floats' bits, by IEEE 754's total order
    kNumber,   // of floats' values: zeros are equal, and NaNs, which come after all else
  };
  Combiner value;  // argument k is operand k's element; one result
  Order order = Order::kInteger;
  bool descending = false;
  // The number is the only operand itself, so that the element can be made of it again. (Zeros and
  // NaNs cannot in the order kNumber.)
  bool is_element = false;
};

// The elements of one inner variable's points, put in order. It is stable.
struct Sort {
  VariableId variable;
  std::vector<NodeId> inputs;   // nodes of the stage: the operands' elements
  std::vector<ParamId> params;  // outputs: one for each input
  std::vector<Index> indices;   // of each, the variable being the place in the order
  int64_t keep = 0;             // how many places are stored, from the first
  // Arguments 2k and 2k+1 are operand k's left and right elements, and the one result is whether
  // the left ones come first.
  Combiner comparator;
  // The same order by one number, if it is one.
  std::optional<SortKey> key;
};

struct Variable {
  int64_t extent = 1;
  // Only of inner variables: the points of a reduction, or of updates that go in order.
  bool reduction = false;
};

struct Stage {
  std::vector<VariableId> variables;  // inner iteration variables, outermost first
  IdVector<NodeId, Node> nodes;
  IdVector<ReductionId, Reduction> reductions;
  std::vector<Store> stores;  // run at every point of the stage
  std::vector<Update> updates;
  std::optional<Sort> sort;
};

// The factors of what is folded, nodes of the stage, where the reduction is fused; null elsewhere.
const std::vector<NodeId>* FusedFactors(const Stage& stage, const Reduction& reduction);

struct Kernel {
  enum class Kind : uint8_t {
    kNest,
    // One stage of updates: at each outer point, and for each point of the inner variables that are
    // marked as a reduction's, in order, at all points of the others. No two outer points, and no
    // two of these others, update the same element.
    kScatter,
    // One stage with a sort, once for each outer point.
    kSort,
    // Two stages that share their one inner variable, which is a reduction's. At each outer point,
    // and at each point of the inner variable in order, the first folds; then the second, whose
    // nodes see the reductions as they are by then, stores.
    kScan,
  };

  Kind kind = Kind::kNest;
  std::string name;                   // a symbol: letters, digits and '_'
  std::vector<std::string> op_names;  // what it does, for timelines: one per fused instruction
  IdVector<ParamId, Param> params;
  IdVector<VariableId, Variable> variables;
  int outer = 0;  // the number of outer ones among them, which come first
  IdVector<StageId, Stage> stages;

  // For cost models, dumps and reports.
  int64_t flops = 0, transcendentals = 0, bytes_read = 0, bytes_written = 0;

  IdRange<VariableId> OuterVariables() const { return {VariableId(0), VariableId(outer)}; }
  // Not valid where there is no outer one.
  VariableId LastOuter() const { return VariableId(outer - 1); }
  // Whether a variable, if it is valid, is an outer one or an inner one.
  bool IsOuter(VariableId v) const { return v.valid() && v.value() < outer; }
  bool IsInner(VariableId v) const { return v.value() >= outer; }
  // The number of points of some of the variables together, and of the outer ones.
  int64_t PointsOf(std::span<const VariableId> of) const;
  int64_t OuterPoints() const;

  // Everything but name and op_names, as text: equal text, equal code. Also what dumps show.
  std::string ToString() const;
};

}  // namespace kiln::kernel
