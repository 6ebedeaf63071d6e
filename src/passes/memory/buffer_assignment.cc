#include "passes/memory/buffer_assignment.h"

#include <algorithm>
#include <map>
#include <set>

#include "base/strings.h"

namespace kiln::passes {
namespace {

using ir::Computation;
using ir::Instruction;

std::vector<Shape> LeavesOf(const Shape& shape) {
  std::vector<Shape> leaves;
  ForEachLeaf(shape, [&](const Shape& leaf, std::span<const int64_t>) { leaves.push_back(leaf); });
  return leaves;
}

// Names for memory that other instructions made: they have no buffer of their own.
// A reshape of row-major memory only renames it.
bool IsAlias(const Instruction& i) {
  return i.opcode() == Opcode::kTuple || i.opcode() == Opcode::kGetTupleElement ||
         (i.opcode() == Opcode::kReshape && i.shape().is_row_major() &&
          i.operand(0)->shape().is_row_major());
}

class Assigner {
 public:
  Assigner(const ir::Module& module, const AssignmentOptions& options)
      : module_(module), options_(options) {}

  Result<BufferAssignment> Run() {
    KILN_RETURN_IF_ERROR(Number(*module_.entry()));
    KILN_RETURN_IF_ERROR(MakeEntry());
    AssignOffsets();
    return std::move(out_);
  }

 private:
  Status Number(const Computation& c) {
    if (!numbered_.insert(&c).second) {
      return FailedPrecondition("computation '", c.name(),
                                "' has several callers: flatten-call-graph must run before buffers "
                                "are assigned");
    }
    for (const auto& i : c.instructions()) {
      if (i->opcode() == Opcode::kWhile || i->opcode() == Opcode::kConditional) {
        begin_of_[i.get()] = next_position_++;
        for (const Computation* callee : i->called()) KILN_RETURN_IF_ERROR(Number(*callee));
      }
      out_.position[i.get()] = next_position_++;
    }
    return OkStatus();
  }

  int64_t PositionOf(const Instruction* i) const { return out_.position.at(i); }
  // Where an instruction begins to touch its operands' or results' memory.
  int64_t BeginOf(const Instruction* i) const {
    auto it = begin_of_.find(i);
    return it == begin_of_.end() ? PositionOf(i) : it->second;
  }

  int NewBuffer(Buffer::Kind kind, int64_t bytes, int64_t at) {
    Buffer b;
    b.kind = kind;
    b.bytes = bytes;
    b.begin = b.end = at;
    out_.buffers.push_back(b);
    return static_cast<int>(out_.buffers.size()) - 1;
  }

  void Touch(int buffer, int64_t at) {
    Buffer& b = out_.buffers[buffer];
    b.begin = std::min(b.begin, at);
    b.end = std::max(b.end, at);
  }

  Status MakeEntry() {
    const Computation& entry = *module_.entry();
    int number = 0;
    for (const Instruction* p : entry.parameters()) {
      std::vector<int>& leaves = out_.leaves[p];
      for (const Shape& leaf : LeavesOf(p->shape())) {
        leaves.push_back(NewBuffer(Buffer::Kind::kParameter, leaf.byte_size(), 0));
        out_.buffers.back().number = number++;
      }
    }
    KILN_RETURN_IF_ERROR(MakeComputation(entry, nullptr, {}));
    // Results that are made here are made in the caller's memory; the others are copied there.
    const std::vector<int>& results = out_.leaves.at(entry.root());
    std::set<int> taken;
    for (size_t leaf = 0; leaf < results.size(); ++leaf) {
      Buffer& b = out_.buffers[results[leaf]];
      if (b.kind == Buffer::Kind::kArena && taken.insert(results[leaf]).second) {
        b.kind = Buffer::Kind::kResult;
        b.number = static_cast<int>(leaf);
      }
    }
    return OkStatus();
  }

