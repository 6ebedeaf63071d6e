#include "support/math.h"

#include <algorithm>
#include <bit>
#include <cstdio>

#include "base/strings.h"
#include "compiler/compiler.h"
#include "device/cpu/executable.h"
#include "ir/text.h"
#include "ops/accuracy.h"
#include "support/gpu.h"

namespace kiln::testing {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();

runtime::ThreadPool& OneThread() {
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
    case kGpu:
    case kMathVariants:
      break;
    case kWithoutAvx512:
      t = target::HostCpuWithVectors(32);
      break;
    case kWithoutFma:
      t = target::HostCpuWithVectors(32);
      std::erase(t.cpu.features, "fma");
      t.cpu.has_fma = false;
      break;
    case kScalar:
      t.cpu.vector_bytes = std::max(element_bytes, 4);  // halves are f32 in registers
      t.cpu.has_masks = false;
      break;
  }
  return t;
}

// NaN for what is right or wrong by its kind alone, with the verdict in `error`.
bool ByKind(double got, double expected, bool expected_is_exact, double least, double& error) {
  if (std::isnan(got) || std::isnan(expected)) {
    error = std::isnan(got) && std::isnan(expected) ? 0 : kInfinity;
    return true;
  }
  if (std::isfinite(got) && std::abs(expected) < least) return false;
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

Result<std::unique_ptr<runtime::LoadedExecutable>> Load(const ir::Module& module,
                                                        MathVariant variant, int element_bytes) {
  if (variant == kGpu) {
    KILN_ASSIGN_OR_RETURN(Loaded loaded, LoadOnGpu(module, true));
    return std::move(loaded.executable);
  }
  KILN_ASSIGN_OR_RETURN(program::Artefact artefact,
                        compiler::Compile(module.Clone(), TargetOf(variant, element_bytes), {}));
  KILN_ASSIGN_OR_RETURN(std::unique_ptr<device::CpuExecutable> loaded,
                        device::CpuExecutable::Load(std::move(artefact), Memory(), OneThread()));
  return std::unique_ptr<runtime::LoadedExecutable>(std::move(loaded));
}

}  // namespace

double UlpErrorOf(const FloatFormat& format, double got, double expected, double least) {
  double error;
  if (ByKind(got, expected, true, least, error)) return error;
  const double after_largest = std::ldexp(1, format.bias + 1);
  double g = std::clamp(got, -after_largest, after_largest);
  double e = std::clamp(expected, -after_largest, after_largest);
  // 2^(mantissa - exponent), with the exponents that the format has.
  double size = std::max(std::abs(e), least);
  int64_t exponent = static_cast<int64_t>(std::bit_cast<uint64_t>(size) >> 52);
  exponent = std::clamp<int64_t>(exponent, 1023 + 1 - format.bias, 1023 + format.bias);
  auto bits = static_cast<uint64_t>(2 * 1023 + format.mantissa - exponent) << 52;
  return std::abs(g - e) * std::bit_cast<double>(bits);
}

double UlpError(double got, const Expected<double>& expected, double least) {
  double error;
  if (ByKind(got, expected.value, expected.rest == 0, least, error)) return error;
  constexpr double kLargest = std::numeric_limits<double>::max();
  double g = got, e = expected.value, beyond = 0;
  if (std::isinf(g) != std::isinf(e)) beyond = 1;
  g = std::clamp(g, -kLargest, kLargest);
  e = std::clamp(e, -kLargest, kLargest);
  int exponent = e == 0 ? -1022 : std::max(std::ilogb(e), -1022);
  error = std::abs(std::ldexp(g - e, 26 - exponent) * 0x1p26 - expected.rest) + beyond;
  // The rest is in units of the result's own last place.
  int larger = least > 0 ? std::max(exponent, std::ilogb(least)) : exponent;
  return std::ldexp(error, exponent - larger);
}

Expected<double> RoundedOf(long double value) {
  Expected<double> e{static_cast<double>(value)};
  if (std::isnan(value) || std::isinf(value)) return e;
  if (std::isinf(e.value)) {
    // Any rest says that the infinity is not exact.
    e.rest = std::numeric_limits<double>::min();
    return e;
  }
  int exponent = e.value == 0 ? -1022 : std::max(std::ilogb(e.value), -1022);
  e.rest = static_cast<double>(std::ldexp(value - e.value, 52 - exponent));
  return e;
}

const char* NameOf(MathVariant variant) {
  switch (variant) {
    case kHost:
    case kMathVariants:
      break;
    case kWithoutAvx512:
      return "without AVX-512";
    case kWithoutFma:
      return "without FMA";
    case kScalar:
      return "scalar";
    case kGpu:
      return "GPU";
  }
  return "";
}

std::string MathOp::name() const {
  const bool fixed = ArityOf(opcode).min > operands;
  return Cat(OpcodeName(opcode), fixed ? " with 1" : "");
}

std::unique_ptr<runtime::LoadedExecutable> CompileMath(const MathOp& op, ElementType type,
                                                       MathVariant variant) {
  std::string shape = Cat(TypeName(type), "[", kMathBlock, "]");
  std::string text = Cat("HloModule m\nENTRY e {\n  x = ", shape, " parameter(0)\n");
  if (op.operands == 2) text += Cat("  y = ", shape, " parameter(1)\n");
  const bool binary = ArityOf(op.opcode).min == 2;
  if (binary && op.operands == 1) {
    text += Cat("  one = ", TypeName(type), "[] constant(1)\n  y = ", shape,
                " broadcast(one), dimensions={}\n");
  }
  std::string operands = binary ? "(x, y)" : "(x)";
  text += Cat("  ROOT r = ", shape);
  if (IsHloOp(op.opcode)) {
    text += Cat(" ", OpcodeName(op.opcode), operands, " }");
  } else {
    text += Cat(" custom-call", operands, ", custom_call_target=\"", OpcodeName(op.opcode), "\" }");
  }
  auto module = ir::ParseHloText(text);
  if (!module.ok()) {
    ADD_FAILURE() << module.status().ToString();
    return nullptr;
  }
  auto loaded = Load(**module, variant, static_cast<int>(ByteWidth(type)));
  if (!loaded.ok()) {
    ADD_FAILURE() << loaded.status().ToString();
    return nullptr;
  }
  return std::move(*loaded);
}

MathBound BoundOf(Opcode opcode, ElementType type) {
  const Accuracy* accuracy = AccuracyOf(opcode);
  if (!accuracy) {
    ADD_FAILURE() << OpcodeName(opcode) << " has no accuracy in ops.def";
    return {};
  }
  return {accuracy->Of(type), accuracy->counts == Accuracy::kOfOne ? 1.0 : 0.0};
}

void ReportMath(const MathOp& op, ElementType type, MathVariant variant, const Worst& worst) {
  std::string name =
      Cat(op.name(), " of ", TypeName(type), variant == kHost ? "" : ", ", NameOf(variant));
  if (worst.error <= 0.5) {
    std::printf("  %s: the nearest number\n", name.c_str());
  } else {
    std::printf("  %s: %.4f ULP at %a (%.9g)", name.c_str(), worst.error, worst.x, worst.x);
    if (op.operands == 2) std::printf(", %a (%.9g)", worst.y, worst.y);
    std::printf(": %a for %a\n", worst.got, worst.expected);
  }
  EXPECT_LE(worst.error, BoundOf(op.opcode, type).error)
      << name << " of " << worst.x << ", " << worst.y << ": " << worst.got << " for "
      << worst.expected;
}

}  // namespace kiln::testing
