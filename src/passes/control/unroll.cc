#include "passes/control/unroll.h"

#include <algorithm>

#include "ir/analysis/effects.h"
#include "ir/analysis/trip_count.h"
#include "passes/control/computations.h"

namespace kiln::passes {
namespace {

using ir::Computation;
using ir::Instruction;

constexpr int64_t kMostIterations = 8;
// Of all copies, where an expensive op is several.
constexpr int64_t kMostInstructions = 512;
constexpr int64_t kExpensive = 16;
// Larger arrays are in the body element by element: windows of the state that overlap, as those of
// a stencil, would be computed again for each reader.
constexpr int64_t kSmallArray = 64;

bool IsSmall(const Instruction* i) {
  return i->shape().is_array() && i->shape().num_elements() <= kSmallArray;
}

bool IsPlain(const Instruction* i) {
  switch (i->opcode()) {
    case Opcode::kParameter:
    case Opcode::kTuple:
    case Opcode::kGetTupleElement:
    case Opcode::kConstant:
    case Opcode::kIota:
    case Opcode::kBroadcast:
    case Opcode::kReshape:
      return true;
    case Opcode::kSlice:
    case Opcode::kDynamicSlice:
    case Opcode::kConcatenate:
    case Opcode::kReverse:
      return std::ranges::all_of(i->operands(), IsSmall) && IsSmall(i);
    default:
      return IsElementwise(i->opcode()) && i->called().empty();
  }
}

}  // namespace

Instruction* UnrolledOverArrays(Instruction* loop) {
  if (!loop->shape().is_tuple() || ir::HasSideEffect(*loop->called(0))) return nullptr;
  const Computation& body = *loop->called(1);
  int64_t size = 0;
  for (const Instruction* i : body.instructions())
    size += IsExpensive(i->opcode()) ? kExpensive : 1;
  if (2 * size > kMostInstructions || !std::ranges::all_of(body.instructions(), IsPlain) ||
      std::ranges::all_of(body.instructions(), [](const Instruction* i) {
        return i->shape().is_tuple() || IsSmall(i);
      })) {
    return nullptr;
  }
  const std::optional<int64_t> trips = ir::InductionOf(*loop).trip_count;
  if (!trips || *trips < 2 || *trips > kMostIterations || *trips * size > kMostInstructions) {
    return nullptr;
  }
  Instruction* state = loop->operand(0);
  for (int64_t k = 0; k < *trips; ++k) state = CopyBody(loop, body, {&state, 1});
  return state;
}

}  // namespace kiln::passes
