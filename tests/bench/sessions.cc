// Sessions: the cost of a run, of single ops, and of planning; and how much clusters gain.
#include <random>
#include <span>
#include <string>
#include <vector>

#include "c_abi.h"
#include "harness.h"
#include "kiln/kiln.h"

namespace kiln::bench {
namespace {

// A graph of one parameter, run by sessions.
struct Program {
  explicit Program(int64_t elements, int32_t threads) : size(elements) {
    kiln_context_options options = KILN_CONTEXT_OPTIONS_INIT;
    options.threads = threads;
    Must(kiln_context_create(&options, &context));
    Must(kiln_graph_create(context, "bench", 5, &graph));
    x = kiln_op_parameter(graph, KILN_F32, &size, 1, "x", 1);
    kiln_device* cpu = kiln_context_device(context, 0);
    Must(kiln_buffer_create(cpu, KILN_F32, &size, 1, &result));
    std::vector<float> numbers(static_cast<size_t>(size), 0.5F);
    Must(kiln_buffer_copy_host(cpu, KILN_F32, &size, 1, numbers.data(),
                               numbers.size() * sizeof(float), &argument));
  }
  ~Program() {
    kiln_buffer_release(argument);
    kiln_buffer_release(result);
    kiln_graph_release(graph);
    kiln_context_release(context);
  }
  Program(const Program&) = delete;
  Program& operator=(const Program&) = delete;

  // Adds and multiplies in turn.
  kiln_value Chain(int ops) const {
    kiln_value y = x;
    for (int i = 0; i < ops; ++i) {
      y = i % 2 == 0 ? kiln_op_add(graph, y, x) : kiln_op_multiply(graph, y, x);
    }
    Must(kiln_graph_status(graph));
    return y;
  }

  // The median of a run, in seconds.
  double Run(kiln_value y, kiln_jit jit) { return Run({&y, 1}, {&result, 1}, jit); }
  // The same for several fetches; null results are created by the first run.
  double Run(std::span<const kiln_value> fetches, std::span<kiln_buffer*> results, kiln_jit jit) {
    kiln_session_options options = KILN_SESSION_OPTIONS_INIT;
    options.jit = jit;
    kiln_session* session = nullptr;
    Must(kiln_session_create(graph, &options, &session));
    const double median =
        Measure([&] {
          Must(kiln_session_run(session, nullptr, &x, &argument, 1, fetches.data(), results.data(),
                                fetches.size(), nullptr, 0));
        }).median;
    kiln_session_release(session);
    return median;
  }

