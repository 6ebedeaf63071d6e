#include "runtime/lib/linear/iterations.h"

#include <algorithm>
#include <cmath>

namespace kiln::runtime::lib::linear {
namespace {

// As many rotations are applied at once, so that a part of the matrix stays in the cache meanwhile.
constexpr size_t kRotationsAtOnce = 8192;

struct Rotation {
  double cosine, sine, length;
};

// The rotation that maps (f, g) to (length, 0).
Rotation RotationOf(double f, double g) {
  if (g == 0) return {1, 0, f};
  double length = std::sqrt(f * f + g * g);
  if (length < 1e-140) length = std::hypot(f, g);  // the squares were too small to be exact
  return {f / length, g / length, length};
}

// An element beside the diagonal counts as 0 if the diagonal's neighbours are this much larger, or
// the largest element of all.
bool IsSmall(double off, double one, double other, double largest, double epsilon) {
  const double size = std::abs(off);
  return size <= epsilon * (std::abs(one) + std::abs(other)) || size <= epsilon / 8 * largest;
}

double LargestOf(std::span<const double> x, std::span<const double> y) {
  double largest = 0;
  for (double value : x) largest = std::max(largest, std::abs(value));
  for (double value : y) largest = std::max(largest, std::abs(value));
  return largest;
}

// An implicit QL step with Wilkinson's shift on rows `first` to `last`.
void TridiagonalSweep(std::span<double> d, std::span<double> e, size_t first, size_t last,
                      Rotations* vectors) {
  const double half = (d[first + 1] - d[first]) / (2 * e[first]);
  const double root = std::hypot(half, 1.0);
  double g = d[last] - d[first] + e[first] / (half + std::copysign(root, half));
  double s = 1, c = 1, p = 0;
  if (vectors != nullptr) {
    vectors->Begin(static_cast<int64_t>(first), static_cast<int64_t>(last - first), true);
  }
  for (size_t i = last; i-- > first;) {
    const double f = s * e[i], b = c * e[i];
    const Rotation turn = RotationOf(g, f);
    e[i + 1] = turn.length;
    c = turn.cosine;
    s = turn.sine;
    g = d[i + 1] - p;
    const double r = (d[i] - g) * s + 2 * c * b;
    p = s * r;
    d[i + 1] = g + p;
    g = c * r - b;
    if (vectors != nullptr) vectors->Add(c, -s);
  }
  d[first] -= p;
  e[first] = g;
  e[last] = 0;
}

// The smaller singular value of the triangle (a b; 0 c).
double SmallerValue(double a, double b, double c) {
  const double small = std::min(std::abs(a), std::abs(c)),
               large = std::max(std::abs(a), std::abs(c));
  if (small == 0) return 0;
  const double sum = 1 + small / large, difference = (large - small) / large,
               ratio = std::abs(b) / large, square = ratio * ratio;
  return small * 2 / (std::sqrt(sum * sum + square) + std::sqrt(difference * difference + square));
}

// A step of Golub and Kahan with a shift, or Demmel and Kahan's without one, on rows `first` to
// `last`.
class BidiagonalSweep {
 public:
  BidiagonalSweep(std::span<double> d, std::span<double> e, size_t first, size_t last,
                  Rotations* left, Rotations* right)
      : d_(d), e_(e), first_(first), last_(last), left_(left), right_(right) {
    const auto begin = static_cast<int64_t>(first), count = static_cast<int64_t>(last - first);
    if (left != nullptr) left->Begin(begin, count, false);
    if (right != nullptr) right->Begin(begin, count, false);
  }

  void Shifted(double shift) {
    double f =
        (std::abs(d_[first_]) - shift) * (std::copysign(1.0, d_[first_]) + shift / d_[first_]);
    double g = e_[first_];
    for (size_t i = first_; i < last_; ++i) {
      const Rotation r = RotationOf(f, g);
      if (i > first_) e_[i - 1] = r.length;
      f = r.cosine * d_[i] + r.sine * e_[i];
      e_[i] = r.cosine * e_[i] - r.sine * d_[i];
      g = r.sine * d_[i + 1];
      d_[i + 1] *= r.cosine;
      const Rotation l = RotationOf(f, g);
      d_[i] = l.length;
      f = l.cosine * e_[i] + l.sine * d_[i + 1];
      d_[i + 1] = l.cosine * d_[i + 1] - l.sine * e_[i];
      if (i + 1 < last_) {
        g = l.sine * e_[i + 1];
        e_[i + 1] *= l.cosine;
      }
      Add(l, r);
    }
    e_[last_ - 1] = f;
  }

