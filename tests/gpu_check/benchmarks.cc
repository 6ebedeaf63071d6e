#include "benchmarks.h"

#include <algorithm>
#include <cmath>

namespace kiln::gpu_check {

Result<Gpu> Gpu::Open(const Settings& settings) {
  Gpu g;
  g.settings = &settings;
  KILN_ASSIGN_OR_RETURN(g.context, MakeContext(settings.emulated()));
  KILN_ASSIGN_OR_RETURN(g.gpu, FindDevice(g.context.get(), "GPU:0"));
  KILN_ASSIGN_OR_RETURN(g.cpu, FindDevice(g.context.get(), "CPU:0"));
  if (!settings.emulated()) {
    KILN_ASSIGN_OR_RETURN(g.driver, Driver::Open(g.gpu));
  }
  return g;
}

Result<Times> Gpu::Measure(const Program& program, const std::vector<Buffer>& arguments,
                           const Buffer& result) const {
  if (!driver) return MeasureOnHost([&] { return program.Run(arguments, result); });
  return MeasureOnGpu(*driver, [&] { return program.RunOn(driver->stream(), arguments, result); });
}

std::vector<Benchmark> AllBenchmarks(const Settings& settings) {
  std::vector<Benchmark> all;
  AddMemoryBenchmarks(settings, all);
  AddGemmBenchmarks(settings, all);
  AddDemo(settings, all);
  return all;
}

namespace {

// The reference's arguments are the program's; of the first there may be fewer rows.
Result<HostArray> RunReference(const Gpu& gpu, const Task& task,
                               const std::vector<HostArray>& arguments, int64_t stride) {
  KILN_ASSIGN_OR_RETURN(Program program,
                        Program::Compile(gpu.context.get(), gpu.cpu,
                                         task.reference.empty() ? task.text : task.reference));
  HostArray some_rows;
  std::vector<Buffer> buffers;
  for (size_t i = 0; i < arguments.size(); ++i) {
    const HostArray* array = &arguments[i];
    if (i == 0 && task.rows > 0) {
      KILN_ASSIGN_OR_RETURN(some_rows, HostArray::Make(program.arguments()[0]));
      TakeRows(*array, stride, some_rows);
      array = &some_rows;
    }
    KILN_ASSIGN_OR_RETURN(Buffer buffer, BorrowHost(gpu.cpu, array->dims(), array->data()));
    buffers.push_back(std::move(buffer));
  }
  KILN_ASSIGN_OR_RETURN(HostArray result, HostArray::Make(program.result()));
  KILN_ASSIGN_OR_RETURN(Buffer place, BorrowHost(gpu.cpu, result.dims(), result.data()));
  KILN_RETURN_IF_ERROR(program.Run(buffers, place));
  return result;
}

}  // namespace

Status MeasureTask(const Gpu& gpu, const Task& task, Figure& figure, const Peer& peer) {
  KILN_ASSIGN_OR_RETURN(Program program,
                        Program::Compile(gpu.context.get(), gpu.gpu, task.text, task.allow_tf32));
  std::vector<HostArray> arguments;
  std::vector<Buffer> buffers;
  for (const Dims& dims : program.arguments()) {
    KILN_ASSIGN_OR_RETURN(HostArray array, HostArray::Make(dims));
    KILN_RETURN_IF_ERROR(Fill(array, task.low, task.high, arguments.size()));
    KILN_ASSIGN_OR_RETURN(Buffer buffer, CopyToDevice(gpu.gpu, dims, array.data()));
    arguments.push_back(std::move(array));
    buffers.push_back(std::move(buffer));
  }
  const int64_t stride = task.rows > 0 ? program.arguments()[0].sizes[0] / task.rows : 1;
  KILN_ASSIGN_OR_RETURN(HostArray expected, RunReference(gpu, task, arguments, stride));
  // Zeros, which are nobody's result.
  KILN_ASSIGN_OR_RETURN(Buffer place, MakeBuffer(gpu.gpu, program.result()));
  KILN_ASSIGN_OR_RETURN(Times times, gpu.Measure(program, buffers, place));
  SetTimes(times, figure);
  figure.kernels = program.kernels();
  KILN_ASSIGN_OR_RETURN(HostArray actual, HostArray::Make(program.result()));
  KILN_RETURN_IF_ERROR(CopyToHost(place, actual.data(), actual.dims().bytes));
  double difference = Difference(actual, expected, stride);
  figure.allowed = task.allowed;
  figure.correct = difference <= task.allowed;
  if (std::isfinite(difference)) figure.difference = difference;
  if (!peer) return OkStatus();
  Result<std::optional<HostArray>> theirs = peer(buffers, program.result());
  // Failing there is no failure of ours.
  if (!theirs.ok()) {
    figure.note = theirs.status().message();
  } else if (*theirs) {
    figure.peer_difference = Difference(**theirs, expected, stride);
    if (!(*figure.peer_difference <= task.allowed)) {
      figure.note = Cat(figure.peer, "'s result differs by ", NumberText(*figure.peer_difference));
      figure.ratio = std::nullopt;
    }
  }
  return OkStatus();
}

void SetTimes(const Times& times, Figure& figure) {
  figure.median_us = 1e6 * times.median;
  figure.minimum_us = 1e6 * times.minimum;
  figure.runs = times.runs;
  if (figure.flops) {
    figure.value = *figure.flops / times.median / 1e12;
    figure.unit = "TFLOP/s";
  } else {
    figure.value = *figure.bytes / times.median / 1e9;
    figure.unit = "GB/s";
  }
}

void CompareWithCopies(std::vector<Figure>& figures) {
  double best = 0;
  for (const Figure& f : figures) {
    if (f.name.starts_with(kCopy) && f.value && !f.failed()) best = std::max(best, *f.value);
  }
  for (Figure& f : figures) {
    if (f.peer != kCopy || best == 0) continue;
    f.peer_value = best;
    if (f.value) f.ratio = *f.value / best;
  }
}

}  // namespace kiln::gpu_check
