// Executables: their properties and execution.
#include "kiln/executable.h"

#include <algorithm>
#include <span>

#include "capi/error.h"
#include "capi/execute.h"
#include "capi/handle.h"
#include "capi/options.h"
#include "program/frozen.h"
#include "program/memory.h"

using kiln::InvalidArgument;
using kiln::OkStatus;
using kiln::OutOfRange;
using kiln::Ref;
using kiln::Shape;
using kiln::Status;
using kiln::capi::BindExecution;
using kiln::capi::Guard;
using kiln::capi::NotNull;
using kiln::capi::Unwrap;
using kiln::client::Buffer;
using kiln::client::CompiledExecutable;
using kiln::client::Event;
using kiln::client::Executable;
using kiln::client::Execution;

namespace {

Status WriteShapeOf(std::string_view what, const std::vector<Shape>& shapes,
                    const std::vector<std::vector<int64_t>>& dims, size_t index,
                    kiln_shape* shape) {
  if (index >= shapes.size()) {
    return OutOfRange("there is no ", what, " ", index, "; there are ", shapes.size());
  }
  return kiln::capi::WriteStruct("kiln_shape",
                                 kiln::capi::DescribeShape(shapes[index], dims[index]), shape);
}

}  // namespace

void kiln_executable_retain(kiln_executable* executable) { kiln::capi::RetainHandle(executable); }

void kiln_executable_release(kiln_executable* executable) { kiln::capi::ReleaseHandle(executable); }

kiln_device* kiln_executable_device(const kiln_executable* executable) {
  return executable ? kiln::capi::Wrap(&Unwrap(executable)->device()) : nullptr;
}

size_t kiln_executable_argument_count(const kiln_executable* executable) {
  return executable ? Unwrap(executable)->signature().parameters.size() : 0;
}

kiln_error* kiln_executable_argument_shape(const kiln_executable* executable, size_t index,
                                           kiln_shape* shape) {
  return Guard([&]() -> Status {
    KILN_RETURN_IF_ERROR(
        NotNull("kiln_executable_argument_shape", {{"executable", executable}, {"shape", shape}}));
    return WriteShapeOf("argument", Unwrap(executable)->signature().parameters,
                        Unwrap(executable)->argument_dims(), index, shape);
  });
}

const char* kiln_executable_argument_name(const kiln_executable* executable, size_t index,
                                          size_t* length) {
  const std::string* name = nullptr;
  if (executable) {
    const auto& names = Unwrap(executable)->signature().parameter_names;
    if (index < names.size()) name = &names[index];
  }
  if (length) *length = name ? name->size() : 0;
  return name ? name->c_str() : nullptr;
}

size_t kiln_executable_result_count(const kiln_executable* executable) {
  return executable ? Unwrap(executable)->signature().results.size() : 0;
}

kiln_error* kiln_executable_result_shape(const kiln_executable* executable, size_t index,
                                         kiln_shape* shape) {
  return Guard([&]() -> Status {
    KILN_RETURN_IF_ERROR(
        NotNull("kiln_executable_result_shape", {{"executable", executable}, {"shape", shape}}));
    return WriteShapeOf("result", Unwrap(executable)->signature().results,
                        Unwrap(executable)->result_dims(), index, shape);
  });
}

int32_t kiln_executable_argument_is_donatable(const kiln_executable* executable, size_t index) {
  if (!executable || index >= Unwrap(executable)->signature().parameters.size()) return 0;
  return Unwrap(executable)->is_donatable(index) ? 1 : 0;
}

int32_t kiln_executable_argument_is_frozen(const kiln_executable* executable, size_t index) {
  if (!executable) return 0;
  return kiln::program::IsFrozen(Unwrap(executable)->program(), index) ? 1 : 0;
}

kiln_error* kiln_executable_find_argument(const kiln_executable* executable, const char* name,
                                          size_t name_length, size_t* index) {
  return Guard([&]() -> Status {
    KILN_RETURN_IF_ERROR(
        NotNull("kiln_executable_find_argument", {{"executable", executable}, {"index", index}}));
    KILN_ASSIGN_OR_RETURN(std::string_view text, kiln::capi::TextOf("name", name, name_length));
    const CompiledExecutable& of = *Unwrap(executable);
    const auto& names = of.signature().parameter_names;
    const auto found = std::ranges::find(names, text);
    if (found == names.end()) {
      return kiln::NotFound("'", of.name(), "' has no argument '", text, "'");
    }
    *index = static_cast<size_t>(found - names.begin());
    return OkStatus();
  });
}

kiln_error* kiln_executable_bind(kiln_executable* executable, const size_t* arguments,
                                 kiln_buffer* const* buffers, size_t count) {
  return Guard([&]() -> Status {
    KILN_RETURN_IF_ERROR(NotNull("kiln_executable_bind", {{"executable", executable}}));
    if (count == 0) return OkStatus();
    KILN_RETURN_IF_ERROR(
        NotNull("kiln_executable_bind", {{"arguments", arguments}, {"buffers", buffers}}));
    const CompiledExecutable& of = *Unwrap(executable);
    if (!of.frozen()) return kiln::InvalidArgument("'", of.name(), "' has no frozen arguments");
    KILN_RETURN_IF_ERROR(
        of.frozen()->Bind(std::span(arguments, count), kiln::capi::UnwrapList(buffers, count)));
    of.client().RunDeferred();
    return OkStatus();
  });
}

