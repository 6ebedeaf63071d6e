// Numbers in twice the precision, as unevaluated sums of two floats, over LLVM IR.
#pragma once

#include "llvm/IR/IRBuilder.h"
#include "llvm/IR/Intrinsics.h"

namespace kiln::codegen {

// A number as the unevaluated sum high + low, |low| below half a unit of high.
struct FloatPair {
  llvm::Value* high;
  llvm::Value* low;
};

// Exact sums and products (Dekker 1971, Knuth); without FMA a product is split in halves.
class PairArithmetic {
 public:
  PairArithmetic(llvm::IRBuilderBase& b, bool fma) : b_(b), fma_(fma) {}

  // x + y where |x| >= |y|.
  FloatPair FastSum(llvm::Value* x, llvm::Value* y) {
    llvm::Value* sum = b_.CreateFAdd(x, y);
    return {sum, b_.CreateFSub(y, b_.CreateFSub(sum, x))};
  }
  FloatPair Sum(llvm::Value* x, llvm::Value* y) {
    llvm::Value* sum = b_.CreateFAdd(x, y);
    llvm::Value* part = b_.CreateFSub(sum, x);
    llvm::Value* rest =
        b_.CreateFAdd(b_.CreateFSub(x, b_.CreateFSub(sum, part)), b_.CreateFSub(y, part));
    return {sum, rest};
  }
  FloatPair Product(llvm::Value* x, llvm::Value* y) {
    llvm::Value* product = b_.CreateFMul(x, y);
    if (fma_) {
      return {product, b_.CreateIntrinsic(llvm::Intrinsic::fma, {x->getType()},
                                          {x, y, b_.CreateFNeg(product)})};
    }
    FloatPair a = Split(x), c = Split(y);
    llvm::Value* error = b_.CreateFSub(b_.CreateFMul(a.high, c.high), product);
    error = b_.CreateFAdd(error, b_.CreateFMul(a.high, c.low));
    error = b_.CreateFAdd(error, b_.CreateFMul(a.low, c.high));
    return {product, b_.CreateFAdd(error, b_.CreateFMul(a.low, c.low))};
  }
  FloatPair Add(FloatPair x, FloatPair y) {
    FloatPair sum = Sum(x.high, y.high);
    return FastSum(sum.high, b_.CreateFAdd(sum.low, b_.CreateFAdd(x.low, y.low)));
  }
  FloatPair Multiply(FloatPair x, FloatPair y) {
    FloatPair product = Product(x.high, y.high);
    llvm::Value* cross = b_.CreateFAdd(b_.CreateFMul(x.high, y.low), b_.CreateFMul(x.low, y.high));
    return FastSum(product.high, b_.CreateFAdd(product.low, cross));
  }
  FloatPair Divide(llvm::Value* x, FloatPair y) {
    llvm::Value* q = b_.CreateFDiv(x, y.high);
    FloatPair back = Product(q, y.high);
    llvm::Value* rest = b_.CreateFSub(x, back.high);
    rest = b_.CreateFSub(rest, back.low);
    rest = b_.CreateFSub(rest, b_.CreateFMul(q, y.low));
    return FastSum(q, b_.CreateFDiv(rest, y.high));
  }

 private:
  // Of 24 or 53 bits, halves of 12 or 26.
  FloatPair Split(llvm::Value* x) {
    double factor = x->getType()->getScalarType()->isDoubleTy() ? 0x1p27 + 1 : 0x1p12 + 1;
    llvm::Value* scaled = b_.CreateFMul(x, llvm::ConstantFP::get(x->getType(), factor));
    llvm::Value* high = b_.CreateFSub(scaled, b_.CreateFSub(scaled, x));
    return {high, b_.CreateFSub(x, high)};
  }
  llvm::IRBuilderBase& b_;
  bool fma_;
};

}  // namespace kiln::codegen
