// The location of an operation in the input, and in the program that the input was made from.
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

// The contents of loc(...): the outermost name ("jit(f)/add"), and the first file position of a
// callee, fused or named location. Empty and 0 if missing.
struct Source {
  std::string name;
  std::string file;
  int32_t line = 0;
  int32_t column = 0;

  bool operator==(const Source&) const = default;
  // loc("jit(f)/add"("file.py":3:7)), as in MLIR's text.
  std::string ToString() const;
  // "jit(f)/add at file.py:3", for messages; the parts that there are.
  std::string Describe() const;
};

}  // namespace kiln::mlir
