#include "compare.h"

#include <cmath>
#include <optional>

#include "interp/interpreter.h"
#include "mutate.h"
#include "support/literal.h"

namespace kiln::fuzz {
namespace {

constexpr size_t kSamples = 12;

// Few different values, so that some are equal: small numbers, zeros of both signs, infinities.
Literal Sample(ElementType type, size_t i, size_t k, bool with_nans) {
  constexpr double kReals[] = {0, -0.0, 1, -1, 1, 2, -2, 0.5, INFINITY, -INFINITY, 0, NAN};
  const bool is_real = (TypeMaskOf(type) & (kFloatType | kComplexType)) != 0;
  double value = kReals[(i + 5 * k * (i / 3 + 1)) % kSamples];
  if (std::isnan(value) && !with_nans) value = 3;
  if (!is_real && !std::isfinite(value)) value = value > 0 ? 3 : 0;
  if (type == ElementType::kPred) value = value > 0;
  if ((TypeMaskOf(type) & kIntType) != 0) {
    // Of the narrowest and unsigned ones 0 and 1.
    value = BitWidth(type) < 8 || value < 0 ? std::fmod(std::fabs(value), 2) : value;
  }
  return Literal::ScalarOf(type, value);
}

// Whether a comparator is irreflexive, asymmetric and transitive on the samples, and so is that
// neither of two comes first.
bool IsOrder(const ir::Computation& comparator, bool with_nans) {
  const auto& parameters = comparator.parameters();
  std::vector<std::vector<Literal>> rows(kSamples);
  for (size_t i = 0; i < kSamples; ++i) {
    for (size_t k = 0; k < parameters.size() / 2; ++k) {
      rows[i].push_back(Sample(parameters[2 * k]->shape().type(), i, k, with_nans));
    }
  }
  bool before[kSamples][kSamples];
  for (size_t i = 0; i < kSamples; ++i) {
    for (size_t j = 0; j < kSamples; ++j) {
      std::vector<Literal> arguments;
      for (size_t k = 0; k < rows[i].size(); ++k) {
        arguments.push_back(rows[i][k]);
        arguments.push_back(rows[j][k]);
      }
      auto result = interp::Evaluate(comparator, arguments, {.max_work = 10000});
      if (!result.ok()) return false;
      before[i][j] = result->AsInt(0) != 0;
    }
  }
  auto is_tie = [&](size_t i, size_t j) { return !before[i][j] && !before[j][i]; };
  for (size_t i = 0; i < kSamples; ++i) {
    for (size_t j = 0; j < kSamples; ++j) {
      if (before[i][j] && before[j][i]) return false;
      for (size_t k = 0; k < kSamples; ++k) {
        if (before[i][j] && before[j][k] && !before[i][k]) return false;
        if (is_tie(i, j) && is_tie(j, k) && !is_tie(i, k)) return false;
      }
    }
  }
  return true;
}

bool AreEqual(const std::vector<Literal>& x, const std::vector<Literal>& y) {
  for (size_t k = 0; k < x.size(); ++k) {
    const double a = x[k].AsDouble(0), b = y[k].AsDouble(0);
    if (a != b && !(std::isnan(a) && std::isnan(b))) return false;
  }
  return true;
}

// Whether f(f(x, y), z) = f(x, f(y, z)) on some of the samples.
bool IsAssociative(const ir::Computation& reducer) {
  constexpr size_t kFew = 6;
  const auto& parameters = reducer.parameters();
  const size_t count = parameters.size() / 2;
  bool ok = true;
  auto fold = [&](std::vector<Literal> x, const std::vector<Literal>& y) {
    if (!ok) return x;
    x.insert(x.end(), y.begin(), y.end());
    auto result = interp::Evaluate(reducer, x, {.max_work = 10000});
    ok = result.ok();
    x.resize(count);
    if (!ok) return x;
    if (result->shape().is_array()) return std::vector{*result};
    return std::vector(result->elements().begin(), result->elements().end());
  };
  std::vector<std::vector<Literal>> samples(kFew);
  for (size_t i = 0; i < kFew; ++i) {
    for (size_t k = 0; k < count; ++k) {
      samples[i].push_back(Sample(parameters[k]->shape().type(), i, k, false));
    }
  }
  for (const auto& x : samples) {
    for (const auto& y : samples) {
      for (const auto& z : samples) {
        if (!AreEqual(fold(fold(x, y), z), fold(x, fold(y, z))) || !ok) return false;
      }
    }
  }
  return true;
}

// The order in which windows are folded is nobody's to know.
bool FoldsWindowsByAssociative(const ir::Module& module) {
  for (const auto& computation : module.computations()) {
    for (const ir::Instruction* instruction : computation->instructions()) {
      if (instruction->opcode() == Opcode::kReduceWindow &&
          !IsAssociative(*instruction->called()[0])) {
        return false;
      }
    }
  }
  return true;
}

bool SortsByOrders(const ir::Module& module, bool with_nans) {
  for (const auto& computation : module.computations()) {
    for (const ir::Instruction* instruction : computation->instructions()) {
      if (instruction->opcode() == Opcode::kSort &&
          !IsOrder(*instruction->called()[0], with_nans)) {
        return false;
      }
    }
  }
  return true;
}

bool HasNan(const Literal& literal) {
  for (const Literal& element : literal.elements()) {
    if (HasNan(element)) return true;
  }
  if (!literal.shape().is_array()) return false;
  for (int64_t i = 0; i < literal.shape().num_elements(); ++i) {
    if (std::isnan(literal.AsDouble(i))) return true;
  }
  return false;
}

// A result that differs by what rounding alone can do: with inputs a few steps away it does, too.
bool IsIllConditioned(const ir::Module& module, const std::vector<Literal>& arguments,
                      const Literal& expected) {
  if (HasNan(expected) && !SortsByOrders(module, true)) return true;
  if (auto others = WithOtherNans(module)) {
    auto other = interp::Evaluate(*others, arguments, {.max_work = 4 * kMaxWork});
    if (other.ok() && !testing::DifferenceOf(module, expected, *other, 1e-4).empty()) return true;
  }
  for (uint64_t k = 1; k <= 8; ++k) {
    auto shaken = Shaken(module, k);
    if (!shaken) continue;
    auto other = interp::Evaluate(*shaken, Shaken(arguments, k), {.max_work = 4 * kMaxWork});
    if (!other.ok() || !testing::DifferenceOf(module, expected, *other, 1e-4).empty()) return true;
  }
  return false;
}

}  // namespace

bool IsDetermined(const ir::Module& module) {
  for (const auto& computation : module.computations()) {
    for (const ir::Instruction* instruction : computation->instructions()) {
      if (instruction->opcode() == Opcode::kCustomCall &&
          instruction->attributes().Text(Attr::kCustomCallTarget).starts_with("check.")) {
        return false;
      }
    }
  }
  return SortsByOrders(module, false) && FoldsWindowsByAssociative(module);
}

std::string Compare(const ir::Module& module, const std::vector<Literal>& arguments,
                    const Literal& expected, const Literal& actual, bool* ill_conditioned) {
  std::string difference = testing::DifferenceOf(module, expected, actual, 1e-3);
  if (difference.empty() || !IsIllConditioned(module, arguments, expected)) return difference;
  if (ill_conditioned) *ill_conditioned = true;
  return "";
}

}  // namespace kiln::fuzz
