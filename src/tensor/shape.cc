#include "tensor/shape.h"

#include <algorithm>
#include <numeric>

namespace kiln {

Shape::~Shape() = default;
Shape::Shape(const Shape& other) = default;
Shape& Shape::operator=(const Shape& other) = default;
Shape& Shape::operator=(Shape&& other) noexcept = default;
bool Shape::operator==(const Shape& other) const = default;

Shape::Shape(ElementType type, std::vector<Dimension> dimensions)
    : kind_(Kind::kArray), type_(type), dimensions_(std::move(dimensions)) {}

Shape::Shape(ElementType type, std::span<const int64_t> dimensions)
    : kind_(Kind::kArray), type_(type), dimensions_(dimensions.begin(), dimensions.end()) {}

Shape::Shape(ElementType type, std::initializer_list<int64_t> dimensions)
    : kind_(Kind::kArray), type_(type), dimensions_(dimensions.begin(), dimensions.end()) {}

Shape Shape::Tuple(std::vector<Shape> elements) {
  Shape s;
  s.elements_ = std::move(elements);
  return s;
}

Shape Shape::Token() {
  Shape s;
  s.kind_ = Kind::kToken;
  return s;
}

std::vector<int64_t> Shape::dims() const {
  std::vector<int64_t> sizes;
  sizes.reserve(dimensions_.size());
  for (const Dimension& d : dimensions_) sizes.push_back(d.size());
  return sizes;
}

bool Shape::is_static() const {
  return std::all_of(dimensions_.begin(), dimensions_.end(),
                     [](const Dimension& d) { return d.is_constant(); }) &&
         std::all_of(elements_.begin(), elements_.end(),
                     [](const Shape& s) { return s.is_static(); });
}

void Shape::set_minor_to_major(std::vector<int64_t> order) {
  bool row_major = true;
  for (size_t i = 0; i < order.size(); ++i) {
    row_major &= order[i] == static_cast<int64_t>(order.size() - 1 - i);
  }
  if (row_major) order.clear();
  minor_to_major_ = std::move(order);
}

int64_t Shape::num_elements() const {
  int64_t n = 1;
  for (const Dimension& d : dimensions_) n *= d.size();
  return n;
}

int64_t Shape::byte_size() const {
  switch (kind_) {
    case Kind::kArray:
      return num_elements() * ByteWidth(type_);
    case Kind::kToken:
      return 0;
    case Kind::kTuple:
      break;
  }
  int64_t bytes = 0;
  for (const Shape& s : elements_) bytes += s.byte_size();
  return bytes;
}

std::vector<int64_t> Shape::strides() const {
  if (is_row_major()) return RowMajorStrides(dims());
  std::vector<int64_t> strides(dimensions_.size());
  int64_t stride = 1;
  for (int64_t d : minor_to_major_) {
    strides[d] = stride;
    stride *= dim(d);
  }
  return strides;
}

bool Shape::SameTypeAndDimensions(const Shape& other) const {
  if (kind_ != other.kind_ || type_ != other.type_ || dimensions_ != other.dimensions_ ||
      elements_.size() != other.elements_.size()) {
    return false;
  }
  for (size_t i = 0; i < elements_.size(); ++i) {
    if (!elements_[i].SameTypeAndDimensions(other.elements_[i])) return false;
  }
  return true;
}

std::string Shape::ToString(bool with_layout) const {
  switch (kind_) {
    case Kind::kToken:
      return "token[]";
    case Kind::kTuple: {
      std::string text = "(";
      for (size_t i = 0; i < elements_.size(); ++i) {
        if (i > 0) text += ", ";
        text += elements_[i].ToString(with_layout);
      }
      return text + ")";
    }
    case Kind::kArray:
      break;
  }
  std::string text = Cat(TypeName(type_), "[", Join(dimensions_, ","), "]");
  if (rank() > 0 && (with_layout || !is_row_major())) {
    std::vector<int64_t> order = minor_to_major_;
    if (order.empty()) {
      order.resize(rank());
      std::iota(order.rbegin(), order.rend(), 0);
    }
    text += Cat("{", Join(order, ","), "}");
  }
  return text;
}

namespace {

// `parts` and `bytes` accumulate over all leaves: the sum over a tuple has to fit as well.
Status Validate(const Shape& shape, int64_t depth, int64_t& parts, int64_t& total) {
  if (shape.is_tuple()) {
    if (depth == kMaxTupleDepth) {
      return InvalidArgument("shape has tuples nested deeper than ", kMaxTupleDepth);
    }
    for (const Shape& element : shape.elements()) {
      if (++parts > kMaxTupleParts) {
        return InvalidArgument("shape has tuples of more than ", kMaxTupleParts, " elements");
      }
      KILN_RETURN_IF_ERROR(Validate(element, depth + 1, parts, total));
    }
    return OkStatus();
  }
  if (shape.is_token()) return OkStatus();
  if (!IsElementType(static_cast<int32_t>(shape.type()))) {
    return InvalidArgument("shape has an unknown element type (",
                           static_cast<int32_t>(shape.type()), ")");
  }
  if (shape.rank() > kMaxRank) {
    return InvalidArgument("shape has ", shape.rank(), " dimensions; at most ", kMaxRank,
                           " are supported");
  }
  // A size of 0 must not hide an overflow of the others: strides are products as well.
  int64_t bytes = ByteWidth(shape.type());
  for (const Dimension& d : shape.dimensions()) {
    if (d.is_symbolic()) continue;
    if (d.size() < 0) {
      return InvalidArgument("shape ", shape.ToString(), " has a negative dimension");
    }
    if (__builtin_mul_overflow(bytes, std::max<int64_t>(d.size(), 1), &bytes)) {
      return InvalidArgument("shape ", shape.ToString(), " has more bytes than an int64 can count");
    }
  }
  if (__builtin_add_overflow(bytes, total, &total)) {
    return InvalidArgument("tuple has more bytes than an int64 can count");
  }
  return OkStatus();
}

}  // namespace

Status ValidateShape(const Shape& shape) {
  int64_t parts = 0;
  int64_t bytes = 0;
  return Validate(shape, 0, parts, bytes);
}

std::vector<int64_t> RowMajorStrides(std::span<const int64_t> dims) {
  std::vector<int64_t> strides(dims.size());
  int64_t stride = 1;
  for (size_t i = dims.size(); i-- > 0;) {
    strides[i] = stride;
    stride *= dims[i];
  }
  return strides;
}

int64_t Product(std::span<const int64_t> dims) {
  int64_t n = 1;
  for (int64_t d : dims) n *= d;
  return n;
}

bool NextIndex(std::span<const int64_t> dims, std::span<int64_t> index) {
  for (size_t i = dims.size(); i-- > 0;) {
    if (++index[i] < dims[i]) return true;
    index[i] = 0;
  }
  return false;
}

}  // namespace kiln
