// Object code into this process. Includes no LLVM header.
#pragma once

#include <memory>
#include <span>
#include <string>
#include <vector>

#include "base/status.h"

namespace kiln::device {

// Objects that have been linked and may be called, for as long as this lives.
class LinkedCode {
 public:
  virtual ~LinkedCode() = default;
  // The address of a symbol. INTERNAL names what is missing: the symbol itself, or what the code
  // wants and neither the objects nor the closed table have.
  virtual Result<void*> Find(const std::string& symbol) = 0;
  // The objects' sections that are in memory: code and its constants.
  virtual int64_t byte_size() const = 0;
};

// One entry of the closed table that code may be linked against.
struct LinkSymbol {
  const char* name;
  void* address;
};

// Links relocatable objects against each other and a closed table, which is `symbols` and what
// LLVM's back end may call by itself: nothing is ever looked up in the host process.
Result<std::unique_ptr<LinkedCode>> Link(const std::vector<std::string>& objects,
                                         std::span<const LinkSymbol> symbols = {});

}  // namespace kiln::device
