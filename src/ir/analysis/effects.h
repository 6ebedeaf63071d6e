// Side effects of instructions.
#pragma once

#include <string_view>
#include <unordered_map>
#include <vector>

#include "ir/ir.h"

namespace kiln::ir {

// Whether it must run even if its result is unused, exactly as often as the program reaches it: it,
// or an instruction in its called computations, has a side effect.
bool HasSideEffect(const Instruction& instruction);
bool HasSideEffect(const Computation& computation);

// The instructions, beside its operands, that must run before an instruction: side effects keep the
// order that they have in the computation, and a read of a variable keeps its place among the
// assignments of that variable. Instructions in called computations count as their callers. Of a
// chain of side effects only the preceding one is listed.
using EffectOrder = std::unordered_map<const Instruction*, std::vector<Instruction*>>;
EffectOrder EffectsBefore(const Computation& computation);

// `order` with the instructions of EffectsBefore in the computation's order. `order` has all
// of its instructions, operands and control predecessors before users.
std::vector<Instruction*> WithEffectsInOrder(const Computation& computation,
                                             std::vector<Instruction*> order);

// Pairs of consecutive instructions with side effects in the computation: any reordering must keep
// their order, as if one were the other's operand.
std::unordered_map<const Instruction*, Instruction*> PreviousEffects(
    const Computation& computation);

// Whether the instruction may be removed, merged with an equal one, moved or repeated: it has no
// side effect, calls no function of the user, and reads no variable.
bool IsPure(const Instruction& instruction);

// Whether a custom call's target is a marker of partitioners or memory spaces, which means nothing
// to one device: the result is the operand, or there is none.
bool IsMarkerTarget(std::string_view target);
// Whether the instruction is a custom call of such a target, of a shape that allows to drop it.
bool IsMarker(const Instruction& instruction);

}  // namespace kiln::ir
