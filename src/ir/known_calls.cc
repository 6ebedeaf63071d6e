#include "ir/known_calls.h"

#include <algorithm>
#include <array>

#include "base/strings.h"
#include "ir/builder.h"
#include "ir/pass_calls.h"
#include "ir/scaled_dot.h"
#include "ir/text_scanner.h"
#include "ir/text_values.h"

namespace kiln::ir {
namespace {

// "side_input_scale" as "sideInputScale".
std::string CamelCase(std::string_view name) {
  std::string text;
  for (size_t k = 0; k < name.size(); ++k) {
    const bool begins = name[k] == '_' && k + 1 < name.size();
    if (begins) ++k;
    text += begins && name[k] >= 'a' ? static_cast<char>(name[k] - 'a' + 'A') : name[k];
  }
  return text;
}

std::string_view JsonOf(std::string_view text, std::string_view key) {
  const std::string quoted = Cat("\"", key, "\"");
  size_t at = text.find(quoted);
  if (at == std::string_view::npos) {
    // XLA's short form has keys without quotes.
    at = text.find(Cat(key, ":"));
    if (at == std::string_view::npos) return {};
    at += key.size();
  } else {
    at += quoted.size();
  }
  Scanner scanner(text.substr(at));
  if (!scanner.Take(":")) return {};
  Result<std::string_view> value = scanner.TakeValue();
  return value.ok() ? *value : std::string_view();
}

// The value of a key that occurs once in a text of JSON, as it is written, or nothing. Protocol
// buffers give keys in either case.
std::string_view Json(std::string_view text, std::string_view key) {
  const std::string_view value = JsonOf(text, key);
  return value.empty() ? JsonOf(text, CamelCase(key)) : value;
}

// "1.5", "\"2\"".
double JsonNumber(std::string_view text, std::string_view key, double absent) {
  std::string_view value = Json(text, key);
  if (value.starts_with("\"") && value.size() >= 2) value = value.substr(1, value.size() - 2);
  return ParseDouble(value).value_or(absent);
}

// ["0","1"], of single digits.
Ints JsonInts(std::string_view text, std::string_view key) {
  Ints numbers;
  for (char c : Json(text, key)) {
    if (IsDigit(c)) numbers.push_back(c - '0');
  }
  return numbers;
}

class Known {
 public:
  explicit Known(const ForeignInstruction& call)
      : call_(call),
        b_(call.computation, nullptr, call.op_name),
        config_(call.attributes.Text(Attr::kBackendConfig)),
        shape_(call.shape->is_tuple() && !call.shape->elements().empty() ? call.shape->elements()[0]
                                                                         : *call.shape) {}

  Instruction* Make() {
    if (!shape_.is_array()) return nullptr;
    const std::string_view target = call_.name;
    if (target.ends_with("TopK")) return Ended(TopK());
    Instruction* value =
        target == "AllocateBuffer"          ? b_.Zeros(shape_)
        : target == "__op$block_scaled_dot" ? BlockScaledDot()
        : target.starts_with("__cublas$")   ? Gemm()
        : target.starts_with("__cudnn$conv") && target.find("Forward") != std::string_view::npos
            ? Forward()
        : target == "__cudnn$convBackwardInput"  ? BackwardInput()
        : target == "__cudnn$convBackwardFilter" ? BackwardFilter()
                                                 : nullptr;
    value = b_.Convert(value, shape_.type());
    if (!value || !value->shape().SameDimensions(shape_)) return nullptr;
    if (call_.shape->is_array()) return Ended(value);
    // Beside the value there is memory to work in.
    std::vector<Instruction*> elements = {value};
    if (beside_) {
      if (call_.shape->elements().size() < 2) return nullptr;
      elements.push_back(b_.Convert(beside_, call_.shape->elements()[1].type()));
      if (!elements[1] || !elements[1]->shape().SameDimensions(call_.shape->elements()[1])) {
        return nullptr;
      }
    }
    for (size_t k = elements.size(); k < call_.shape->elements().size(); ++k) {
      const Shape& other = call_.shape->elements()[k];
      if (!other.is_array()) return nullptr;
      elements.push_back(b_.Zeros(other));
    }
    return Ended(b_.Tuple(std::move(elements)));
  }

