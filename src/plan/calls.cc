#include "plan/calls.h"

#include <algorithm>

#include "base/strings.h"

namespace kiln::plan {
namespace {

void Collect(const Steps& steps, std::vector<std::string>& targets) {
  for (const Step& s : steps) {
    if (const auto* call = std::get_if<Call>(&s.what)) {
      if (std::find(targets.begin(), targets.end(), call->target) == targets.end()) {
        targets.push_back(call->target);
      }
    } else if (const auto* loop = std::get_if<While>(&s.what)) {
      Collect(loop->condition, targets);
      Collect(loop->body, targets);
    } else if (const auto* conditional = std::get_if<Conditional>(&s.what)) {
      for (const Steps& branch : conditional->branches) Collect(branch, targets);
    }
  }
}

}  // namespace

std::vector<std::string> CallTargets(const Program& program) {
  std::vector<std::string> targets;
  Collect(program.prologue, targets);
  Collect(program.steps, targets);
  return targets;
}

Status CheckNoCalls(const Program& program) {
  std::vector<std::string> targets = CallTargets(program);
  if (targets.empty()) return OkStatus();
  return Unimplemented(program.name, ": no function is registered for calls of '",
                       Join(targets, "', '"), "'");
}

}  // namespace kiln::plan
