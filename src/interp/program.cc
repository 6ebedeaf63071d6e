#include "interp/program.h"

#include <algorithm>
#include <utility>

#include "ir/analysis/effects.h"

namespace kiln::interp {
namespace {

using ir::Computation;
using ir::Instruction;

// The limits of one cached array, and of all of them, to bound an evaluation's memory.
constexpr int64_t kMostBytes = 1 << 16, kMostKeptBytes = 1 << 26;

bool DependsOnProcess(const Instruction& i) {
  return kiln::DependsOnProcess(i.opcode()) ||
         std::ranges::any_of(i.called(), [](const Computation* c) {
           return std::ranges::any_of(c->instructions(),
                                      [](const Instruction* x) { return DependsOnProcess(*x); });
         });
}

// Whether equal operands give equal values. Ops that run whole computations may take any time, and
// cache their own values.
bool IsFunction(const Instruction& i) {
  switch (i.opcode()) {
    case Opcode::kParameter:
    case Opcode::kWhile:
    case Opcode::kConditional:
    case Opcode::kCall:
    case Opcode::kFusion:
      return false;
    default:
      return ir::IsPure(i) && !DependsOnProcess(i);
  }
}

bool IsSmall(const Shape& shape) {
  return shape.is_array() && shape.is_static() && shape.byte_size() <= kMostBytes;
}

}  // namespace

std::shared_ptr<const Program> Programs::ForCall(const Computation& computation) {
  Entry& entry = entries_[&computation];
  if (!entry.program) {
    entry.program = std::make_shared<const Program>(Make(computation, {}));
  } else if (!std::exchange(entry.was_searched, true)) {
    Program program = *entry.program;
    FindConstants(program);
    entry.keeps = !program.constants.empty();
    if (entry.keeps) entry.program = std::make_shared<const Program>(std::move(program));
  }
  return entry.program;
}

void Programs::Keep(const Computation& computation, const Program& program,
                    std::span<const Value> values) {
  Entry& entry = entries_.at(&computation);
  // One of several concurrent calls is enough.
  if (program.constants.empty() || !entry.keeps) return;
  entry.keeps = false;
  Values known;
  for (size_t k : program.constants) {
    const int64_t bytes = values[k].array().byte_size();
    if (bytes > kMostKeptBytes - kept_bytes_) continue;
    kept_bytes_ += bytes;
    known.emplace(program.lines[k].instruction, values[k]);
  }
  entry.program = std::make_shared<const Program>(Make(computation, known));
}

Program Programs::Make(const Computation& computation, const Values& known) {
  Program program;
  std::unordered_map<const Instruction*, size_t> line_of;
  // Operands come before users, so that one backward sweep finds all needed instructions.
  for (Instruction* i : computation.instructions()) {
    if (Acts(*i) || i == computation.root()) line_of[i] = 0;
  }
  const ir::Instructions all = computation.instructions();
  for (auto it = all.end(); it != all.begin();) {
    const Instruction* i = *--it;
    if (!line_of.contains(i) || known.contains(i)) continue;
    for (const Instruction* operand : i->operands()) line_of[operand] = 0;
  }
  std::unordered_map<size_t, size_t> last_use;
  for (const Instruction* i : all) {
    auto entry = line_of.find(i);
    if (entry == line_of.end()) continue;
    size_t number = program.lines.size();
    entry->second = number;
    Program::Line line{.instruction = i};
    if (auto value = known.find(i); value != known.end()) {
      line.value = value->second;
    } else {
      for (const Instruction* operand : i->operands()) {
        line.operands.push_back(line_of.at(operand));
        last_use[line_of.at(operand)] = number;
      }
    }
    program.lines.push_back(std::move(line));
  }
  program.root = line_of.at(computation.root());
  for (auto [value, user] : last_use) {
    if (value != program.root) program.lines[user].dead.push_back(value);
  }
  return program;
}

// Constant values: small arrays used by other instructions.
void Programs::FindConstants(Program& program) {
  std::vector<bool> same, needed(program.lines.size()), kept(program.lines.size());
  for (const Program::Line& line : program.lines) {
    same.push_back(IsFunction(*line.instruction) &&
                   std::ranges::all_of(line.operands, [&](size_t k) { return same[k]; }));
    if (Acts(*line.instruction)) needed[same.size() - 1] = true;
  }
  needed[program.root] = true;
  for (size_t k = program.lines.size(); k-- > 0;) {
    const Instruction& i = *program.lines[k].instruction;
    if (!needed[k]) continue;
    kept[k] = same[k] && !i.IsConstant() && IsSmall(i.shape());
    if (kept[k]) {
      program.constants.push_back(k);
      continue;
    }
    for (size_t operand : program.lines[k].operands) needed[operand] = true;
  }
  for (Program::Line& line : program.lines) {
    std::erase_if(line.dead, [&](size_t k) { return kept[k]; });
  }
}

bool Programs::Acts(const Instruction& instruction) {
  if (HasTrait(instruction.opcode(), kCollective)) return true;
  if (HasTrait(instruction.opcode(), kSideEffect)) return true;
  if (instruction.opcode() == Opcode::kCustomCall ||
      instruction.opcode() == Opcode::kHostCallback) {
    return ir::HasSideEffect(instruction);
  }
  return std::ranges::any_of(instruction.called(), [&](const Computation* c) {
    if (auto known = acts_.find(c); known != acts_.end()) return known->second;
    const bool acts =
        std::ranges::any_of(c->instructions(), [&](const Instruction* i) { return Acts(*i); });
    acts_[c] = acts;
    return acts;
  });
}

}  // namespace kiln::interp
