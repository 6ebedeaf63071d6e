#include "plugin/error.h"

#include <utility>

namespace kiln_jax {

PJRT_Error* OutOfMemory() {
  // Short enough to be stored without an allocation.
  static PJRT_Error error{nullptr, PJRT_Error_Code_RESOURCE_EXHAUSTED, "out of memory"};
  return &error;
}

PJRT_Error* MakeError(PJRT_Error_Code code, std::string message) {
  PJRT_Error* error = new (std::nothrow) PJRT_Error{nullptr, code, std::move(message)};
  return error == nullptr ? OutOfMemory() : error;
}

PJRT_Error* CopyError(const kiln_error* error) {
  if (error == nullptr) return nullptr;
  size_t length = 0;
  const char* message = kiln_error_message(error, &length);
  try {
    return MakeError(static_cast<PJRT_Error_Code>(kiln_error_code(error)), {message, length});
  } catch (const std::bad_alloc&) {
    return OutOfMemory();
  }
}

PJRT_Error* TakeError(kiln_error* error) {
  PJRT_Error* copy = CopyError(error);
  kiln_error_release(error);
  return copy;
}

void ErrorDestroy(PJRT_Error_Destroy_Args* args) {
  if (args != nullptr && args->error != OutOfMemory()) delete args->error;
}

void ErrorMessage(PJRT_Error_Message_Args* args) {
  if (args == nullptr) return;
  args->message = args->error == nullptr ? "" : args->error->message.c_str();
  args->message_size = args->error == nullptr ? 0 : args->error->message.size();
}

PJRT_Error* ErrorGetCode(PJRT_Error_GetCode_Args* args) {
  args->code = args->error == nullptr ? PJRT_Error_Code_OK : args->error->code;
  return nullptr;
}

PJRT_Error* ErrorForEachPayload(PJRT_Error_ForEachPayload_Args*) {
  return nullptr;  // errors have no payloads
}

}  // namespace kiln_jax
