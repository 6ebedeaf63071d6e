#include "aot/elf_object.h"

#include <elf.h>

#include <algorithm>
#include <cstring>
#include <optional>
#include <utility>

#include "base/strings.h"

namespace kiln::aot {
namespace {

// The sections of the result, by Kind.
struct SectionRow {
  const char* name;
  uint32_t type;
  uint64_t flags;
  // How the names of inputs' sections begin: large ones are for code that is far from its data.
  std::string_view inputs[2];
};
constexpr SectionRow kSections[] = {
    {".text", SHT_PROGBITS, SHF_ALLOC | SHF_EXECINSTR, {".text", ".ltext"}},
    {".rodata", SHT_PROGBITS, SHF_ALLOC, {".rodata", ".lrodata"}},
    {".data.rel.ro", SHT_PROGBITS, SHF_ALLOC | SHF_WRITE, {".data.rel.ro", ".ldata.rel.ro"}},
    {".data", SHT_PROGBITS, SHF_ALLOC | SHF_WRITE, {".data", ".ldata"}},
    {".bss", SHT_NOBITS, SHF_ALLOC | SHF_WRITE, {".bss", ".lbss"}},
};

// The kind of the section of that name. The longest beginning counts: .data.rel.ro is no .data.
std::optional<ElfObject::Kind> KindOf(std::string_view name) {
  std::optional<ElfObject::Kind> kind;
  size_t longest = 0;
  for (size_t k = 0; k < std::size(kSections); ++k) {
    for (std::string_view input : kSections[k].inputs) {
      const bool fits =
          StartsWith(name, input) && (name.size() == input.size() || name[input.size()] == '.');
      if (!fits || input.size() <= longest) continue;
      longest = input.size();
      kind = static_cast<ElfObject::Kind>(k);
    }
  }
  return kind;
}

template <typename T>
std::string_view BytesOf(const T& value) {
  return {reinterpret_cast<const char*>(&value), sizeof(value)};
}

}  // namespace

// One object that is added.
class ElfObject::Input {
 public:
  Input(ElfObject& output, std::string_view file) : output_(output), file_(file) {}

  // Its sections, and the visible symbols that it defines.
  Status AddSections(Names& names);
  Status AddRelocations(const Names& names, std::span<const std::string_view> externals);

 private:
  // Where a section has gone.
  struct Moved {
    std::optional<Kind> kind;
    int64_t offset = 0;
  };

  template <typename T>
  Result<T> Read(uint64_t offset) const {
    T value;
    if (offset > file_.size() || file_.size() - offset < sizeof(T)) return Bad("it is cut off");
    std::memcpy(&value, file_.data() + offset, sizeof(T));
    return value;
  }
  Result<std::string_view> Contents(const Elf64_Shdr& header) const {
    if (header.sh_offset > file_.size() || header.sh_size > file_.size() - header.sh_offset) {
      return Bad("it is cut off");
    }
    return file_.substr(header.sh_offset, header.sh_size);
  }
  template <typename T>
  Result<std::vector<T>> Table(const Elf64_Shdr& header) const {
    KILN_ASSIGN_OR_RETURN(std::string_view bytes, Contents(header));
    std::vector<T> table(bytes.size() / sizeof(T));
    if (!table.empty()) std::memcpy(table.data(), bytes.data(), table.size() * sizeof(T));
    return table;
  }
  Result<std::string_view> TextAt(uint32_t section, uint64_t offset) const {
    if (section >= headers_.size()) return Bad("a name is nowhere");
    KILN_ASSIGN_OR_RETURN(std::string_view texts, Contents(headers_[section]));
    const size_t end = offset < texts.size() ? texts.find('\0', offset) : texts.npos;
    if (end == texts.npos) return Bad("a name is nowhere");
    return texts.substr(offset, end - offset);
  }
  template <typename... Args>
  static Status Bad(const Args&... what) {
    return Internal("an object of generated code: ", Cat(what...));
  }

  Status ReadHeaders();
  Status AddSection(const Elf64_Shdr& header, std::string_view name, Moved& moved);
  Status AddSymbols(const Elf64_Shdr& table, Names& names);
  Result<Place> PlaceOf(size_t symbol, const Names& names,
                        std::span<const std::string_view> externals) const;

