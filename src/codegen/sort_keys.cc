#include "codegen/sort_keys.h"

#include "codegen/elemental_internal.h"

namespace kiln::codegen {

using elemental::IntOf;
using kernel::SortKey;
using llvm::Value;

namespace {

// The bits of a float in memory.
Value* BitsOf(Builder& b, Value* number, ElementType type, MathOptions math) {
  Value* memory = ToMemory(b, number, type, math);
  return b.CreateBitCast(memory, IntOf(memory->getType()));
}

llvm::Constant* SignOf(llvm::Type* t) {
  return llvm::ConstantInt::get(t, uint64_t{1} << (t->getScalarSizeInBits() - 1));
}

// A float's bits so that they are in order as unsigned numbers, and back.
Value* Ordered(Builder& b, Value* bits) {
  llvm::Type* t = bits->getType();
  Value* signs = b.CreateAShr(bits, t->getScalarSizeInBits() - 1);
  return b.CreateXor(bits, b.CreateOr(signs, SignOf(t)));
}
Value* Unordered(Builder& b, Value* key) {
  llvm::Type* t = key->getType();
  Value* signs = b.CreateNot(b.CreateAShr(key, t->getScalarSizeInBits() - 1));
  return b.CreateXor(key, b.CreateOr(signs, SignOf(t)));
}

llvm::IntegerType* KeyType(llvm::LLVMContext& context, ElementType type) {
  return llvm::IntegerType::get(context, static_cast<unsigned>(8 * ByteWidth(type)));
}

}  // namespace

Value* KeyOfNumber(Builder& b, Value* number, ElementType type, const SortKey& key,
                   MathOptions math) {
  Value* result = nullptr;
  if (key.order == SortKey::Order::kInteger) {
    result = ToMemory(b, number, type, math);
    if (IsSigned(type)) result = b.CreateXor(result, SignOf(result->getType()));
  } else {
    Value* bits = BitsOf(b, number, type, math);
    llvm::Type* t = bits->getType();
    if (key.order == SortKey::Order::kNumber) {
      bits = b.CreateSelect(b.CreateICmpEQ(bits, SignOf(t)), llvm::ConstantInt::get(t, 0), bits);
      Value* largest = b.CreateNot(SignOf(t));
      bits = b.CreateSelect(b.CreateFCmpUNO(number, number), largest, bits);
    }
    result = Ordered(b, bits);
  }
  return key.descending ? b.CreateNot(result) : result;
}

Value* NumberOfKey(Builder& b, Value* bits, ElementType type, const SortKey& key,
                   MathOptions math) {
  if (key.descending) bits = b.CreateNot(bits);
  llvm::LLVMContext& context = b.getContext();
  if (key.order == SortKey::Order::kInteger) {
    if (IsSigned(type)) bits = b.CreateXor(bits, SignOf(bits->getType()));
    return FromMemory(b, bits, type, math);
  }
  llvm::Type* memory = elemental::WithScalar(MemoryType(context, type), bits->getType());
  return FromMemory(b, b.CreateBitCast(Unordered(b, bits), memory), type, math);
}

Value* IsLostInKey(Builder& b, Value* number, ElementType type, const SortKey& key,
                   MathOptions math) {
  if (key.order != SortKey::Order::kNumber) return nullptr;
  Value* bits = BitsOf(b, number, type, math);
  return b.CreateOr(b.CreateICmpEQ(bits, SignOf(bits->getType())), b.CreateFCmpUNO(number, number));
}

llvm::Constant* KeyOfZero(llvm::LLVMContext& context, ElementType type, const SortKey& key) {
  llvm::IntegerType* t = KeyType(context, type);
  llvm::APInt sign = llvm::APInt::getSignMask(t->getBitWidth());
  return llvm::ConstantInt::get(t, key.descending ? ~sign : sign);
}

llvm::Constant* KeyOfNan(llvm::LLVMContext& context, ElementType type, const SortKey& key) {
  llvm::IntegerType* t = KeyType(context, type);
  return llvm::ConstantInt::get(t, key.descending ? llvm::APInt(t->getBitWidth(), 0)
                                                  : llvm::APInt::getAllOnes(t->getBitWidth()));
}

}  // namespace kiln::codegen