  // Walks in order of execution; users extend the ranges of what they read. `state`, of a loop's
  // body, is where its results should end up.
  Status MakeComputation(const Computation& c, const Instruction* caller,
                         const std::vector<int>& state) {
    std::unordered_map<const Instruction*, std::vector<int>> in_place;
    if (!state.empty()) in_place = PlaceResults(c, state);
    for (const auto& owned : c.instructions()) {
      const Instruction* i = owned.get();
      if (i->opcode() == Opcode::kParameter) continue;
      for (const Instruction* operand : i->operands()) {
        if (IsAlias(*i)) continue;  // Only real readers keep memory alive.
        for (int b : out_.leaves.at(operand)) {
          Touch(b, BeginOf(i));
          // A loop copies its operand at its start; everyone else reads until the end.
          if (i->opcode() != Opcode::kWhile) Touch(b, PositionOf(i));
        }
      }
      KILN_RETURN_IF_ERROR(MakeInstruction(i, in_place));
    }
    int64_t end = caller ? PositionOf(caller) : next_position_;
    for (int b : out_.leaves.at(c.root())) Touch(b, end);
    return OkStatus();
  }

  Status MakeInstruction(const Instruction* i,
                         const std::unordered_map<const Instruction*, std::vector<int>>& in_place) {
    std::vector<int> leaves;
    if (i->opcode() == Opcode::kReshape && IsAlias(*i)) {
      out_.leaves[i] = out_.leaves.at(i->operand(0));
      return OkStatus();
    }
    switch (i->opcode()) {
      case Opcode::kTuple:
        for (const Instruction* operand : i->operands()) {
          const std::vector<int>& of = out_.leaves.at(operand);
          leaves.insert(leaves.end(), of.begin(), of.end());
        }
        break;
      case Opcode::kGetTupleElement: {
        const std::vector<int>& of = out_.leaves.at(i->operand(0));
        int64_t index = i->attributes().Int(Attr::kIndex);
        int64_t first = LeafOffset(i->operand(0)->shape(), index);
        leaves.assign(of.begin() + first, of.begin() + first + LeafCount(i->shape()));
        break;
      }
      case Opcode::kConstant:
        for (const Shape& leaf : LeavesOf(i->shape())) {
          if (i->shape().is_tuple()) return Unimplemented("constant: tuples have no compiled code");
          leaves.push_back(NewBuffer(Buffer::Kind::kConstant, leaf.byte_size(), 0));
          out_.buffers.back().constant = i;
        }
        break;
      case Opcode::kWhile:
        return MakeWhile(i);
      case Opcode::kConditional:
        return MakeConditional(i);
      case Opcode::kCall:
        return FailedPrecondition("call '", i->name(),
                                  "': inline-calls must run before buffers are assigned");
      default: {
        auto placed = in_place.find(i);
        leaves = placed != in_place.end() ? placed->second : MakeKernel(i);
      }
    }
    if (options_.scratch_bytes) {
      if (int64_t bytes = options_.scratch_bytes(*i); bytes > 0) {
        out_.scratch[i] = NewBuffer(Buffer::Kind::kArena, bytes, PositionOf(i));
      }
    }
    out_.leaves[i] = std::move(leaves);
    return OkStatus();
  }

  std::vector<int> MakeKernel(const Instruction* i) {
    std::vector<int> leaves;
    std::vector<Shape> shapes = LeavesOf(i->shape());
    std::set<int> shared;
    for (size_t leaf = 0; leaf < shapes.size(); ++leaf) {
      int buffer = SharedBuffer(i, static_cast<int64_t>(leaf), shapes[leaf], shared);
      if (buffer < 0) {
        buffer = NewBuffer(Buffer::Kind::kArena, shapes[leaf].byte_size(), PositionOf(i));
      }
      shared.insert(buffer);
      leaves.push_back(buffer);
    }
    return leaves;
  }

