#include "stablehlo/bytecode/version.h"

#include <optional>
#include <utility>
#include <vector>

namespace kiln::stablehlo {
namespace {

// Major and minor; patch levels do not change operations.
using Version = std::pair<int64_t, int64_t>;
constexpr Version kOldest{0, 9};
constexpr Version kNewest{1, 20};

std::string ToString(Version version) { return Cat(version.first, ".", version.second, ".0"); }

}  // namespace

std::string NewestVersion() { return ToString(kNewest); }

Status CheckVersion(std::string_view producer) {
  constexpr std::string_view kPrefix = "StableHLO_v";
  if (!producer.starts_with(kPrefix)) return OkStatus();
  const std::string_view text = producer.substr(kPrefix.size(), 80);
  const std::vector<std::string_view> parts = Split(text, '.');
  std::optional<int64_t> major, minor;
  if (parts.size() >= 2) {
    major = ParseInt(parts[0]);
    minor = ParseInt(parts[1]);
  }
  if (!major || !minor) {
    return InvalidArgument("the producer '", producer.substr(0, 80), "' has no version as in '",
                           kPrefix, NewestVersion(), "'");
  }
  const Version version(*major, *minor);
  if (version > kNewest) {
    return Unimplemented("VHLO version ", text, " is newer than ", ToString(kNewest),
                         ", the newest that is read");
  }
  if (version < kOldest) {
    return Unimplemented("VHLO version ", text, " is older than ", ToString(kOldest),
                         ", the oldest that is read");
  }
  return OkStatus();
}

}  // namespace kiln::stablehlo
