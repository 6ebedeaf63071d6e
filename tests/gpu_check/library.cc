#include "library.h"

namespace kiln::gpu_check {
namespace {

template <typename Ask>
Result<Dims> AskShape(Ask&& ask) {
  kiln_shape shape = KILN_SHAPE_INIT;
  KILN_RETURN_IF_ERROR(StatusOf(ask(&shape)));
  Dims dims;
  dims.dtype = shape.dtype;
  dims.elements = 1;
  for (size_t i = 0; i < shape.rank; ++i) {
    dims.sizes.push_back(shape.dims[i]);
    dims.elements *= shape.dims[i];
  }
  dims.bytes = shape.byte_size;
  return dims;
}

std::vector<kiln_buffer*> Raw(const std::vector<Buffer>& buffers) {
  std::vector<kiln_buffer*> raw;
  for (const Buffer& buffer : buffers) raw.push_back(buffer.get());
  return raw;
}

}  // namespace

Status StatusOf(kiln_error* error) {
  if (!error) return OkStatus();
  Status status(static_cast<Code>(kiln_error_code(error)), kiln_error_message(error, nullptr));
  kiln_error_release(error);
  return status;
}

Result<Context> MakeContext(bool emulate) {
  kiln_context_options options = KILN_CONTEXT_OPTIONS_INIT;
  options.gpu = emulate ? KILN_GPU_EMULATED : KILN_GPU_AUTO;
  kiln_context* context = nullptr;
  KILN_RETURN_IF_ERROR(StatusOf(kiln_context_create(&options, &context)));
  return Context(context);
}

Result<kiln_device*> FindDevice(kiln_context* context, std::string_view name) {
  kiln_device* device = nullptr;
  KILN_RETURN_IF_ERROR(
      StatusOf(kiln_context_find_device(context, name.data(), name.size(), &device)));
  return device;
}

Result<Program> Program::Compile(kiln_context* context, kiln_device* device,
                                 const std::string& text, bool allow_tf32) {
  kiln_graph* parsed = nullptr;
  KILN_RETURN_IF_ERROR(
      StatusOf(kiln_graph_from_hlo_text(context, text.data(), text.size(), &parsed)));
  std::unique_ptr<kiln_graph, Releaser<kiln_graph_release>> graph(parsed);
  kiln_compile_options options = KILN_COMPILE_OPTIONS_INIT;
  options.device = device;
  options.allow_tf32 = allow_tf32;
  kiln_executable* executable = nullptr;
  KILN_RETURN_IF_ERROR(StatusOf(kiln_graph_compile(graph.get(), &options, &executable)));
  Program program;
  program.executable_.reset(executable);
  for (size_t i = 0; i < kiln_executable_argument_count(executable); ++i) {
    KILN_ASSIGN_OR_RETURN(Dims dims, AskShape([&](kiln_shape* shape) {
                            return kiln_executable_argument_shape(executable, i, shape);
                          }));
    program.arguments_.push_back(std::move(dims));
  }
  KILN_ASSIGN_OR_RETURN(program.result_, AskShape([&](kiln_shape* shape) {
                          return kiln_executable_result_shape(executable, 0, shape);
                        }));
  kiln_program_info info = KILN_PROGRAM_INFO_INIT;
  KILN_RETURN_IF_ERROR(StatusOf(kiln_executable_info(executable, &info)));
  program.kernels_ = info.kernels;
  return program;
}

Status Program::Run(const std::vector<Buffer>& arguments, const Buffer& result) const {
  std::vector<kiln_buffer*> raw = Raw(arguments);
  kiln_buffer* place = result.get();
  return StatusOf(
      kiln_executable_run(executable_.get(), nullptr, raw.data(), raw.size(), &place, 1));
}

Status Program::RunOn(void* stream, const std::vector<Buffer>& arguments,
                      const Buffer& result) const {
  std::vector<kiln_buffer*> raw = Raw(arguments);
  kiln_buffer* place = result.get();
  kiln_buffer* const* list = raw.data();
  kiln_buffer** places = &place;
  kiln_execute_options options = KILN_EXECUTE_OPTIONS_INIT;
  options.stream = stream;
  kiln_event* done = nullptr;
  KILN_RETURN_IF_ERROR(StatusOf(kiln_executable_execute(executable_.get(), &options, &list,
                                                        raw.size(), &places, 1, 1, &done)));
  kiln_event_release(done);
  return OkStatus();
}

Result<Buffer> MakeBuffer(kiln_device* device, const Dims& dims) {
  kiln_buffer* buffer = nullptr;
  KILN_RETURN_IF_ERROR(StatusOf(
      kiln_buffer_create(device, dims.dtype, dims.sizes.data(), dims.sizes.size(), &buffer)));
  return Buffer(buffer);
}

Result<Buffer> CopyToDevice(kiln_device* device, const Dims& dims, const void* data) {
  kiln_buffer* buffer = nullptr;
  KILN_RETURN_IF_ERROR(
      StatusOf(kiln_buffer_copy_host(device, dims.dtype, dims.sizes.data(), dims.sizes.size(), data,
                                     static_cast<size_t>(dims.bytes), &buffer)));
  return Buffer(buffer);
}

Result<Buffer> BorrowHost(kiln_device* device, const Dims& dims, void* data) {
  kiln_buffer* buffer = nullptr;
  KILN_RETURN_IF_ERROR(
      StatusOf(kiln_buffer_borrow_host(device, dims.dtype, dims.sizes.data(), dims.sizes.size(),
                                       data, static_cast<size_t>(dims.bytes), nullptr, &buffer)));
  return Buffer(buffer);
}

Status CopyToHost(const Buffer& buffer, void* data, int64_t bytes) {
  return StatusOf(kiln_buffer_copy_to_host(buffer.get(), data, static_cast<size_t>(bytes)));
}

Result<uint64_t> AddressOf(const Buffer& buffer) {
  const void* data = nullptr;
  KILN_RETURN_IF_ERROR(StatusOf(kiln_buffer_device_data(buffer.get(), &data)));
  return reinterpret_cast<uint64_t>(data);
}

}  // namespace kiln::gpu_check
