#include "compiler/cache_key.h"

#include "base/build_id.h"
#include "base/hash.h"
#include "base/strings.h"
#include "compiler/backend.h"
#include "ir/digest.h"

namespace kiln::compiler {
namespace {

// What a target's line (Target::ToString) leaves out, of all members, so that a new one is not
// forgotten.
std::string DetailsOf(const target::Target& target) {
  const auto& [triple, features, vector_bytes, vector_registers, has_fma, has_f16, has_masks,
               l1_bytes, l2_bytes, l3_bytes, allow_bf16, keep_subnormals, task_microseconds] =
      target.cpu;
  const auto& [sm, ptx_version, warp_size, max_threads_per_block, shared_bytes_per_block,
               multiprocessors, tf32, emulated] = target.gpu;
  return Cat("registers ", vector_registers, " fma ", int{has_fma}, " f16 ", int{has_f16},
             " masks ", int{has_masks}, " caches ", l1_bytes, " ", l2_bytes, " ", l3_bytes,
             " bf16 ", int{allow_bf16}, " subnormals ", int{keep_subnormals}, "\nwarp ", warp_size,
             " threads ", max_threads_per_block, " shared ", shared_bytes_per_block, " tf32 ",
             int{tf32});
}

// The lines that every key has; empty without a build id.
std::string BeginningOf(const target::Target& target) {
  if (BuildId().empty()) return "";
  return Cat("Kiln, build ", BuildId(), "\n", target.ToString(), "\n", DetailsOf(target), "\n");
}

// Of all options, so that a new one is not forgotten: those that tell or show something, or say how
// many threads generate code, do not change it.
std::string LineOf(const Options& options) {
  const auto& [disabled_passes, fuse, verify, is_verified, optimization, allow_tf32, allow_bf16,
               keep_subnormals, frozen, memory_limit_bytes, threads, interrupt, dump, dump_forms,
               dump_stage_forms, dumps_pass, at_stage, dump_literal_elements, module_number,
               dump_ptx_sm, lowered, trace] = options;
  return Cat("disabled ", Join(disabled_passes, ","), " fuse ", int{fuse}, " optimization ",
             static_cast<int>(optimization), " tf32 ", int{allow_tf32}, " bf16 ", int{allow_bf16},
             " subnormals ", int{keep_subnormals}, " frozen ", Join(frozen, ","), " memory limit ",
             memory_limit_bytes, "\n");
}

}  // namespace

std::string CacheKey(const ir::Module& module, const target::Target& target,
                     const Options& options) {
  const std::string beginning = BeginningOf(target);
  if (beginning.empty() || !BackendFor(target)->runs_kernels()) return "";
  return Cat(beginning, LineOf(options), "module ", HexText(ir::DigestOf(module)), "\n");
}

std::string CacheKeyOfLaunch(std::string_view kernel_text, const std::vector<program::Slice>& args,
                             const target::Target& target) {
  const std::string beginning = BeginningOf(target);
  if (beginning.empty()) return "";
  std::vector<int64_t> bytes;
  for (const program::Slice& arg : args) bytes.push_back(arg.bytes);
  return Cat(beginning, "arguments ", Join(bytes, ","), "\nkernel ", HexText(HashOf(kernel_text)),
             "\n");
}

}  // namespace kiln::compiler
