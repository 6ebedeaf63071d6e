// A program in StableHLO of BERT's size in a session, beside the same graph compiled as a whole.
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "base/strings.h"
#include "c_abi.h"
#include "harness.h"
#include "kiln/kiln.h"

namespace kiln::bench {
namespace {

// BERT-base, for one text.
constexpr int64_t kTokens = 128, kWidth = 768, kInner = 3072, kHeads = 12, kHeadWidth = 64;
constexpr int kLayers = 12;

// The text of an encoder: attention and a perceptron, each with a residual and a layer norm.
class Encoder {
 public:
  Encoder() {
    std::string x = Argument({kTokens, kWidth});
    Add("zero", "stablehlo.constant dense<0.0> : tensor<f32>");
    Add("least", "stablehlo.constant dense<0xFF800000> : tensor<f32>");
    for (int layer = 0; layer < kLayers; ++layer) x = Perceptron(Attention(x));
    text_ = Cat("func.func @main(", Join(arguments_, ", "), ") -> ", wide_, " {\n", body_,
                "  return %", x, " : ", wide_, "\n}\n");
  }

  const std::string& text() const { return text_; }
  const std::vector<std::vector<int64_t>>& dims() const { return dims_; }

 private:
  using Dims = std::vector<int64_t>;

  static std::string Type(const Dims& dims) {
    std::string type = "tensor<";
    for (int64_t dim : dims) type += Cat(dim, "x");
    return type + "f32>";
  }
  std::string Argument(const Dims& dims) {
    const std::string name = Cat("p", dims_.size());
    arguments_.push_back(Cat("%", name, ": ", Type(dims)));
    dims_.push_back(dims);
    return name;
  }
  void Add(std::string_view name, std::string_view op) {
    body_ += Cat("  %", name, " = ", op, "\n");
  }
  std::string Value(std::string_view op) {
    const std::string name = Cat("v", count_++);
    Add(name, op);
    return name;
  }
  std::string Binary(std::string_view op, const std::string& a, const std::string& b,
                     const Dims& dims) {
    return Value(Cat("stablehlo.", op, " %", a, ", %", b, " : ", Type(dims)));
  }
  std::string Unary(std::string_view op, const std::string& a, const Dims& dims) {
    return Value(Cat("stablehlo.", op, " %", a, " : ", Type(dims)));
  }
  std::string Constant(std::string_view value, const Dims& dims) {
    return Value(Cat("stablehlo.constant dense<", value, "> : ", Type(dims)));
  }
  std::string Repeat(const std::string& a, const Dims& from, std::string_view along,
                     const Dims& to) {
    return Value(Cat("stablehlo.broadcast_in_dim %", a, ", dims = [", along, "] : (", Type(from),
                     ") -> ", Type(to)));
  }
  std::string Reshape(const std::string& a, const Dims& from, const Dims& to) {
    return Value(Cat("stablehlo.reshape %", a, " : (", Type(from), ") -> ", Type(to)));
  }
  std::string Transpose(const std::string& a, const Dims& from, const Dims& to) {
    return Value(
        Cat("stablehlo.transpose %", a, ", dims = [1, 0, 2] : (", Type(from), ") -> ", Type(to)));
  }
  std::string Reduce(std::string_view op, const std::string& a, std::string_view init, int along,
                     const Dims& from, const Dims& to) {
    return Value(Cat("stablehlo.reduce(%", a, " init: %", init, ") applies stablehlo.", op,
                     " across dimensions = [", along, "] : (", Type(from), ", tensor<f32>) -> ",
                     Type(to)));
  }
  // A product with weights, and a bias.
  std::string Dense(const std::string& x, int64_t in, int64_t out) {
    const Dims made = {kTokens, out};
    const std::string weights = Argument({in, out}), bias = Argument({out});
    const std::string product = Value(Cat("stablehlo.dot_general %", x, ", %", weights,
                                          ", contracting_dims = [1] x [0] : (", Type({kTokens, in}),
                                          ", ", Type({in, out}), ") -> ", Type(made)));
    return Binary("add", product, Repeat(bias, {out}, "1", made), made);
  }
  // The batched product of two arrays of heads, along these dimensions.
  std::string Batched(const std::string& a, const Dims& a_dims, const std::string& b,
                      const Dims& b_dims, std::string_view along, const Dims& to) {
    return Value(Cat("stablehlo.dot_general %", a, ", %", b, ", batching_dims = [0] x [0], ",
                     "contracting_dims = ", along, " : (", Type(a_dims), ", ", Type(b_dims),
                     ") -> ", Type(to)));
  }
  std::string LayerNorm(const std::string& x) {
    const Dims all = {kTokens, kWidth}, rows = {kTokens}, columns = {kWidth};
    auto mean = [&](const std::string& of) {
      const std::string sum = Reduce("add", of, "zero", 1, all, rows);
      return Binary("divide", sum, Constant("768.0", rows), rows);
    };
    const std::string centred = Binary("subtract", x, Repeat(mean(x), rows, "0", all), all);
    const std::string variance = mean(Binary("multiply", centred, centred, all));
    const std::string scale =
        Unary("rsqrt", Binary("add", variance, Constant("1.0e-5", rows), rows), rows);
    const std::string normal = Binary("multiply", centred, Repeat(scale, rows, "0", all), all);
    const std::string gain = Repeat(Argument(columns), columns, "1", all);
    const std::string offset = Repeat(Argument(columns), columns, "1", all);
    return Binary("add", Binary("multiply", normal, gain, all), offset, all);
  }
  std::string Attention(const std::string& x) {
    const Dims all = {kTokens, kWidth}, apart = {kTokens, kHeads, kHeadWidth};
    const Dims heads = {kHeads, kTokens, kHeadWidth}, scores = {kHeads, kTokens, kTokens};
    const Dims rows = {kHeads, kTokens};
    auto head = [&] {
      return Transpose(Reshape(Dense(x, kWidth, kWidth), all, apart), apart, heads);
    };
    const std::string q = head(), k = head(), v = head();
    std::string score = Batched(q, heads, k, heads, "[2] x [2]", scores);
    score = Binary("multiply", score, Constant("0.125", scores), scores);
    const std::string largest = Reduce("maximum", score, "least", 2, scores, rows);
    const std::string power =
        Unary("exponential",
              Binary("subtract", score, Repeat(largest, rows, "0, 1", scores), scores), scores);
    const std::string sum = Reduce("add", power, "zero", 2, scores, rows);
    const std::string share = Binary("divide", power, Repeat(sum, rows, "0, 1", scores), scores);
    const std::string mixed = Batched(share, scores, v, heads, "[2] x [1]", heads);
    const std::string joined = Reshape(Transpose(mixed, heads, apart), apart, all);
    return LayerNorm(Binary("add", x, Dense(joined, kWidth, kWidth), all));
  }
  // With GELU by tanh.
  std::string Perceptron(const std::string& x) {
    const Dims all = {kTokens, kWidth}, inner = {kTokens, kInner};
    const std::string y = Dense(x, kWidth, kInner);
    const std::string cube = Binary("multiply", Binary("multiply", y, y, inner), y, inner);
    const std::string small = Binary("multiply", cube, Constant("0.044715", inner), inner);
    const std::string angle =
        Binary("multiply", Binary("add", y, small, inner), Constant("0.7978845608", inner), inner);
    const std::string rest =
        Binary("add", Unary("tanh", angle, inner), Constant("1.0", inner), inner);
    const std::string half = Binary("multiply", y, Constant("0.5", inner), inner);
    const std::string gelu = Binary("multiply", half, rest, inner);
    return LayerNorm(Binary("add", x, Dense(gelu, kInner, kWidth), all));
  }

