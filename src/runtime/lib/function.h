// Functions outside generated code: what the library has, and what users register.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string_view>

#include "base/status.h"
#include "frame/frame.h"
#include "tensor/call_signature.h"

namespace kiln::runtime::lib {

// A function made ready for the arrays of one call: whatever can be computed before is there.
class Function {
 public:
  virtual ~Function() = default;
  // `args` are where the signature's operands, results and scratch begin, at multiples of 64. A
  // result may be in an operand's memory where ir/call.h says so. Any number of threads may run
  // it at once; what it does is the same for any number of threads that the frame has.
  virtual Status Run(const kiln_frame* frame, void* const* args) const = 0;
  // Whether it is the user's, which only his own threads may call unless he allows more.
  virtual bool is_users() const { return false; }
};

using Maker = Result<std::shared_ptr<const Function>> (*)(const CallSignature& signature);

// One of the library's own.
struct Entry {
  std::string_view target;
  Maker make;
  // Of memory that a call has to itself, on any machine; null for none.
  Result<int64_t> (*scratch_bytes)(const CallSignature& signature);
};
std::span<const Entry> Library();
// Null where the library has no such function.
const Entry* FindInLibrary(std::string_view target);

}  // namespace kiln::runtime::lib
