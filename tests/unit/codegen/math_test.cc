// Every function of the math library against a reference in higher precision, at a sample of all
// bit patterns of f32 and f64. math_f32_test.cc takes all of them, through whole programs.

#include <gtest/gtest.h>

#include <bit>
#include <cfloat>
#include <cmath>
#include <functional>
#include <memory>
#include <random>
#include <utility>
#include <vector>

#include "codegen/math/math.h"
#include "interp/special.h"
#include "llvm/ExecutionEngine/Orc/LLJIT.h"
#include "llvm/IR/Module.h"
#include "llvm/IR/Verifier.h"
#include "llvm/Support/TargetSelect.h"
#include "llvm/TargetParser/Host.h"

namespace kiln::codegen {
namespace {

using Emitter = std::function<llvm::Value*(MathEmitter&, llvm::Value*, llvm::Value*)>;
template <typename T>
using Loop = void (*)(const T*, const T*, T*, int64_t);

// void f(x, y, out, n): n values, `width` at a time.
template <typename T>
class Compiled {
 public:
  Compiled(const Emitter& emit, int width, bool fma) {
    llvm::InitializeNativeTarget();
    llvm::InitializeNativeTargetAsmPrinter();
    auto context = std::make_unique<llvm::LLVMContext>();
    auto module = std::make_unique<llvm::Module>("math", *context);
    llvm::IRBuilder<> b(*context);
    llvm::Type* scalar = sizeof(T) == 8 ? b.getDoubleTy() : b.getFloatTy();
    llvm::Type* type = scalar;
    if (width > 1) type = llvm::FixedVectorType::get(scalar, width);
    llvm::Type* p = b.getPtrTy();
    auto* f = llvm::Function::Create(
        llvm::FunctionType::get(b.getVoidTy(), {p, p, p, b.getInt64Ty()}, false),
        llvm::Function::ExternalLinkage, "f", *module);
    f->addFnAttr("prefer-vector-width", "512");
    auto* entry = llvm::BasicBlock::Create(*context, "entry", f);
    auto* body = llvm::BasicBlock::Create(*context, "body", f);
    auto* end = llvm::BasicBlock::Create(*context, "end", f);
    b.SetInsertPoint(entry);
    b.CreateBr(body);
    b.SetInsertPoint(body);
    auto* i = b.CreatePHI(b.getInt64Ty(), 2);
    i->addIncoming(b.getInt64(0), entry);
    auto at = [&](int argument) { return b.CreateGEP(scalar, f->getArg(argument), i); };
    llvm::Align align(sizeof(T));
    MathEmitter math(b, {fma});
    llvm::Value* y = emit(math, b.CreateAlignedLoad(type, at(0), align),
                          b.CreateAlignedLoad(type, at(1), align));
    b.CreateAlignedStore(y, at(2), align);
    llvm::Value* next = b.CreateAdd(i, b.getInt64(width));
    i->addIncoming(next, b.GetInsertBlock());
    b.CreateCondBr(b.CreateICmpSLT(next, f->getArg(3)), body, end);
    b.SetInsertPoint(end);
    b.CreateRetVoid();
    EXPECT_FALSE(llvm::verifyModule(*module, &llvm::errs()));
    jit_ = llvm::cantFail(llvm::orc::LLJITBuilder().create());
    llvm::cantFail(jit_->addIRModule({std::move(module), std::move(context)}));
    loop_ = llvm::cantFail(jit_->lookup("f")).toPtr<Loop<T>>();
  }
  void operator()(const std::vector<T>& x, const std::vector<T>& y, std::vector<T>& out) {
    loop_(x.data(), y.data(), out.data(), static_cast<int64_t>(x.size()));
  }

