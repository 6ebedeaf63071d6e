#include "plugin/compile_options.h"

#include <algorithm>
#include <charconv>
#include <iterator>
#include <string>
#include <system_error>

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

/** The options whose values are read or checked: XLA's, and Kiln's own, which only overrides have.
 *  The types are protobuf's, as XLA names them in messages. */
struct Option {
  std::string_view name;
  std::string_view type;
  uint64_t field = 0;  // of DebugOptions, if it has an effect
};
enum Effect : uint64_t {
  kBackendLevel = 31,
  kNoExpensivePasses = 73,
  kDumpTo = 109,
  kMemoryLimit = UINT64_MAX,  // no field
};
constexpr Option kOptions[] = {
    {"kiln_memory_limit_bytes", "int64", kMemoryLimit},
    {"xla_backend_optimization_level", "int32", kBackendLevel},
    {"xla_llvm_disable_expensive_passes", "bool", kNoExpensivePasses},
    {"xla_dump_to", "string", kDumpTo},
    {"xla_embed_ir_in_executable", "bool"},
    {"xla_dump_hlo_as_text", "bool"},
    {"xla_dump_hlo_as_proto", "bool"},
    {"xla_dump_hlo_as_dot", "bool"},
    {"xla_dump_hlo_as_html", "bool"},
    {"xla_dump_hlo_pass_re", "string"},
    {"xla_dump_hlo_module_re", "string"},
    {"xla_allow_excess_precision", "bool"},
    {"xla_eliminate_hlo_implicit_broadcast", "bool"},
    {"xla_cpu_multi_thread_eigen", "bool"},
    {"xla_cpu_enable_fast_math", "bool"},
    {"xla_cpu_enable_fast_min_max", "bool"},
    {"xla_cpu_prefer_vector_width", "int32"},
    {"xla_cpu_max_isa", "string"},
    {"xla_gpu_autotune_level", "int32"},
    {"xla_gpu_enable_triton_gemm", "bool"},
};

void Apply(uint64_t field, int64_t number, std::string_view text, CompileOptions* options) {
  if (field == kBackendLevel) options->is_quick |= number < 2;
  if (field == kNoExpensivePasses) options->is_quick |= number != 0;
  if (field == kDumpTo) options->dump_folder = text;
  if (field == kMemoryLimit) options->memory_limit_bytes = number;
}

/** DebugOptions. */
PJRT_Error* ReadDebugOptions(std::string_view bytes, CompileOptions* options) {
  Fields fields(bytes);
  while (fields.Next()) Apply(fields.number(), fields.value(), fields.text(), options);
  return fields.damaged() ? DamagedError() : nullptr;
}

/** ExecutableBuildOptionsProto. */
PJRT_Error* ReadBuildOptions(std::string_view bytes, CompileOptions* options) {
  Fields fields(bytes);
  while (fields.Next()) {
    if (fields.number() == 9) {
      if (PJRT_Error* error = ReadAssignment(fields.text(), options)) return error;
    }
    if (fields.number() == 1) options->device = fields.value();
    if (fields.number() == 3) {
      if (PJRT_Error* error = ReadDebugOptions(fields.text(), options)) return error;
    }
    if (fields.number() == 4) options->replicas = fields.value();
    if (fields.number() == 5) options->partitions = fields.value();
    // 9, 19, 29 and 39 are O0 to O3.
    if (fields.number() == 24) options->is_quick |= fields.value() == 9 || fields.value() == 19;
  }
  return fields.damaged() ? DamagedError() : nullptr;
}

/** A value of an override: a text, which may be that of any type, a bool, an integer or a double.
 */
struct Value {
  uint64_t kind = 0;  // 1 to 4, in this order
  std::string_view text;
  int64_t number = 0;

  std::string ToString() const {
    if (kind == 1) return std::string(text);
    return kind == 4 ? "a double" : std::to_string(number);
  }

  /** Whether it is one of the type; sets `number` from a text. */
  bool Is(std::string_view type) {
    if (type == "string") return kind == 1;
    if (kind == 4) return false;
    if (type == "bool") {
      const bool yes = text == "true" || text == "True" || text == "1";
      const bool no = text == "false" || text == "False" || text == "0";
      if (kind == 1) number = yes;
      return kind == 1 ? yes || no : kind == 2 || number == 0 || number == 1;
    }
    if (kind != 1) return kind == 3;
    const char* end = text.data() + text.size();
    const auto read = std::from_chars(text.data(), end, number);
    return read.ec == std::errc() && read.ptr == end;
  }
};

/** An entry of env_option_overrides: the name of an option, and its value. */
PJRT_Error* ReadOverride(std::string_view bytes, CompileOptions* options) {
  std::string_view name, message;
  Fields entry(bytes);
  while (entry.Next()) {
    if (entry.number() == 1) name = entry.text();
    if (entry.number() == 2) message = entry.text();
  }
  if (entry.damaged()) return DamagedError();
  if (!name.starts_with("xla_") &&
      std::ranges::find(kOptions, name, &Option::name) == std::end(kOptions)) {
    return InvalidArgument("No such compile option: '" + std::string(name) + "'");
  }
  Value value;
  Fields fields(message);
  while (fields.Next()) value = {fields.number(), fields.text(), fields.value()};
  if (fields.damaged()) return DamagedError();
  for (const Option& option : kOptions) {
    if (option.name != name) continue;
    if (!value.Is(option.type)) {
      return InvalidArgument("While setting option " + std::string(name) + ", '" +
                             value.ToString() + "' is not a valid " + std::string(option.type) +
                             " value.");
    }
    if (option.field != 0) Apply(option.field, value.number, value.text, options);
  }
  return nullptr;
}

}  // namespace

PJRT_Error* ReadCompileOptions(std::string_view bytes, CompileOptions* options) {
  Fields fields(bytes);
  while (fields.Next()) {
    PJRT_Error* error = nullptr;
    if (fields.number() == 3) error = ReadBuildOptions(fields.text(), options);
    if (fields.number() == 7) error = ReadOverride(fields.text(), options);
    if (error != nullptr) return error;
  }
  return fields.damaged() ? DamagedError() : nullptr;
}

}  // namespace kiln_jax
