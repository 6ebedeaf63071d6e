#include "plugin/program.h"

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <string_view>
#include <utility>

#include "kiln/graph.h"
#include "kiln/version.h"
#include "plugin/callbacks.h"
#include "plugin/compile_options.h"
#include "plugin/dtype.h"
#include "plugin/error.h"
#include "plugin/reordering.h"

namespace kiln_jax {
namespace {

/** The memory of an argument or result on the program's device. */
PJRT_Error* ReadMemory(std::string_view kind, const PJRT_Device& device, PJRT_Memory** memory) {
  for (size_t i = 0; i < kMemoryKindCount; ++i) {
    *memory = device.memories[i];
    if (kind.empty() || kind == kMemoryKinds[i]) return nullptr;
  }
  return InvalidArgument("there is no memory of the kind \"" + std::string(kind) + "\"");
}

/** Reads what the program says of its arguments and results. */
PJRT_Error* Describe(const kiln_graph* graph, const std::vector<kiln_shape>& arguments,
                     const std::vector<kiln_shape>& results, Program* program) {
  for (size_t i = 0; i < arguments.size(); ++i) {
    Argument& argument = program->arguments.emplace_back();
    argument.dims.assign(arguments[i].dims, arguments[i].dims + arguments[i].rank);
    argument.is_token = arguments[i].dtype == KILN_TOKEN;
    auto get = [&](std::string_view name) {
      return AttributeOf(kiln_graph_argument_attribute, graph, i, name);
    };
    PJRT_Memory* memory = nullptr;
    PJRT_Error* error = ReadMemory(get("mhlo.memory_kind"), *program->device, &memory);
    if (error == nullptr) {
      error = ParseLayout(get("mhlo.layout_mode"), argument.dims, &argument.layout);
    }
    if (error != nullptr) return error;
    program->argument_kinds.push_back(memory->kind);
    program->argument_kind_sizes.push_back(std::strlen(memory->kind));
  }
  for (size_t i = 0; i < results.size(); ++i) {
    const PJRT_Buffer_Type type = TypeOf(results[i].dtype);
    if (type == PJRT_Buffer_Type_INVALID) {
      return UnimplementedError(std::string("results of type ") +
                                kiln_dtype_name(results[i].dtype));
    }
    BufferSpec& output = program->outputs.emplace_back();
    output.client = program->client;
    output.type = type;
    output.dims.assign(results[i].dims, results[i].dims + results[i].rank);
    output.bytes = static_cast<size_t>(results[i].byte_size);
    auto get = [&](std::string_view name) {
      return AttributeOf(kiln_graph_result_attribute, graph, i, name);
    };
    PJRT_Error* error = ReadMemory(get("mhlo.memory_kind"), *program->device, &output.memory);
    if (error == nullptr) error = ParseLayout(get("mhlo.layout_mode"), output.dims, &output.layout);
    if (error != nullptr) return error;
    program->output_types.push_back(type);
    program->output_ranks.push_back(output.dims.size());
    program->output_dims.insert(program->output_dims.end(), output.dims.begin(), output.dims.end());
    program->output_kinds.push_back(output.memory->kind);
    program->output_kind_sizes.push_back(std::strlen(output.memory->kind));
  }
  return nullptr;
}

PJRT_Error* DescribeCost(Program* program) {
  kiln_program_cost cost = KILN_PROGRAM_COST_INIT;
  if (kiln_error* error = kiln_executable_cost(program->executable, &cost)) {
    return TakeError(error);
  }
  auto add = [&](std::string_view name, int64_t value) {
    PJRT_NamedValue property = {};
    property.struct_size = sizeof(PJRT_NamedValue);
    property.name = name.data();
    property.name_size = name.size();
    property.type = PJRT_NamedValue_kFloat;
    property.float_value = static_cast<float>(value);
    property.value_size = 1;
    program->cost.push_back(property);
  };
  add("flops", cost.flops);
  add("transcendentals", cost.transcendentals);
  add("bytes accessed", cost.bytes_accessed);
  return nullptr;
}

/** The shapes of an executable's arguments or results. */
PJRT_Error* ShapesOf(kiln_executable* executable, size_t count,
                     decltype(&kiln_executable_argument_shape) get,
                     std::vector<kiln_shape>* shapes) {
  shapes->assign(count, KILN_SHAPE_INIT);
  for (size_t i = 0; i < count; ++i) {
    if (kiln_error* error = get(executable, i, &(*shapes)[i])) return TakeError(error);
  }
  return nullptr;
}

PJRT_Error* Compile(std::string_view code, const CompileOptions& options, std::string_view saved,
                    Program* program) {
  if (kiln_error* error = AddFfiTargets(program->client->context, &program->client->ffi_targets)) {
    return TakeError(error);
  }
  kiln_graph* made = nullptr;
  if (kiln_error* error = kiln_graph_from_stablehlo(program->client->context, code.data(),
                                                    code.size(), nullptr, &made)) {
    return TakeError(error);
  }
  const GraphHandle graph(made);
  kiln_compile_options compile = KILN_COMPILE_OPTIONS_INIT;
  compile.device = program->device->device;
  compile.optimization = options.is_quick ? KILN_OPTIMIZATION_QUICK : KILN_OPTIMIZATION_AUTO;
  compile.memory_limit_bytes = options.memory_limit_bytes;
  compile.takes_graph = 1;
  if (!options.dump_folder.empty()) {
    compile.dump_folder = options.dump_folder.data();
    compile.dump_folder_length = options.dump_folder.size();
  }
  Reordering reordering(program->client->context, graph.get());
  const bool is_reordered = reordering.IsNeeded();
  if (is_reordered) {
    if (PJRT_Error* error = reordering.Make()) return error;
    compile.donors = reordering.donors().data();
    compile.donor_count = reordering.donors().size();
  }
  kiln_error* failure =
      saved.empty()
          ? kiln_graph_compile(is_reordered ? reordering.graph() : graph.get(), &compile,
                               &program->executable)
          : kiln_executable_load(compile.device, saved.data(), saved.size(), &program->executable);
  if (failure != nullptr) return TakeError(failure);
  kiln_executable* executable = program->executable;
  std::vector<kiln_shape> arguments = reordering.arguments(), results = reordering.results();
  if (!is_reordered) {
    PJRT_Error* error = ShapesOf(executable, kiln_executable_argument_count(executable),
                                 kiln_executable_argument_shape, &arguments);
    if (error == nullptr) {
      error = ShapesOf(executable, kiln_executable_result_count(executable),
                       kiln_executable_result_shape, &results);
    }
    if (error != nullptr) return error;
  }
  if (PJRT_Error* error = Describe(graph.get(), arguments, results, program)) return error;
  for (size_t i = 0; i < program->arguments.size(); ++i) {
    program->arguments[i].is_donated = kiln_executable_argument_is_donatable(executable, i) != 0;
  }
  return DescribeCost(program);
}

/** Finds the device of a program, and writes its assignment. */
PJRT_Error* Assign(const CompileOptions& options, Program* program) {
  const int64_t count = options.replicas * options.partitions;
  if (count != 1) {
    return UnimplementedError("programs for several devices at once (" +
                              std::to_string(options.replicas) + " replicas, " +
                              std::to_string(options.partitions) + " partitions)");
  }
  if (options.devices.size() > 1) {
    return InvalidArgument("a program for one device is assigned to " +
                           std::to_string(options.devices.size()));
  }
  int64_t id = options.devices.empty() ? 0 : options.devices[0];
  if (options.devices.empty() && options.device > 0) id = options.device;
  program->device = FindDevice(program->client.get(), id);
  if (program->device == nullptr) {
    return InvalidArgument("no device has the id " + std::to_string(id));
  }
  // DeviceAssignmentProto: one replica, one computation, and the id as a varint.
  std::string number;
  for (; id > 127; id >>= 7) number += static_cast<char>(id & 127) | static_cast<char>(128);
  number += static_cast<char>(id);
  program->assignment = {0x08, 1, 0x10, 1, 0x1a, static_cast<char>(number.size() + 1)};
  program->assignment += "\x08" + number;
  return nullptr;
}

}  // namespace

std::string FingerprintOf(std::string_view code, std::string_view options, std::string_view build) {
  uint64_t a = 14695981039346656037u, b = 0x9e3779b97f4a7c15u;
  const auto add = [&](uint64_t word) {
    a = (a ^ word) * 0x9fb21c651e98df25u;
    a ^= a >> 32;
    b = (b + word) * 0xff51afd7ed558ccdu;
    b ^= b >> 29;
  };
  // Words: by bytes it would take a hundredth of the compilation.
  for (std::string_view part : {build, options, code}) {
    add(part.size());
    while (!part.empty()) {
      uint64_t word = 0;
      const size_t bytes = std::min(part.size(), sizeof(word));
      std::memcpy(&word, part.data(), bytes);
      add(word);
      part.remove_prefix(bytes);
    }
  }
  char text[33];
  std::snprintf(text, sizeof text, "%016llx%016llx", static_cast<unsigned long long>(a),
                static_cast<unsigned long long>(b));
  return text;
}

PJRT_Error* CheckFormat(const PJRT_Program& program) {
  const std::string_view format(program.format, program.format_size);
  if (format == "mlir") return nullptr;
  return UnimplementedError("programs in the format \"" + std::string(format) +
                            "\"; expected \"mlir\"");
}

PJRT_Error* MakeProgram(std::shared_ptr<Client> client, std::string_view code,
                        std::string_view bytes, std::string_view saved,
                        std::shared_ptr<const Program>* program) {
  CompileOptions options;
  if (PJRT_Error* error = ReadCompileOptions(bytes, &options)) return error;
  auto made = std::make_shared<Program>();
  made->client = std::move(client);
  if (PJRT_Error* error = Assign(options, made.get())) return error;
  if (PJRT_Error* error = Compile(code, options, saved, made.get())) return error;
  made->calls_python = code.find(kPythonCallback) != code.npos;  // strings are in the clear
  made->fingerprint = FingerprintOf(code, bytes, made->client->topology.platform_version);
  made->code = code;
  made->options = bytes;
  *program = std::move(made);
  return nullptr;
}

PJRT_Error* ClientCompile(PJRT_Client_Compile_Args* args) {
  std::shared_ptr<const Program> program;
  PJRT_Error* error = CheckFormat(*args->program);
  if (error == nullptr) {
    error = MakeProgram(args->client->client, {args->program->code, args->program->code_size},
                        {args->compile_options, args->compile_options_size}, {}, &program);
  }
  if (error != nullptr) return error;
  args->executable = new PJRT_LoadedExecutable{std::move(program)};
  return nullptr;
}

}  // namespace kiln_jax
