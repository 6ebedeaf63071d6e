// The typed attributes of a custom call: the dictionary in its text.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "tensor/element_type.h"

namespace kiln {

struct CallAttribute {
  enum class Kind : uint8_t { kScalar, kArray, kString, kDictionary };

  std::string name;
  Kind kind = Kind::kScalar;
  ElementType type = ElementType::kInvalid;  // of a scalar, and of an array's elements
  int64_t count = 1;                         // of an array's elements, or a string's bytes
  // The elements as in literals, or the string and a 0 behind it; aligned for each element type.
  std::vector<std::byte> bytes;
  std::vector<CallAttribute> members;  // of a dictionary, sorted by name
};

// Reads a dictionary in MLIR's text, such as {a = 1 : i32, b = "text", c = array<f32: 1.0, 2.0>,
// d = dense<[1, 2]> : tensor<2xi64>, e = {f = true}}, sorted by name. Lists of numbers of one type,
// [1, 2], are arrays. UNIMPLEMENTED, naming the attribute, for values of other kinds.
Result<std::vector<CallAttribute>> ParseCallAttributes(std::string_view text);

}  // namespace kiln
