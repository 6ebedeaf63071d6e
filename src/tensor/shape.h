// The type of a value: an array, a tuple or a token.
#pragma once

#include <cstdint>
#include <iterator>
#include <span>
#include <string>
#include <vector>

#include "base/status.h"
#include "tensor/dimension.h"
#include "tensor/element_type.h"

namespace kiln {

class Shape {
 public:
  enum class Kind : uint8_t { kArray, kTuple, kToken };

  // What takes apart or copies elements is compiled once, not in each user.
  Shape() = default;  // an empty tuple
  ~Shape();
  Shape(const Shape& other);
  Shape(Shape&& other) noexcept = default;
  Shape& operator=(const Shape& other);
  Shape& operator=(Shape&& other) noexcept;
  Shape(ElementType type, std::vector<Dimension> dimensions);
  Shape(ElementType type, std::span<const int64_t> dimensions);
  Shape(ElementType type, std::initializer_list<int64_t> dimensions);
  static Shape Scalar(ElementType type) { return Shape(type, std::vector<Dimension>{}); }
  static Shape Tuple(std::vector<Shape> elements);
  static Shape Token();

  bool is_array() const { return kind_ == Kind::kArray; }
  bool is_tuple() const { return kind_ == Kind::kTuple; }
  bool is_token() const { return kind_ == Kind::kToken; }
  bool is_scalar() const { return is_array() && dimensions_.empty(); }

  ElementType type() const { return type_; }
  int64_t rank() const { return static_cast<int64_t>(dimensions_.size()); }
  const std::vector<Dimension>& dimensions() const { return dimensions_; }
  const Dimension& dimension(int64_t i) const { return dimensions_[i]; }
  // The size of a constant dimension (bound of a bounded one, -1 of a symbolic one).
  int64_t dim(int64_t i) const { return dimensions_[i].size(); }
  std::vector<int64_t> dims() const;
  // Whether every dimension, here and in tuples, is a constant.
  bool is_static() const;
  void set_type(ElementType type) { type_ = type; }
  void set_dimension(int64_t i, Dimension d) { dimensions_[i] = d; }

  // The order of dimensions in memory, most minor first, as in HLO. Empty means row-major. The
  // default layout is always stored as empty, so that equal layouts compare equal.
  const std::vector<int64_t>& minor_to_major() const { return minor_to_major_; }
  void set_minor_to_major(std::vector<int64_t> order);
  bool is_row_major() const { return minor_to_major_.empty(); }

  const std::vector<Shape>& elements() const { return elements_; }  // of a tuple
  // Of an op of this shape: the elements of a tuple are a result each.
  int64_t result_count() const { return is_tuple() ? std::ssize(elements_) : 1; }
  std::vector<Shape>& mutable_elements() { return elements_; }

  // For a static array validated by ValidateShape.
  int64_t num_elements() const;
  int64_t byte_size() const;  // of a tuple: the sum over its leaves; a token has 0
  // Strides in elements of each dimension, by the layout.
  std::vector<int64_t> strides() const;

  bool operator==(const Shape& other) const;
  // Equal except for layouts.
  bool SameTypeAndDimensions(const Shape& other) const;
  bool SameDimensions(const Shape& other) const { return dimensions_ == other.dimensions_; }

  // HLO's text: "f32[2,3]", "(f32[], s32[4])", "token[]"; layouts only where not row-major, or
  // always with `with_layout`: "f32[2,3]{1,0}".
  std::string ToString() const { return ToString(false); }
  std::string ToString(bool with_layout) const;

 private:
  Kind kind_ = Kind::kTuple;
  ElementType type_ = ElementType::kInvalid;
  std::vector<Dimension> dimensions_;
  std::vector<int64_t> minor_to_major_;
  std::vector<Shape> elements_;
};

// Fails on negative sizes, on more than kMaxRank dimensions, and on numbers of elements or bytes
// beyond an int64. Fails on tuples beyond the limits given here, which could exhaust stack or
// memory. Every untrusted shape is validated here.
inline constexpr int64_t kMaxRank = 64;
inline constexpr int64_t kMaxTupleDepth = 100;
inline constexpr int64_t kMaxTupleParts = 1 << 17;  // elements at all levels
Status ValidateShape(const Shape& shape);

// Calls f(leaf shape, index path) for every array and token in the shape, in order.
template <typename F>
void ForEachLeaf(const Shape& shape, F&& f) {
  std::vector<int64_t> path;
  auto visit = [&](auto&& self, const Shape& s) -> void {
    if (!s.is_tuple()) {
      f(s, std::span<const int64_t>(path));
      return;
    }
    for (size_t i = 0; i < s.elements().size(); ++i) {
      path.push_back(static_cast<int64_t>(i));
      self(self, s.elements()[i]);
      path.pop_back();
    }
  };
  visit(visit, shape);
}

// Row-major strides in elements.
std::vector<int64_t> RowMajorStrides(std::span<const int64_t> dims);
// Product of sizes; 1 for no dimension.
int64_t Product(std::span<const int64_t> dims);
// Steps to the next index in row-major order; false after the last one.
bool NextIndex(std::span<const int64_t> dims, std::span<int64_t> index);

}  // namespace kiln