  // A temporary that dies here and that the output may overwrite, or -1.
  int SharedBuffer(const Instruction* i, int64_t leaf, const Shape& shape,
                   const std::set<int>& taken) {
    if (!options_.may_share) return -1;
    for (int64_t o = 0; o < i->operand_count(); ++o) {
      const Instruction* operand = i->operand(o);
      if (!operand->shape().is_array()) continue;
      int b = out_.leaves.at(operand)[0];
      if (out_.buffers[b].kind != Buffer::Kind::kArena || taken.contains(b) ||
          out_.buffers[b].bytes != shape.byte_size() || LoopState(b) || LastUse(operand) != i ||
          ReadTwice(i, b, o)) {
        continue;
      }
      if (options_.may_share(*i, o, leaf)) return b;
    }
    return -1;
  }

  // Whether another operand of i lives in buffer b too.
  bool ReadTwice(const Instruction* i, int b, int64_t except) const {
    for (int64_t o = 0; o < i->operand_count(); ++o) {
      if (i->operand(o) == i->operand(except)) continue;
      const std::vector<int>& of = out_.leaves.at(i->operand(o));
      if (std::find(of.begin(), of.end(), b) != of.end()) return true;
    }
    return false;
  }

  bool LoopState(int b) const { return loop_state_.contains(b); }

  // The last instruction that reads the memory of an array, under whatever name; null where that is
  // the computation's caller or cannot be told.
  const Instruction* LastUse(const Instruction* value) const {
    while (value->opcode() == Opcode::kReshape && IsAlias(*value)) value = value->operand(0);
    if (value->opcode() == Opcode::kGetTupleElement && !IsOnlyElement(value)) return nullptr;
    const Instruction* last = nullptr;
    std::vector<const Instruction*> names = {value};
    while (!names.empty()) {
      const Instruction* name = names.back();
      names.pop_back();
      if (name->IsRoot()) return nullptr;
      for (const Instruction* user : name->users()) {
        if (user->opcode() == Opcode::kReshape && IsAlias(*user)) {
          names.push_back(user);
        } else if (IsAlias(*user)) {
          return nullptr;
        } else if (!last || PositionOf(user) > PositionOf(last)) {
          last = user;
        }
      }
    }
    return last;
  }

  // Whether no other get-tuple-element takes the same element out, and nobody the whole tuple.
  static bool IsOnlyElement(const Instruction* element) {
    const Instruction* tuple = element->operand(0);
    if (tuple->IsRoot()) return false;
    for (const Instruction* user : tuple->users()) {
      if (user == element) continue;
      if (user->opcode() != Opcode::kGetTupleElement ||
          user->attributes().Int(Attr::kIndex) == element->attributes().Int(Attr::kIndex)) {
        return false;
      }
    }
    return true;
  }

  // while: its leaves are the state's buffers, which condition and body know as their parameter.
  Status MakeWhile(const Instruction* i) {
    std::vector<int> state;
    for (const Shape& leaf : LeavesOf(i->shape())) {
      int b = NewBuffer(Buffer::Kind::kArena, leaf.byte_size(), BeginOf(i));
      Touch(b, PositionOf(i));
      loop_state_.insert(b);
      state.push_back(b);
    }
    out_.leaves[i] = state;
    const Computation &condition = *i->called(0), &body = *i->called(1);
    out_.leaves[condition.parameter(0)] = state;
    out_.leaves[body.parameter(0)] = state;
    KILN_RETURN_IF_ERROR(MakeComputation(condition, i, {}));
    KILN_RETURN_IF_ERROR(MakeComputation(body, i, state));
    // A leaf whose next value is another leaf's present one goes over a buffer of its own.
    std::vector<int> temporaries(state.size(), -1);
    const std::vector<int>& results = out_.leaves.at(body.root());
    for (size_t leaf = 0; leaf < state.size(); ++leaf) {
      bool permuted = results[leaf] != state[leaf] &&
                      std::find(state.begin(), state.end(), results[leaf]) != state.end();
      if (permuted) {
        temporaries[leaf] =
            NewBuffer(Buffer::Kind::kArena, out_.buffers[state[leaf]].bytes, PositionOf(i));
      }
    }
    out_.loop_temporaries[i] = std::move(temporaries);
    KeepWhatLoopsRead(i);
    return OkStatus();
  }

