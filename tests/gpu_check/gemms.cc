// Gemms beside cuBLAS.
#include <algorithm>
#include <array>
#include <optional>

#include "benchmarks.h"

namespace kiln::gpu_check {
namespace {

// Of cuBLAS.
constexpr double kLeastF32 = 0.75, kLeastBF16 = 0.5;

struct Type {
  GemmType type;
  const char *name, *hlo;
  double allowed;  // the rounding of a result, or of sums of f32 in another order
};
// Sums of halves are held against sums of f32 that are not rounded.
constexpr std::array<Type, 4> kTypes = {{{GemmType::kF32, "f32", "f32", 1e-5},
                                         {GemmType::kTF32, "tf32", "f32", 1e-3},
                                         {GemmType::kF16, "f16", "f16", 0x1.1p-11},
                                         {GemmType::kBF16, "bf16", "bf16", 0x1.1p-8}}};

std::vector<GemmSize> Sizes(Settings::Scale scale) {
  switch (scale) {
    case Settings::Scale::kFull:
      return {{1024, 1024, 1024}, {2048, 2048, 2048}, {4096, 4096, 4096},
              {1000, 1000, 1000}, {4096, 4096, 65},   {100, 10, 784}};
    case Settings::Scale::kQuick:
      return {{256, 256, 256}, {100, 10, 784}};
    case Settings::Scale::kEmulated:
      break;
  }
  return {{64, 64, 64}};
}

std::string TextOf(std::string_view type, int64_t m, int64_t n, int64_t k, bool in_f32) {
  std::string x = Cat(type, "[", m, ",", k, "]"), y = Cat(type, "[", k, ",", n, "]");
  std::string text =
      Cat("HloModule m\nENTRY e { x = ", x, " parameter(0)\ny = ", y, " parameter(1)\n");
  std::string factors = "x, y";
  if (in_f32 && type != "f32") {
    text += Cat("wx = f32[", m, ",", k, "] convert(x)\nwy = f32[", k, ",", n, "] convert(y)\n");
    factors = "wx, wy";
    type = "f32";
  }
  return Cat(text, "ROOT d = ", type, "[", m, ",", n, "] dot(", factors,
             "), lhs_contracting_dims={1}, rhs_contracting_dims={0} }\n");
}

// Memory of the driver's, given back at the end.
class DeviceMemory {
 public:
  explicit DeviceMemory(const Driver& driver) : driver_(driver) {}
  ~DeviceMemory() {
    if (address_) driver_.api().MemFree.call(address_);
  }
  DeviceMemory(const DeviceMemory&) = delete;
  DeviceMemory& operator=(const DeviceMemory&) = delete;
  Status Allocate(int64_t bytes) {
    const auto& allocate = driver_.api().MemAlloc;
    return driver_.Check(allocate.call(&address_, static_cast<size_t>(bytes)), allocate.name);
  }
  cuda::DevicePointer address() const { return address_; }

 private:
  const Driver& driver_;
  cuda::DevicePointer address_ = 0;
};

// cuBLAS on the same arguments, into memory of its own.
Result<std::optional<HostArray>> MeasureCublas(const Gpu& gpu, GemmType type, const GemmSize& size,
                                               const std::vector<Buffer>& arguments,
                                               const Dims& result, Figure& f) {
  const Driver& driver = *gpu.driver;
  KILN_ASSIGN_OR_RETURN(std::unique_ptr<Cublas> blas, Cublas::Open(gpu.settings->cublas, driver));
  f.peer = blas->name();
  KILN_ASSIGN_OR_RETURN(uint64_t x, AddressOf(arguments[0]));
  KILN_ASSIGN_OR_RETURN(uint64_t y, AddressOf(arguments[1]));
  DeviceMemory out(driver);
  KILN_RETURN_IF_ERROR(out.Allocate(result.bytes));
  KILN_ASSIGN_OR_RETURN(Times times, MeasureOnGpu(driver, [&] {
                          return blas->Multiply(type, size, x, y, out.address());
                        }));
  f.peer_value = *f.flops / times.median / 1e12;
  if (f.value) f.ratio = *f.value / *f.peer_value;
  KILN_ASSIGN_OR_RETURN(HostArray values, HostArray::Make(result));
  const cuda::Functions& api = driver.api();
  KILN_RETURN_IF_ERROR(
      driver.Check(api.MemcpyDtoHAsync.call(values.data(), out.address(),
                                            static_cast<size_t>(result.bytes), driver.stream()),
                   api.MemcpyDtoHAsync.name));
  KILN_RETURN_IF_ERROR(
      driver.Check(api.StreamSynchronize.call(driver.stream()), api.StreamSynchronize.name));
  return std::optional<HostArray>(std::move(values));
}

Status MeasureGemm(const Gpu& gpu, const Type& type, const GemmSize& size,
                   std::vector<Figure>& figures) {
  Figure& f = figures.emplace_back();
  f.name = Cat("gemm, ", type.name, type.type == GemmType::kF32 ? " exact" : "");
  f.size = Cat(size.m, " x ", size.n, " x ", size.k);
  f.flops =
      2.0 * static_cast<double>(size.m) * static_cast<double>(size.n) * static_cast<double>(size.k);
  f.bytes = (std::string_view(type.hlo) == "f32" ? 4.0 : 2.0) *
            static_cast<double>(size.m * size.k + size.k * size.n + size.m * size.n);
  f.peer = "cuBLAS";
  const bool has_target =
      gpu.settings->has_targets() && size.m == 4096 && size.n == 4096 && size.k == 4096;
  if (has_target && type.type == GemmType::kF32) f.at_least = kLeastF32;
  if (has_target && type.type == GemmType::kBF16) f.at_least = kLeastBF16;
  Task task{.text = TextOf(type.hlo, size.m, size.n, size.k, false), .allowed = type.allowed};
  task.rows = std::min<int64_t>(size.m, 64);
  task.reference = TextOf(type.hlo, task.rows, size.n, size.k, true);
  task.allow_tf32 = type.type == GemmType::kTF32;
  Peer peer;
  if (gpu.driver) {
    peer = [&](const std::vector<Buffer>& arguments, const Dims& result) {
      return MeasureCublas(gpu, type.type, size, arguments, result, f);
    };
  }
  return MeasureTask(gpu, task, f, peer);
}

}  // namespace

void AddGemmBenchmarks(const Settings& settings, std::vector<Benchmark>& all) {
  for (const Type& type : kTypes) {
    for (const GemmSize& size : Sizes(settings.scale)) {
      all.push_back({Cat("gemm_", type.name, "_", size.m, "x", size.n, "x", size.k),
                     [&type, size](const Gpu& gpu, std::vector<Figure>& figures) {
                       return MeasureGemm(gpu, type, size, figures);
                     }});
    }
  }
}

}  // namespace kiln::gpu_check
