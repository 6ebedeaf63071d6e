// Helpers for tests that are written in HLO text.
#pragma once

#include <cstdlib>
#include <iostream>
#include <memory>
#include <string>
#include <string_view>

#include "ir/ir.h"
#include "ir/text.h"

namespace kiln::ir {

// The module, which must be right.
inline std::unique_ptr<Module> ParseOrDie(std::string_view text) {
  Result<std::unique_ptr<Module>> module = ParseHloText(text);
  if (!module.ok()) {
    std::cerr << module.status().ToString() << "\nin\n" << text << "\n";
    std::abort();
  }
  return *std::move(module);
}

// The error of a text, or "OK".
inline std::string ParseError(std::string_view text) {
  Result<std::unique_ptr<Module>> module = ParseHloText(text);
  return module.ok() ? "OK" : module.status().ToString();
}

// The computation or instruction of that name (without '%'), or null.
inline Computation* FindComputation(const Module& module, std::string_view name) {
  for (const auto& c : module.computations()) {
    if (c->name() == name) return c.get();
  }
  return nullptr;
}
inline Instruction* FindInstruction(const Module& module, std::string_view name) {
  for (const auto& c : module.computations()) {
    for (Instruction* i : c->instructions()) {
      if (i->name() == name) return i;
    }
  }
  return nullptr;
}
inline Instruction* FindInstruction(const Computation& computation, std::string_view name) {
  for (Instruction* i : computation.instructions()) {
    if (i->name() == name) return i;
  }
  return nullptr;
}

// The first instruction with that opcode in the entry computation, or null; and how many there are
// in the whole module.
inline Instruction* FindOp(const Module& module, Opcode opcode) {
  for (Instruction* i : module.entry()->instructions()) {
    if (i->opcode() == opcode) return i;
  }
  return nullptr;
}
inline int64_t CountOps(const Module& module, Opcode opcode) {
  int64_t count = 0;
  for (const auto& c : module.computations()) {
    for (Instruction* i : c->instructions()) count += i->opcode() == opcode;
  }
  return count;
}

}  // namespace kiln::ir
