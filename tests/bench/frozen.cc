// Frozen arguments, beside constants and beside arguments of each execution.
#include <cstdlib>
#include <fstream>
#include <functional>
#include <iterator>
#include <string>
#include <vector>

#include "base/strings.h"
#include "c_abi.h"
#include "encoder_text.h"
#include "harness.h"
#include "kiln/kiln.h"
#include "machine.h"

namespace kiln::bench {
namespace {

// With arguments of these names frozen.
kiln_executable* Compile(kiln_graph* graph, const std::string& frozen) {
  kiln_compile_options options = KILN_COMPILE_OPTIONS_INIT;
  options.frozen_names = frozen.data();
  options.frozen_names_length = frozen.size();
  kiln_executable* executable = nullptr;
  Must(kiln_graph_compile(graph, &options, &executable));
  return executable;
}

// An executable with its arguments: frozen ones are bound.
class Program {
 public:
  // `arrays` by argument; they stay.
  Program(kiln_graph* graph, const std::string& frozen, const std::vector<kiln_buffer*>& arrays)
      : executable_(Compile(graph, frozen)) {
    std::vector<size_t> numbers;
    std::vector<kiln_buffer*> bound;
    for (size_t i = 0; i < kiln_executable_argument_count(executable_); ++i) {
      if (kiln_executable_argument_is_frozen(executable_, i) == 0) {
        arguments_.push_back(arrays[i]);
      } else {
        numbers.push_back(i);
        bound.push_back(arrays[i]);
      }
    }
    const double start = Now();
    Must(kiln_executable_bind(executable_, numbers.data(), bound.data(), numbers.size()));
    bind_seconds_ = Now() - start;
    results_.resize(kiln_executable_result_count(executable_));
  }
  ~Program() {
    for (kiln_buffer* result : results_) kiln_buffer_release(result);
    kiln_executable_release(executable_);
  }
  Program(const Program&) = delete;
  Program& operator=(const Program&) = delete;

  void operator()() {
    Must(kiln_executable_run(executable_, nullptr, arguments_.data(), arguments_.size(),
                             results_.data(), results_.size()));
  }
  double bind_seconds() const { return bind_seconds_; }

 private:
  kiln_executable* const executable_;
  std::vector<kiln_buffer*> arguments_, results_;
  double bind_seconds_ = 0;
};

// An array for each parameter of the graph.
class Arrays {
 public:
  Arrays(const Context& context, kiln_graph* graph) {
    kiln_executable* plain = Compile(graph, "");
    for (size_t i = 0; i < kiln_executable_argument_count(plain); ++i) {
      kiln_shape shape = KILN_SHAPE_INIT;
      Must(kiln_executable_argument_shape(plain, i, &shape));
      buffers_.push_back(context.NewArray({shape.dims, shape.dims + shape.rank}));
    }
    kiln_executable_release(plain);
  }
  ~Arrays() {
    for (kiln_buffer* buffer : buffers_) kiln_buffer_release(buffer);
  }
  Arrays(const Arrays&) = delete;
  Arrays& operator=(const Arrays&) = delete;
  const std::vector<kiln_buffer*>& buffers() const { return buffers_; }

