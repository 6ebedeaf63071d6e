/* Executables as files: saved, loaded in other processes, whose constants are the file's pages, and
 * refused. */
#define _GNU_SOURCE
#include <dirent.h>
#include <stdint.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "testing.h"

enum { kRows = 8, kWidth = 1024 };
static const int64_t kConstantBytes = (int64_t)kWidth * kWidth * 4;

static char folder[] = "/tmp/kiln-saved-XXXXXX";
static char path[64], cache[64];

/* Keeps compiled programs in the cache, or does not. */
static kiln_context* new_context(int caches) {
  kiln_context_options options = KILN_CONTEXT_OPTIONS_INIT;
  kiln_context* context = NULL;
  options.gpu = KILN_GPU_EMULATED;
  options.threads = 1;
  if (caches) {
    options.cache_folder = cache;
    options.cache_folder_length = strlen(cache);
  }
  OK(kiln_context_create(&options, &context));
  return context;
}

/* x dot w + b: w is packed, b is read as it is. */
static kiln_executable* compile(kiln_context* context, kiln_device* device) {
  static float weights[kWidth * kWidth];
  const int64_t square[] = {kWidth, kWidth}, wide[] = {kRows, kWidth}, one = 1, zero = 0;
  kiln_graph* g = make_graph(context, "model");
  kiln_executable* executable = NULL;
  for (int i = 0; i < kWidth * kWidth; ++i) weights[i] = (float)(i * 7 % 1000) / 1000;
  kiln_value x = kiln_op_parameter(g, KILN_F32, wide, 2, "x", 1);
  kiln_value w = kiln_op_constant(g, KILN_F32, square, 2, weights, sizeof weights);
  kiln_value b = kiln_op_constant(g, KILN_F32, wide, 2, weights, kRows * kWidth * sizeof(float));
  x = kiln_op_add(g, kiln_op_dot(g, x, w, NULL, 0, NULL, 0, &one, 1, &zero, 1, KILN_F32), b);
  OK(kiln_graph_set_results(g, &x, 1));
  kiln_compile_options options = KILN_COMPILE_OPTIONS_INIT;
  options.device = device;
  OK(kiln_graph_compile(g, &options, &executable));
  kiln_graph_release(g);
  return executable;
}

/* A sum over the result. */
static double run(kiln_executable* executable) {
  static float x[kRows * kWidth], y[kRows * kWidth];
  const int64_t wide[] = {kRows, kWidth};
  kiln_buffer *argument = NULL, *result = NULL;
  double sum = 0;
  for (int i = 0; i < kRows * kWidth; ++i) x[i] = (float)(i % 17) - 8;
  OK(kiln_buffer_copy_host(kiln_executable_device(executable), KILN_F32, wide, 2, x, sizeof x,
                           &argument));
  OK(kiln_executable_run(executable, NULL, &argument, 1, &result, 1));
  OK(kiln_buffer_copy_to_host(result, y, sizeof y));
  for (int i = 0; i < kRows * kWidth; ++i) sum += y[i] * (i % 3);
  kiln_buffer_release(argument);
  kiln_buffer_release(result);
  return sum;
}

static kiln_executable* load(kiln_device* device) {
  kiln_executable* loaded = NULL;
  OK(kiln_executable_load_file(device, path, strlen(path), &loaded));
  return loaded;
}

/* The kB of the mappings of the folder's files in this process, by a line of the system's account:
 * "Pss". */
static int64_t mapped_kb(const char* name) {
  char line[512];
  int is_file = 0;
  int64_t kb = 0, value = 0;
  FILE* file = fopen("/proc/self/smaps", "r");
  const size_t length = strlen(name);
  while (file && fgets(line, sizeof line, file)) {
    unsigned long from = 0, to = 0;
    if (sscanf(line, "%lx-%lx ", &from, &to) == 2) is_file = strstr(line, folder) != NULL;
    if (is_file && strncmp(line, name, length) == 0 && line[length] == ':') {
      sscanf(line + length + 1, "%ld", &value);
      kb += value;
    }
  }
  if (file) fclose(file);
  return kb;
}

/* Waits until as many processes have come here, or have so far. */
static void meet(int* arrived, int processes) {
  __atomic_add_fetch(arrived, 1, __ATOMIC_SEQ_CST);
  for (int ms = 0; __atomic_load_n(arrived, __ATOMIC_SEQ_CST) < processes; ++ms) {
    if (ms > 60000) {
      CHECK(!"the other process has not come");
      return;
    }
    usleep(1000);
  }
}

