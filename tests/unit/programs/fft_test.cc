// The library's Fourier transforms against the evaluator's, which go by the definition in long
// double.
#include <gtest/gtest.h>

#include <cmath>
#include <complex>
#include <limits>

#include "base/strings.h"
#include "interp/interpreter.h"
#include "runtime/lib/fft/plan.h"
#include "runtime/lib/fft/roots.h"
#include "runtime/lib/function.h"
#include "support/compiled.h"
#include "support/hlo.h"
#include "support/library_calls.h"

namespace kiln {
namespace {

using runtime::lib::fft::Kernels;
using runtime::lib::fft::KernelsOf;
using runtime::lib::fft::RowPlan;
using runtime::lib::fft::Vectors;
using testing::CallLibrary;
using testing::CallLibraryInPlace;
using testing::NormalLiteral;
using testing::RelativeError;

double Epsilon(ElementType type) {
  return type == ElementType::kF32 || type == ElementType::kC64
             ? std::numeric_limits<float>::epsilon()
             : std::numeric_limits<double>::epsilon();
}

// The transform `type` of `from`, of these lengths, within a few times eps log2(n) by both.
void Check(std::string_view type, const std::string& from, const Ints& length) {
  auto module =
      ir::ParseOrDie(Cat("ENTRY e { x = ", from, " parameter(0) ROOT y = fft(x), fft_type=", type,
                         ", fft_length={", Join(length, ","), "} }"));
  const ir::Instruction& fft = *module->entry()->root();
  SCOPED_TRACE(ir::ToHloText(fft));
  const Shape& shape = fft.operand(0)->shape();
  std::vector<Literal> operands;
  operands.push_back(NormalLiteral(shape, static_cast<uint64_t>(shape.num_elements())));
  auto expected = interp::Evaluate(*module, operands);
  ASSERT_TRUE(expected.ok()) << expected.status().ToString();
  double points = 2;
  for (int64_t n : length) points *= static_cast<double>(std::max<int64_t>(n, 1));
  const double bound = Epsilon(shape.type()) * (0.5 + 0.4 * std::log2(points));
  auto actual = CallLibrary(fft, operands, testing::Pool());
  ASSERT_TRUE(actual.ok()) << actual.status().ToString();
  EXPECT_LT(RelativeError(*expected, *actual), bound);
  // The same bits on one thread, and in the operand's memory.
  runtime::ThreadPool alone(1);
  auto again = CallLibrary(fft, operands, alone);
  ASSERT_TRUE(again.ok());
  EXPECT_TRUE(*again == *actual);
  if (fft.shape().type() == shape.type()) {
    auto in_place = CallLibraryInPlace(fft, operands, 0, testing::Pool());
    ASSERT_TRUE(in_place.ok());
    EXPECT_TRUE(*in_place == *actual);
  }
}

std::string Dims(const std::vector<int64_t>& dims) { return Cat("[", Join(dims, ","), "]"); }

// All kinds of a transform, of these real dimensions.
void CheckAll(const std::vector<int64_t>& dims, size_t rank) {
  std::vector<int64_t> halved = dims;
  if (dims.back() > 0) halved.back() = dims.back() / 2 + 1;
  const Ints length(dims.end() - static_cast<int64_t>(rank), dims.end());
  for (auto [real, complex] : {std::pair("f32", "c64"), std::pair("f64", "c128")}) {
    Check("FFT", Cat(complex, Dims(dims)), length);
    Check("IFFT", Cat(complex, Dims(dims)), length);
    Check("RFFT", Cat(real, Dims(dims)), length);
    Check("IRFFT", Cat(complex, Dims(halved)), length);
  }
}

TEST(Fft, EveryShortLength) {
  for (int64_t n = 1; n <= 66; ++n) CheckAll({n}, 1);
}

// Rows fill vectors, or leave lanes empty; of odd lengths they go in pairs.
TEST(Fft, Batches) {
  for (int64_t n : {1, 2, 3, 8, 15, 31, 64, 97, 127, 131, 360, 512, 513, 1021}) {
    for (int64_t rows : {2, 3, 7, 16, 33}) CheckAll({rows, n}, 1);
  }
}

TEST(Fft, LongRows) {
  for (int64_t n : {1000, 1009, 1024, 4096, 4095, 5040, 8191, 10007, 2 * 10007, 6 * 1009, 16384}) {
    CheckAll({n}, 1);
    CheckAll({3, n}, 1);
  }
}

TEST(Fft, LargePrimes) {
  CheckAll({65521}, 1);
  CheckAll({65536}, 1);
  CheckAll({65537}, 1);
}

TEST(Fft, SeveralDimensions) {
  CheckAll({4, 8}, 2);
  CheckAll({5, 7, 9}, 3);
  CheckAll({2, 6, 10, 8}, 3);
  CheckAll({3, 1, 16}, 2);
  CheckAll({1, 1, 1}, 3);
  CheckAll({131, 33}, 2);
  CheckAll({64, 100, 20}, 3);
  CheckAll({4099, 3}, 2);  // columns too long for a block
  CheckAll({2, 5000, 18}, 2);
}

TEST(Fft, NothingToTransform) {
  for (std::vector<int64_t> dims :
       {std::vector<int64_t>{0}, {0, 4}, {4, 0}, {3, 0, 4}, {14, 15, 0, 17}}) {
    for (size_t rank = 1; rank <= std::min<size_t>(dims.size(), 3); ++rank) CheckAll(dims, rank);
  }
}

// A kind of vectors that this machine does not have is left out.
template <typename T>
void CheckKernels(Vectors vectors, int64_t n) {
  const Kernels<T>* kernels = KernelsOf<T>(vectors);
  if (!kernels) return;
  const bool is_float = sizeof(T) == sizeof(float);
  auto module =
      ir::ParseOrDie(Cat("ENTRY e { x = ", is_float ? "c64" : "c128", "[", n,
                         "] parameter(0) ROOT y = fft(x), fft_type=FFT, fft_length={", n, "} }"));
  std::vector<Literal> operands;
  operands.push_back(NormalLiteral(module->entry()->root()->shape(), 7));
  auto expected = interp::Evaluate(*module, operands);
  ASSERT_TRUE(expected.ok());
  const RowPlan<T> plan(n, *kernels);
  std::vector<std::byte> scratch(static_cast<size_t>(RowPlan<T>::ScratchBytes(n)) + 64);
  auto* aligned =
      reinterpret_cast<std::byte*>((reinterpret_cast<uintptr_t>(scratch.data()) + 63) / 64 * 64);
  Literal there(operands[0].shape()), back(operands[0].shape());
  plan.Run(operands[0].values<T>().data(), there.values<T>().data(), false, T(1), aligned);
  plan.Run(there.values<T>().data(), back.values<T>().data(), true, T(1) / static_cast<T>(n),
           aligned);
  const double bound = std::numeric_limits<T>::epsilon() * (1 + 0.4 * std::log2(n));
  EXPECT_LT(RelativeError(*expected, there), bound) << kernels->name << ", " << n;
  EXPECT_LT(RelativeError(operands[0], back), 2 * bound) << kernels->name << ", " << n;
}

TEST(Fft, AllKindsOfVectors) {
  for (Vectors vectors : {Vectors::kBase, Vectors::kAvx2, Vectors::kAvx512}) {
    for (int64_t n = 1; n <= 200; n += n < 70 ? 1 : 13) {
      CheckKernels<float>(vectors, n);
      CheckKernels<double>(vectors, n);
    }
    for (int64_t n : {1000, 1009, 1024, 2187, 3125, 7 * 7 * 7 * 7, 11 * 13 * 17, 4096, 30030}) {
      CheckKernels<float>(vectors, n);
      CheckKernels<double>(vectors, n);
    }
  }
}

TEST(Fft, RootsAreExactWhereTheyCanBe) {
  const runtime::lib::fft::Roots roots(24);
  EXPECT_EQ(roots(0), std::complex<long double>(1, 0));
  EXPECT_EQ(roots(6), std::complex<long double>(0, -1));
  EXPECT_EQ(roots(12), std::complex<long double>(-1, 0));
  EXPECT_EQ(roots(18), std::complex<long double>(0, 1));
  EXPECT_EQ(roots(3).real(), -roots(3).imag());
  EXPECT_NEAR(static_cast<double>(roots(4).real()), 0.5, 1e-18);
}

// Imaginary parts of numbers that must be real are not read.
TEST(Fft, InverseOfRealIgnoresImaginaryParts) {
  auto module = ir::ParseOrDie(
      "ENTRY e { x = c64[3] parameter(0) ROOT y = fft(x), fft_type=IRFFT, fft_length={4} }");
  std::vector<Literal> operands;
  operands.emplace_back(Shape(ElementType::kC64, {3}));
  auto x = operands[0].values<std::complex<float>>();
  x[0] = {4, 100};
  x[1] = {0, 2};
  x[2] = {8, -7};
  auto y = CallLibrary(*module->entry()->root(), operands, testing::Pool());
  ASSERT_TRUE(y.ok());
  EXPECT_EQ(y->ToString(), "{3, -2, 3, 0}");
}

// What a damaged program could ask for.
TEST(Fft, RefusesWhatDoesNotFit) {
  auto make = [](std::vector<Shape> operands, std::vector<Shape> results, std::string attributes) {
    const runtime::lib::Entry* entry = runtime::lib::FindInLibrary("kiln.fft");
    CallSignature signature{std::move(operands), std::move(results), 0, std::move(attributes)};
    auto made = entry->make(signature);
    return made.ok() ? std::string("OK") : made.status().ToString();
  };
  const Shape c(ElementType::kC64, {4, 8}), half(ElementType::kC64, {4, 5}),
      real(ElementType::kF32, {4, 8}), wide(ElementType::kF64, {4, 8});
  EXPECT_EQ(make({c}, {c}, "type=FFT length=8"), "OK");
  EXPECT_EQ(make({real}, {half}, "type=RFFT length=4,8"), "OK");
  for (const std::string& text :
       {make({c}, {c}, "type=FFT length=7"), make({c}, {half}, "type=FFT length=8"),
        make({real}, {c}, "type=RFFT length=8"), make({wide}, {half}, "type=RFFT length=8"),
        make({half}, {wide}, "type=IRFFT length=8"), make({c}, {c}, "type=FFT length=1,4,8"),
        make({c}, {c}, "type=FFT length=-8"), make({c}, {c}, ""), make({c, c}, {c}, "type=FFT"),
        make({real}, {real}, "type=FFT length=8")}) {
    EXPECT_TRUE(text.starts_with("INVALID_ARGUMENT: fft: the library has no transform")) << text;
  }
}

}  // namespace
}  // namespace kiln
