#include "tensor/call_signature.h"

#include <algorithm>
#include <cstring>

#include "base/strings.h"
#include "tensor/layouts.h"

namespace kiln {
namespace {

constexpr int64_t kVersion = 2;

// By their numbers.
constexpr std::string_view kApiVersions[] = {
    "API_VERSION_UNSPECIFIED", "API_VERSION_ORIGINAL", "API_VERSION_STATUS_RETURNING",
    "API_VERSION_STATUS_RETURNING_UNIFIED", "API_VERSION_TYPED_FFI"};

void Put(std::string& out, int64_t value) {
  for (int shift = 0; shift < 64; shift += 8) {
    out.push_back(static_cast<char>(static_cast<uint64_t>(value) >> shift));
  }
}

void Put(std::string& out, const std::vector<Shape>& shapes) {
  Put(out, std::ssize(shapes));
  for (const Shape& shape : shapes) {
    Put(out, static_cast<int64_t>(shape.type()));
    Put(out, shape.rank());
    for (int64_t d = 0; d < shape.rank(); ++d) Put(out, shape.dim(d));
    Put(out, std::ssize(shape.minor_to_major()));
    for (int64_t d : shape.minor_to_major()) Put(out, d);
  }
}

class Reader {
 public:
  explicit Reader(std::string_view bytes) : bytes_(bytes) {}

  Result<int64_t> Number() {
    if (bytes_.size() < 8) return Bad();
    uint64_t value = 0;
    for (int k = 7; k >= 0; --k) {
      value = value << 8 | static_cast<uint8_t>(bytes_[static_cast<size_t>(k)]);
    }
    bytes_.remove_prefix(8);
    return static_cast<int64_t>(value);
  }
  // The number of items that follow, each at least one number long.
  Result<int64_t> Count() {
    KILN_ASSIGN_OR_RETURN(int64_t count, Number());
    if (count < 0 || count > static_cast<int64_t>(bytes_.size() / 8)) return Bad();
    return count;
  }
  Result<std::vector<Shape>> Shapes() {
    KILN_ASSIGN_OR_RETURN(int64_t count, Count());
    std::vector<Shape> shapes;
    for (int64_t k = 0; k < count; ++k) {
      KILN_ASSIGN_OR_RETURN(int64_t type, Number());
      if (type != static_cast<int32_t>(type) || !IsElementType(static_cast<int32_t>(type))) {
        return Bad();
      }
      KILN_ASSIGN_OR_RETURN(int64_t rank, Count());
      std::vector<int64_t> dims;
      for (int64_t d = 0; d < rank; ++d) {
        KILN_ASSIGN_OR_RETURN(dims.emplace_back(), Number());
      }
      Shape shape(static_cast<ElementType>(type), std::span<const int64_t>(dims));
      if (!ValidateShape(shape).ok()) return Bad();
      KILN_ASSIGN_OR_RETURN(int64_t ordered, Count());
      std::vector<int64_t> order;
      for (int64_t d = 0; d < ordered; ++d) {
        KILN_ASSIGN_OR_RETURN(order.emplace_back(), Number());
      }
      if (ordered != 0 && !IsPermutation(order, rank)) return Bad();
      shape.set_minor_to_major(std::move(order));
      shapes.push_back(std::move(shape));
    }
    return shapes;
  }
  std::string_view rest() const { return bytes_; }
  static Status Bad() { return DataLoss("a call's description is damaged"); }

 private:
  std::string_view bytes_;
};

}  // namespace

std::string_view ApiVersionName(int64_t version) {
  const bool known = version >= 0 && version < std::ssize(kApiVersions);
  return known ? kApiVersions[version] : "";
}

std::optional<int64_t> ApiVersionByName(std::string_view name) {
  const auto* found = std::ranges::find(kApiVersions, name);
  if (found == std::end(kApiVersions)) return std::nullopt;
  return found - kApiVersions;
}

std::string CallSignature::Encode() const {
  std::string out;
  Put(out, kVersion);
  Put(out, operands);
  Put(out, results);
  Put(out, scratch_bytes);
  Put(out, api_version);
  Put(out, has_side_effect);
  Put(out, std::ssize(aliases));
  for (auto [result, operand] : aliases) {
    Put(out, static_cast<int64_t>(result));
    Put(out, static_cast<int64_t>(operand));
  }
  return out + attributes;
}

Result<CallSignature> CallSignature::Decode(std::string_view bytes) {
  Reader reader(bytes);
  KILN_ASSIGN_OR_RETURN(int64_t version, reader.Number());
  if (version != kVersion) {
    return DataLoss("a call's description is of version ", version, "; this library knows ",
                    kVersion);
  }
  CallSignature signature;
  KILN_ASSIGN_OR_RETURN(signature.operands, reader.Shapes());
  KILN_ASSIGN_OR_RETURN(signature.results, reader.Shapes());
  KILN_ASSIGN_OR_RETURN(signature.scratch_bytes, reader.Number());
  if (signature.scratch_bytes < 0) return Reader::Bad();
  KILN_ASSIGN_OR_RETURN(signature.api_version, reader.Number());
  KILN_ASSIGN_OR_RETURN(int64_t side_effect, reader.Number());
  signature.has_side_effect = side_effect != 0;
  KILN_ASSIGN_OR_RETURN(int64_t aliases, reader.Count());
  for (int64_t k = 0; k < aliases; ++k) {
    KILN_ASSIGN_OR_RETURN(int64_t result, reader.Number());
    KILN_ASSIGN_OR_RETURN(int64_t operand, reader.Number());
    if (result < 0 || result >= std::ssize(signature.results) || operand < 0 ||
        operand >= std::ssize(signature.operands)) {
      return Reader::Bad();
    }
    signature.aliases.emplace_back(result, operand);
  }
  signature.attributes = reader.rest();
  return signature;
}

std::string CallSignature::ToString() const {
  return Cat("(", Join(operands, ", "), ") -> (", Join(results, ", "), ")");
}

}  // namespace kiln
