// The control dependencies of a computation: instructions that end before others begin, without a
// value between them.
#pragma once

#include <span>
#include <unordered_map>
#include <utility>
#include <vector>

namespace kiln::ir {

class Instruction;

// Few instructions have any, so they are kept beside the instructions.
class ControlEdges {
 public:
  bool empty() const { return predecessors_.empty(); }
  // Each once, in the order in which they were added.
  std::span<Instruction* const> Predecessors(const Instruction* i) const;
  std::span<Instruction* const> Successors(const Instruction* i) const;
  // Whether it is new.
  bool Add(Instruction* before, Instruction* after);
  // Removes the edges of an instruction. What waited for it waits for what it waited for.
  void Bypass(Instruction* i);
  // Gives the edges of `from` to `to`.
  void Replace(Instruction* from, Instruction* to);

 private:
  using Lists = std::unordered_map<const Instruction*, std::vector<Instruction*>>;
  static std::span<Instruction* const> Of(const Lists& lists, const Instruction* i);
  // Removes the instruction's lists, and it from those of others; gives the lists.
  std::pair<std::vector<Instruction*>, std::vector<Instruction*>> Take(Instruction* i);

  // Without empty lists.
  Lists predecessors_, successors_;
};

}  // namespace kiln::ir
