// Alias analysis: instructions whose results are other instructions' memory, all readers of an
// array through its aliases, and results of calls in the memory of their operands.
#pragma once

#include <cstdint>
#include <unordered_map>
#include <utility>
#include <vector>

#include "ir/ir.h"
#include "tensor/leaves.h"

namespace kiln::ir {

// Whether the instruction is an alias, which has no memory of its own: tuples, their elements,
// barriers, and row-major memory under another shape or type.
bool IsAlias(const Instruction& i);

// Whether the instruction is a loop that keeps a leaf of its state. The leaf is then an alias of
// the loop's operand, and so is the leaf of the state's parameter in condition and body.
bool KeepsLeaf(const Instruction& i, int64_t leaf);

// One array of a value.
struct Leaf {
  const Instruction* instruction = nullptr;
  int64_t index = 0;
  bool operator==(const Leaf&) const = default;
};

// The origin of the array: a kernel, a loop that changes it, a conditional, a parameter or a
// constant.
Leaf OriginOf(Leaf leaf);

// A reader of an array: leaf `index` of operand number `operand`.
struct Reader {
  const Instruction* instruction = nullptr;
  int64_t operand = 0, index = 0;
};

struct Readers {
  std::vector<Reader> readers;
  // Whether it is part of the computation's result, for its caller to read.
  bool is_result = false;
};

// The uses of tuples of many elements, in a module that does not change.
class TupleUses {
 public:
  struct Place {
    int64_t operand = 0, leaves_before = 0;
  };
  // The places of an operand of a tuple.
  const std::vector<Place>& PlacesOf(const Instruction& tuple, const Instruction& operand);

  // The users of a tuple.
  struct Users {
    std::vector<int64_t> leaves_before;  // each element, and behind the last one
    std::unordered_map<int64_t, std::vector<const Instruction*>> elements;
    std::vector<const Instruction*> others;  // than get-tuple-element
  };
  const Users& UsersOf(const Instruction& value);

 private:
  using Places = std::unordered_map<const Instruction*, std::vector<Place>>;
  std::unordered_map<const Instruction*, Places> places_;
  std::unordered_map<const Instruction*, Users> users_;
};

// The readers of the array, directly or by an alias.
Readers ReadersOf(Leaf origin, TupleUses& uses);

// An array of the result that is the memory of an operand's array, by their leaves.
struct CallAlias {
  int64_t output = 0, operand = 0, leaf = 0;
};
std::vector<CallAlias> CallAliases(const Instruction& call);

// The same by places in the signature: of the result's array and of the operand's.
std::vector<std::pair<size_t, size_t>> AliasedArrays(const Instruction& call);

// The operand, an array, in whose memory leaf `output` of the call's result is meant to be, or -1.
int64_t AliasedOperand(const Instruction& call, int64_t output);

// Whether the function may find an operand, an array, in the memory of leaf `output` of its result.
bool MayShareInCall(const Instruction& call, int64_t operand, int64_t output);

}  // namespace kiln::ir
