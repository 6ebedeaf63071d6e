#include "passes/memory/buffer_assignment.h"

#include <algorithm>
#include <set>

#include "base/strings.h"
#include "ir/analysis/alias.h"
#include "passes/memory/offsets.h"

namespace kiln::passes {
namespace {

using ir::Computation;
using ir::Instruction;
using ir::Leaf;

std::vector<Shape> LeavesOf(const Shape& shape) {
  std::vector<Shape> leaves;
  ForEachLeaf(shape, [&](const Shape& leaf, std::span<const int64_t>) { leaves.push_back(leaf); });
  return leaves;
}

// The buffers wanted for the leaves of values; -1 for any.
using Places = std::unordered_map<const Instruction*, std::vector<int>>;

class Assigner {
 public:
  Assigner(const ir::Module& module, const AssignmentOptions& options)
      : module_(module), options_(options) {}

  Result<BufferAssignment> Run() {
    KILN_RETURN_IF_ERROR(Number(*module_.entry()));
    KILN_RETURN_IF_ERROR(MakeEntry());
    out_.arena_bytes = AssignOffsets(out_.buffers, options_.alignment);
    return std::move(out_);
  }

 private:
  Status Number(const Computation& c) {
    if (!numbered_.insert(&c).second) {
      return FailedPrecondition("computation '", c.name(),
                                "' has several callers: flatten-call-graph must run before buffers "
                                "are assigned");
    }
    for (Instruction* i : c.instructions()) {
      if (i->opcode() == Opcode::kWhile || i->opcode() == Opcode::kConditional) {
        begin_of_[i] = next_position_++;
        for (const Computation* callee : i->called()) KILN_RETURN_IF_ERROR(Number(*callee));
      }
      out_.position[i] = next_position_++;
    }
    end_of_[&c] = next_position_ - 1;
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
    std::vector<Leaf> of_parameter;
    for (const Instruction* p : entry.parameters()) {
      std::vector<int>& leaves = out_.leaves[p];
      for (const Shape& leaf : LeavesOf(p->shape())) {
        leaves.push_back(NewBuffer(Buffer::Kind::kParameter, leaf.byte_size(), 0));
        out_.buffers.back().number = number++;
        of_parameter.push_back({p, static_cast<int64_t>(leaves.size()) - 1});
      }
    }
    size_t count = static_cast<size_t>(LeafCount(entry.root()->shape()));
    std::vector<int> targets(count, -1);
    std::vector<Leaf> states(count);
    for (size_t leaf = 0; leaf < options_.aliases.size(); ++leaf) {
      if (options_.aliases[leaf] < 0) continue;
      states[leaf] = of_parameter[static_cast<size_t>(options_.aliases[leaf])];
      targets[leaf] = out_.leaves.at(states[leaf].instruction)[states[leaf].index];
      out_.buffers[targets[leaf]].result = static_cast<int>(leaf);
    }
    KILN_RETURN_IF_ERROR(
        MakeComputation(entry, next_position_, PlaceResults(entry, targets, states)));
    // Results that are made here are made in the caller's memory; the others are copied there.
    const std::vector<int>& results = out_.leaves.at(entry.root());
    std::set<int> taken;
    for (size_t leaf = 0; leaf < results.size(); ++leaf) {
      if (targets[leaf] >= 0) {
        // A parameter may be another parameter's result.
        int home = out_.buffers[results[leaf]].result;
        if (home >= 0 && home != static_cast<int>(leaf)) {
          out_.result_temporaries[static_cast<int64_t>(leaf)] =
              NewBuffer(Buffer::Kind::kArena, out_.buffers[targets[leaf]].bytes, next_position_);
        }
        continue;
      }
      Buffer& b = out_.buffers[results[leaf]];
      if (b.kind == Buffer::Kind::kArena && taken.insert(results[leaf]).second) {
        b.kind = Buffer::Kind::kResult;
        b.number = static_cast<int>(leaf);
      }
    }
    return OkStatus();
  }

