// The stand-in's streams and events.
#include "state.h"

namespace kiln::device::cuda {

Error cuStreamCreate(StreamHandle* stream, unsigned flags) {
  KILN_STANDIN_CALL(cuStreamCreate, kContext);
  if (flags > kStreamNonBlocking) return Error::kInvalidValue;
  *stream = call.state.Make<StreamObject>(call.context);
  return Error::kSuccess;
}

Error cuStreamDestroy_v2(StreamHandle stream) {
  KILN_STANDIN_CALL(cuStreamDestroy_v2, kContext);
  if (call.state.Check(stream) == nullptr) return Error::kInvalidHandle;
  call.state.RunStream(stream, stream->context);
  call.state.Delete(stream);
  return Error::kSuccess;
}

Error cuStreamSynchronize(StreamHandle stream) {
  KILN_STANDIN_CALL(cuStreamSynchronize, kContext);
  if (!CheckStream(call.state, stream)) return Error::kInvalidHandle;
  call.state.RunStream(stream, call.context);
  return call.context->lost;
}

Error cuStreamWaitEvent(StreamHandle stream, EventHandle event, unsigned flags) {
  KILN_STANDIN_CALL(cuStreamWaitEvent, kContext);
  if (!CheckStream(call.state, stream) || call.state.Check(event) == nullptr) {
    return Error::kInvalidHandle;
  }
  if (stream != nullptr) ++stream->waits;
  // Work is done in the order in which it was asked for: the event comes before.
  return flags == 0 ? Error::kSuccess : Error::kInvalidValue;
}

Error cuLaunchHostFunc(StreamHandle stream, HostFunction function, void* data) {
  KILN_STANDIN_CALL(cuLaunchHostFunc, kContext);
  if (!CheckStream(call.state, stream)) return Error::kInvalidHandle;
  if (function == nullptr) return Error::kInvalidValue;
  call.state.Enqueue(stream, [=] {
    function(data);
    return Error::kSuccess;
  });
  return Error::kSuccess;
}

Error cuStreamGetCtx(StreamHandle stream, ContextHandle* context) {
  KILN_STANDIN_CALL(cuStreamGetCtx, kContext);
  if (!CheckStream(call.state, stream)) return Error::kInvalidHandle;
  *context = stream != nullptr ? stream->context : call.context;
  return Error::kSuccess;
}

Error cuEventCreate(EventHandle* event, unsigned flags) {
  KILN_STANDIN_CALL(cuEventCreate, kContext);
  if (flags != kEventDefault && flags != kEventDisableTiming) return Error::kInvalidValue;
  *event = call.state.Make<EventObject>(call.context, flags == kEventDefault);
  return Error::kSuccess;
}

Error cuEventDestroy_v2(EventHandle event) {
  KILN_STANDIN_CALL(cuEventDestroy_v2, kContext);
  if (call.state.Check(event) == nullptr) return Error::kInvalidHandle;
  call.state.Delete(event);
  return Error::kSuccess;
}

Error cuEventRecord(EventHandle event, StreamHandle stream) {
  KILN_STANDIN_CALL(cuEventRecord, kContext);
  if (!CheckStream(call.state, stream) || call.state.Check(event) == nullptr) {
    return Error::kInvalidHandle;
  }
  State& state = call.state;
  ++event->state->pending;
  state.Enqueue(stream, [&state, recorded = event->state] {
    --recorded->pending;
    recorded->time = state.Time();
    return Error::kSuccess;
  });
  return Error::kSuccess;
}

Error cuEventQuery(EventHandle event) {
  KILN_STANDIN_CALL(cuEventQuery, kContext);
  if (call.state.Check(event) == nullptr) return Error::kInvalidHandle;
  if (event->state->pending == 0) return Error::kSuccess;
  // Time goes by for those who poll.
  call.state.RunOne();
  return call.context->lost != Error::kSuccess ? call.context->lost : Error::kNotReady;
}

Error cuEventSynchronize(EventHandle event) {
  KILN_STANDIN_CALL(cuEventSynchronize, kContext);
  if (call.state.Check(event) == nullptr) return Error::kInvalidHandle;
  while (event->state->pending > 0 && call.context->lost == Error::kSuccess) {
    if (!call.state.RunOne()) break;
  }
  return call.context->lost;
}

Error cuEventElapsedTime(float* milliseconds, EventHandle from, EventHandle to) {
  KILN_STANDIN_CALL(cuEventElapsedTime, kContext);
  if (call.state.Check(from) == nullptr || call.state.Check(to) == nullptr || !from->timed ||
      !to->timed) {
    return Error::kInvalidHandle;
  }
  if (from->state->pending > 0 || to->state->pending > 0) return Error::kNotReady;
  *milliseconds = static_cast<float>(to->state->time - from->state->time) / 1e6f;
  return Error::kSuccess;
}

}  // namespace kiln::device::cuda