  // Memory that was made outside a loop and is read inside must last until the loop ends.
  void KeepWhatLoopsRead(const Instruction* loop) {
    int64_t begin = BeginOf(loop), end = PositionOf(loop);
    for (Buffer& b : out_.buffers) {
      if (b.begin < begin && b.end >= begin) b.end = std::max(b.end, end);
    }
  }

  Status MakeConditional(const Instruction* i) {
    std::vector<int> results;
    for (const Shape& leaf : LeavesOf(i->shape())) {
      int b = NewBuffer(Buffer::Kind::kArena, leaf.byte_size(), BeginOf(i));
      Touch(b, PositionOf(i));
      loop_state_.insert(b);
      results.push_back(b);
    }
    out_.leaves[i] = results;
    for (size_t branch = 0; branch < i->called().size(); ++branch) {
      const Computation& c = *i->called(branch);
      const Instruction* operand = i->operand(static_cast<int64_t>(branch) + 1);
      out_.leaves[c.parameter(0)] = out_.leaves.at(operand);
      // Branches share their operands' memory, which others may still need.
      for (int b : out_.leaves.at(operand)) loop_state_.insert(b);
      KILN_RETURN_IF_ERROR(MakeComputation(c, i, {}));
    }
    return OkStatus();
  }

  // Results of a loop's body that may be computed right in the state: made by one kernel after all
  // other readers of that leaf, which it reads, if at all, only where it writes.
  std::unordered_map<const Instruction*, std::vector<int>> PlaceResults(
      const Computation& body, const std::vector<int>& state) {
    std::unordered_map<const Instruction*, std::vector<int>> placed;
    const Instruction *root = body.root(), *parameter = body.parameter(0);
    if (root->opcode() != Opcode::kTuple || !parameter->shape().is_tuple()) return placed;
    for (const Instruction* user : parameter->users()) {
      if (user->opcode() != Opcode::kGetTupleElement) return placed;
    }
    for (int64_t leaf = 0; leaf < root->operand_count(); ++leaf) {
      const Instruction* result = root->operand(leaf);
      bool simple = root->shape().elements()[leaf].is_array() &&
                    LeafCount(root->shape()) == root->operand_count() &&
                    result->shape().is_array() && !placed.contains(result) && !IsAlias(*result) &&
                    result->opcode() != Opcode::kWhile && result->opcode() != Opcode::kConstant &&
                    result->opcode() != Opcode::kConditional &&
                    result->opcode() != Opcode::kParameter;
      if (!simple || !AfterAllReaders(*parameter, leaf, *result)) continue;
      placed[result] = {state[leaf]};
    }
    return placed;
  }

  bool AfterAllReaders(const Instruction& parameter, int64_t leaf, const Instruction& result) {
    for (const Instruction* element : parameter.users()) {
      if (element->attributes().Int(Attr::kIndex) != leaf) continue;
      for (const Instruction* reader : element->users()) {
        if (IsAlias(*reader) || PositionOf(reader) > PositionOf(&result)) return false;
        if (reader != &result) continue;
        for (int64_t o = 0; o < result.operand_count(); ++o) {
          if (result.operand(o) == element &&
              (!options_.may_share || !options_.may_share(result, o, 0))) {
            return false;
          }
        }
      }
    }
    return true;
  }

