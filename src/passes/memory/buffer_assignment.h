// Where every value of a scheduled module lives: one arena with reuse, in-place updates, and the
// caller's memory for parameters and results, the latter also for other values before the results
// are made.
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
    kResult,  // leaf `number` of the entry's result, or, before it is made, `offset` in its memory
    kConstant,  // the constant instruction `constant`
    kArena,     // [offset, offset + bytes) of the arena
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

// A loop's state has buffers: the operand is copied there, condition and body read them, and the
// body's results are copied back. An operand's memory without other users becomes the state without
// a copy, and so do results made in the state itself. A conditional's results have buffers
// likewise: each branch makes its results there, or copies them.
struct BufferAssignment {
  std::vector<Buffer> buffers;
  // Index into `buffers` of every leaf of every instruction of the entry, loops and branches.
  std::unordered_map<const ir::Instruction*, std::vector<int>> leaves;
  std::unordered_map<const ir::Instruction*, int> scratch;
  // Of a while: one more buffer per state leaf that the body's result permutes (else -1).
  std::unordered_map<const ir::Instruction*, std::vector<int>> loop_temporaries;
  // For a result in the memory of another result at the program's end, by leaf: a buffer on the
  // way, because that memory holds the other result at first.
  std::unordered_map<int64_t, int> result_temporaries;
  // Execution order, each computation at its caller's place.
  std::unordered_map<const ir::Instruction*, int64_t> position;
  int64_t arena_bytes = 0;

  int BufferOf(const ir::Instruction* instruction, int64_t leaf = 0) const {
    return leaves.at(instruction)[leaf];
  }
  std::string ToString() const;
  // Where most of the arena is live, and the largest buffers there, as many as `most`, for errors.
  std::string LargestAtPeak(size_t most) const;
  // The live values at the peak, and the largest buffers, as text.
  std::string MemoryReport() const;
};

// Every computation must have one caller (flatten-call-graph), and calls must be inlined.
Result<BufferAssignment> AssignBuffers(const ir::Module& module, const AssignmentOptions& options);

}  // namespace kiln::passes
