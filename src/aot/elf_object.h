// A relocatable ELF object in the making: other objects, data and pointers put together, as `ld -r`
// would, for the linkers of programs.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"

namespace kiln::aot {

enum class Machine : uint8_t { kX86_64, kAArch64 };

class ElfObject {
 public:
  enum class Kind : uint8_t { kText, kReadOnly, kRelocated, kData, kZeros };

  // A place in the object, or a symbol of another one.
  struct Place {
    size_t symbol = 0;  // 0: nowhere, the address NULL
    int64_t offset = 0;
  };
  // Visible places by name.
  using Names = std::map<std::string, Place, std::less<>>;

  explicit ElfObject(Machine machine);

  // Adds relocatable objects of the machine, which may refer to each other and to `externals`.
  // Their names are theirs alone: all become local. Returns the visible ones. INTERNAL for what
  // generated code does not have, such as another reference.
  Result<Names> Add(std::span<const std::string> objects,
                    std::span<const std::string_view> externals);

  // Adds bytes to a section. The place is its own, and is named by `name` unless that is empty.
  Place AddBytes(Kind kind, std::string_view bytes, int64_t alignment, std::string_view name = {});
  // Makes the eight bytes at an offset from a place that address.
  void PutPointer(Place at, int64_t offset, Place to);
  // Makes a place visible to other objects.
  void Export(std::string_view name, Place place, int64_t bytes);
  // A symbol of another object; the same for the same name.
  Place External(std::string_view name);

  // The file, piece by piece.
  Status Write(const std::function<Status(std::string_view bytes)>& sink) const;

 private:
  struct Relocation {
    int64_t offset = 0;
    uint32_t type = 0;
    size_t symbol = 0;
    int64_t addend = 0;
  };
  struct Section {
    std::string bytes;
    int64_t zeros = 0;  // of kZeros
    int64_t alignment = 1;
    size_t symbol = 0;
    std::vector<Relocation> relocations;
  };
  struct Symbol {
    std::string name;
    int section = -1;  // by Kind; -1: another object's
    int64_t offset = 0, bytes = 0;
    bool is_global = false, is_function = false;
  };
  class Input;
  class Layout;

  // The first free offset at that alignment.
  int64_t Reserve(Kind kind, int64_t bytes, int64_t alignment);
  size_t AddSymbol(Symbol symbol);
  Section& section(Kind kind) { return sections_[static_cast<size_t>(kind)]; }

  const Machine machine_;
  std::vector<Section> sections_;
  std::vector<Symbol> symbols_;
  std::map<std::string, size_t, std::less<>> externals_;
};

}  // namespace kiln::aot
