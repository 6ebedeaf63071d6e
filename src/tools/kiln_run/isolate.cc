#include "tools/kiln_run/isolate.h"

#include <algorithm>
#include <memory>
#include <unordered_set>
#include <utility>
#include <vector>

#include "ir/text.h"
#include "passes/control/computations.h"
#include "tools/reduce/rebuild.h"

namespace kiln::run {
namespace {

using ir::Instruction;

class Isolation {
 public:
  Isolation(const ir::Module& module, std::span<const Literal> arguments,
            const JudgeOptions& options)
      : module_(module), arguments_(arguments), options_(options.ForTries()) {
    options_.has_reference = true;
  }

  Result<std::optional<Culprit>> Run() {
    const std::vector<const Instruction*> candidates = Candidates();
    for (size_t begin = 0; begin < candidates.size();) {
      size_t end = begin;
      for (int64_t bytes = 0; end < candidates.size() && end - begin < kMostResults; ++end) {
        bytes += candidates[end]->shape().byte_size();
        if (bytes > kMostBytes && end > begin) break;
      }
      KILN_ASSIGN_OR_RETURN(auto found,
                            Try(std::span(candidates).subspan(begin, end - begin), true));
      if (found) return found;
      begin = end;
    }
    for (const Instruction* candidate : candidates) {
      KILN_ASSIGN_OR_RETURN(auto found, Try(std::span(&candidate, 1), false));
      if (found) return found;
    }
    return std::optional<Culprit>();
  }

 private:
  static constexpr size_t kMostResults = 1000;
  static constexpr int64_t kMostBytes = int64_t{1} << 29;

  // Arrays that results are made of.
  std::vector<const Instruction*> Candidates() const {
    std::unordered_set<const Instruction*> needed;
    std::vector<const Instruction*> work = {module_.entry()->root()}, found;
    while (!work.empty()) {
      const Instruction* i = work.back();
      work.pop_back();
      if (!needed.insert(i).second) continue;
      work.insert(work.end(), i->operands().begin(), i->operands().end());
    }
    for (const Instruction* i : module_.entry()->instructions()) {
      const bool is_given = i->opcode() == Opcode::kParameter || i->IsConstant();
      if (!is_given && i->shape().is_array() && needed.contains(i)) found.push_back(i);
    }
    return found;
  }

  Result<std::optional<Culprit>> Try(std::span<const Instruction* const> results, bool among_all) {
    tools::Edits edits;
    edits.results.assign(results.begin(), results.end());
    KILN_ASSIGN_OR_RETURN(const auto rebuilt, tools::Rebuild(module_, edits));
    std::vector<Literal> arguments;
    for (const Instruction* p : rebuilt->entry()->parameters()) {
      for (size_t k = 0; k < arguments_.size(); ++k) {
        if (module_.entry()->parameter(static_cast<int64_t>(k))->name() != p->name()) continue;
        arguments.push_back(arguments_[k]);
      }
    }
    const Record record = Judge(ProgramOf(*rebuilt), arguments, options_);
    if (!record.failure.ok()) return record.failure.WithContext(record.failed_at);
    for (size_t k = 0; k < record.results.size(); ++k) {
      const auto& comparison = record.results[k].comparison;
      if (!comparison || comparison->agrees()) continue;
      return std::optional(Culprit{results[k]->name(), results[k]->op_name(),
                                   ir::ToHloText(*results[k], {.max_literal_elements = 16}),
                                   among_all, *comparison});
    }
    return std::optional<Culprit>();
  }

  const ir::Module& module_;
  const std::span<const Literal> arguments_;
  JudgeOptions options_;
};

bool IsCall(const Instruction* i) {
  return i->opcode() == Opcode::kCall || i->opcode() == Opcode::kFusion;
}

// The module with the bodies of the entry's calls and fusions in their places.
std::unique_ptr<ir::Module> Flattened(const ir::Module& module) {
  auto flat = module.Clone();
  ir::Computation* entry = flat->entry();
  for (;;) {
    const auto all = entry->instructions();
    const auto call = std::ranges::find_if(all, IsCall);
    if (call == all.end()) return flat;
    Instruction* i = *call;
    const std::vector<Instruction*> arguments(i->operands().begin(), i->operands().end());
    entry->ReplaceAllUses(i, passes::CopyBody(i, *i->called(0), arguments));
    entry->Remove(i);
  }
}

}  // namespace

Result<std::optional<Culprit>> Isolate(const Program& program, std::span<const Literal> arguments,
                                       const JudgeOptions& options) {
  KILN_ASSIGN_OR_RETURN(auto found, Isolation(*program.module, arguments, options).Run());
  if (!found) return found;
  const Instruction* culprit = nullptr;
  for (const Instruction* i : program.module->entry()->instructions()) {
    if (i->name() == found->name) culprit = i;
  }
  if (!culprit || !IsCall(culprit)) return found;
  const auto flat = Flattened(*program.module);
  KILN_ASSIGN_OR_RETURN(auto inner, Isolation(*flat, arguments, options).Run());
  return inner ? std::move(inner) : std::move(found);
}

}  // namespace kiln::run
