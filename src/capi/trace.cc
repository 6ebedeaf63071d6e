#include "capi/trace.h"

#include <utility>
#include <vector>

#include "base/xspace.h"
#include "capi/error.h"
#include "capi/options.h"
#include "capi/text.h"
#include "client/run_metadata.h"

struct kiln_run_metadata : kiln::Counted<kiln_run_metadata> {
 public:
  kiln_run_metadata(kiln::client::Client& client, std::vector<kiln::client::OpMetadata> ops)
      : client_(kiln::Ref<kiln::client::Client>::Share(&client)), ops_(std::move(ops)) {}

  kiln::client::Client& client() const { return *client_; }
  const std::vector<kiln::client::OpMetadata>& ops() const { return ops_; }

 private:
  kiln::Ref<kiln::client::Client> client_;
  const std::vector<kiln::client::OpMetadata> ops_;
};

using kiln::InvalidArgument;
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

kiln_error* kiln_trace_create(kiln_context* context, kiln_trace** trace) {
  return Guard([&]() -> Status {
    KILN_RETURN_IF_ERROR(NotNull("kiln_trace_create", {{"context", context}, {"trace", trace}}));
    *trace = kiln::capi::HandOver(kiln::MakeRef<kiln_trace>(*kiln::capi::Unwrap(context)));
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

kiln_error* kiln_trace_to_xspace(const kiln_trace* trace, kiln_text** bytes) {
  return Guard([&]() -> Status {
    KILN_RETURN_IF_ERROR(NotNull("kiln_trace_to_xspace", {{"trace", trace}, {"bytes", bytes}}));
    *bytes = new kiln_text(kiln::ToXSpace(*trace->sink()));
    return OkStatus();
  });
}

void kiln_trace_retain(kiln_trace* trace) { kiln::capi::RetainHandle(trace); }

void kiln_trace_release(kiln_trace* trace) { kiln::capi::ReleaseHandle(trace); }

kiln_error* kiln_trace_metadata(const kiln_trace* trace, kiln_run_metadata** metadata) {
  return Guard([&]() -> Status {
    KILN_RETURN_IF_ERROR(
        NotNull("kiln_trace_metadata", {{"trace", trace}, {"metadata", metadata}}));
    *metadata = kiln::capi::HandOver(
        kiln::MakeRef<kiln_run_metadata>(trace->client(), kiln::client::Summarise(*trace->sink())));
    return OkStatus();
  });
}

size_t kiln_run_metadata_count(const kiln_run_metadata* metadata) {
  return metadata ? metadata->ops().size() : 0;
}

kiln_error* kiln_run_metadata_get(const kiln_run_metadata* metadata, size_t index,
                                  kiln_op_metadata* op) {
  return Guard([&]() -> Status {
    KILN_RETURN_IF_ERROR(NotNull("kiln_run_metadata_get", {{"metadata", metadata}, {"op", op}}));
    if (index >= metadata->ops().size()) {
      return InvalidArgument("kiln_run_metadata_get: there is no row ", index, "; there are ",
                             metadata->ops().size());
    }
    const kiln::client::OpMetadata& row = metadata->ops()[index];
    kiln_op_metadata told = KILN_OP_METADATA_INIT;
    told.op = row.op.c_str();
    told.op_length = row.op.size();
    told.device = row.device.c_str();
    told.device_length = row.device.size();
    told.kind = row.kind.data();
    told.count = row.count;
    told.nanoseconds = row.nanoseconds;
    told.bytes = row.bytes;
    told.flops = row.flops;
    return kiln::capi::WriteStruct("kiln_op_metadata", told, op);
  });
}

void kiln_run_metadata_retain(kiln_run_metadata* metadata) { kiln::capi::RetainHandle(metadata); }

void kiln_run_metadata_release(kiln_run_metadata* metadata) { kiln::capi::ReleaseHandle(metadata); }
