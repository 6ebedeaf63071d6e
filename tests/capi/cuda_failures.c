/* A training on a GPU whose driver is the stand-in (tests/support/cuda): each call of the driver
 * fails once, memory runs out, and the GPU's work itself fails. The stand-in computes nothing. */
#include "standin.h"
#include "training.h"

static kiln_context* context_with(int32_t threads, int64_t gpu_memory_bytes) {
  kiln_context_options options = KILN_CONTEXT_OPTIONS_INIT;
  options.threads = threads;
  options.gpu_memory_bytes = gpu_memory_bytes;
  kiln_context* context = NULL;
  if (!OK(kiln_context_create(&options, &context))) exit(1);
  return context;
}

/* The program, to be loaded; NULL: it is compiled. */
static void* saved = NULL;
static size_t saved_bytes = 0;

/* From now on the program is loaded, which takes a tenth of the time. */
static void save_training(void) {
  standin.reset();
  kiln_context* context = context_with(2, 0);
  kiln_executable* executable = NULL;
  kiln_text* text = NULL;
  OK(compile_training(context, find_device(context, "GPU:0"), &executable));
  OK(kiln_executable_serialize(executable, &text));
  const char* bytes = kiln_text_data(text, &saved_bytes);
  saved = malloc(saved_bytes);
  memcpy(saved, bytes, saved_bytes);
  kiln_text_release(text);
  kiln_executable_release(executable);
  kiln_context_release(context);
}

/* Everything that a program does with a context; `executable` is made where it is NULL. */
static kiln_error* train_in(kiln_context* context, kiln_executable** executable, int asynchronous) {
  kiln_device* device = NULL;
  trained result;
  TRY(kiln_context_find_device(context, "GPU:0", 5, &device));
  if (!*executable) {
    TRY(saved ? kiln_executable_load(device, saved, saved_bytes, executable)
              : compile_training(context, device, executable));
  }
  return train(device, *executable, asynchronous, &result);
}

static void show(long long call, const kiln_error* error) {
  printf("  %lld: %s: %s\n", call, kiln_code_name(kiln_error_code(error)),
         kiln_error_message(error, NULL));
}

/* What an error of one call of the driver's may look like to the user: it names the call and says
 * what the driver says, unless there was no GPU to be found. */
static void expect_clear(long long call, const kiln_error* error, kiln_code code,
                         const char* driver_text) {
  const int found =
      kiln_error_code(error) == code && mentions(error, driver_text) && mentions(error, "cu");
  const int none = kiln_error_code(error) == KILN_NOT_FOUND && mentions(error, "'GPU:0'") &&
                   mentions(error, driver_text);
  /* Memory that could not be had in the first attempt and in the second. */
  const int exhausted = kiln_error_code(error) == KILN_RESOURCE_EXHAUSTED &&
                        code == KILN_RESOURCE_EXHAUSTED && mentions(error, "bytes");
  if (found || none || exhausted) return;
  printf("call %lld: not clear: %s: %s\n", call, kiln_code_name(kiln_error_code(error)),
         kiln_error_message(error, NULL));
  ++failed_checks;
}

/* After a failure that the device's context survives, everything works. */
static void each_call_once(const char* settings, int asynchronous, int stride, int error,
                           kiln_code code, const char* driver_text) {
  printf("%s, %s: %s\n", settings, asynchronous ? "asynchronous" : "synchronous", driver_text);
  long long failures = 0, tried = 0, calls = 0;
  for (long long n = 1;; n += stride, ++tried) {
    standin.reset();
    standin.configure(settings);
    standin.fail(NULL, n, 1, error);
    kiln_context* context = context_with(2, 0);
    kiln_executable* executable = NULL;
    kiln_error* first = train_in(context, &executable, asynchronous);
    calls = standin.count("calls");
    standin.fail(NULL, 0, 0, 0);
    if (first) {
      if (failures++ % 20 == 0) show(n, first);
      expect_clear(n, first, code, driver_text);
      if (kiln_error_code(first) != KILN_NOT_FOUND) {
        OK(train_in(context, &executable, asynchronous));
      }
      kiln_error_release(first);
    }
    kiln_executable_release(executable);
    kiln_context_release(context);
    expect_nothing_left(settings, n);
    if (calls < n || failed_checks > 20) break;
  }
  printf("  %lld of %lld calls made the program fail\n", failures, tried);
  CHECK(failures > tried / 4);
  CHECK(failures < tried);
}

/* After one that it does not survive, every later call of the device says so; other devices work,
 * and all can be given back. */
static void expect_lost(kiln_context* context, kiln_executable* executable) {
  kiln_device* gpu = find_device(context, "GPU:0");
  kiln_buffer* buffer = NULL;
  kiln_executable* other = NULL;
  const char* lost = "the device context is lost";
  FAILS(KILN_INTERNAL, lost, kiln_buffer_create(gpu, KILN_F32, kBias, 1, &buffer));
  FAILS(KILN_INTERNAL, lost, train_in(context, &other, 0));
  kiln_executable_release(other);
  if (executable) FAILS(KILN_INTERNAL, lost, train_in(context, &executable, 1));
  kiln_device* cpu = find_device(context, "CPU:0");
  trained result;
  other = NULL;
  if (OK(compile_training(context, cpu, &other))) OK(train(cpu, other, 0, &result));
  kiln_executable_release(other);
}

