#include "passes/memory/schedule.h"

#include <algorithm>
#include <ranges>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "ir/analysis/alias.h"
#include "ir/analysis/effects.h"
#include "ir/instruction_map.h"
#include "kernel/fusible.h"

namespace kiln::passes {
namespace {

using ir::Computation;
using ir::Instruction;
using ir::Leaf;

bool OwnsItsCallees(const Instruction& i) {
  return i.opcode() == Opcode::kWhile || i.opcode() == Opcode::kConditional;
}

// Trying each ready instruction at each step takes long where there are more than this.
constexpr int64_t kMaxForGreedy = 4096;

// What an end alone needs is looked at up to this many instructions.
constexpr int64_t kMostForAnEnd = 64;

// An alias on the way to the root.
bool IsEndName(const Instruction* i) {
  return ir::IsAlias(*i) &&
         std::ranges::all_of(i->users(), [](const Instruction* user) { return user->IsRoot(); });
}

// By instruction the leaves of parameters in whose memory its results should be.
using StateUpdates = std::unordered_map<const Instruction*, std::vector<Leaf>>;

// The memory of a leaf of a parameter becomes that of a leaf of the result.
void AddUpdate(const Computation& c, Leaf parameter, int64_t result, StateUpdates& updates) {
  const Instruction* maker = ir::OriginOf({c.root(), result}).instruction;
  if (maker->opcode() != Opcode::kParameter) updates[maker].push_back(parameter);
}

// Of a loop's body: each leaf of the next state is in the memory of that leaf.
StateUpdates UpdatesInBody(const Computation& body) {
  StateUpdates updates;
  const Instruction* state = body.parameter(0);
  for (int64_t leaf = 0; leaf < LeafCount(state->shape()); ++leaf) {
    AddUpdate(body, {state, leaf}, leaf, updates);
  }
  return updates;
}

StateUpdates UpdatesInEntry(const ir::Module& module) {
  StateUpdates updates;
  const Computation& entry = *module.entry();
  for (const ir::InputOutputAlias& alias : module.aliases()) {
    const Instruction* parameter = entry.parameter(alias.parameter);
    const int64_t from = LeafAt(parameter->shape(), alias.parameter_index);
    const int64_t to = LeafAt(entry.root()->shape(), alias.output_index);
    const int64_t leaves = LeafCount(*PartAt(parameter->shape(), alias.parameter_index));
    for (int64_t k = 0; k < leaves; ++k) AddUpdate(entry, {parameter, from + k}, to + k, updates);
  }
  return updates;
}

// Orders of a computation's instructions, and their live bytes.
class Scheduler {
 public:
  // `callee_peaks` are the bytes that loops and conditionals need inside.
  Scheduler(const Computation& c, bool is_entry,
            const std::unordered_map<const Computation*, int64_t>& callee_peaks)
      : c_(c), post_order_(c.PostOrder()), steps_(c) {
    for (Instruction* i : post_order_) Prepare(i, is_entry, callee_peaks);
  }

  // An order with updates in place where possible: other readers of an array come before its
  // update, with all their operands, unless they depend on the update.
  static std::vector<Instruction*> UpdatesLast(std::vector<Instruction*> order,
                                               const StateUpdates& next) {
    ir::TupleUses tuple_uses;
    std::unordered_map<const Instruction*, size_t> place;
    for (size_t k = 0; k < order.size(); ++k) place[order[k]] = k;
    std::unordered_set<const Instruction*> seen;
    for (size_t at = 0; at < order.size();) {
      const Instruction* update = order[at];
      if (!seen.insert(update).second) {
        ++at;
        continue;
      }
      std::vector<Leaf> arrays;
      if (auto it = next.find(update); it != next.end()) arrays = it->second;
      int64_t operand = ir::IsAlias(*update) ? -1 : kernel::UpdatedOperand(*update, 0);
      if (operand >= 0) arrays.push_back(ir::OriginOf({update->operand(operand), 0}));
      std::unordered_set<const Instruction*> wanted;
      size_t end = at + 1;  // of the last one that is wanted
      for (const Leaf& array : arrays) {
        for (const ir::Reader& r : ir::ReadersOf(array, tuple_uses).readers) {
          auto it = place.find(r.instruction);
          if (it == place.end() || it->second <= at) continue;
          wanted.insert(r.instruction);
          end = std::max(end, it->second + 1);
        }
      }
      if (wanted.empty()) continue;
      // The dependents of the update among the rest, and the inputs of the others.
      std::unordered_set<const Instruction*> after = {update}, before;
      for (size_t k = at + 1; k < end; ++k) {
        if (std::ranges::any_of(order[k]->operands(),
                                [&](const Instruction* o) { return after.contains(o); })) {
          after.insert(order[k]);
        }
      }
      for (size_t k = end; k-- > at + 1;) {
        if (after.contains(order[k])) continue;
        bool needed = wanted.contains(order[k]) ||
                      std::ranges::any_of(order[k]->users(),
                                          [&](const Instruction* u) { return before.contains(u); });
        if (needed) before.insert(order[k]);
      }
      std::stable_partition(order.begin() + static_cast<int64_t>(at),
                            order.begin() + static_cast<int64_t>(end),
                            [&](Instruction* i) { return before.contains(i); });
      for (size_t k = at; k < end; ++k) place[order[k]] = k;
    }
    return order;
  }

