// Ops of HLO text that the op table lacks, as ops of the table. Private to the text reader.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "ir/ir.h"

namespace kiln::ir {

struct ForeignOp {
  enum Kind : uint8_t {
    kStart,  // the op itself, and what its pair's users expect around the result
    kDone,   // its result
    kSame,   // the first operand
    // The others may have a pair, too.
    kScan,
    kRaggedDot,
    kScaledDot,
    kDynamicReshape,
    kRaggedAllToAll,
  };
  Kind kind;
  Opcode opcode;  // whose attributes it has
  // Of a pair: the result's place in the tuple of the beginning; -1 where it is all of it.
  int64_t result = 1;
};

// "all-gather-start", "async-done", "scan"; nothing for other names.
std::optional<ForeignOp> ForeignOpByName(std::string_view name);

// An instruction of such an op as it is read.
struct ForeignInstruction {
  ForeignOp op;
  std::string_view name;  // the op's
  Computation* computation;
  std::vector<Instruction*> operands;
  Attributes attributes;
  Computation* to_apply;  // or null
  // Attributes that `op.opcode` lacks, as they are written.
  std::vector<std::pair<std::string_view, std::string_view>> more;
  std::optional<Shape> shape;  // the declared one
  std::string op_name;
  bool alone = false;  // whether process 0 is alone in its group
};

// Its value, made at the end of the computation: of a pair of asynchronous ops the second part, of
// others all. An error names what is wrong of it.
Result<Instruction*> MakeForeign(const ForeignInstruction& foreign);

// The beginning of a pair: the tuple of the shape that its text declares, of the operands, the
// result and zeros.
Instruction* PairOf(Instruction* result, std::span<Instruction* const> operands,
                    const ForeignOp& op, const Shape& declared);

}  // namespace kiln::ir
