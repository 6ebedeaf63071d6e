#include "plan/calls.h"

namespace kiln::plan {
namespace {

void Collect(const Steps& steps, std::vector<const Call*>& calls) {
  for (const Step& s : steps) {
    if (const auto* call = std::get_if<Call>(&s.what)) {
      calls.push_back(call);
    } else if (const auto* loop = std::get_if<While>(&s.what)) {
      Collect(loop->condition, calls);
      Collect(loop->body, calls);
    } else if (const auto* conditional = std::get_if<Conditional>(&s.what)) {
      for (const Steps& branch : conditional->branches) Collect(branch, calls);
    }
  }
}

}  // namespace

std::vector<const Call*> CallSteps(const Program& program) {
  std::vector<const Call*> calls;
  Collect(program.prologue, calls);
  Collect(program.steps, calls);
  return calls;
}

}  // namespace kiln::plan
