#include "literal_test_util.h"

#include <algorithm>
#include <cmath>
#include <random>
#include <unordered_set>

#include "base/strings.h"

namespace kiln::testing {

Literal RandomLiteral(const Shape& shape, uint64_t seed) {
  std::mt19937_64 random(seed);
  Literal literal(shape);
  if (shape.is_tuple()) {
    for (size_t i = 0; i < shape.elements().size(); ++i) {
      literal.elements()[i] = RandomLiteral(shape.elements()[i], seed * 31 + i);
    }
    return literal;
  }
  // Of complex numbers the parts; of less than a byte what is in bytes.
  const ElementType type = PartOf(shape.type());
  if (!IsKernelType(type)) {
    Shape wide = shape;
    wide.set_type(WideOf(type));
    const Literal numbers = RandomLiteral(wide, seed);
    VisitType(type, [&](auto zero) {
      using T = decltype(zero);
      for (int64_t k = 0; k < shape.num_elements(); ++k) {
        if constexpr (FloatType<T>) {
          literal.values<T>()[static_cast<size_t>(k)] = T(numbers.AsDouble(k));
        } else if constexpr (!ComplexType<T>) {
          literal.values<T>()[static_cast<size_t>(k)] = static_cast<T>(numbers.AsInt(k));
        }
      }
    });
    return literal;
  }
  VisitKernelType(type, [&](auto zero) {
    using T = decltype(zero);
    for (T& value : literal.values<T>()) {
      uint64_t bits = random();
      if constexpr (std::same_as<T, bool>) {
        value = bits & 1;
      } else if constexpr (FloatType<T>) {
        value = bits % 16 == 0 ? static_cast<T>(static_cast<double>(bits / 16 % 2))
                               : static_cast<T>(static_cast<double>(bits >> 12) / (1ull << 50) - 2);
      } else {
        value = static_cast<T>(static_cast<int64_t>(bits % 19) - 9);
      }
    }
  });
  return literal;
}

std::vector<Literal> RandomArguments(const ir::Module& module, uint64_t seed) {
  std::vector<Literal> arguments;
  for (const ir::Instruction* p : module.entry()->parameters()) {
    arguments.push_back(RandomLiteral(p->shape(), seed + arguments.size()));
  }
  return arguments;
}

std::string Difference(const Literal& expected, const Literal& actual, double relative,
                       double absolute) {
  if (!expected.shape().SameTypeAndDimensions(actual.shape())) {
    return Cat("shape ", actual.shape(), ", expected ", expected.shape());
  }
  for (size_t i = 0; i < expected.elements().size(); ++i) {
    std::string inner =
        Difference(expected.elements()[i], actual.elements()[i], relative, absolute);
    if (!inner.empty()) return Cat("element ", i, ": ", inner);
  }
  if (!expected.shape().is_array()) return "";
  if (IsComplex(expected.shape().type())) {
    // Part by part, as arrays of reals.
    std::vector<Dimension> dimensions = expected.shape().dimensions();
    dimensions.push_back(2);
    const Shape parts(PartOf(expected.shape().type()), std::move(dimensions));
    Literal e(parts), a(parts);
    std::copy_n(expected.data(), e.byte_size(), e.data());
    std::copy_n(actual.data(), a.byte_size(), a.data());
    return Difference(e, a, relative, absolute);
  }
  for (int64_t i = 0; i < expected.shape().num_elements(); ++i) {
    bool same;
    if (IsFloat(expected.shape().type())) {
      double e = expected.AsDouble(i), a = actual.AsDouble(i);
      double bound = std::max(absolute, relative * std::max(std::abs(e), std::abs(a)));
      same = e == a || (std::isnan(e) && std::isnan(a)) || std::abs(e - a) <= bound;
    } else {
      same = expected.AsInt(i) == actual.AsInt(i);
    }
    if (!same) {
      return Cat("element ", i, " of ", expected.shape(), ": ", actual.AsDouble(i), ", expected ",
                 expected.AsDouble(i));
    }
  }
  return "";
}

namespace {

// Adds what a value is made of, called computations as a whole.
void AddSources(const ir::Instruction* i, std::unordered_set<const ir::Instruction*>& sources) {
  if (!sources.insert(i).second) return;
  for (const ir::Instruction* operand : i->operands()) AddSources(operand, sources);
  for (const ir::Computation* c : i->called()) {
    for (ir::Instruction* inner : c->instructions()) AddSources(inner, sources);
  }
}

double BoundOf(const ir::Instruction* i, double bound) {
  std::unordered_set<const ir::Instruction*> sources;
  AddSources(i, sources);
  for (const ir::Instruction* source : sources) {
    if (!source->shape().is_array()) continue;
    if (source->shape().type() == ElementType::kBF16) bound = std::max(bound, 0x1p-4);
    if (source->shape().type() == ElementType::kF16) bound = std::max(bound, 0x1p-7);
  }
  return bound;
}

}  // namespace

std::string DifferenceOf(const ir::Module& module, const Literal& expected, const Literal& actual,
                         double bound) {
  const ir::Instruction* root = module.entry()->root();
  bool each = root->opcode() == Opcode::kTuple && expected.shape().is_tuple() &&
              expected.elements().size() == actual.elements().size();
  if (!each) {
    bound = BoundOf(root, bound);
    return Difference(expected, actual, bound, bound);
  }
  for (size_t i = 0; i < expected.elements().size(); ++i) {
    double of_result = BoundOf(root->operand(static_cast<int64_t>(i)), bound);
    std::string inner =
        Difference(expected.elements()[i], actual.elements()[i], of_result, of_result);
    if (!inner.empty()) return Cat("result ", i, ": ", inner);
  }
  return "";
}

}  // namespace kiln::testing
