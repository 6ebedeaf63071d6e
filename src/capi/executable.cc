#include "capi/executable.h"

#include "capi/error.h"
#include "capi/options.h"
#include "program/memory.h"

using kiln::InvalidArgument;
using kiln::OkStatus;
using kiln::OutOfRange;
using kiln::Shape;
using kiln::Status;
using kiln::capi::Call;
using kiln::capi::Guard;
using kiln::capi::NotNull;

namespace {

// Arguments and results without tokens, of which nobody has buffers. The program has them all.
class Arrays {
 public:
  explicit Arrays(const kiln::program::Signature& all)
      : arguments_(PlacesOf(all.parameters)), results_(PlacesOf(all.results)) {
    if (arguments_.size() == all.parameters.size() && results_.size() == all.results.size()) return;
    auto signature = std::make_unique<kiln::program::Signature>();
    std::vector<int> numbers(all.parameters.size(), -1);
    for (size_t i : arguments_) {
      numbers[i] = static_cast<int>(signature->parameters.size());
      signature->parameters.push_back(all.parameters[i]);
      signature->parameter_names.push_back(all.parameter_names[i]);
    }
    for (size_t i : results_) {
      const int alias = all.aliases[i];
      signature->results.push_back(all.results[i]);
      signature->aliases.push_back(alias < 0 ? -1 : numbers[static_cast<size_t>(alias)]);
      signature->must_alias.push_back(all.must_alias[i]);
    }
    signature->result_shape = all.result_shape;
    signature_ = std::move(signature);
  }

  // Null where there are no tokens.
  const kiln::program::Signature* signature() const { return signature_.get(); }
  // The place of an argument among the program's.
  size_t PlaceOf(size_t argument) const { return arguments_[argument]; }
  template <typename T>
  std::vector<T*> AllArguments(std::span<T* const> arrays, size_t count) const {
    return All(arguments_, arrays, count);
  }
  template <typename T>
  std::vector<T*> AllResults(std::span<T* const> arrays, size_t count) const {
    return All(results_, arrays, count);
  }

 private:
  static std::vector<size_t> PlacesOf(const std::vector<Shape>& shapes) {
    std::vector<size_t> places;
    for (size_t i = 0; i < shapes.size(); ++i) {
      if (shapes[i].is_array()) places.push_back(i);
    }
    return places;
  }
  // Tokens have no bytes, and all are at one address.
  template <typename T>
  static std::vector<T*> All(const std::vector<size_t>& places, std::span<T* const> arrays,
                             size_t count) {
    alignas(KILN_ALIGNMENT) static std::byte nothing[KILN_ALIGNMENT];
    std::vector<T*> all(count, nothing);
    for (size_t i = 0; i < arrays.size(); ++i) all[places[i]] = arrays[i];
    return all;
  }

  std::vector<size_t> arguments_, results_;
  std::unique_ptr<const kiln::program::Signature> signature_;
};

class LoadedCallee : public kiln::capi::Callee {
 public:
  LoadedCallee(kiln_device& device, std::unique_ptr<kiln::runtime::LoadedExecutable> loaded)
      : Callee(loaded->program().name, device),
        loaded_(std::move(loaded)),
        arrays_(loaded_->program().signature),
        is_small_(loaded_->program().nanoseconds <= kSmallNanoseconds) {}

  const kiln::program::Signature& signature() const override {
    return arrays_.signature() ? *arrays_.signature() : loaded_->program().signature;
  }
  bool calls_users_functions() const override { return loaded_->calls_users_functions(); }
  int64_t argument_alignment(size_t argument) const override {
    return loaded_->argument_alignment(arrays_.PlaceOf(argument));
  }
  bool is_small() const override { return is_small_; }
  bool takes_streams() const override { return device().device->cuda() != nullptr; }
  kiln::Result<std::unique_ptr<kiln::runtime::Completion>> Start(
      std::span<const void* const> arguments, std::span<void* const> results,
      const kiln::runtime::RunOptions& options) const override {
    if (!arrays_.signature()) return loaded_->Start(arguments, results, options);
    const kiln::program::Signature& all = loaded_->program().signature;
    return loaded_->Start(arrays_.AllArguments(arguments, all.parameters.size()),
                          arrays_.AllResults(results, all.results.size()), options);
  }

 private:
  // About half of what it takes another thread to begin.
  static constexpr double kSmallNanoseconds = 5000;