  // The order with the fewest live bytes at the peak, and their number.
  std::pair<std::vector<Instruction*>, int64_t> Best() {
    std::vector<Instruction*> best = DepthFirst();
    int64_t least = Peak(best);
    auto attempt = [&](std::vector<Instruction*> order) {
      if (int64_t peak = Peak(order); peak < least) {
        best = std::move(order);
        least = peak;
      }
    };
    attempt(WithParametersFirst(post_order_));
    if (c_.instruction_count() <= kMaxForGreedy) attempt(Greedy(best));
    attempt(Sunk(best));
    attempt(Sunk(WithEndsEarly(best)));
    return {std::move(best), least};
  }

 private:
  // An array that an instruction makes.
  struct Value {
    int64_t bytes = 0;
    int64_t readers = 0;  // instructions
    bool stays = false;   // to the end, for the caller
  };
  struct Step {
    std::vector<size_t> makes, reads;  // values
    int64_t inside = 0;
  };

  void Prepare(Instruction* i, bool is_entry,
               const std::unordered_map<const Computation*, int64_t>& callee_peaks) {
    Step& step = steps_[i];
    for (const Computation* callee : i->called()) {
      auto it = callee_peaks.find(callee);
      if (it != callee_peaks.end()) step.inside = std::max(step.inside, it->second);
    }
    // Parameters and constants are there anyway, and names have no memory.
    if (i->opcode() == Opcode::kParameter || i->IsConstant() || ir::IsAlias(*i)) return;
    int64_t index = 0;
    ForEachLeaf(i->shape(), [&](const Shape& leaf, std::span<const int64_t>) {
      Leaf made{i, index++};
      if (ir::KeepsLeaf(*i, made.index)) return;
      ir::Readers readers = ir::ReadersOf(made, tuple_uses_);
      // The entry's results are made in the caller's memory.
      if (is_entry && BecomesResult(made)) return;
      Value value{leaf.byte_size(), 0, readers.is_result};
      std::unordered_set<const Instruction*> seen;
      for (const ir::Reader& r : readers.readers) {
        if (!seen.insert(r.instruction).second) continue;
        steps_[r.instruction].reads.push_back(values_.size());
        ++value.readers;
      }
      step.makes.push_back(values_.size());
      values_.push_back(value);
    });
  }

  // Whether an array is a result, or is updated to one in place.
  bool BecomesResult(Leaf array) {
    for (bool is_updated = true; is_updated;) {
      const ir::Readers readers = ir::ReadersOf(array, tuple_uses_);
      if (readers.is_result) return true;
      is_updated = false;
      for (const ir::Reader& r : readers.readers) {
        const int64_t k = kernel::UpdatedOperand(*r.instruction, 0);
        if (k < 0 || !(ir::OriginOf({r.instruction->operand(k), 0}) == array)) continue;
        array = {r.instruction, 0};
        is_updated = true;
        break;
      }
    }
    return false;
  }

