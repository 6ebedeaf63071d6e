// Updates of parameters by an optimiser of train.h, beside a copy of as many bytes.
#include <algorithm>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "c_abi.h"
#include "harness.h"
#include "kiln/kiln.h"
#include "machine.h"

namespace kiln::bench {
namespace {

// An update in place: the step of a training without its gradients.
class Update {
 public:
  Update(const Context& context, kiln_optimizer kind, const std::vector<std::vector<int64_t>>& dims)
      : parameters_(dims.size()) {
    kiln_graph *initial = nullptr, *graph = nullptr;
    Must(kiln_graph_create(context.get(), "initial", 7, &initial));
    Must(kiln_graph_create(context.get(), "update", 6, &graph));
    kiln_optimizer_options optimizer;
    kiln_optimizer_options_init(&optimizer, sizeof(optimizer), kind);
    std::vector<kiln_value> values(parameters_ + KILN_OPTIMIZER_STATE_MAX(parameters_));
    for (size_t i = 0; i < parameters_; ++i) {
      const std::string name = "p" + std::to_string(i);
      values[i] = kiln_train_initialize(initial, nullptr, KILN_F32, dims[i].data(), dims[i].size(),
                                        name.data(), name.size());
    }
    size_t states = 0;
    kiln_value* state = values.data() + parameters_;
    Must(kiln_train_state(initial, &optimizer, values.data(), parameters_, state,
                          KILN_OPTIMIZER_STATE_MAX(parameters_), &states));
    values.resize(parameters_ + states);
    Must(kiln_graph_set_results(initial, values.data(), values.size()));
    Must(kiln_train_parameters(graph, initial, values.data(), values.size(), values.data()));
    std::vector<kiln_value> gradients;
    for (const auto& sizes : dims) {
      gradients.push_back(
          kiln_op_parameter(graph, KILN_F32, sizes.data(), sizes.size(), nullptr, 0));
    }
    Must(kiln_train_update(graph, &optimizer, kiln_op_scalar(graph, KILN_F32, 1e-3), 0,
                           values.data(), gradients.data(), parameters_, state, states,
                           values.data(), state));
    Must(kiln_graph_set_results(graph, values.data(), values.size()));
    Compile(initial, graph, values.size());
    for (const auto& sizes : dims) arguments_.push_back(context.NewArray(sizes));
  }
  ~Update() {
    for (kiln_buffer* buffer : arguments_) kiln_buffer_release(buffer);
    kiln_executable_release(executable_);
  }
  Update(const Update&) = delete;
  Update& operator=(const Update&) = delete;

  void operator()() {
    kiln_execute_options options = KILN_EXECUTE_OPTIONS_INIT;
    options.donate_aliased = 1;
    results_.assign(results_.size(), nullptr);
    Must(kiln_executable_run(executable_, &options, arguments_.data(), arguments_.size(),
                             results_.data(), results_.size()));
    for (size_t i = 0; i < results_.size(); ++i) {
      kiln_buffer_release(arguments_[i]);
      arguments_[i] = results_[i];
    }
  }
  int64_t kernels() const {
    kiln_program_info info = KILN_PROGRAM_INFO_INIT;
    Must(kiln_executable_info(executable_, &info));
    return info.kernels;
  }

 private:
  void Compile(kiln_graph* initial, kiln_graph* graph, size_t count) {
    std::vector<kiln_alias> aliases;
    for (size_t i = 0; i < count; ++i) aliases.push_back({.result = i, .argument = i});
    kiln_compile_options options = KILN_COMPILE_OPTIONS_INIT;
    options.aliases = aliases.data();
    options.alias_count = count;
    kiln_executable* first = nullptr;
    Must(kiln_graph_compile(initial, nullptr, &first));
    Must(kiln_graph_compile(graph, &options, &executable_));
    arguments_.resize(count);
    results_.resize(count);
    Must(kiln_executable_run(first, nullptr, nullptr, 0, arguments_.data(), count));
    kiln_executable_release(first);
    kiln_graph_release(initial);
    kiln_graph_release(graph);
  }

  const size_t parameters_;
  kiln_executable* executable_ = nullptr;
  std::vector<kiln_buffer*> arguments_, results_;
};

// What of the array begins at a cache line, less than a line shorter.
constexpr size_t kLine = 64 / sizeof(float);
std::span<float> FromLine(std::vector<float>& array) {
  const size_t before = reinterpret_cast<uintptr_t>(array.data()) / sizeof(float) % kLine;
  return std::span(array).subspan((kLine - before) % kLine, array.size() - kLine);
}

void Compare(Report& report, const std::string& name, kiln_optimizer kind, size_t arrays,
             const std::vector<std::vector<int64_t>>& dims, Bound bound) {
  constexpr int kThreads = 2;
  Context context(kThreads);
  Update update(context, kind, dims);
  size_t elements = 0;
  for (const auto& sizes : dims) {
    size_t product = 1;
    for (int64_t size : sizes) product *= static_cast<size_t>(size);
    elements += product;
  }
  // A copy reads half of its bytes and writes half.
  std::vector<float> sources(elements * arrays / 2 + kLine, 1), targets(sources.size());
  const std::span<float> from = FromLine(sources), to = FromLine(targets);
  runtime::ThreadPool pool(kThreads);
  std::vector<std::function<void()>> calls = {[&] { update(); }};
  for (Stores stores : kAllStores) {
    calls.push_back([&, stores] { Copy(from, to, stores, pool); });
  }
  const std::vector<double> seconds = MediansInTurn(calls, 51);
  const double copy = *std::min_element(seconds.begin() + 1, seconds.end());
  const double bytes = static_cast<double>(elements * arrays * sizeof(float));
  report.Add(name, bytes / seconds[0] / 1e9, "GB/s");
  report.Add(name + ".of_copy", copy / seconds[0], "", bound);
  report.Add(name + ".kernels", static_cast<double>(update.kernels()), "");
}

// Adam reads four arrays and writes three, SGD reads two and writes one. The perceptron's arrays
// stay in the caches, those of the copy hardly.
KILN_BENCH(updates) {
  std::vector<std::vector<int64_t>> mlp, many(100, {100000});
  const std::vector<int64_t> sizes = {784, 512, 256, 10};
  for (size_t l = 0; l + 1 < sizes.size(); ++l) {
    mlp.push_back({sizes[l], sizes[l + 1]});
    mlp.push_back({sizes[l + 1]});
  }
  Compare(report, "updates.adam.mlp", KILN_OPTIMIZER_ADAM, 7, mlp, {});
  Compare(report, "updates.adam.100x100k", KILN_OPTIMIZER_ADAM, 7, many, AtLeast(0.9));
  Compare(report, "updates.sgd.100x100k", KILN_OPTIMIZER_SGD, 3, many, AtLeast(0.9));
}

}  // namespace
}  // namespace kiln::bench
