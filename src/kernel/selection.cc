#include "kernel/selection.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <optional>
#include <vector>

#include "ops/compare.h"

namespace kiln::kernel {
namespace {

constexpr size_t kMostElements = 48;

// The kind of a node: a truth value, or a number from the accumulator of this index.
struct Known {
  int of = -1;  // -1: a truth
  double value = 0;
};
using Element = std::vector<double>;

bool Same(double x, double y) { return x == y || (std::isnan(x) && std::isnan(y)); }

class Trial {
 public:
  Trial(const Combiner& combiner, std::span<const ElementType> types)
      : combiner_(combiner), types_(types), known_(combiner.nodes.size()) {}

  // Nothing if the combiner does more than compare and select.
  std::optional<Element> Combine(const Element& x, const Element& y) {
    for (NodeId i : combiner_.nodes.ids()) {
      std::optional<Known> value = Evaluate(combiner_.nodes[i], x, y);
      if (!value) return std::nullopt;
      known_[i] = *value;
    }
    Element result;
    for (size_t k = 0; k < types_.size(); ++k) {
      const Known& value = known_[combiner_.results[k]];
      if (value.of != ClassOf(k)) return std::nullopt;
      result.push_back(value.value);
    }
    return result;
  }

 private:
  int ClassOf(size_t accumulator) const {
    return IsPred(types_[accumulator]) ? -1 : static_cast<int>(accumulator);
  }

  std::optional<Known> Evaluate(const Node& n, const Element& x, const Element& y) const {
    if (n.kind == Node::Kind::kArgument) {
      const auto argument = static_cast<size_t>(n.result), count = types_.size();
      const size_t k = argument % count;
      return Known{ClassOf(k), (argument < count ? x : y)[k]};
    }
    if (n.kind == Node::Kind::kConstant && IsPred(n.type)) {
      return Known{-1, *reinterpret_cast<const uint8_t*>(n.literal->data()) != 0 ? 1.0 : 0.0};
    }
    if (n.kind != Node::Kind::kOp) return std::nullopt;
    std::vector<Known> o;
    for (NodeId operand : n.operands) o.push_back(known_[operand]);
    auto truths = [&] { return std::ranges::all_of(o, [](const Known& k) { return k.of < 0; }); };
    auto alike = [&](size_t a, size_t b) { return o[a].of == o[b].of; };
    auto truth = [](bool value) { return Known{-1, value ? 1.0 : 0.0}; };
    switch (n.opcode) {
      case Opcode::kCompare:
        if (n.total_order || !alike(0, 1)) return std::nullopt;
        return truth(Compare(n.direction, o[0].value, o[1].value));
      case Opcode::kSelect:
        if (o[0].of >= 0 || !alike(1, 2)) return std::nullopt;
        return o[0].value != 0 ? o[1] : o[2];
      case Opcode::kMaximum:
      case Opcode::kMinimum: {
        if (!alike(0, 1)) return std::nullopt;
        if (std::isnan(o[0].value) || std::isnan(o[1].value)) {
          return Known{o[0].of, std::numeric_limits<double>::quiet_NaN()};
        }
        const bool first =
            n.opcode == Opcode::kMaximum ? o[0].value >= o[1].value : o[0].value <= o[1].value;
        return first ? o[0] : o[1];
      }
      case Opcode::kAnd:
        if (!truths()) return std::nullopt;
        return truth(o[0].value != 0 && o[1].value != 0);
      case Opcode::kOr:
        if (!truths()) return std::nullopt;
        return truth(o[0].value != 0 || o[1].value != 0);
      case Opcode::kXor:
        if (!truths()) return std::nullopt;
        return truth(o[0].value != o[1].value);
      case Opcode::kNot:
        if (!truths()) return std::nullopt;
        return truth(o[0].value == 0);
      default:
        return std::nullopt;
    }
  }

