#include "codegen/control_flow.h"

namespace kiln::codegen {

using llvm::BasicBlock;
using llvm::IRBuilderBase;
using llvm::PHINode;
using llvm::Value;

namespace {

// The values that a loop carries, at its head.
class Phis {
 public:
  // In the builder's block, which is the head.
  Phis(IRBuilderBase& b, const Values& init, BasicBlock* before) {
    for (Value* v : init) {
      phis_.push_back(b.CreatePHI(v->getType(), 2));
      phis_.back()->addIncoming(v, before);
    }
  }
  Values values() const { return {phis_.begin(), phis_.end()}; }
  void SetNext(const Values& next, BasicBlock* latch) {
    for (size_t i = 0; i < phis_.size(); ++i) phis_[i]->addIncoming(next[i], latch);
  }

 private:
  std::vector<PHINode*> phis_;
};

// Goes on in the block behind a branch or a loop.
void Leave(IRBuilderBase& b, BasicBlock* after, bool after_last) {
  if (after_last) after->moveAfter(b.GetInsertBlock());
  b.SetInsertPoint(after);
}

}  // namespace

BasicBlock* NewBlock(IRBuilderBase& b, const char* name) {
  return BasicBlock::Create(b.getContext(), name, b.GetInsertBlock()->getParent());
}

Value* EmitMin(IRBuilderBase& b, Value* x, Value* y) {
  return b.CreateSelect(b.CreateICmpSLT(x, y), x, y);
}

Value* EmitMax(IRBuilderBase& b, Value* x, Value* y) {
  return b.CreateSelect(b.CreateICmpSGT(x, y), x, y);
}

PHINode* EmitPhi(IRBuilderBase& b, Incoming x, Incoming y) {
  PHINode* phi = b.CreatePHI(x.value->getType(), 2);
  phi->addIncoming(x.value, x.from);
  phi->addIncoming(y.value, y.from);
  return phi;
}

IfEnds EmitIf(IRBuilderBase& b, Value* condition, llvm::function_ref<void()> then,
              llvm::function_ref<void()> otherwise, IfForm form) {
  BasicBlock* before = b.GetInsertBlock();
  BasicBlock* yes = then ? NewBlock(b, form.then) : nullptr;
  BasicBlock* no = otherwise ? NewBlock(b, form.otherwise) : nullptr;
  BasicBlock* after = NewBlock(b, form.after);
  b.CreateCondBr(condition, yes ? yes : after, no ? no : after);
  auto branch = [&](BasicBlock* block, llvm::function_ref<void()> body) {
    if (!block) return before;
    b.SetInsertPoint(block);
    body();
    if (!b.GetInsertBlock()->getTerminator()) b.CreateBr(after);
    return b.GetInsertBlock();
  };
  IfEnds ends;
  ends.then = branch(yes, then);
  ends.otherwise = branch(no, otherwise);
  Leave(b, after, form.after_last);
  return ends;
}

IfEnds EmitIf(IRBuilderBase& b, Value* condition, llvm::function_ref<void()> then, IfForm form) {
  return EmitIf(b, condition, then, nullptr, form);
}

void EmitStepLoop(IRBuilderBase& b, Value* begin, Value* end, Values& carried,
                  llvm::function_ref<Value*(Value*, Values&)> body, LoopForm form) {
  BasicBlock* before = b.GetInsertBlock();
  BasicBlock *inside = NewBlock(b, form.name), *after = NewBlock(b, form.after);
  if (form.nonempty) {
    b.CreateBr(inside);
  } else {
    b.CreateCondBr(b.CreateICmpSLT(begin, end), inside, after);
  }
  b.SetInsertPoint(inside);
  PHINode* i = b.CreatePHI(begin->getType(), 2, form.index);
  i->addIncoming(begin, before);
  Phis phis(b, carried, before);
  Values values = phis.values();
  Value* step = body(i, values);
  BasicBlock* latch = b.GetInsertBlock();
  Value* next = b.CreateAdd(i, step, "", /*HasNUW=*/false, form.nsw);
  i->addIncoming(next, latch);
  phis.SetNext(values, latch);
  b.CreateCondBr(b.CreateICmpSLT(next, end), inside, after);
  Leave(b, after, form.after_last);
  for (size_t k = 0; k < carried.size(); ++k) {
    carried[k] = form.nonempty ? values[k] : EmitPhi(b, {carried[k], before}, {values[k], latch});
  }
}

void EmitLoop(IRBuilderBase& b, Value* begin, Value* end, int64_t step, Values& carried,
              llvm::function_ref<void(Value*, Values&)> body, LoopForm form) {
  auto* first = llvm::dyn_cast<llvm::ConstantInt>(begin);
  auto* last = llvm::dyn_cast<llvm::ConstantInt>(end);
  if (first && last) {
    const int64_t extent = last->getSExtValue() - first->getSExtValue();
    if (extent <= 0) return;
    if (extent <= step) return body(begin, carried);
    form.nonempty = true;
  }
  auto with_step = [&](Value* i, Values& values) -> Value* {
    body(i, values);
    return llvm::ConstantInt::getSigned(begin->getType(), step);
  };
  EmitStepLoop(b, begin, end, carried, with_step, form);
}

void EmitLoop(IRBuilderBase& b, Value* begin, Value* end, int64_t step,
              llvm::function_ref<void(Value*)> body, LoopForm form) {
  Values none;
  EmitLoop(
      b, begin, end, step, none, [&](Value* i, Values&) { body(i); }, form);
}

Values EmitWhile(IRBuilderBase& b, const Values& init,
                 llvm::function_ref<Value*(const Values&)> condition,
                 llvm::function_ref<void(Values&)> body, WhileForm form) {
  BasicBlock* before = b.GetInsertBlock();
  BasicBlock *head = NewBlock(b, form.head), *inside = NewBlock(b, form.body),
             *after = NewBlock(b, form.after);
  b.CreateBr(head);
  b.SetInsertPoint(head);
  Phis phis(b, init, before);
  const Values values = phis.values();
  b.CreateCondBr(condition(values), inside, after);
  b.SetInsertPoint(inside);
  Values next = values;
  body(next);
  phis.SetNext(next, b.GetInsertBlock());
  b.CreateBr(head);
  b.SetInsertPoint(after);
  return values;
}

Values EmitDoWhile(IRBuilderBase& b, const Values& init, llvm::function_ref<Value*(Values&)> body,
                   LoopForm form) {
  BasicBlock* before = b.GetInsertBlock();
  BasicBlock *inside = NewBlock(b, form.name), *after = NewBlock(b, form.after);
  b.CreateBr(inside);
  b.SetInsertPoint(inside);
  Phis phis(b, init, before);
  Values values = phis.values();
  Value* go_on = body(values);
  phis.SetNext(values, b.GetInsertBlock());
  b.CreateCondBr(go_on, inside, after);
  Leave(b, after, form.after_last);
  return values;
}

}  // namespace kiln::codegen