  const std::string wide_ = Type({kTokens, kWidth});
  std::vector<std::string> arguments_;
  std::vector<Dims> dims_;
  std::string body_, text_;
  int count_ = 0;
};

// The number of clusters of which an explanation speaks.
int64_t CountClusters(kiln_session* session, const std::vector<kiln_value>& feeds,
                      const kiln_value& fetch) {
  kiln_text* explanation = nullptr;
  Must(kiln_session_explain(session, feeds.data(), feeds.size(), &fetch, 1, nullptr, 0,
                            &explanation));
  const std::string text = kiln_text_data(explanation, nullptr);
  kiln_text_release(explanation);
  int64_t count = 0;
  while (text.find(Cat(" in cluster_", count, " ")) != std::string::npos) ++count;
  return count;
}

KILN_BENCH(session_encoder) {
  const Encoder encoder;
  for (int32_t threads : {1, 2}) {
    Context context(threads);
    kiln_graph* graph = nullptr;
    Must(kiln_graph_from_stablehlo(context.get(), encoder.text().data(), encoder.text().size(),
                                   nullptr, &graph));
    std::vector<kiln_value> feeds;
    // Layers share their weights: only the time matters.
    std::map<std::vector<int64_t>, kiln_buffer*> arrays;
    std::vector<kiln_buffer*> arguments;
    for (size_t i = 0; i < encoder.dims().size(); ++i) {
      feeds.push_back(kiln_graph_parameter(graph, i));
      kiln_buffer*& array = arrays[encoder.dims()[i]];
      if (!array) array = context.NewArray(encoder.dims()[i]);
      arguments.push_back(array);
    }
    const kiln_value fetch = kiln_graph_result(graph);
    Run run(context, graph, KILN_JIT_ON, feeds, {fetch});
    for (kiln_buffer* array : arguments) run.Share(array);
    kiln_executable* whole = nullptr;
    Must(kiln_graph_compile(graph, nullptr, &whole));
    kiln_buffer* result = nullptr;
    auto run_whole = [&] {
      Must(kiln_executable_run(whole, nullptr, arguments.data(), arguments.size(), &result, 1));
    };
    const double ratio = PairedRatio([&] { run(); }, run_whole, 21);
    const std::string name = "session.encoder.threads" + std::to_string(threads);
    report.Add(name + ".clusters", static_cast<double>(CountClusters(run.session(), feeds, fetch)),
               "", AtMost(1));
    report.Add(name, Measure([&] { run(); }).median * 1e3, "ms");
    report.Add(name + ".of_the_graph_compiled", ratio, "", AtMost(1.02));
    kiln_buffer_release(result);
    kiln_executable_release(whole);
    for (const auto& [dims, array] : arrays) kiln_buffer_release(array);
    kiln_graph_release(graph);
  }
}

}  // namespace
}  // namespace kiln::bench