/* Both processes have the program, loaded or from the cache, and have run it, before either looks.
 */
static void share(const char* device_name, int cached, double expected, int* arrived) {
  kiln_context* context = new_context(cached);
  kiln_memory_info before = KILN_MEMORY_INFO_INIT, after = KILN_MEMORY_INFO_INIT;
  OK(kiln_context_memory(context, &before));
  kiln_device* device = find_device(context, device_name);
  kiln_executable* loaded = cached ? compile(context, device) : load(device);
  CHECK(run(loaded) == expected);
  OK(kiln_context_memory(context, &after));
  /* Constants are not allocated. */
  CHECK(after.live_bytes - before.live_bytes < kConstantBytes / 4);
  kiln_program_memory memory = KILN_PROGRAM_MEMORY_INIT;
  OK(kiln_executable_memory(loaded, &memory));
  CHECK(strcmp(device_name, "CPU:0") != 0 || memory.constant_bytes >= kConstantBytes);
  meet(arrived, 2);
  const int64_t all = mapped_kb("Rss"), proportional = mapped_kb("Pss");
  const int64_t own = mapped_kb("Private_Clean") + mapped_kb("Private_Dirty");
  if (access("/proc/self/smaps", R_OK) == 0) {
    CHECK(all >= kConstantBytes >> 10);
  } else {
    printf("no account of mapped pages\n");
  }
  CHECK(own <= 64 && proportional <= all * 6 / 10);
  /* Neither ends before the other has looked. */
  meet(arrived, 4);
  kiln_executable_release(loaded);
  kiln_context_release(context);
}

static void in_two_processes(const char* device_name, int cached, double expected) {
  pid_t children[2];
  int* arrived = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  CHECK(arrived != MAP_FAILED);
  for (int i = 0; i < 2; ++i) {
    children[i] = fork();
    if (children[i] == 0) {
      share(device_name, cached, expected, arrived);
      fflush(stdout);
      _exit(test_result());
    }
  }
  for (int i = 0; i < 2; ++i) {
    int status = -1;
    CHECK(waitpid(children[i], &status, 0) == children[i] && status == 0);
  }
  CHECK(munmap(arrived, 4096) == 0);
}

/* Compiles and saves, into the cache too; a context must not be there when the others are made. */
static void save(const char* device_name, double* sum) {
  kiln_context* context = new_context(1);
  kiln_device* device = find_device(context, device_name);
  kiln_executable* executable = compile(context, device);
  kiln_text* bytes = NULL;
  size_t size = 0;
  *sum = run(executable);
  OK(kiln_executable_save(executable, path, strlen(path)));
  OK(kiln_executable_serialize(executable, &bytes));
  const char* data = kiln_text_data(bytes, &size);
  char* saved = malloc(size + 1);
  FILE* file = fopen(path, "rb");
  CHECK(file && fread(saved, 1, size + 1, file) == size && memcmp(saved, data, size) == 0);
  if (file) fclose(file);
  free(saved);
  kiln_text_release(bytes);
  /* On every device, and again over a file that is in use. */
  kiln_executable* loaded = load(device);
  OK(kiln_executable_save(executable, path, strlen(path)));
  CHECK(run(loaded) == *sum);
  CHECK(unlink(path) == 0);
  CHECK(run(loaded) == *sum);
  OK(kiln_executable_save(loaded, path, strlen(path)));
  kiln_executable_release(loaded);
  kiln_executable_release(executable);
  kiln_context_release(context);
}

static void put(const char* name, const char* data, size_t size) {
  FILE* file = fopen(name, "wb");
  CHECK(file && fwrite(data, 1, size, file) == size && fclose(file) == 0);
}

