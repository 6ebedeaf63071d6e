// Runs of instances, and their frame.
#include <cstring>
#include <string_view>

#include "base/float_environment.h"
#include "rt/error.h"
#include "rt/instance.h"
#include "runtime/launch.h"

namespace kiln::rt {
namespace {

// frame->host points to it.
struct Run {
  const kiln_aot_instance& instance;
  kiln_aot_error error;
  bool failed = false;  // set by the first failure, under `busy`
  bool busy = false;
};

Run& RunOf(const kiln_frame* frame) { return *static_cast<Run*>(frame->host); }

// Kernels on several threads may fail at once; the first failure counts.
int32_t FailOnce(const kiln_frame* frame, int32_t code, const char* message, int64_t size) {
  Run& run = RunOf(frame);
  while (__atomic_test_and_set(&run.busy, __ATOMIC_ACQUIRE)) {
  }
  if (!run.failed) {
    run.failed = true;
    Fail(&run.error, static_cast<Code>(code), std::string_view(message, static_cast<size_t>(size)));
  }
  __atomic_clear(&run.busy, __ATOMIC_RELEASE);
  return code;
}

void RunParallel(const kiln_frame* frame, kiln_kernel_fn kernel, void* const* args, int64_t items,
                 int64_t tasks, int64_t slice) {
  kiln_aot_pool* pool = RunOf(frame).instance.pool;
  runtime::ParallelFor<runtime::RunRange>(
      frame, kernel, args, items, tasks, slice,
      [pool](int64_t count, void (*work)(void*, int64_t), void* context) {
        pool->run(pool, count, work, context);
      });
}

// By bisection.
const kiln_aot_call_step* StepOf(const kiln_aot_code& code, int64_t launch) {
  const kiln_aot_call_step *first = code.calls, *last = code.calls + code.call_count;
  while (first != last) {
    const kiln_aot_call_step* middle = first + (last - first) / 2;
    if (middle->launch == launch) return middle;
    if (middle->launch < launch) {
      first = middle + 1;
    } else {
      last = middle;
    }
  }
  return nullptr;
}

int32_t Call(const kiln_frame* frame, int32_t launch, void* const* args, const void*, int64_t) {
  const kiln_aot_instance& instance = RunOf(frame).instance;
  kiln_aot_error error;
  error.code = 0;
  error.text[0] = 0;
  int32_t code = 0;
  const kiln_aot_call_step* step = StepOf(*instance.code, launch);
  if (!step) {
    code = Fail(&error, Code::kInternal, "there is no call ", int64_t{launch});
  } else if (step->library) {
    code = step->library->run(instance.states[step - instance.code->calls], frame, args, &error);
  } else {
    code = step->function(&step->call, args, &error);
  }
  if (code == 0) return 0;
  kiln_aot_error named;
  Fail(&named, static_cast<Code>(code), step ? step->call.name : "", ": ",
       error.text[0] ? error.text : "it failed");
  return FailOnce(frame, code, named.text, static_cast<int64_t>(std::strlen(named.text)));
}

void Trace(const kiln_frame*, int32_t) {}

constexpr kiln_frame_table kTable = {
    .parallel_for = RunParallel,
    .call = Call,
    .trace_begin = Trace,
    .trace_end = Trace,
    .fail = FailOnce,
    .launch = runtime::Launch,
};

int32_t Enter(const kiln_aot_instance& instance, kiln_entry_fn entry, kiln_aot_error* error) {
  Run run{.instance = instance, .error = {}};
  kiln_frame frame{};
  frame.buffers = instance.buffers;
  frame.table = &kTable;
  frame.host = &run;
  frame.threads = instance.pool && instance.pool->threads > 1 ? instance.pool->threads : 1;
  DefaultFloatEnvironment environment;
  const int32_t code = entry(&frame);
  if (code == 0 && !run.failed) return 0;
  if (!run.failed) return Fail(error, static_cast<Code>(code), "the program failed");
  if (error) *error = run.error;
  return run.error.code;
}

// A failure where the address of an array does not fit.
int32_t CheckAddress(const kiln_aot_array& array, int64_t alignment, const char* kind,
                     int64_t number, const void* address, kiln_aot_error* error) {
  if (array.byte_size == 0) return 0;
  const auto value = reinterpret_cast<uintptr_t>(address);
  if (address && value % static_cast<uintptr_t>(alignment) == 0) return 0;
  auto fail = [&](auto... pieces) {
    return Fail(error, Code::kInvalidArgument, kind, " ", number, *array.name ? " '" : "",
                array.name, *array.name ? "' " : " ", pieces...);
  };
  if (!address) return fail("is NULL");
  return fail("is not aligned to ", alignment, " bytes");
}

int32_t CheckArrays(const kiln_aot_program& program, const void* const* arguments,
                    void* const* results, kiln_aot_error* error) {
  if ((!arguments && program.argument_count > 0) || (!results && program.result_count > 0)) {
    return Fail(error, Code::kInvalidArgument, "kiln_aot_run: a list of addresses is NULL");
  }
  for (int32_t i = 0; i < program.argument_count; ++i) {
    const kiln_aot_array& array = program.arguments[i];
    if (int32_t code = CheckAddress(array, array.alignment, "argument", i, arguments[i], error)) {
      return code;
    }
  }
  for (int32_t i = 0; i < program.result_count; ++i) {
    if (int32_t code =
            CheckAddress(program.results[i], KILN_AOT_ALIGNMENT, "result", i, results[i], error)) {
      return code;
    }
  }
  return 0;
}

}  // namespace

int32_t MakeConstants(const kiln_aot_instance& instance, kiln_aot_error* error) {
  const kiln_entry_fn prologue = instance.code->prologue;
  return prologue ? Enter(instance, prologue, error) : 0;
}

}  // namespace kiln::rt

int32_t kiln_aot_run(kiln_aot_instance* instance, const void* const* arguments,
                     void* const* results, kiln_aot_error* error) {
  if (!instance) {
    return kiln::rt::Fail(error, kiln::Code::kInvalidArgument, "kiln_aot_run: no instance");
  }
  const kiln_aot_program& program = *instance->program;
  const kiln_aot_code& code = *instance->code;
  if (int32_t failure = kiln::rt::CheckArrays(program, arguments, results, error)) return failure;
  for (int64_t i = 0; i < code.buffer_count; ++i) {
    const kiln_aot_buffer& buffer = code.buffers[i];
    if (buffer.kind == KILN_AOT_PARAMETER) {
      instance->buffers[i] = const_cast<void*>(arguments[buffer.number]);
    } else if (buffer.kind == KILN_AOT_RESULT) {
      instance->buffers[i] = results[buffer.number];
    }
  }
  for (int32_t i = 0; i < program.result_count; ++i) {
    // Its initial value is the argument's.
    const kiln_aot_array& result = program.results[i];
    if (result.alias < 0 || results[i] == arguments[result.alias] || result.byte_size == 0)
      continue;
    std::memcpy(results[i], arguments[result.alias], static_cast<size_t>(result.byte_size));
  }
  return kiln::rt::Enter(*instance, code.entry, error);
}
