#include "tools/kiln_run/compiled.h"

#include <chrono>
#include <cmath>
#include <map>
#include <nlohmann/json.hpp>
#include <utility>

#include "tensor/leaves.h"

namespace kiln::run {
namespace {

// The numbers of the arguments that a module's results must take the memory of.
std::vector<size_t> MustBeDonated(const ir::Module& module) {
  std::vector<size_t> numbers;
  for (const ir::InputOutputAlias& alias : module.aliases()) {
    if (!alias.must_alias) continue;
    int64_t number =
        LeafAt(module.entry()->parameter(alias.parameter)->shape(), alias.parameter_index);
    for (int64_t p = 0; p < alias.parameter; ++p) {
      number += LeafCount(module.entry()->parameter(p)->shape());
    }
    numbers.push_back(static_cast<size_t>(number));
  }
  return numbers;
}

Result<Buffer> BufferOf(kiln_device* device, const Literal* value, bool copy) {
  kiln_buffer* buffer = nullptr;
  if (!value) {
    KILN_RETURN_IF_ERROR(StatusOf(kiln_buffer_create(device, KILN_TOKEN, nullptr, 0, &buffer)));
    return Buffer(buffer);
  }
  const std::vector<int64_t> dims = value->shape().dims();
  const auto type = static_cast<kiln_dtype>(value->shape().type());
  const auto bytes = static_cast<size_t>(value->byte_size());
  if (copy) {
    KILN_RETURN_IF_ERROR(StatusOf(kiln_buffer_copy_host(device, type, dims.data(), dims.size(),
                                                        value->data(), bytes, &buffer)));
  } else {
    // Nothing writes into an argument that is not donated.
    auto* data = const_cast<std::byte*>(value->data());
    KILN_RETURN_IF_ERROR(StatusOf(kiln_buffer_borrow_host(device, type, dims.data(), dims.size(),
                                                          data, bytes, nullptr, &buffer)));
  }
  return Buffer(buffer);
}

// Sums of a timeline's launches, by kernel and ops, in the order in which they are seen first.
std::vector<Launches> LaunchesIn(const char* timeline) {
  const auto json = nlohmann::json::parse(timeline, nullptr, false);
  std::vector<Launches> launches;
  std::map<std::pair<std::string, std::string>, size_t> places;
  for (const auto& event : json.value("traceEvents", nlohmann::json::array())) {
    const std::string kind = event.value("cat", "");
    if (kind != "kernel" && kind != "call") continue;
    const auto args = event.value("args", nlohmann::json::object());
    const auto key = std::pair(event.value("name", ""), args.value("ops", ""));
    const auto [place, is_new] = places.try_emplace(key, launches.size());
    if (is_new) launches.push_back({key.first, key.second, {}});
    draw::Work& work = launches[place->second].work;
    ++work.count;
    work.nanoseconds += std::llround(event.value("dur", 0.0) * 1e3);
    work.bytes += args.value("bytes", int64_t{0});
    work.flops += args.value("flops", int64_t{0});
  }
  return launches;
}

Result<std::vector<Literal>> ValuesOf(const std::vector<Buffer>& buffers) {
  std::vector<Literal> values;
  for (const Buffer& buffer : buffers) {
    kiln_shape shape = KILN_SHAPE_INIT;
    KILN_RETURN_IF_ERROR(StatusOf(kiln_buffer_shape(buffer.get(), &shape)));
    if (shape.dtype == KILN_TOKEN) continue;
    Literal value(Shape(static_cast<ElementType>(shape.dtype), std::span(shape.dims, shape.rank)));
    KILN_RETURN_IF_ERROR(StatusOf(kiln_buffer_copy_to_host(
        buffer.get(), value.data(), static_cast<size_t>(value.byte_size()))));
    values.push_back(std::move(value));
  }
  return values;
}

}  // namespace

std::vector<const Literal*> LeavesOf(std::span<const Literal> values,
                                     std::span<const Shape> shapes) {
  std::vector<const Literal*> leaves;
  for (size_t k = 0; k < values.size(); ++k) {
    ForEachLeaf(shapes[k], [&](const Shape& leaf, std::span<const int64_t> path) {
      const Literal* value = &values[k];
      for (int64_t i : path) value = &value->elements()[static_cast<size_t>(i)];
      leaves.push_back(leaf.is_array() ? value : nullptr);
    });
  }
  return leaves;
}

Result<Compiled> Compiled::Make(kiln_context* context, kiln_device* device, const Program& program,
                                const CompileSettings& settings) {
  KILN_ASSIGN_OR_RETURN(const Graph graph, GraphOf(context, program));
  kiln_compile_options c = KILN_COMPILE_OPTIONS_INIT;
  c.device = device;
  c.disabled_passes = settings.disabled_passes.data();
  c.disabled_passes_length = settings.disabled_passes.size();
  c.memory_limit_bytes = settings.memory_limit_bytes;
  if (!settings.dump_folder.empty()) {
    c.dump_folder = settings.dump_folder.data();
    c.dump_folder_length = settings.dump_folder.size();
    c.dump_forms = settings.dump_forms;
  }
  kiln_executable* executable = nullptr;
  KILN_RETURN_IF_ERROR(StatusOf(kiln_graph_compile(graph.get(), &c, &executable)));
  Compiled compiled;
  compiled.context_ = context;
  compiled.device_ = device;
  compiled.executable_.reset(executable);
  for (const ir::Instruction* p : program.module->entry()->parameters()) {
    compiled.parameters_.push_back(p->shape());
  }
  compiled.donated_ = MustBeDonated(*program.module);
  return compiled;
}

Result<Figures> Compiled::figures() const {
  kiln_program_info info = KILN_PROGRAM_INFO_INIT;
  KILN_RETURN_IF_ERROR(StatusOf(kiln_executable_info(executable_.get(), &info)));
  kiln_program_cost cost = KILN_PROGRAM_COST_INIT;
  KILN_RETURN_IF_ERROR(StatusOf(kiln_executable_cost(executable_.get(), &cost)));
  return Figures{.compile_ms = static_cast<double>(info.compile_microseconds) / 1e3,
                 .kernels = info.kernels,
                 .temporary_bytes = info.temporary_bytes,
                 .flops = cost.flops,
                 .bytes = cost.bytes_accessed,
                 .is_partial = cost.partial != 0};
}

Result<std::vector<Buffer>> Compiled::Arguments(std::span<const Literal> arguments) const {
  std::vector<Buffer> buffers;
  for (const Literal* leaf : LeavesOf(arguments, parameters_)) {
    KILN_ASSIGN_OR_RETURN(Buffer buffer, BufferOf(device_, leaf, false));
    buffers.push_back(std::move(buffer));
  }
  return buffers;
}

Status Compiled::RefreshDonated(std::span<const Literal> arguments,
                                std::vector<Buffer>& buffers) const {
  if (donated_.empty()) return OkStatus();
  const std::vector<const Literal*> leaves = LeavesOf(arguments, parameters_);
  for (size_t number : donated_) {
    KILN_ASSIGN_OR_RETURN(buffers[number], BufferOf(device_, leaves[number], true));
  }
  return OkStatus();
}

Result<std::vector<Buffer>> Compiled::RunOnce(const std::vector<Buffer>& arguments,
                                              kiln_trace* trace) const {
  kiln_execute_options options = KILN_EXECUTE_OPTIONS_INIT;
  options.donated = donated_.data();
  options.donated_count = donated_.size();
  options.trace = trace;
  std::vector<kiln_buffer*> given;
  for (const Buffer& buffer : arguments) given.push_back(buffer.get());
  std::vector<kiln_buffer*> made(kiln_executable_result_count(executable_.get()));
  const Status status = StatusOf(kiln_executable_run(executable_.get(), &options, given.data(),
                                                     given.size(), made.data(), made.size()));
  std::vector<Buffer> results;
  for (kiln_buffer* result : made) results.emplace_back(result);
  KILN_RETURN_IF_ERROR(status);
  return results;
}

Result<std::vector<Literal>> Compiled::Run(std::span<const Literal> arguments, int iterations,
                                           std::vector<double>* seconds) const {
  using Clock = std::chrono::steady_clock;
  KILN_ASSIGN_OR_RETURN(std::vector<Buffer> buffers, Arguments(arguments));
  std::vector<Buffer> results;
  for (int k = 0; k < iterations; ++k) {
    KILN_RETURN_IF_ERROR(RefreshDonated(arguments, buffers));
    results.clear();
    const auto start = Clock::now();
    KILN_ASSIGN_OR_RETURN(results, RunOnce(buffers, nullptr));
    const std::chrono::duration<double> time = Clock::now() - start;
    if (seconds) seconds->push_back(time.count());
  }
  return ValuesOf(results);
}

Result<std::vector<Launches>> Compiled::Profile(std::span<const Literal> arguments) const {
  KILN_ASSIGN_OR_RETURN(std::vector<Buffer> buffers, Arguments(arguments));
  KILN_RETURN_IF_ERROR(RefreshDonated(arguments, buffers));
  kiln_trace* made = nullptr;
  KILN_RETURN_IF_ERROR(StatusOf(kiln_trace_create(context_, &made)));
  const Trace trace(made);
  KILN_RETURN_IF_ERROR(RunOnce(buffers, trace.get()).status());
  KILN_RETURN_IF_ERROR(StatusOf(kiln_trace_stop(trace.get())));
  kiln_text* taken = nullptr;
  KILN_RETURN_IF_ERROR(StatusOf(kiln_trace_to_json(trace.get(), &taken)));
  const OwnedText text(taken);
  return LaunchesIn(kiln_text_data(text.get(), nullptr));
}

}  // namespace kiln::run
