/** @file
 *  What handlers of foreign functions find behind the pointers of their call frames. */
#ifndef KILN_JAX_PLUGIN_FFI_TABLE_H_
#define KILN_JAX_PLUGIN_FFI_TABLE_H_

#include <memory>
#include <string>

#include "kiln/error.h"
#include "plugin/ffi/api.h"

struct XLA_FFI_Error {
  XLA_FFI_Error_Code code;
  std::string message;
};

namespace kiln_jax {

/** A state of a stage, deleted by the function of its type. */
class FfiState {
 public:
  FfiState() = default;
  FfiState(const FfiState&) = delete;
  FfiState& operator=(const FfiState&) = delete;
  ~FfiState();

  bool is_set() const { return state_ != nullptr; }
  /** Takes over `state`, of a registered type. */
  void Set(int64_t type, void (*deleter)(void*), void* state);
  int64_t type() const { return type_; }
  void* state() const { return state_; }

 private:
  int64_t type_ = 0;
  void (*deleter_)(void*) = nullptr;
  void* state_ = nullptr;
};

}  // namespace kiln_jax

/** One call: its states by the stage that made them. That of INSTANTIATE outlives the call. */
struct XLA_FFI_InvokeContext {
  kiln_jax::FfiState* states[kFfiStages] = {};
  int64_t run_id = 0;
};

namespace kiln_jax {

const XLA_FFI_Api* FfiApi();

/** The handler's error as the library's, and its end; NULL for NULL. */
kiln_error* TakeFfiError(XLA_FFI_Error* error);

/** Waits until the result is there, and ends it. Its error as above. */
kiln_error* AwaitFfiFuture(XLA_FFI_Future* future);

/** Registers a type. Its id is made where it is 0, else it must be the one known for the name, if
 *  there is one. NULL, or an error. Any thread. */
XLA_FFI_Error* RegisterFfiType(const std::string& name, XLA_FFI_TypeId* id,
                               const XLA_FFI_TypeInfo* info);

/** Registers handlers, NULL where there are none, in the order of the stages. NULL, or an error:
 * for other handlers than those known for the name, and for handlers of another version. Any
 * thread. */
XLA_FFI_Error* RegisterFfiTarget(const std::string& name, XLA_FFI_Handler* const* handlers,
                                 int api_version);

}  // namespace kiln_jax

#endif  // KILN_JAX_PLUGIN_FFI_TABLE_H_
