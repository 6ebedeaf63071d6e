// Matrix products of warps on the emulated GPU. Where a lane has which element is written here as
// the PTX ISA has it, section by section ("Matrix Fragments for mma.m16n8k8" and so on), and apart
// from how the emulator does it.

#include <gtest/gtest.h>

#include <array>
#include <cmath>
#include <cstring>
#include <functional>

#include "base/strings.h"
#include "support/emulated.h"
#include "tensor/small_float.h"

namespace kiln {
namespace {

using codegen::GpuPrimitives;
using codegen::Mma;
using llvm::Value;
using testing::HandWritten;
using testing::SpanOf;
using B = llvm::IRBuilder<>;

struct Place {
  int row, column;
};
// Of element i of a lane, by groupID = lane >> 2 and threadID_in_group = lane % 4.
using Where = std::function<Place(int group, int in_group, int i)>;

struct Fragments {
  Mma mma;
  int m, n, k;
  int a_elements, b_elements, c_elements;
  int bits;  // of an element of a and b
  Where a, b, c;
};

// C and D of all shapes with m = 16: row = groupID for c0 and c1, groupID + 8 for c2 and c3;
// column = threadID_in_group * 2 + (i & 1).
Place WideC(int group, int in_group, int i) {
  return {i < 2 ? group : group + 8, in_group * 2 + (i & 1)};
}

std::vector<Fragments> AllFragments() {
  std::vector<Fragments> all;
  all.push_back({Mma::kM16N8K8F16, 16, 8, 8, 4, 2, 4, 16,
                 [](int g, int t, int i) -> Place {
                   return {i < 2 ? g : g + 8, t * 2 + (i & 1)};
                 },
                 [](int g, int t, int i) -> Place {
                   return {t * 2 + i, g};
                 },
                 WideC});
  Where a16 = [](int g, int t, int i) -> Place {
    bool upper = i < 2 || (4 <= i && i < 6);
    return {upper ? g : g + 8, i < 4 ? t * 2 + (i & 1) : t * 2 + (i & 1) + 8};
  };
  Where b16 = [](int g, int t, int i) -> Place {
    return {i < 2 ? t * 2 + (i & 1) : t * 2 + (i & 1) + 8, g};
  };
  all.push_back({Mma::kM16N8K16F16, 16, 8, 16, 8, 4, 4, 16, a16, b16, WideC});
  all.push_back({Mma::kM16N8K16BF16, 16, 8, 16, 8, 4, 4, 16, a16, b16, WideC});
  all.push_back({Mma::kM16N8K8TF32, 16, 8, 8, 4, 2, 4, 32,
                 [](int g, int t, int i) -> Place {
                   return {i == 0 || i == 2 ? g : g + 8, i < 2 ? t : t + 4};
                 },
                 [](int g, int t, int i) -> Place {
                   return {i == 0 ? t : t + 4, g};
                 },
                 WideC});
  all.push_back({Mma::kM16N8K32S8, 16, 8, 32, 16, 8, 4, 8,
                 [](int g, int t, int i) -> Place {
                   bool upper = i < 4 || (8 <= i && i < 12);
                   return {upper ? g : g + 8, i < 8 ? t * 4 + (i & 3) : t * 4 + (i & 3) + 16};
                 },
                 [](int g, int t, int i) -> Place {
                   return {i < 4 ? t * 4 + (i & 3) : t * 4 + (i & 3) + 16, g};
                 },
                 WideC});
  all.push_back({Mma::kM8N8K4F64, 8, 8, 4, 1, 1, 2, 64,
                 [](int g, int t, int) -> Place {
                   return {g, t};
                 },
                 [](int g, int t, int) -> Place {
                   return {t, g};
                 },
                 [](int g, int t, int i) -> Place {
                   return {g, t * 2 + (i & 1)};
                 }});
  return all;
}

// The bits of a number as the product's operand, and the number that these are.
uint64_t Encode(Mma mma, double value) {
  switch (mma) {
    case Mma::kM16N8K8F16:
    case Mma::kM16N8K16F16:
      return Float16(value).bits();
    case Mma::kM16N8K16BF16:
      return BFloat16(value).bits();
    case Mma::kM16N8K8TF32:
      return std::bit_cast<uint32_t>(static_cast<float>(value));
    case Mma::kM16N8K32S8:
      return static_cast<uint8_t>(static_cast<int8_t>(value));
    case Mma::kM8N8K4F64:
      return std::bit_cast<uint64_t>(value);
  }
  return 0;
}

double Decode(Mma mma, uint64_t bits) {
  switch (mma) {
    case Mma::kM16N8K8F16:
    case Mma::kM16N8K16F16:
      return static_cast<double>(Float16::FromBits(static_cast<uint16_t>(bits)));
    case Mma::kM16N8K16BF16:
      return static_cast<double>(BFloat16::FromBits(static_cast<uint16_t>(bits)));
    case Mma::kM16N8K8TF32:
      // 10 bits of mantissa: the machine takes no notice of the others.
      return std::bit_cast<float>(static_cast<uint32_t>(bits) & ~0x1fffu);
    case Mma::kM16N8K32S8:
      return static_cast<int8_t>(bits);
    case Mma::kM8N8K4F64:
      return std::bit_cast<double>(bits);
  }
  return 0;
}

// Element i of a lane's registers, of which there are `words` of 32 bits.
void Put(std::vector<uint32_t>& memory, int lane, int words, int bits, int i, uint64_t value) {
  auto* first = reinterpret_cast<uint8_t*>(&memory[static_cast<size_t>(lane * words)]);
  std::memcpy(first + i * bits / 8, &value, static_cast<size_t>(bits) / 8);
}

TEST(EmulatedMma, FragmentsAreAsPtxHasThem) {
  for (const Fragments& f : AllFragments()) {
    const codegen::MmaShape& shape = codegen::ShapeOf(f.mma);
    SCOPED_TRACE(shape.name);
    EXPECT_EQ(std::make_tuple(shape.m, shape.n, shape.k), std::make_tuple(f.m, f.n, f.k));
    bool is_double = f.mma == Mma::kM8N8K4F64, is_integer = f.mma == Mma::kM16N8K32S8;
    HandWritten kernel(4, [&](B& b, GpuPrimitives& gpu, llvm::Function* function) {
      llvm::Type* in = is_double ? b.getDoubleTy() : static_cast<llvm::Type*>(b.getInt32Ty());
      llvm::Type* sum = is_double    ? b.getDoubleTy()
                        : is_integer ? static_cast<llvm::Type*>(b.getInt32Ty())
                                     : b.getFloatTy();
      auto address = [&](unsigned p, llvm::Type* type, int count, int i) {
        Value* first = b.CreateMul(gpu.Thread(), b.getInt64(static_cast<uint64_t>(count)));
        return b.CreateGEP(type, function->getArg(p),
                           b.CreateAdd(first, b.getInt64(static_cast<uint64_t>(i))));
      };
      auto load = [&](unsigned p, llvm::Type* type, int count) {
        std::vector<Value*> values;
        for (int i = 0; i < count; ++i) {
          values.push_back(b.CreateAlignedLoad(type, address(p, type, count, i), llvm::Align(4)));
        }
        return values;
      };
      auto d = gpu.MatrixProduct(f.mma, load(0, in, shape.a), load(1, in, shape.b),
                                 load(2, sum, shape.c));
      for (int i = 0; i < shape.c; ++i) {
        b.CreateAlignedStore(d[static_cast<size_t>(i)], address(3, sum, shape.c, i),
                             llvm::Align(4));
      }
    });
    int word = is_double ? 2 : 1;
    std::vector<uint32_t> a(static_cast<size_t>(32 * shape.a * word)),
        b(static_cast<size_t>(32 * shape.b * word)), c(static_cast<size_t>(32 * shape.c * word)),
        d(c.size());
    // Numbers that are different everywhere, some of which lose bits in the narrow types.
    std::vector<double> left(static_cast<size_t>(f.m * f.k)), right(static_cast<size_t>(f.k * f.n)),
        sums(static_cast<size_t>(f.m * f.n));
    auto number = [&](int i) {
      return is_integer ? (i * 37) % 255 - 127 : std::sin(i * 1.7 + 0.3) * 3;
    };
    std::vector<int> seen_a(left.size()), seen_b(right.size()), seen_c(sums.size());
    for (int lane = 0; lane < 32; ++lane) {
      int group = lane >> 2, in_group = lane % 4;
      for (int i = 0; i < f.a_elements; ++i) {
        Place p = f.a(group, in_group, i);
        auto at = static_cast<size_t>(p.row * f.k + p.column);
        uint64_t bits = Encode(f.mma, number(static_cast<int>(at)));
        left[at] = Decode(f.mma, bits);
        Put(a, lane, shape.a * word, f.bits, i, bits);
        ++seen_a[at];
      }
      for (int i = 0; i < f.b_elements; ++i) {
        Place p = f.b(group, in_group, i);
        auto at = static_cast<size_t>(p.row * f.n + p.column);
        uint64_t bits = Encode(f.mma, number(static_cast<int>(at) + 1000));
        right[at] = Decode(f.mma, bits);
        Put(b, lane, shape.b * word, f.bits, i, bits);
        ++seen_b[at];
      }
      for (int i = 0; i < f.c_elements; ++i) {
        Place p = f.c(group, in_group, i);
        auto at = static_cast<size_t>(p.row * f.n + p.column);
        double value = std::round(number(static_cast<int>(at) + 5000) * 16) / 16;
        sums[at] = value;
        uint64_t bits = is_double    ? std::bit_cast<uint64_t>(value)
                        : is_integer ? static_cast<uint32_t>(static_cast<int32_t>(value))
                                     : std::bit_cast<uint32_t>(static_cast<float>(value));
        Put(c, lane, shape.c * word, 32 * word, i, bits);
        ++seen_c[at];
      }
    }
    // Each element is in one place.
    for (const auto& seen : {seen_a, seen_b, seen_c}) {
      for (int count : seen) ASSERT_EQ(count, 1);
    }
    ASSERT_EQ(kernel.Run({1, 32}, {{SpanOf(a), SpanOf(b), SpanOf(c), SpanOf(d)}}).ToString(), "OK");
    for (int lane = 0; lane < 32; ++lane) {
      for (int i = 0; i < f.c_elements; ++i) {
        Place p = f.c(lane >> 2, lane % 4, i);
        double expected = sums[static_cast<size_t>(p.row * f.n + p.column)], size = 0;
        for (int k = 0; k < f.k; ++k) {
          double product = left[static_cast<size_t>(p.row * f.k + k)] *
                           right[static_cast<size_t>(k * f.n + p.column)];
          expected += product;
          size += std::abs(product);
        }
        const uint32_t* at = &d[static_cast<size_t>(lane * shape.c * word + i * word)];
        double actual;
        if (is_double) {
          std::memcpy(&actual, at, sizeof(actual));
        } else {
          actual = is_integer ? static_cast<int32_t>(*at) : std::bit_cast<float>(*at);
        }
        double bound = is_integer ? 0 : (size + 10) * (is_double ? 1e-15 : 2e-6);
        EXPECT_NEAR(actual, expected, bound) << "lane " << lane << ", element " << i;
      }
    }
  }
}

// The bits that tf32 has not are dropped, whatever they are.
TEST(EmulatedMma, LowBitsOfTf32AreIgnored) {
  auto product = [](uint32_t bits) {
    HandWritten kernel(2, [](B& b, GpuPrimitives& gpu, llvm::Function* f) {
      Value* x = b.CreateLoad(b.getInt32Ty(), f->getArg(0));
      Value* zero = llvm::ConstantFP::get(b.getFloatTy(), 0);
      std::vector<Value*> a(4, x), right(2, x), c(4, zero);
      Value* thread = gpu.Thread();
      b.CreateStore(gpu.MatrixProduct(Mma::kM16N8K8TF32, a, right, c)[0],
                    b.CreateGEP(b.getFloatTy(), f->getArg(1), thread));
    });
    std::vector<uint32_t> in = {bits};
    std::vector<float> out(32);
    EXPECT_EQ(kernel.Run({1, 32}, {{SpanOf(in), SpanOf(out)}}).ToString(), "OK");
    return out[7];
  };
  EXPECT_EQ(product(std::bit_cast<uint32_t>(1.5f)), 18.0f);
  EXPECT_EQ(product(std::bit_cast<uint32_t>(1.5f) | 0x1fff), 18.0f);
  EXPECT_NE(product(std::bit_cast<uint32_t>(1.5f) | 0x2000), 18.0f);
}

// ldmatrix: lane l has the elements 2 (l % 4) and the next of row l / 4 of each matrix, or of the
// column where it is transposed; rows are where lanes 8 i to 8 i + 7 say for matrix i.
TEST(EmulatedMma, LoadMatrix) {
  for (bool transposed : {false, true}) {
    HandWritten kernel(2, [&](B& b, GpuPrimitives& gpu, llvm::Function* f) {
      auto* four = llvm::FixedVectorType::get(b.getInt32Ty(), 4);
      Value *thread = gpu.Thread(), *shared = gpu.Shared();
      // Rows lie backwards.
      Value* place = b.CreateSub(b.getInt64(31), thread);
      Value* row =
          b.CreateAlignedLoad(four, b.CreateGEP(four, f->getArg(0), thread), llvm::Align(4));
      b.CreateAlignedStore(row, b.CreateGEP(four, shared, place), llvm::Align(16));
      gpu.Barrier();
      auto words = gpu.LoadMatrix(b.CreateGEP(four, shared, place), transposed);
      for (unsigned i = 0; i < 4; ++i) {
        Value* at = b.CreateAdd(b.CreateMul(thread, b.getInt64(4)), b.getInt64(i));
        b.CreateStore(words[i], b.CreateGEP(b.getInt32Ty(), f->getArg(1), at));
      }
    });
    std::vector<uint16_t> in(32 * 8), out(32 * 8);
    for (size_t i = 0; i < in.size(); ++i) in[i] = static_cast<uint16_t>(i * 3 + 1);
    ASSERT_EQ(kernel.Run({1, 32, 512}, {{SpanOf(in), SpanOf(out)}}).ToString(), "OK");
    for (size_t lane = 0; lane < 32; ++lane) {
      for (size_t matrix = 0; matrix < 4; ++matrix) {
        for (size_t half = 0; half < 2; ++half) {
          size_t row = lane / 4, column = 2 * (lane % 4) + half;
          if (transposed) std::swap(row, column);
          EXPECT_EQ(out[lane * 8 + matrix * 2 + half], in[(matrix * 8 + row) * 8 + column]);
        }
      }
    }
  }
}

}  // namespace
}  // namespace kiln
