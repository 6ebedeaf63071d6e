#include "codegen/cpu_names.h"

#include <algorithm>

#include "llvm/ADT/SmallVector.h"
#include "llvm/ADT/StringMap.h"
#include "llvm/ADT/StringRef.h"
#include "llvm/TargetParser/X86TargetParser.h"

namespace kiln::codegen {

std::vector<std::string_view> X86CpuNames() {
  llvm::SmallVector<llvm::StringRef> names;
  llvm::X86::fillValidCPUArchList(names, /*Only64Bit=*/true);
  return {names.begin(), names.end()};
}

std::optional<std::vector<std::string>> X86CpuFeatures(std::string_view name) {
  const std::vector<std::string_view> names = X86CpuNames();
  if (std::ranges::find(names, name) == names.end()) return std::nullopt;
  llvm::SmallVector<llvm::StringRef> features;
  llvm::X86::getFeaturesForCPU(llvm::StringRef(name.data(), name.size()), features);
  // Some names have the highest of features that come one with another.
  llvm::StringMap<bool> all;
  for (llvm::StringRef feature : features) {
    all[feature] = true;
    llvm::X86::updateImpliedFeatures(feature, true, all);
  }
  std::vector<std::string> result;
  for (const auto& feature : all) {
    if (feature.second) result.push_back(feature.first().str());
  }
  return result;
}

}  // namespace kiln::codegen
