#include "plugin/compile_options.h"

#include <string>

#include "plugin/error.h"

namespace kiln_jax {
namespace {

/** The fields of a message, one after the other. */
class Fields {
 public:
  explicit Fields(std::string_view bytes) : rest_(bytes) {}

  /** Goes to the next field; false at the end, and for damaged bytes. */
  bool Next() {
    uint64_t key = 0;
    if (rest_.empty() || !Varint(&key)) return false;
    number_ = key >> 3;
    value_ = 0;
    text_ = {};
    switch (key & 7) {
      case 0:
        return Varint(&value_);
      case 1:
        return Take(8);
      case 2:
        return Varint(&value_) && Take(value_);
      case 5:
        return Take(4);
      default:
        return Damaged();
    }
  }

  uint64_t number() const { return number_; }
  /** The value of a field of an integer, bool or enum. */
  int64_t value() const { return static_cast<int64_t>(value_); }
  /** The bytes of a field of a message or string. */
  std::string_view text() const { return text_; }
  bool damaged() const { return damaged_; }

 private:
  bool Damaged() {
    damaged_ = true;
    return false;
  }

  bool Varint(uint64_t* value) {
    *value = 0;
    for (int shift = 0; shift < 64; shift += 7) {
      if (rest_.empty()) return Damaged();
      const auto byte = static_cast<unsigned char>(rest_[0]);
      rest_.remove_prefix(1);
      *value |= static_cast<uint64_t>(byte & 127) << shift;
      if (byte < 128) return true;
    }
    return Damaged();
  }

  bool Take(uint64_t size) {
    if (size > rest_.size()) return Damaged();
    text_ = rest_.substr(0, size);
    rest_.remove_prefix(size);
    return true;
  }

  std::string_view rest_;
  std::string_view text_;
  uint64_t number_ = 0;
  uint64_t value_ = 0;
  bool damaged_ = false;
};

/** Reads numbers one after the other; false for damaged bytes. */
bool ReadVarints(std::string_view bytes, std::vector<int64_t>* numbers) {
  uint64_t value = 0;
  int shift = 0;
  for (const char c : bytes) {
    const auto byte = static_cast<unsigned char>(c);
    value |= static_cast<uint64_t>(byte & 127) << shift;
    shift += 7;
    if (byte < 128) {
      numbers->push_back(static_cast<int64_t>(value));
      value = 0;
      shift = 0;
    } else if (shift > 63) {
      return false;
    }
  }
  return shift == 0;
}

PJRT_Error* DamagedError() {
  return InvalidArgument("the compile options are no CompileOptionsProto");
}

/** DeviceAssignmentProto: a list of the replicas' devices for each partition. */
PJRT_Error* ReadAssignment(std::string_view bytes, CompileOptions* options) {
  std::vector<std::vector<int64_t>> partitions;
  Fields fields(bytes);
  while (fields.Next()) {
    if (fields.number() != 3) continue;
    partitions.emplace_back();
    Fields computation(fields.text());
    while (computation.Next()) {
      if (computation.number() != 1) continue;
      if (computation.text().empty()) {
        partitions.back().push_back(computation.value());
      } else if (!ReadVarints(computation.text(), &partitions.back())) {
        return DamagedError();
      }
    }
    if (computation.damaged()) return DamagedError();
  }
  if (fields.damaged()) return DamagedError();
  options->devices.clear();
  for (size_t r = 0; !partitions.empty() && r < partitions[0].size(); ++r) {
    for (const std::vector<int64_t>& replicas : partitions) {
      if (replicas.size() != partitions[0].size()) return DamagedError();
      options->devices.push_back(replicas[r]);
    }
  }
  return nullptr;
}

/** ExecutableBuildOptionsProto. */
PJRT_Error* ReadBuildOptions(std::string_view bytes, CompileOptions* options) {
  Fields fields(bytes);
  while (fields.Next()) {
    if (fields.number() == 9) {
      if (PJRT_Error* error = ReadAssignment(fields.text(), options)) return error;
    }
    if (fields.number() == 1) options->device = fields.value();
    if (fields.number() == 4) options->replicas = fields.value();
    if (fields.number() == 5) options->partitions = fields.value();
    if (fields.number() == 24) options->optimization_level = fields.value();
  }
  return fields.damaged() ? DamagedError() : nullptr;
}

/** An entry of env_option_overrides: the name of an option of XLA, and its value. The values have
 *  no effect here, but mistakes are found. */
PJRT_Error* CheckOverride(std::string_view bytes) {
  std::string_view name, value;
  Fields entry(bytes);
  while (entry.Next()) {
    if (entry.number() == 1) name = entry.text();
    if (entry.number() == 2) value = entry.text();
  }
  if (entry.damaged()) return DamagedError();
  if (!name.starts_with("xla_")) {
    return InvalidArgument("No such compile option: '" + std::string(name) + "'");
  }
  Fields fields(value);
  while (fields.Next()) {
    const bool is_text = fields.number() == 1;
    const std::string_view text = fields.text();
    if (is_text && name == "xla_embed_ir_in_executable" && text != "true" && text != "false" &&
        text != "True" && text != "False" && text != "0" && text != "1") {
      return InvalidArgument("While setting option " + std::string(name) + ", '" +
                             std::string(text) + "' is not a valid bool value.");
    }
  }
  return fields.damaged() ? DamagedError() : nullptr;
}

}  // namespace

PJRT_Error* ReadCompileOptions(std::string_view bytes, CompileOptions* options) {
  Fields fields(bytes);
  while (fields.Next()) {
    PJRT_Error* error = nullptr;
    if (fields.number() == 3) error = ReadBuildOptions(fields.text(), options);
    if (fields.number() == 7) error = CheckOverride(fields.text());
    if (error != nullptr) return error;
  }
  return fields.damaged() ? DamagedError() : nullptr;
}

}  // namespace kiln_jax
