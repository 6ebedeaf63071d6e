// The description of a call for a function outside generated code, in addition to addresses.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/status.h"
#include "tensor/shape.h"

namespace kiln {

// XLA's calling conventions of custom calls by their numbers: 0 unspecified, 1 original, 2 with a
// status, 3 with a status and the text, 4 with typed attributes. "", or none, for unknown ones.
std::string_view ApiVersionName(int64_t version);
std::optional<int64_t> ApiVersionByName(std::string_view name);
inline constexpr int64_t kTypedApiVersion = 4;

// Operands and results are arrays, each with its layout in memory: tuples are flattened, in order,
// and tokens omitted.
struct CallSignature {
  std::vector<Shape> operands, results;
  // Scratch of the call, behind the results; 0 for none. Its contents are undefined.
  int64_t scratch_bytes = 0;
  // The op's text: backend_config of a custom call.
  std::string attributes;
  // Of a custom call: the number of XLA's calling convention, from 1 to 4.
  int64_t api_version = 1;
  bool has_side_effect = false;
  // (result, operand) that share memory.
  std::vector<std::pair<size_t, size_t>> aliases;

  // The serialised form, stored in programs. Decode refuses invalid bytes, and bytes of later
  // versions.
  std::string Encode() const;
  static Result<CallSignature> Decode(std::string_view bytes);
  // "(f32[2,3], s32[]) -> (f32[2])".
  std::string ToString() const;
};

}  // namespace kiln
