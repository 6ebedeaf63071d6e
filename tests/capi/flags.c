/* Flags of the environment: dumps of unchanged programs, errors, and what goes to the log. */
#include <dirent.h>
#include <pthread.h>
#include <stdint.h>
#include <sys/stat.h>
#include <unistd.h>

#include "testing.h"

static char folder[] = "/tmp/kiln-flags-XXXXXX";

/* The log of a context. */
typedef struct {
  char text[65536];
  size_t length;
} log_text;

static void keep_log(void* user_data, kiln_log_level level, const char* message, size_t length) {
  log_text* log = user_data;
  (void)level;
  if (log->length + length + 2 > sizeof log->text) return;
  memcpy(log->text + log->length, message, length);
  log->length += length;
  log->text[log->length++] = '\n';
  log->text[log->length] = '\0';
}

static kiln_error* create(log_text* log, kiln_log_level level, kiln_context** context) {
  kiln_context_options options = KILN_CONTEXT_OPTIONS_INIT;
  options.threads = 1;
  options.gpu = KILN_GPU_OFF;
  options.log_level = level;
  if (log) {
    log->length = 0;
    log->text[0] = '\0';
    options.log = keep_log;
    options.log_user_data = log;
  }
  *context = NULL;
  return kiln_context_create(&options, context);
}

static kiln_context* context_with(const char* variable, const char* flags, log_text* log) {
  kiln_context* context;
  setenv(variable, flags, 1);
  OK(create(log, KILN_LOG_DEFAULT, &context));
  unsetenv(variable); /* flags are read once */
  return context;
}

static kiln_graph* sum_of_squares(kiln_context* context, const char* name) {
  kiln_graph* g = make_graph(context, name);
  int64_t dims[2] = {4, 6}, row = 1;
  kiln_value x = kiln_op_parameter(g, KILN_F32, dims, 2, "x", 1);
  kiln_value y = kiln_op_reduce_by(g, kiln_op_multiply(g, x, x), &row, 1, KILN_REDUCER_SUM);
  OK(kiln_graph_set_results(g, &y, 1));
  return g;
}

static int64_t compile(kiln_context* context, const char* name,
                       const kiln_compile_options* options) {
  kiln_graph* g = sum_of_squares(context, name);
  kiln_executable* e = NULL;
  kiln_program_info info = KILN_PROGRAM_INFO_INIT;
  if (OK(kiln_graph_compile(g, options, &e))) OK(kiln_executable_info(e, &info));
  kiln_executable_release(e);
  kiln_graph_release(g);
  return info.kernels;
}

/* The text of a file; NULL if it is missing. */
static char* read_file(const char* in, const char* name) {
  char path[1024];
  snprintf(path, sizeof path, "%s/%s", in, name);
  FILE* file = fopen(path, "rb");
  if (!file) return NULL;
  char* text = calloc(1, 1 << 20);
  size_t length = fread(text, 1, (1 << 20) - 1, file);
  text[length] = '\0';
  fclose(file);
  return text;
}

static int file_has(const char* in, const char* name, const char* part) {
  char* text = read_file(in, name);
  int has = text && strstr(text, part) != NULL;
  free(text);
  return has;
}

static int occurrences(const char* text, const char* part) {
  int count = 0;
  for (; (text = strstr(text, part)); ++text) ++count;
  return count;
}

/* How many names hold the text. */
static int count(const char* in, const char* part) {
  int found = 0;
  DIR* files = opendir(in);
  if (!files) return 0;
  for (struct dirent* file; (file = readdir(files));) {
    if (file->d_name[0] != '.' && strstr(file->d_name, part)) ++found;
  }
  closedir(files);
  return found;
}

/* Removes all files. None may be unfinished. */
static void clear(const char* in) {
  char path[1024];
  CHECK(count(in, ".part") == 0);
  DIR* files = opendir(in);
  if (!files) return;
  for (struct dirent* file; (file = readdir(files));) {
    if (file->d_name[0] == '.') continue;
    snprintf(path, sizeof path, "%s/%s", in, file->d_name);
    unlink(path);
  }
  closedir(files);
}

