// Numbers as unsigned integers that are in the same order.
#pragma once

#include "codegen/elemental.h"
#include "kernel/kernel.h"

namespace kiln::codegen {

// The key of a number (a scalar or vector in registers) of the type, as wide as the type in memory.
llvm::Value* KeyOfNumber(Builder& b, llvm::Value* number, ElementType type,
                         const kernel::SortKey& key, MathOptions math);
// The number that has the key; of a zero or NaN in the order kNumber, one of those it may be.
llvm::Value* NumberOfKey(Builder& b, llvm::Value* bits, ElementType type,
                         const kernel::SortKey& key, MathOptions math);
// Where NumberOfKey may not give the number back: -0 and NaNs in the order kNumber, else null.
llvm::Value* IsLostInKey(Builder& b, llvm::Value* number, ElementType type,
                         const kernel::SortKey& key, MathOptions math);
// The keys of zeros and of NaNs.
llvm::Constant* KeyOfZero(llvm::LLVMContext& context, ElementType type, const kernel::SortKey& key);
llvm::Constant* KeyOfNan(llvm::LLVMContext& context, ElementType type, const kernel::SortKey& key);

}  // namespace kiln::codegen
