#include "math_test_util.h"

#include <algorithm>
#include <bit>
#include <cstdio>

#include "base/strings.h"
#include "compiler/compiler.h"
#include "ir/text.h"

namespace kiln::testing {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();

runtime::ThreadPool& Pool() {
  static runtime::ThreadPool pool(1);
  return pool;
}

runtime::Allocator& Memory() {
  static runtime::Allocator allocator;
  return allocator;
}

target::Target TargetOf(MathVariant variant, int element_bytes) {
  target::Target t = target::HostCpu();
  switch (variant) {
    case kHost:
    case kMathVariants:
      break;
    case kWithoutFma:
      t = target::HostCpuWithVectors(32);
      std::erase(t.cpu.features, "fma");
      t.cpu.has_fma = false;
      break;
    case kScalar:
      t.cpu.vector_bytes = element_bytes;
      t.cpu.has_masks = false;
      break;
  }
  return t;
}

// NaN for what is right or wrong by its kind alone, with the verdict in `error`.
bool ByKind(double got, double expected, bool expected_is_exact, double& error) {
  if (std::isnan(got) || std::isnan(expected)) {
    error = std::isnan(got) && std::isnan(expected) ? 0 : kInfinity;
    return true;
  }
  if (std::signbit(got) != std::signbit(expected)) {
    error = kInfinity;
    return true;
  }
  if (expected_is_exact && (expected == 0 || std::isinf(expected))) {
    error = got == expected ? 0 : kInfinity;
    return true;
  }
  return false;
}

}  // namespace

double UlpError(float got, const Expected<float>& expected) {
  double error;
  if (ByKind(got, expected.value, true, error)) return error;
  constexpr double kAfterLargest = 0x1p128;
  double g = std::clamp<double>(got, -kAfterLargest, kAfterLargest);
  double e = std::clamp(expected.value, -kAfterLargest, kAfterLargest);
  // 2^(23 - exponent), with the exponents that a float can have.
  int64_t exponent = static_cast<int64_t>(std::bit_cast<uint64_t>(e) >> 52 & 0x7ff);
  exponent = std::clamp<int64_t>(exponent, 1023 - 126, 1023 + 127);
  double per_ulp = std::bit_cast<double>(static_cast<uint64_t>(2 * 1023 + 23 - exponent) << 52);
  return std::abs(g - e) * per_ulp;
}

double UlpError(double got, const Expected<double>& expected) {
  double error;
  if (ByKind(got, expected.value, expected.rest == 0, error)) return error;
  constexpr double kLargest = std::numeric_limits<double>::max();
  double g = got, e = expected.value, beyond = 0;
  if (std::isinf(g) != std::isinf(e)) beyond = 1;
  g = std::clamp(g, -kLargest, kLargest);
  e = std::clamp(e, -kLargest, kLargest);
  int exponent = e == 0 ? -1022 : std::max(std::ilogb(e), -1022);
  return std::abs(std::ldexp(g - e, 26 - exponent) * 0x1p26 - expected.rest) + beyond;
}

const char* NameOf(MathVariant variant) {
  switch (variant) {
    case kHost:
    case kMathVariants:
      break;
    case kWithoutFma:
      return "without FMA";
    case kScalar:
      return "scalar";
  }
  return "";
}

template <typename T>
std::unique_ptr<device::CpuExecutable> CompileMath(const std::string& op, int operands,
                                                   MathVariant variant) {
  std::string shape = Cat(sizeof(T) == 8 ? "f64[" : "f32[", kMathBlock, "]");
  std::string text = Cat("HloModule m\nENTRY e {\n  x = ", shape, " parameter(0)\n");
  if (operands == 2) text += Cat("  y = ", shape, " parameter(1)\n");
  text += Cat("  ROOT r = ", shape, " ", op, operands == 2 ? "(x, y) }" : "(x) }");
  auto module = ir::ParseHloText(text);
  if (!module.ok()) {
    ADD_FAILURE() << module.status().ToString();
    return nullptr;
  }
  auto artefact = compiler::Compile(std::move(*module), TargetOf(variant, sizeof(T)), {});
  if (!artefact.ok()) {
    ADD_FAILURE() << artefact.status().ToString();
    return nullptr;
  }
  auto loaded = device::CpuExecutable::Load(
      std::make_shared<const plan::Artefact>(std::move(*artefact)), Memory(), Pool());
  if (!loaded.ok()) {
    ADD_FAILURE() << loaded.status().ToString();
    return nullptr;
  }
  return std::move(*loaded);
}

template std::unique_ptr<device::CpuExecutable> CompileMath<float>(const std::string&, int,
                                                                   MathVariant);
template std::unique_ptr<device::CpuExecutable> CompileMath<double>(const std::string&, int,
                                                                    MathVariant);

void ReportMath(const std::string& op, int operands, MathVariant variant, const Worst& worst,
                double bound) {
  std::string name = Cat(op, variant == kHost ? "" : ", ", NameOf(variant));
  if (worst.error <= 0.5) {
    std::printf("  %s: the nearest number\n", name.c_str());
  } else {
    std::printf("  %s: %.3f ULP at %a (%.9g)", name.c_str(), worst.error, worst.x, worst.x);
    if (operands == 2) std::printf(", %a (%.9g)", worst.y, worst.y);
    std::printf(": %a for %a\n", worst.got, worst.expected);
  }
  EXPECT_LE(worst.error, bound) << name << " of " << worst.x << ", " << worst.y << ": " << worst.got
                                << " for " << worst.expected;
}

}  // namespace kiln::testing
