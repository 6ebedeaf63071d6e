// Small random computations that are full of what the algebraic simplifier looks for: neutral and
// special constants, operands used twice, chains of ops that undo each other, sizes 0 and 1.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "ir/ir.h"
#include "tensor/literal.h"

namespace kiln::testing {

// kExact leaves out what compiled code and passes may round otherwise than the evaluator.
enum class FodderKind : uint8_t { kAny, kExact };

// The same module for the same seed. The root is a tuple of what nothing else uses, and of some of
// the rest.
std::unique_ptr<ir::Module> Fodder(uint64_t seed, int ops, FodderKind kind = FodderKind::kAny);

// Loops and conditionals in each other, some of them sharing computations, with state and operands
// that are needed, idle, constant, swapped or handed through. All loops end.
std::unique_ptr<ir::Module> ControlFodder(uint64_t seed);

// Arguments with NaNs, infinities, zeros of both signs and extreme values among them.
std::vector<Literal> SpecialArguments(const ir::Module& module, uint64_t seed);

// "" where both have the same bits, but for those of NaNs; else what differs first.
std::string BitDifference(const Literal& expected, const Literal& actual);

}  // namespace kiln::testing