  int64_t size;
  kiln_context* context = nullptr;
  kiln_graph* graph = nullptr;
  kiln_value x = 0;
  kiln_buffer *argument = nullptr, *result = nullptr;
};

KILN_BENCH(session_runs) {
  Program tiny(4, 1);
  const kiln_value y = tiny.Chain(100);
  report.Add("session.op_of_100", tiny.Run(y, KILN_JIT_OFF) / 100 * 1e6, "us", AtMost(1.0));
  report.Add("session.run_of_a_cluster", tiny.Run(y, KILN_JIT_ON) * 1e6, "us", AtMost(3.0));
}

// Op by op a chain moves three arrays for each op; as a cluster two for all.
KILN_BENCH(session_clusters) {
  for (int32_t threads : {1, 2}) {
    Program large(4 << 20, threads);
    const kiln_value y = large.Chain(20);
    const double by_op = large.Run(y, KILN_JIT_OFF), cluster = large.Run(y, KILN_JIT_ON);
    const std::string name = "session.chain20.threads" + std::to_string(threads);
    report.Add(name + ".op_by_op", by_op * 1e3, "ms");
    report.Add(name + ".cluster", cluster * 1e3, "ms");
    report.Add(name + ".ratio", by_op / cluster, "", AtLeast(10.0));
  }
}

// Independent ops, each too small for several threads.
KILN_BENCH(session_side_by_side) {
  using MakeOp = kiln_value (*)(kiln_graph*, kiln_value);
  struct {
    const char* name;
    int64_t elements;
    MakeOp make;
  } const ops[] = {{"tanh64k", 64 << 10, kiln_op_tanh},
                   {"matmul64", 64 * 64,
                    [](kiln_graph* graph, kiln_value x) { return kiln_op_matmul(graph, x, x); }}};
  for (const auto& op : ops) {
    double one_thread = 0;
    for (int32_t threads : {1, 2}) {
      Program program(op.elements, threads);
      const int64_t square[] = {64, op.elements / 64};
      const kiln_value x = kiln_op_reshape(program.graph, program.x, square, 2);
      std::vector<kiln_value> values;
      for (int i = 0; i < 64; ++i) values.push_back(op.make(program.graph, x));
      Must(kiln_graph_status(program.graph));
      std::vector<kiln_buffer*> results(values.size(), nullptr);
      const double seconds = program.Run(values, results, KILN_JIT_OFF);
      for (kiln_buffer* buffer : results) kiln_buffer_release(buffer);
      const std::string row =
          std::string("session.64_times_") + op.name + ".threads" + std::to_string(threads);
      report.Add(row, seconds * 1e6, "us");
      if (threads == 1) one_thread = seconds;
      if (threads == 2) report.Add(row + ".gain", one_thread / seconds, "", AtLeast(1.2));
    }
  }
}

// What the library allocates, by hooks.
int64_t allocated_bytes = 0;

void* CountAllocate(void*, size_t bytes, size_t alignment) {
  allocated_bytes += static_cast<int64_t>(bytes);
  return std::aligned_alloc(alignment, (bytes + alignment - 1) / alignment * alignment);
}

void CountDeallocate(void*, void* memory, size_t, size_t) { std::free(memory); }

// v += x: in the memory of v, or with a copy, as somebody has the value of before.
KILN_BENCH(session_variables) {
  kiln_context_options options = KILN_CONTEXT_OPTIONS_INIT;
  options.threads = 2;
  options.allocate = CountAllocate;
  options.deallocate = CountDeallocate;
  kiln_context* context = nullptr;
  kiln_graph* graph = nullptr;
  Must(kiln_context_create(&options, &context));
  Must(kiln_graph_create(context, "variables", 9, &graph));
  const int64_t size = 4 << 20;
  const std::vector<float> numbers(static_cast<size_t>(size), 0.5F);
  const kiln_value x = kiln_op_parameter(graph, KILN_F32, &size, 1, "x", 1);
  const kiln_value after = kiln_op_assign_add(graph, x, "v", 1);
  Must(kiln_graph_status(graph));
  kiln_session* session = nullptr;
  Must(kiln_session_create(graph, nullptr, &session));
  kiln_buffer *argument = nullptr, *held = nullptr;
  Must(kiln_buffer_copy_host(kiln_context_device(context, 0), KILN_F32, &size, 1, numbers.data(),
                             numbers.size() * sizeof(float), &argument));
  Must(kiln_session_set_variable(session, "v", 1, argument));
  auto run = [&] {
    Must(kiln_session_run(session, nullptr, &x, &argument, 1, nullptr, nullptr, 0, &after, 1));
  };
  auto run_held = [&] {
    kiln_buffer_release(held);
    Must(kiln_session_variable(session, "v", 1, &held));
    run();
  };
  auto bytes_of = [](auto&& one_run) {
    const int64_t before = allocated_bytes;
    one_run();
    return static_cast<double>(allocated_bytes - before);
  };
  run();
  report.Add("session.variable_of_4M.bytes", bytes_of(run), "B", AtMost(0));
  report.Add("session.variable_of_4M", Measure(run).median * 1e3, "ms");
  run_held();
  report.Add("session.variable_of_4M.held.bytes", bytes_of(run_held), "B");
  report.Add("session.variable_of_4M.held", Measure(run_held).median * 1e3, "ms");
  kiln_buffer_release(held);
  kiln_buffer_release(argument);
  kiln_session_release(session);
  kiln_graph_release(graph);
  kiln_context_release(context);
}

// A large graph to plan: of ops with two operands, on devices that change every thousand ops.
struct Large {
  // With `far` each op reads the preceding one and one from far back, and otherwise any two.
  // One op in ten is outside of clusters if `mixed`.
  Large(int64_t ops, bool far, bool mixed) : program(16, 1) {
    std::vector<kiln_value> values = {program.x};
    std::vector<bool> is_used = {true};
    std::mt19937_64 random(7);
    for (int64_t i = 0; i < ops; ++i) {
      const char* device = i / 1000 % 2 == 0 ? "CPU:0" : "XLA_CPU:0";
      if (i % 1000 == 0)
        Must(kiln_graph_push_device(program.graph, device, std::string(device).size()));
      const size_t a = far ? values.size() - 1 : random() % values.size();
      const size_t b = far ? values.size() * 7 / 8 : random() % values.size();
      is_used[a] = is_used[b] = true;
      is_used.push_back(false);
      values.push_back(i % 2 == 0 ? kiln_op_add(program.graph, values[a], values[b])
                                  : kiln_op_maximum(program.graph, values[a], values[b]));
      if (mixed && random() % 10 == 0)
        Must(kiln_graph_set_jit(program.graph, values.back(), KILN_JIT_OFF));
      if (i % 1000 == 999) Must(kiln_graph_pop_device(program.graph));
    }
    Must(kiln_graph_status(program.graph));
    for (size_t i = 0; i < values.size(); ++i) {
      if (!is_used[i]) fetches.push_back(values[i]);
    }
  }

  // Of placing and clustering alone: explaining compiles nothing.
  double PlanningSeconds() {
    kiln_session_options options = KILN_SESSION_OPTIONS_INIT;
    options.jit = KILN_JIT_ON;
    kiln_session* session = nullptr;
    Must(kiln_session_create(program.graph, &options, &session));
    const double seconds = Measure(
                               [&] {
                                 kiln_text* text = nullptr;
                                 Must(kiln_session_explain(session, &program.x, 1, fetches.data(),
                                                           fetches.size(), nullptr, 0, &text));
                                 kiln_text_release(text);
                               },
                               {.samples = 3})
                               .median;
    kiln_session_release(session);
    return seconds;
  }

  Program program;
  std::vector<kiln_value> fetches;  // all values without users
};

KILN_BENCH(session_planning) {
  struct {
    const char* name;
    bool far, mixed;
  } const kinds[] = {{"planning", true, false},
                     {"planning_with_ops_outside", true, true},
                     {"planning_random_operands", false, false},
                     {"planning_random_operands_with_ops_outside", false, true}};
  for (const auto& kind : kinds) {
    double smaller = 0;
    for (int64_t ops : {1000, 10000, 100000}) {
      const double seconds = Large(ops, kind.far, kind.mixed).PlanningSeconds();
      const std::string name = std::string("session.") + kind.name + "." + std::to_string(ops);
      report.Add(name, seconds * 1e3, "ms", AtMost(2000));
      // Operands anywhere are out of the caches in large graphs: the time grows by more than the
      // work.
      const Bound bound = kind.far ? AtMost(14) : Bound{};
      if (smaller > 0) report.Add(name + ".growth", seconds / smaller, "", bound);
      smaller = seconds;
    }
  }
}

}  // namespace
}  // namespace kiln::bench
