// The container of saved programs: a header with the sizes and checksums of sections, aligned so
// that a file can be mapped. The layout is in docs/saved-programs.md.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"

namespace kiln::program {

// Raise it with any change to the layout, to members.h, or to the meaning of what is saved: enums,
// the configs of calls, HLO text. tests/fuzz/corpus/saved_program has files of it.
inline constexpr uint64_t kContainerVersion = 2;

// Of pieces in their section, and of the section of code.
inline constexpr size_t kPieceAlignment = 64;
// Of the section of constants.
inline constexpr size_t kPageAlignment = 4096;

// Pieces begin at multiples of kPieceAlignment in their section.
struct NewContainer {
  std::string description;
  std::vector<std::string_view> code, constants;  // borrowed; none is empty
};
struct OpenContainer {
  std::string_view description, code, constants;
};

uint64_t BytesOf(const NewContainer& container);
// Gives the file to `sink`, part after part, in order, until that fails.
Status WriteContainer(const NewContainer& container,
                      const std::function<Status(std::string_view)>& sink);

// The sections of a file that is in memory: those bytes. INVALID_ARGUMENT for bytes that are no
// container, or are damaged: sizes, then checksums. FAILED_PRECONDITION for another version. Reads
// all bytes.
Result<OpenContainer> ReadContainer(std::string_view file);

// Makes the size of a file and its checksums those of its contents, which have been changed: for
// tests of files that contradict themselves.
void SealContainer(std::string& file);

// Finds accidental changes: each step is a bijection of the sum and of the word. At about the rate
// of memory.
class Checksum {
 public:
  void Update(std::string_view bytes);
  uint64_t Finish();

 private:
  static constexpr size_t kLanes = 8, kBlock = kLanes * sizeof(uint64_t);
  // Of whole blocks.
  void Mix(const char* bytes, size_t blocks);

  uint64_t lanes_[kLanes] = {1, 2, 3, 4, 5, 6, 7, 8};
  uint64_t bytes_ = 0;
  size_t waiting_ = 0;
  char block_[kBlock] = {};
};

}  // namespace kiln::program