  ElfObject& output_;
  const std::string_view file_;
  Elf64_Ehdr header_{};
  std::vector<Elf64_Shdr> headers_;
  std::vector<Moved> moved_;  // by section
  std::vector<Elf64_Sym> symbols_;
  uint32_t symbol_names_ = 0;  // the section of their names
  std::vector<Place> places_;  // by symbol, of those that it defines
};

Status ElfObject::Input::ReadHeaders() {
  KILN_ASSIGN_OR_RETURN(header_, Read<Elf64_Ehdr>(0));
  const uint16_t machine = output_.machine_ == Machine::kX86_64 ? EM_X86_64 : EM_AARCH64;
  if (std::memcmp(header_.e_ident, ELFMAG, SELFMAG) != 0 ||
      header_.e_ident[EI_CLASS] != ELFCLASS64 || header_.e_ident[EI_DATA] != ELFDATA2LSB ||
      header_.e_type != ET_REL || header_.e_machine != machine) {
    return Bad("it is no ELF object of the machine");
  }
  uint64_t count = header_.e_shnum;
  if (count == 0) {
    // Too many for the field: the first section has the number.
    KILN_ASSIGN_OR_RETURN(const Elf64_Shdr first, Read<Elf64_Shdr>(header_.e_shoff));
    count = first.sh_size;
  }
  for (uint64_t i = 0; i < count; ++i) {
    KILN_ASSIGN_OR_RETURN(const Elf64_Shdr section,
                          Read<Elf64_Shdr>(header_.e_shoff + i * sizeof(Elf64_Shdr)));
    headers_.push_back(section);
  }
  return OkStatus();
}

Status ElfObject::Input::AddSection(const Elf64_Shdr& header, std::string_view name, Moved& moved) {
  // Descriptions for debuggers and tools stay behind.
  if (!(header.sh_flags & SHF_ALLOC) || header.sh_size == 0) return OkStatus();
  // No frame of generated code is unwound: its functions throw nothing.
  if (name == ".eh_frame") return OkStatus();
  moved.kind = KindOf(name);
  const bool has_bytes = header.sh_type == SHT_PROGBITS;
  if (!moved.kind || (!has_bytes && header.sh_type != SHT_NOBITS)) {
    return Bad("it has a section ", name);
  }
  if ((*moved.kind == Kind::kZeros) == has_bytes) return Bad("its section ", name, " has bytes");
  const auto size = static_cast<int64_t>(header.sh_size);
  moved.offset = output_.Reserve(*moved.kind, size, static_cast<int64_t>(header.sh_addralign));
  if (!has_bytes) return OkStatus();
  KILN_ASSIGN_OR_RETURN(std::string_view bytes, Contents(header));
  std::memcpy(output_.section(*moved.kind).bytes.data() + moved.offset, bytes.data(), bytes.size());
  return OkStatus();
}

Status ElfObject::Input::AddSymbols(const Elf64_Shdr& table, Names& names) {
  KILN_ASSIGN_OR_RETURN(symbols_, Table<Elf64_Sym>(table));
  symbol_names_ = table.sh_link;
  places_.resize(symbols_.size());
  for (size_t i = 1; i < symbols_.size(); ++i) {
    const Elf64_Sym& symbol = symbols_[i];
    if (symbol.st_shndx == SHN_UNDEF || ELF64_ST_TYPE(symbol.st_info) == STT_FILE) continue;
    if (symbol.st_shndx >= moved_.size()) return Bad("a symbol is nowhere");
    const Moved& moved = moved_[symbol.st_shndx];
    if (!moved.kind) continue;
    const int64_t offset = moved.offset + static_cast<int64_t>(symbol.st_value);
    const size_t section_symbol = output_.section(*moved.kind).symbol;
    places_[i] = {section_symbol, offset};
    const bool is_function = ELF64_ST_TYPE(symbol.st_info) == STT_FUNC;
    const bool is_visible = ELF64_ST_BIND(symbol.st_info) != STB_LOCAL;
    if (!is_function && !is_visible) continue;
    KILN_ASSIGN_OR_RETURN(std::string_view name, TextAt(symbol_names_, symbol.st_name));
    // Functions keep their names, for profilers. Data that other objects read has a symbol of its
    // own, too: where code takes an address from a table of them, the linker makes its entry for a
    // symbol, without an offset.
    places_[i] = {output_.AddSymbol({.name = std::string(name),
                                     .section = static_cast<int>(*moved.kind),
                                     .offset = offset,
                                     .bytes = static_cast<int64_t>(symbol.st_size),
                                     .is_function = is_function}),
                  0};
    if (is_visible && !names.emplace(name, places_[i]).second) return Bad(name, " is there twice");
  }
  return OkStatus();
}

Status ElfObject::Input::AddSections(Names& names) {
  KILN_RETURN_IF_ERROR(ReadHeaders());
  moved_.resize(headers_.size());
  for (size_t i = 1; i < headers_.size(); ++i) {
    KILN_ASSIGN_OR_RETURN(std::string_view name, TextAt(header_.e_shstrndx, headers_[i].sh_name));
    KILN_RETURN_IF_ERROR(AddSection(headers_[i], name, moved_[i]));
  }
  for (const Elf64_Shdr& header : headers_) {
    if (header.sh_type == SHT_SYMTAB) KILN_RETURN_IF_ERROR(AddSymbols(header, names));
  }
  return OkStatus();
}

Result<ElfObject::Place> ElfObject::Input::PlaceOf(
    size_t symbol, const Names& names, std::span<const std::string_view> externals) const {
  if (symbol >= symbols_.size()) return Bad("a symbol is nowhere");
  if (places_[symbol].symbol != 0) return places_[symbol];
  KILN_ASSIGN_OR_RETURN(std::string_view name, TextAt(symbol_names_, symbols_[symbol].st_name));
  if (auto it = names.find(name); it != names.end()) return it->second;
  if (std::ranges::find(externals, name) == externals.end()) return Bad("it refers to ", name);
  return output_.External(name);
}

Status ElfObject::Input::AddRelocations(const Names& names,
                                        std::span<const std::string_view> externals) {
  for (const Elf64_Shdr& header : headers_) {
    if (header.sh_type != SHT_RELA && header.sh_type != SHT_REL) continue;
    if (header.sh_info >= moved_.size()) return Bad("a relocation is nowhere");
    const Moved& moved = moved_[header.sh_info];
    if (!moved.kind) continue;
    if (header.sh_type == SHT_REL) return Bad("it has relocations without addends");
    KILN_ASSIGN_OR_RETURN(const std::vector<Elf64_Rela> relocations, Table<Elf64_Rela>(header));
    for (const Elf64_Rela& r : relocations) {
      KILN_ASSIGN_OR_RETURN(const Place place, PlaceOf(ELF64_R_SYM(r.r_info), names, externals));
      output_.section(*moved.kind)
          .relocations.push_back({.offset = moved.offset + static_cast<int64_t>(r.r_offset),
                                  .type = static_cast<uint32_t>(ELF64_R_TYPE(r.r_info)),
                                  .symbol = place.symbol,
                                  .addend = place.offset + r.r_addend});
    }
  }
  return OkStatus();
}

ElfObject::ElfObject(Machine machine)
    : machine_(machine), sections_(std::size(kSections)), symbols_(1) {
  for (size_t k = 0; k < sections_.size(); ++k) {
    sections_[k].symbol = AddSymbol({.section = static_cast<int>(k)});
  }
}

size_t ElfObject::AddSymbol(Symbol symbol) {
  symbols_.push_back(std::move(symbol));
  return symbols_.size() - 1;
}

int64_t ElfObject::Reserve(Kind kind, int64_t bytes, int64_t alignment) {
  Section& s = section(kind);
  alignment = std::max<int64_t>(alignment, 1);
  s.alignment = std::max(s.alignment, alignment);
  const int64_t used = kind == Kind::kZeros ? s.zeros : std::ssize(s.bytes);
  const int64_t offset = (used + alignment - 1) / alignment * alignment;
  if (kind == Kind::kZeros) {
    s.zeros = offset + bytes;
  } else {
    s.bytes.resize(static_cast<size_t>(offset + bytes), '\0');
  }
  return offset;
}

Result<ElfObject::Names> ElfObject::Add(std::span<const std::string> objects,
                                        std::span<const std::string_view> externals) {
  std::vector<Input> inputs;
  Names names;
  for (const std::string& object : objects) {
    KILN_RETURN_IF_ERROR(inputs.emplace_back(*this, object).AddSections(names));
  }
  for (Input& input : inputs) KILN_RETURN_IF_ERROR(input.AddRelocations(names, externals));
  return names;
}

ElfObject::Place ElfObject::AddBytes(Kind kind, std::string_view bytes, int64_t alignment,
                                     std::string_view name) {
  const int64_t offset = Reserve(kind, std::ssize(bytes), alignment);
  Section& s = section(kind);
  if (!bytes.empty()) std::memcpy(s.bytes.data() + offset, bytes.data(), bytes.size());
  if (name.empty()) return {s.symbol, offset};
  return {AddSymbol({.name = std::string(name),
                     .section = static_cast<int>(kind),
                     .offset = offset,
                     .bytes = std::ssize(bytes)}),
          0};
}

void ElfObject::PutPointer(Place at, int64_t offset, Place to) {
  const Symbol& symbol = symbols_[at.symbol];
  sections_[static_cast<size_t>(symbol.section)].relocations.push_back(
      {.offset = symbol.offset + at.offset + offset,
       .type = machine_ == Machine::kX86_64 ? uint32_t{R_X86_64_64} : uint32_t{R_AARCH64_ABS64},
       .symbol = to.symbol,
       .addend = to.offset});
}

void ElfObject::Export(std::string_view name, Place place, int64_t bytes) {
  const Symbol& symbol = symbols_[place.symbol];
  AddSymbol({.name = std::string(name),
             .section = symbol.section,
             .offset = symbol.offset + place.offset,
             .bytes = bytes,
             .is_global = true});
}

ElfObject::Place ElfObject::External(std::string_view name) {
  auto [it, is_new] = externals_.try_emplace(std::string(name));
  if (is_new) it->second = AddSymbol({.name = std::string(name), .is_global = true});
  return {it->second, 0};
}

// The file's tables, and where its parts are.
class ElfObject::Layout {
 public:
  explicit Layout(const ElfObject& object) : object_(object) {
    OrderSymbols();
    AddHeaders();
  }

