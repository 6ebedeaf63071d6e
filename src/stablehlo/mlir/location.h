// Where an operation stands in the text or bytecode it was read from, and which line of which
// program it was made from.
#pragma once

#include <cstdint>
#include <string>

namespace kiln::mlir {

// A place of the input: line and column of text, from 1, or the offset of a byte of bytecode.
struct Location {
  int32_t line = 0;  // 0 in bytecode
  int32_t column = 0;
  int64_t offset = 0;

  // "line 3, column 7" or "byte 120", the beginning of messages.
  std::string ToString() const;
};

// What loc(...) tells: the outermost name ("jit(f)/add"), and the first place in a file of what is
// called, fused or named. Empty and 0 where it does not tell.
struct Source {
  std::string name;
  std::string file;
  int32_t line = 0;
  int32_t column = 0;

  bool operator==(const Source&) const = default;
  // loc("jit(f)/add"("file.py":3:7)), as MLIR's text has it.
  std::string ToString() const;
};

}  // namespace kiln::mlir