static void kiln_flags(void) {
  char flags[512];
  snprintf(flags, sizeof flags, "--dump_to='%s/in a' --dump_hlo_module_re=^step", folder);
  kiln_context* context = context_with("KILN_FLAGS", flags, NULL);
  char in[64];
  snprintf(in, sizeof in, "%s/in a", folder);
  compile(context, "other", NULL);
  CHECK(count(in, "") == 0);
  compile(context, "step", NULL);
  CHECK(file_has(in, "module_0002.step.before_optimizations.txt", "HloModule step"));
  CHECK(file_has(in, "module_0002.step.cpu_after_optimizations.txt", "fusion"));
  CHECK(file_has(in, "module_0002.step.ir-no-opt.ll", "define"));
  CHECK(count(in, "buffer-assignment.txt") == 1);
  CHECK(count(in, ".dot") == 0 && count(in, ".html") == 0 && count(in, ".after_") == 0);
  clear(in);
  /* Options go first. */
  kiln_compile_options options = KILN_COMPILE_OPTIONS_INIT;
  options.dump_folder = folder;
  options.dump_folder_length = strlen(folder);
  compile(context, "step", &options);
  CHECK(count(in, "") == 0);
  CHECK(file_has(folder, "module_0003.step.before_optimizations.txt", "HloModule step"));
  CHECK(count(folder, ".dot") >= 5);
  rmdir(in);
  clear(folder);
  kiln_context_release(context);
  /* The context above read them; another one has none. */
  OK(create(NULL, KILN_LOG_DEFAULT, &context));
  compile(context, "step", NULL);
  CHECK(count(folder, "") == 0);
  kiln_context_release(context);
}

static void xla_flags(void) {
  char flags[512];
  snprintf(flags, sizeof flags,
           "--xla_dump_to=%s --xla_dump_hlo_as_dot --xla_dump_hlo_as_html=true "
           "--xla_dump_hlo_as_svg --xla_dump_hlo_pass_re=^fusion$ --xla_cpu_use_mkl_dnn=false",
           folder);
  log_text* log = malloc(sizeof *log);
  kiln_context* context = context_with("XLA_FLAGS", flags, log);
  CHECK(log->length == 0); /* unknown flags are an information only */
  compile(context, "step", NULL);
  CHECK(file_has(folder, "module_0001.step.before_optimizations.dot", "digraph"));
  CHECK(file_has(folder, "module_0001.step.cpu_after_optimizations.html", "</html>"));
  CHECK(file_has(folder, "module_0001.step.cpu_after_optimizations.svg", "</svg>"));
  CHECK(file_has(folder, "module_0001.step.passes.html", "\"pass\": \"fusion\""));
  CHECK(count(folder, "before_optimizations.txt") == 0);
  /* Before and after that pass, in three forms. */
  CHECK(count(folder, ".before_fusion.") == 3 && count(folder, ".after_fusion.") == 3);
  CHECK(count(folder, ".after_") == 6);
  clear(folder);
  kiln_context_release(context);

  setenv("XLA_FLAGS", "--xla_cpu_use_mkl_dnn=false --xla_dump_hlo_pass_re=(", 1);
  OK(create(log, KILN_LOG_INFO, &context));
  CHECK(strstr(log->text, "there is no flag '--xla_cpu_use_mkl_dnn'"));
  CHECK(strstr(log->text, "a parenthesis has no partner"));
  kiln_context_release(context);
  unsetenv("XLA_FLAGS");
  free(log);
}

static void flags_of_tensorflow_1(void) {
  char flags[512], line[512];
  snprintf(flags, sizeof flags, "--xla_generate_hlo_graph=.* --xla_hlo_graph_path=%s", folder);
  log_text* log = malloc(sizeof *log);
  kiln_context* context = context_with("TF_XLA_FLAGS", flags, log);
  compile(context, "cluster_0", NULL);
  CHECK(file_has(folder, "hlo_graph_0.dot", "digraph"));
  CHECK(count(folder, "") == count(folder, "hlo_graph_"));
  /* A line for each file, in order. */
  snprintf(line, sizeof line,
           "computation cluster_0.v4 [CPU: pipeline start, before outline-grids]: %s/"
           "hlo_graph_0.dot\n",
           folder);
  CHECK(strncmp(log->text, line, strlen(line)) == 0);
  CHECK(occurrences(log->text, "\n") == count(folder, ""));
  snprintf(line, sizeof line, ", pipeline end]: %s/hlo_graph_%d.dot\n", folder,
           count(folder, "") - 1);
  CHECK(log->length > strlen(line) && strcmp(log->text + log->length - strlen(line), line) == 0);
  int before = count(folder, "");
  compile(context, "cluster_1", NULL);
  CHECK(count(folder, "") == 2 * before); /* the numbers go on */
  clear(folder);
  kiln_context_release(context);

  context = context_with("TF_XLA_FLAGS", "--tf_xla_min_cluster_size=few", log);
  CHECK(strstr(log->text, "TF_XLA_FLAGS: ignored: --tf_xla_min_cluster_size is 'few'"));
  kiln_context_release(context);
  free(log);
}

