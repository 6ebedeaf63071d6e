// The user's recordings.
#pragma once

#include <memory>

#include "base/trace.h"
#include "capi/handle.h"
#include "kiln/trace.h"

struct kiln_trace : kiln::Counted<kiln_trace> {
 public:
  explicit kiln_trace(kiln::client::Client& client)
      : client_(kiln::Ref<kiln::client::Client>::Share(&client)) {}
  ~kiln_trace() { Stop(); }

  kiln::client::Client& client() const { return *client_; }
  const std::shared_ptr<kiln::TraceSink>& sink() const { return sink_; }
  // Ends the recording of the whole client, if this is it.
  void Stop() noexcept { client_->StopTrace(sink_.get()); }

 private:
  kiln::Ref<kiln::client::Client> client_;
  std::shared_ptr<kiln::TraceSink> sink_ = std::make_shared<kiln::TraceSink>();
};