static void each_call_for_good(const char* settings, int asynchronous) {
  /* The calls of whose errors the manual says that they may be those of earlier work. */
  static const char* const symbols[] = {"cuStreamCreate",          "cuStreamSynchronize",
                                        "cuMemAlloc_v2",           "cuMemPoolCreate",
                                        "cuMemAllocHost_v2",       "cuMemAllocFromPoolAsync",
                                        "cuMemFreeAsync",          "cuMemcpyHtoDAsync_v2",
                                        "cuMemcpyDtoHAsync_v2",    "cuMemcpyDtoDAsync_v2",
                                        "cuMemsetD8Async",         "cuEventCreate",
                                        "cuEventRecord",           "cuEventSynchronize",
                                        "cuEventDestroy_v2",       "cuModuleLoadDataEx",
                                        "cuModuleGetFunction",     "cuLaunchKernel",
                                        "cuGraphCreate",           "cuGraphInstantiateWithFlags",
                                        "cuGraphAddKernelNode_v2", "cuGraphLaunch"};
  printf("%s, %s: the context is lost\n", settings, asynchronous ? "asynchronous" : "synchronous");
  int failures = 0;
  for (size_t s = 0; s < sizeof symbols / sizeof *symbols; ++s) {
    for (long long n = 1;; n *= 2) {
      standin.reset();
      standin.configure(settings);
      kiln_context* context = context_with(2, 0);
      standin.fail(symbols[s], n, 1, ILLEGAL_ADDRESS);
      kiln_executable* executable = NULL;
      kiln_error* first = train_in(context, &executable, asynchronous);
      const long long calls = standin.count(symbols[s]);
      standin.fail(NULL, 0, 0, 0);
      if (first) {
        if (failures++ % 20 == 0) show(n, first);
        CHECK(kiln_error_code(first) == KILN_INTERNAL);
        CHECK(mentions(first, "the device context is lost"));
        CHECK(mentions(first, "CUDA_ERROR_ILLEGAL_ADDRESS"));
        expect_lost(context, executable);
        kiln_error_release(first);
      }
      kiln_executable_release(executable);
      kiln_context_release(context);
      /* The driver lives on with what it was not asked to take back. */
      CHECK(standin.count("misuse") == 0 && standin.count("depth") == 0);
      standin.forget();
      if (calls < n || failed_checks > 20) break;
    }
  }
  CHECK(failures > 20);
}

/* The work itself fails, at the first launch, some time after it was asked for. */
static void work_fails(const char* settings, int asynchronous) {
  standin.reset();
  standin.configure(settings);
  kiln_context* context = context_with(2, 0);
  kiln_executable* executable = NULL;
  OK(train_in(context, &executable, asynchronous));
  standin.fail_work(ILLEGAL_ADDRESS);
  FAILS(KILN_INTERNAL, "CUDA_ERROR_ILLEGAL_ADDRESS", train_in(context, &executable, asynchronous));
  expect_lost(context, executable);
  kiln_executable_release(executable);
  kiln_context_release(context);
  expect_nothing_left(settings, 0);
  /* The driver's context has gone with ours: another one is as good as new. */
  context = context_with(2, 0);
  executable = NULL;
  OK(train_in(context, &executable, asynchronous));
  kiln_executable_release(executable);
  kiln_context_release(context);
  expect_nothing_left(settings, 0);
}

static kiln_error* there_and_back(kiln_device* gpu, float first, int64_t size, float* data) {
  kiln_buffer* buffer = NULL;
  for (int64_t i = 0; i < size; ++i) data[i] = first + (float)i;
  TRY(kiln_buffer_copy_host(gpu, KILN_F32, &size, 1, data, sizeof(float) * (size_t)size, &buffer));
  memset(data, 0, sizeof(float) * (size_t)size);
  kiln_error* error = kiln_buffer_copy_to_host(buffer, data, sizeof(float) * (size_t)size);
  for (int64_t i = 0; i < size && !error; ++i) {
    if (data[i] == first + (float)i) continue;
    printf("element %lld is %g\n", (long long)i, (double)data[i]);
    ++failed_checks;
    break;
  }
  kiln_buffer_release(buffer);
  return error;
}

/* A transfer that has failed half way does no harm to the next one: those go through memory that
 * the driver may still be using. */
