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
  std::unordered_map<size_t, size_t> last_use;
  const NeededSearch::Instructions needed =
      needed_.In(computation, [&](const Instruction& i) { return known.contains(&i); });
  for (const Instruction* i : computation.instructions()) {
    if (!needed.contains(i)) continue;
    size_t number = program.lines.size();
    line_of[i] = number;
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
    if (needed_.Acts(*line.instruction)) needed[same.size() - 1] = true;
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

}  // namespace kiln::interp
