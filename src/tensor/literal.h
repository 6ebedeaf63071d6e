// A constant value: an array's elements in row-major order, or a tuple of literals.
#pragma once

#include <cstddef>
#include <cstring>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "tensor/shape.h"

namespace kiln {

class Literal {
 public:
  Literal() = default;  // an empty tuple
  // Zeros of a static shape; the literal's own layout is always row-major. The memory comes from
  // operator new, and its failure is std::bad_alloc.
  explicit Literal(const Shape& shape);
  static Literal Tuple(std::vector<Literal> elements);
  template <typename T>
  static Literal Scalar(ElementType type, T value) {
    Literal l(Shape::Scalar(type));
    std::memcpy(l.data(), &value, sizeof(T));
    return l;
  }
  template <typename T>
  static Literal Array(const Shape& shape, std::span<const T> values) {
    Literal l(shape);
    // An empty one may have a null address, not allowed for memcpy.
    if (!values.empty()) std::memcpy(l.data(), values.data(), values.size_bytes());
    return l;
  }
  // An array in memory that stays unchanged until `owner` goes: its elements, row-major, at an
  // address of their alignment. Copies share it; a literal that is changed first gets its own.
  static Literal Borrowed(const Shape& shape, const std::byte* elements,
                          std::shared_ptr<const void> owner);
  // Scalar of any type from a number, converted as by C++; small floats round once, and a complex
  // number is real.
  static Literal ScalarOf(ElementType type, double value);

  const Shape& shape() const { return shape_; }
  std::byte* data() {
    if (borrowed_) Own();
    return bytes_.data();
  }
  const std::byte* data() const { return borrowed_ ? borrowed_.get() : bytes_.data(); }
  int64_t byte_size() const { return static_cast<int64_t>(size()); }
  bool is_borrowed() const { return borrowed_ != nullptr; }
  // Elements as T; T must have the element type's size (bool or uint8_t for pred). Elements of less
  // than a byte are in the low bits of one, integers sign- or zero-extended.
  template <typename T>
  std::span<T> values() {
    return {reinterpret_cast<T*>(data()), size() / sizeof(T)};
  }
  template <typename T>
  std::span<const T> values() const {
    return {reinterpret_cast<const T*>(data()), size() / sizeof(T)};
  }
  std::vector<Literal>& elements() { return elements_; }
  const std::vector<Literal>& elements() const { return elements_; }

  // Element i (of a complex number the real part) as a double or an int64, converted as by C++, for
  // tests, printing and folding.
  double AsDouble(int64_t i) const;
  int64_t AsInt(int64_t i) const;
  // Whether every element has the same bits.
  bool IsSplat() const;
  // Whether every element equals `value`, exactly; -0 is not 0, also of a complex number's
  // imaginary part, which has to be 0.
  bool IsAll(double value) const;
  // Same shape and same bits.
  bool operator==(const Literal& other) const;

  // HLO's text of the value: "1.5", "{1, 2}", "{ { 1, 2 }, { 3, 4 } }", "(1, {2, 3})".
  std::string ToString() const;
  // The same, with arrays over `limit` elements elided as "{...}".
  std::string ToString(int64_t limit) const;

 private:
  size_t size() const {
    return borrowed_ ? static_cast<size_t>(shape_.byte_size()) : bytes_.size();
  }
  void Own();

  Shape shape_;
  std::vector<std::byte> bytes_;
  std::shared_ptr<const std::byte> borrowed_;  // in the place of `bytes_`
  std::vector<Literal> elements_;
};

}  // namespace kiln
