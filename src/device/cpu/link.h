// Linking of object code into this process. Includes no LLVM header.
#pragma once

#include <memory>
#include <span>
#include <string>
#include <vector>

#include "base/status.h"

namespace kiln::device {

// Linked objects, callable as long as this lives.
class LinkedCode {
 public:
  virtual ~LinkedCode() = default;
  // The address of a symbol. INTERNAL names the missing symbol: the requested one, or one
  // referenced by the code and absent from the objects and the closed table.
  virtual Result<void*> Find(const std::string& symbol) = 0;
  // Bytes of the objects' loaded sections: code and its constants.
  virtual int64_t byte_size() const = 0;
};

// One entry of the closed table that code may be linked against.
struct LinkSymbol {
  const char* name;
  void* address;
};

// Links relocatable objects against each other and a closed table: `symbols` and the helpers called
// by LLVM's back end. Nothing is ever looked up in the host process.
Result<std::unique_ptr<LinkedCode>> Link(const std::vector<std::string>& objects,
                                         std::span<const LinkSymbol> symbols = {});

}  // namespace kiln::device