 private:
  std::vector<kiln_buffer*> buffers_;
};

// A product with a constant of these sizes, or with a second argument.
kiln_graph* Product(const Context& context, int64_t m, int64_t k, int64_t n, bool constant) {
  kiln_graph* graph = nullptr;
  Must(kiln_graph_create(context.get(), "product", 7, &graph));
  const int64_t x_dims[] = {m, k}, w_dims[] = {k, n};
  const kiln_value x = kiln_op_parameter(graph, KILN_F32, x_dims, 2, "x", 1);
  std::vector<float> numbers(constant ? static_cast<size_t>(k * n) : 0);
  for (size_t i = 0; i < numbers.size(); ++i)
    numbers[i] = static_cast<float>(i % 200) / 1000 - 0.1F;
  const kiln_value w = constant ? kiln_op_constant(graph, KILN_F32, w_dims, 2, numbers.data(),
                                                   numbers.size() * sizeof(float))
                                : kiln_op_parameter(graph, KILN_F32, w_dims, 2, "w", 1);
  const kiln_value product = kiln_op_matmul(graph, x, w);
  Must(kiln_graph_set_results(graph, &product, 1));
  return graph;
}

KILN_BENCH(frozen_products) {
  struct Sizes {
    int64_t m, k, n;
  };
  for (int32_t threads : {1, 2}) {
    Context context(threads);
    for (const Sizes& s : {Sizes{1, 768, 3072}, Sizes{8, 768, 768}, Sizes{128, 768, 768}}) {
      kiln_graph* with_argument = Product(context, s.m, s.k, s.n, false);
      kiln_graph* with_constant = Product(context, s.m, s.k, s.n, true);
      const Arrays arrays(context, with_argument);
      Program frozen(with_argument, "w", arrays.buffers());
      Program plain(with_argument, "", arrays.buffers());
      Program constant(with_constant, "", arrays.buffers());
      const std::string name = Cat("frozen.", s.m, "x", s.k, "x", s.n, ".threads", threads);
      const double flops = 2.0 * static_cast<double>(s.m * s.k * s.n);
      const double rate = flops / Measure([&] { frozen(); }).median;
      report.Add(name, rate / 1e9, "GFLOP/s");
      report.Add(name + ".of_the_peak", rate / (FmaPeak(0.2) * threads), "");
      // The same code: what is between them is the clock's.
      report.Add(name + ".of_a_constant", PairedRatio([&] { constant(); }, [&] { frozen(); }, 301),
                 "", AtLeast(0.98));
      report.Add(name + ".of_an_argument", PairedRatio([&] { plain(); }, [&] { frozen(); }, 301),
                 "");
      kiln_graph_release(with_argument);
      kiln_graph_release(with_constant);
    }
  }
}

// A model with its weights frozen, beside the same with them as arguments.
void Model(Report& report, const Context& context, const std::string& name, kiln_graph* graph,
           const std::string& weights) {
  const Arrays arrays(context, graph);
  Program plain(graph, "", arrays.buffers());
  Program frozen(graph, weights, arrays.buffers());
  report.Add(name, Measure([&] { frozen(); }).median * 1e3, "ms");
  report.Add(name + ".bind", frozen.bind_seconds() * 1e3, "ms");
  report.Add(name + ".of_arguments", PairedRatio([&] { plain(); }, [&] { frozen(); }, 31), "",
             AtLeast(1.05));
}

KILN_BENCH(frozen_encoder) {
  const Encoder encoder;
  std::string weights;
  for (size_t i = 1; i < encoder.dims().size(); ++i) weights += Cat("arg", i, "\n");
  for (int32_t threads : {1, 2}) {
    Context context(threads);
    kiln_graph* graph = nullptr;
    Must(kiln_graph_from_stablehlo(context.get(), encoder.text().data(), encoder.text().size(),
                                   nullptr, &graph));
    Model(report, context, Cat("frozen.encoder.threads", threads), graph, weights);
    kiln_graph_release(graph);
  }
}

KILN_BENCH(frozen_resnet50) {
  const char* folder = std::getenv("KILN_WORKLOADS_DIR");
  std::ifstream file(Cat(folder ? folder : "", "/hlo/resnet50_keras_jax_f32.hlo"));
  const std::string text{std::istreambuf_iterator<char>(file), {}};
  if (text.empty()) return report.Note("frozen.resnet50", "KILN_WORKLOADS_DIR is not set");
  for (int32_t threads : {1, 2}) {
    Context context(threads);
    kiln_graph* graph = nullptr;
    Must(kiln_graph_from_hlo_text(context.get(), text.data(), text.size(), &graph));
    // The step returns the weights, too, in the memory of donated arguments.
    const kiln_value classes = kiln_op_get_tuple_element(graph, kiln_graph_result(graph), 0);
    Must(kiln_graph_set_results(graph, &classes, 1));
    Model(report, context, Cat("frozen.resnet50.threads", threads), graph, "state*");
    kiln_graph_release(graph);
  }
}

}  // namespace
}  // namespace kiln::bench
