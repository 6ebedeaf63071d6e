#include "base/build_id.h"

#include <elf.h>
#include <link.h>

#include <cstddef>
#include <cstdint>
#include <cstring>

#include "base/hash.h"
#include "base/integers.h"

// Made by the linker: the first byte of this binary.
extern "C" __attribute__((visibility("hidden"))) const ElfW(Ehdr) __ehdr_start;

namespace kiln {
namespace {

// The notes of one segment.
std::string FindIn(const char* notes, size_t size) {
  constexpr char kName[] = "GNU";
  constexpr size_t kAlignment = 4;
  while (size >= sizeof(ElfW(Nhdr))) {
    ElfW(Nhdr) note;
    std::memcpy(&note, notes, sizeof(note));
    const size_t name = RoundUp(note.n_namesz, kAlignment);
    const size_t all = sizeof(note) + name + RoundUp(note.n_descsz, kAlignment);
    if (all > size) break;
    if (note.n_type == NT_GNU_BUILD_ID && note.n_namesz == sizeof(kName) &&
        std::memcmp(notes + sizeof(note), kName, sizeof(kName)) == 0) {
      return HexText(
          {reinterpret_cast<const uint8_t*>(notes + sizeof(note) + name), note.n_descsz});
    }
    notes += all;
    size -= all;
  }
  return "";
}

std::string Find() {
  const char* base = reinterpret_cast<const char*>(&__ehdr_start);
  const auto* segments = reinterpret_cast<const ElfW(Phdr)*>(base + __ehdr_start.e_phoff);
  for (size_t i = 0; i < __ehdr_start.e_phnum; ++i) {
    if (segments[i].p_type != PT_NOTE) continue;
    std::string id = FindIn(base + segments[i].p_vaddr, segments[i].p_memsz);
    if (!id.empty()) return id;
  }
  return "";
}

}  // namespace

const std::string& BuildId() {
  static const std::string& id = *new std::string(Find());
  return id;
}

}  // namespace kiln
