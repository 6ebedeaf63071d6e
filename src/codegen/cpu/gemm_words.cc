// What one instruction multiplies in each lane: elements, or words of several narrow ones along k.
#include <numeric>

#include "codegen/cpu/gemm_internal.h"
#include "codegen/elemental.h"
#include "llvm/IR/Intrinsics.h"
#include "llvm/IR/IntrinsicsX86.h"

namespace kiln::codegen::gemm {

using kernel::GemmUnit;
using llvm::Value;

namespace {

// A word of four equal bytes, or a vector of them.
Value* Bytes(llvm::Type* like, uint8_t byte) {
  return llvm::ConstantInt::get(like, 0x01010101u * byte);
}

Value* DotBytes(Emitter& e, Value* u8, Value* s8, Value* accumulator) {
  return e.b.CreateIntrinsic(llvm::Intrinsic::x86_avx512_vpdpbusd_512, {}, {accumulator, u8, s8});
}

// Elements of two vectors in turn.
Value* Interleave(Emitter& e, Value* x, Value* y) {
  const auto lanes =
      static_cast<int>(llvm::cast<llvm::FixedVectorType>(x->getType())->getNumElements());
  std::vector<int> turns;
  for (int i = 0; i < lanes; ++i) turns.insert(turns.end(), {i, lanes + i});
  return e.b.CreateShuffleVector(x, y, turns);
}

// The words whose elements are those of the integers, the first one in the lowest bits.
Value* WordsOf(Emitter& e, std::vector<Value*> rows) {
  if (!rows[0]->getType()->isVectorTy()) {
    Value* word = e.b.getInt32(0);
    const auto bits = static_cast<unsigned>(32 / rows.size());
    for (size_t i = 0; i < rows.size(); ++i) {
      Value* wide = e.b.CreateZExt(rows[i], e.word);
      word = i == 0 ? wide : e.b.CreateOr(word, e.b.CreateShl(wide, bits * i));
    }
    return word;
  }
  const unsigned lanes = llvm::cast<llvm::FixedVectorType>(rows[0]->getType())->getNumElements();
  while (rows.size() > 1) {
    const auto bits = static_cast<unsigned>(64 / rows.size());
    llvm::Type* both = llvm::FixedVectorType::get(e.b.getIntNTy(bits), lanes);
    for (size_t i = 0; 2 * i < rows.size(); ++i) {
      rows[i] = e.b.CreateBitCast(Interleave(e, rows[2 * i], rows[2 * i + 1]), both);
    }
    rows.resize(rows.size() / 2);
  }
  return rows[0];
}

// One or two vectors of f32 as bf16. Like the unit it treats subnormal numbers as 0.
Value* RoundToBf16(Emitter& e, Value* x) {
  const int lanes = e.s.lanes;
  const auto count =
      static_cast<int>(llvm::cast<llvm::FixedVectorType>(x->getType())->getNumElements());
  if (count == lanes) {
    return e.b.CreateIntrinsic(llvm::Intrinsic::x86_avx512bf16_cvtneps2bf16_512, {}, {x});
  }
  std::vector<int> low(static_cast<size_t>(lanes)), high(low.size());
  std::iota(low.begin(), low.end(), 0);
  std::iota(high.begin(), high.end(), lanes);
  return e.b.CreateIntrinsic(llvm::Intrinsic::x86_avx512bf16_cvtne2ps2bf16_512, {},
                             {e.b.CreateShuffleVector(x, high), e.b.CreateShuffleVector(x, low)});
}

}  // namespace

Value* Emitter::MulAdd(Value* x, Value* y, Value* accumulator) {
  switch (s.unit) {
    case GemmUnit::kElement:
    case GemmUnit::kBf16Tile:
    case GemmUnit::kByteTile:
      break;
    case GemmUnit::kBf16Pair: {
      llvm::Type* pairs = llvm::FixedVectorType::get(b.getBFloatTy(), 2u * s.lanes);
      return b.CreateIntrinsic(llvm::Intrinsic::x86_avx512bf16_dpbf16ps_512, {},
                               {accumulator, b.CreateBitCast(x, pairs), b.CreateBitCast(y, pairs)});
    }
    case GemmUnit::kByteQuad: {
      const bool flips_a = s.kind == kernel::GemmKind::kOuter && kernel::FlipsBytes(p, s.unit);
      const bool signed_a = IsSigned(p.FactorOfA()) != flips_a;
      return signed_a ? DotBytes(*this, y, x, accumulator) : DotBytes(*this, x, y, accumulator);
    }
  }
  if (!IsFloat(p.type)) return b.CreateAdd(b.CreateMul(x, y), accumulator);
  // Without the instruction llvm.fma would be a call of the C library.
  if (!s.fma) return b.CreateFAdd(b.CreateFMul(x, y), accumulator);
  return b.CreateIntrinsic(llvm::Intrinsic::fma, {x->getType()}, {x, y, accumulator});
}

ElementType Emitter::FactorOf(Side side) const {
  if (s.unit == GemmUnit::kBf16Pair || s.unit == GemmUnit::kBf16Tile) return ElementType::kBF16;
  return side == Side::kA ? p.FactorOfA() : p.FactorOfB();
}

Value* Emitter::Flip(Value* words) { return b.CreateXor(words, Bytes(words->getType(), 0x80)); }

Value* Emitter::AddBytes(Side side, Value* words, Value* accumulator) {
  Value* ones = Bytes(words->getType(), 1);
  return IsSigned(FactorOf(side)) ? DotBytes(*this, ones, words, accumulator)
                                  : DotBytes(*this, words, ones, accumulator);
}

int64_t Emitter::FlippedBy() const { return IsSigned(p.FactorOfA()) ? -128 : 128; }

Value* Emitter::LoadNarrow(Side side, int lanes, const GemmPlace& place, Value* mask) {
  const ElementType to = FactorOf(side);
  const auto bits = static_cast<unsigned>(BitWidth(to));
  llvm::Type* type = b.getIntNTy(bits);
  if (lanes > 1) type = llvm::FixedVectorType::get(type, static_cast<unsigned>(lanes));
  if (TypeOf(side) == to && !PrologueOf(side)) {
    const llvm::Align align(bits / 8);
    if (mask == nullptr) return b.CreateAlignedLoad(type, place.pointer, align);
    return b.CreateMaskedLoad(type, place.pointer, align, mask, llvm::Constant::getNullValue(type));
  }
  Value* value = LoadElements(side, lanes, place, mask);
  if (IsInteger(to)) return b.CreateTrunc(value, type);
  if (lanes == s.lanes || lanes == 2 * s.lanes)
    return b.CreateBitCast(RoundToBf16(*this, value), type);
  const MathOptions options{s.fma, s.f16};
  value = ToMemory(b, EmitConvert(b, value, p.type, to, options), to, options);
  return b.CreateBitCast(value, type);
}

Value* Emitter::LoadAlong(Side side, int lanes, const GemmPlace& place, Value* mask) {
  if (group == 1) return LoadElements(side, lanes, place, mask);
  llvm::Type* type =
      lanes > 1 ? llvm::FixedVectorType::get(word, static_cast<unsigned>(lanes)) : word;
  return b.CreateBitCast(LoadNarrow(side, lanes * static_cast<int>(group), place, mask), type);
}

Value* Emitter::LoadAcross(Side side, int lanes, Value* pointer, Value* stride, Value* mask,
                           Value* left) {
  if (group == 1) return LoadElements(side, lanes, {pointer, pointer, 0}, mask);
  std::vector<Value*> rows;
  // Of whole words of zeros the last element is loaded, which is before them.
  const bool may_be_empty = kernel::IsTile(s.unit);
  for (int64_t i = 0; i < group; ++i) {
    Value* row = Int(i);
    const bool masked = left && (i > 0 || may_be_empty);
    if (masked) row = Min(row, b.CreateSub(left, Int(1)));
    Value* at = Offset(pointer, Multiply(row, stride));
    Value* elements = LoadNarrow(side, lanes, {at, at, 0}, mask);
    if (masked) {
      elements = b.CreateSelect(b.CreateICmpSLT(Int(i), left), elements,
                                llvm::Constant::getNullValue(elements->getType()));
    }
    rows.push_back(elements);
  }
  return WordsOf(*this, std::move(rows));
}

Value* Emitter::LoadPacked(Value* pointer) { return Load(words, pointer, vector_bytes); }

Value* Emitter::StepsOf(Value* elements) {
  if (group == 1) return elements;
  const int64_t whole = s.whole();
  return Scale(b.CreateUDiv(b.CreateAdd(elements, Int(whole - 1)), Int(whole)), whole / group);
}

Value* Emitter::Left(Value* elements, Value* step) {
  if (p.TotalK() % s.whole() == 0) return nullptr;
  return b.CreateSub(elements, Scale(step, group));
}

}  // namespace kiln::codegen::gemm
