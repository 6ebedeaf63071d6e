#include "random/rows.h"

#include <algorithm>
#include <numeric>
#include <random>
#include <string>
#include <string_view>
#include <vector>

#include "base/strings.h"
#include "support/hlo.h"

namespace kiln::testing {
namespace {

constexpr std::string_view kReducers = R"(
plus { a = f32[] parameter(0)
  b = f32[] parameter(1)
  ROOT c = f32[] add(a, b) }
largest { a = f32[] parameter(0)
  b = f32[] parameter(1)
  ROOT c = f32[] maximum(a, b) }
)";

// Writes a program over rows: some of the values are arrays of a shape, others have an element for
// each of its rows, and reductions and broadcasts lead from one kind to the other.
class RandomRows {
 public:
  explicit RandomRows(uint64_t seed) : random_(static_cast<uint32_t>(seed)) {
    static constexpr int64_t kSizes[] = {1,  2,  3,  7,   10,  16,  17, 24,
                                         33, 41, 64, 100, 130, 300, 700};
    int64_t elements = 1, rank = Below(4) + 1, most = Below(2) ? 2000 : 8000;
    while (static_cast<int64_t>(full_.size()) < rank) {
      int64_t size = kSizes[Below(std::size(kSizes))];
      if (elements * size > most) size = 2;
      full_.push_back(size);
      elements *= size;
    }
    for (int64_t d = 0; d < rank; ++d) (Below(2) ? reduced_ : kept_).push_back(d);
    if (reduced_.empty()) std::swap(reduced_, kept_);
    for (int64_t d : kept_) rows_.push_back(full_[d]);
    int64_t row = 1;
    for (int64_t d : reduced_) row *= full_[d];
    share_ = 1.0 / static_cast<double>(row);
  }

  std::string Text() {
    whole_ = {Line(Full(), "parameter(0)"), Line(Full(), "parameter(1)")};
    per_row_ = {Line(Rows(), "parameter(2)")};
    zero_ = Line("f32[]", "constant(0)");
    lowest_ = Line("f32[]", "constant(-inf)");
    std::string share = Line("f32[]", Cat("constant(", share_, ")"));
    shares_ = Line(Rows(), Cat("broadcast(", share, "), dimensions={}"));
    int64_t steps = 6 + Below(14);
    for (int64_t i = 0; i < steps; ++i) Step();
    std::vector<std::string> results, types;
    int64_t count = 1 + Below(3);
    for (int64_t i = 0; i < count; ++i) {
      bool whole = i == 0 || Below(2);
      const auto& values = whole ? whole_ : per_row_;
      // Mostly what was made last.
      size_t back = static_cast<size_t>(Below(3));
      results.push_back(values[values.size() - 1 - std::min(back, values.size() - 1)]);
      types.push_back(whole ? Full() : Rows());
      if (whole && Below(3) == 0) Transpose(results.back(), types.back());
    }
    body_ += Cat("  ROOT r = (", Join(types, ", "), ") tuple(", Join(results, ", "), ")\n");
    return Cat("HloModule rows\n", kReducers, "ENTRY e {\n", body_, "}\n");
  }

 private:
  int64_t Below(int64_t n) { return static_cast<int64_t>(random_() % static_cast<uint64_t>(n)); }
  const std::string& Any(const std::vector<std::string>& values) {
    return values[static_cast<size_t>(Below(static_cast<int64_t>(values.size())))];
  }
  std::string Full() const { return Cat("f32[", Join(full_, ","), "]"); }
  std::string Rows() const { return Cat("f32[", Join(rows_, ","), "]"); }
  std::string Line(const std::string& type, const std::string& op) {
    std::string name = Cat("v", count_++);
    body_ += Cat("  ", name, " = ", type, " ", op, "\n");
    return name;
  }

  // Values stay small: what grows goes through tanh, and divisors are at least 1.
  std::string Elementwise(const std::string& type, const std::vector<std::string>& values) {
    const std::string &x = Any(values), &y = Any(values);
    switch (Below(6)) {
      case 0:
        return Line(type, Cat("add(", x, ", ", y, ")"));
      case 1:
        return Line(type, Cat("subtract(", x, ", ", y, ")"));
      case 2:
        return Line(type, Cat("tanh(", Line(type, Cat("multiply(", x, ", ", y, ")")), ")"));
      case 3:
        return Line(type, Cat("exponential(", Line(type, Cat("tanh(", x, ")")), ")"));
      case 4: {
        std::string up = Line(type, Cat("exponential(", Line(type, Cat("abs(", y, ")")), ")"));
        return Line(type, Cat("divide(", x, ", ", up, ")"));
      }
      default:
        return Line(type, Cat("maximum(", x, ", ", y, ")"));
    }
  }

  // Another order of its dimensions, and something with it.
  void Transpose(std::string& value, std::string& type) {
    std::vector<int64_t> order(full_.size()), dims;
    std::iota(order.begin(), order.end(), 0);
    std::shuffle(order.begin(), order.end(), random_);
    for (int64_t d : order) dims.push_back(full_[static_cast<size_t>(d)]);
    type = Cat("f32[", Join(dims, ","), "]");
    value = Line(type, Cat("transpose(", value, "), dimensions={", Join(order, ","), "}"));
    if (transposed_ || Below(2)) return;
    transposed_ = true;
    value = Elementwise(type, {value, Line(type, "parameter(3)")});
  }

  void Step() {
    std::string dims = Cat("dimensions={", Join(reduced_, ","), "}");
    switch (Below(8)) {
      case 0:
      case 1: {
        std::string sum =
            Line(Rows(), Cat("reduce(", Any(whole_), ", ", zero_, "), ", dims, ", to_apply=plus"));
        per_row_.push_back(Line(Rows(), Cat("multiply(", sum, ", ", shares_, ")")));
        break;
      }
      case 2:
        per_row_.push_back(Line(
            Rows(), Cat("reduce(", Any(whole_), ", ", lowest_, "), ", dims, ", to_apply=largest")));
        break;
      case 3:
        per_row_.push_back(Elementwise(Rows(), per_row_));
        break;
      case 4:
      case 5:
        whole_.push_back(Line(
            Full(), Cat("broadcast(", per_row_.back(), "), dimensions={", Join(kept_, ","), "}")));
        whole_.push_back(Line(Full(), Cat("subtract(", Any(whole_), ", ", whole_.back(), ")")));
        break;
      default:
        whole_.push_back(Elementwise(Full(), whole_));
    }
  }

  std::mt19937 random_;
  std::vector<int64_t> full_, rows_, kept_, reduced_;
  double share_ = 1;
  bool transposed_ = false;
  std::vector<std::string> whole_, per_row_;
  std::string zero_, lowest_, shares_, body_;
  int count_ = 0;
};

}  // namespace

std::unique_ptr<ir::Module> RandomRowsModule(uint64_t seed) {
  return ir::ParseOrDie(RandomRows(seed).Text());
}

}  // namespace kiln::testing
