// Functions outside generated code: the library's, and registered ones.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string_view>

#include "base/status.h"
#include "frame/frame.h"
#include "tensor/call_signature.h"

namespace kiln::runtime::lib {

// A function prepared for the arrays of one call, with everything precomputed.
class Function {
 public:
  virtual ~Function() = default;
  // `args` are the addresses of the signature's operands, results and scratch, aligned to 64. A
  // result may be in an operand's memory if ir/host_call.h allows it. Any number of threads may run
  // it at once. The result does not depend on the frame's number of threads.
  virtual Status Run(const kiln_frame* frame, void* const* args) const = 0;
  // Whether it is the user's, callable only on the user's own threads unless allowed otherwise.
  virtual bool is_users() const { return false; }
};

using Maker = Result<std::shared_ptr<const Function>> (*)(const CallSignature& signature);

// One of the library's own.
struct Entry {
  std::string_view target;
  Maker make;
  // The scratch bytes of a call, on any machine; null for none.
  Result<int64_t> (*scratch_bytes)(const CallSignature& signature);
};
std::span<const Entry> Library();
// Null if the library has no such function.
const Entry* FindInLibrary(std::string_view target);

}  // namespace kiln::runtime::lib
