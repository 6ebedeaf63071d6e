// Where every value of a scheduled module lives: one arena with reuse, in-place updates, and the
// caller's memory for parameters and results.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <unordered_map>
#include <vector>

#include "base/status.h"
#include "ir/ir.h"

namespace kiln::passes {

struct Buffer {
  enum class Kind : uint8_t {
    kParameter,  // leaf `number` of the entry's parameters, all leaves counted in order
    kResult,     // leaf `number` of the entry's result
    kConstant,   // the constant instruction `constant`
    kArena,      // [offset, offset + bytes) of the arena
  };
  Kind kind = Kind::kArena;
  int number = 0;
  // Of a parameter: the leaf of the result in whose memory it is when the program starts, or -1.
  int result = -1;
  const ir::Instruction* constant = nullptr;
  int64_t offset = 0, bytes = 0;
  // First and last position (of BufferAssignment::position) at which the contents matter.
  int64_t begin = 0, end = 0;
};

struct AssignmentOptions {
  // Bytes that a kernel needs beside its operands and results, only while it runs.
  std::function<int64_t(const ir::Instruction&)> scratch_bytes;
  // Whether a kernel may write an output over an operand that dies with it.
  std::function<bool(const ir::Instruction&, int64_t operand, int64_t output)> may_share;
  // The operand that a kernel's output should be one memory with, as the kernel writes a part of it
  // only; -1 for none. Where they are two, the operand is copied to the output first.
  std::function<int64_t(const ir::Instruction&, int64_t output)> updated_operand;
  int64_t alignment = 64;
  // By leaf of the entry's result the leaf of the parameters whose memory is the result's, or -1;
  // empty where there is none.
  std::vector<int> aliases;
};

// A loop's state has buffers that its operand is copied into, its condition and body read, and its
// body's results are copied back to; nothing is copied where the operand's memory is nobody else's
// any more and becomes the state, and where results are made in the state itself. A conditional's
// results likewise have buffers that each branch makes its results in, or copies them to.
struct BufferAssignment {
  std::vector<Buffer> buffers;
  // Index into `buffers` of every leaf of every instruction of the entry, loops and branches.
  std::unordered_map<const ir::Instruction*, std::vector<int>> leaves;
  std::unordered_map<const ir::Instruction*, int> scratch;
  // Of a while: one more buffer per state leaf that the body's result permutes (else -1).
  std::unordered_map<const ir::Instruction*, std::vector<int>> loop_temporaries;
  // Of a result that is another result's memory when the program ends, by its leaf: a buffer that
  // it goes over, as what is there is another result at first.
  std::unordered_map<int64_t, int> result_temporaries;
  // Execution order, each computation at its caller's place.
  std::unordered_map<const ir::Instruction*, int64_t> position;
  int64_t arena_bytes = 0;

  int BufferOf(const ir::Instruction* instruction, int64_t leaf = 0) const {
    return leaves.at(instruction)[leaf];
  }
  std::string ToString() const;
  // The live values at the peak, and the largest buffers, as text.
  std::string MemoryReport() const;
};

// Every computation must have one caller (flatten-call-graph), and calls must be inlined.
Result<BufferAssignment> AssignBuffers(const ir::Module& module, const AssignmentOptions& options);

}  // namespace kiln::passes
