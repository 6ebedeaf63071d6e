#include "plugin/program.h"

#include <algorithm>
#include <cstdio>
#include <string_view>
#include <utility>

#include "kiln/graph.h"
#include "kiln/version.h"
#include "plugin/compile_options.h"
#include "plugin/dtype.h"
#include "plugin/error.h"

namespace kiln_jax {
namespace {

/** A graph, released at the end of the scope. */
struct Graph {
  Graph() = default;
  Graph(const Graph&) = delete;
  Graph& operator=(const Graph&) = delete;
  ~Graph() { kiln_graph_release(graph); }
  kiln_graph* graph = nullptr;
};

/** 128 bits of the program, its options and the library, in hexadecimal digits: equal inputs give
 *  equal texts, also in another process. */
std::string Fingerprint(std::string_view code, std::string_view options, std::string_view build) {
  uint64_t a = 14695981039346656037u, b = 0x9e3779b97f4a7c15u;
  for (const std::string_view part : {build, options, code}) {
    for (const char c : part) {
      a = (a ^ static_cast<unsigned char>(c)) * 1099511628211u;
      b = (b + static_cast<unsigned char>(c)) * 0xff51afd7ed558ccdu;
      b ^= b >> 32;
    }
    a = (a ^ part.size()) * 1099511628211u;
    b = (b + part.size()) * 0xff51afd7ed558ccdu;
  }
  char text[33];
  std::snprintf(text, sizeof text, "%016llx%016llx", static_cast<unsigned long long>(a),
                static_cast<unsigned long long>(b));
  return text;
}

/** Tokens have no buffers, so programs with tokens outside would be called with other arguments
 *  than they have. */
PJRT_Error* CheckTokens(kiln_graph* graph, kiln_executable* executable) {
  if (kiln_graph_parameter_count(graph) != kiln_executable_argument_count(executable)) {
    return UnimplementedError("tokens and tuples among the arguments of a program");
  }
  kiln_shape shape = KILN_SHAPE_INIT;
  if (kiln_error* error = kiln_graph_value_shape(graph, kiln_graph_result(graph), &shape)) {
    return TakeError(error);
  }
  const size_t results = shape.dtype == KILN_TUPLE ? shape.rank : 1;
  if (results != kiln_executable_result_count(executable)) {
    return UnimplementedError("tokens and tuples among the results of a program");
  }
  return nullptr;
}

PJRT_Error* DescribeOutputs(Program* program) {
  const size_t count = kiln_executable_result_count(program->executable);
  program->donated.resize(program->argument_count);
  for (size_t i = 0; i < count; ++i) {
    kiln_shape shape = KILN_SHAPE_INIT;
    int64_t alias = -1;
    kiln_error* error = kiln_executable_result_shape(program->executable, i, &shape);
    if (error == nullptr) error = kiln_executable_result_alias(program->executable, i, &alias);
    if (error != nullptr) return TakeError(error);
    const PJRT_Buffer_Type type = TypeOf(shape.dtype);
    if (type == PJRT_Buffer_Type_INVALID) {
      return UnimplementedError(std::string("results of type ") + kiln_dtype_name(shape.dtype));
    }
    std::vector<int64_t> dims(shape.dims, shape.dims + shape.rank);
    program->output_types.push_back(type);
    program->output_ranks.push_back(dims.size());
    program->output_dims.insert(program->output_dims.end(), dims.begin(), dims.end());
    program->outputs.push_back({type, std::move(dims), static_cast<size_t>(shape.byte_size)});
    if (alias >= 0) program->donated[alias] = true;
  }
  const size_t kinds = std::max(count, program->argument_count);
  program->memory_kinds.assign(kinds, kMemoryKind);
  program->memory_kind_sizes.assign(kinds, sizeof(kMemoryKind) - 1);
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

PJRT_Error* Compile(std::string_view code, const CompileOptions& options, Program* program) {
  Graph graph;
  if (kiln_error* error = AddFfiTargets(program->client->context, &program->client->ffi_targets)) {
    return TakeError(error);
  }
  if (kiln_error* error = kiln_graph_from_stablehlo(program->client->context, code.data(),
                                                    code.size(), nullptr, &graph.graph)) {
    return TakeError(error);
  }
  kiln_compile_options compile = KILN_COMPILE_OPTIONS_INIT;
  compile.device = program->client->device.device;
  const bool quick = options.optimization_level == 9 || options.optimization_level == 19;
  compile.optimization = quick ? KILN_OPTIMIZATION_QUICK : KILN_OPTIMIZATION_AUTO;
  if (kiln_error* error = kiln_graph_compile(graph.graph, &compile, &program->executable)) {
    return TakeError(error);
  }
  program->argument_count = kiln_executable_argument_count(program->executable);
  if (PJRT_Error* error = CheckTokens(graph.graph, program->executable)) return error;
  if (PJRT_Error* error = DescribeOutputs(program)) return error;
  return DescribeCost(program);
}

}  // namespace

PJRT_Error* ClientCompile(PJRT_Client_Compile_Args* args) {
  const std::string_view format(args->program->format, args->program->format_size);
  if (format != "mlir") {
    return UnimplementedError("programs in the format \"" + std::string(format) +
                              "\"; expected \"mlir\"");
  }
  const std::string_view bytes(args->compile_options, args->compile_options_size);
  CompileOptions options;
  if (PJRT_Error* error = ReadCompileOptions(bytes, &options)) return error;
  if (options.replicas > 1 || options.partitions > 1) {
    return UnimplementedError("programs for " + std::to_string(options.replicas) +
                              " replicas and " + std::to_string(options.partitions) +
                              " partitions; there is one device");
  }
  const std::string_view code(args->program->code, args->program->code_size);
  auto program = std::make_shared<Program>();
  program->client = args->client->client;
  if (PJRT_Error* error = Compile(code, options, program.get())) return error;
  program->fingerprint = Fingerprint(code, bytes, program->client->topology.platform_version);
  args->executable = new PJRT_LoadedExecutable{std::move(program)};
  return nullptr;
}

}  // namespace kiln_jax
