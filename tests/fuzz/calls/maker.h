// Arguments of builder functions, and the operands and regions that they are made of.
#pragma once

#include <algorithm>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "calls/world.h"
#include "ops/op.h"

namespace kiln::fuzz {

using Ints = std::vector<int64_t>;

inline int64_t IdOf(kiln_value value) { return static_cast<int64_t>(value); }

inline uint32_t MaskOf(kiln_dtype dtype) {
  return IsElementType(dtype) ? TypeMaskOf(static_cast<ElementType>(dtype)) : 0;
}

// Whether an array is small enough for its elements to be made here.
bool IsSmall(const Ints& dims);

// Elements of an array.
std::string RandomBytes(World& world, kiln_dtype dtype, const Ints& dims);

// Thrown where what an operand is made of is a mistake of the graph's.
struct Broken {};

// The contents of one call.
class Maker {
 public:
  Maker(World& world, GraphState& graph, const Function& function)
      : w(world), g(graph), function_(function) {}

  Contents Take() { return std::move(contents_); }
  const std::string& name() const { return function_.name; }

  void Set(const char* name, int64_t number) { contents_[name].number = number; }
  void Set(const char* name, const Value& value) { contents_[name].number = IdOf(value.id); }
  void Set(const char* name, const Ints& numbers) { contents_[name].numbers = numbers; }
  void SetReal(const char* name, double real) { contents_[name].real = real; }
  void SetText(const char* name, std::string text) { contents_[name].text = std::move(text); }
  void Set(const char* name, const std::vector<Value>& values) {
    Ints& ids = contents_[name].numbers;
    for (const Value& value : values) ids.push_back(IdOf(value.id));
  }
  void SetGraphs(const char* name, std::vector<const kiln_graph*> graphs) {
    contents_[name].graphs = std::move(graphs);
  }
  void SetNull(const char* name) { contents_[name].is_null = true; }

  kiln_value Call(const char* function, const std::function<void(Maker&)>& fill) {
    return CallOn(g, function, fill);
  }
  kiln_value CallOn(GraphState& graph, const char* function,
                    const std::function<void(Maker&)>& fill) {
    Maker other(w, graph, Functions()[FunctionByName(function)]);
    fill(other);
    const kiln_value value = w.Build(graph, function, other.contents_);
    if (value == 0) throw Broken();
    return value;
  }
  Value Last() const { return g.values.back(); }

  // A type of the mask; one that most ops take, mostly.
  kiln_dtype Type(uint32_t mask) {
    for (int i = 0; i < 200; ++i) {
      const kiln_dtype dtype = w.AnyType();
      if (MaskOf(dtype) & mask) return dtype;
    }
    return mask & kFloatType ? KILN_F32 : mask & kIntType ? KILN_S32 : KILN_PRED;
  }
  // An array of a type and sizes: one that is there, or a new one.
  Value Of(kiln_dtype dtype, const Ints& dims) {
    if (w.Chance(80)) {
      for (size_t i = 0; i < g.values.size(); ++i) {
        const Value& value = g.values[g.values.size() - 1 - i];
        if (value.is_array() && value.dtype == dtype && value.dims == dims && w.Chance(60)) {
          return value;
        }
      }
    }
    if (IsSmall(dims) && w.Chance(25)) {
      Call("kiln_op_constant", [&](Maker& m) {
        m.Set("dtype", int64_t{dtype});
        m.Set("dims", dims);
        m.SetText("data", RandomBytes(w, dtype, dims));
      });
    } else {
      Call("kiln_op_parameter", [&](Maker& m) {
        m.Set("dtype", int64_t{dtype});
        m.Set("dims", dims);
        m.SetText("name", w.Chance(70) ? "" : w.Chance(80) ? "x" : w.WildText());
      });
    }
    return Last();
  }
  Value Scalar(kiln_dtype dtype) { return Of(dtype, {}); }
  Value Constant(kiln_dtype dtype, double number) {
    Call("kiln_op_scalar", [&](Maker& m) {
      m.Set("dtype", int64_t{dtype});
      m.SetReal("value", number);
    });
    return Last();
  }
  // An array of one of the types, of some rank.
  Value Array(uint32_t mask, size_t least_rank = 0, bool is_static = true, size_t most_rank = 8) {
    for (size_t i = 0; i < 12 && !g.values.empty(); ++i) {
      const Value& value =
          g.values[g.values.size() - 1 - w.Below(std::min<size_t>(g.values.size(), 12))];
      if (value.is_array() && (MaskOf(value.dtype) & mask) != 0 &&
          value.dims.size() >= least_rank && value.dims.size() <= most_rank &&
          (!is_static || value.is_static)) {
        return value;
      }
    }
    Ints dims = w.Dims();
    while (dims.size() < least_rank) dims.push_back(w.Between(1, 5));
    if (dims.size() > most_rank) dims.resize(most_rank);
    if (!is_static && !g.symbols.empty() && !dims.empty() && w.Chance(50)) {
      w.Pick(dims) = w.Pick(g.symbols).second;
    }
    return Of(Type(mask), dims);
  }
  Value Token() {
    for (const Value& value : g.values) {
      if (value.is_token && w.Chance(50)) return value;
    }
    Call("kiln_op_after_all", [](Maker&) {});
    return Last();
  }

