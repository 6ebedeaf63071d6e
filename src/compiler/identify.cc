#include "compiler/identify.h"

#include <cstring>

#include "backend/fingerprint.h"
#include "base/hash.h"
#include "frame/frame.h"
#include "ir/digest.h"
#include "program/steps.h"

namespace kiln::compiler {
namespace {

using backend::FingerprintOf;

class Digest {
 public:
  void Add(uint64_t number) {
    char bytes[sizeof(number)];
    std::memcpy(bytes, &number, sizeof(number));
    bytes_.append(bytes, sizeof(number));
  }
  void Add(std::string_view text) { Add(FingerprintOf(text)); }
  void Add(const program::Steps& steps) {
    program::ForEachStep(steps, [&](const program::Step& step, bool) {
      Add(uint64_t{step.what.index()});
      std::visit(Overloaded{
                     [&](const program::Launch& launch) { Add(uint64_t{launch.kernel.index()}); },
                     [](const program::Copy&) {},
                     [&](const program::HostCall& call) {
                       Add(call.target);
                       Add(call.config);
                     },
                     [](const program::While&) {},
                     [](const program::Conditional&) {},
                 },
                 step.what);
      program::ForEachList(step,
                           [&](const program::Steps& inner, bool) { Add(uint64_t{inner.size()}); });
      program::ForEachSlice(step, [&](const program::Slice& slice) {
        Add(uint64_t{slice.allocation.index()});
        Add(static_cast<uint64_t>(slice.offset));
        Add(static_cast<uint64_t>(slice.bytes));
      });
    });
  }

  std::string Text() const { return HexText(FingerprintOf(bytes_)); }

 private:
  std::string bytes_;
};

std::string IdOf(const program::Program& program, const target::Target& target,
                 const std::vector<std::string_view>& kernel_texts) {
  Digest id;
  id.Add(ir::StemOf(program.name));
  id.Add(program.target);
  id.Add(uint64_t{target.gpu.tf32});
  for (std::string_view text : kernel_texts) id.Add(text);
  for (const program::Allocation& a : program.allocations) {
    id.Add(static_cast<uint64_t>(a.kind));
    id.Add(uint64_t{a.number});
    id.Add(static_cast<uint64_t>(a.bytes));
  }
  for (const auto& constant : program.constants) {
    if (!constant) continue;
    id.Add({reinterpret_cast<const char*>(constant->data()),
            static_cast<size_t>(constant->byte_size())});
  }
  id.Add(program.prologue);
  for (size_t a = 0; a < program.frozen.size(); ++a) {
    if (program.frozen[a]) id.Add(uint64_t{a});
  }
  id.Add(program.binding);
  id.Add(program.steps);
  return id.Text();
}

}  // namespace

std::string IdOfText(const program::Program& program, const target::Target& target,
                     std::string_view text) {
  return IdOf(program, target, {text});
}

void Identify(codegen::LoweredProgram& lowered, const target::Target& target,
              const std::vector<std::string_view>& kernel_texts) {
  program::Program& program = lowered.program;
  program.target = target.ToString();
  program.frame_version = KILN_FRAME_VERSION;
  program.kernels.clear();
  for (const kernel::ScheduledKernel& k : lowered.kernels) {
    program.kernels.push_back({.name = k.kernel.name});
  }
  program.id = IdOf(program, target, kernel_texts);
}

}  // namespace kiln::compiler