 private:
  Instruction* Ended(Instruction* value) { return b_.ok() ? value : nullptr; }
  Instruction* Operand(size_t k) const {
    return k < call_.operands.size() ? call_.operands[k] : nullptr;
  }

  Instruction* TopK() {
    if (call_.operands.size() != 1 || !call_.shape->is_tuple() || shape_.rank() < 1 ||
        !shape_.is_static()) {
      return nullptr;
    }
    bool largest = true;
    if (call_.to_apply) {
      const Instruction* order = call_.to_apply->root();
      if (order->opcode() != Opcode::kCompare) return nullptr;
      const Direction direction = order->attributes().DirectionOf(Attr::kDirection);
      largest = direction == Direction::kGt || direction == Direction::kGe;
    }
    Attributes attributes = {{Attr::kK, shape_.dim(shape_.rank() - 1)}};
    if (largest) attributes.Set(Attr::kLargest, true);
    Instruction* topk = b_.Add(Opcode::kTopK, {call_.operands[0]}, std::move(attributes));
    return topk && topk->shape().SameTypeAndDimensions(*call_.shape) ? topk : nullptr;
  }

  // Contracts the last dimensions; all before the last two are a batch.
  Instruction* BlockScaledDot() {
    const size_t count = call_.operands.size();
    if (count < 3 || count > 5) return nullptr;
    const Shape& lhs = call_.operands[0]->shape();
    if (!lhs.is_array() || lhs.rank() < 2) return nullptr;
    const int64_t rank = lhs.rank(), size = lhs.dim(rank - 1);
    Ints batch;
    for (int64_t d = 0; d < rank - 2; ++d) batch.push_back(d);
    auto block = static_cast<int64_t>(JsonNumber(config_, "block_size", 0));
    std::array<Instruction*, 4> operands;
    std::copy_n(call_.operands.begin(), std::min<size_t>(count, 4), operands.begin());
    if (count == 3) operands[3] = b_.Scalar(ElementType::kF32, 1);
    // Scales may be padded behind the operand's rows and blocks.
    for (size_t k = 2; k < std::min<size_t>(count, 4); ++k) {
      const Shape& scale = operands[k]->shape();
      if (!scale.is_array() || scale.rank() != rank || !scale.is_static()) return nullptr;
      const int64_t blocks = scale.dim(rank - 1);
      if (block <= 0) block = blocks > 0 && size % blocks == 0 ? size / blocks : 32;
      if (block <= 0) return nullptr;
      std::vector<SliceDimension> slices;
      for (int64_t d = 0; d < rank; ++d) {
        const int64_t wanted =
            d == rank - 1 ? (size + block - 1) / block : operands[k - 2]->shape().dim(d);
        if (wanted > scale.dim(d)) return nullptr;
        slices.push_back({0, wanted, 1});
      }
      operands[k] = b_.Slice(operands[k], std::move(slices));
    }
    Instruction* dot = ScaledDot(b_, operands,
                                 {{Attr::kLhsBatchDims, batch},
                                  {Attr::kRhsBatchDims, batch},
                                  {Attr::kLhsContractingDims, Ints{rank - 1}},
                                  {Attr::kRhsContractingDims, Ints{rank - 1}}},
                                 shape_.type(), block);
    if (dot && count == 5) dot = TimesScale(b_, dot, call_.operands[4], shape_.type());
    return dot;
  }

  Instruction* Scaled(Instruction* x, double factor) {
    return x && factor != 1 ? b_.Times(x, b_.Number(x, factor)) : x;
  }
  Instruction* Relu(Instruction* x) {
    return x ? b_.Binary(Opcode::kMaximum, x, b_.Number(x, 0)) : nullptr;
  }