  // Walks in order of execution; users extend the live ranges of their operands. The computation's
  // result is read at `end`. `places` are the required places of values.
  Status MakeComputation(const Computation& c, int64_t end, const Places& places) {
    for (Instruction* owned : c.instructions()) {
      const Instruction* i = owned;
      if (i->opcode() == Opcode::kParameter) continue;
      for (const Instruction* operand : i->operands()) {
        if (ir::IsAlias(*i)) continue;  // Only real readers keep memory alive.
        // A loop copies its operand when it begins. Reads of a branch extend live ranges.
        for (int b : out_.leaves.at(operand)) Touch(b, BeginOf(i));
      }
      auto place = places.find(i);
      std::vector<int> wanted =
          place != places.end() ? place->second
                                : std::vector<int>(static_cast<size_t>(LeafCount(i->shape())), -1);
      KILN_RETURN_IF_ERROR(MakeInstruction(i, wanted));
    }
    for (int b : out_.leaves.at(c.root())) Touch(b, end);
    return OkStatus();
  }

  Status MakeInstruction(const Instruction* i, const std::vector<int>& wanted) {
    std::vector<int> leaves;
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
        return MakeWhile(i, wanted);
      case Opcode::kConditional:
        return MakeConditional(i, wanted);
      case Opcode::kCall:
        return FailedPrecondition("call '", i->name(),
                                  "': inline-calls must run before buffers are assigned");
      default:
        leaves = ir::IsAlias(*i) ? out_.leaves.at(i->operand(0)) : MakeKernel(i, wanted);
    }
    if (options_.scratch_bytes && !ir::IsAlias(*i)) {
      if (int64_t bytes = options_.scratch_bytes(*i); bytes > 0) {
        out_.scratch[i] = NewBuffer(Buffer::Kind::kArena, bytes, PositionOf(i));
      }
    }
    out_.leaves[i] = std::move(leaves);
    return OkStatus();
  }

  std::vector<int> MakeKernel(const Instruction* i, const std::vector<int>& wanted) {
    std::vector<int> leaves;
    std::vector<Shape> shapes = LeavesOf(i->shape());
    std::set<int> taken(wanted.begin(), wanted.end());
    for (size_t leaf = 0; leaf < shapes.size(); ++leaf) {
      int buffer = wanted[leaf];
      if (buffer < 0) buffer = SharedBuffer(i, static_cast<int64_t>(leaf), shapes[leaf], taken);
      if (buffer < 0) {
        buffer = NewBuffer(Buffer::Kind::kArena, shapes[leaf].byte_size(), PositionOf(i));
      }
      Touch(buffer, PositionOf(i));
      taken.insert(buffer);
      leaves.push_back(buffer);
    }
    return leaves;
  }

  // Whether the array is memory of a value made in its own computation, without readers after `i`.
  // A parameter's memory belongs to the caller.
  bool DiesAt(const Instruction* i, Leaf origin, const ir::Readers& readers) const {
    return origin.instruction->opcode() != Opcode::kParameter && !readers.is_result &&
           std::ranges::all_of(readers.readers, [&](const ir::Reader& r) {
             return PositionOf(r.instruction) <= PositionOf(i);
           });
  }

  // Whether the loop has the array in its state as something that it does not change.
  static bool IsKeptBy(const Instruction& loop, const ir::Readers& readers) {
    return std::ranges::any_of(readers.readers, [&](const ir::Reader& r) {
      return r.instruction == &loop && ir::KeepsLeaf(loop, r.index);
    });
  }

  // Whether i reads the array only where it writes its result's leaf, under each of its names.
  bool MayWriteOver(const Instruction* i, int64_t leaf, const ir::Readers& readers) const {
    return options_.may_share && std::ranges::all_of(readers.readers, [&](const ir::Reader& r) {
             return r.instruction != i || options_.may_share(*i, r.operand, leaf);
           });
  }