  size_t Dim(const Value& x) { return w.Below(x.dims.size()); }
  // Some of 0 to n-1, in order or not.
  Ints Some(size_t n, size_t least = 0, bool in_order = true) {
    Ints all, some;
    for (size_t i = 0; i < n; ++i) all.push_back(static_cast<int64_t>(i));
    for (int64_t i : all) {
      if (w.Chance(50)) some.push_back(i);
    }
    while (some.size() < least && some.size() < n) {
      const int64_t i = w.Pick(all);
      if (std::find(some.begin(), some.end(), i) == some.end()) some.push_back(i);
    }
    std::sort(some.begin(), some.end());
    if (!in_order) {
      for (size_t i = some.size(); i > 1; --i) std::swap(some[i - 1], some[w.Below(i)]);
    }
    return some;
  }
  Ints Permutation(size_t n) {
    Ints all = Some(n, n, false);
    return all;
  }

  // --- Regions: graphs of their own.
  std::shared_ptr<GraphState> Region(const char* what) {
    auto region = w.MakeGraph(g.context, what);
    region->is_region = true;
    return region;
  }
  Value ParameterOf(GraphState& region, kiln_dtype dtype, const Ints& dims = {}) {
    CallOn(region, "kiln_op_parameter", [&](Maker& m) {
      m.Set("dtype", int64_t{dtype});
      m.Set("dims", dims);
    });
    return region.values.back();
  }
  Value Binary(GraphState& region, const char* op, const Value& a, const Value& b) {
    CallOn(region, op, [&](Maker& m) {
      m.Set("lhs", a);
      m.Set("rhs", b);
      m.Set("direction", int64_t{KILN_LT});
    });
    return region.values.back();
  }
  const kiln_graph* Results(GraphState& region, const std::vector<Value>& values) {
    Ints ids;
    for (const Value& value : values) ids.push_back(IdOf(value.id));
    std::vector<kiln_value> list(ids.begin(), ids.end());
    w.Begin("kiln_graph_set_results", "graph #", region.number, ", {", Join(list, ", "), "}");
    region.has_results = w.Ok(kiln_graph_set_results(region.handle, list.data(), list.size()));
    return region.handle;
  }
  // (a..., b...) -> (a op b...), each scalars of the types.
  const kiln_graph* Reducer(const std::vector<kiln_dtype>& types) {
    auto region = Region("reducer");
    std::vector<Value> a, b, results;
    for (kiln_dtype dtype : types) a.push_back(ParameterOf(*region, dtype));
    for (kiln_dtype dtype : types) b.push_back(ParameterOf(*region, dtype));
    static constexpr const char* kOps[] = {"kiln_op_add", "kiln_op_maximum", "kiln_op_minimum",
                                           "kiln_op_multiply"};
    for (size_t i = 0; i < types.size(); ++i) {
      results.push_back(Binary(*region, w.Pick(kOps), a[i], b[i]));
    }
    return Results(*region, results);
  }
  // (a, b of each type in turn) -> whether the first a is before the first b.
  const kiln_graph* Comparator(const std::vector<kiln_dtype>& types, bool strict = true) {
    auto region = Region("comparator");
    std::vector<Value> parameters;
    for (kiln_dtype dtype : types) {
      parameters.push_back(ParameterOf(*region, dtype));
      parameters.push_back(ParameterOf(*region, dtype));
    }
    const bool is_float = (MaskOf(types[0]) & kFloatType) != 0;
    CallOn(*region, "kiln_op_compare", [&](Maker& m) {
      m.Set("lhs", parameters[0]);
      m.Set("rhs", parameters[1]);
      int64_t direction = w.Chance(50) ? KILN_LT : KILN_GT;
      if (!strict) direction = w.Chance(50) ? KILN_GE : KILN_LE;
      m.Set("direction", direction + (is_float && w.Chance(50) ? KILN_TOTAL_ORDER : 0));
    });
    return Results(*region, {region->values.back()});
  }
  // x -> something of the same shape.
  const kiln_graph* Function1(kiln_dtype dtype, const Ints& dims) {
    auto region = Region("function");
    Value x = ParameterOf(*region, dtype, dims);
    static constexpr const char* kOps[] = {"kiln_op_add", "kiln_op_maximum", "kiln_op_multiply"};
    if (w.Chance(80)) x = Binary(*region, w.Pick(kOps), x, x);
    return Results(*region, {x});
  }

  World& w;
  GraphState& g;

 private:
  const Function& function_;
  Contents contents_;
};

}  // namespace kiln::fuzz
