// A training step of a multilayer perceptron in a session: op by op, and compiled.
#include <string>
#include <utility>
#include <vector>

#include "c_abi.h"
#include "harness.h"
#include "kiln/kiln.h"

namespace kiln::bench {
namespace {

constexpr int64_t kBatch = 128;
constexpr int64_t kSizes[] = {784, 512, 256, 10};
constexpr int kLayers = 3;
constexpr double kRate = 0.01;

// The ops of one step of gradient descent on softmax cross entropy, with ReLU between the layers.
class Step {
 public:
  explicit Step(kiln_context* context) {
    Must(kiln_graph_create(context, "mlp", 3, &graph_));
    const kiln_value images = Parameter({kBatch, kSizes[0]}),
                     labels = Parameter({kBatch, kSizes[3]});
    for (int l = 0; l < kLayers; ++l) {
      weights_.push_back(Parameter({kSizes[l], kSizes[l + 1]}));
      biases_.push_back(Parameter({kSizes[l + 1]}));
    }
    // inputs[l] is the input of layer l.
    std::vector<kiln_value> inputs = {images}, sums;
    for (int l = 0; l < kLayers; ++l) {
      const kiln_value product = Dot(inputs[l], 1, weights_[l], 0);
      sums.push_back(kiln_op_add(graph_, product, Repeat(biases_[l], product, 1)));
      if (l + 1 < kLayers) inputs.push_back(kiln_op_maximum(graph_, sums[l], Scalar(0, sums[l])));
    }
    kiln_value slope = Loss(sums.back(), labels);
    for (int l = kLayers - 1; l >= 0; --l) {
      Update(weights_[l], Dot(inputs[l], 0, slope, 0));
      Update(biases_[l], Sum(slope, 0));
      if (l == 0) break;
      const kiln_value back = Dot(slope, 1, weights_[l], 1);
      const kiln_value zero = Scalar(0, back);
      slope =
          kiln_op_select(graph_, kiln_op_compare(graph_, sums[l - 1], zero, KILN_GT), back, zero);
    }
    Must(kiln_graph_status(graph_));
  }
  ~Step() { kiln_graph_release(graph_); }
  Step(const Step&) = delete;
  Step& operator=(const Step&) = delete;

  const kiln_graph* graph() const { return graph_; }
  const std::vector<kiln_value>& feeds() const { return feeds_; }
  const std::vector<kiln_value>& fetches() const { return fetches_; }
  const std::vector<std::vector<int64_t>>& feed_dims() const { return dims_; }

 private:
  kiln_value Parameter(std::vector<int64_t> dims) {
    feeds_.push_back(kiln_op_parameter(graph_, KILN_F32, dims.data(), dims.size(), nullptr, 0));
    dims_.push_back(std::move(dims));
    return feeds_.back();
  }
  kiln_value Dot(kiln_value a, int64_t a_dim, kiln_value b, int64_t b_dim) {
    return kiln_op_dot(graph_, a, b, nullptr, 0, nullptr, 0, &a_dim, 1, &b_dim, 1, 0);
  }
  kiln_value Sum(kiln_value x, int64_t dim) {
    return kiln_op_reduce_by(graph_, x, &dim, 1, KILN_REDUCER_SUM);
  }
  kiln_value Repeat(kiln_value x, kiln_value like, int64_t dim) {
    return kiln_op_broadcast_like(graph_, x, like, &dim, 1);
  }
  kiln_value Scalar(double value, kiln_value like) {
    return kiln_op_broadcast_like(graph_, kiln_op_scalar(graph_, KILN_F32, value), like, nullptr,
                                  0);
  }
  void Update(kiln_value old, kiln_value gradient) {
    const kiln_value change = kiln_op_multiply(graph_, gradient, Scalar(kRate, gradient));
    fetches_.push_back(kiln_op_subtract(graph_, old, change));
  }
  // Fetches the loss, and returns its derivative by the logits.
  kiln_value Loss(kiln_value logits, kiln_value labels) {
    const int64_t rows = 1;
    const kiln_value largest = kiln_op_reduce_by(graph_, logits, &rows, 1, KILN_REDUCER_MAX);
    const kiln_value shifted = kiln_op_subtract(graph_, logits, Repeat(largest, logits, 0));
    const kiln_value exps = kiln_op_exponential(graph_, shifted), sums = Sum(exps, 1);
    const kiln_value hits = Sum(kiln_op_multiply(graph_, labels, shifted), 1);
    const kiln_value losses = kiln_op_subtract(graph_, kiln_op_log(graph_, sums), hits);
    const kiln_value total = Sum(losses, 0);
    fetches_.push_back(kiln_op_multiply(graph_, total, Scalar(1.0 / kBatch, total)));
    const kiln_value softmax = kiln_op_divide(graph_, exps, Repeat(sums, exps, 0));
    const kiln_value excess = kiln_op_subtract(graph_, softmax, labels);
    return kiln_op_multiply(graph_, excess, Scalar(1.0 / kBatch, excess));
  }