  Instruction* Gemm() {
    if (!Operand(1)) return nullptr;
    const bool is_f8 = call_.name.ends_with("$f8");
    // Results in eight bits have scales of their own.
    if (is_f8 && BitWidth(shape_.type()) == 8) return nullptr;
    const bool is_complex = IsComplex(shape_.type());
    const double alpha = JsonNumber(config_, "alpha_real", 1);
    const double beta = JsonNumber(config_, "beta", 0);
    if (JsonNumber(config_, "alpha_imag", 0) != 0) return nullptr;
    Attributes attributes;
    for (auto [key, name] : {std::pair(Attr::kLhsBatchDims, "lhs_batch_dimensions"),
                             std::pair(Attr::kRhsBatchDims, "rhs_batch_dimensions"),
                             std::pair(Attr::kLhsContractingDims, "lhs_contracting_dimensions"),
                             std::pair(Attr::kRhsContractingDims, "rhs_contracting_dimensions")}) {
      attributes.Set(key, JsonInts(config_, name));
    }
    const bool plain = attributes.IntsOf(Attr::kLhsContractingDims).empty() &&
                       call_.operands[0]->shape().rank() == 2;
    if (plain) {
      attributes.Set(Attr::kLhsContractingDims, Ints{1});
      attributes.Set(Attr::kRhsContractingDims, Ints{0});
    }
    // Sums have the type of the result, or f32.
    const ElementType type =
        IsFloat(shape_.type()) && BitWidth(shape_.type()) < 32 ? ElementType::kF32 : shape_.type();
    Instruction* value =
        b_.Add(Opcode::kDot, {b_.Convert(Operand(0), type), b_.Convert(Operand(1), type)},
               std::move(attributes));
    value = Scaled(value, alpha);
    size_t next = beta != 0 ? 3 : 2;
    for (int k = 0; is_f8 && k < 2; ++k) {
      Instruction* scale = Operand(next++);
      if (!scale || !scale->shape().is_scalar()) return nullptr;
      value = TimesScale(b_, value, scale, type);
    }
    if (beta != 0) {
      Instruction* addend = Operand(2);
      if (!addend || is_complex || !value) return nullptr;
      value = b_.Plus(value, Scaled(b_.Convert(addend, type), beta));
    }
    std::string_view epilogue = Json(config_, "epilogue");
    if (epilogue.starts_with("\"")) epilogue = epilogue.substr(1, epilogue.size() - 2);
    if (epilogue.starts_with("BIAS")) {
      Instruction* bias = Operand(next++);
      if (!bias || !value) return nullptr;
      value = b_.Plus(value, b_.Broadcast(b_.Convert(bias, type), value->shape().dimensions(),
                                          {value->shape().rank() - 1}));
      epilogue.remove_prefix(epilogue == "BIAS" ? 4 : 5);
    }
    if (is_f8 && next < call_.operands.size()) return nullptr;
    if (epilogue.ends_with("_AUX")) {
      beside_ = value;
      epilogue.remove_suffix(4);
    }
    if (epilogue == "RELU") return Relu(value);
    if (epilogue == "GELU") return Gelu(value);
    if (epilogue == "SILU")
      return value ? b_.Times(value, b_.Unary(Opcode::kLogistic, value)) : value;
    return epilogue.empty() || epilogue == "DEFAULT" ? value : nullptr;
  }

  // As cuBLAS has it: by tanh.
  Instruction* Gelu(Instruction* x) {
    if (!x) return nullptr;
    auto times = [&](Instruction* y, double factor) { return b_.Times(y, b_.Number(y, factor)); };
    Instruction* cube = times(b_.Times(b_.Times(x, x), x), 0.044715);
    Instruction* tanh = b_.Unary(Opcode::kTanh, times(b_.Plus(x, cube), 0.7978845608028654));
    return times(b_.Times(x, b_.Plus(tanh, b_.Number(tanh, 1))), 0.5);
  }

