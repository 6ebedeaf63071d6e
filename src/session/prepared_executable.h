// A prepared run of a session, as the executable of an execution.
#pragma once

#include <memory>
#include <string>
#include <utility>

#include "client/executable.h"
#include "session/session.h"

namespace kiln::session {

class PreparedExecutable final : public client::Executable {
 public:
  // `number` is Session::Prepare's.
  PreparedExecutable(std::string name, client::Device& device, std::shared_ptr<Session> session,
                     int number)
      : Executable(std::move(name), device),
        session_(std::move(session)),
        number_(number),
        signature_(session_->SignatureOf(number)) {}

  const RunInfo& info() const { return session_->InfoOf(number_); }
  const program::Signature& signature() const override { return signature_; }
  bool calls_users_functions() const override { return session_->CallsUsersFunctions(number_); }
  Result<std::unique_ptr<runtime::Completion>> Start(
      std::span<const void* const> arguments, std::span<void* const> results,
      const runtime::RunOptions& options) const override {
    KILN_RETURN_IF_ERROR(session_->Run(number_, arguments, results, options));
    return std::unique_ptr<runtime::Completion>();
  }

 private:
  const std::shared_ptr<Session> session_;
  const int number_;
  const program::Signature& signature_;
};

}  // namespace kiln::session