  kiln_graph* graph_ = nullptr;
  std::vector<kiln_value> feeds_, fetches_, weights_, biases_;
  std::vector<std::vector<int64_t>> dims_;
};

// The eight products of a step alone, each of operands of its own: forward, and of each layer's
// gradient by its weights and by its input.
class Products {
 public:
  explicit Products(kiln_context* context) {
    Must(kiln_graph_create(context, "products", 8, &graph_));
    for (int l = 0; l < kLayers; ++l) {
      const int64_t in = kSizes[l], out = kSizes[l + 1];
      Add({kBatch, in}, 1, {in, out}, 0);
      Add({kBatch, in}, 0, {kBatch, out}, 0);
      if (l > 0) Add({kBatch, out}, 1, {in, out}, 1);
    }
    Must(kiln_graph_status(graph_));
  }
  ~Products() { kiln_graph_release(graph_); }
  Products(const Products&) = delete;
  Products& operator=(const Products&) = delete;

  const kiln_graph* graph() const { return graph_; }
  const std::vector<kiln_value>& feeds() const { return feeds_; }
  const std::vector<kiln_value>& fetches() const { return fetches_; }
  const std::vector<std::vector<int64_t>>& feed_dims() const { return dims_; }

 private:
  void Add(const std::vector<int64_t>& a, int64_t a_dim, const std::vector<int64_t>& b,
           int64_t b_dim) {
    for (const auto& dims : {a, b}) {
      feeds_.push_back(kiln_op_parameter(graph_, KILN_F32, dims.data(), dims.size(), nullptr, 0));
      dims_.push_back(dims);
    }
    fetches_.push_back(kiln_op_dot(graph_, feeds_.end()[-2], feeds_.back(), nullptr, 0, nullptr, 0,
                                   &a_dim, 1, &b_dim, 1, 0));
  }

  kiln_graph* graph_ = nullptr;
  std::vector<kiln_value> feeds_, fetches_;
  std::vector<std::vector<int64_t>> dims_;
};

// Compiled, the sums, the activations and the updates are fused with what is around them. The
// products, which take most of the time, are the same, and are measured alone, too.
KILN_BENCH(session_mlp) {
  for (int32_t threads : {1, 2}) {
    Context context(threads);
    const Step step(context.get());
    Run by_op(context, step.graph(), KILN_JIT_OFF, step.feeds(), step.fetches());
    Run compiled(context, step.graph(), KILN_JIT_ON, step.feeds(), step.fetches());
    for (const std::vector<int64_t>& dims : step.feed_dims()) {
      by_op.Feed(dims);
      compiled.Feed(dims);
    }
    const Products products(context.get());
    Run alone(context, products.graph(), KILN_JIT_ON, products.feeds(), products.fetches());
    for (const std::vector<int64_t>& dims : products.feed_dims()) alone.Feed(dims);
    const double ratio = PairedRatio([&] { compiled(); }, [&] { by_op(); }, 101);
    const double more = PairedRatio([&] { compiled(); }, [&] { alone(); }, 101);
    const double more_by_op = PairedRatio([&] { by_op(); }, [&] { alone(); }, 101);
    const std::string name = "session.mlp.threads" + std::to_string(threads);
    report.Add(name + ".op_by_op", Measure([&] { by_op(); }).median * 1e3, "ms");
    report.Add(name + ".compiled", Measure([&] { compiled(); }).median * 1e3, "ms");
    report.Add(name + ".compiled_of_op_by_op", ratio, "", AtMost(0.9));
    report.Add(name + ".compiled_of_products", more, "");
    report.Add(name + ".op_by_op_of_products", more_by_op, "");
  }
}

}  // namespace
}  // namespace kiln::bench
