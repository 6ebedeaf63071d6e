// What a function outside generated code is told of a call of it, beside addresses.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "tensor/shape.h"

namespace kiln {

// Operands and results are arrays in row-major order: a tuple's are given one by one, in order, and
// tokens are left out.
struct CallSignature {
  std::vector<Shape> operands, results;
  // Of memory for the call alone, behind the results; 0 for none. Its contents are undefined.
  int64_t scratch_bytes = 0;
  // What the op says: of a custom call its backend_config.
  std::string attributes;

  // As bytes that a program holds for as long as it is kept. Decode refuses what Encode has not
  // made, or has made in a version to come.
  std::string Encode() const;
  static Result<CallSignature> Decode(std::string_view bytes);
  // "(f32[2,3], s32[]) -> (f32[2])".
  std::string ToString() const;
};

}  // namespace kiln