 private:
  std::unique_ptr<llvm::orc::LLJIT> jit_;
  Loop<T> loop_;
};

// Distance in steps of the representable numbers; 0 between any two NaNs.
template <typename T, typename Bits>
double UlpDistance(T a, T b) {
  if (std::isnan(a) || std::isnan(b)) return std::isnan(a) && std::isnan(b) ? 0 : 1e30;
  // In 128 bits: the difference of two int64 needs 65.
  auto order = [](T v) {
    auto bits = std::bit_cast<Bits>(v);
    __int128 magnitude = bits & std::numeric_limits<Bits>::max();
    return bits < 0 ? -magnitude : magnitude;
  };
  __int128 distance = order(a) - order(b);
  return static_cast<double>(distance < 0 ? -distance : distance);
}

struct Function {
  const char* name;
  Emitter emit;
  long double (*reference)(long double, long double);
};

const Function kFunctions[] = {
    {"exp", [](auto& m, auto* x, auto*) { return m.Exp(x); },
     [](long double x, long double) { return expl(x); }},
    {"expm1", [](auto& m, auto* x, auto*) { return m.Expm1(x); },
     [](long double x, long double) { return expm1l(x); }},
    {"log", [](auto& m, auto* x, auto*) { return m.Log(x); },
     [](long double x, long double) { return logl(x); }},
    {"log1p", [](auto& m, auto* x, auto*) { return m.Log1p(x); },
     [](long double x, long double) { return log1pl(x); }},
    {"tanh", [](auto& m, auto* x, auto*) { return m.Tanh(x); },
     [](long double x, long double) { return tanhl(x); }},
    {"logistic", [](auto& m, auto* x, auto*) { return m.Logistic(x); },
     [](long double x, long double) {
       return x < 0 ? expl(x) / (1 + expl(x)) : 1 / (1 + expl(-x));
     }},
    {"sqrt", [](auto& m, auto* x, auto*) { return m.Sqrt(x); },
     [](long double x, long double) { return sqrtl(x); }},
    {"rsqrt", [](auto& m, auto* x, auto*) { return m.Rsqrt(x); },
     [](long double x, long double) { return 1 / sqrtl(x); }},
    {"erfc", [](auto& m, auto* x, auto*) { return m.Erfc(x); },
     [](long double x, long double) { return erfcl(x); }},
    {"erf_inv", [](auto& m, auto* x, auto*) { return m.ErfInv(x); },
     [](long double x, long double) { return interp::ErfInv(x); }},
    {"i1e", [](auto& m, auto* x, auto*) { return m.BesselI1e(x); },
     [](long double x, long double) { return interp::BesselI1e(x); }},
    {"pow", [](auto& m, auto* x, auto* y) { return m.Pow(x, y); },
     [](long double x, long double y) { return powl(x, y); }},
    {"fmod", [](auto& m, auto* x, auto* y) { return m.Fmod(x, y); },
     [](long double x, long double y) { return fmodl(x, y); }},
};

template <typename T, typename Bits>
void Check(const Function& f, const std::vector<T>& x, const std::vector<T>& y, double bound) {
  std::vector<T> vector_out(x.size()), scalar_out(x.size()), plain_out(x.size());
  int width = 64 / sizeof(T);
  Compiled<T>(f.emit, width, true)(x, y, vector_out);
  Compiled<T>(f.emit, 1, true)(x, y, scalar_out);
  Compiled<T>(f.emit, width, false)(x, y, plain_out);
  double worst = 0, worst_plain = 0;
  size_t worst_at = 0;
  for (size_t i = 0; i < x.size(); ++i) {
    T expected = static_cast<T>(f.reference(x[i], y[i]));
    double error = UlpDistance<T, Bits>(vector_out[i], expected);
    if (error > worst) {
      worst = error;
      worst_at = i;
    }
    worst_plain = std::max(worst_plain, UlpDistance<T, Bits>(plain_out[i], expected));
    // Scalar and vector code agree to the bit, NaNs' payloads apart.
    if (!(std::isnan(vector_out[i]) && std::isnan(scalar_out[i]))) {
      ASSERT_EQ(std::bit_cast<Bits>(vector_out[i]), std::bit_cast<Bits>(scalar_out[i]))
          << f.name << "(" << x[i] << ", " << y[i] << ")";
    }
  }
  printf("  %-9s %s: %g ULP, without FMA %g\n", f.name, sizeof(T) == 8 ? "f64" : "f32", worst,
         worst_plain);
  EXPECT_LE(worst, bound) << f.name << "(" << x[worst_at] << ", " << y[worst_at]
                          << ") = " << vector_out[worst_at];
  EXPECT_LE(worst_plain, bound) << f.name << " without FMA";
}

bool IsBinary(const Function& f) {
  return std::string(f.name) == "pow" || std::string(f.name) == "fmod";
}

class Math : public ::testing::TestWithParam<int> {};

TEST_P(Math, F32WithinThreeUlp) {
  const Function& f = kFunctions[GetParam()];
  uint64_t stride = IsBinary(f) ? 40009 : 4099;
  std::mt19937 random(7);
  constexpr size_t kChunk = 1 << 22;
  std::vector<float> x, y;
  auto flush = [&] {
    while (x.size() % 16 != 0) {
      x.push_back(1);
      y.push_back(1);
    }
    Check<float, int32_t>(f, x, y, 3);
    x.clear();
    y.clear();
  };
  const float special[] = {0.0f,   -0.0f,    1.0f,      -1.0f,   0.5f,    2.0f,    3.0f,
                           -2.0f,  INFINITY, -INFINITY, NAN,     FLT_MIN, FLT_MAX, -FLT_MAX,
                           1e-45f, 88.7f,    -87.3f,    -103.9f, 1e10f};
  for (float a : special) {
    for (float b : special) {
      x.push_back(a);
      y.push_back(b);
    }
  }
  for (uint64_t bits = 0; bits < (1ull << 32); bits += stride) {
    x.push_back(std::bit_cast<float>(static_cast<uint32_t>(bits)));
    // Second operands of pow and fmod: of like size, and of any.
    float other = std::bit_cast<float>(static_cast<uint32_t>(random()));
    if (random() % 2) other = static_cast<float>(static_cast<int>(random() % 2001) - 1000) / 16;
    y.push_back(other);
    if (x.size() >= kChunk) flush();
  }
  flush();
}

TEST_P(Math, F64WithinThreeUlp) {
  const Function& f = kFunctions[GetParam()];
  std::mt19937_64 random(11);
  std::vector<double> x, y;
  const double special[] = {0.0,       -0.0, 1.0,     -1.0,    0.5,    2.0,   3.0,    INFINITY,
                            -INFINITY, NAN,  DBL_MIN, DBL_MAX, 5e-324, 709.7, -745.1, 1e300};
  for (double a : special) {
    for (double b : special) {
      x.push_back(a);
      y.push_back(b);
    }
  }
  std::uniform_real_distribution<double> modest(-50, 50);
  int count = IsBinary(f) ? 20000 : 200000;
  for (int i = 0; i < count; ++i) {
    x.push_back(i % 2 ? modest(random) : std::bit_cast<double>(random()));
    if (i % 4 == 1) x.back() = std::ldexp(x.back(), -static_cast<int>(random() % 60));
    if (i % 8 == 3) x.back() = std::abs(x.back());
    y.push_back(i % 3 ? modest(random) : std::bit_cast<double>(random()));
  }
  while (x.size() % 8 != 0) {
    x.push_back(1);
    y.push_back(1);
  }
  Check<double, int64_t>(f, x, y, 3);
}

// The instructions that a function is for a vector of 8, and the divisions among them.
struct Code {
  int64_t instructions = 0, divisions = 0;
};
Code CodeOf(const Emitter& emit) {
  llvm::LLVMContext context;
  llvm::Module module("math", context);
  llvm::IRBuilder<> b(context);
  llvm::Type* type = llvm::FixedVectorType::get(b.getFloatTy(), 8);
  auto* f = llvm::Function::Create(llvm::FunctionType::get(type, {type, type}, false),
                                   llvm::Function::ExternalLinkage, "f", module);
  b.SetInsertPoint(llvm::BasicBlock::Create(context, "entry", f));
  MathEmitter math(b, {.has_fma = true});
  b.CreateRet(emit(math, f->getArg(0), f->getArg(1)));
  Code code;
  for (const llvm::BasicBlock& block : *f) {
    for (const llvm::Instruction& i : block) {
      code.instructions += 1;
      code.divisions += i.getOpcode() == llvm::Instruction::FDiv ? 1 : 0;
    }
  }
  return code;
}

// Operands that lie in a known range need neither limits nor a power of two in two factors.
TEST(MathCode, IsShort) {
  const std::pair<Emitter, int64_t> most[] = {
      {[](auto& m, auto* x, auto*) { return m.Tanh(x); }, 27},
      {[](auto& m, auto* x, auto*) { return m.Cosh(x); }, 26},
      {[](auto& m, auto* x, auto*) { return m.Erf(x); }, 41},
      {[](auto& m, auto* x, auto*) { return m.Logistic(x); }, 30},
  };
  for (const auto& [emit, instructions] : most) {
    EXPECT_LE(CodeOf(emit).instructions, instructions);
  }
  EXPECT_EQ(CodeOf([](auto& m, auto* x, auto*) { return m.Log(x); }).divisions, 0);
}

INSTANTIATE_TEST_SUITE_P(All, Math, ::testing::Range(0, static_cast<int>(std::size(kFunctions))),
                         [](const auto& info) { return kFunctions[info.param].name; });

}  // namespace
}  // namespace kiln::codegen
