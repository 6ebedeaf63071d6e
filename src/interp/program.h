// Computations made ready to be evaluated.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <unordered_map>
#include <vector>

#include "interp/value.h"
#include "ir/ir.h"

namespace kiln::interp {

// What the root needs, in order, and when each value was used last.
struct Program {
  struct Line {
    const ir::Instruction* instruction = nullptr;
    std::vector<size_t> operands = {};  // the lines that they come from
    std::vector<size_t> dead = {};      // lines whose values nobody uses after this one
    std::optional<Value> value = {};    // where it is known
  };
  std::vector<Line> lines;
  size_t root = 0;
  // Lines whose values are the same in each call, and not `dead`: they are kept for the next ones.
  std::vector<size_t> constants;
};

// The programs of an evaluation's computations. What a computation makes of constants alone is
// evaluated twice at most, as long as it is small: a loop's body is called often.
class Programs {
 public:
  // For the next call of the computation.
  std::shared_ptr<const Program> ForCall(const ir::Computation& computation);
  // After that call, with the values of all its lines.
  void Keep(const ir::Computation& computation, const Program& program,
            std::span<const Value> values);

 private:
  struct Entry {
    std::shared_ptr<const Program> program;
    bool was_searched = false, keeps = false;
  };
  using Values = std::unordered_map<const ir::Instruction*, Value>;

  Program Make(const ir::Computation& computation, const Values& known);
  void FindConstants(Program& program);
  // Whether it is run though nobody needs its result: others may wait for it, too.
  bool Acts(const ir::Instruction& instruction);

  std::unordered_map<const ir::Computation*, Entry> entries_;
  std::unordered_map<const ir::Computation*, bool> acts_;
  int64_t kept_bytes_ = 0;
};

}  // namespace kiln::interp
