#include "aot/targets.h"

#include <algorithm>
#include <iterator>
#include <optional>

#include "base/cpu_features.h"
#include "base/strings.h"
#include "codegen/cpu_names.h"
#include "target/cpu_features.h"

namespace kiln::aot {
namespace {

// Code for processors without it does not exist (codegen/llvm_session.h).
bool IsSupported(const std::vector<std::string>& features) {
  return std::ranges::find(features, "sse4.1") != features.end();
}

}  // namespace

Result<target::Target> TargetByName(std::string_view name) {
  if (name == "native") return target::HostCpu();
  if (name == "aarch64") return target::BaselineAArch64();
  const auto features = codegen::X86CpuFeatures(name);
  if (features && IsSupported(*features)) return target::X86WithFeatures(*features);
  std::vector<std::string_view> names = {"native", "aarch64"};
  for (std::string_view known : codegen::X86CpuNames()) {
    if (IsSupported(*codegen::X86CpuFeatures(known))) names.push_back(known);
  }
  return InvalidArgument("there is no target '", name, "'; the targets are ", Join(names, ", "));
}

std::vector<target::Target> X86Levels() {
  std::vector<target::Target> levels;
  for (std::string_view name : {"x86-64-v4", "x86-64-v3", "x86-64-v2"}) {
    levels.push_back(target::X86WithFeatures(*codegen::X86CpuFeatures(name)));
  }
  return levels;
}

Machine MachineOf(const target::Target& target) {
  return StartsWith(target.cpu.triple, "aarch64") ? Machine::kAArch64 : Machine::kX86_64;
}

Result<uint64_t> FeatureBits(const target::Target& target) {
  uint64_t bits = 0;
  for (const std::string& feature : target.cpu.features) {
    const auto* known = std::ranges::find(kCpuFeatures, std::string_view(feature));
    if (known == std::end(kCpuFeatures)) {
      return Internal("the run time does not know the feature ", feature);
    }
    bits |= uint64_t{1} << (known - std::begin(kCpuFeatures));
  }
  return bits;
}

}  // namespace kiln::aot
