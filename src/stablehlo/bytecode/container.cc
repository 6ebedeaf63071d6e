#include "stablehlo/bytecode/container.h"

#include <optional>

#include "stablehlo/bytecode/bytecode.h"
#include "stablehlo/bytecode/version.h"

namespace kiln::stablehlo {
namespace {

constexpr std::string_view kMagic = "ML\xefR";

class ContainerReader {
 public:
  Status Read(std::string_view bytes);
  Container Take() { return std::move(container_); }

 private:
  Status ReadStrings(Input input);
  Status ReadDialects(Input input);
  Status ReadTables(Input offsets, Input table);
  Status ReadEntries(Input& offsets, Input& table, uint64_t count,
                     std::vector<Container::Entry>& entries);
  Status ReadResources(Input offsets, Input resources);
  Status ReadResourceGroup(Input& offsets, Input& resources, bool keep);
  Status ReadProperties(Input input);
  Result<std::string_view> ReadString(Input& input, std::string_view what);

  Container container_;
};

Status ContainerReader::Read(std::string_view bytes) {
  Input input(bytes, 0);
  if (!IsBytecode(bytes))
    return input.Fail("something else", "MLIR bytecode, from \"ML\\xEFR\" on");
  KILN_RETURN_IF_ERROR(input.Bytes(kMagic.size(), "the beginning").status());
  const size_t at = input.offset();
  KILN_ASSIGN_OR_RETURN(container_.format, input.VarInt("the format"));
  if (container_.format > kNewestFormat) {
    return Unimplemented("byte ", at, ": the bytecode's format ", container_.format,
                         " is newer than ", +kNewestFormat, ", the newest that is read");
  }
  KILN_ASSIGN_OR_RETURN(container_.producer, input.Text("the producer"));
  KILN_RETURN_IF_ERROR(CheckVersion(container_.producer));
  std::optional<Input> sections[kNumSections];
  while (!input.AtEnd()) {
    int id = 0;
    const size_t begin = input.offset();
    KILN_ASSIGN_OR_RETURN(Input section, input.AnySection(&id));
    if (sections[id]) return FailAtByte(begin, Cat("section ", id, " again"), "each section once");
    sections[id] = section;
  }
  for (int id : {kStringSection, kDialectSection, kTableSection, kTableOffsetSection, kIrSection}) {
    if (!sections[id]) return input.Fail("the end", Cat("section ", id));
  }
  KILN_RETURN_IF_ERROR(ReadStrings(*sections[kStringSection]));
  KILN_RETURN_IF_ERROR(ReadDialects(*sections[kDialectSection]));
  KILN_RETURN_IF_ERROR(ReadTables(*sections[kTableOffsetSection], *sections[kTableSection]));
  if (sections[kResourceOffsetSection]) {
    if (!sections[kResourceSection])
      return input.Fail("the end", Cat("section ", +kResourceSection));
    KILN_RETURN_IF_ERROR(
        ReadResources(*sections[kResourceOffsetSection], *sections[kResourceSection]));
  }
  if (sections[kPropertySection]) KILN_RETURN_IF_ERROR(ReadProperties(*sections[kPropertySection]));
  container_.ir = *sections[kIrSection];
  return OkStatus();
}

// Sizes from the last to the first, then the strings, with a byte of zero behind each.
Status ContainerReader::ReadStrings(Input input) {
  KILN_ASSIGN_OR_RETURN(uint64_t count, input.Count("a number of strings"));
  std::vector<uint64_t> sizes(count);
  for (uint64_t i = count; i > 0; --i) {
    const size_t at = input.offset();
    KILN_ASSIGN_OR_RETURN(sizes[i - 1], input.VarInt("the size of a string"));
    if (sizes[i - 1] == 0) return FailAtByte(at, "0", "the size of a string with its zero");
  }
  container_.strings.reserve(count);
  for (uint64_t size : sizes) {
    const size_t at = input.offset();
    KILN_ASSIGN_OR_RETURN(std::string_view string, input.Bytes(size, "a string"));
    if (string.back() != '\0') return FailAtByte(at + size - 1, "something else", "a byte of zero");
    container_.strings.push_back(string.substr(0, size - 1));
  }
  return input.ExpectEnd("the strings");
}

Result<std::string_view> ContainerReader::ReadString(Input& input, std::string_view what) {
  KILN_ASSIGN_OR_RETURN(uint64_t index, input.Index(container_.strings.size(), what));
  return container_.strings[index];
}

// Dialects, then the names of operations in groups of a dialect.
Status ContainerReader::ReadDialects(Input input) {
  KILN_ASSIGN_OR_RETURN(uint64_t count, input.Count("a number of dialects"));
  const auto& strings = container_.strings;
  for (uint64_t i = 0; i < count; ++i) {
    const size_t at = input.offset();
    bool has_version = false;
    uint64_t index = 0;
    if (container_.format < kDialectVersions) {
      KILN_ASSIGN_OR_RETURN(index, input.VarInt("a dialect"));
    } else {
      KILN_ASSIGN_OR_RETURN(index, input.Flagged(&has_version, "a dialect"));
    }
    if (index >= strings.size()) {
      return FailAtByte(at, Cat(index), Cat("a string's index below ", strings.size()));
    }
    container_.dialects.push_back(strings[index]);
    // The dialect vhlo has versions in the names of its members.
    if (has_version) KILN_RETURN_IF_ERROR(input.Section(kDialectVersionSection).status());
  }
  if (container_.format >= kArgumentsWithoutLocation) {
    KILN_RETURN_IF_ERROR(input.Count("a number of operations").status());
  }
  while (!input.AtEnd()) {
    KILN_ASSIGN_OR_RETURN(uint64_t dialect, input.Index(container_.dialects.size(), "a dialect"));
    KILN_ASSIGN_OR_RETURN(uint64_t names, input.Count("a number of operations"));
    for (uint64_t i = 0; i < names; ++i) {
      Container::OperationName name{.dialect = container_.dialects[dialect]};
      const size_t at = input.offset();
      uint64_t index = 0;
      if (container_.format < kProperties) {
        KILN_ASSIGN_OR_RETURN(index, input.VarInt("the name of an operation"));
      } else {
        KILN_ASSIGN_OR_RETURN(index, input.Flagged(&name.registered, "the name of an operation"));
      }
      if (index >= strings.size()) {
        return FailAtByte(at, Cat(index), Cat("a string's index below ", strings.size()));
      }
      name.name = strings[index];
      container_.operations.push_back(name);
    }
  }
  return OkStatus();
}

// The sizes of attributes, then of types, in groups of a dialect; the table has them one behind the
// other.
Status ContainerReader::ReadTables(Input offsets, Input table) {
  KILN_ASSIGN_OR_RETURN(uint64_t attributes, offsets.Count("a number of attributes"));
  KILN_ASSIGN_OR_RETURN(uint64_t types, offsets.Count("a number of types"));
  KILN_RETURN_IF_ERROR(ReadEntries(offsets, table, attributes, container_.attributes));
  KILN_RETURN_IF_ERROR(ReadEntries(offsets, table, types, container_.types));
  KILN_RETURN_IF_ERROR(table.ExpectEnd("the attributes and types"));
  return offsets.ExpectEnd("their sizes");
}

Status ContainerReader::ReadEntries(Input& offsets, Input& table, uint64_t count,
                                    std::vector<Container::Entry>& entries) {
  while (entries.size() < count) {
    KILN_ASSIGN_OR_RETURN(uint64_t dialect, offsets.Index(container_.dialects.size(), "a dialect"));
    const size_t at = offsets.offset();
    KILN_ASSIGN_OR_RETURN(uint64_t group, offsets.Count("a number of entries"));
    if (group > count - entries.size()) {
      return FailAtByte(at, Cat(group, " entries"), Cat("at most ", count - entries.size()));
    }
    for (uint64_t i = 0; i < group; ++i) {
      Container::Entry entry{.dialect = container_.dialects[dialect]};
      bool has_encoding = false;
      KILN_ASSIGN_OR_RETURN(uint64_t size, offsets.Flagged(&has_encoding, "the size of an entry"));
      const size_t begin = table.offset();
      KILN_ASSIGN_OR_RETURN(std::string_view bytes, table.Bytes(size, "an attribute or a type"));
      entry.input = Input(bytes, begin);
      entry.is_text = !has_encoding;
      entries.push_back(entry);
    }
  }
  return OkStatus();
}

// Groups of others, then of dialects, to which attributes refer.
Status ContainerReader::ReadResources(Input offsets, Input resources) {
  KILN_ASSIGN_OR_RETURN(uint64_t others, offsets.Count("a number of groups"));
  for (uint64_t i = 0; i < others; ++i) {
    KILN_RETURN_IF_ERROR(ReadString(offsets, "the key of a group").status());
    KILN_RETURN_IF_ERROR(ReadResourceGroup(offsets, resources, false));
  }
  while (!offsets.AtEnd()) {
    KILN_RETURN_IF_ERROR(offsets.Index(container_.dialects.size(), "a dialect").status());
    KILN_RETURN_IF_ERROR(ReadResourceGroup(offsets, resources, true));
  }
  return resources.ExpectEnd("the resources");
}

Status ContainerReader::ReadResourceGroup(Input& offsets, Input& resources, bool keep) {
  constexpr uint8_t kBlob = 0;
  KILN_ASSIGN_OR_RETURN(uint64_t count, offsets.Count("a number of resources"));
  for (uint64_t i = 0; i < count; ++i) {
    Container::Resource resource;
    KILN_ASSIGN_OR_RETURN(resource.key, ReadString(offsets, "the key of a resource"));
    KILN_ASSIGN_OR_RETURN(uint64_t size, offsets.VarInt("the size of a resource"));
    KILN_ASSIGN_OR_RETURN(uint8_t kind, offsets.Byte("the kind of a resource"));
    const size_t begin = resources.offset();
    KILN_ASSIGN_OR_RETURN(std::string_view bytes, resources.Bytes(size, "a resource"));
    resource.input = Input(bytes, begin);
    resource.is_blob = kind == kBlob;
    if (keep) container_.resources.push_back(resource);
  }
  return OkStatus();
}

Status ContainerReader::ReadProperties(Input input) {
  KILN_ASSIGN_OR_RETURN(uint64_t count, input.Count("a number of properties"));
  for (uint64_t i = 0; i < count; ++i) {
    KILN_ASSIGN_OR_RETURN(uint64_t size, input.VarInt("the size of properties"));
    const size_t begin = input.offset();
    KILN_ASSIGN_OR_RETURN(std::string_view bytes, input.Bytes(size, "properties"));
    container_.properties.emplace_back(bytes, begin);
  }
  return input.ExpectEnd("the properties");
}

}  // namespace

bool IsBytecode(std::string_view bytes) { return bytes.starts_with(kMagic); }

Result<Container> ReadContainer(std::string_view bytes) {
  ContainerReader reader;
  KILN_RETURN_IF_ERROR(reader.Read(bytes));
  return reader.Take();
}

}  // namespace kiln::stablehlo
