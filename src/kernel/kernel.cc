#include "kernel/kernel.h"

#include "base/strings.h"

namespace kiln::kernel {
namespace {

constexpr std::string_view kCombinerNames[] = {"general", "sum", "product", "max",
                                               "min",     "and", "or",      "xor"};

constexpr std::string_view kKindNames[] = {"nest", "scatter", "sort", "scan"};
constexpr std::string_view kOrderNames[] = {"integers", "total order", "numbers"};

bool SameLiteral(const std::shared_ptr<const Literal>& a, const std::shared_ptr<const Literal>& b) {
  return a == b || (a && b && *a == *b);
}

// Floats by their bits: equal text must mean equal code, and NaNs have payloads.
std::string LiteralText(const Literal& literal) {
  std::string text = literal.ToString();
  if (!IsFloat(literal.shape().type())) return text;
  uint64_t bits = 0;
  std::memcpy(&bits, literal.data(), literal.byte_size());
  return Cat(text, "/", bits);
}

std::string NodeText(const Node& n) {
  std::string text = Cat(TypeName(n.type), " ");
  switch (n.kind) {
    case Node::Kind::kConstant:
      return Cat(text, LiteralText(*n.literal));
    case Node::Kind::kIndex:
      return Cat(text, "index(", n.index, ")");
    case Node::Kind::kInRange:
      return Cat(text, "0 <= ", n.index, " < ", n.bound);
    case Node::Kind::kReduced:
      return Cat(text, "reduced(", n.stage, ", ", n.reduction, ", ", n.result, ")");
    case Node::Kind::kArgument:
      return Cat(text, "argument(", n.result, ")");
    case Node::Kind::kLoad:
      text += Cat("p", n.param, "[", n.index, "]");
      return !n.guard.valid() ? text : Cat(text, " if %", n.guard);
    case Node::Kind::kOp:
      break;
  }
  text += Cat(OpcodeName(n.opcode), "(");
  for (size_t i = 0; i < n.operands.size(); ++i) text += Cat(i > 0 ? ", %" : "%", n.operands[i]);
  text += ")";
  if (n.opcode == Opcode::kCompare) {
    text += Cat(" ", DirectionName(n.direction), n.total_order ? " total" : "");
  }
  if (n.opcode == Opcode::kReducePrecision) {
    text += Cat(" e", n.exponent_bits, "m", n.mantissa_bits);
  }
  if (n.at_most_zero) text += " of 0 at most";
  return text;
}

void AppendNodes(const IdVector<NodeId, Node>& nodes, std::string_view indent, std::string& out) {
  for (NodeId i : nodes.ids()) out += Cat(indent, "%", i, " = ", NodeText(nodes[i]), "\n");
}

void AppendSort(const Sort& s, std::string& out) {
  out += Cat("    sort (", Join(s.inputs, ", "), ") along d", s.variable, ", the first ", s.keep,
             "\n");
  for (size_t k = 0; k < s.params.size(); ++k) {
    out += Cat("      p", s.params[k], "[", s.indices[k], "]\n");
  }
  if (s.key) {
    out += Cat("      by ", kOrderNames[static_cast<int>(s.key->order)],
               s.key->descending ? " descending" : "", s.key->is_element ? " themselves" : "",
               ", (", Join(s.key->value.results, ", "), ") of\n");
    AppendNodes(s.key->value.nodes, "        ", out);
  }
  out += Cat("      by (", Join(s.comparator.results, ", "), ") of\n");
  AppendNodes(s.comparator.nodes, "        ", out);
}

}  // namespace

bool Node::operator==(const Node& o) const {
  return kind == o.kind && type == o.type && opcode == o.opcode && direction == o.direction &&
         total_order == o.total_order && exponent_bits == o.exponent_bits &&
         mantissa_bits == o.mantissa_bits && at_most_zero == o.at_most_zero &&
         operands == o.operands && index == o.index && bound == o.bound && param == o.param &&
         guard == o.guard && stage == o.stage && reduction == o.reduction && result == o.result &&
         SameLiteral(literal, o.literal);
}

const std::vector<NodeId>* FusedFactors(const Stage& stage, const Reduction& reduction) {
  if (!reduction.fused) return nullptr;
  const Node& product = stage.nodes[reduction.inputs[0]];
  bool multiplies = product.kind == Node::Kind::kOp && product.opcode == Opcode::kMultiply;
  return multiplies ? &product.operands : nullptr;
}

int64_t Kernel::PointsOf(std::span<const VariableId> of) const {
  int64_t points = 1;
  for (VariableId v : of) points *= variables[v].extent;
  return points;
}

int64_t Kernel::OuterPoints() const {
  int64_t points = 1;
  for (VariableId v : OuterVariables()) points *= variables[v].extent;
  return points;
}

std::string Kernel::ToString() const {
  std::string out = Cat(kKindNames[static_cast<int>(kind)], " (");
  for (ParamId i : params.ids()) {
    const Param& p = params[i];
    out += Cat(i.value() > 0 ? ", p" : "p", i, ": ", p.role == Param::Role::kOutput ? "out " : "",
               TypeName(p.type), "[", p.elements, "]");
    if (p.in_place_of.valid()) out += Cat(" in place of p", p.in_place_of);
    if (p.same_as.valid()) out += Cat(" same as p", p.same_as);
  }
  out += ") outer (";
  for (VariableId v : OuterVariables()) {
    out += Cat(v.value() > 0 ? ", d" : "d", v, " < ", variables[v].extent);
  }
  out += ")\n";
  for (const Stage& stage : stages) {
    out += "  stage (";
    for (size_t i = 0; i < stage.variables.size(); ++i) {
      const Variable& v = variables[stage.variables[i]];
      out += Cat(i > 0 ? ", d" : "d", stage.variables[i], " < ", v.extent,
                 v.reduction ? " reduced" : "");
    }
    out += ")\n";
    AppendNodes(stage.nodes, "    ", out);
    for (const Reduction& r : stage.reductions) {
      out += Cat("    reduce ", kCombinerNames[static_cast<int>(r.combiner.kind)], " of (",
                 Join(r.inputs, ", "), ") from (", Join(r.inits, ", "), ")");
      if (r.guard.valid()) out += Cat(" if %", r.guard);
      if (r.fused) out += " fused";
      if (r.combiner.kind == Combiner::Kind::kGeneral) {
        out += Cat(" by (", Join(r.combiner.results, ", "), ") of\n");
        AppendNodes(r.combiner.nodes, "      ", out);
      } else {
        out += "\n";
      }
    }
    for (const Store& s : stage.stores)
      out += Cat("    p", s.param, "[", s.index, "] = %", s.value, "\n");
    for (const Update& u : stage.updates) {
      out += Cat("    update (", Join(u.inputs, ", "), ")");
      if (u.guard.valid()) out += Cat(" if %", u.guard);
      out += Cat(" by (", Join(u.combiner.results, ", "), ") of\n");
      AppendNodes(u.combiner.nodes, "      ", out);
      for (size_t k = 0; k < u.params.size(); ++k) {
        out += Cat("      p", u.params[k], "[", u.indices[k], "]\n");
      }
    }
    if (stage.sort) AppendSort(*stage.sort, out);
  }
  return out;
}

}  // namespace kiln::kernel
