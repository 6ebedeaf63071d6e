// Elementwise functions with NumPy's broadcasting, and activations.
#include <numbers>

#include "capi/formula.h"
#include "kiln/nn.h"
#include "kiln/ops.h"

using namespace kiln;        // NOLINT: the functions below are the namespace's face
using namespace kiln::capi;  // NOLINT
using V = Formula::Value;

namespace {

kiln_value Binary(kiln_graph* graph, std::string_view word, Opcode opcode, kiln_value lhs,
                  kiln_value rhs) {
  return Word(graph, word, [&](Formula& f) {
    V left = f.Array("lhs", lhs, kAnyType);
    V right = f.Array("rhs", rhs, kAnyType);
    return f.Broadcasting(opcode, left, right);
  });
}

// function(Formula&, x) of floats, computed in f32 or wider.
template <typename Function>
kiln_value Activation(kiln_graph* graph, std::string_view word, kiln_value operand,
                      Function&& function) {
  return Word(graph, word, [&](Formula& f) -> V {
    V x = f.Array("operand", operand, kFloatType);
    if (!f.ok()) return nullptr;
    const ElementType type = x->shape().type();
    return f.Convert(function(f, f.Convert(x, ComputedType(type))), type);
  });
}

}  // namespace

kiln_value kiln_nn_broadcast_to(kiln_graph* graph, kiln_value operand, const int64_t* dims,
                                size_t rank) {
  return Word(graph, "broadcast_to", [&](Formula& f) -> V {
    V x = f.Array("operand", operand, kAnyType);
    auto to = graph->Dimensions(dims, rank);
    if (!to.ok()) return f.Fail(to.status());
    return f.BroadcastTo(x, *to);
  });
}

#define KILN_NN_BINARY(word, Name)                                               \
  kiln_value kiln_nn_##word(kiln_graph* graph, kiln_value lhs, kiln_value rhs) { \
    return Binary(graph, #word, Opcode::k##Name, lhs, rhs);                      \
  }
KILN_NN_BINARY(add, Add)
KILN_NN_BINARY(subtract, Subtract)
KILN_NN_BINARY(multiply, Multiply)
KILN_NN_BINARY(divide, Divide)
KILN_NN_BINARY(remainder, Remainder)
KILN_NN_BINARY(power, Power)
KILN_NN_BINARY(maximum, Maximum)
KILN_NN_BINARY(minimum, Minimum)
KILN_NN_BINARY(atan2, Atan2)
KILN_NN_BINARY(and, And)
KILN_NN_BINARY(or, Or)
KILN_NN_BINARY(xor, Xor)
KILN_NN_BINARY(shift_left, ShiftLeft)
KILN_NN_BINARY(shift_right_arithmetic, ShiftRightArithmetic)
KILN_NN_BINARY(shift_right_logical, ShiftRightLogical)
#undef KILN_NN_BINARY

kiln_value kiln_nn_compare(kiln_graph* graph, kiln_value lhs, kiln_value rhs,
                           kiln_direction direction) {
  return Word(graph, "compare", [&](Formula& f) -> V {
    V left = f.Array("lhs", lhs, kAnyType);
    V right = f.Array("rhs", rhs, kAnyType);
    V* const both[] = {&left, &right};
    f.BroadcastTogether(both);
    if (!f.ok()) return nullptr;
    kiln_value made = kiln_op_compare(graph, graph->IdOf(left), graph->IdOf(right), direction);
    Result<V> value = graph->ValueOf(made);
    return value.ok() ? *value : f.Fail(graph->status());
  });
}

kiln_value kiln_nn_where(kiln_graph* graph, kiln_value condition, kiln_value on_true,
                         kiln_value on_false) {
  return Word(graph, "where", [&](Formula& f) {
    V which = f.Array("condition", condition, kPredType);
    V yes = f.Array("on_true", on_true, kAnyType);
    V no = f.Array("on_false", on_false, kAnyType);
    V* const all[] = {&which, &yes, &no};
    f.BroadcastTogether(all);
    return f.Add(Opcode::kSelect, {which, yes, no});
  });
}

kiln_value kiln_nn_clip(kiln_graph* graph, kiln_value operand, kiln_value low, kiln_value high) {
  return Word(graph, "clip", [&](Formula& f) -> V {
    V x = f.Array("operand", operand, kAnyType);
    V least = f.OptionalArray("low", low, kAnyType);
    V most = f.OptionalArray("high", high, kAnyType);
    if (!f.ok()) return nullptr;
    if (least && most) {
      V* const all[] = {&least, &x, &most};
      f.BroadcastTogether(all);
      return f.Add(Opcode::kClamp, {least, x, most});
    }
    if (least) return f.Broadcasting(Opcode::kMaximum, x, least);
    if (most) return f.Broadcasting(Opcode::kMinimum, x, most);
    return x;
  });
}

kiln_value kiln_nn_gelu(kiln_graph* graph, kiln_value operand, int32_t approximate) {
  return Activation(graph, "gelu", operand, [&](Formula& f, V x) -> V {
    const bool by_tanh = f.Flag("approximate", approximate);
    if (!f.ok()) return nullptr;
    V half = f.Add(Opcode::kMultiply, {x, f.Like(x, 0.5)});
    if (!by_tanh) {
      // 1 + erf(z) = erfc(-z), which is accurate where erf is close to -1.
      V scaled = f.Add(Opcode::kMultiply, {x, f.Like(x, -std::numbers::sqrt2 / 2)});
      return f.Add(Opcode::kMultiply, {half, f.Add(Opcode::kErfc, {scaled})});
    }
    V cube = f.Add(Opcode::kMultiply, {f.Add(Opcode::kMultiply, {x, x}), x});
    V bent = f.Add(Opcode::kAdd, {x, f.Add(Opcode::kMultiply, {f.Like(x, 0.044715), cube})});
    const double root = std::numbers::sqrt2 * std::numbers::inv_sqrtpi;  // sqrt(2 / pi)
    V curve = f.Add(Opcode::kTanh, {f.Add(Opcode::kMultiply, {f.Like(x, root), bent})});
    return f.Add(Opcode::kMultiply, {half, f.Add(Opcode::kAdd, {f.Like(x, 1), curve})});
  });
}

kiln_value kiln_nn_silu(kiln_graph* graph, kiln_value operand) {
  return Activation(graph, "silu", operand, [](Formula& f, V x) {
    return f.Add(Opcode::kMultiply, {x, f.Add(Opcode::kLogistic, {x})});
  });
}