  Status Write(const std::function<Status(std::string_view)>& sink);

 private:
  // Headers: none, then each section and its relocations, then the rest.
  static uint32_t HeaderOf(size_t section) { return static_cast<uint32_t>(1 + 2 * section); }

  void OrderSymbols();
  void AddHeaders();
  void AddHeader(std::string_view name, Elf64_Shdr header, uint64_t bytes);
  void AddTable(std::string_view name, Elf64_Shdr header, std::string bytes) {
    AddHeader(name, header, bytes.size());
    tables_.push_back({headers_.back().sh_offset, std::move(bytes)});
  }
  static uint32_t AddText(std::string& texts, std::string_view text) {
    const auto at = static_cast<uint32_t>(texts.size());
    texts.append(text).push_back('\0');
    return at;
  }
  std::string RelocationsOf(const Section& section) const;

  struct Piece {
    uint64_t offset;
    std::string bytes;
  };

  const ElfObject& object_;
  std::vector<uint32_t> numbers_;  // of symbols in the file
  uint32_t locals_ = 0;
  std::string symbols_, names_{'\0'}, section_names_{'\0'};
  std::vector<Elf64_Shdr> headers_{1};
  std::vector<Piece> tables_;
  uint64_t end_ = sizeof(Elf64_Ehdr);
};

// Local symbols come first.
void ElfObject::Layout::OrderSymbols() {
  numbers_.resize(object_.symbols_.size());
  uint32_t next = 0;
  for (bool is_global : {false, true}) {
    for (size_t i = 0; i < object_.symbols_.size(); ++i) {
      const Symbol& symbol = object_.symbols_[i];
      if (symbol.is_global != is_global) continue;
      numbers_[i] = next++;
      const bool is_section = i > 0 && symbol.name.empty();
      const int type = is_section                     ? STT_SECTION
                       : symbol.is_function           ? STT_FUNC
                       : symbol.section >= 0 && i > 0 ? STT_OBJECT
                                                      : STT_NOTYPE;
      Elf64_Sym entry{};
      entry.st_name = symbol.name.empty() ? 0 : AddText(names_, symbol.name);
      entry.st_info =
          static_cast<unsigned char>(ELF64_ST_INFO(is_global ? STB_GLOBAL : STB_LOCAL, type));
      entry.st_shndx = symbol.section < 0
                           ? static_cast<uint16_t>(SHN_UNDEF)
                           : static_cast<uint16_t>(HeaderOf(static_cast<size_t>(symbol.section)));
      entry.st_value = static_cast<uint64_t>(symbol.offset);
      entry.st_size = static_cast<uint64_t>(symbol.bytes);
      symbols_ += BytesOf(entry);
    }
    if (!is_global) locals_ = next;
  }
}

void ElfObject::Layout::AddHeader(std::string_view name, Elf64_Shdr header, uint64_t bytes) {
  header.sh_name = AddText(section_names_, name);
  header.sh_addralign = std::max<uint64_t>(header.sh_addralign, 1);
  end_ = (end_ + header.sh_addralign - 1) / header.sh_addralign * header.sh_addralign;
  header.sh_offset = end_;
  header.sh_size = bytes;
  if (header.sh_type != SHT_NOBITS) end_ += bytes;
  headers_.push_back(header);
}

std::string ElfObject::Layout::RelocationsOf(const Section& section) const {
  std::string bytes;
  for (const Relocation& r : section.relocations) {
    Elf64_Rela entry{};
    entry.r_offset = static_cast<uint64_t>(r.offset);
    entry.r_info = ELF64_R_INFO(uint64_t{numbers_[r.symbol]}, uint64_t{r.type});
    entry.r_addend = r.addend;
    bytes += BytesOf(entry);
  }
  return bytes;
}

void ElfObject::Layout::AddHeaders() {
  const size_t count = object_.sections_.size();
  const uint32_t symbol_table = HeaderOf(count) + 1;
  for (size_t k = 0; k < count; ++k) {
    const Section& section = object_.sections_[k];
    Elf64_Shdr header{};
    header.sh_type = kSections[k].type;
    header.sh_flags = kSections[k].flags;
    header.sh_addralign = static_cast<uint64_t>(section.alignment);
    AddHeader(kSections[k].name, header,
              kSections[k].type == SHT_NOBITS ? static_cast<uint64_t>(section.zeros)
                                              : section.bytes.size());
    Elf64_Shdr relocations{};
    relocations.sh_type = SHT_RELA;
    relocations.sh_flags = SHF_INFO_LINK;
    relocations.sh_link = symbol_table;
    relocations.sh_info = HeaderOf(k);
    relocations.sh_addralign = alignof(Elf64_Rela);
    relocations.sh_entsize = sizeof(Elf64_Rela);
    AddTable(Cat(".rela", kSections[k].name), relocations, RelocationsOf(section));
  }
  Elf64_Shdr stack{}, symbols{}, texts{};
  // The stack need not be executable.
  stack.sh_type = SHT_PROGBITS;
  AddHeader(".note.GNU-stack", stack, 0);
  symbols.sh_type = SHT_SYMTAB;
  symbols.sh_link = symbol_table + 1;
  symbols.sh_info = locals_;
  symbols.sh_addralign = alignof(Elf64_Sym);
  symbols.sh_entsize = sizeof(Elf64_Sym);
  AddTable(".symtab", symbols, std::move(symbols_));
  texts.sh_type = SHT_STRTAB;
  AddTable(".strtab", texts, std::move(names_));
  // Its own name is in it.
  std::string section_names = section_names_;
  AddText(section_names, ".shstrtab");
  AddTable(".shstrtab", texts, std::move(section_names));
}

Status ElfObject::Layout::Write(const std::function<Status(std::string_view)>& sink) {
  uint64_t written = 0;
  auto put = [&](uint64_t offset, std::string_view bytes) -> Status {
    const std::string gap(offset - written, '\0');
    written = offset + bytes.size();
    if (!gap.empty()) KILN_RETURN_IF_ERROR(sink(gap));
    return bytes.empty() ? OkStatus() : sink(bytes);
  };
  Elf64_Ehdr header{};
  std::memcpy(header.e_ident, ELFMAG, SELFMAG);
  header.e_ident[EI_CLASS] = ELFCLASS64;
  header.e_ident[EI_DATA] = ELFDATA2LSB;
  header.e_ident[EI_VERSION] = EV_CURRENT;
  header.e_type = ET_REL;
  header.e_machine = object_.machine_ == Machine::kX86_64 ? EM_X86_64 : EM_AARCH64;
  header.e_version = EV_CURRENT;
  header.e_shoff = (end_ + alignof(Elf64_Shdr) - 1) / alignof(Elf64_Shdr) * alignof(Elf64_Shdr);
  header.e_ehsize = sizeof(Elf64_Ehdr);
  header.e_shentsize = sizeof(Elf64_Shdr);
  header.e_shnum = static_cast<uint16_t>(headers_.size());
  header.e_shstrndx = static_cast<uint16_t>(headers_.size() - 1);
  KILN_RETURN_IF_ERROR(put(0, BytesOf(header)));
  auto table = tables_.begin();
  for (size_t k = 0; k < object_.sections_.size(); ++k) {
    KILN_RETURN_IF_ERROR(put(headers_[HeaderOf(k)].sh_offset, object_.sections_[k].bytes));
    KILN_RETURN_IF_ERROR(put(table->offset, table->bytes));
    ++table;
  }
  for (; table != tables_.end(); ++table) KILN_RETURN_IF_ERROR(put(table->offset, table->bytes));
  for (size_t i = 0; i < headers_.size(); ++i) {
    KILN_RETURN_IF_ERROR(put(header.e_shoff + i * sizeof(Elf64_Shdr), BytesOf(headers_[i])));
  }
  return OkStatus();
}

Status ElfObject::Write(const std::function<Status(std::string_view)>& sink) const {
  return Layout(*this).Write(sink);
}

}  // namespace kiln::aot
