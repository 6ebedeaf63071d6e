#include "tools/kiln_run/compare.h"

#include <algorithm>
#include <cmath>
#include <complex>
#include <limits>
#include <unordered_set>

#include "base/strings.h"

namespace kiln::run {
namespace {

constexpr size_t kWorst = 5;

using Sources = std::unordered_set<const ir::Instruction*>;

// Adds what a value is made of; called computations as a whole.
void AddSources(const ir::Instruction* start, Sources& sources) {
  std::vector<const ir::Instruction*> work = {start};
  while (!work.empty()) {
    const ir::Instruction* i = work.back();
    work.pop_back();
    if (!sources.insert(i).second) continue;
    work.insert(work.end(), i->operands().begin(), i->operands().end());
    for (const ir::Computation* c : i->called()) {
      for (const ir::Instruction* inner : c->instructions()) work.push_back(inner);
    }
  }
}

double BoundOf(ElementType type) {
  type = PartOf(type);
  if (!IsFloat(type)) return 0;
  if (type == ElementType::kF64) return 1e-6;
  if (type == ElementType::kF32) return 1e-3;
  if (IsHalf(type)) return 1e-2;
  return std::max(1e-2, std::ldexp(1.0, -FormatOf(type)->mantissa));
}

// Numbers that differ from run to run.
bool IsRandom(const Sources& sources) {
  return std::ranges::any_of(sources, [](const ir::Instruction* i) {
    return i->opcode() == Opcode::kRng || i->opcode() == Opcode::kRngGetAndUpdateState;
  });
}

using Number = std::complex<double>;

Number NumberAt(const Literal& array, int64_t k) {
  switch (array.shape().type()) {
    case ElementType::kC64:
      return array.values<std::complex<float>>()[static_cast<size_t>(k)];
    case ElementType::kC128:
      return array.values<std::complex<double>>()[static_cast<size_t>(k)];
    default:
      return array.AsDouble(k);
  }
}

// Whether two parts of numbers are the same; infinite where they cannot be compared.
double PartDifference(double x, double y) {
  if (x == y || (std::isnan(x) && std::isnan(y))) return 0;
  const double difference = std::abs(x - y);
  return std::isfinite(difference) ? difference : std::numeric_limits<double>::infinity();
}
double DifferenceOf(Number x, Number y) {
  return std::max(PartDifference(x.real(), y.real()), PartDifference(x.imag(), y.imag()));
}

std::string TextAt(const Literal& array, int64_t k) {
  Literal one(Shape::Scalar(array.shape().type()));
  const int64_t bytes = ByteWidth(array.shape().type());
  std::copy_n(array.data() + k * bytes, bytes, one.data());
  return one.ToString();
}

std::vector<int64_t> IndexOf(const Shape& shape, int64_t k) {
  std::vector<int64_t> index = shape.dims();
  for (size_t d = index.size(); d-- > 0;) {
    const int64_t size = index[d];
    index[d] = k % size;
    k /= size;
  }
  return index;
}

// Collects the elements that are wrong.
class Finder {
 public:
  Finder(const Literal& actual, const Literal& expected, Comparison& found)
      : actual_(actual), expected_(expected), found_(found) {}

  void Add(int64_t k, double difference) {
    ++found_.wrong;
    auto place =
        std::ranges::find_if(worst_, [&](const auto& other) { return other.second < difference; });
    if (place == worst_.end() && worst_.size() == kWorst) return;
    worst_.insert(place, {k, difference});
    if (worst_.size() > kWorst) worst_.pop_back();
  }
  ~Finder() {
    for (const auto& [k, difference] : worst_) {
      found_.worst.push_back(
          {IndexOf(expected_.shape(), k), TextAt(actual_, k), TextAt(expected_, k), difference});
    }
  }

 private:
  const Literal &actual_, &expected_;
  Comparison& found_;
  std::vector<std::pair<int64_t, double>> worst_;
};

void CompareFloats(const Literal& actual, const Literal& expected, double absolute,
                   Comparison& found) {
  const int64_t count = found.elements;
  for (int64_t k = 0; k < count; ++k) {
    const Number e = NumberAt(expected, k);
    for (double part : {std::abs(e.real()), std::abs(e.imag())}) {
      if (std::isfinite(part)) found.largest = std::max(found.largest, part);
    }
  }
  const double bound = std::max(absolute, found.relative * found.largest);
  Finder finder(actual, expected, found);
  for (int64_t k = 0; k < count; ++k) {
    const double difference = DifferenceOf(NumberAt(actual, k), NumberAt(expected, k));
    if (std::isfinite(difference)) found.difference = std::max(found.difference, difference);
    if (!(difference <= bound)) finder.Add(k, difference);
  }
}

void CompareIntegers(const Literal& actual, const Literal& expected, Comparison& found) {
  const int64_t bytes = ByteWidth(expected.shape().type());
  Finder finder(actual, expected, found);
  for (int64_t k = 0; k < found.elements; ++k) {
    if (std::memcmp(actual.data() + k * bytes, expected.data() + k * bytes,
                    static_cast<size_t>(bytes)) == 0) {
      continue;
    }
    const double difference = std::abs(actual.AsDouble(k) - expected.AsDouble(k));
    found.difference = std::max(found.difference, difference);
    finder.Add(k, difference);
  }
}

double DefaultBound(const Sources& sources) {
  double bound = 0;
  for (const ir::Instruction* i : sources) {
    if (i->shape().is_array()) bound = std::max(bound, BoundOf(i->shape().type()));
  }
  return bound;
}

}  // namespace

Comparison Compare(const Literal& actual, const Literal& expected, const ir::Instruction& source,
                   const Bounds& bounds) {
  Comparison found;
  const Shape& shape = expected.shape();
  found.shape = shape.ToString();
  found.elements = shape.num_elements();
  if (!shape.SameTypeAndDimensions(actual.shape())) {
    found.mismatch = Cat("has the shape ", actual.shape(), ", expected ", shape);
    return found;
  }
  Sources sources;
  AddSources(&source, sources);
  if (IsRandom(sources)) {
    found.is_random = true;
    return found;
  }
  if (!IsFloat(shape.type()) && !IsComplex(shape.type())) {
    CompareIntegers(actual, expected, found);
    return found;
  }
  found.relative = bounds.relative.value_or(std::max(DefaultBound(sources), BoundOf(shape.type())));
  CompareFloats(actual, expected, bounds.absolute.value_or(0), found);
  return found;
}

}  // namespace kiln::run