kiln_error* kiln_executable_info(const kiln_executable* executable, kiln_program_info* info) {
  return Guard([&]() -> Status {
    KILN_RETURN_IF_ERROR(
        NotNull("kiln_executable_info", {{"executable", executable}, {"info", info}}));
    kiln_program_info told = KILN_PROGRAM_INFO_INIT;
    told.kernels = kiln::program::CountKernels(Unwrap(executable)->program().steps);
    told.temporary_bytes = Unwrap(executable)->program().arena_bytes;
    told.compile_microseconds = Unwrap(executable)->compile_microseconds();
    return kiln::capi::WriteStruct("kiln_program_info", told, info);
  });
}

kiln_error* kiln_executable_result_alias(const kiln_executable* executable, size_t index,
                                         int64_t* argument) {
  return Guard([&]() -> Status {
    KILN_RETURN_IF_ERROR(NotNull("kiln_executable_result_alias",
                                 {{"executable", executable}, {"argument", argument}}));
    const std::vector<int>& aliases = Unwrap(executable)->signature().aliases;
    if (index >= aliases.size()) {
      return OutOfRange("there is no result ", index, "; there are ", aliases.size());
    }
    *argument = aliases[index];
    return OkStatus();
  });
}

kiln_error* kiln_executable_memory(const kiln_executable* executable, kiln_program_memory* memory) {
  return Guard([&]() -> Status {
    KILN_RETURN_IF_ERROR(
        NotNull("kiln_executable_memory", {{"executable", executable}, {"memory", memory}}));
    kiln::program::MemoryUse use = kiln::program::MemoryOf(Unwrap(executable)->program());
    use.constants = Unwrap(executable)->constant_bytes();
    kiln_program_memory told = KILN_PROGRAM_MEMORY_INIT;
    told.code_bytes = Unwrap(executable)->code_bytes();
    told.argument_bytes = use.arguments;
    told.output_bytes = use.outputs;
    told.alias_bytes = use.aliased;
    told.temporary_bytes = use.temporaries;
    told.scratch_bytes = use.scratch;
    told.constant_bytes = use.constants;
    told.peak_bytes = use.peak();
    told.frozen_bytes = use.frozen;
    return kiln::capi::WriteStruct("kiln_program_memory", told, memory);
  });
}

kiln_error* kiln_executable_cost(const kiln_executable* executable, kiln_program_cost* cost) {
  return Guard([&]() -> Status {
    KILN_RETURN_IF_ERROR(
        NotNull("kiln_executable_cost", {{"executable", executable}, {"cost", cost}}));
    kiln_program_cost told = KILN_PROGRAM_COST_INIT;
    told.flops = Unwrap(executable)->program().flops;
    told.transcendentals = Unwrap(executable)->program().transcendentals;
    told.bytes_accessed = kiln::program::BytesAccessed(Unwrap(executable)->program());
    told.partial = Unwrap(executable)->program().has_partial_cost ? 1 : 0;
    return kiln::capi::WriteStruct("kiln_program_cost", told, cost);
  });
}

void kiln_execute_options_init(kiln_execute_options* options, size_t size) {
  kiln::capi::InitOptions(options, size);
}

kiln_error* kiln_executable_run(kiln_executable* executable, const kiln_execute_options* options,
                                kiln_buffer* const* arguments, size_t argument_count,
                                kiln_buffer** results, size_t result_count) {
  return Guard([&]() -> Status {
    KILN_RETURN_IF_ERROR(NotNull("kiln_executable_run", {{"executable", executable}}));
    const CompiledExecutable& run = *Unwrap(executable);
    Execution execution(Ref<const Executable>::Share(&run));
    KILN_RETURN_IF_ERROR(
        BindExecution(options, arguments, argument_count, results, result_count, execution));
    KILN_RETURN_IF_ERROR(execution.RunNow());
    kiln::capi::HandOverResults(execution.results(), results);
    run.client().RunDeferred();
    return OkStatus();
  });
}

kiln_error* kiln_executable_execute(kiln_executable* executable,
                                    const kiln_execute_options* options,
                                    kiln_buffer* const* const* arguments, size_t argument_count,
                                    kiln_buffer** const* results, size_t result_count,
                                    size_t device_count, kiln_event** events) {
  return Guard([&]() -> Status {
    KILN_RETURN_IF_ERROR(
        NotNull("kiln_executable_execute",
                {{"executable", executable}, {"arguments", arguments}, {"results", results}}));
    const CompiledExecutable& run = *Unwrap(executable);
    if (device_count != 1) {
      return InvalidArgument("'", run.name(), "': ", device_count,
                             " lists of arguments are given; expected 1, for one device");
    }
    Execution execution(Ref<const Executable>::Share(&run));
    KILN_RETURN_IF_ERROR(
        BindExecution(options, arguments[0], argument_count, results[0], result_count, execution));
    // Kept outside of the execution, which moves to the queue.
    const std::vector<Ref<Buffer>> bound(execution.results().begin(), execution.results().end());
    KILN_ASSIGN_OR_RETURN(Ref<Event> event, std::move(execution).Start());
    if (!events) KILN_RETURN_IF_ERROR(event->Wait());
    kiln::capi::HandOverResults(bound, results[0]);
    if (events) events[0] = kiln::capi::HandOver(std::move(event));
    run.client().RunDeferred();
    return OkStatus();
  });
}
