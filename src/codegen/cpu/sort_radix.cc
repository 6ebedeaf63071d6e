// Sorting by digits, the lowest first: each pass counts the digits of every chunk, sees where they
// go, and moves the records there. Equal digits keep their order, so that passes add up.
#include "codegen/cpu/sort_phases.h"
#include "codegen/elemental_internal.h"

namespace kiln::codegen {

using llvm::Value;

namespace {

// The digit of a record at an address, as a number of 64 bits.
class Digit {
 public:
  Digit(const SortContext& c, SortPhase& p) : c_(c), p_(p), b_(p.b()) {
    int bits = c.schedule.record_bits();
    type_ = b_.getIntNTy(static_cast<unsigned>(std::min(bits, 64)));
    // Keys stand above places.
    offset_ = bits == 128 ? 8 : 0;
    int64_t below = bits == 64 && c.schedule.place_bits == 32 ? 32 : 0;
    shift_ = b_.CreateAdd(p.State(SortState::kStep), p.Int(below));
  }

  Value* Of(Value* record) {
    Value* key = b_.CreateLoad(type_, p_.At(b_.getInt8Ty(), record, p_.Int(offset_)));
    Value* digit = b_.CreateLShr(b_.CreateZExt(key, b_.getInt64Ty()), shift_);
    return b_.CreateAnd(digit, p_.Int(c_.schedule.buckets() - 1));
  }

 private:
  const SortContext& c_;
  SortPhase& p_;
  Builder& b_;
  llvm::Type* type_;
  int64_t offset_ = 0;
  Value* shift_;
};

Value* CountsOf(const SortContext& c, SortPhase& p, Value* chunk) {
  Builder& b = p.b();
  return p.At(b.getInt8Ty(), p.Scratch(c.schedule.counts),
              b.CreateMul(chunk, p.Int(c.schedule.buckets() * 4)));
}

}  // namespace

void EmitCountPhase(const SortContext& c, SortPhase& p) {
  Builder& b = p.b();
  Digit digit(c, p);
  Value* from = p.Pointer(SortState::kFrom);
  llvm::Type *word = b.getInt32Ty(), *record = RecordType(c);
  p.ForEachChunk([&](Value* chunk, Value* first, Value* end) {
    Value* counts = CountsOf(c, p, chunk);
    constexpr int64_t kLanes = 16;
    auto* vector = llvm::FixedVectorType::get(word, kLanes);
    EmitLoop(b, p.Int(0), p.Int(c.schedule.buckets()), kLanes, [&](Value* i) {
      b.CreateAlignedStore(llvm::Constant::getNullValue(vector), p.At(word, counts, i),
                           llvm::Align(64));
    });
    EmitLoop(b, first, end, 1, [&](Value* i) {
      Value* slot = p.At(word, counts, digit.Of(p.At(record, from, i)));
      b.CreateStore(b.CreateAdd(b.CreateLoad(word, slot), b.getInt32(1)), slot);
    });
  });
}

void EmitPlacePhase(const SortContext& c, SortPhase& p) {
  Builder& b = p.b();
  llvm::Type* word = b.getInt32Ty();
  Value* size = b.getInt32(static_cast<uint32_t>(c.kernel.variables[c.sort.variable].extent));
  Value* counts = p.Scratch(c.schedule.counts);
  Values carried = {b.getInt32(0), b.getFalse()};
  EmitLoop(b, p.Int(0), p.Int(c.schedule.buckets()), 1, carried, [&](Value* digit, Values& values) {
    Value* before = values[0];
    Values sum = {before};
    EmitLoop(b, p.Int(0), p.Int(c.schedule.chunks), 1, sum, [&](Value* chunk, Values& at) {
      Value* index = b.CreateAdd(b.CreateMul(chunk, p.Int(c.schedule.buckets())), digit);
      Value* slot = p.At(word, counts, index);
      Value* count = b.CreateLoad(word, slot);
      b.CreateStore(at[0], slot);
      at[0] = b.CreateAdd(at[0], count);
    });
    // Where all have one digit there is nothing to move.
    Value* all = b.CreateICmpEQ(b.CreateSub(sum[0], before), size);
    values = {sum[0], b.CreateOr(values[1], all)};
  });
  p.SetState(SortState::kSkip, b.CreateZExt(carried[1], b.getInt64Ty()));
}

void EmitMovePhase(const SortContext& c, SortPhase& p) {
  Builder& b = p.b();
  Digit digit(c, p);
  Value *from = p.Pointer(SortState::kFrom), *to = p.Pointer(SortState::kTo);
  llvm::Type *word = b.getInt32Ty(), *record = RecordType(c);
  // Records of 128 bits are aligned like their halves: scratch says nothing more.
  llvm::Align align(static_cast<uint64_t>(std::min(c.schedule.record_bits() / 8, 8)));
  p.ForEachChunk([&](Value* chunk, Value* first, Value* end) {
    Value* counts = CountsOf(c, p, chunk);
    EmitLoop(b, first, end, 1, [&](Value* i) {
      Value* source = p.At(record, from, i);
      Value* value = b.CreateAlignedLoad(record, source, align);
      Value* slot = p.At(word, counts, digit.Of(source));
      Value* place = b.CreateLoad(word, slot);
      b.CreateStore(b.CreateAdd(place, b.getInt32(1)), slot);
      b.CreateAlignedStore(value, p.At(record, to, b.CreateZExt(place, b.getInt64Ty())), align);
    });
  });
}

}  // namespace kiln::codegen