static void standard_output(void) {
  kiln_context* context = context_with("XLA_FLAGS", "--xla_dump_to=-", NULL);
  char path[64];
  snprintf(path, sizeof path, "%s/out", folder);
  fflush(stdout);
  int kept = dup(1);
  CHECK(freopen(path, "w", stdout) != NULL);
  compile(context, "step", NULL);
  fflush(stdout);
  dup2(kept, 1);
  close(kept);
  const char* name = "module_0001.step.before_optimizations.txt";
  char begin[128], end[128];
  snprintf(begin, sizeof begin, "*** Begin %s ***\nHloModule step", name);
  snprintf(end, sizeof end, "*** End %s ***\n", name);
  char* text = read_file(folder, "out");
  CHECK(text && strstr(text, begin) && strstr(text, end));
  CHECK(text && occurrences(text, "*** Begin ") == occurrences(text, "*** End "));
  CHECK(count(folder, "") == 1);
  free(text);
  clear(folder);
  kiln_context_release(context);
}

static void mistakes(void) {
  kiln_context* context = NULL;
  struct {
    const char *flags, *message;
  } cases[] = {
      {"--dump_too=x", "there is no flag '--dump_too'; the nearest is --dump_to"},
      {"--dump_hlo_pass_re=fus(", "the regular expression 'fus(' is malformed"},
      {"--dump_hlo_module_re=[", "a bracket has no partner"},
      {"--generate_hlo_graph=*", "a repetition has no item"},
      {"--verify=2", "--verify is '2'; expected true or false"},
      {"--disabled_passes=fusion,speed", "--disabled_passes: there is no pass 'speed'"},
      {"--dump_ptx_sm=33", "--dump_ptx_sm: "},
      {"/no/such/file", "the file '/no/such/file' of flags cannot be opened"},
  };
  for (size_t i = 0; i < sizeof cases / sizeof cases[0]; ++i) {
    setenv("KILN_FLAGS", cases[i].flags, 1);
    FAILS(KILN_INVALID_ARGUMENT, cases[i].message, create(NULL, KILN_LOG_DEFAULT, &context));
    FAILS(KILN_INVALID_ARGUMENT, "KILN_FLAGS: ", create(NULL, KILN_LOG_DEFAULT, &context));
    CHECK(context == NULL);
  }
  unsetenv("KILN_FLAGS");
}

/* Flags must not make a program fail that works without them. */
static void failing_dumps(void) {
  log_text* log = malloc(sizeof *log);
  char path[64], flags[512];
  snprintf(path, sizeof path, "%s/file", folder);
  FILE* file = fopen(path, "w");
  if (file) fclose(file);
  snprintf(flags, sizeof flags, "--dump_to=%s", path);
  kiln_context* context = context_with("KILN_FLAGS", flags, log);
  CHECK(compile(context, "step", NULL) == 1);
  CHECK(strstr(log->text, "'step' is not dumped: cannot make the folder") &&
        strstr(log->text, path));
  kiln_context_release(context);
  snprintf(flags, sizeof flags, "--generate_hlo_graph=.* --hlo_graph_path=%s", path);
  context = context_with("KILN_FLAGS", flags, log);
  CHECK(compile(context, "step", NULL) == 1);
  CHECK(occurrences(log->text, "is not dumped") == 1);
  kiln_context_release(context);
  /* A name that is taken by a folder: nothing is left of the file. */
  clear(folder);
  snprintf(path, sizeof path, "%s/hlo_graph_0.dot", folder);
  mkdir(path, 0700);
  snprintf(flags, sizeof flags, "--generate_hlo_graph=.* --hlo_graph_path=%s", folder);
  context = context_with("KILN_FLAGS", flags, log);
  CHECK(compile(context, "step", NULL) == 1);
  CHECK(strstr(log->text, "is not dumped: cannot write"));
  CHECK(count(folder, "") == 1);
  kiln_context_release(context);
  rmdir(path);
  free(log);
}

static void other_flags(void) {
  kiln_context* context = context_with("KILN_FLAGS", "--disabled_passes=row-fusion,fusion", NULL);
  CHECK(compile(context, "step", NULL) > 1);
  kiln_compile_options options = KILN_COMPILE_OPTIONS_INIT;
  options.disabled_passes = "dce"; /* the option goes first */
  options.disabled_passes_length = 3;
  CHECK(compile(context, "step", &options) == 1);
  kiln_context_release(context);
  log_text* log = malloc(sizeof *log);
  context = context_with("KILN_FLAGS", "--log_level=info --verify", log);
  compile(context, "step", NULL);
  CHECK(strstr(log->text, "compiled 'step'"));
  kiln_context_release(context);
  setenv("KILN_FLAGS", "--log_level=info", 1);
  OK(create(log, KILN_LOG_ERROR, &context));
  compile(context, "step", NULL);
  CHECK(log->length == 0);
  kiln_context_release(context);
  unsetenv("KILN_FLAGS");
  free(log);
}

