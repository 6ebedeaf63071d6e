// A graph with the bodies of called functions in place of the calls, as a table of nodes: what of
// it is needed is known before any instruction is made.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "ir/frontend_attributes.h"
#include "ir/instruction_map.h"
#include "ir/ir.h"

namespace kiln::session {

// Whether an instruction is a call that is replaced by the function's body. A call that must be
// compiled is not: it is one op, with all that it calls.
bool IsPlainCall(const ir::Instruction& instruction);

// Of a module's entry; `targets` are names of its instructions. Bodies in bodies are expanded
// without recursion; the time is linear in the number of nodes. The module must outlive it.
class CallExpansion {
 public:
  CallExpansion(const ir::Module& module, std::span<const std::string> targets);

  // The entry, or the body of a function for one of its calls.
  struct Body {
    const ir::Instruction* call = nullptr;  // null: the entry
    int32_t caller = -1;                    // the body that has the call
  };
  enum class Kind : uint8_t {
    kCopy,   // of the source
    kBegin,  // gathers what a call, the source, waits for
    kEnd,    // gathers what must end where others wait for a call
  };
  struct Node {
    const ir::Instruction* source;
    int32_t body;
    Kind kind;
    bool has_effect;
    std::span<const int32_t> operands, control_predecessors;  // nodes with lower numbers
  };

  // In an order of execution: callers' instructions with the bodies at the places of the calls.
  int32_t size() const { return static_cast<int32_t>(nodes_.size()); }
  Node node(int32_t number) const;
  int32_t root() const { return root_; }
  // The nodes of the targets; of a call those that end last.
  const std::vector<int32_t>& targets() const { return targets_; }
  const std::vector<Body>& bodies() const { return bodies_; }

 private:
  // A range of links_.
  struct Range {
    size_t begin = 0, end = 0;
  };
  struct Row {
    const ir::Instruction* source;
    int32_t body;
    Kind kind;
    bool has_effect;
    bool can_wait;
    Range operands, control_predecessors;
  };
  // A body in the making.
  struct Frame {
    Frame(const ir::Computation& computation, int32_t number)
        : body(number),
          next(computation.instructions().begin()),
          end(computation.instructions().end()),
          node_of(computation) {}

    int32_t body;
    ir::Instructions::Iterator next, end;
    ir::InstructionMap<int32_t> node_of;
    int32_t first_node = 0;
    std::vector<int32_t> waits_for;  // before any of its nodes
    // The innermost frame, this one or around it, with waits_for; -1: none.
    int32_t gate = -1;
    int32_t last_effect = -1;
    // What to wait for in place of a call.
    std::unordered_map<const ir::Instruction*, std::vector<int32_t>> ends;
  };

  void Expand(const ir::Module& module);
  void Open(const ir::Instruction& call);
  void Close();
  int32_t NodeFor(const ir::Instruction& instruction);
  int32_t Add(const ir::Instruction& source, Kind kind, std::span<const int32_t> operands,
              std::vector<int32_t> control_predecessors);
  std::vector<int32_t> PredecessorsOf(const ir::Instruction& instruction) const;
  std::vector<int32_t> Gathered(std::vector<int32_t> nodes, const ir::Instruction& call, Kind kind);
  std::vector<int32_t> EndsOf(const Frame& frame, int32_t root) const;
  int32_t ElementAcross(const ir::Instruction& instruction) const;
  bool IsTarget(const ir::Instruction& instruction) const;
  bool HasEffect(const ir::Instruction& instruction);
  std::span<const int32_t> At(const Range& range) const {
    return std::span(links_).subspan(range.begin, range.end - range.begin);
  }

  std::vector<Row> nodes_;
  std::vector<int32_t> links_;
  std::vector<Body> bodies_;
  std::vector<Frame> open_;  // the entry first, the innermost body last
  std::unordered_map<const ir::Instruction*, bool> has_effect_;  // of instructions that call
  int32_t root_ = -1;
  std::unordered_set<std::string_view> target_names_;
  std::vector<int32_t> targets_;
};

}  // namespace kiln::session
