#include "plugin/saved.h"

#include <cstring>
#include <memory>
#include <string>
#include <string_view>

#include "kiln/types.h"
#include "plugin/program.h"

/** The bytes that a caller has until it calls the deleter. */
struct PJRT_SerializedExecutable {
  std::string bytes;
};
struct PJRT_SerializedCompileOptions {
  std::shared_ptr<const kiln_jax::Program> program;
};

namespace kiln_jax {
namespace {

// The program as it was given and its options say everything about arguments and results; Kiln's
// executable beside them spares the compilation.
constexpr std::string_view kMagic = "KILNJAX1";
enum Part { kOptions, kCode, kExecutable, kDigest, kParts };

void Add(std::string* bytes, std::string_view part) {
  const uint64_t size = part.size();
  bytes->append(reinterpret_cast<const char*>(&size), sizeof(size));
  bytes->append(part);
}

bool Take(std::string_view* bytes, std::string_view* part) {
  uint64_t size = 0;
  if (bytes->size() < sizeof(size)) return false;
  std::memcpy(&size, bytes->data(), sizeof(size));
  bytes->remove_prefix(sizeof(size));
  if (size > bytes->size()) return false;
  *part = bytes->substr(0, size);
  bytes->remove_prefix(size);
  return true;
}

bool Split(std::string_view bytes, std::string_view (&parts)[kParts]) {
  if (!bytes.starts_with(kMagic)) return false;
  bytes.remove_prefix(kMagic.size());
  for (std::string_view& part : parts) {
    if (!Take(&bytes, &part)) return false;
  }
  // The executable has a checksum of its own.
  return bytes.empty() &&
         parts[kDigest] == FingerprintOf(parts[kCode], parts[kOptions], std::string_view());
}

}  // namespace

PJRT_Error* ExecutableSerialize(PJRT_Executable_Serialize_Args* args) {
  const Program& program = *args->executable->program;
  // The callable is in this process alone.
  if (program.calls_python) {
    return UnimplementedError("executables that call Python cannot be serialised");
  }
  kiln_text* saved = nullptr;
  if (kiln_error* error = kiln_executable_serialize(program.executable, &saved)) {
    return TakeError(error);
  }
  const TextHandle owner(saved);
  size_t size = 0;
  const char* data = kiln_text_data(saved, &size);
  auto holder = std::make_unique<PJRT_SerializedExecutable>();
  holder->bytes.reserve(size + program.code.size() + program.options.size() + 128);
  holder->bytes = kMagic;
  Add(&holder->bytes, program.options);
  Add(&holder->bytes, program.code);
  Add(&holder->bytes, {data, size});
  Add(&holder->bytes, FingerprintOf(program.code, program.options, std::string_view()));
  args->serialized_bytes = holder->bytes.data();
  args->serialized_bytes_size = holder->bytes.size();
  args->serialized_executable = holder.release();
  args->serialized_executable_deleter = [](PJRT_SerializedExecutable* done) { delete done; };
  return nullptr;
}

PJRT_Error* ExecutableDeserializeAndLoad(PJRT_Executable_DeserializeAndLoad_Args* args) {
  std::string_view parts[kParts];
  if (args->serialized_executable == nullptr ||
      !Split({args->serialized_executable, args->serialized_executable_size}, parts)) {
    return InvalidArgument(
        "the bytes are no serialised executable of Kiln's plugin, or are damaged");
  }
  std::string_view options = parts[kOptions];
  if (args->struct_size > kOldestSize<PJRT_Executable_DeserializeAndLoad_Args> &&
      args->overridden_serialized_compile_options != nullptr) {
    options = {args->overridden_serialized_compile_options,
               args->overridden_serialized_compile_options_size};
  }
  std::shared_ptr<const Program> program;
  if (PJRT_Error* error =
          MakeProgram(args->client->client, parts[kCode], options, parts[kExecutable], &program)) {
    return error;
  }
  args->loaded_executable = new PJRT_LoadedExecutable{std::move(program)};
  return nullptr;
}

PJRT_Error* ExecutableCompileOptions(PJRT_Executable_GetCompileOptions_Args* args) {
  const auto& program = args->executable->program;
  args->serialized_compile_options = new PJRT_SerializedCompileOptions{program};
  args->serialized_compile_options_deleter = [](PJRT_SerializedCompileOptions* done) {
    delete done;
  };
  args->serialized_bytes = program->options.data();
  args->serialized_bytes_size = program->options.size();
  return nullptr;
}

PJRT_Error* ExecutableOptimizedProgram(PJRT_Executable_OptimizedProgram_Args* args) {
  static constexpr char kFormat[] = "mlir";
  PJRT_Program* program = args->program;
  if (program == nullptr) return InvalidArgument("program is NULL");
  const std::string& code = args->executable->program->code;
  program->format = kFormat;
  program->format_size = sizeof(kFormat) - 1;
  if (program->code == nullptr) {
    program->code_size = code.size();
    return nullptr;
  }
  if (program->code_size < code.size()) {
    return InvalidArgument("there is room for " + std::to_string(program->code_size) + " of " +
                           std::to_string(code.size()) + " bytes");
  }
  // The caller's memory, in a member that is const for Compile.
  std::memcpy(const_cast<char*>(program->code), code.data(), code.size());
  program->code_size = code.size();
  return nullptr;
}

}  // namespace kiln_jax
