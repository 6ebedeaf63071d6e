// The invariants of a module, checked after every pass in debug builds and tests.
#pragma once

#include "base/status.h"
#include "ir/ir.h"

namespace kiln::ir {

// Fails with INTERNAL, naming the instruction, unless operands precede users in the same
// computation, users and operands agree, names are unique, parameters have numbers without gaps,
// numbers of operands are right, shapes equal inference's (layouts apart), called computations are
// in the module and not recursive, literals have their shape, there is a root, and aliases fit.
Status Verify(const Module& module);

// The same for an untrusted module: fails with inference's error, or with INVALID_ARGUMENT, and
// sets `culprit` to the faulty instruction, or to null.
Status CheckModule(const Module& module, const Instruction** culprit);

// The part of it that needs no shapes.
Status CheckGraph(const Module& module);

// Calls nest at most so deep, so that walks over them may recurse.
inline constexpr int64_t kMaxCallDepth = 500;

}  // namespace kiln::ir
