// Functions of f32 by instructions that AVX-512 has for them: exponents and mantissas taken apart
// and put together with all their special cases (vgetexp, vgetmant, vscalef), tables of 32 floats
// in two registers (vpermi2ps), and inverses to 14 bits (vrcp14). Scalars go through the same
// instructions, so that they have the same bits.

#include "codegen/math/math.h"
#include "codegen/math/tables.h"
#include "llvm/IR/IntrinsicsX86.h"
#include "llvm/IR/Module.h"

namespace kiln::codegen {

using llvm::Value;

namespace {

// The current rounding direction, with exceptions masked.
constexpr uint32_t kCurrentDirection = 4;

int Lanes(Value* x) {
  auto* vector = llvm::dyn_cast<llvm::FixedVectorType>(x->getType());
  return vector ? static_cast<int>(vector->getNumElements()) : 1;
}

// The lanes of `x` from `first` on, with zeros where it has none.
Value* Widened(llvm::IRBuilderBase& b, Value* x, int first, int width) {
  int lanes = Lanes(x);
  if (lanes == width) return x;
  llvm::Type* scalar = x->getType()->getScalarType();
  auto* zeros = llvm::Constant::getNullValue(
      llvm::FixedVectorType::get(scalar, static_cast<unsigned>(lanes == 1 ? width : lanes)));
  if (lanes == 1) return b.CreateInsertElement(zeros, x, uint64_t{0});
  std::vector<int> order;
  for (int i = first; i < first + width; ++i) order.push_back(std::min(i, lanes));
  return b.CreateShuffleVector(x, zeros, order);
}

}  // namespace

// f on vectors of 4, 8 or 16 lanes, for operands of any width.
Value* MathEmitter::OnVectors(std::initializer_list<Value*> operands, int least,
                              const std::function<Value*(const std::vector<Value*>&)>& f) {
  Value* like = *operands.begin();
  int lanes = Lanes(like);
  int width = least;
  while (width < std::min(lanes, 16)) width *= 2;
  std::vector<Value*> parts;
  for (int first = 0; first < lanes; first += width) {
    std::vector<Value*> widened;
    for (Value* x : operands) widened.push_back(Widened(b_, x, first, width));
    parts.push_back(f(widened));
  }
  if (lanes == 1) return b_.CreateExtractElement(parts[0], uint64_t{0});
  std::vector<int> order;
  if (parts.size() == 1) {
    if (width == lanes) return parts[0];
    for (int i = 0; i < lanes; ++i) order.push_back(i);
    return b_.CreateShuffleVector(parts[0], order);
  }
  while (parts.size() > 1) {
    std::vector<Value*> joined;
    for (size_t i = 0; i + 1 < parts.size(); i += 2) {
      order.clear();
      for (int k = 0; k < 2 * Lanes(parts[i]); ++k) order.push_back(k);
      joined.push_back(b_.CreateShuffleVector(parts[i], parts[i + 1], order));
    }
    parts = std::move(joined);
  }
  return parts[0];
}

namespace {

struct ByWidth {
  llvm::Intrinsic::ID of4, of8, of16;