  const std::unique_ptr<kiln::runtime::LoadedExecutable> loaded_;
  const Arrays arrays_;
  const bool is_small_;
};

std::vector<std::vector<int64_t>> DimsOf(const std::vector<Shape>& shapes) {
  std::vector<std::vector<int64_t>> dims;
  for (const Shape& shape : shapes) dims.push_back(shape.dims());
  return dims;
}

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

kiln_executable::kiln_executable(kiln_device& device,
                                 std::unique_ptr<kiln::runtime::LoadedExecutable> loaded,
                                 int64_t compile_microseconds, bool has_partial_cost)
    : context_(device.context().Share()),
      program_(loaded->program()),
      code_bytes_(loaded->code_bytes()),
      constant_bytes_(loaded->constant_bytes()),
      compile_microseconds_(compile_microseconds),
      has_partial_cost_(has_partial_cost) {
  callee_ = std::make_shared<LoadedCallee>(device, std::move(loaded));
  argument_dims_ = DimsOf(signature().parameters);
  result_dims_ = DimsOf(signature().results);
}

void kiln_executable_retain(kiln_executable* executable) { kiln::capi::RetainHandle(executable); }

void kiln_executable_release(kiln_executable* executable) { kiln::capi::ReleaseHandle(executable); }

kiln_device* kiln_executable_device(const kiln_executable* executable) {
  return executable ? &executable->device() : nullptr;
}

size_t kiln_executable_argument_count(const kiln_executable* executable) {
  return executable ? executable->signature().parameters.size() : 0;
}

kiln_error* kiln_executable_argument_shape(const kiln_executable* executable, size_t index,
                                           kiln_shape* shape) {
  return Guard([&]() -> Status {
    KILN_RETURN_IF_ERROR(
        NotNull("kiln_executable_argument_shape", {{"executable", executable}, {"shape", shape}}));
    return WriteShapeOf("argument", executable->signature().parameters, executable->argument_dims(),
                        index, shape);
  });
}

const char* kiln_executable_argument_name(const kiln_executable* executable, size_t index,
                                          size_t* length) {
  const std::string* name = nullptr;
  if (executable) {
    const auto& names = executable->signature().parameter_names;
    if (index < names.size()) name = &names[index];
  }
  if (length) *length = name ? name->size() : 0;
  return name ? name->c_str() : nullptr;
}

size_t kiln_executable_result_count(const kiln_executable* executable) {
  return executable ? executable->signature().results.size() : 0;
}

kiln_error* kiln_executable_result_shape(const kiln_executable* executable, size_t index,
                                         kiln_shape* shape) {
  return Guard([&]() -> Status {
    KILN_RETURN_IF_ERROR(
        NotNull("kiln_executable_result_shape", {{"executable", executable}, {"shape", shape}}));
    return WriteShapeOf("result", executable->signature().results, executable->result_dims(), index,
                        shape);
  });
}

kiln_error* kiln_executable_info(const kiln_executable* executable, kiln_program_info* info) {
  return Guard([&]() -> Status {
    KILN_RETURN_IF_ERROR(
        NotNull("kiln_executable_info", {{"executable", executable}, {"info", info}}));
    kiln_program_info told = KILN_PROGRAM_INFO_INIT;
    told.kernels = kiln::program::CountKernels(executable->program().steps);
    told.temporary_bytes = executable->program().arena_bytes;
    told.compile_microseconds = executable->compile_microseconds();
    return kiln::capi::WriteStruct("kiln_program_info", told, info);
  });
}

kiln_error* kiln_executable_result_alias(const kiln_executable* executable, size_t index,
                                         int64_t* argument) {
  return Guard([&]() -> Status {
    KILN_RETURN_IF_ERROR(NotNull("kiln_executable_result_alias",
                                 {{"executable", executable}, {"argument", argument}}));
    const std::vector<int>& aliases = executable->signature().aliases;
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
    kiln::program::MemoryUse use = kiln::program::MemoryOf(executable->program());
    use.constants = executable->constant_bytes();
    kiln_program_memory told = KILN_PROGRAM_MEMORY_INIT;
    told.code_bytes = executable->code_bytes();
    told.argument_bytes = use.arguments;
    told.output_bytes = use.outputs;
    told.alias_bytes = use.aliased;
    told.temporary_bytes = use.temporaries;
    told.scratch_bytes = use.scratch;
    told.constant_bytes = use.constants;
    told.peak_bytes = use.peak();
    return kiln::capi::WriteStruct("kiln_program_memory", told, memory);
  });
}

kiln_error* kiln_executable_cost(const kiln_executable* executable, kiln_program_cost* cost) {
  return Guard([&]() -> Status {
    KILN_RETURN_IF_ERROR(
        NotNull("kiln_executable_cost", {{"executable", executable}, {"cost", cost}}));
    kiln_program_cost told = KILN_PROGRAM_COST_INIT;
    told.flops = executable->program().flops;
    told.transcendentals = executable->program().transcendentals;
    told.bytes_accessed = kiln::program::BytesAccessed(executable->program());
    told.partial = executable->has_partial_cost() ? 1 : 0;
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
    KILN_ASSIGN_OR_RETURN(Call call, Call::Bind(executable->callee(), options, arguments,
                                                argument_count, results, result_count));
    KILN_RETURN_IF_ERROR(call.RunNow());
    HandOverResults(call.results(), results);
    executable->context().RunDeferred();
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
    if (device_count != 1) {
      return InvalidArgument("'", executable->callee()->name(), "': ", device_count,
                             " lists of arguments are given; expected 1, for one device");
    }
    KILN_ASSIGN_OR_RETURN(Call call, Call::Bind(executable->callee(), options, arguments[0],
                                                argument_count, results[0], result_count));
    // Kept beside the call, which goes to the queue.
    std::vector<kiln::capi::Ref<kiln_buffer>> bound = call.results();
    KILN_ASSIGN_OR_RETURN(kiln::capi::Ref<kiln_event> event, std::move(call).Start());
    if (!events) KILN_RETURN_IF_ERROR(event->Wait());
    HandOverResults(bound, results[0]);
    if (events) events[0] = HandOver(std::move(event));
    executable->context().RunDeferred();
    return OkStatus();
  });
}
