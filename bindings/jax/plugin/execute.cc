// Executions.
#include <algorithm>
#include <memory>
#include <utility>

#include "plugin/buffer.h"
#include "plugin/callbacks.h"
#include "plugin/error.h"
#include "plugin/event.h"
#include "plugin/program.h"

namespace kiln_jax {
namespace {

/** The arguments of an execution. Memory to be donated is taken from its buffer before the
 *  execution, so that no other thread uses it, and given back if the execution is refused. */
class Arguments {
 public:
  Arguments(const Program& program, size_t count) : program_(program) {
    memories_.reserve(count);
    taken_from_.reserve(count);
    passed_.reserve(count);
  }
  Arguments(const Arguments&) = delete;
  Arguments& operator=(const Arguments&) = delete;

  ~Arguments() {
    for (size_t i = 0; !accepted_ && i < memories_.size(); ++i) {
      if (taken_from_[i] == nullptr) continue;
      std::lock_guard<std::mutex> lock(taken_from_[i]->mutex);
      taken_from_[i]->buffer.swap(memories_[i]);
    }
  }

  /** A token in the place of an array: callers have arrays of no elements for tokens that no
   *  execution has given. */
  PJRT_Error* AddToken() {
    kiln_buffer* token = nullptr;
    kiln_error* error = kiln_buffer_create(program_.device->device, KILN_TOKEN, nullptr, 0, &token);
    if (error != nullptr) return TakeError(error);
    taken_from_.push_back(nullptr);
    memories_.emplace_back(token);
    passed_.push_back(token);
    return nullptr;
  }

  PJRT_Error* Add(PJRT_Buffer* buffer, bool donate) {
    const size_t index = memories_.size();
    if (PJRT_Error* error = CheckPlace(*buffer, index)) return error;
    // A GPU's arguments in host memory are copied.
    const bool is_moved = buffer->memory->place != program_.device->device;
    {
      std::lock_guard<std::mutex> lock(buffer->mutex);
      if (buffer->buffer == nullptr) return GoneError(buffer, index, donate);
      // An argument whose memory others see is copied, and gone all the same.
      const bool shared = buffer->borrowed || buffer->external > 0;
      if ((donate && !shared) || is_moved) donated_.push_back(index);
      taken_from_.push_back(donate ? buffer : nullptr);
      memories_.push_back(donate ? std::move(buffer->buffer) : Share(buffer->buffer));
    }
    kiln_buffer* passed = memories_.back().get();
    if (is_moved) {
      if (kiln_error* error =
              kiln_buffer_copy_to_device_async(passed, program_.device->device, nullptr, &passed)) {
        return TakeError(error);
      }
      BufferHandle moved(passed);
      moved_.push_back(std::move(moved));
    }
    passed_.push_back(passed);
    return nullptr;
  }

  void Accept() { accepted_ = true; }

  /** What to tell of a refused execution: if an argument to be donated is a kept one, too, that. */
  PJRT_Error* Refusal(kiln_error* error) const {
    for (size_t donated : donated_) {
      for (size_t kept = 0; kept < memories_.size(); ++kept) {
        if (taken_from_[kept] != nullptr || memories_[kept] != memories_[donated]) continue;
        kiln_error_release(error);
        return RepeatedError("donate a buffer which is also used by the same call to Execute()",
                             "f(a, donate(a))", donated, kept);
      }
    }
    return TakeError(error);
  }

  const std::vector<kiln_buffer*>& passed() const { return passed_; }
  const std::vector<size_t>& donated() const { return donated_; }

 private:
  PJRT_Error* CheckPlace(const PJRT_Buffer& buffer, size_t index) const {
    const bool is_here = buffer.memory->device == program_.device;
    const Argument& expected = program_.arguments[index];
    if (is_here && buffer.layout == expected.layout) return nullptr;
    const std::string argument = "argument " + std::to_string(index);
    if (!is_here) {
      return InvalidArgument(argument + " is on " + buffer.memory->device->description->to_string +
                             ", and the program is for " + program_.device->description->to_string);
    }
    return InvalidArgument(
        argument + " has the layout " + LayoutText(buffer.layout, buffer.dims.size()) +
        ", and the program expects " + LayoutText(expected.layout, expected.dims.size()));
  }

  /** For a buffer without memory, which an earlier argument may have donated. */
  PJRT_Error* GoneError(const PJRT_Buffer* buffer, size_t index, bool donate) const {
    const auto first = std::find(taken_from_.begin(), taken_from_.end(), buffer);
    if (first == taken_from_.end()) {
      return InvalidArgument("argument " + std::to_string(index) +
                             ": the buffer has been deleted or donated");
    }
    const size_t before = static_cast<size_t>(first - taken_from_.begin());
    if (donate) {
      return RepeatedError("donate the same buffer twice in Execute()", "f(donate(a), donate(a))",
                           index, before);
    }
    return RepeatedError("use a buffer that was previously donated in the same call to Execute()",
                         "f(donate(a), a)", index, before);
  }

  /** In the words of jaxlib, which JAX's users and tests know. */
  static PJRT_Error* RepeatedError(const char* what, const char* example, size_t index,
                                   size_t first) {
    return InvalidArgument(std::string("Attempt to ") + what + " (flattened argument " +
                           std::to_string(index) + ", first use: " + std::to_string(first) +
                           "). Toy example for this bug: `" + example + "`.");
  }

