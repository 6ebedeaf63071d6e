/** @file
 *  The reader of XLA's CompileOptionsProto, as far as the plugin obeys it. */
#ifndef KILN_JAX_PLUGIN_COMPILE_OPTIONS_H_
#define KILN_JAX_PLUGIN_COMPILE_OPTIONS_H_

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "plugin/api/types.h"

namespace kiln_jax {

/** The options of a compilation. */
struct CompileOptions {
  int64_t replicas = 1;
  int64_t partitions = 1;
  int64_t device = -1;             // an id; -1: none given
  std::vector<int64_t> devices;    // ids, by replica and partition; empty: the first device
  bool is_quick = false;           // less effort: optimization_level of O0 and O1, or XLA's options
  std::string dump_folder;         // xla_dump_to
  int64_t memory_limit_bytes = 0;  // kiln_memory_limit_bytes
};

/** Reads a serialised CompileOptionsProto. Unknown fields are skipped, as in all of protobuf.
 * Options of XLA that have no equal here are without effect.
 *  @return INVALID_ARGUMENT for damaged bytes, and for overrides of options that XLA lacks or of
 *          the wrong type */
PJRT_Error* ReadCompileOptions(std::string_view bytes, CompileOptions* options);

}  // namespace kiln_jax

#endif  // KILN_JAX_PLUGIN_COMPILE_OPTIONS_H_
