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

llvm::FixedVectorType* VectorOf(llvm::Type* element, int64_t count) {
  return llvm::FixedVectorType::get(element, static_cast<unsigned>(count));
}

// Unsigned bytes times signed ones.
Value* DotBytes(Emitter& e, Value* u8, Value* s8, Value* accumulator) {
  const auto dot = e.s.lanes == 16 ? llvm::Intrinsic::x86_avx512_vpdpbusd_512
                                   : llvm::Intrinsic::x86_avx512_vpdpbusd_256;
  return e.b.CreateIntrinsic(dot, {}, {accumulator, u8, s8});
}

Value* DotAnyBytes(Emitter& e, Value* x, Value* y, Value* accumulator) {
  const bool a = IsSigned(e.p.FactorOfA()), b = IsSigned(e.p.FactorOfB());
  if (!a && b) std::swap(x, y);
  const auto dot = a && b   ? llvm::Intrinsic::x86_avx2_vpdpbssd_256
                   : a || b ? llvm::Intrinsic::x86_avx2_vpdpbsud_256
                            : llvm::Intrinsic::x86_avx2_vpdpbuud_256;
  return e.b.CreateIntrinsic(dot, {}, {accumulator, x, y});
}

// LLVM makes one instruction of the two where the machine has it (AVX512_VNNI, AVX_VNNI).
Value* DotS16(Emitter& e, Value* x, Value* y, Value* accumulator) {
  llvm::Type* pairs = VectorOf(e.b.getInt16Ty(), 2 * e.s.lanes);
  const auto dot = e.s.lanes == 16  ? llvm::Intrinsic::x86_avx512_pmaddw_d_512
                   : e.s.lanes == 8 ? llvm::Intrinsic::x86_avx2_pmadd_wd
                                    : llvm::Intrinsic::x86_sse2_pmadd_wd;
  return e.b.CreateAdd(
      e.b.CreateIntrinsic(dot, {}, {e.b.CreateBitCast(x, pairs), e.b.CreateBitCast(y, pairs)}),
      accumulator);
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
  unsigned bits = rows[0]->getType()->getScalarSizeInBits();
  if (!rows[0]->getType()->isVectorTy()) {
    Value* word = nullptr;
    llvm::Type* type = e.b.getIntNTy(bits * static_cast<unsigned>(rows.size()));
    for (size_t i = 0; i < rows.size(); ++i) {
      Value* wide = e.b.CreateZExt(rows[i], type);
      word = i == 0 ? wide : e.b.CreateOr(word, e.b.CreateShl(wide, bits * i));
    }
    return word;
  }
  const unsigned lanes = llvm::cast<llvm::FixedVectorType>(rows[0]->getType())->getNumElements();
  while (rows.size() > 1) {
    bits *= 2;
    llvm::Type* both = VectorOf(e.b.getIntNTy(bits), lanes);
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
    case GemmUnit::kF16Tile:
    case GemmUnit::kByteTile:
      break;
    case GemmUnit::kS16Pair:
      return DotS16(*this, x, y, accumulator);
    case GemmUnit::kAnyByteQuad:
      return DotAnyBytes(*this, x, y, accumulator);
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
  const ElementType b = kernel::PackedTypeOfB(p, s.unit);
  if (side == Side::kB) return b;
  // Splats of A are whole words.
  if (s.unit == GemmUnit::kS16Pair) return ElementType::kS16;
  return IsFloat(b) ? b : p.FactorOfA();
}

Value* Emitter::Flip(Value* words) { return b.CreateXor(words, Bytes(words->getType(), 0x80)); }

Value* Emitter::AddBytes(Side side, Value* words, Value* accumulator) {
  Value* ones = Bytes(words->getType(), 1);
  return IsSigned(FactorOf(side)) ? DotBytes(*this, ones, words, accumulator)
                                  : DotBytes(*this, words, ones, accumulator);
}

int64_t Emitter::FlippedBy() const { return IsSigned(p.FactorOfA()) ? -128 : 128; }

Value* Emitter::LoadNarrow(Side side, ElementType to, int lanes, const GemmPlace& place,
                           Value* mask) {
  const auto bits = static_cast<unsigned>(BitWidth(to));
  llvm::Type* type = b.getIntNTy(bits);
  if (lanes > 1) type = llvm::FixedVectorType::get(type, static_cast<unsigned>(lanes));
  const ElementType from = TypeOf(side);
  if ((from == to || IsInteger(to)) && !PrologueOf(side)) {
    const auto stored_bits = static_cast<unsigned>(BitWidth(from));
    const llvm::Align align(stored_bits / 8);
    llvm::Type* stored = type->getWithNewBitWidth(stored_bits);
    Value* loaded = mask == nullptr
                        ? static_cast<Value*>(b.CreateAlignedLoad(stored, place.pointer, align))
                        : b.CreateMaskedLoad(stored, place.pointer, align, mask,
                                             llvm::Constant::getNullValue(stored));
    return b.CreateIntCast(loaded, type, IsSigned(from));
  }
  Value* value = LoadElements(side, lanes, place, mask);
  if (IsInteger(to)) return b.CreateTrunc(value, type);
  if (to == ElementType::kBF16 && (lanes == s.lanes || lanes == 2 * s.lanes)) {
    return b.CreateBitCast(RoundToBf16(*this, value), type);
  }
  const MathOptions options{s.fma, s.f16};
  value = ToMemory(b, EmitConvert(b, value, p.type, to, options), to, options);
  return b.CreateBitCast(value, type);
}

Value* Emitter::LoadAlong(Side side, int lanes, const GemmPlace& place, Value* mask) {
  if (group == 1) return LoadElements(side, lanes, place, mask);
  Value* narrow = LoadNarrow(side, FactorOf(side), lanes * static_cast<int>(group), place, mask);
  const unsigned bits = narrow->getType()->getScalarSizeInBits() * static_cast<unsigned>(group);
  llvm::Type* type = b.getIntNTy(bits);
  return b.CreateBitCast(narrow, lanes > 1 ? VectorOf(type, lanes) : type);
}

Value* Emitter::LoadAcross(Side side, int lanes, Value* pointer, Value* stride, Value* mask,
                           Value* left) {
  if (group == 1) return LoadElements(side, lanes, {pointer, pointer, 0}, mask);
  // Bytes are put together before they are widened.
  const bool widens = s.unit == GemmUnit::kS16Pair && !PrologueOf(side) &&
                      BitWidth(TypeOf(side)) < BitWidth(FactorOf(side));
  const ElementType type = widens ? TypeOf(side) : FactorOf(side);
  std::vector<Value*> rows;
  // Of whole words of zeros the last element is loaded, which is before them.
  const bool may_be_empty = kernel::IsTile(s.unit);
  for (int64_t i = 0; i < group; ++i) {
    Value* row = Int(i);
    const bool masked = left && (i > 0 || may_be_empty);
    if (masked) row = Min(row, b.CreateSub(left, Int(1)));
    Value* at = Offset(pointer, Multiply(row, stride));
    Value* elements = LoadNarrow(side, type, lanes, {at, at, 0}, mask);
    if (masked) {
      elements = b.CreateSelect(b.CreateICmpSLT(Int(i), left), elements,
                                llvm::Constant::getNullValue(elements->getType()));
    }
    rows.push_back(elements);
  }
  Value* result = WordsOf(*this, std::move(rows));
  return widens ? Widened(result, type) : result;
}

Value* Emitter::Widened(Value* packed, ElementType from) {
  if (BitWidth(from) == 16) return packed;
  auto* many = llvm::dyn_cast<llvm::FixedVectorType>(packed->getType());
  const int64_t lanes = many ? many->getNumElements() : 1;
  Value* bytes = b.CreateBitCast(packed, VectorOf(b.getInt8Ty(), 2 * lanes));
  Value* wide = b.CreateIntCast(bytes, VectorOf(b.getInt16Ty(), 2 * lanes), IsSigned(from));
  return b.CreateBitCast(wide, many ? VectorOf(word, lanes) : word);
}

Value* Emitter::LoadPacked(Value* pointer) {
  llvm::Type* type = words;
  if (b_word_bytes < element_bytes) type = VectorOf(b.getInt16Ty(), s.lanes);
  return WidenedB(Load(type, pointer, b_vector_bytes));
}

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