  int64_t Peak(const std::vector<Instruction*>& order) const {
    std::vector<int64_t> readers;
    for (const Value& v : values_) readers.push_back(v.readers);
    int64_t live = 0, peak = 0;
    for (const Instruction* i : order) {
      const Step& step = steps_.at(i);
      for (size_t v : step.makes) live += values_[v].bytes;
      peak = std::max(peak, live + step.inside);
      for (size_t v : step.reads) {
        if (--readers[v] == 0 && !values_[v].stays) live -= values_[v].bytes;
      }
      for (size_t v : step.makes) {
        if (values_[v].readers == 0 && !values_[v].stays) live -= values_[v].bytes;
      }
    }
    return peak;
  }

  std::vector<Instruction*> WithParametersFirst(const std::vector<Instruction*>& order) const {
    std::vector<Instruction*> result(c_.parameters().begin(), c_.parameters().end());
    for (Instruction* i : order) {
      if (i->opcode() != Opcode::kParameter) result.push_back(i);
    }
    return result;
  }

  // Depth first from the root, operands that need more memory on their way first: Sethi and
  // Ullman's rule, for bytes.
  std::vector<Instruction*> DepthFirst() const {
    struct Need {
      int64_t peak = 0, held = 0;
    };
    ir::InstructionMap<Need> needs(c_);
    auto by_peak = [&](std::vector<Instruction*> operands) {
      std::stable_sort(operands.begin(), operands.end(), [&](Instruction* a, Instruction* b) {
        return needs[a].peak - needs[a].held > needs[b].peak - needs[b].held;
      });
      return operands;
    };
    for (Instruction* i : post_order_) {
      Need need;
      int64_t held = 0;
      for (Instruction* operand : by_peak({i->operands().begin(), i->operands().end()})) {
        need.peak = std::max(need.peak, held + needs[operand].peak);
        held += needs[operand].held;
      }
      bool is_there = i->opcode() == Opcode::kParameter || i->IsConstant();
      int64_t bytes = is_there ? 0 : i->shape().byte_size();
      need.held = ir::IsAlias(*i) ? std::min(held, bytes) : bytes;
      need.peak = std::max(need.peak, ir::IsAlias(*i) ? held : held + bytes + steps_.at(i).inside);
      needs[i] = need;
    }
    std::vector<Instruction*> order;
    ir::InstructionSet done(c_);
    struct Visit {
      Instruction* instruction;
      std::vector<Instruction*> operands;
      size_t next = 0;
    };
    std::vector<Visit> stack;
    auto enter = [&](Instruction* i) {
      if (!done.Insert(i)) return;
      stack.push_back({i, by_peak({i->operands().begin(), i->operands().end()})});
    };
    auto visit = [&](Instruction* start) {
      enter(start);
      while (!stack.empty()) {
        if (stack.back().next < stack.back().operands.size()) {
          enter(stack.back().operands[stack.back().next++]);
        } else {
          order.push_back(stack.back().instruction);
          stack.pop_back();
        }
      }
    };
    for (Instruction* p : c_.parameters()) visit(p);
    visit(c_.root());
    for (Instruction* i : post_order_) visit(i);
    return order;
  }

  // Among ready instructions always the one that frees most, or takes least; ties by `order`.
  std::vector<Instruction*> Greedy(const std::vector<Instruction*>& order) const {
    ir::InstructionMap<size_t> waits_for(c_), position(c_);
    for (size_t k = 0; k < order.size(); ++k) {
      std::unordered_set<const Instruction*> operands(order[k]->operands().begin(),
                                                      order[k]->operands().end());
      waits_for[order[k]] = operands.size();
      position[order[k]] = k;
    }
    std::vector<int64_t> readers;
    for (const Value& v : values_) readers.push_back(v.readers);
    auto gain = [&](const Instruction* i) {
      const Step& step = steps_.at(i);
      int64_t bytes = 0;
      for (size_t v : step.reads) {
        if (readers[v] == 1 && !values_[v].stays) bytes += values_[v].bytes;
      }
      for (size_t v : step.makes) bytes -= values_[v].bytes;
      return bytes;
    };
    std::vector<Instruction*> ready, result;
    auto run = [&](Instruction* i) {
      result.push_back(i);
      for (size_t v : steps_.at(i).reads) --readers[v];
      for (Instruction* user : i->users()) {
        if (--waits_for[user] == 0) ready.push_back(user);
      }
    };
    for (Instruction* i : order) {
      if (waits_for[i] == 0 && i->opcode() != Opcode::kParameter) ready.push_back(i);
    }
    for (Instruction* p : c_.parameters()) run(p);
    while (!ready.empty()) {
      size_t best = 0;
      for (size_t k = 1; k < ready.size(); ++k) {
        int64_t a = gain(ready[k]), b = gain(ready[best]);
        if (a > b || (a == b && position[ready[k]] < position[ready[best]])) best = k;
      }
      Instruction* next = ready[best];
      ready.erase(ready.begin() + static_cast<int64_t>(best));
      run(next);
    }
    return result;
  }

