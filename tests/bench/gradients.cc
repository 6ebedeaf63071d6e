// How long graphs of many ops take to differentiate, and the gradients to compile, in processor
// time: an op of the program with the gradients against one of the program alone.
#include <algorithm>
#include <cstring>
#include <ctime>
#include <string>
#include <vector>

#include "base/strings.h"
#include "c_abi.h"
#include "harness.h"

namespace kiln::bench {
namespace {

constexpr int kOps = 10000, kRuns = 3;
constexpr int64_t kDims[] = {16, 16};

// Of all threads of the process.
double CpuSeconds() {
  timespec t{};
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
  return static_cast<double>(t.tv_sec) + static_cast<double>(t.tv_nsec) * 1e-9;
}

// A graph whose value is a scalar, and what it is differentiated by.
struct Graph {
  explicit Graph(kiln_context* context) { Must(kiln_graph_create(context, "grad", 4, &graph)); }
  ~Graph() { kiln_graph_release(graph); }
  Graph(const Graph&) = delete;
  Graph& operator=(const Graph&) = delete;

  kiln_value Parameter() {
    by.push_back(kiln_op_parameter(graph, KILN_F32, kDims, 2, nullptr, 0));
    return by.back();
  }
  void Return(kiln_value x) {
    const int64_t dims[] = {0, 1};
    value = kiln_op_reduce_by(graph, x, dims, 2, KILN_REDUCER_SUM);
    Must(kiln_graph_status(graph));
  }
  // Seconds; the gradients and the value become the results.
  double Differentiate() {
    std::vector<kiln_value> results(by.size() + 1, value);
    const double start = CpuSeconds();
    Must(kiln_graph_gradient(graph, value, by.data(), by.size(), nullptr, results.data()));
    const double seconds = CpuSeconds() - start;
    Must(kiln_graph_set_results(graph, results.data(), results.size()));
    return seconds;
  }
  // Seconds for each op.
  double Compile() const {
    kiln_text* text = nullptr;
    Must(kiln_graph_to_hlo_text(graph, &text));
    int ops = 0;
    for (const char* at = kiln_text_data(text, nullptr); (at = std::strstr(at, " = ")); ++at) ++ops;
    kiln_text_release(text);
    kiln_executable* executable = nullptr;
    const double start = CpuSeconds();
    Must(kiln_graph_compile(graph, nullptr, &executable));
    const double seconds = CpuSeconds() - start;
    kiln_executable_release(executable);
    return seconds / ops;
  }

  kiln_graph* graph = nullptr;
  kiln_value value = 0;
  std::vector<kiln_value> by;
};

kiln_value Scalar(kiln_graph* graph, double value, kiln_value like) {
  return kiln_op_broadcast_like(graph, kiln_op_scalar(graph, KILN_F32, value), like, nullptr, 0);
}

kiln_value Function(kiln_graph* graph, kiln_value x, int i) {
  using Unary = kiln_value (*)(kiln_graph*, kiln_value);
  constexpr Unary kFunctions[] = {kiln_op_tanh, kiln_op_sine, kiln_op_logistic, kiln_op_negate,
                                  kiln_op_exponential};
  return kFunctions[i % 5](graph, x);
}

// Each op takes the one before.
void Chain(Graph& g) {
  kiln_value x = g.Parameter(), w = g.Parameter();
  for (int i = 0; i < kOps; ++i) {
    x = i % 2 == 0 ? Function(g.graph, x, i / 2) : kiln_op_multiply(g.graph, x, w);
  }
  g.Return(x);
}

// A value with many users, which are added up in a tree.
void Wide(Graph& g) {
  const kiln_value x = g.Parameter();
  std::vector<kiln_value> level;
  for (int i = 0; i < kOps / 4; ++i) {
    level.push_back(Function(g.graph, kiln_op_multiply(g.graph, x, Scalar(g.graph, i, x)), i));
    level.back() = kiln_op_add(g.graph, level.back(), x);
  }
  while (level.size() > 1) {
    for (size_t i = 0; i < level.size() / 2; ++i) {
      level[i] = kiln_op_add(g.graph, level[2 * i], level[2 * i + 1]);
    }
    level.resize(level.size() / 2);
  }
  g.Return(level[0]);
}

// Layers of products, normalisation and functions, with values that are read again later.
void Mixed(Graph& g) {
  kiln_value x = g.Parameter(), kept = x;
  const int64_t rows = 1, columns = 0;
  for (int i = 0; i < kOps / 10; ++i) {
    const kiln_value w = i % 10 == 0 ? g.Parameter() : g.by.back();
    const kiln_value y = kiln_op_matmul(g.graph, x, w);
    const kiln_value sums = kiln_op_reduce_by(g.graph, y, &rows, 1, KILN_REDUCER_MAX);
    const kiln_value centred =
        kiln_op_subtract(g.graph, y, kiln_op_broadcast_like(g.graph, sums, y, &columns, 1));
    const kiln_value f = Function(g.graph, centred, i);
    const int64_t order[] = {1, 0};
    const kiln_value turned = kiln_op_transpose(g.graph, f, order, 2);
    const kiln_value is_more = kiln_op_compare(g.graph, turned, kept, KILN_GT);
    x = kiln_op_add(g.graph, kiln_op_select(g.graph, is_more, turned, f), kept);
    if (i % 3 == 0) kept = x;
  }
  g.Return(x);
}

}  // namespace

KILN_BENCH(gradient_graphs) {
  struct Kind {
    const char* name;
    void (*make)(Graph&);
  };
  const Context context(2);
  for (const Kind& kind : {Kind{"chain", Chain}, {"wide", Wide}, {"mixed", Mixed}}) {
    std::vector<double> build, forward, both;
    for (int run = 0; run < kRuns; ++run) {
      Graph g(context.get());
      kind.make(g);
      Must(kiln_graph_set_results(g.graph, &g.value, 1));
      forward.push_back(g.Compile());
      build.push_back(g.Differentiate());
      both.push_back(g.Compile());
    }
    const auto least = [](const std::vector<double>& of) { return *std::ranges::min_element(of); };
    const std::string name = Cat("gradient_graphs.", kind.name, ".", kOps, "_ops");
    report.Add(Cat(name, ".differentiate"), 1e3 * least(build), "ms of CPU", AtMost(50));
    report.Add(Cat(name, ".compile_op"), 1e6 * least(forward), "us of CPU");
    report.Add(Cat(name, ".compile_op_of_gradient"), least(both) / least(forward), "of the forward",
               AtMost(2));
  }
}

}  // namespace kiln::bench
