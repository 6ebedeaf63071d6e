// Computations prepared for evaluation.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <unordered_map>
#include <vector>

#include "interp/needed.h"
#include "interp/value.h"
#include "ir/ir.h"

namespace kiln::interp {

// The instructions needed by the root, in order, with the last use of each value.
struct Program {
  struct Line {
    const ir::Instruction* instruction = nullptr;
    std::vector<size_t> operands = {};  // the lines that they come from
    std::vector<size_t> dead = {};      // lines whose values nobody uses after this one
    std::optional<Value> value = {};    // where it is known
  };
  std::vector<Line> lines;
  size_t root = 0;
  // Lines with the same value in each call, and not `dead`: cached for later calls.
  std::vector<size_t> constants;
};

// The programs of an evaluation's computations. Small values computed from constants are evaluated
// at most twice, because a loop's body is called often.
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

  std::unordered_map<const ir::Computation*, Entry> entries_;
  NeededSearch needed_;
  int64_t kept_bytes_ = 0;
};

}  // namespace kiln::interp