  // Names right behind what they name.
  std::vector<Instruction*> WithNamesEarly(const std::vector<Instruction*>& order) const {
    std::vector<Instruction*> result;
    ir::InstructionSet done(c_);
    for (Instruction* i : order) {
      if (!done.Insert(i)) continue;
      result.push_back(i);
      for (size_t next = result.size() - 1; next < result.size(); ++next) {
        for (Instruction* user : result[next]->users()) {
          if (!ir::IsAlias(*user) || user->IsRoot() || done.contains(user)) continue;
          if (!std::ranges::all_of(user->operands(), [&](auto* x) { return done.contains(x); })) {
            continue;
          }
          done.Insert(user);
          result.push_back(user);
        }
      }
    }
    return result;
  }

  // Ends are instructions whose results the caller takes, as the gradients of weights. Each comes
  // as early as it can, together with what it alone needs.
  std::vector<Instruction*> WithEndsEarly(const std::vector<Instruction*>& given) const {
    const std::vector<Instruction*> order = WithNamesEarly(given);
    // The end that alone needs an instruction: the instruction itself, for an end; null where
    // others need it, too.
    ir::InstructionMap<const Instruction*> end_of(c_);
    std::unordered_map<const Instruction*, int64_t> sizes;
    const auto is_end = [&](const Instruction* i) {
      return std::ranges::all_of(i->users(), [&](auto* u) { return u->IsRoot() || IsEndName(u); });
    };
    for (size_t k = order.size(); k-- > 0;) {
      Instruction* i = order[k];
      const Instruction* end = nullptr;
      if (i->opcode() == Opcode::kParameter || i->IsConstant() || i->IsRoot() ||
          OwnsItsCallees(*i) || !ir::IsPure(*i)) {
        end = nullptr;
      } else if (is_end(i)) {
        end = i;
      } else {
        end = end_of.at(i->users()[0]);
        for (const Instruction* user : i->users()) {
          if (end_of.at(user) != end) end = nullptr;
        }
        if (end && ++sizes[end] > kMostForAnEnd) end = nullptr;
      }
      end_of[i] = end;
    }
    // The groups behind their last inputs, else in their order.
    ir::InstructionMap<size_t> position(c_);
    for (size_t k = 0; k < order.size(); ++k) position[order[k]] = k;
    std::unordered_map<const Instruction*, std::vector<Instruction*>> groups;
    std::unordered_map<const Instruction*, size_t> ready;
    for (Instruction* i : order) {
      const Instruction* end = end_of.at(i);
      if (!end) continue;
      groups[end].push_back(i);
      size_t& at = ready[end];
      for (const Instruction* x : i->operands()) {
        if (end_of.at(x) != end) at = std::max(at, end_of.at(x) ? order.size() : position.at(x));
      }
    }
    std::vector<std::vector<const Instruction*>> behind(order.size() + 1);
    for (Instruction* i : order) {
      if (end_of.at(i) == i) behind[ready[i]].push_back(i);
    }
    std::vector<Instruction*> result;
    std::unordered_set<const Instruction*> placed;
    const auto place = [&](const Instruction* end) {
      if (!placed.insert(end).second) return;
      result.insert(result.end(), groups[end].begin(), groups[end].end());
    };
    for (size_t k = 0; k < order.size(); ++k) {
      const Instruction* end = end_of.at(order[k]);
      if (!end) {
        result.push_back(order[k]);
      } else if (ready[end] >= order.size() && end == order[k]) {
        place(end);  // it needs another end, and keeps its place
      }
      for (const Instruction* next : behind[k]) place(next);
    }
    return result;
  }

