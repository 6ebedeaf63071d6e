// Errors of the C ABI: kiln_error, and the guard around every function that can fail.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "base/exception.h"
#include "base/ref.h"
#include "base/status.h"
#include "capi/handle.h"
#include "kiln/error.h"

struct kiln_error : kiln::Counted<kiln_error> {
  kiln_error(kiln::Code c, std::string_view m) : code(c), message(m) {}
  const kiln::Code code;
  const std::string message;
};

namespace kiln::capi {

// NULL for success. Without memory for the error, the static error that says so.
kiln_error* ToError(const Status& status) noexcept;

// Runs f() -> Status and returns its outcome; no exception crosses the ABI.
template <typename F>
kiln_error* Guard(F&& f) noexcept {
  try {
    return ToError(f());
  } catch (...) {
    return ToError(StatusOfException());
  }
}

// The same for functions with other results: `otherwise` if f throws.
template <typename T, typename F>
T GuardValue(T otherwise, F&& f) noexcept {
  try {
    return f();
  } catch (...) {
    return otherwise;
  }
}

// A parameter of the caller's.
struct NamedPointer {
  template <typename T>
  NamedPointer(std::string_view n, T* p) : name(n), pointer(p) {
    if constexpr (requires { Unwrap(p)->client().is_before_fork(); }) {
      is_before_fork = p && Unwrap(p)->client().is_before_fork();
    }
  }

  std::string_view name;
  const void* pointer;
  // Whether it is an object of another process's context.
  bool is_before_fork = false;
};
// Fails on the first pointer that is NULL: NotNull("kiln_graph_compile", {{"graph", graph}}); and
// on objects of a parent process.
Status NotNull(std::string_view function, std::initializer_list<NamedPointer> pointers);

// A pair of text and length of the user; NULL is allowed with length 0.
Result<std::string_view> TextOf(std::string_view name, const char* text, size_t length);

}  // namespace kiln::capi
