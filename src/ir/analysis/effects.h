// What an instruction does beside making its result.
#pragma once

#include <string_view>
#include <unordered_map>
#include <vector>

#include "ir/ir.h"

namespace kiln::ir {

// Whether it must be run though nobody needs its result, as often as the program says: it, or
// something in the computations that it calls, does what its result does not tell.
bool HasSideEffect(const Instruction& instruction);
bool HasSideEffect(const Computation& computation);

// The order, one of all of the computation's instructions in which operands come before users, with
// those that have side effects in the order in which they are in the computation.
std::vector<Instruction*> WithEffectsInOrder(const Computation& computation,
                                             std::vector<Instruction*> order);

// What has a side effect, and what has the next one before it in the computation: whatever is run
// elsewhere than where it stands must leave these in order, as if one were the other's operand.
std::unordered_map<const Instruction*, Instruction*> PreviousEffects(
    const Computation& computation);

// Whether it may as well be left out, done once for two that are equal, or be done elsewhere, more
// often or less often: it has no side effect, and calls no function of the user's.
bool IsPure(const Instruction& instruction);

// Whether a custom call's target is a marker of partitioners or memory spaces, which means nothing
// to one device: the result is the operand, or there is none.
bool IsMarkerTarget(std::string_view target);
// Whether the instruction is a custom call of such a target, of a shape that allows to drop it.
bool IsMarker(const Instruction& instruction);

}  // namespace kiln::ir