  Value* Call(llvm::IRBuilderBase& b, Value* like, std::vector<Value*> arguments,
              bool rounds) const {
    int lanes = Lanes(like);
    bool masks16 = lanes == 16;
    arguments.push_back(llvm::Constant::getNullValue(like->getType()));
    llvm::Type* mask = b.getIntNTy(masks16 ? 16 : 8);
    arguments.push_back(llvm::Constant::getAllOnesValue(mask));
    if (masks16 && rounds) arguments.push_back(b.getInt32(kCurrentDirection));
    return b.CreateIntrinsic(lanes == 16 ? of16 : lanes == 8 ? of8 : of4, {}, arguments);
  }
};

constexpr ByWidth kScalef = {llvm::Intrinsic::x86_avx512_mask_scalef_ps_128,
                             llvm::Intrinsic::x86_avx512_mask_scalef_ps_256,
                             llvm::Intrinsic::x86_avx512_mask_scalef_ps_512};
constexpr ByWidth kGetExp = {llvm::Intrinsic::x86_avx512_mask_getexp_ps_128,
                             llvm::Intrinsic::x86_avx512_mask_getexp_ps_256,
                             llvm::Intrinsic::x86_avx512_mask_getexp_ps_512};
constexpr ByWidth kGetMant = {llvm::Intrinsic::x86_avx512_mask_getmant_ps_128,
                              llvm::Intrinsic::x86_avx512_mask_getmant_ps_256,
                              llvm::Intrinsic::x86_avx512_mask_getmant_ps_512};
constexpr ByWidth kRange = {llvm::Intrinsic::x86_avx512_mask_range_ps_128,
                            llvm::Intrinsic::x86_avx512_mask_range_ps_256,
                            llvm::Intrinsic::x86_avx512_mask_range_ps_512};
constexpr ByWidth kReduce = {llvm::Intrinsic::x86_avx512_mask_reduce_ps_128,
                             llvm::Intrinsic::x86_avx512_mask_reduce_ps_256,
                             llvm::Intrinsic::x86_avx512_mask_reduce_ps_512};
constexpr ByWidth kRcp14 = {llvm::Intrinsic::x86_avx512_rcp14_ps_128,
                            llvm::Intrinsic::x86_avx512_rcp14_ps_256,
                            llvm::Intrinsic::x86_avx512_rcp14_ps_512};

}  // namespace

// vrange tells zeros apart, and prefers numbers to NaNs.
Value* MathEmitter::ExtremumOfNumbers(Value* x, Value* y, bool maximum) {
  constexpr uint32_t kSignOfResult = 1 << 2;
  return OnVectors({x, y}, 4, [&](const std::vector<Value*>& v) {
    return kRange.Call(b_, v[0], {v[0], v[1], b_.getInt32(kSignOfResult | (maximum ? 1 : 0))},
                       true);
  });
}

// The sum has the NaNs.
Value* MathEmitter::Extremum(Value* x, Value* y, bool maximum) {
  Value* number = ExtremumOfNumbers(x, y, maximum);
  return b_.CreateSelect(b_.CreateFCmpUNO(x, y), b_.CreateFAdd(x, y), number);
}

// x 2^n for an integral n, rounded once.
Value* MathEmitter::ScaleByPower(Value* x, Value* n) {
  return OnVectors({x, n}, 4, [&](const std::vector<Value*>& v) {
    return kScalef.Call(b_, v[0], {v[0], v[1]}, true);
  });
}

// floor(log2|x|): -inf of 0, inf of an infinity.
Value* MathEmitter::ExponentOf(Value* x) {
  return OnVectors(
      {x}, 4, [&](const std::vector<Value*>& v) { return kGetExp.Call(b_, v[0], {v[0]}, true); });
}

// x / 2^k within [3/4, 3/2); 1 of zeros and infinities, and NaN below 0.
Value* MathEmitter::MantissaOf(Value* x) {
  constexpr uint32_t kFromThreeQuarters = 3, kNanBelowZero = 3 << 2;
  return OnVectors({x}, 4, [&](const std::vector<Value*>& v) {
    return kGetMant.Call(b_, v[0], {v[0], b_.getInt32(kFromThreeQuarters | kNanBelowZero)}, true);
  });
}

// x less the nearest multiple of 2^-bits, the even one of two.
Value* MathEmitter::RestOf(Value* x, uint32_t bits) {
  return OnVectors({x}, 4, [&](const std::vector<Value*>& v) {
    return kReduce.Call(b_, v[0], {v[0], b_.getInt32(bits << 4)}, true);
  });
}

// 1 / x for an x that is normal, and so is the result: to 14 bits, and one step of Newton's, which
// leaves less than an ULP.
Value* MathEmitter::InverseOfNormal(Value* x) {
  Value* r = OnVectors(
      {x}, 4, [&](const std::vector<Value*>& v) { return kRcp14.Call(b_, v[0], {v[0]}, false); });
  Value* e = MulAdd(b_.CreateFNeg(x), r, Number(x, 1.0));
  return MulAdd(r, e, r);
}

// table[index mod 32].
Value* MathEmitter::LookUp(std::span<const float, 32> table, Value* index) {
  llvm::LLVMContext& context = b_.getContext();
  auto array = [&](size_t first, size_t count) {
    return llvm::ArrayRef<float>(table.data() + first, count);
  };
  if (Lanes(index) == 1) {
    auto* data = llvm::ConstantDataArray::get(context, array(0, 32));
    llvm::Module* module = b_.GetInsertBlock()->getModule();
    llvm::GlobalVariable* global = nullptr;
    for (llvm::GlobalVariable& g : module->globals()) {
      if (g.hasInitializer() && g.getInitializer() == data) global = &g;
    }
    if (!global) {
      global = new llvm::GlobalVariable(*module, data->getType(), true,
                                        llvm::GlobalValue::PrivateLinkage, data, "kiln.table");
    }
    Value* at = b_.CreateGEP(b_.getFloatTy(), global,
                             b_.CreateZExt(b_.CreateAnd(index, b_.getInt32(31)), b_.getInt64Ty()));
    return b_.CreateAlignedLoad(b_.getFloatTy(), at, llvm::Align(4));
  }
  Value* low = llvm::ConstantDataVector::get(context, array(0, 16));
  Value* high = llvm::ConstantDataVector::get(context, array(16, 16));
  return OnVectors({index}, 16, [&](const std::vector<Value*>& v) {
    return b_.CreateIntrinsic(llvm::Intrinsic::x86_avx512_vpermi2var_ps_512, {}, {low, v[0], high});
  });
}

// x = n ln2 + r, and e^r by Horner from 1: its coefficients are minimax ones (Sollya's fpminimax).
// A result of 0 that came of a product that underflows would cost ten times the rest; it is masked.
Value* MathEmitter::ExpAvx512(Value* x, int power, bool may_overflow) {
  Value* high = Number(x, 90.0);
  Value* stays = b_.CreateFCmpUGE(x, Number(x, -104.0));
  if (may_overflow) x = b_.CreateSelect(b_.CreateFCmpOGT(x, high), high, x);
  Value* magic = Number(x, 0x1.8p23);
  Value* n = b_.CreateFSub(MulAdd(x, Number(x, 0x1.71547652b82fep0), magic), magic);
  Value* minus = b_.CreateFNeg(n);
  Value* r = MulAdd(minus, Number(x, 0x1.63p-1), x);
  r = MulAdd(minus, Number(x, -0x1.bd0105c610ca8p-13), r);
  Value* sum = Polynomial(
      r, {1.0, 1.0, 0x1.fffff8p-2, 0x1.55548cp-3, 0x1.555b82p-5, 0x1.123d02p-7, 0x1.686aa2p-10});
  if (power != 0) n = b_.CreateFAdd(n, Number(x, power));
  return b_.CreateSelect(stays, ScaleByPower(sum, n), Number(x, 0.0));
}

// 2^n / (2^n + e^-r) with x = n ln2 + r: nothing overflows, and small results keep their digits.
Value* MathEmitter::LogisticAvx512(Value* x) {
  Value *low = Number(x, -106.0), *high = Number(x, 20.0);
  Value* stays = b_.CreateFCmpUGE(x, Number(x, -104.0));
  x = b_.CreateSelect(b_.CreateFCmpOLT(x, low), low, x);
  x = b_.CreateSelect(b_.CreateFCmpOGT(x, high), high, x);
  Value* magic = Number(x, 0x1.8p23);
  Value* n = b_.CreateFSub(MulAdd(x, Number(x, 0x1.71547652b82fep0), magic), magic);
  Value* minus = b_.CreateFNeg(n);
  Value* r = MulAdd(minus, Number(x, 0x1.63p-1), x);
  r = MulAdd(minus, Number(x, -0x1.bd0105c610ca8p-13), r);
  Value* inverse = Polynomial(
      r, {1.0, -1.0, 0x1.fffff8p-2, -0x1.55548cp-3, 0x1.555b82p-5, -0x1.123d02p-7, 0x1.686aa2p-10});
  Value* zero = Number(x, 0.0);
  Value* power = b_.CreateSelect(stays, ScaleByPower(Number(x, 1.0), n), zero);
  Value* result = ScaleByPower(InverseOfNormal(b_.CreateFAdd(power, inverse)), n);
  return b_.CreateSelect(stays, result, zero);
}

// log(x) + power ln2 + rest; power and rest may be null. x = 2^k (1 + f), 3/4 <= 1 + f < 3/2.
Value* MathEmitter::LogAvx512(Value* x, Value* power, Value* rest) {
  Value* m = MantissaOf(x);
  // vgetexp counts from mantissas of 1 on: those below are of the next power.
  Value* k = b_.CreateFSub(ExponentOf(x), ExponentOf(m));
  if (power) k = b_.CreateFAdd(k, power);
  Value* f = b_.CreateFSub(m, Number(x, 1.0));
  // The lower part of ln2 is positive, as the upper is: k may be infinite.
  Value* low = b_.CreateFMul(k, Number(x, kLn2Low));
  if (rest) {
    // Where it is NaN, of 0 or an infinity, it changes nothing.
    Value* known = b_.CreateFCmpORD(rest, rest);
    low = b_.CreateFAdd(low, b_.CreateSelect(known, rest, Number(x, 0.0)));
  }
  Value* tail = MulAdd(b_.CreateFMul(f, f), LogTail(f), low);
  return MulAdd(k, Number(x, kLn2High), b_.CreateFAdd(f, tail));
}

namespace {

constexpr double kLargestTanh = 15.9;  // within the last interval, where tanh is 1

}  // namespace

// A polynomial of degree 5 around the point that the interval of |x| has.
Value* MathEmitter::TanhAvx512(Value* x) {
  Value *low = Number(x, 0x1p-4), *high = Number(x, kLargestTanh);
  Value* a = Abs(x);
  a = b_.CreateSelect(b_.CreateFCmpOGT(a, high), high, a);
  Value* from = b_.CreateSelect(b_.CreateFCmpOLT(a, low), low, a);
  Value* index = b_.CreateLShr(b_.CreateBitCast(from, IntegerType(x)), Integer(x, 21));
  Value* d = b_.CreateFSub(a, LookUp(tables::kTanhPoints, index));
  Value* sum = LookUp(tables::kTanh[5], index);
  for (int k = 4; k >= 0; --k) sum = MulAdd(sum, d, LookUp(tables::kTanh[k], index));
  return b_.CreateBinaryIntrinsic(llvm::Intrinsic::copysign, sum, x);
}

// A polynomial of degree 4 around the nearest multiple of 1/8.
Value* MathEmitter::ErfAvx512(Value* x) {
  Value* high = Number(x, 3.9296875);  // erf of it rounds to 1
  Value* a = Abs(x);
  a = b_.CreateSelect(b_.CreateFCmpOGT(a, high), high, a);
  // Adding 1.5 * 2^20 rounds to a multiple of 1/8, and leaves its number in the low bits.
  Value* index = b_.CreateBitCast(b_.CreateFAdd(a, Number(x, 0x1.8p20)), IntegerType(x));
  Value* d = RestOf(a, 3);
  Value* sum = LookUp(tables::kErf[4], index);
  for (int k = 3; k >= 0; --k) sum = MulAdd(sum, d, LookUp(tables::kErf[k], index));
  return b_.CreateBinaryIntrinsic(llvm::Intrinsic::copysign, sum, x);
}

}  // namespace kiln::codegen
