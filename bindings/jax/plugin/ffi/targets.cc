#include "plugin/ffi/targets.h"

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <deque>

#include "kiln/custom_call.h"
#include "plugin/ffi/call.h"
#include "plugin/ffi/table.h"

namespace kiln_jax {
namespace {

struct Targets {
  std::mutex mutex;
  std::deque<FfiTarget> list;  // in the order of their registration
};

Targets& AllTargets() {
  static Targets& targets = *new Targets;
  return targets;
}

XLA_FFI_Error* Invalid(XLA_FFI_Error_Code code, const std::string& message) {
  XLA_FFI_Error_Create_Args args = {};
  args.struct_size = sizeof args;
  args.errc = code;
  args.message = message.c_str();
  return FfiApi()->XLA_FFI_Error_Create(&args);
}

/** Tells the caller of the C functions. */
int32_t Report(XLA_FFI_Error* error, char* message, size_t size) {
  kiln_error* taken = TakeFfiError(error);
  if (taken == nullptr) return 0;
  const int32_t code = kiln_error_code(taken);
  if (size > 0) std::snprintf(message, size, "%s", kiln_error_message(taken, nullptr));
  kiln_error_release(taken);
  return code;
}

}  // namespace

XLA_FFI_Error* RegisterFfiTarget(const std::string& name, XLA_FFI_Handler* const* handlers,
                                 int api_version) {
  XLA_FFI_Handler* execute = handlers[XLA_FFI_ExecutionStage_EXECUTE];
  if (name.empty() || name.starts_with("kiln.")) {
    return Invalid(XLA_FFI_Error_Code_INVALID_ARGUMENT,
                   "\"" + name + "\" cannot be the name of a target");
  }
  if (execute == nullptr || api_version < 0 || api_version > 1) {
    return Invalid(XLA_FFI_Error_Code_INVALID_ARGUMENT,
                   "the target \"" + name +
                       "\" needs a function for the execute stage, and the "
                       "api_version 0 or 1");
  }
  for (size_t stage = 0; stage < kFfiStages && api_version == 1; ++stage) {
    if (handlers[stage] == nullptr) continue;
    if (XLA_FFI_Error* error = CheckFfiVersion(name, handlers[stage])) return error;
  }
  Targets& targets = AllTargets();
  std::lock_guard lock(targets.mutex);
  for (const FfiTarget& target : targets.list) {
    if (target.name != name) continue;
    const bool same = target.api_version == api_version &&
                      std::equal(handlers, handlers + kFfiStages, target.handlers);
    if (same) return nullptr;
    return Invalid(XLA_FFI_Error_Code_ALREADY_EXISTS,
                   "the target \"" + name + "\" is registered with other functions");
  }
  FfiTarget& target = targets.list.emplace_back();
  target.name = name;
  target.api_version = api_version;
  std::copy(handlers, handlers + kFfiStages, target.handlers);
  return nullptr;
}

kiln_error* AddFfiTargets(kiln_context* context, KnownTargets* known) {
  std::lock_guard lock(known->mutex);
  Targets& targets = AllTargets();
  std::lock_guard targets_lock(targets.mutex);
  for (; known->count < targets.list.size(); ++known->count) {
    FfiTarget& target = targets.list[known->count];
    kiln_call_handler handler = KILN_CALL_HANDLER_INIT;
    handler.execute = &ExecuteFfiCall;
    handler.instantiate = &InstantiateFfiCall;
    handler.destroy_state = &DestroyFfiCall;
    handler.user_data = &target;
    kiln_error* error = kiln_context_register_call_handler(context, target.name.data(),
                                                           target.name.size(), &handler);
    if (error == nullptr) continue;
    // A name that the library has itself stays the library's.
    const kiln_code code = kiln_error_code(error);
    if (code != KILN_ALREADY_EXISTS && code != KILN_INVALID_ARGUMENT) return error;
    kiln_error_release(error);
  }
  return nullptr;
}

}  // namespace kiln_jax

int32_t KilnPjrtRegisterFfiTarget(const char* name, void* const* handlers, int32_t api_version,
                                  char* message, size_t size) {
  using namespace kiln_jax;  // NOLINT: the function is the namespace's face
  try {
    XLA_FFI_Handler* stages[kFfiStages];
    for (size_t i = 0; i < kFfiStages; ++i) {
      stages[i] = reinterpret_cast<XLA_FFI_Handler*>(handlers[i]);
    }
    return Report(RegisterFfiTarget(name, stages, api_version), message, size);
  } catch (...) {
    return KILN_RESOURCE_EXHAUSTED;
  }
}

int32_t KilnPjrtRegisterFfiType(const char* name, void* id, const void* info, char* message,
                                size_t size) {
  using namespace kiln_jax;  // NOLINT: the function is the namespace's face
  try {
    return Report(RegisterFfiType(name, static_cast<XLA_FFI_TypeId*>(id),
                                  static_cast<const XLA_FFI_TypeInfo*>(info)),
                  message, size);
  } catch (...) {
    return KILN_RESOURCE_EXHAUSTED;
  }
}