  // Instructions right before their first users where that saves memory over time: the results come
  // later, and operands stay longer, in bytes times steps. Names take no memory, and go along.
  std::vector<Instruction*> Sunk(const std::vector<Instruction*>& order) const {
    // The place of each instruction: the index of an unmoved one, before which it stands.
    ir::InstructionMap<size_t> place(c_);
    std::vector<std::vector<Instruction*>> before(order.size());  // last one first
    std::vector<size_t> last_read(values_.size(), 0);
    for (size_t k = order.size(); k-- > 0;) {
      Instruction* i = order[k];
      const Step& step = steps_.at(i);
      size_t first_use = order.size();
      for (const Instruction* user : i->users()) first_use = std::min(first_use, place.at(user));
      int64_t saved = ir::IsAlias(*i) ? 1 : 0;
      const auto steps = [&](size_t from) { return static_cast<int64_t>(first_use - from); };
      for (size_t v : step.makes) saved += values_[v].bytes * steps(k);
      for (size_t v : step.reads) {
        const size_t until = std::max(last_read[v], k);
        if (!values_[v].stays && until < first_use) saved -= values_[v].bytes * steps(until);
      }
      const bool may_move = first_use < order.size() && !OwnsItsCallees(*i) && !i->IsConstant() &&
                            i->opcode() != Opcode::kParameter && ir::IsPure(*i);
      const bool moves = may_move && saved > 0;
      place[i] = moves ? first_use : k;
      if (moves) before[first_use].push_back(i);
      for (size_t v : step.reads) last_read[v] = std::max(last_read[v], place.at(i));
    }
    std::vector<Instruction*> sunk;
    for (size_t k = 0; k < order.size(); ++k) {
      sunk.insert(sunk.end(), before[k].rbegin(), before[k].rend());
      if (place.at(order[k]) == k) sunk.push_back(order[k]);
    }
    return sunk;
  }

  const Computation& c_;
  ir::TupleUses tuple_uses_;
  std::vector<Instruction*> post_order_;
  std::vector<Value> values_;
  ir::InstructionMap<Step> steps_;
};

}  // namespace

Result<bool> FlattenCallGraph(ir::Module& module) {
  std::unordered_set<const Computation*> taken;
  bool changed = false;
  // Callers first: a copy's own callees are copied with it.
  std::vector<Computation*> work = {module.entry()};
  while (!work.empty()) {
    Computation* c = work.back();
    work.pop_back();
    for (Instruction* i : c->instructions()) {
      if (!OwnsItsCallees(*i)) continue;
      for (size_t k = 0; k < i->called().size(); ++k) {
        if (!taken.insert(i->called(k)).second) {
          i->set_called(k, module.CloneComputation(*i->called(k), i->called(k)->name()));
          taken.insert(i->called(k));
          changed = true;
        }
        work.push_back(i->called(k));
      }
    }
  }
  if (changed) module.RemoveUnusedComputations();
  return changed;
}

Result<bool> Schedule(ir::Module& module) {
  // Callees first: their peaks count at their calls.
  std::unordered_map<const Computation*, int64_t> peaks;
  std::unordered_set<const Computation*> programs = {module.entry()}, bodies;
  std::vector<Computation*> order = module.CalleesFirst();
  for (Computation* c : std::views::reverse(order)) {
    if (!programs.contains(c)) continue;
    for (Instruction* i : c->instructions()) {
      if (OwnsItsCallees(*i)) programs.insert(i->called().begin(), i->called().end());
      if (i->opcode() == Opcode::kWhile) bodies.insert(i->called(1));
    }
  }
  for (Computation* c : order) {
    if (!programs.contains(c)) continue;
    auto [best, peak] = Scheduler(*c, c == module.entry(), peaks).Best();
    StateUpdates updates;
    if (bodies.contains(c)) updates = UpdatesInBody(*c);
    if (c == module.entry()) updates = UpdatesInEntry(module);
    c->Reorder(ir::WithEffectsInOrder(*c, Scheduler::UpdatesLast(std::move(best), updates)));
    peaks[c] = peak;
  }
  module.set_is_scheduled(true);
  return true;
}

}  // namespace kiln::passes
