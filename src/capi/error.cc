#include "capi/error.h"

#include "base/strings.h"
#include "base/utf8.h"

namespace kiln::capi {
namespace {

// Needs no memory (its message fits into the string itself), and is never freed: callers' releases
// leave the first reference.
kiln_error* OutOfMemory() noexcept {
  static kiln_error error(Code::kResourceExhausted, "out of memory");
  error.Retain();
  return &error;
}

}  // namespace

kiln_error* ToError(const Status& status) noexcept {
  if (status.ok()) return nullptr;
  try {
    // Messages may quote arbitrary bytes.
    const std::string_view message = status.message();
    if (!IsUtf8(message)) return new kiln_error(status.code(), ToUtf8(message));
    return new kiln_error(status.code(), message);
  } catch (...) {
    return OutOfMemory();
  }
}

Status NotNull(std::string_view function, std::initializer_list<NamedPointer> pointers) {
  for (const NamedPointer& p : pointers) {
    if (!p.pointer) return InvalidArgument(function, ": ", p.name, " is NULL");
    if (p.is_before_fork) {
      return FailedPrecondition(function, ": the context of ", p.name,
                                " was made before fork(); a child process makes one of its own");
    }
  }
  return OkStatus();
}

Result<std::string_view> TextOf(std::string_view name, const char* text, size_t length) {
  if (!text && length > 0) return InvalidArgument(name, " is NULL, with a length of ", length);
  return std::string_view(text ? text : "", length);
}

}  // namespace kiln::capi

kiln_error* kiln_error_create(kiln_code code, const char* message, size_t length) {
  return kiln::capi::Guard([&]() -> kiln::Status {
    KILN_ASSIGN_OR_RETURN(std::string_view text, kiln::capi::TextOf("message", message, length));
    // Other numbers have the name of UNKNOWN.
    auto known = static_cast<kiln::Code>(code);
    if (kiln::CodeName(known) == kiln::CodeName(kiln::Code::kUnknown)) known = kiln::Code::kUnknown;
    return kiln::Status(known, std::string(text));
  });
}

kiln_code kiln_error_code(const kiln_error* error) {
  return error ? static_cast<kiln_code>(error->code) : KILN_OK;
}

const char* kiln_error_message(const kiln_error* error, size_t* length) {
  if (length) *length = error ? error->message.size() : 0;
  return error ? error->message.c_str() : "";
}

void kiln_error_retain(kiln_error* error) {
  if (error) error->Retain();
}

void kiln_error_release(kiln_error* error) {
  if (error) error->Release();
}

// CodeName's views are null-terminated literals.
const char* kiln_code_name(kiln_code code) {
  return kiln::CodeName(static_cast<kiln::Code>(code)).data();
}
