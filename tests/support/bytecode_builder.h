// Makes MLIR bytecode, for tests of its reader: also such as no writer makes.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace kiln::stablehlo {

std::string VarInt(uint64_t value);
std::string SignedVarInt(int64_t value);
// A number with a flag in its lowest bit.
std::string Flagged(uint64_t value, bool flag);
// A number of numbers, and they themselves.
std::string VarInts(const std::vector<uint64_t>& values);
std::string SignedVarInts(const std::vector<int64_t>& values);
// A size, and the bytes.
std::string Blob(std::string_view bytes);
std::string Section(int id, std::string_view bytes);

class BytecodeBuilder {
 public:
  explicit BytecodeBuilder(uint64_t format = 6) : format_(format) {}

  std::string producer = "StableHLO_v1.20.0";

  // Each adds an entry and gives its index; a string that is there already is not added.
  uint64_t String(std::string_view text);
  uint64_t Attribute(std::string_view dialect, std::string_view bytes, bool is_text = false);
  uint64_t Type(std::string_view dialect, std::string_view bytes, bool is_text = false);
  uint64_t Vhlo(std::string_view bytes) { return Attribute("vhlo", bytes); }
  uint64_t VhloType(std::string_view bytes) { return Type("vhlo", bytes); }
  uint64_t VhloString(std::string_view text) { return Vhlo(VarInt(14) + VarInt(String(text))); }
  uint64_t Builtin(std::string_view bytes) { return Attribute("builtin", bytes); }
  uint64_t BuiltinString(std::string_view text) {
    return Builtin(VarInt(2) + VarInt(String(text)));
  }
  uint64_t Operation(std::string_view dialect, std::string_view name, bool registered = true);
  uint64_t Property(std::string_view bytes);
  uint64_t Resource(std::string_view key, std::string_view bytes, uint8_t kind = 0);
  // The location that tells nothing.
  uint64_t Unknown();

  // A dictionary of what the pairs have: the dialect builtin's.
  uint64_t Dictionary(const std::vector<std::pair<std::string_view, uint64_t>>& fields);

  struct Op {
    uint64_t name = 0;
    uint64_t location = UINT64_MAX;  // Unknown() where it is not set
    // Of vhlo: in properties, if the format has them, or else in a dictionary.
    std::vector<std::pair<std::string_view, uint64_t>> properties;
    std::vector<std::pair<std::string_view, uint64_t>> others;
    std::vector<uint64_t> operands;
    std::vector<uint64_t> results;
    std::vector<std::string> regions;
    bool isolated = false;
  };
  std::string Encode(const Op& op);
  // One block. Its arguments have no locations, or these.
  std::string Region(uint64_t values, const std::vector<uint64_t>& arguments,
                     const std::vector<std::string>& operations,
                     const std::vector<uint64_t>& locations = {});
  std::string Block(const std::vector<uint64_t>& arguments,
                    const std::vector<std::string>& operations,
                    const std::vector<uint64_t>& locations = {});

  // A module with the function "main", whose block this is, and nothing else: the operations of the
  // top level. Its attributes are of vhlo.
  std::string Module(uint64_t values, const std::vector<uint64_t>& inputs,
                     const std::vector<uint64_t>& results,
                     const std::vector<std::string>& operations,
                     const std::vector<std::pair<std::string_view, uint64_t>>& attributes = {},
                     const std::vector<uint64_t>& locations = {});

  // The whole, with these operations of the top level.
  std::string Finish(std::string_view ir);

 private:
  struct Entry {
    std::string dialect;
    std::string bytes;
    bool is_text = false;
  };
  struct Name {
    std::string dialect;
    uint64_t string = 0;
    bool registered = true;
  };
  struct Kept {
    uint64_t key = 0;
    uint8_t kind = 0;
    std::string bytes;
  };
  uint64_t Dialect(std::string_view name);
  std::string Offsets(const std::vector<Entry>& entries);

  uint64_t format_;
  std::vector<std::string> strings_;
  std::vector<std::string> dialects_;
  std::vector<Entry> attributes_;
  std::vector<Entry> types_;
  std::vector<Name> names_;
  std::vector<std::string> properties_;
  std::vector<Kept> resources_;
  uint64_t unknown_ = UINT64_MAX;
};

}  // namespace kiln::stablehlo
