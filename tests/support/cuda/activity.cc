// The stand-in's CUPTI.
#include <chrono>
#include <cstring>

#include "state.h"

namespace kiln::device::cuda {
namespace {

// Another clock than the host's, as far as anyone can tell.
constexpr int64_t kClockOffset = 1'000'000'000'000'000'000;

constexpr CuptiResult kNotInitialised = static_cast<CuptiResult>(15);

// Records are longer than what is read of them, as those of other versions are.
struct LongKernelRecord : KernelRecord {
  uint8_t more[56];
};
struct LongCopyRecord : CopyRecord {
  uint8_t more[16];
};
struct LongFillRecord : FillRecord {
  uint8_t more[8];
};

int64_t Now() {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(
             std::chrono::steady_clock::now().time_since_epoch())
      .count();
}

size_t SizeOf(ActivityKind kind) {
  switch (kind) {
    case ActivityKind::kMemcpy:
      return sizeof(LongCopyRecord);
    case ActivityKind::kMemset:
      return sizeof(LongFillRecord);
    case ActivityKind::kKernel:
    case ActivityKind::kConcurrentKernel:
      return sizeof(LongKernelRecord);
  }
  return 0;
}

template <typename Record>
void Write(const Work& work, int64_t start, int64_t end, uint8_t* to) {
  Record record;
  std::memset(static_cast<void*>(&record), 0xee, sizeof(record));
  record.kind = work.activity.kind;
  record.start = static_cast<uint64_t>(start + kClockOffset);
  record.end = static_cast<uint64_t>(end + kClockOffset);
  record.context = work.context->number;
  record.stream = work.stream != nullptr ? work.stream->number : 7;
  record.correlation = work.activity.correlation;
  record.graph = work.activity.graph;
  if constexpr (requires { record.bytes; }) {
    record.bytes = static_cast<uint64_t>(work.activity.bytes);
  } else {
    record.name = TheState().profiler.names.insert(work.activity.name).first->c_str();
  }
  std::memcpy(to, &record, sizeof(record));
}

CuptiResult ResultOf(Error error) { return static_cast<CuptiResult>(error); }

}  // namespace

Activity CopyActivity(size_t bytes, uint32_t graph) {
  return {ActivityKind::kMemcpy, "", static_cast<int64_t>(bytes), graph, 0};
}

// A millisecond for each piece of work, or the real one.
int64_t State::Time() const { return settings.real_time != 0 ? Now() : time * 1'000'000; }

void State::CompleteBuffer() {
  if (profiler.buffer == nullptr) return;
  profiler.completed(nullptr, 0, profiler.buffer, profiler.bytes, profiler.filled);
  profiler.buffer = nullptr;
}

void State::Tell(const Work& work, int64_t start, int64_t end) {
  Profiler& p = profiler;
  if (p.kinds.count(work.activity.kind) == 0 || settings.drop_records != 0) return;
  const size_t size = SizeOf(work.activity.kind);
  if (p.buffer != nullptr && p.filled + size > p.bytes) CompleteBuffer();
  if (p.buffer == nullptr) {
    size_t most = 0;
    p.requested(&p.buffer, &p.bytes, &most);
    p.filled = 0;
    if (p.buffer == nullptr || most != 0) return;
  }
  uint8_t* to = p.buffer + p.filled;
  if (work.activity.kind == ActivityKind::kMemcpy) {
    Write<LongCopyRecord>(work, start, end, to);
  } else if (work.activity.kind == ActivityKind::kMemset) {
    Write<LongFillRecord>(work, start, end, to);
  } else {
    Write<LongKernelRecord>(work, start, end, to);
  }
  p.filled += size;
  ++p.records;
}

#define KILN_STANDIN_DECLARE(member, symbol, ...) \
  KILN_STANDIN_EXPORT CuptiResult symbol(__VA_ARGS__);
KILN_CUPTI_FUNCTIONS(KILN_STANDIN_DECLARE)
#undef KILN_STANDIN_DECLARE

#define KILN_STANDIN_CUPTI(symbol)    \
  Call call(#symbol, Call::kNothing); \
  if (call.error != Error::kSuccess) return ResultOf(call.error)

CuptiResult cuptiGetVersion(uint32_t* version) {
  KILN_STANDIN_CUPTI(cuptiGetVersion);
  *version = 26;
  return CuptiResult::kSuccess;
}

CuptiResult cuptiGetTimestamp(uint64_t* timestamp) {
  KILN_STANDIN_CUPTI(cuptiGetTimestamp);
  *timestamp = static_cast<uint64_t>(Now() + kClockOffset);
  return CuptiResult::kSuccess;
}

CuptiResult cuptiGetContextId(ContextHandle context, uint32_t* id) {
  KILN_STANDIN_CUPTI(cuptiGetContextId);
  if (call.state.Check(context) == nullptr) return CuptiResult::kInvalidParameter;
  *id = context->number;
  return CuptiResult::kSuccess;
}

CuptiResult cuptiGetStreamIdEx(ContextHandle, StreamHandle stream, uint8_t, uint32_t* id) {
  KILN_STANDIN_CUPTI(cuptiGetStreamIdEx);
  if (!CheckStream(call.state, stream)) return CuptiResult::kInvalidParameter;
  *id = stream != nullptr ? stream->number : 7;
  return CuptiResult::kSuccess;
}

CuptiResult cuptiActivityRegisterCallbacks(ActivityBufferRequested requested,
                                           ActivityBufferCompleted completed) {
  KILN_STANDIN_CUPTI(cuptiActivityRegisterCallbacks);
  call.state.profiler.requested = requested;
  call.state.profiler.completed = completed;
  return CuptiResult::kSuccess;
}

CuptiResult cuptiActivityEnable(ActivityKind kind) {
  KILN_STANDIN_CUPTI(cuptiActivityEnable);
  if (call.state.profiler.requested == nullptr) return kNotInitialised;
  call.state.profiler.kinds.insert(kind);
  return CuptiResult::kSuccess;
}

CuptiResult cuptiActivityDisable(ActivityKind kind) {
  KILN_STANDIN_CUPTI(cuptiActivityDisable);
  call.state.profiler.kinds.erase(kind);
  return CuptiResult::kSuccess;
}

CuptiResult cuptiActivityFlushAll(uint32_t flag) {
  KILN_STANDIN_CUPTI(cuptiActivityFlushAll);
  // A buffer with a record of work that is under way stays.
  for (const Work& work : call.state.queue) {
    if (work.activity.bytes > 0 && flag != kFlushForced) return CuptiResult::kSuccess;
  }
  call.state.CompleteBuffer();
  return CuptiResult::kSuccess;
}

// Called while a buffer is completed: with the lock.
CuptiResult cuptiActivityGetNextRecord(uint8_t* buffer, size_t bytes, ActivityRecord** record) {
  auto* last = reinterpret_cast<uint8_t*>(*record);
  uint8_t* next = last == nullptr ? buffer : last + SizeOf((*record)->kind);
  if (next >= buffer + bytes) return CuptiResult::kMaxLimitReached;
  *record = reinterpret_cast<ActivityRecord*>(next);
  return CuptiResult::kSuccess;
}

}  // namespace kiln::device::cuda