  void Unshifted() {
    Rotation r{1, 0, 0}, l{1, 0, 0};
    for (size_t i = first_; i < last_; ++i) {
      r = RotationOf(d_[i] * r.cosine, e_[i]);
      if (i > first_) e_[i - 1] = l.sine * r.length;
      l = RotationOf(l.cosine * r.length, d_[i + 1] * r.sine);
      d_[i] = l.length;
      Add(l, r);
    }
    const double rest = d_[last_] * r.cosine;
    d_[last_] = rest * l.cosine;
    e_[last_ - 1] = rest * l.sine;
  }

 private:
  void Add(const Rotation& left, const Rotation& right) {
    if (left_ != nullptr) left_->Add(left.cosine, left.sine);
    if (right_ != nullptr) right_->Add(right.cosine, right.sine);
  }

  const std::span<double> d_, e_;
  const size_t first_, last_;
  Rotations *const left_, *const right_;
};

}  // namespace

void Rotations::Begin(int64_t first, int64_t count, bool backward) {
  if (cosines_.size() > kRotationsAtOnce) Apply();
  const size_t end = cosines_.size() + static_cast<size_t>(count);
  sweeps_.push_back({first, count, backward});
  next_ = backward ? end : cosines_.size();
  cosines_.resize(end, 1);
  sines_.resize(end, 0);
}

template <typename T>
void Rotations::ApplyTo(Columns<T>& matrix) {
  const Loops<T>& loops = LoopsOfMachine<T>();
  const std::vector<T> cosines(cosines_.begin(), cosines_.end()),
      sines(sines_.begin(), sines_.end());
  const int64_t rows =
      (matrix.rows() + loops.row_multiple - 1) / loops.row_multiple * loops.row_multiple;
  loops.rotate(matrix.at(0, 0), matrix.stride(), rows, sweeps_.data(),
               static_cast<int64_t>(sweeps_.size()), cosines.data(), sines.data());
}

void Rotations::Apply() {
  if (single_ != nullptr) ApplyTo(*single_);
  if (double_ != nullptr) ApplyTo(*double_);
  sweeps_.clear();
  cosines_.clear();
  sines_.clear();
}

bool TridiagonalEigenvalues(std::span<double> d, std::span<double> e, double epsilon,
                            Rotations* vectors) {
  const size_t n = d.size();
  const double largest = LargestOf(d, e.first(n > 0 ? n - 1 : 0));
  size_t left = 40 * n;  // sweeps
  for (size_t first = 0; first + 1 < n;) {
    size_t last = first;
    while (last + 1 < n && !IsSmall(e[last], d[last], d[last + 1], largest, epsilon)) ++last;
    if (last == first) {
      ++first;
      continue;
    }
    if (left-- == 0) return false;
    TridiagonalSweep(d, e, first, last, vectors);
  }
  if (vectors != nullptr) vectors->Apply();
  return true;
}

bool BidiagonalSingularValues(std::span<double> d, std::span<double> e, double epsilon,
                              Rotations* left, Rotations* right) {
  const size_t n = d.size();
  const double largest = LargestOf(d, e.first(n > 0 ? n - 1 : 0));
  size_t budget = 40 * n;  // sweeps
  for (size_t last = n > 0 ? n - 1 : 0; last > 0;) {
    size_t first = last;
    bool has_zero = std::abs(d[last]) <= epsilon / 8 * largest;
    while (first > 0 && !IsSmall(e[first - 1], d[first - 1], d[first], largest, epsilon)) {
      --first;
      has_zero |= std::abs(d[first]) <= epsilon / 8 * largest;
    }
    if (first == last) {
      --last;
      continue;
    }
    if (budget-- == 0) return false;
    const double shift = SmallerValue(d[last - 1], e[last - 1], d[last]);
    const double ratio = has_zero ? 0 : shift / d[first];
    BidiagonalSweep sweep(d, e, first, last, left, right);
    if (ratio * ratio <= epsilon) {
      sweep.Unshifted();
    } else {
      sweep.Shifted(shift);
    }
  }
  if (left != nullptr) left->Apply();
  if (right != nullptr) right->Apply();
  return true;
}

}  // namespace kiln::runtime::lib::linear