/* The graphs of sessions, as text and for Graphviz. */
static void graphs_of_sessions(void) {
  kiln_context* context = context_with("TF_DUMP_GRAPH_PREFIX", folder, NULL);
  kiln_graph* g = make_graph(context, "placed");
  kiln_value x = f32_parameter(g, "x", 3), y = kiln_op_exponential(g, x);
  OK(kiln_graph_push_device(g, "xla_cpu", 7));
  kiln_value z = kiln_op_negate(g, y);
  OK(kiln_graph_pop_device(g));
  OK(kiln_graph_status(g));
  kiln_session* session = NULL;
  OK(kiln_session_create(g, NULL, &session));
  OK(kiln_session_prepare(session, &x, 1, &z, 1, NULL, 0, NULL));
  const char* stages[] = {"before_placement", "after_placement", "after_clustering"};
  char names[3][2][64];
  for (int i = 0; i < 3; ++i) {
    snprintf(names[i][0], sizeof names[i][0], "module_0001.placed.%s.txt", stages[i]);
    snprintf(names[i][1], sizeof names[i][1], "module_0001.placed.%s.dot", stages[i]);
    CHECK(file_has(folder, names[i][0], "exponential("));
    CHECK(file_has(folder, names[i][1], "exponential\\nf32[3]"));
    CHECK(file_has(folder, names[i][0], "_XlaCluster=\"cluster_0\"") == (i == 2));
    CHECK(file_has(folder, names[i][1], "subgraph cluster_0") == (i == 2));
    CHECK(file_has(folder, names[i][0], "kiln.device=\"xla_cpu\"") == (i == 0));
    CHECK(file_has(folder, names[i][0], "kiln.device=\"XLA_CPU:0\"") == (i > 0));
    CHECK(file_has(folder, names[i][1], "\\nXLA_CPU:0") == (i > 0));
    CHECK(file_has(folder, names[i][1], "fillcolor=\"white\"") == (i == 0));
  }
  CHECK(count(folder, "placed.") == 6);
  kiln_session_release(session);
  kiln_graph_release(g);
  kiln_context_release(context);
  clear(folder);
}

/* Several contexts that dump modules of one name: each file is complete at any time. */
static void* compile_often(void* argument) {
  kiln_context* context = argument;
  for (int i = 0; i < 4; ++i) compile(context, "step", NULL);
  return NULL;
}

static void concurrent_dumps(void) {
  enum { kThreads = 3 };
  char flags[512];
  snprintf(flags, sizeof flags, "--dump_to=%s --dump_hlo_pass_re=.", folder);
  kiln_context* contexts[kThreads];
  pthread_t threads[kThreads];
  for (int i = 0; i < kThreads; ++i) contexts[i] = context_with("KILN_FLAGS", flags, NULL);
  for (int i = 0; i < kThreads; ++i) {
    CHECK(pthread_create(&threads[i], NULL, compile_often, contexts[i]) == 0);
  }
  int looks = 0;
  while (looks < 20000 && count(folder, "module_0004.step.plan") == 0) {
    char* text = read_file(folder, "module_0002.step.before_optimizations.txt");
    size_t length = text ? strlen(text) : 0;
    if (text) CHECK(length > 2 && strchr("}\n", text[length - 1]) && strstr(text, "ROOT"));
    free(text);
    ++looks;
  }
  for (int i = 0; i < kThreads; ++i) {
    pthread_join(threads[i], NULL);
    kiln_context_release(contexts[i]);
  }
  CHECK(count(folder, "before_optimizations.txt") == 4);
  clear(folder);
}

int main(void) {
  const char* variables[] = {"KILN_FLAGS", "XLA_FLAGS", "TF_XLA_FLAGS", "TF_DUMP_GRAPH_PREFIX"};
  for (int i = 0; i < 4; ++i) unsetenv(variables[i]);
  CHECK(mkdtemp(folder) != NULL);
  kiln_flags();
  xla_flags();
  flags_of_tensorflow_1();
  mistakes();
  failing_dumps();
  other_flags();
  graphs_of_sessions();
  concurrent_dumps();
  standard_output(); /* the last one, because it exchanges the stream */
  rmdir(folder);
  return test_result();
}
