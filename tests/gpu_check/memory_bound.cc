// Copies, and kernels that are bound by memory.
#include <algorithm>
#include <bit>
#include <cmath>

#include "bench/row_programs.h"
#include "benchmarks.h"

namespace kiln::gpu_check {
namespace {

constexpr double kLeastOfCopy = 0.85;

// Elements of an array: 1 GiB of f32, or less where the GPU has little memory.
int64_t Elements(const Gpu& gpu) {
  switch (gpu.settings->scale) {
    case Settings::Scale::kFull: {
      auto eighth = static_cast<uint64_t>(gpu.driver->memory_bytes() / 8);
      return std::min<int64_t>(int64_t{1} << 28, static_cast<int64_t>(std::bit_floor(eighth) / 4));
    }
    case Settings::Scale::kQuick:
      return int64_t{1} << 20;
    case Settings::Scale::kEmulated:
      break;
  }
  return int64_t{1} << 14;
}

std::string SizeText(int64_t bytes) {
  if (bytes >= int64_t{1} << 30) return Cat(bytes >> 30, " GiB");
  return bytes >= 1 << 20 ? Cat(bytes >> 20, " MiB") : Cat(bytes >> 10, " KiB");
}

// One, of the array's elements as `read` and `written` arrays of that size.
Figure FigureOf(std::string name, int64_t elements, int read, int written) {
  Figure f;
  f.name = std::move(name);
  f.bytes = 4.0 * static_cast<double>(elements) * (read + written);
  f.size =
      Cat(read, written ? " + " : "", written ? Cat(written) : "", " x ", SizeText(4 * elements));
  return f;
}

// With the target for fused kernels.
void HoldAgainstCopy(const Gpu& gpu, Figure& f) {
  f.peer = kCopy;
  if (gpu.settings->has_targets()) f.at_least = kLeastOfCopy;
}

std::string Elementwise(int64_t n, std::string_view body) {
  std::string shape = Cat("f32[", n, "]");
  std::string text =
      "HloModule m\nadd { a = f32[] parameter(0) b = f32[] parameter(1) ROOT s = "
      "f32[] add(a, b) }\nadd64 { a = f64[] parameter(0) b = f64[] parameter(1) "
      "ROOT s = f64[] add(a, b) }\nENTRY e {\n";
  for (int i = 0; i < 3; ++i) text += Cat("xyz"[i], " = ", shape, " parameter(", i, ")\n");
  return Cat(text, "product = ", shape, " multiply(y, z)\n", body, "}\n");
}

// By the driver's copies.
Status CopyByDriver(const Gpu& gpu, std::vector<Figure>& figures) {
  const int64_t n = Elements(gpu);
  Figure& f = figures.emplace_back(FigureOf("copy by the driver", n, 1, 1));
  if (!gpu.driver) {
    f.note = "an emulated GPU has no driver";
    return OkStatus();
  }
  const Driver& driver = *gpu.driver;
  const auto bytes = static_cast<size_t>(4 * n);
  const cuda::Functions& api = driver.api();
  cuda::DevicePointer from = 0, to = 0;
  KILN_RETURN_IF_ERROR(driver.Check(api.MemAlloc.call(&from, bytes), api.MemAlloc.name));
  Status status = driver.Check(api.MemAlloc.call(&to, bytes), api.MemAlloc.name);
  if (status.ok()) {
    status = driver.Check(api.MemsetD8Async.call(from, 0x5a, bytes, driver.stream()),
                          api.MemsetD8Async.name);
  }
  if (status.ok()) {
    Result<Times> times = MeasureOnGpu(driver, [&] {
      return driver.Check(api.MemcpyDtoDAsync.call(to, from, bytes, driver.stream()),
                          api.MemcpyDtoDAsync.name);
    });
    status = times.status();
    if (times.ok()) SetTimes(*times, f);
  }
  if (to) api.MemFree.call(to);
  api.MemFree.call(from);
  return status;
}

Status CopyByKernel(const Gpu& gpu, std::vector<Figure>& figures) {
  const int64_t n = Elements(gpu);
  Figure& f = figures.emplace_back(FigureOf("copy by a kernel that negates", n, 1, 1));
  std::string shape = Cat("f32[", n, "]");
  return MeasureTask(gpu,
                     {.text = Cat("HloModule m\nENTRY e { x = ", shape,
                                  " parameter(0)\nROOT n = ", shape, " negate(x) }\n")},
                     f);
}

Status FusedElementwise(const Gpu& gpu, std::vector<Figure>& figures) {
  const int64_t n = Elements(gpu);
  Figure& f = figures.emplace_back(FigureOf("x + y * z", n, 3, 1));
  HoldAgainstCopy(gpu, f);
  std::string text = Elementwise(n, Cat("ROOT r = f32[", n, "] add(x, product)\n"));
  return MeasureTask(gpu, {.text = text, .allowed = 1e-6}, f);
}

Status FusedSum(const Gpu& gpu, std::vector<Figure>& figures) {
  const int64_t n = Elements(gpu);
  Figure& f = figures.emplace_back(FigureOf("reduce_sum(x + y * z)", n, 3, 0));
  HoldAgainstCopy(gpu, f);
  std::string sum = Cat("s = f32[", n, "] add(x, product)\n");
  std::string text = Elementwise(
      n, Cat(sum, "zero = f32[] constant(0)\nROOT r = f32[] reduce(s, zero), dimensions={0}, ",
             "to_apply=add\n"));
  // Sums of f64: of so many numbers, those of f32 are themselves some way off.
  std::string reference = Elementwise(
      n, Cat(sum, "wide = f64[", n, "] convert(s)\nzero = f64[] constant(0)\nROOT r = f64[] ",
             "reduce(wide, zero), dimensions={0}, to_apply=add64\n"));
  return MeasureTask(gpu, {.text = text, .reference = reference, .low = 0, .allowed = 1e-5}, f);
}

Status Softmax(const Gpu& gpu, std::vector<Figure>& figures) {
  const int64_t n = Elements(gpu), rows = n / bench::kColumns;
  Figure& f = figures.emplace_back(FigureOf("softmax of rows of 1024", n, 1, 1));
  HoldAgainstCopy(gpu, f);
  return MeasureTask(gpu, {.text = bench::Softmax(rows), .low = -4, .high = 4, .allowed = 1e-5}, f);
}

Status LayerNorm(const Gpu& gpu, std::vector<Figure>& figures) {
  const int64_t n = Elements(gpu), rows = n / bench::kColumns;
  Figure& f = figures.emplace_back(FigureOf("layer norm of rows of 1024", n, 1, 1));
  HoldAgainstCopy(gpu, f);
  return MeasureTask(gpu, {.text = bench::Normalised(rows), .allowed = 1e-5}, f);
}

Status Transpose(const Gpu& gpu, std::vector<Figure>& figures) {
  const int64_t n = Elements(gpu);
  const int64_t rows = int64_t{1} << ((std::bit_width(static_cast<uint64_t>(n)) - 1) / 2);
  Figure& f = figures.emplace_back(FigureOf("transpose of a matrix", n, 1, 1));
  f.peer = kCopy;
  return MeasureTask(gpu, {.text = bench::Transpose(rows, n / rows)}, f);
}

}  // namespace

void AddMemoryBenchmarks(const Settings&, std::vector<Benchmark>& all) {
  all.push_back({"copy_by_driver", CopyByDriver});
  all.push_back({"copy_by_kernel", CopyByKernel});
  all.push_back({"elementwise", FusedElementwise});
  all.push_back({"reduce_sum", FusedSum});
  all.push_back({"softmax", Softmax});
  all.push_back({"layer_norm", LayerNorm});
  all.push_back({"transpose", Transpose});
}

}  // namespace kiln::gpu_check