  // --- Convolutions, whose dimensions are those of the one forward

  // Whether the text has what a convolution needs.
  bool ReadConvolution() {
    Attributes read;
    for (const auto& [name, text] : call_.more) {
      const AttrInfo* info = AttrByName(name);
      if (!info) continue;
      Scanner scanner(text);
      SymbolicNumbers none;
      Result<AttrValue> value = ReadAttribute(scanner, *info, none);
      if (!value.ok()) return false;
      read.Set(info->key, *std::move(value));
    }
    if (!read.Has(Attr::kDimLabels) || !Operand(1) || !Operand(0)->shape().is_array() ||
        !Operand(1)->shape().is_array()) {
      return false;
    }
    dimensions_ = read.Convolution(Attr::kDimLabels);
    window_ = read.Window(Attr::kWindow);
    groups_ = read.Int(Attr::kFeatureGroupCount, 1);
    const int64_t rank = dimensions_.rank();
    // Sums of their products are below 2^63.
    constexpr int64_t kMost = int64_t{1} << 28;
    auto moderate = [](int64_t number) { return number >= -kMost && number <= kMost; };
    for (const WindowDimension& w : window_) {
      if (w.size < 1 || w.stride < 1 || w.window_dilation < 1 || !moderate(w.size) ||
          !moderate(w.stride) || !moderate(w.low) || !moderate(w.window_dilation)) {
        return false;
      }
    }
    for (const Shape* shape : {&Operand(0)->shape(), &Operand(1)->shape(), &shape_}) {
      if (!std::ranges::all_of(shape->dims(), moderate)) return false;
    }
    return window_.size() == dimensions_.input_spatial.size() &&
           Operand(0)->shape().rank() == rank && Operand(1)->shape().rank() == rank &&
           shape_.rank() == rank && shape_.is_static() && Operand(0)->shape().is_static() &&
           Operand(1)->shape().is_static();
  }
  // cuDNN computes in f32 or f64.
  ElementType Wide() const {
    return shape_.type() == ElementType::kF64 ? ElementType::kF64 : ElementType::kF32;
  }
  Instruction* Convolution(Instruction* lhs, Instruction* rhs) {
    return b_.Add(Opcode::kConvolution, {b_.Convert(lhs, Wide()), b_.Convert(rhs, Wide())},
                  {{Attr::kWindow, window_},
                   {Attr::kDimLabels, dimensions_},
                   {Attr::kFeatureGroupCount, groups_}});
  }

  Instruction* Forward() {
    if (!ReadConvolution()) return nullptr;
    // Ops behind the convolution, in a form of cuDNN's.
    const std::string_view graph = Json(config_, "serialized_graph");
    if (!graph.empty() && graph != "\"\"") return nullptr;
    Instruction* value =
        Scaled(Convolution(Operand(0), Operand(1)), JsonNumber(config_, "conv_result_scale", 1));
    if (call_.operands.size() > 2) {
      Instruction* bias = Operand(2);
      if (!value || !bias->shape().is_array()) return nullptr;
      value = b_.Plus(value, b_.Broadcast(b_.Convert(bias, Wide()), value->shape().dimensions(),
                                          {dimensions_.output_feature}));
    }
    if (const double scale = JsonNumber(config_, "side_input_scale", 0);
        call_.operands.size() > 3 && scale != 0) {
      value = b_.Plus(value, Scaled(b_.Convert(Operand(3), Wide()), scale));
    }
    const std::string_view mode = Json(config_, "activation_mode");
    const bool none = mode.empty() || mode == "\"kNone\"" || mode == "\"0\"";
    const bool relu = mode == "\"kRelu\"" || mode == "\"2\"";
    return none ? value : relu ? Relu(value) : nullptr;
  }

