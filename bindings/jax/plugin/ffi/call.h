/** @file
 *  Calls of foreign functions: XLA's call frames, made of the library's custom calls. */
#ifndef KILN_JAX_PLUGIN_FFI_CALL_H_
#define KILN_JAX_PLUGIN_FFI_CALL_H_

#include <string>

#include "kiln/custom_call.h"
#include "plugin/ffi/api.h"

namespace kiln_jax {

/** The functions of a target, which lives as long as the process. */
struct FfiTarget {
  std::string name;
  /** NULL where there is none, in the order of the stages. */
  XLA_FFI_Handler* handlers[kFfiStages] = {};
  /** 1: handlers of this interface. 0: the execute stage is a function without it, whose form the
   *  calls tell: kiln_custom_call::api_version 1 to 3. */
  int api_version = 1;
};

/** The functions of kiln_call_handler for a target. `user_data` is an FfiTarget. */
kiln_error* ExecuteFfiCall(void* user_data, const kiln_custom_call* call);
kiln_error* InstantiateFfiCall(void* user_data, const kiln_custom_call* call, void** state);
void DestroyFfiCall(void* user_data, void* state);

/** Asks a handler for its version: an error for a handler of another major version. */
XLA_FFI_Error* CheckFfiVersion(const std::string& name, XLA_FFI_Handler* handler);

}  // namespace kiln_jax

#endif  // KILN_JAX_PLUGIN_FFI_CALL_H_