  const Combiner& combiner_;
  std::span<const ElementType> types_;
  IdVector<NodeId, Known> known_;
};

std::vector<double> NumbersOf(ElementType type) {
  if (IsPred(type)) return {0, 1};
  if (IsFloat(type)) return {-1, 0, 1, std::numeric_limits<double>::quiet_NaN()};
  return {-1, 0, 1};
}

// Every element there is of such numbers; empty where they are too many.
std::vector<Element> Elements(std::span<const ElementType> types) {
  std::vector<Element> all = {{}};
  for (ElementType type : types) {
    std::vector<Element> longer;
    for (const Element& e : all) {
      for (double number : NumbersOf(type)) {
        longer.push_back(e);
        longer.back().push_back(number);
      }
    }
    all = std::move(longer);
    if (all.size() > kMostElements) return {};
  }
  return all;
}

// Whether inputs of this number count up from 0 or more with the one variable that is reduced, as
// the places of elements do, and the initial value is 0.
bool CountsUp(const Kernel& kernel, const Stage& stage, const Reduction& reduction, size_t number) {
  const Node &input = stage.nodes[reduction.inputs[number]],
             &init = stage.nodes[reduction.inits[number]];
  if (input.kind != Node::Kind::kIndex || IsPred(input.type) || input.index.constant() < 0) {
    return false;
  }
  int64_t last = input.index.constant();
  for (const Index::Term& t : input.index.terms()) {
    if (t.atom.kind != Atom::Kind::kVariable || t.coefficient < 1) return false;
    last += t.coefficient * (kernel.variables[t.atom.variable].extent - 1);
  }
  const int64_t bits = std::min<int64_t>(8 * ByteWidth(input.type), 32);
  if (!IsInteger(input.type) || last >= int64_t{1} << (bits - 1)) return false;
  int64_t reduced = 0;
  for (VariableId v : stage.variables) {
    if (!kernel.variables[v].reduction) continue;
    ++reduced;
    if (input.index.StrideOf(v).value_or(0) < 1) return false;
  }
  return reduced == 1 && init.kind == Node::Kind::kConstant && init.literal->IsAll(0);
}

}  // namespace

bool AnyGeneral(const Stage& stage) {
  return std::ranges::any_of(stage.reductions, [](const Reduction& r) {
    return r.combiner.kind == Combiner::Kind::kGeneral;
  });
}

std::optional<Sequences> SequencesOf(const Kernel& kernel, const Stage& stage,
                                     const Reduction& reduction) {
  if (IsSelection(reduction.combiner, reduction.types)) return Sequences();
  for (size_t k = 0; k < reduction.types.size(); ++k) {
    if (CountsUp(kernel, stage, reduction, k) &&
        IsSelection(reduction.combiner, reduction.types, k)) {
      return Sequences{k};
    }
  }
  return std::nullopt;
}

bool IsSelection(const Combiner& combiner, std::span<const ElementType> types,
                 std::optional<size_t> by) {
  if (combiner.results.size() != types.size()) return false;
  const std::vector<Element> all = Elements(types);
  if (all.empty()) return false;
  Trial trial(combiner, types);
  auto same = [](const Element& x, const Element& y) { return std::ranges::equal(x, y, Same); };
  // Products of all pairs, by number; each is among the elements.
  std::vector<std::vector<size_t>> product(all.size());
  for (size_t x = 0; x < all.size(); ++x) {
    for (const Element& y : all) {
      const bool swaps = by && y[*by] < all[x][*by];
      std::optional<Element> both = swaps ? trial.Combine(y, all[x]) : trial.Combine(all[x], y);
      if (!both) return false;
      auto at = std::ranges::find_if(all, [&](const Element& e) { return same(e, *both); });
      product[x].push_back(static_cast<size_t>(at - all.begin()));
    }
  }
  for (size_t x = 0; x < all.size(); ++x) {
    if (product[x][x] != x) return false;
    for (size_t y = 0; y < all.size(); ++y) {
      if (product[x][y] != product[y][x]) return false;
      for (size_t z = 0; z < all.size(); ++z) {
        if (product[product[x][y]][z] != product[x][product[y][z]]) return false;
      }
    }
  }
  return true;
}

}  // namespace kiln::kernel
