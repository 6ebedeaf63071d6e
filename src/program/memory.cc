#include "program/memory.h"

#include "base/strings.h"
#include "program/frozen.h"
#include "program/steps.h"

namespace kiln::program {
MemoryUse MemoryOf(const Program& program) {
  MemoryUse use;
  const Signature& s = program.signature;
  const std::vector<bool> kept = KeptArguments(program);
  for (size_t p = 0; p < s.parameters.size(); ++p) {
    const int64_t bytes = s.parameters[p].byte_size();
    if (!IsFrozen(program, p)) {
      use.arguments += bytes;
    } else if (kept[p]) {
      use.frozen += bytes;
    }
  }
  for (size_t r = 0; r < s.results.size(); ++r) {
    use.outputs += s.results[r].byte_size();
    if (s.aliases[r] >= 0) use.aliased += s.results[r].byte_size();
  }
  const IdVector<AllocationId, bool> used = AllocationUses(program), later = LaterUses(program);
  for (AllocationId id : program.allocations.ids()) {
    const Allocation& a = program.allocations[id];
    if (a.kind == Allocation::Kind::kConstant && later[id]) use.constants += a.bytes;
    if (a.kind == Allocation::Kind::kBound && used[id]) use.frozen += a.bytes;
  }
  use.temporaries = program.arena_bytes;
  use.scratch = program.scratch_bytes;
  return use;
}

int64_t BytesAccessed(const Program& program) {
  int64_t bytes = 0;
  ForEachStep(program.steps, [&](const Step& step, bool) {
    bytes += std::visit(Overloaded{
                            [&](const Launch& launch) { return program.launches[launch.id].bytes; },
                            [](const Copy& copy) { return 2 * copy.from.bytes; },
                            [&](const HostCall& call) { return program.launches[call.id].bytes; },
                            [](const While&) { return int64_t{0}; },
                            [](const Conditional&) { return int64_t{0}; },
                        },
                        step.what);
  });
  return bytes;
}

std::string MemoryReport(const Program& program) {
  MemoryUse use = MemoryOf(program);
  return Cat("Total bytes used: ", use.peak(), "\n  arguments: ", use.arguments,
             "\n  outputs: ", use.outputs, ", of them in donated arguments: ", use.aliased,
             "\n  temporaries: ", use.temporaries, ", of them scratch of one kernel: ", use.scratch,
             "\n  constants: ", use.constants, "\n  frozen arguments: ", use.frozen, "\n");
}

std::string CostReport(const Program& program) {
  return Cat("flops: ", program.flops, "\ntranscendentals: ", program.transcendentals,
             "\nbytes accessed: ", BytesAccessed(program),
             "\nkernels: ", CountKernels(program.steps), "\n");
}

}  // namespace kiln::program
