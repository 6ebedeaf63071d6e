#include "codegen/gpu/emulate_nans.h"

#include <algorithm>
#include <vector>

#include "llvm/IR/IRBuilder.h"
#include "llvm/IR/InstIterator.h"
#include "llvm/IR/IntrinsicInst.h"

namespace kiln::codegen {
namespace {

using llvm::Value;

bool IsNumber(const llvm::Type* type) { return type->isFloatTy() || type->isDoubleTy(); }

// Whether the instruction gives a NaN of its own. copysign is an operation of bits.
bool MakesNan(const llvm::Instruction& i) {
  if (!IsNumber(i.getType())) return false;
  if (auto* call = llvm::dyn_cast<llvm::IntrinsicInst>(&i)) {
    return call->getIntrinsicID() != llvm::Intrinsic::copysign && call->arg_size() > 0 &&
           IsNumber(call->getArgOperand(0)->getType());
  }
  return llvm::isa<llvm::BinaryOperator, llvm::UnaryOperator, llvm::FPExtInst, llvm::FPTruncInst>(
      i);
}

// Whether no user of a value sees more of a NaN than that it is one.
bool IsHidden(const llvm::Instruction& i) {
  return std::ranges::all_of(i.users(), [](const llvm::User* user) {
    const auto& at = *llvm::cast<llvm::Instruction>(user);
    return MakesNan(at) || llvm::isa<llvm::FCmpInst>(at);
  });
}

}  // namespace

void MakeNansEqual(llvm::Function& function) {
  std::vector<llvm::Instruction*> makers;
  for (llvm::Instruction& i : llvm::instructions(function)) {
    if (MakesNan(i) && !IsHidden(i)) makers.push_back(&i);
  }
  for (llvm::Instruction* maker : makers) {
    llvm::IRBuilder<> b(maker->getNextNode());
    llvm::Type* type = maker->getType();
    Value* is_nan = b.CreateFCmpUNO(maker, maker);
    llvm::APInt bits = llvm::APInt::getSignedMaxValue(type->getPrimitiveSizeInBits());
    Value* nan =
        llvm::ConstantFP::get(type->getContext(), llvm::APFloat(type->getFltSemantics(), bits));
    Value* result = b.CreateSelect(is_nan, nan, maker);
    maker->replaceUsesWithIf(result, [&](const llvm::Use& use) {
      return use.getUser() != is_nan && use.getUser() != result;
    });
  }
}

}  // namespace kiln::codegen
