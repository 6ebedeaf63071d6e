#include "support/bytecode_builder.h"

#include <algorithm>

namespace kiln::stablehlo {
namespace {

template <typename T>
uint64_t IndexOf(std::vector<T>& list, const T& value) {
  auto found = std::find(list.begin(), list.end(), value);
  if (found == list.end()) found = list.insert(list.end(), value);
  return static_cast<uint64_t>(found - list.begin());
}

}  // namespace

std::string VarInt(uint64_t value) {
  size_t more = 0;
  while (more < 8 && value >> (7 * (more + 1)) != 0) ++more;
  std::string bytes;
  if (more == 8) {
    bytes += '\0';
  } else {
    value = (value << 1 | 1) << more;
  }
  for (size_t i = 0; i < (more == 8 ? 8 : more + 1); ++i) {
    bytes += static_cast<char>(value >> (8 * i));
  }
  return bytes;
}

std::string SignedVarInt(int64_t value) {
  return VarInt(static_cast<uint64_t>(value) << 1 ^ static_cast<uint64_t>(value >> 63));
}

std::string Flagged(uint64_t value, bool flag) { return VarInt(value << 1 | (flag ? 1 : 0)); }

std::string VarInts(const std::vector<uint64_t>& values) {
  std::string bytes = VarInt(values.size());
  for (uint64_t value : values) bytes += VarInt(value);
  return bytes;
}

std::string SignedVarInts(const std::vector<int64_t>& values) {
  std::string bytes = VarInt(values.size());
  for (int64_t value : values) bytes += SignedVarInt(value);
  return bytes;
}

std::string Blob(std::string_view bytes) { return VarInt(bytes.size()) + std::string(bytes); }

std::string Section(int id, std::string_view bytes) {
  return std::string(1, static_cast<char>(id)) + Blob(bytes);
}

uint64_t BytecodeBuilder::String(std::string_view text) {
  return IndexOf(strings_, std::string(text));
}

uint64_t BytecodeBuilder::Dialect(std::string_view name) {
  return IndexOf(dialects_, std::string(name));
}

uint64_t BytecodeBuilder::Attribute(std::string_view dialect, std::string_view bytes,
                                    bool is_text) {
  attributes_.push_back({std::string(dialect), std::string(bytes), is_text});
  return attributes_.size() - 1;
}

uint64_t BytecodeBuilder::Type(std::string_view dialect, std::string_view bytes, bool is_text) {
  types_.push_back({std::string(dialect), std::string(bytes), is_text});
  return types_.size() - 1;
}

uint64_t BytecodeBuilder::Operation(std::string_view dialect, std::string_view name,
                                    bool registered) {
  names_.push_back({std::string(dialect), String(name), registered});
  return names_.size() - 1;
}

uint64_t BytecodeBuilder::Property(std::string_view bytes) {
  properties_.emplace_back(bytes);
  return properties_.size() - 1;
}

uint64_t BytecodeBuilder::Resource(std::string_view key, std::string_view bytes, uint8_t kind) {
  resources_.push_back({String(key), kind, std::string(bytes)});
  return resources_.size() - 1;
}

uint64_t BytecodeBuilder::Unknown() {
  if (unknown_ == UINT64_MAX) unknown_ = Builtin(VarInt(15));
  return unknown_;
}

uint64_t BytecodeBuilder::Dictionary(
    const std::vector<std::pair<std::string_view, uint64_t>>& fields) {
  std::string bytes = VarInt(1) + VarInt(fields.size());
  for (const auto& [name, value] : fields) bytes += VarInt(BuiltinString(name)) + VarInt(value);
  return Builtin(bytes);
}

std::string BytecodeBuilder::Encode(const Op& op) {
  uint8_t mask = 0;
  std::string bytes;
  auto others = op.others;
  const bool native = format_ >= 5;
  if (!native) others.insert(others.end(), op.properties.begin(), op.properties.end());
  if (!others.empty()) {
    mask |= 1;
    bytes += VarInt(Dictionary(others));
  }
  if (native && !op.properties.empty()) {
    mask |= 64;
    std::string property;
    for (const auto& [name, value] : op.properties) property += VarInt(value);
    bytes += VarInt(Property(property));
  }
  if (!op.results.empty()) {
    mask |= 2;
    bytes += VarInts(op.results);
  }
  if (!op.operands.empty()) {
    mask |= 4;
    bytes += VarInts(op.operands);
  }
  if (!op.regions.empty()) {
    mask |= 16;
    bytes += Flagged(op.regions.size(), op.isolated);
    std::string regions;
    for (const std::string& region : op.regions) regions += region;
    bytes += op.isolated && format_ >= 2 ? Section(4, regions) : regions;
  }
  const uint64_t location = op.location == UINT64_MAX ? Unknown() : op.location;
  return VarInt(op.name) + static_cast<char>(mask) + VarInt(location) + bytes;
}

std::string BytecodeBuilder::Block(const std::vector<uint64_t>& arguments,
                                   const std::vector<std::string>& operations,
                                   const std::vector<uint64_t>& locations) {
  std::string bytes = Flagged(operations.size(), !arguments.empty());
  if (!arguments.empty()) {
    bytes += VarInt(arguments.size());
    for (size_t i = 0; i < arguments.size(); ++i) {
      const bool located = i < locations.size();
      bytes += format_ >= 4 ? Flagged(arguments[i], located) : VarInt(arguments[i]);
      if (format_ < 4 || located) bytes += VarInt(located ? locations[i] : Unknown());
    }
    if (format_ >= 3) bytes += '\0';
  }
  for (const std::string& operation : operations) bytes += operation;
  return bytes;
}

std::string BytecodeBuilder::Region(uint64_t values, const std::vector<uint64_t>& arguments,
                                    const std::vector<std::string>& operations,
                                    const std::vector<uint64_t>& locations) {
  return VarInt(1) + VarInt(values) + Block(arguments, operations, locations);
}

std::string BytecodeBuilder::Module(
    uint64_t values, const std::vector<uint64_t>& inputs, const std::vector<uint64_t>& results,
    const std::vector<std::string>& operations,
    const std::vector<std::pair<std::string_view, uint64_t>>& attributes,
    const std::vector<uint64_t>& locations) {
  const uint64_t type = VhloType(VarInt(8) + VarInts(inputs) + VarInts(results));
  const uint64_t none = Vhlo(VarInt(1) + VarInt(0));
  Op func{.name = Operation("vhlo", "func_v1"), .others = attributes, .isolated = true};
  func.properties = {{"arg_attrs", none},
                     {"function_type", Vhlo(VarInt(17) + VarInt(type))},
                     {"res_attrs", none},
                     {"sym_name", VhloString("main")},
                     {"sym_visibility", VhloString("")}};
  func.regions = {Region(values, inputs, operations, locations)};
  Op module{.name = Operation("builtin", "module"), .isolated = true};
  module.regions = {Region(0, {}, {Encode(func)})};
  return Block({}, {Encode(module)});
}

// Entries of one dialect that follow each other make a group.
std::string BytecodeBuilder::Offsets(const std::vector<Entry>& entries) {
  std::string bytes;
  for (size_t begin = 0; begin < entries.size();) {
    size_t end = begin;
    std::string sizes;
    while (end < entries.size() && entries[end].dialect == entries[begin].dialect) {
      sizes += Flagged(entries[end].bytes.size(), !entries[end].is_text);
      ++end;
    }
    bytes += VarInt(Dialect(entries[begin].dialect)) + VarInt(end - begin) + sizes;
    begin = end;
  }
  return bytes;
}

std::string BytecodeBuilder::Finish(std::string_view ir) {
  const std::string offsets =
      VarInt(attributes_.size()) + VarInt(types_.size()) + Offsets(attributes_) + Offsets(types_);
  std::string entries;
  for (const Entry& entry : attributes_) entries += entry.bytes;
  for (const Entry& entry : types_) entries += entry.bytes;
  std::string names;
  for (const Name& name : names_) {
    names += VarInt(Dialect(name.dialect)) + VarInt(1);
    names += format_ >= 5 ? Flagged(name.string, name.registered) : VarInt(name.string);
  }
  std::string dialects = VarInt(dialects_.size());
  const size_t strings_before = strings_.size();
  for (const std::string& dialect : dialects_) {
    const uint64_t string = String(dialect);
    dialects += format_ >= 1 ? Flagged(string, false) : VarInt(string);
  }
  if (format_ >= 4) dialects += VarInt(names_.size());
  std::string properties = VarInt(properties_.size());
  for (const std::string& property : properties_) properties += Blob(property);
  std::string resources, resource_offsets = VarInt(0);
  if (!resources_.empty()) {
    resource_offsets += VarInt(0) + VarInt(resources_.size());
    for (const Kept& resource : resources_) {
      resource_offsets += VarInt(resource.key) + VarInt(resource.bytes.size());
      resource_offsets += static_cast<char>(resource.kind);
      resources += resource.bytes;
    }
  }
  std::string sizes, texts;
  for (const std::string& text : strings_) {
    sizes = VarInt(text.size() + 1) + sizes;
    texts += text + '\0';
  }
  std::string bytes = "ML\xefR" + VarInt(format_) + producer + '\0';
  bytes +=
      Section(1, dialects + names) + Section(2, entries) + Section(3, offsets) + Section(4, ir);
  if (!resources_.empty()) bytes += Section(5, resources) + Section(6, resource_offsets);
  bytes += Section(0, VarInt(strings_.size()) + sizes + texts);
  if (format_ >= 5) bytes += Section(8, properties);
  strings_.resize(strings_before);
  return bytes;
}

}  // namespace kiln::stablehlo
