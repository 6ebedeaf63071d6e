#include "kiln/trace.h"

#include <memory>

#include "base/trace.h"
#include "capi/error.h"
#include "capi/handle.h"
#include "capi/text.h"

struct kiln_trace : kiln::Counted<kiln_trace> {
 public:
  explicit kiln_trace(kiln::client::Client& client)
      : client_(kiln::Ref<kiln::client::Client>::Share(&client)) {}
  ~kiln_trace() { Stop(); }

  kiln::client::Client& client() const { return *client_; }
  const std::shared_ptr<kiln::TraceSink>& sink() const { return sink_; }
  void Stop() noexcept { client_->StopTrace(sink_.get()); }

 private:
  kiln::Ref<kiln::client::Client> client_;
  std::shared_ptr<kiln::TraceSink> sink_ = std::make_shared<kiln::TraceSink>();
};

using kiln::OkStatus;
using kiln::Status;
using kiln::capi::Guard;
using kiln::capi::NotNull;

kiln_error* kiln_trace_start(kiln_context* context, kiln_trace** trace) {
  return Guard([&]() -> Status {
    KILN_RETURN_IF_ERROR(NotNull("kiln_trace_start", {{"context", context}, {"trace", trace}}));
    kiln::client::Client& client = *kiln::capi::Unwrap(context);
    auto started = kiln::MakeRef<kiln_trace>(client);
    KILN_RETURN_IF_ERROR(client.StartTrace(started->sink()));
    *trace = kiln::capi::HandOver(std::move(started));
    return OkStatus();
  });
}

kiln_error* kiln_trace_stop(kiln_trace* trace) {
  return Guard([&]() -> Status {
    KILN_RETURN_IF_ERROR(NotNull("kiln_trace_stop", {{"trace", trace}}));
    trace->Stop();
    return OkStatus();
  });
}

kiln_error* kiln_trace_to_json(const kiln_trace* trace, kiln_text** text) {
  return Guard([&]() -> Status {
    KILN_RETURN_IF_ERROR(NotNull("kiln_trace_to_json", {{"trace", trace}, {"text", text}}));
    *text = new kiln_text(trace->sink()->ToChromeJson());
    return OkStatus();
  });
}

void kiln_trace_retain(kiln_trace* trace) { kiln::capi::RetainHandle(trace); }

void kiln_trace_release(kiln_trace* trace) { kiln::capi::ReleaseHandle(trace); }