  // Of the gradient of the result and the filter.
  Instruction* BackwardInput() {
    if (!ReadConvolution() || groups_ != 1) return nullptr;
    const ConvolutionDimensions d = dimensions_;
    const Shape& gradient = Operand(0)->shape();
    for (size_t k = 0; k < window_.size(); ++k) {
      WindowDimension& w = window_[k];
      if (w.base_dilation != 1) return nullptr;
      const int64_t reach = (w.size - 1) * w.window_dilation;
      const int64_t base = (gradient.dim(d.output_spatial[k]) - 1) * w.stride + 1;
      const int64_t wanted = shape_.dim(d.input_spatial[k]);
      const int64_t low = reach - w.low;
      w = {.size = w.size,
           .low = low,
           .high = wanted - base - low + reach,
           .base_dilation = w.stride,
           .window_dilation = w.window_dilation,
           .reversed = !w.reversed};
    }
    dimensions_ = {d.output_batch,          d.output_feature,       d.output_spatial,
                   d.kernel_output_feature, d.kernel_input_feature, d.kernel_spatial,
                   d.input_batch,           d.input_feature,        d.input_spatial};
    return Scaled(Convolution(Operand(0), Operand(1)), JsonNumber(config_, "conv_result_scale", 1));
  }

  // Of the input and the gradient of the result.
  Instruction* BackwardFilter() {
    if (!ReadConvolution() || groups_ != 1) return nullptr;
    const ConvolutionDimensions d = dimensions_;
    const Shape &input = Operand(0)->shape(), &gradient = Operand(1)->shape();
    for (size_t k = 0; k < window_.size(); ++k) {
      WindowDimension& w = window_[k];
      if (w.base_dilation != 1 || w.reversed) return nullptr;
      const int64_t size = gradient.dim(d.output_spatial[k]);
      const int64_t reach = (w.size - 1) * w.window_dilation + (size - 1) * w.stride + 1;
      w = {.size = size,
           .stride = w.window_dilation,
           .low = w.low,
           .high = reach - input.dim(d.input_spatial[k]) - w.low,
           .window_dilation = w.stride};
    }
    dimensions_ = {d.input_feature,        d.input_batch,           d.input_spatial,
                   d.output_batch,         d.output_feature,        d.output_spatial,
                   d.kernel_input_feature, d.kernel_output_feature, d.kernel_spatial};
    return Scaled(Convolution(Operand(0), Operand(1)), JsonNumber(config_, "conv_result_scale", 1));
  }

  const ForeignInstruction& call_;
  Builder b_;
  std::string_view config_;
  const Shape& shape_;             // of the value
  Instruction* beside_ = nullptr;  // a second result
  ConvolutionDimensions dimensions_;
  std::vector<WindowDimension> window_;
  int64_t groups_ = 1;
};

bool IsKnown(std::string_view target) {
  constexpr std::string_view kTargets[] = {"AllocateBuffer",
                                           "TopK",
                                           "__gpu$TopK",
                                           "__op$block_scaled_dot",
                                           "__cublas$gemm",
                                           "__cublas$lt$matmul",
                                           "__cublas$lt$matmul$f8",
                                           "__cudnn$convForward",
                                           "__cudnn$convForwardGraph",
                                           "__cudnn$convBiasActivationForward",
                                           "__cudnn$convBackwardInput",
                                           "__cudnn$convBackwardFilter"};
  return std::ranges::find(kTargets, target) != std::end(kTargets);
}

}  // namespace

Instruction* KnownCall(const ForeignInstruction& call) {
  const bool known = IsKnown(call.name);
  if ((!known && !IsPassCall(call.name)) || !call.shape) return nullptr;
  const Instructions all = call.computation->instructions();
  const size_t before = all.size();
  Instruction* value = known ? Known(call).Make() : PassCall(call);
  // What was made in vain.
  while (!value && all.size() > before) call.computation->Remove(all.back());
  return value;
}

}  // namespace kiln::ir