static void transfers_after_failures(void) {
  enum { kSize = 3 << 20 }; /* three pieces */
  float* data = malloc(sizeof(float) * kSize);
  standin.reset();
  standin.configure("deferred=1");
  kiln_context* context = context_with(1, 0);
  kiln_device* gpu = find_device(context, "GPU:0");
  OK(there_and_back(gpu, 1, kSize, data));
  int failures = 0;
  for (long long n = 1;; ++n) {
    standin.fail(NULL, n, 1, INVALID_VALUE);
    kiln_error* error = there_and_back(gpu, 100, kSize, data);
    const long long calls = standin.count("calls");
    standin.fail(NULL, 0, 0, 0);
    failures += error != NULL;
    kiln_error_release(error);
    OK(there_and_back(gpu, (float)(n * 1000), kSize, data));
    if (calls < n) break;
  }
  CHECK(failures > 20);
  kiln_context_release(context);
  expect_nothing_left("transfers", 0);
  free(data);
}

/* Without memory, and with as much as is needed after all. */
static void out_of_memory(const char* settings, int64_t limit, const char* limit_text) {
  printf("%s, limit %lld\n", settings, (long long)limit);
  standin.reset();
  standin.configure(settings);
  kiln_context* context = context_with(2, limit);
  kiln_device* gpu = find_device(context, "GPU:0");
  kiln_executable* executable = NULL;
  OK(train_in(context, &executable, 0));
  const int64_t many = 1 << 18; /* 1 MiB */
  kiln_buffer* kept[16] = {NULL};
  kiln_error* error = NULL;
  int made = 0;
  while (made < 16 && !error) error = kiln_buffer_create(gpu, KILN_F32, &many, 1, &kept[made++]);
  if (!error) {
    printf("there is room for everything\n");
    ++failed_checks;
  } else {
    show(made, error);
    CHECK(kiln_error_code(error) == KILN_RESOURCE_EXHAUSTED);
    CHECK(mentions(error, "1048576 bytes asked for") && mentions(error, "in use"));
    CHECK(mentions(error, limit_text));
    kiln_error_release(error);
  }
  /* What is left is there to be used, and so is all of it once it has been given back. */
  kiln_memory_info memory = KILN_MEMORY_INFO_INIT;
  OK(kiln_device_memory(gpu, &memory));
  CHECK(memory.live_bytes >= (made - 1) * 4 * many && memory.limit_bytes == limit);
  for (int i = 0; i < 16; ++i) kiln_buffer_release(kept[i]);
  OK(train_in(context, &executable, 1));
  kiln_buffer* one = NULL;
  OK(kiln_buffer_create(gpu, KILN_F32, &many, 1, &one));
  kiln_buffer_release(one);
  /* Programs that do not fit say so, too. */
  const int64_t too_many = 1 << 20;
  kiln_graph* g = make_graph(context, "large");
  kiln_value x = f32_parameter(g, "x", 1);
  kiln_value wide = kiln_op_broadcast_like(g, kiln_op_reshape(g, x, NULL, 0),
                                           kiln_op_iota(g, 0, KILN_F32, &too_many, 1), NULL, 0);
  kiln_executable* large = compile_result(g, kiln_op_cosine(g, wide), gpu);
  const float value = 1;
  kiln_buffer* argument = f32_buffer(gpu, &value, 1);
  kiln_buffer* result = NULL;
  FAILS(KILN_RESOURCE_EXHAUSTED, "4194304 bytes asked for",
        kiln_executable_run(large, NULL, &argument, 1, &result, 1));
  CHECK(result == NULL);
  kiln_buffer_release(argument);
  kiln_executable_release(large);
  OK(train_in(context, &executable, 0));
  kiln_executable_release(executable);
  OK(kiln_device_memory(gpu, &memory));
  CHECK(memory.live_bytes == 0);
  kiln_context_release(context);
  expect_nothing_left(settings, 0);
}

int main(void) {
  open_standin();
  /* Three calls go with most of what is asked of the driver: the strides come by all of them. */
  each_call_once("deferred=1", 0, 1, INVALID_VALUE, KILN_INTERNAL, "CUDA_ERROR_INVALID_VALUE");
  save_training();
  each_call_once("deferred=1", 1, 2, INVALID_VALUE, KILN_INTERNAL, "CUDA_ERROR_INVALID_VALUE");
  each_call_once("pools=0", 0, 2, UNKNOWN, KILN_INTERNAL, "CUDA_ERROR_UNKNOWN");
  each_call_once("pools=0,deferred=1", 1, 1, OUT_OF_MEMORY, KILN_RESOURCE_EXHAUSTED,
                 "CUDA_ERROR_OUT_OF_MEMORY");
  each_call_for_good("deferred=1", 0);
  each_call_for_good("pools=0,deferred=1", 1);
  transfers_after_failures();
  work_fails("deferred=0", 0);
  work_fails("deferred=1", 0);
  work_fails("deferred=1,pools=0", 1);
  out_of_memory("memory_bytes=4000000", 0, "free of 4000000");
  out_of_memory("memory_bytes=4000000,pools=0,deferred=1", 0, "free of 4000000");
  out_of_memory("deferred=1", 4000000, "4000000");
  standin.reset();
  free(saved);
  return test_result();
}
