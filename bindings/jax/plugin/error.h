/** @file
 *  Errors of the plugin, and the frame of all its functions. */
#ifndef KILN_JAX_PLUGIN_ERROR_H_
#define KILN_JAX_PLUGIN_ERROR_H_

#include <new>
#include <string>

#include "kiln/error.h"
#include "plugin/api/event.h"

/** An error that belongs to the caller of the plugin. */
struct PJRT_Error {
  const void* vtable = nullptr;  // a table of functions since 0.107; callers take NULL for none
  PJRT_Error_Code code;
  std::string message;
};

namespace kiln_jax {

/** Makes an error. Without memory for it, the static error that says so. */
PJRT_Error* MakeError(PJRT_Error_Code code, std::string message);

inline PJRT_Error* InvalidArgument(std::string message) {
  return MakeError(PJRT_Error_Code_INVALID_ARGUMENT, std::move(message));
}
inline PJRT_Error* UnimplementedError(std::string message) {
  return MakeError(PJRT_Error_Code_UNIMPLEMENTED, std::move(message));
}

/** The library's error as the plugin's; NULL for NULL. */
PJRT_Error* CopyError(const kiln_error* error);

/** The same, and releases `error`. */
PJRT_Error* TakeError(kiln_error* error);

/** The static error for a failure of an allocation. */
PJRT_Error* OutOfMemory();

void ErrorDestroy(PJRT_Error_Destroy_Args* args);
void ErrorMessage(PJRT_Error_Message_Args* args);
PJRT_Error* ErrorGetCode(PJRT_Error_GetCode_Args* args);
PJRT_Error* ErrorForEachPayload(PJRT_Error_ForEachPayload_Args* args);

/** The size of the arguments in the oldest supported callers. Published sizes end with the last
 *  member, without the padding after it. */
template <typename Args>
constexpr size_t kOldestSize = sizeof(Args) - (alignof(Args) - 1);

/** An entry of the table: `function` with its arguments checked, and exceptions made errors. */
template <typename Args, PJRT_Error* (*function)(Args*)>
PJRT_Error* Entry(Args* args) {
  try {
    if (args == nullptr) return InvalidArgument("the arguments are NULL");
    if (args->struct_size < kOldestSize<Args>) {
      return InvalidArgument("struct_size is " + std::to_string(args->struct_size) +
                             ", less than " + std::to_string(kOldestSize<Args>));
    }
    return function(args);
  } catch (const std::bad_alloc&) {
    return OutOfMemory();
  } catch (...) {
    return MakeError(PJRT_Error_Code_INTERNAL, "an exception in the plugin");
  }
}

}  // namespace kiln_jax

#endif  // KILN_JAX_PLUGIN_ERROR_H_