static void refused(void) {
  kiln_context* context = new_context(0);
  kiln_device* device = find_device(context, "CPU:0");
  kiln_executable *executable = compile(context, device), *loaded = NULL;
  kiln_text* bytes = NULL;
  size_t size = 0;
  char other[80];
  snprintf(other, sizeof other, "%s/other", folder);
  OK(kiln_executable_serialize(executable, &bytes));
  const char* data = kiln_text_data(bytes, &size);
  FAILS(KILN_NOT_FOUND, other, kiln_executable_load_file(device, other, strlen(other), &loaded));
  put(other, data, size - 1);
  FAILS(KILN_INVALID_ARGUMENT, "damaged",
        kiln_executable_load_file(device, other, strlen(other), &loaded));
  char* changed = malloc(size);
  memcpy(changed, data, size);
  changed[size - 1] ^= 1;
  put(other, changed, size);
  FAILS(KILN_INVALID_ARGUMENT, "the checksum of its constants",
        kiln_executable_load_file(device, other, strlen(other), &loaded));
  free(changed);
  FAILS(KILN_INVALID_ARGUMENT, "no regular file",
        kiln_executable_load_file(device, folder, strlen(folder), &loaded));
  FAILS(KILN_INVALID_ARGUMENT, "NULL", kiln_executable_load_file(device, NULL, 3, &loaded));
  FAILS(KILN_INVALID_ARGUMENT, "NULL", kiln_executable_load_file(NULL, other, 3, &loaded));
  FAILS(KILN_INVALID_ARGUMENT, "NULL", kiln_executable_load_file(device, other, 3, NULL));
  FAILS(KILN_INVALID_ARGUMENT, "NULL", kiln_executable_save(NULL, other, 3));
  FAILS(KILN_INVALID_ARGUMENT, "NULL", kiln_executable_save(executable, NULL, 3));
  FAILS(KILN_INVALID_ARGUMENT, "no regular file",
        kiln_executable_save(executable, folder, strlen(folder)));
  /* After a failure the old file is there as it was: beyond a limit on the sizes of files, too,
   * where the system would end the process. */
  struct rlimit before, limit;
  CHECK(getrlimit(RLIMIT_FSIZE, &before) == 0);
  limit = before;
  limit.rlim_cur = 50000;
  CHECK(setrlimit(RLIMIT_FSIZE, &limit) == 0);
  kiln_error* error = kiln_executable_save(executable, path, strlen(path));
  CHECK(setrlimit(RLIMIT_FSIZE, &before) == 0);
  FAILS(KILN_RESOURCE_EXHAUSTED, "File too large", error);
  CHECK(loaded == NULL);
  OK(kiln_executable_load_file(find_device(context, "CPU:0"), path, strlen(path), &loaded));
  FAILS(
      KILN_FAILED_PRECONDITION, "compiled for",
      kiln_executable_load_file(find_device(context, "REFERENCE:0"), path, strlen(path), &loaded));
  kiln_executable_release(loaded);
  CHECK(unlink(other) == 0);
  kiln_text_release(bytes);
  kiln_executable_release(executable);
  kiln_context_release(context);
}

/* With its files. */
static int remove_folder(const char* name) {
  char file[512];
  DIR* open = opendir(name);
  for (struct dirent* entry; open && (entry = readdir(open)) != NULL;) {
    snprintf(file, sizeof file, "%s/%s", name, entry->d_name);
    if (entry->d_name[0] != '.') unlink(file);
  }
  if (open) closedir(open);
  return rmdir(name);
}

int main(void) {
  static const char* const kDevices[] = {"GPU:0", "REFERENCE:0", "CPU:0"};
  double sum = 0;
  CHECK(mkdtemp(folder) != NULL);
  snprintf(path, sizeof path, "%s/program", folder);
  snprintf(cache, sizeof cache, "%s/cache", folder);
  for (int i = 0; i < 3; ++i) {
    /* The sum comes from a process that has ended. */
    int result[2];
    CHECK(pipe(result) == 0);
    const pid_t child = fork();
    if (child == 0) {
      save(kDevices[i], &sum);
      CHECK(write(result[1], &sum, sizeof sum) == sizeof sum);
      fflush(stdout);
      _exit(test_result());
    }
    int status = -1;
    CHECK(waitpid(child, &status, 0) == child && status == 0);
    CHECK(read(result[0], &sum, sizeof sum) == sizeof sum && sum != 0);
    close(result[0]);
    close(result[1]);
    /* A GPU has a memory of its own. */
    if (strcmp(kDevices[i], "GPU:0") != 0) in_two_processes(kDevices[i], 0, sum);
  }
  in_two_processes("CPU:0", 1, sum);
  refused();
  CHECK(unlink(path) == 0 && remove_folder(cache) == 0 && rmdir(folder) == 0);
  return test_result();
}
