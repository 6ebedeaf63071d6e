#include "calls/large_recipes.h"

#include <algorithm>

#include "support/literal.h"
#include "tensor/shape.h"

namespace kiln::fuzz {
namespace {

void Groups(Maker& m, const char* name) {
  const std::string base = name;
  if (m.w.Chance(50)) return;
  m.Set(base.c_str(), base == "source_target_pairs" ? Ints{0, 0} : Ints{0});
  m.Set((base + "_sizes").c_str(), base == "source_target_pairs" ? Ints{2} : Ints{1});
}

void Window(Maker& m, const Value& x, bool reversal) {
  Ints size, stride, base, window, low, high, reversed;
  for (int64_t d : x.dims) {
    size.push_back(m.w.Chance(50) ? 1
                                  : m.w.Between(1, std::min<int64_t>(3, std::max<int64_t>(d, 1))));
    stride.push_back(m.w.Between(1, 2));
    base.push_back(m.w.Chance(90) ? 1 : 2);
    window.push_back(m.w.Chance(90) ? 1 : 2);
    low.push_back(m.w.Chance(70) ? 0 : m.w.Between(-1, 2));
    high.push_back(m.w.Chance(70) ? 0 : m.w.Between(-1, 2));
    reversed.push_back(m.w.Chance(20));
  }
  m.Set("window_dimensions", size);
  m.Set("window_strides", stride);
  m.Set("base_dilations", base);
  m.Set("window_dilations", window);
  m.Set("padding_low", low);
  m.Set("padding_high", high);
  if (reversal) m.Set("window_reversal", reversed);
  if (m.w.Chance(30)) m.SetNull(m.w.Chance(50) ? "base_dilations" : "window_dilations");
}

}  // namespace

bool IsSmall(const Ints& dims) {
  int64_t count = 1;
  for (int64_t d : dims) {
    if (d < 0 || d > 1 << 16) return false;
    count *= std::max<int64_t>(d, 1);
    if (count > 1 << 16) return false;
  }
  return true;
}

std::string RandomBytes(World& world, kiln_dtype dtype, const Ints& dims) {
  const Literal literal = SampleLiteral(
      Shape(static_cast<ElementType>(dtype), std::span<const int64_t>(dims)), world.Seed());
  return std::string(reinterpret_cast<const char*>(literal.data()),
                     static_cast<size_t>(literal.byte_size()));
}

void BatchNorm(Maker& m) {
  const Value x = m.Array(kFloatType, 1);
  const size_t feature = m.Dim(x);
  m.Set("operand", x);
  for (const char* name : {"scale", "offset", "mean", "variance"}) {
    m.Set(name, m.Of(x.dtype, {x.dims[feature]}));
  }
  m.Set("grad_output", m.Of(x.dtype, x.dims));
  m.SetReal("epsilon", 1e-3);
  m.Set("feature_index", static_cast<int64_t>(feature));
}

void Like(Maker& m) {
  const Value like = m.Array(kAny, 0, false);
  m.Set("like", like);
  m.Set("iota_dimension", static_cast<int64_t>(m.Dim(like)));
  const Value x = m.w.Chance(50) ? m.Of(like.dtype, like.dims) : m.Scalar(like.dtype);
  Ints dimensions;
  for (size_t i = 0; i < x.dims.size(); ++i) dimensions.push_back(static_cast<int64_t>(i));
  m.Set("operand", x);
  m.Set("dimensions", dimensions);
}

// Operands of a collective, and the groups of the one process that there is.
void Collective(Maker& m) {
  const Value x = m.Array(kNumber, 1);
  m.Set("operands", std::vector<Value>{x});
  m.Set("operand", x);
  m.Set("dims", x.dims);
  if (m.name() == "kiln_op_all_gather" || m.name() == "kiln_op_reduce_scatter") {
    m.Set("dimensions", Ints{static_cast<int64_t>(m.Dim(x))});
  }
  Groups(m, m.name() == "kiln_op_collective_permute" ? "source_target_pairs" : "replica_groups");
  if (m.name() == "kiln_op_all_reduce" || m.name() == "kiln_op_reduce_scatter") {
    m.SetGraphs("to_apply", {m.Reducer({x.dtype})});
  }
}

void Transfer(Maker& m) {
  if (!m.g.is_odd) return;
  m.Set("token", m.Token());
  m.Set("channel_id", int64_t{1});
  m.Set("is_host_transfer", int64_t{1});
  const Value x = m.Array(kAny);
  m.Set("operand", x);
  if (m.name().ends_with("_done")) {
    const bool is_send = m.name() == "kiln_op_send_done";
    m.Call(is_send ? "kiln_op_send" : "kiln_op_recv", [&](Maker& n) { Transfer(n); });
    m.Set("operand", m.Last());
  }
  m.Set("dtype", int64_t{x.dtype});
  m.Set("dims", x.dims);
  m.SetText("infeed_config", m.w.Chance(50) ? "" : "config");
  m.SetText("outfeed_config", m.w.Chance(50) ? "" : m.w.WildText());
}

void Reduction(Maker& m) {
  Value x = m.Array(kAny, 1, m.name() != "kiln_op_reduce");
  std::vector<Value> operands{x}, inits{m.Scalar(x.dtype)};
  std::vector<kiln_dtype> types{x.dtype};
  if (m.w.Chance(20)) {
    operands.push_back(m.Of(KILN_S32, x.dims));
    inits.push_back(m.Scalar(KILN_S32));
    types.push_back(KILN_S32);
  }
  m.Set("operands", operands);
  m.Set("init_values", inits);
  m.SetGraphs("to_apply", {m.Reducer(types)});
  if (m.name() == "kiln_op_reduce") {
    m.Set("dimensions", m.Some(x.dims.size(), 1, false));
  } else {
    Window(m, x, false);
  }
}

void Gather(Maker& m) {
  const Value x = m.Array(kAny, 1);
  const size_t rank = x.dims.size();
  const Ints map = m.Some(rank, 1, false);
  Ints sizes, collapsed, offset;
  const Ints batch = m.w.Dims(2);
  for (size_t d = 0; d < rank; ++d) {
    const bool indexed = std::find(map.begin(), map.end(), static_cast<int64_t>(d)) != map.end();
    sizes.push_back(!indexed || x.dims[d] == 0 ? x.dims[d] : m.w.Between(1, x.dims[d]));
    if (indexed && m.w.Chance(50) && x.dims[d] > 0) {
      sizes.back() = 1;
      collapsed.push_back(static_cast<int64_t>(d));
    }
  }
  for (size_t d = 0; d < rank - collapsed.size(); ++d) {
    offset.push_back(static_cast<int64_t>(batch.size() + d));
  }
  Ints index_dims = batch;
  index_dims.push_back(static_cast<int64_t>(map.size()));
  m.Set("operand", x);
  m.Set("start_indices", m.Of(KILN_S32, index_dims));
  m.Set("offset_dims", offset);
  m.Set("collapsed_slice_dims", collapsed);
  m.Set("start_index_map", map);
  m.Set("index_vector_dim", static_cast<int64_t>(batch.size()));
  m.Set("slice_sizes", sizes);
}

void Scatter(Maker& m) {
  const Value x = m.Array(kNumber, 1);
  const size_t rank = x.dims.size();
  const Ints map = m.Some(rank, 1, false);
  const Ints batch = m.w.Dims(2);
  Ints inserted, window_dims, update_dims = batch;
  for (size_t d = 0; d < rank; ++d) {
    const bool indexed = std::find(map.begin(), map.end(), static_cast<int64_t>(d)) != map.end();
    if (indexed && m.w.Chance(50) && x.dims[d] > 0) {
      inserted.push_back(static_cast<int64_t>(d));
    } else {
      window_dims.push_back(static_cast<int64_t>(update_dims.size()));
      update_dims.push_back(indexed && x.dims[d] > 0 ? m.w.Between(1, x.dims[d]) : x.dims[d]);
    }
  }
  Ints index_dims = batch;
  index_dims.push_back(static_cast<int64_t>(map.size()));
  m.Set("operands", std::vector<Value>{x});
  m.Set("scatter_indices", m.Of(KILN_S32, index_dims));
  m.Set("updates", std::vector<Value>{m.Of(x.dtype, update_dims)});
  m.Set("update_window_dims", window_dims);
  m.Set("inserted_window_dims", inserted);
  m.Set("scatter_dims_to_operand_dims", map);
  m.Set("index_vector_dim", static_cast<int64_t>(batch.size()));
  m.SetGraphs("to_apply", {m.Reducer({x.dtype})});
}

void Dot(Maker& m) {
  const kiln_dtype dtype = m.Type(kNumber);
  const int64_t k = m.w.Between(1, 20);
  const Ints batch = m.w.Chance(30) ? Ints{m.w.Between(1, 4)} : Ints{};
  Ints lhs = batch, rhs = batch;
  const auto b = static_cast<int64_t>(batch.size());
  const bool turned = m.w.Chance(50);
  lhs.push_back(m.w.Between(1, 9));
  lhs.push_back(k);
  rhs.push_back(k);
  rhs.push_back(m.w.Between(1, 9));
  if (turned) std::swap(rhs[rhs.size() - 1], rhs[rhs.size() - 2]);
  m.Set("lhs", m.Of(dtype, lhs));
  m.Set("rhs", m.Of(dtype, rhs));
  if (b > 0) {
    m.Set("lhs_batch_dims", Ints{0});
    m.Set("rhs_batch_dims", Ints{0});
  }
  m.Set("lhs_contracting_dims", Ints{b + 1});
  m.Set("rhs_contracting_dims", Ints{turned ? b + 1 : b});
  m.Set("dtype", int64_t{m.w.Chance(80) ? 0 : dtype});
}

void Convolution(Maker& m) {
  const kiln_dtype dtype = m.Type(kFloatType);
  const int64_t groups = m.w.Chance(70) ? 1 : 2;
  const Ints image{m.w.Between(1, 3), m.w.Between(1, 8), m.w.Between(3, 8), 2 * groups};
  const Ints kernel{m.w.Between(1, 3), m.w.Between(1, 3), 2, 2 * groups};
  m.Set("lhs", m.Of(dtype, image));
  m.Set("rhs", m.Of(dtype, kernel));
  Value window;
  window.dims = {kernel[0], kernel[1]};
  Window(m, window, true);
  m.Set("window_dimensions", window.dims);
  m.SetText("dim_labels", "b01f_01io->b01f");
  m.Set("feature_group_count", groups);
  m.Set("batch_group_count", int64_t{1});
}

void While(Maker& m) {
  const Value x = m.Array(kNumber);
  const Value counter = m.Constant(KILN_S32, m.w.Chance(90) ? 0 : 5);
  m.Call("kiln_op_tuple", [&](Maker& n) { n.Set("operands", std::vector<Value>{counter, x}); });
  const Value state = m.Last();
  auto part = [&](GraphState& region, const Value& of, int64_t index) {
    m.CallOn(region, "kiln_op_get_tuple_element", [&](Maker& n) {
      n.Set("operand", of);
      n.Set("index", index);
    });
    return region.values.back();
  };
  auto begin = [&](GraphState& region) {
    m.CallOn(region, "kiln_op_parameter_like", [&](Maker& n) {
      n.SetGraphs("other", {m.g.handle});
      n.Set("like", state);
    });
    return region.values.back();
  };
  auto condition = m.Region("condition");
  const Value first = part(*condition, begin(*condition), 0);
  m.CallOn(*condition, "kiln_op_scalar", [&](Maker& n) {
    n.Set("dtype", int64_t{KILN_S32});
    n.SetReal("value", static_cast<double>(m.w.Between(0, 4)));
  });
  const Value limit = condition->values.back();
  m.Results(*condition, {m.Binary(*condition, "kiln_op_compare", first, limit)});
  auto body = m.Region("body");
  const Value whole = begin(*body);
  const Value count = part(*body, whole, 0);
  const Value old = part(*body, whole, 1);
  m.CallOn(*body, "kiln_op_scalar", [&](Maker& n) {
    n.Set("dtype", int64_t{KILN_S32});
    n.SetReal("value", 1);
  });
  const Value one = body->values.back();
  const Value next = m.Binary(*body, "kiln_op_add", count, one);
  m.Results(*body, {next, m.Binary(*body, "kiln_op_maximum", old, old)});
  m.Set("operand", state);
  m.SetGraphs("condition", {condition->handle});
  m.SetGraphs("body", {body->handle});
}

void Conditional(Maker& m) {
  const Value x = m.Array(kNumber);
  const size_t branches = m.w.Chance(50) ? 2 : 1 + m.w.Below(4);
  m.Set("index", m.Scalar(branches == 2 && m.w.Chance(50) ? KILN_PRED : KILN_S32));
  std::vector<Value> operands;
  std::vector<const kiln_graph*> regions;
  for (size_t i = 0; i < branches; ++i) {
    operands.push_back(m.w.Chance(60) ? x : m.Of(x.dtype, x.dims));
    regions.push_back(m.Function1(x.dtype, x.dims));
  }
  m.Set("operands", operands);
  m.SetGraphs("branch_computations", regions);
}

void CustomCall(Maker& m) {
  const std::lock_guard lock(m.g.context->mutex);
  const auto& targets = m.g.context->targets;
  std::string target = m.w.Chance(20) || targets.empty() ? "nobody" : *targets.begin();
  for (const std::string& t : targets) {
    if (m.w.Chance(50)) target = t;
  }
  m.SetText("target", target);
  Ints shapes;
  std::vector<Value> operands;
  for (size_t i = 0, n = m.w.Below(3); i < n; ++i) operands.push_back(m.Array(kAny));
  const size_t results = m.w.Chance(70) ? 1 : m.w.Below(4);
  Ints aliases(results, -1);
  for (size_t i = 0; i < results; ++i) {
    kiln_dtype dtype = m.Type(kAny);
    Ints dims = m.w.Dims(3);
    if (!operands.empty() && m.w.Chance(40)) {
      const size_t operand = m.w.Below(operands.size());
      dtype = operands[operand].dtype;
      dims = operands[operand].dims;
      if (i == 0) aliases[0] = static_cast<int64_t>(operand);
    }
    shapes.push_back(dtype);
    shapes.push_back(static_cast<int64_t>(dims.size()));
    shapes.insert(shapes.end(), dims.begin(), dims.end());
  }
  m.Set("operands", operands);
  m.Set("results", shapes);
  if (m.w.Chance(70)) return;
  m.SetText("options", m.w.Chance(70) ? "config" : m.w.WildText());
  m.Set("options.effect", int64_t{m.w.Chance(30)});
  if (m.w.Chance(60)) m.Set("options.aliases", aliases);
}

void HostCallback(Maker& m) {
  m.SetText("callback", m.w.Chance(90) ? "look" : m.w.WildText());
  std::vector<Value> operands;
  for (size_t i = 0, n = m.w.Below(3); i < n; ++i) operands.push_back(m.Array(kAny));
  Ints shapes;
  for (size_t i = 0, n = m.w.Below(4); i < n; ++i) {
    const Ints dims = m.w.Dims(3);
    shapes.push_back(m.Type(kAny));
    shapes.push_back(static_cast<int64_t>(dims.size()));
    shapes.insert(shapes.end(), dims.begin(), dims.end());
  }
  m.Set("operands", operands);
  m.Set("results", shapes);
  m.Set("has_side_effect", int64_t{m.w.Chance(30)});
}

void Message(Maker& m) {
  m.Set("pred", m.Of(KILN_PRED, {}));
  m.Set("operand", m.Array(kAny));
  m.Set("data", std::vector<Value>{m.Array(kAny)});
  m.SetText("message", m.w.Chance(90) ? "so: " : m.w.WildText());
}

void Assign(Maker& m) {
  m.Set("operand", m.Array(m.name() == "kiln_op_assign" ? kAny : kNumber));
  m.SetText("variable", m.w.Chance(90) ? "w" : m.w.WildText());
}

void Attention(Maker& m) {
  const kiln_dtype dtype = m.Type(kFloatType);
  const int64_t b = m.w.Between(1, 2), t = m.w.Between(1, 5), s = m.w.Between(1, 5);
  const int64_t k = m.w.Between(1, 2), n = k * m.w.Between(1, 2), h = m.w.Between(1, 8);
  m.Set("query", m.Of(dtype, {b, t, n, h}));
  m.Set("key", m.Of(dtype, {b, s, k, h}));
  m.Set("value", m.Of(dtype, {b, s, k, h}));
  if (m.w.Chance(50)) return;
  m.SetReal("options", m.w.Chance(50) ? 0 : 0.25);
  m.Set("options.causal", int64_t{m.w.Chance(50)});
  if (m.w.Chance(30)) m.Set("options.mask", m.Of(KILN_PRED, {b, n, t, s}));
  if (m.w.Chance(30)) m.Set("options.bias", m.Of(dtype, {t, s}));
}

void Where(Maker& m) {
  const Value x = m.Array(kAny, 0, false);
  m.Set("condition", m.w.Chance(50) ? m.Scalar(KILN_PRED) : m.Of(KILN_PRED, x.dims));
  m.Set("on_true", x);
  m.Set("on_false", m.w.Chance(50) ? m.Scalar(x.dtype) : m.Of(x.dtype, x.dims));
}

}  // namespace kiln::fuzz
