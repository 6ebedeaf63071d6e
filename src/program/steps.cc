#include "program/steps.h"

namespace kiln::program {

bool HoldsSteps(const Step& step) {
  return std::visit(Overloaded{
                        [](const Launch&) { return false; },
                        [](const Copy&) { return false; },
                        [](const HostCall&) { return false; },
                        [](const While&) { return true; },
                        [](const Conditional&) { return true; },
                    },
                    step.what);
}

bool IsStraight(const Steps& steps) {
  bool is_straight = true;
  ForEachStep(steps, [&](const Step& step, bool) {
    is_straight = is_straight && !std::holds_alternative<While>(step.what) &&
                  !std::holds_alternative<HostCall>(step.what);
  });
  return is_straight;
}

std::vector<const HostCall*> HostCallSteps(const Program& program) {
  std::vector<const HostCall*> calls;
  for (const Steps* steps : {&program.prologue, &program.binding, &program.steps}) {
    ForEach<HostCall>(*steps, [&](const HostCall& call) { calls.push_back(&call); });
  }
  return calls;
}

namespace {

void AddUses(const Steps& steps, IdVector<AllocationId, bool>& used) {
  ForEachStep(steps, [&](const Step& step, bool) {
    ForEachSlice(step, [&](const Slice& slice) {
      if (slice.allocation.valid()) used[slice.allocation] = true;
    });
  });
}

}  // namespace

IdVector<AllocationId, bool> AllocationUses(const Program& program) {
  IdVector<AllocationId, bool> used(program.allocations.size(), false);
  AddUses(program.steps, used);
  return used;
}

IdVector<AllocationId, bool> LaterUses(const Program& program) {
  IdVector<AllocationId, bool> used = AllocationUses(program);
  AddUses(program.binding, used);
  return used;
}

int64_t CountKernels(const Steps& steps) {
  int64_t count = 0;
  ForEachStep(steps, [&](const Step& step, bool) { count += !HoldsSteps(step); });
  return count;
}

}  // namespace kiln::program
