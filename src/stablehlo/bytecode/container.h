// The parsed container of MLIR: strings, names, and the offsets of everything else, which is not
// read here. Private to the bytecode reader.
#pragma once

#include <cstdint>
#include <memory>
#include <string_view>
#include <vector>

#include "stablehlo/bytecode/input.h"

namespace kiln::stablehlo {

// The formats, by their new features.
enum BytecodeFormat : uint64_t {
  kDialectVersions = 1,
  kLazyRegions = 2,
  kUseListOrders = 3,
  kArgumentsWithoutLocation = 4,
  kProperties = 5,
  kNewestFormat = 6,
};

struct Container {
  // An attribute or a type.
  struct Entry {
    Input input;
    std::string_view dialect;
    bool is_text = false;  // MLIR's text, where the dialect has no encoding for it
  };
  struct OperationName {
    std::string_view dialect;
    std::string_view name;  // without the dialect
    bool registered = true;
  };
  // A blob referenced by attributes.
  struct Resource {
    Input input;
    std::string_view key;
    bool is_blob = false;
  };

  uint64_t format = 0;
  std::string_view producer;  // "StableHLO_v1.20.0"
  std::vector<std::string_view> strings;
  std::vector<std::string_view> dialects;
  std::vector<OperationName> operations;
  std::vector<Entry> attributes;
  std::vector<Entry> types;
  std::vector<Resource> resources;
  std::vector<Input> properties;  // of an operation each
  Input ir;
  // Keeps the bytes for large elements, which are then not copied; null: they go after the reader.
  std::shared_ptr<const void> owner;
};

// The container has views of the bytes. Fails on unsupported versions.
Result<Container> ReadContainer(std::string_view bytes);

}  // namespace kiln::stablehlo
