#include "plan/memory.h"

#include "base/strings.h"
#include "plan/uses.h"

namespace kiln::plan {
namespace {

int64_t BytesOf(const Program& program, const Steps& steps) {
  int64_t bytes = 0;
  for (const Step& step : steps) {
    if (const auto* launch = std::get_if<Launch>(&step.what)) {
      const kernel::Kernel& kernel = program.kernels[static_cast<size_t>(launch->kernel)].kernel;
      bytes += kernel.bytes_read + kernel.bytes_written;
    } else if (const auto* copy = std::get_if<Copy>(&step.what)) {
      bytes += 2 * copy->from.bytes;
    } else if (const auto* call = std::get_if<Call>(&step.what)) {
      bytes += program.launches[static_cast<size_t>(call->id)].bytes;
    } else if (const auto* loop = std::get_if<While>(&step.what)) {
      bytes += BytesOf(program, loop->condition) + BytesOf(program, loop->body);
    } else if (const auto* conditional = std::get_if<Conditional>(&step.what)) {
      for (const Steps& branch : conditional->branches) bytes += BytesOf(program, branch);
    }
  }
  return bytes;
}

}  // namespace

MemoryUse MemoryOf(const Program& program) {
  MemoryUse use;
  const Signature& s = program.signature;
  for (const Shape& shape : s.parameters) use.arguments += shape.byte_size();
  for (size_t r = 0; r < s.results.size(); ++r) {
    use.outputs += s.results[r].byte_size();
    if (s.aliases[r] >= 0) use.aliased += s.results[r].byte_size();
  }
  const std::vector<bool> used = AllocationUses(program);
  for (size_t i = 0; i < program.allocations.size(); ++i) {
    const Allocation& a = program.allocations[i];
    if (a.kind == Allocation::Kind::kConstant && used[i]) use.constants += a.bytes;
  }
  use.temporaries = program.arena_bytes;
  use.scratch = program.scratch_bytes;
  return use;
}

int64_t BytesAccessed(const Program& program) { return BytesOf(program, program.steps); }

std::string MemoryReport(const Program& program) {
  MemoryUse use = MemoryOf(program);
  return Cat("Total bytes used: ", use.peak(), "\n  arguments: ", use.arguments,
             "\n  outputs: ", use.outputs, ", of them in donated arguments: ", use.aliased,
             "\n  temporaries: ", use.temporaries, ", of them scratch of one kernel: ", use.scratch,
             "\n  constants: ", use.constants, "\n");
}

std::string CostReport(const Program& program) {
  return Cat("flops: ", program.flops, "\ntranscendentals: ", program.transcendentals,
             "\nbytes accessed: ", BytesAccessed(program),
             "\nkernels: ", CountKernels(program.steps), "\n");
}

}  // namespace kiln::plan
