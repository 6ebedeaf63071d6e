#include "capi/session_options.h"

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/strings.h"
#include "capi/error.h"
#include "capi/handle.h"
#include "capi/options.h"

namespace kiln::capi {
namespace {

using session::ClusterOptions;
using session::JitLevel;

Result<int64_t> SizeOr(std::string_view name, int64_t value, int64_t otherwise) {
  if (value < 0) return InvalidArgument("kiln_session_options.", name, " is ", value);
  return value == 0 ? otherwise : value;
}

// The flag replaces a level that the program leaves open, and says whether it includes CPUs.
Status ReadLevel(const kiln_session_options& options, const flags::SessionFlags& flags,
                 ClusterOptions& to) {
  to.cpu_global_jit = options.no_cpu_clustering == 0;
  switch (options.jit) {
    case KILN_JIT_DEFAULT:
      if (flags.auto_jit < 0) to.level = JitLevel::kOff;
      if (flags.auto_jit > 0) {
        to.level = JitLevel::kOn;
        to.cpu_global_jit = flags.cpu_global_jit;
      }
      return OkStatus();
    case KILN_JIT_ON:
      to.level = JitLevel::kOn;
      return OkStatus();
    case KILN_JIT_OFF:
      to.level = JitLevel::kOff;
      return OkStatus();
    default:
      return InvalidArgument("kiln_session_options.jit is ", options.jit,
                             "; expected KILN_JIT_DEFAULT, KILN_JIT_ON or KILN_JIT_OFF");
  }
}

Result<std::vector<std::string>> ReadList(std::string_view name, const char* text, size_t length,
                                          const std::vector<std::string>& otherwise) {
  KILN_ASSIGN_OR_RETURN(std::string_view list,
                        TextOf(Cat("kiln_session_options.", name), text, length));
  if (list.empty()) return otherwise;
  std::vector<std::string> names;
  for (std::string_view part : Split(list, ',')) names.emplace_back(part);
  return names;
}

}  // namespace

Status CheckMode(std::string_view strict, const CompileMode& mode) {
  if (!mode.is_strict || (!mode.is_lazy && !mode.is_asynchronous)) return OkStatus();
  return InvalidArgument(strict, " is 1, and so is ",
                         mode.is_lazy ? "lazy" : "asynchronous_compilation");
}

session::SessionOptions OptionsOf(const flags::SessionFlags& flags, const CompileMode& mode) {
  session::SessionOptions options;
  options.dump_folder = flags.dump_graph_prefix;
  // TensorFlow 1's default.
  if (flags.clustering_debug && options.dump_folder.empty()) options.dump_folder = "/tmp";
  options.clustering.compile_on_demand = flags.compile_on_demand;
  session::CompilePolicy& policy = options.policy;
  if (flags.threshold_for_megamorphic > 0) {
    policy.megamorphic_compiles = flags.threshold_for_megamorphic;
  } else if (flags.threshold_for_megamorphic < 0) {
    policy.megamorphic_compiles = INT64_MAX;
  }
  options.is_strict =
      mode.is_strict || (!flags.enable_lazy_compilation && !mode.is_lazy && !mode.is_asynchronous);
  policy.is_lazy = mode.is_lazy;
  policy.is_asynchronous = mode.is_asynchronous || (flags.async_compilation && !options.is_strict);
  return options;
}

Result<session::SessionOptions> ReadSessionOptions(const kiln_session_options& options,
                                                   client::Client& client) {
  const flags::SessionFlags& flags = client.flags().session;
  KILN_ASSIGN_OR_RETURN(client::Device * device, ChosenDevice(client, options.device));
  for (auto [name, value] : {std::pair("soft_placement", options.soft_placement),
                             {"no_cpu_clustering", options.no_cpu_clustering},
                             {"lazy", options.lazy},
                             {"asynchronous_compilation", options.asynchronous_compilation},
                             {"strict", options.strict}}) {
    KILN_RETURN_IF_ERROR(CheckSwitch(Cat("kiln_session_options.", name), value));
  }
  const CompileMode mode{.is_lazy = options.lazy != 0,
                         .is_asynchronous = options.asynchronous_compilation != 0,
                         .is_strict = options.strict != 0};
  KILN_RETURN_IF_ERROR(CheckMode("kiln_session_options.strict", mode));
  session::SessionOptions read = OptionsOf(flags, mode);
  read.device = device;
  read.soft_placement = options.soft_placement != 0;
  KILN_ASSIGN_OR_RETURN(read.policy.memory_limit_bytes,
                        SizeOr("memory_limit_bytes", options.memory_limit_bytes, 0));
  ClusterOptions& to = read.clustering;
  KILN_RETURN_IF_ERROR(ReadLevel(options, flags, to));
  KILN_ASSIGN_OR_RETURN(to.min_cluster_size, SizeOr("min_cluster_size", options.min_cluster_size,
                                                    flags.min_cluster_size));
  KILN_ASSIGN_OR_RETURN(to.max_cluster_size, SizeOr("max_cluster_size", options.max_cluster_size,
                                                    flags.max_cluster_size));
  // Fuel is one more, so that 0 is its default.
  const int64_t flag_fuel = flags.clustering_fuel == INT64_MAX ? -1 : flags.clustering_fuel;
  KILN_ASSIGN_OR_RETURN(int64_t fuel, SizeOr("cluster_fuel", options.cluster_fuel, flag_fuel + 1));
  to.fuel = fuel - 1;
  KILN_ASSIGN_OR_RETURN(to.ops_to_cluster,
                        ReadList("ops_to_cluster", options.ops_to_cluster,
                                 options.ops_to_cluster_length, flags.ops_to_cluster));
  KILN_ASSIGN_OR_RETURN(to.cluster_exclude_ops,
                        ReadList("cluster_exclude_ops", options.cluster_exclude_ops,
                                 options.cluster_exclude_ops_length, flags.cluster_exclude_ops));
  return read;
}

}  // namespace kiln::capi
