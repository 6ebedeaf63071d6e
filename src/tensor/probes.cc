#include "tensor/probes.h"

#include "base/strings.h"
#include "tensor/tolerance.h"

namespace kiln {
namespace {

std::string_view NameIn(std::string_view config) {
  constexpr std::string_view kKey = "probe_id=";
  const size_t at = config.find(kKey);
  return at == std::string_view::npos ? std::string_view() : config.substr(at + kKey.size());
}

}  // namespace

void Probes::Keep(std::string_view config, Literal value) {
  kept_[std::string(NameIn(config))].push_back(std::move(value));
}

Status Probes::Expect(std::string_view config, const Literal& value) const {
  const std::string_view name = NameIn(config);
  const int64_t turn = ParseInt(ConfigWord(config, "iter")).value_or(0);
  auto kept = kept_.find(name);
  if (kept == kept_.end() || turn < 0 || turn >= std::ssize(kept->second)) {
    return FailedPrecondition("there is no value ", turn, " of the probe '", name, "'");
  }
  const Literal& found = kept->second[static_cast<size_t>(turn)];
  if (found == value) return OkStatus();
  return FailedPrecondition("the probe '", name, "' had another value: ", found.ToString(16),
                            ", not ", value.ToString(16));
}

}  // namespace kiln
