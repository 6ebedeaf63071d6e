#include "encoder_text.h"

#include <utility>

#include "base/strings.h"

namespace kiln::bench {
namespace {

constexpr int64_t kTokens = 128, kWidth = 768, kInner = 3072, kHeads = 12, kHeadWidth = 64;
constexpr int kLayers = 12;

class EncoderText {
 public:
  explicit EncoderText(int64_t batch) : batch_(batch) {
    std::string x = Argument({rows_, kWidth});
    Add("zero", "stablehlo.constant dense<0.0> : tensor<f32>");
    Add("least", "stablehlo.constant dense<0xFF800000> : tensor<f32>");
    for (int layer = 0; layer < kLayers; ++layer) x = Perceptron(Attention(x));
    text_ = Cat("func.func @main(", Join(arguments_, ", "), ") -> ", wide_, " {\n", body_,
                "  return %", x, " : ", wide_, "\n}\n");
  }

  std::string& text() { return text_; }
  std::vector<std::vector<int64_t>>& dims() { return dims_; }

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
  // The heads of each sequence side by side, and back. A batch of one has no dimension.
  std::string Heads(const std::string& a) {
    const Dims apart = Sequences({kTokens, kHeads, kHeadWidth});
    const Dims heads = Sequences({kHeads, kTokens, kHeadWidth});
    const std::string moved = Swap(Reshape(a, {rows_, kWidth}, apart), apart, heads);
    return batch_ == 1 ? moved : Reshape(moved, heads, {batch_ * kHeads, kTokens, kHeadWidth});
  }
  std::string Joined(const std::string& a) {
    const Dims apart = Sequences({kTokens, kHeads, kHeadWidth});
    const Dims heads = Sequences({kHeads, kTokens, kHeadWidth});
    const std::string split =
        batch_ == 1 ? a : Reshape(a, {batch_ * kHeads, kTokens, kHeadWidth}, heads);
    return Reshape(Swap(split, heads, apart), apart, {rows_, kWidth});
  }
  Dims Sequences(Dims dims) const {
    if (batch_ > 1) dims.insert(dims.begin(), batch_);
    return dims;
  }
  std::string Swap(const std::string& a, const Dims& from, const Dims& to) {
    const std::string_view order = batch_ > 1 ? "0, 2, 1, 3" : "1, 0, 2";
    return Value(Cat("stablehlo.transpose %", a, ", dims = [", order, "] : (", Type(from), ") -> ",
                     Type(to)));
  }
  std::string Reduce(std::string_view op, const std::string& a, std::string_view init, int along,
                     const Dims& from, const Dims& to) {
    return Value(Cat("stablehlo.reduce(%", a, " init: %", init, ") applies stablehlo.", op,
                     " across dimensions = [", along, "] : (", Type(from), ", tensor<f32>) -> ",
                     Type(to)));
  }
  // A product with weights, and a bias.
  std::string Dense(const std::string& x, int64_t in, int64_t out) {
    const Dims made = {rows_, out};
    const std::string weights = Argument({in, out}), bias = Argument({out});
    const std::string product = Value(Cat("stablehlo.dot_general %", x, ", %", weights,
                                          ", contracting_dims = [1] x [0] : (", Type({rows_, in}),
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
    const Dims all = {rows_, kWidth}, rows = {rows_}, columns = {kWidth};
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
    const int64_t all_heads = batch_ * kHeads;
    const Dims all = {rows_, kWidth}, heads = {all_heads, kTokens, kHeadWidth};
    const Dims scores = {all_heads, kTokens, kTokens}, rows = {all_heads, kTokens};
    auto head = [&] { return Heads(Dense(x, kWidth, kWidth)); };
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
    const std::string joined = Joined(mixed);
    return LayerNorm(Binary("add", x, Dense(joined, kWidth, kWidth), all));
  }
  // With GELU by tanh.
  std::string Perceptron(const std::string& x) {
    const Dims all = {rows_, kWidth}, inner = {rows_, kInner};
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

  const int64_t batch_;
  const int64_t rows_ = batch_ * kTokens;
  const std::string wide_ = Type({rows_, kWidth});
  std::vector<std::string> arguments_;
  std::vector<Dims> dims_;
  std::string body_, text_;
  int count_ = 0;
};

}  // namespace

Encoder::Encoder(int64_t batch) {
  EncoderText made(batch);
  text_ = std::move(made.text());
  dims_ = std::move(made.dims());
}

EncoderArguments::EncoderArguments(const Encoder& encoder, const Context& context) {
  for (const std::vector<int64_t>& dims : encoder.dims()) {
    kiln_buffer*& array = arrays_[dims];
    if (!array) array = context.NewArray(dims);
    buffers_.push_back(array);
  }
}

EncoderArguments::~EncoderArguments() {
  for (const auto& [dims, array] : arrays_) kiln_buffer_release(array);
}

}  // namespace kiln::bench