  // Offsets in the order of time: the smallest free block that fits, else the arena grows.
  void AssignOffsets() {
    std::vector<int> order;
    for (size_t b = 0; b < out_.buffers.size(); ++b) {
      Buffer& buffer = out_.buffers[b];
      if (buffer.kind == Buffer::Kind::kArena) order.push_back(static_cast<int>(b));
    }
    std::stable_sort(order.begin(), order.end(), [&](int x, int y) {
      const Buffer &a = out_.buffers[x], &b = out_.buffers[y];
      return a.begin != b.begin ? a.begin < b.begin : a.bytes > b.bytes;
    });
    std::multimap<int64_t, int> live;        // by end
    std::map<int64_t, int64_t> free_blocks;  // offset -> bytes
    auto release = [&](int64_t offset, int64_t bytes) {
      auto next = free_blocks.lower_bound(offset);
      if (next != free_blocks.end() && offset + bytes == next->first) {
        bytes += next->second;
        next = free_blocks.erase(next);
      }
      if (next != free_blocks.begin()) {
        auto before = std::prev(next);
        if (before->first + before->second == offset) {
          before->second += bytes;
          return;
        }
      }
      free_blocks[offset] = bytes;
    };
    for (int id : order) {
      Buffer& b = out_.buffers[id];
      while (!live.empty() && live.begin()->first < b.begin) {
        const Buffer& dead = out_.buffers[live.begin()->second];
        release(dead.offset, Padded(dead.bytes));
        live.erase(live.begin());
      }
      int64_t bytes = Padded(b.bytes);
      if (bytes == 0) continue;
      auto best = free_blocks.end();
      for (auto it = free_blocks.begin(); it != free_blocks.end(); ++it) {
        if (it->second >= bytes && (best == free_blocks.end() || it->second < best->second)) {
          best = it;
        }
      }
      if (best != free_blocks.end()) {
        b.offset = best->first;
        int64_t rest = best->second - bytes;
        free_blocks.erase(best);
        if (rest > 0) free_blocks[b.offset + bytes] = rest;
      } else {
        // The last free block may be extended where it touches the end.
        b.offset = out_.arena_bytes;
        if (!free_blocks.empty()) {
          auto last = std::prev(free_blocks.end());
          if (last->first + last->second == out_.arena_bytes) {
            b.offset = last->first;
            free_blocks.erase(last);
          }
        }
        out_.arena_bytes = b.offset + bytes;
      }
      live.emplace(b.end, id);
    }
  }

  int64_t Padded(int64_t bytes) const {
    return (bytes + options_.alignment - 1) / options_.alignment * options_.alignment;
  }

  const ir::Module& module_;
  const AssignmentOptions& options_;
  BufferAssignment out_;
  std::set<const Computation*> numbered_;
  std::unordered_map<const Instruction*, int64_t> begin_of_;
  std::set<int> loop_state_;
  int64_t next_position_ = 1;
};

}  // namespace

int64_t LeafCount(const Shape& shape) {
  int64_t n = 0;
  ForEachLeaf(shape, [&](const Shape&, std::span<const int64_t>) { ++n; });
  return n;
}

int64_t LeafOffset(const Shape& tuple, int64_t index) {
  int64_t n = 0;
  for (int64_t i = 0; i < index; ++i) n += LeafCount(tuple.elements()[i]);
  return n;
}

Result<BufferAssignment> AssignBuffers(const ir::Module& module, const AssignmentOptions& options) {
  return Assigner(module, options).Run();
}

std::string BufferAssignment::ToString() const {
  static constexpr std::string_view kKinds[] = {"parameter", "result", "constant", "arena"};
  std::string out = Cat("arena: ", arena_bytes, " bytes\n");
  std::vector<std::vector<std::string>> users(buffers.size());
  for (const auto& [instruction, of] : leaves) {
    for (int b : of) users[b].push_back(instruction->name());
  }
  for (size_t b = 0; b < buffers.size(); ++b) {
    std::sort(users[b].begin(), users[b].end());
    const Buffer& buffer = buffers[b];
    out +=
        Cat("buffer ", b, ": ", kKinds[static_cast<int>(buffer.kind)], " ",
            buffer.kind == Buffer::Kind::kArena ? buffer.offset : buffer.number, ", ", buffer.bytes,
            " bytes, live ", buffer.begin, "..", buffer.end, ": ", Join(users[b], ", "), "\n");
  }
  return out;
}

}  // namespace kiln::passes
