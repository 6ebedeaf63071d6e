// Control flow of emitted code: branches, loops and the bounds of their ranges. Each function emits
// at the builder's point and leaves the builder behind what it has emitted. Bodies may add blocks.
#pragma once

#include <cstdint>
#include <vector>

#include "llvm/ADT/STLFunctionalExtras.h"
#include "llvm/IR/IRBuilder.h"

namespace kiln::codegen {

using Values = std::vector<llvm::Value*>;

// A block at the end of the function that the builder is in.
llvm::BasicBlock* NewBlock(llvm::IRBuilderBase& b, const char* name);

// The smaller and the larger of two signed integers.
llvm::Value* EmitMin(llvm::IRBuilderBase& b, llvm::Value* x, llvm::Value* y);
llvm::Value* EmitMax(llvm::IRBuilderBase& b, llvm::Value* x, llvm::Value* y);

// A phi of values and the blocks that they come from.
struct Incoming {
  llvm::Value* value;
  llvm::BasicBlock* from;
};
llvm::PHINode* EmitPhi(llvm::IRBuilderBase& b, Incoming x, Incoming y);

// --- Branches

struct IfForm {
  const char* then = "then";
  const char* otherwise = "else";
  const char* after = "after";
  bool after_last = false;  // the block behind comes after all that the branches have
};
// The last blocks of the branches, for phis; of a branch that is not there, the block before.
struct IfEnds {
  llvm::BasicBlock* then;
  llvm::BasicBlock* otherwise;
};
// if (condition) then(); else otherwise(). Either may be null. A branch that ends in a terminator
// of its own (it returns, say) does not go on behind.
IfEnds EmitIf(llvm::IRBuilderBase& b, llvm::Value* condition, llvm::function_ref<void()> then,
              llvm::function_ref<void()> otherwise, IfForm form = {});
IfEnds EmitIf(llvm::IRBuilderBase& b, llvm::Value* condition, llvm::function_ref<void()> then,
              IfForm form = {});

// --- Loops

struct LoopForm {
  const char* name = "loop";
  const char* after = "after";
  const char* index = "";
  bool nonempty = false;    // it runs once at least: there is no test before
  bool nsw = true;          // the index does not overflow behind the last round
  bool after_last = false;  // the block behind comes after all that the body has
};
// for (i = begin; i < end; i += step), with carried values, which `body` replaces. A constant range
// of one step is straight code.
void EmitLoop(llvm::IRBuilderBase& b, llvm::Value* begin, llvm::Value* end, int64_t step,
              Values& carried, llvm::function_ref<void(llvm::Value* i, Values& carried)> body,
              LoopForm form = {});
void EmitLoop(llvm::IRBuilderBase& b, llvm::Value* begin, llvm::Value* end, int64_t step,
              llvm::function_ref<void(llvm::Value* i)> body, LoopForm form = {});
// The same with the step that `body` returns.
void EmitStepLoop(llvm::IRBuilderBase& b, llvm::Value* begin, llvm::Value* end, Values& carried,
                  llvm::function_ref<llvm::Value*(llvm::Value* i, Values& carried)> body,
                  LoopForm form = {});

struct WhileForm {
  const char* head = "while";
  const char* body = "while.body";
  const char* after = "while.end";
};
// while (condition(values)) body(values); the values after it. The condition is a scalar.
Values EmitWhile(llvm::IRBuilderBase& b, const Values& init,
                 llvm::function_ref<llvm::Value*(const Values&)> condition,
                 llvm::function_ref<void(Values&)> body, WhileForm form = {});

// do { go_on = body(values); } while (go_on); the values after it. `form` gives names and order.
Values EmitDoWhile(llvm::IRBuilderBase& b, const Values& init,
                   llvm::function_ref<llvm::Value*(Values&)> body, LoopForm form = {});

}  // namespace kiln::codegen