  const Program& program_;
  std::vector<BufferHandle> memories_;
  std::vector<PJRT_Buffer*> taken_from_;  // buffers that have given up their memory, or NULL
  std::vector<BufferHandle> moved_;       // copies on the program's device
  std::vector<kiln_buffer*> passed_;      // the memories, or copies
  std::vector<size_t> donated_;
  bool accepted_ = false;
};

/** Whether the caller wants to keep an argument. */
bool IsKept(const PJRT_ExecuteOptions* options, size_t index) {
  if (options == nullptr || options->num_non_donatable_input_indices == 0) return false;
  const int64_t* kept = options->non_donatable_input_indices;
  const int64_t* end = kept + options->num_non_donatable_input_indices;
  return std::find(kept, end, static_cast<int64_t>(index)) != end;
}

PJRT_Error* CheckCall(const PJRT_LoadedExecutable_Execute_Args& args) {
  if (args.executable->deleted) {
    return MakeError(PJRT_Error_Code_INVALID_ARGUMENT, "the executable has been deleted");
  }
  if (args.num_devices != 1) {
    return InvalidArgument("an execution on " + std::to_string(args.num_devices) +
                           " devices; the program is for one");
  }
  if (args.execute_device != nullptr && args.execute_device != args.executable->program->device) {
    return UnimplementedError("executions on another device than that of the compilation");
  }
  const size_t expected = args.executable->program->arguments.size();
  if (args.num_args != expected) {
    return InvalidArgument("the program has " + std::to_string(expected) +
                           " arguments, and the execution " + std::to_string(args.num_args));
  }
  if (args.options != nullptr &&
      (args.options->num_send_ops != 0 || args.options->num_recv_ops != 0)) {
    return UnimplementedError("executions with send and recv callbacks");
  }
  return nullptr;
}

/** The results of a program, without memory yet. */
std::vector<std::unique_ptr<PJRT_Buffer>> MakeOutputs(const Program& program) {
  std::vector<std::unique_ptr<PJRT_Buffer>> outputs;
  outputs.reserve(program.outputs.size());
  for (const BufferSpec& output : program.outputs) {
    outputs.push_back(std::make_unique<PJRT_Buffer>(output));
  }
  return outputs;
}

/** Moves a result in host memory, which a GPU's program makes in its own, there. */
PJRT_Error* Move(const Program& program, PJRT_Buffer* output) {
  if (output->memory->place == program.device->device) return nullptr;
  kiln_buffer* moved = nullptr;
  kiln_error* error = kiln_buffer_copy_to_device_async(output->buffer.get(), output->memory->place,
                                                       nullptr, &moved);
  output->buffer.reset(moved);
  return TakeError(error);
}

/** Counts the execution as one that may call into Python, until its end. Without memory it does
 *  not: then only the end of the client may wait too long. */
void CountUntil(kiln_event* done) {
  auto* execution = new (std::nothrow) PythonExecution;
  if (execution == nullptr) return;
  kiln_error* error = kiln_event_on_ready(
      done, [](void*, const kiln_error*) {}, execution,
      [](void* counted) { delete static_cast<PythonExecution*>(counted); });
  if (error != nullptr) delete execution;
  kiln_error_release(error);
}

}  // namespace

PJRT_Error* LoadedExecute(PJRT_LoadedExecutable_Execute_Args* args) {
  if (PJRT_Error* error = CheckCall(*args)) return error;
  const Program& program = *args->executable->program;
  Arguments arguments(program, args->num_args);
  for (size_t i = 0; i < args->num_args; ++i) {
    PJRT_Buffer* argument = args->argument_lists[0][i];
    const bool donate = program.arguments[i].is_donated && !IsKept(args->options, i);
    const bool needs_token =
        program.arguments[i].is_token && argument->type != PJRT_Buffer_Type_TOKEN;
    PJRT_Error* error = needs_token ? arguments.AddToken() : arguments.Add(argument, donate);
    if (error != nullptr) return error;
  }
  std::vector<std::unique_ptr<PJRT_Buffer>> outputs = MakeOutputs(program);
  std::unique_ptr<PJRT_Event> event(MakeEvent(nullptr));
  std::vector<kiln_buffer*> results(outputs.size());
  kiln_execute_options options = KILN_EXECUTE_OPTIONS_INIT;
  options.donated = arguments.donated().data();
  options.donated_count = arguments.donated().size();
  options.timeout_ns = program.client->timeout_ns;
  kiln_buffer* const* argument_list = arguments.passed().data();
  kiln_buffer** result_list = results.data();
  kiln_event* done = nullptr;
  if (kiln_error* error =
          kiln_executable_execute(program.executable, &options, &argument_list, args->num_args,
                                  &result_list, results.size(), 1, &done)) {
    return arguments.Refusal(error);
  }
  arguments.Accept();
  event->event.reset(done);
  for (size_t i = 0; i < results.size(); ++i) outputs[i]->buffer.reset(results[i]);
  if (program.calls_python) CountUntil(done);
  for (const auto& output : outputs) {
    if (PJRT_Error* error = Move(program, output.get())) return error;
  }
  for (size_t i = 0; i < outputs.size(); ++i) args->output_lists[0][i] = outputs[i].release();
  // A caller without a place for the event has the ReadyEvents of the results.
  if (args->device_complete_events != nullptr) args->device_complete_events[0] = event.release();
  return nullptr;
}

}  // namespace kiln_jax
