#include "tensor/call_signature.h"

#include <cstring>

#include "base/strings.h"

namespace kiln {
namespace {

constexpr int64_t kVersion = 1;

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

std::string CallSignature::Encode() const {
  std::string out;
  Put(out, kVersion);
  Put(out, operands);
  Put(out, results);
  Put(out, scratch_bytes);
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
  signature.attributes = reader.rest();
  return signature;
}

std::string CallSignature::ToString() const {
  return Cat("(", Join(operands, ", "), ") -> (", Join(results, ", "), ")");
}

}  // namespace kiln