  // A temporary that dies here, to be overwritten by the output, or -1.
  int SharedBuffer(const Instruction* i, int64_t leaf, const Shape& shape,
                   const std::set<int>& taken) {
    if (!options_.may_share) return -1;
    for (const Instruction* operand : i->operands()) {
      if (!operand->shape().is_array()) continue;
      int b = out_.leaves.at(operand)[0];
      if (out_.buffers[b].kind != Buffer::Kind::kArena || taken.contains(b) ||
          out_.buffers[b].bytes != shape.byte_size()) {
        continue;
      }
      Leaf origin = ir::OriginOf({operand, 0});
      ir::Readers readers = ir::ReadersOf(origin, tuple_uses_);
      if (DiesAt(i, origin, readers) && MayWriteOver(i, leaf, readers)) return b;
    }
    return -1;
  }

  // while: its leaves are the state's buffers, which condition and body know as their parameter.
  Status MakeWhile(const Instruction* i, const std::vector<int>& wanted) {
    std::vector<int> state;
    std::vector<Shape> shapes = LeavesOf(i->shape());
    std::set<int> taken(wanted.begin(), wanted.end());
    // Invariant elements stay in place.
    std::vector<bool> kept;
    for (size_t leaf = 0; leaf < shapes.size(); ++leaf) {
      kept.push_back(ir::KeepsLeaf(*i, static_cast<int64_t>(leaf)));
      state.push_back(kept.back() ? out_.leaves.at(i->operand(0))[leaf] : wanted[leaf]);
      if (kept.back()) taken.insert(state.back());
    }
    for (size_t leaf = 0; leaf < shapes.size(); ++leaf) {
      int& b = state[leaf];
      if (b < 0) b = InitialBuffer(i, static_cast<int64_t>(leaf), taken);
      if (b < 0) b = NewBuffer(Buffer::Kind::kArena, shapes[leaf].byte_size(), BeginOf(i));
      Touch(b, BeginOf(i));
      Touch(b, PositionOf(i));
      taken.insert(b);
    }
    out_.leaves[i] = state;
    const Computation &condition = *i->called(0), &body = *i->called(1);
    out_.leaves[condition.parameter(0)] = state;
    out_.leaves[body.parameter(0)] = state;
    KILN_RETURN_IF_ERROR(MakeComputation(condition, end_of_.at(&condition), {}));
    KILN_RETURN_IF_ERROR(MakeComputation(
        body, PositionOf(i), PlaceResults(body, state, LeavesOfValue(body.parameter(0)))));
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
    return OkStatus();
  }

  // The memory of a loop's initial value, where nobody else needs that any more; or -1.
  int InitialBuffer(const Instruction* loop, int64_t leaf, const std::set<int>& taken) {
    const Instruction* initial = loop->operand(0);
    int b = out_.leaves.at(initial)[static_cast<size_t>(leaf)];
    if (out_.buffers[b].kind != Buffer::Kind::kArena || taken.contains(b)) return -1;
    Leaf origin = ir::OriginOf({initial, leaf});
    return DiesAt(loop, origin, ir::ReadersOf(origin, tuple_uses_)) ? b : -1;
  }

  Status MakeConditional(const Instruction* i, const std::vector<int>& wanted) {
    std::vector<int> results;
    std::vector<Shape> shapes = LeavesOf(i->shape());
    for (size_t leaf = 0; leaf < shapes.size(); ++leaf) {
      int b = wanted[leaf];
      if (b < 0) b = NewBuffer(Buffer::Kind::kArena, shapes[leaf].byte_size(), BeginOf(i));
      Touch(b, BeginOf(i));
      Touch(b, PositionOf(i));
      results.push_back(b);
    }
    out_.leaves[i] = results;
    for (size_t branch = 0; branch < i->called().size(); ++branch) {
      const Computation& c = *i->called(static_cast<int64_t>(branch));
      out_.leaves[c.parameter(0)] = out_.leaves.at(i->operand(static_cast<int64_t>(branch) + 1));
      KILN_RETURN_IF_ERROR(MakeComputation(c, PositionOf(i), PlaceResults(c, results, {})));
    }
    return OkStatus();
  }

