// Status and Result<T>: the library's internal error reporting. The only exception is bad_alloc.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "base/strings.h"

namespace kiln {

// The canonical codes of gRPC and PJRT, by number; kiln_code in the C ABI has the same values.
enum class Code : int32_t {
  kOk = 0,
  kCancelled = 1,
  kUnknown = 2,
  kInvalidArgument = 3,
  kDeadlineExceeded = 4,
  kNotFound = 5,
  kAlreadyExists = 6,
  kPermissionDenied = 7,
  kResourceExhausted = 8,
  kFailedPrecondition = 9,
  kAborted = 10,
  kOutOfRange = 11,
  kUnimplemented = 12,
  kInternal = 13,
  kUnavailable = 14,
  kDataLoss = 15,
};

// "INVALID_ARGUMENT" and so on.
std::string_view CodeName(Code code);

// Success, or a code with a message. Cheap to move and to test; success allocates nothing.
class [[nodiscard]] Status {
 public:
  Status() = default;
  Status(Code code, std::string message);

  bool ok() const { return state_ == nullptr; }
  Code code() const { return state_ ? state_->code : Code::kOk; }
  std::string_view message() const { return state_ ? std::string_view(state_->message) : ""; }
  // "INVALID_ARGUMENT: message", or "OK".
  std::string ToString() const;
  // The same failure with `prefix` and ": " put in front of its message.
  Status WithContext(std::string_view prefix) const;

 private:
  struct State {
    Code code;
    std::string message;
  };
  std::shared_ptr<const State> state_;
};

inline Status OkStatus() { return Status(); }

#define KILN_DEFINE_ERROR(Name)                 \
  template <typename... Args>                   \
  Status Name(const Args&... args) {            \
    return Status(Code::k##Name, Cat(args...)); \
  }
KILN_DEFINE_ERROR(Cancelled)
KILN_DEFINE_ERROR(InvalidArgument)
KILN_DEFINE_ERROR(NotFound)
KILN_DEFINE_ERROR(AlreadyExists)
KILN_DEFINE_ERROR(ResourceExhausted)
KILN_DEFINE_ERROR(FailedPrecondition)
KILN_DEFINE_ERROR(OutOfRange)
KILN_DEFINE_ERROR(Unimplemented)
KILN_DEFINE_ERROR(Internal)
KILN_DEFINE_ERROR(Unavailable)
KILN_DEFINE_ERROR(DataLoss)
#undef KILN_DEFINE_ERROR

// A value or an error.
template <typename T>
class [[nodiscard]] Result {
 public:
  Result(Status status) : status_(std::move(status)) {}  // NOLINT: implicit by design
  Result(T value) : value_(std::move(value)) {}          // NOLINT: implicit by design
  template <typename U>
  requires std::is_constructible_v<T, U&&> &&
      (!std::is_same_v<std::decay_t<U>, T>)&&(!std::is_same_v<std::decay_t<U>, Status>)&&(
          !std::is_same_v<std::decay_t<U>, Result<T>>)&&std::is_convertible_v<U&&,
                                                                              T> Result(U&& value)
      : value_(std::forward<U>(value)) {}  // NOLINT: implicit by design

  bool ok() const { return value_.has_value(); }
  const Status& status() const { return status_; }
  T& value() & { return *value_; }
  const T& value() const& { return *value_; }
  T&& value() && { return *std::move(value_); }
  T& operator*() & { return *value_; }
  const T& operator*() const& { return *value_; }
  T&& operator*() && { return *std::move(value_); }
  T* operator->() { return &*value_; }
  const T* operator->() const { return &*value_; }

 private:
  Status status_;
  std::optional<T> value_;
};

#define KILN_CONCAT_(a, b) a##b
#define KILN_CONCAT(a, b) KILN_CONCAT_(a, b)

#define KILN_RETURN_IF_ERROR(expr)                                                     \
  do {                                                                                 \
    if (::kiln::Status kiln_status_ = (expr); !kiln_status_.ok()) return kiln_status_; \
  } while (0)

#define KILN_ASSIGN_OR_RETURN(lhs, expr) \
  KILN_ASSIGN_OR_RETURN_(KILN_CONCAT(kiln_result_, __LINE__), lhs, expr)
#define KILN_ASSIGN_OR_RETURN_(tmp, lhs, expr) \
  auto tmp = (expr);                           \
  if (!tmp.ok()) return tmp.status();          \
  lhs = *std::move(tmp)

}  // namespace kiln
