// Instructions that name memory which others made, and who reads what under whatever name.
#pragma once

#include <cstdint>
#include <unordered_map>
#include <vector>

#include "ir/ir.h"

namespace kiln::passes {

// The number of leaves of a shape, and of the leaves before element `index` of a tuple.
int64_t LeafCount(const Shape& shape);
int64_t LeafOffset(const Shape& tuple, int64_t index);

// Whether the instruction has no memory of its own: tuples, their elements, barriers, and row-major
// memory under another shape or type.
bool IsName(const ir::Instruction& i);

// Whether the instruction is a loop that hands the leaf of its state on as it was: there it names
// the memory of the loop's operand, and the state's parameter in condition and body does, too.
bool KeepsLeaf(const ir::Instruction& i, int64_t leaf);

// One array of a value.
struct Leaf {
  const ir::Instruction* instruction = nullptr;
  int64_t index = 0;
  bool operator==(const Leaf&) const = default;
};

// What made the array: a kernel, a loop that changes it, a conditional, a parameter or a constant.
Leaf OriginOf(Leaf leaf);

// Someone who reads an array: leaf `index` of operand number `operand`.
struct Reader {
  const ir::Instruction* instruction = nullptr;
  int64_t operand = 0, index = 0;
};

struct Readers {
  std::vector<Reader> readers;
  // Whether it is part of the computation's result, for its caller to read.
  bool is_result = false;
};

// Books about tuples of many elements, of a module that does not change.
class TupleBook {
 public:
  struct Place {
    int64_t operand = 0, leaves_before = 0;
  };
  // The places of an operand of a tuple.
  const std::vector<Place>& PlacesOf(const ir::Instruction& tuple, const ir::Instruction& operand);

  // Who uses a value that is a tuple.
  struct Users {
    std::vector<int64_t> leaves_before;  // each element, and behind the last one
    std::unordered_map<int64_t, std::vector<const ir::Instruction*>> elements;
    std::vector<const ir::Instruction*> others;  // than get-tuple-element
  };
  const Users& UsersOf(const ir::Instruction& value);

 private:
  using Places = std::unordered_map<const ir::Instruction*, std::vector<Place>>;
  std::unordered_map<const ir::Instruction*, Places> places_;
  std::unordered_map<const ir::Instruction*, Users> users_;
};

// Who reads the array, directly or under another name.
Readers ReadersOf(Leaf origin, TupleBook& book);

}  // namespace kiln::passes