  // Who makes a result; before it who makes the array that it updates in place, and so on: if all
  // are made in one place, nothing is copied. The first comes last.
  std::vector<Leaf> UpdatesOf(Leaf result) const {
    std::vector<Leaf> chain = {result};
    while (options_.updated_operand) {
      Leaf last = chain.back();
      const Instruction* i = last.instruction;
      Leaf from;
      if (i->opcode() == Opcode::kWhile) {
        from = ir::OriginOf({i->operand(0), last.index});
        if (IsKeptBy(*i, ir::ReadersOf(from, tuple_uses_))) break;
      } else {
        int64_t operand = options_.updated_operand(*i, last.index);
        if (operand < 0) break;
        from = ir::OriginOf({i->operand(operand), 0});
        if (!MayWriteOver(i, last.index, ir::ReadersOf(from, tuple_uses_))) break;
      }
      if (from.instruction->IsConstant() || from.instruction->opcode() == Opcode::kConditional ||
          !DiesAt(i, from, ir::ReadersOf(from, tuple_uses_))) {
        break;
      }
      chain.push_back(from);
    }
    return chain;
  }

  static std::vector<Leaf> LeavesOfValue(const Instruction* value) {
    std::vector<Leaf> leaves;
    for (int64_t k = 0; k < LeafCount(value->shape()); ++k) leaves.push_back({value, k});
    return leaves;
  }

  // The values of a computation that may be made in the buffers of its results, which are
  // `targets`, by leaf; -1 for none. If a target is the memory of a leaf of `states`, a value must
  // be made after all other reads of that leaf.
  Places PlaceResults(const Computation& c, const std::vector<int>& targets,
                      const std::vector<Leaf>& states) {
    Places places;
    for (size_t leaf = 0; leaf < targets.size(); ++leaf) {
      if (targets[leaf] < 0) continue;
      Leaf result = ir::OriginOf({c.root(), static_cast<int64_t>(leaf)});
      const Instruction* maker = result.instruction;
      if (maker->opcode() == Opcode::kParameter || maker->IsConstant()) continue;
      if (PlaceOf(places, result) >= 0) continue;  // The same value again is copied.
      std::vector<Leaf> chain = UpdatesOf(result);
      Leaf state = states.empty() ? Leaf() : states[leaf];
      while (state.instruction && !chain.empty() && !IsLastReader(state, chain.back()))
        chain.pop_back();
      for (const Leaf& made : chain) {
        int& place = PlaceOf(places, made);
        if (place >= 0) break;
        place = targets[leaf];
      }
    }
    return places;
  }

  static int& PlaceOf(Places& places, Leaf leaf) {
    size_t count = static_cast<size_t>(LeafCount(leaf.instruction->shape()));
    auto& wanted = places.try_emplace(leaf.instruction, std::vector<int>(count, -1)).first->second;
    return wanted[static_cast<size_t>(leaf.index)];
  }

  // Whether `result` may be made over the leaf of the state.
  bool IsLastReader(Leaf state, Leaf result) const {
    ir::Readers readers = ir::ReadersOf(state, tuple_uses_);
    const Instruction* maker = result.instruction;
    if (readers.is_result) return false;
    for (const ir::Reader& r : readers.readers) {
      if (PositionOf(r.instruction) > PositionOf(maker)) return false;
      if (r.instruction != maker) continue;
      switch (maker->opcode()) {
        case Opcode::kWhile:
          // It begins with the present contents.
          if (ir::OriginOf({maker->operand(0), result.index}) != state) return false;
          if (IsKeptBy(*maker, readers)) return false;
          break;
        case Opcode::kConditional:
          return false;
        default:
          if (!options_.may_share || !options_.may_share(*maker, r.operand, result.index)) {
            return false;
          }
      }
    }
    return true;
  }

  const ir::Module& module_;
  const AssignmentOptions& options_;
  BufferAssignment out_;
  std::set<const Computation*> numbered_;
  std::unordered_map<const Instruction*, int64_t> begin_of_;
  std::unordered_map<const Computation*, int64_t> end_of_;  // the last position in it
  int64_t next_position_ = 1;
  mutable ir::TupleUses tuple_uses_;
};

}  // namespace

Result<BufferAssignment> AssignBuffers(const ir::Module& module, const AssignmentOptions& options) {
  return Assigner(module, options).Run();
}

}  // namespace kiln::passes
