// Scatters whose updates may meet: each element takes its updates in order.

#include "kernel/schedule/gpu/scatter.h"

#include "codegen/gpu/emitter.h"

namespace kiln::codegen {
namespace {

using kernel::GpuUpdateOrder;
using kernel::StageId;
using kernel::Update;
using kernel::VariableId;
using llvm::Value;

// The only stage.
constexpr StageId kUpdates(0);

// All updates are read by every block, as many at once as it has threads, which find those whose
// targets are the block's own. They are listed in their order, and those with the same target
// linked:
//
//   place   where the update goes, with the slices' variables at 0
//   number  the update's
//   next    the one after it with the same place, or how many there are
//   first   whether there is none before it
//
// Then the threads share the points of the slices of all that are the first at their place, and
// each follows its links. What comes later at the same place waits for the next list.
class Owners {
 public:
  explicit Owners(GpuEmitter& e)
      : e_(e),
        b_(e.b()),
        order_(kernel::OrderOfUpdates(e.kernel())),
        update_(e.kernel().stages.front().updates[0]),
        threads_(e.launch().threads),
        updates_(e.kernel().PointsOf(order_.in_order)) {
    Value* shared = e.gpu().Shared();
    auto at = [&](int64_t bytes) {
      return b_.CreateConstGEP1_64(b_.getInt8Ty(), shared, static_cast<uint64_t>(bytes));
    };
    place_ = shared;
    number_ = at(8 * threads_);
    next_ = at(16 * threads_);
    first_ = at(20 * threads_);
    counts_ = at(24 * threads_);
  }

  void Emit() {
    const int64_t owners = e_.schedule().owners;
    const int64_t groups = e_.kernel().PointsOf(order_.batch) * owners;
    e_.Loop(e_.block(), e_.Int(groups), e_.Int(e_.launch().blocks), [&](Value* group) {
      Value* owner = b_.CreateURem(group, e_.Int(owners));
      e_.Delinearise(b_.CreateUDiv(group, e_.Int(owners)), order_.batch);
      e_.Loop(e_.Int(0), e_.Int(updates_), e_.Int(threads_), [&](Value* from) {
        Value* count = List(from, owner);
        Link(count);
        e_.gpu().Barrier();
        Apply(count);
        // Before the list is made anew, and another thread takes up an element.
        e_.gpu().Barrier();
      });
    });
  }

 private:
  llvm::Type* index_type() { return e_.index_type(); }
  Value* Slot(llvm::Type* type, Value* base, Value* at) { return b_.CreateGEP(type, base, at); }
  Value* LoadAt(llvm::Type* type, Value* base, Value* at) {
    return b_.CreateLoad(type, Slot(type, base, at));
  }
  void StoreAt(Value* value, Value* base, Value* at) {
    b_.CreateStore(value, Slot(value->getType(), base, at));
  }

  // Neighbouring targets are different blocks'.
  Value* OwnerOf(Value* place) {
    Value* hash =
        b_.CreateMul(b_.CreateIntCast(place, b_.getInt32Ty(), false), b_.getInt32(0x9E3779B1u));
    hash = b_.CreateXor(hash, b_.CreateLShr(hash, 15));
    Value* owner = b_.CreateURem(hash, b_.getInt32(static_cast<uint32_t>(e_.schedule().owners)));
    return b_.CreateIntCast(owner, index_type(), false);
  }

  // Lists the owner's among the updates from this number on; returns how many they are.
  Value* List(Value* from, Value* owner) {
    GpuEmitter::Scope scope(e_);
    Value* number = b_.CreateAdd(from, e_.thread());
    Value* is_own = b_.CreateICmpSLT(number, e_.Int(updates_));
    number = b_.CreateSelect(is_own, number, e_.Int(updates_ - 1));
    e_.Delinearise(number, order_.in_order);
    for (VariableId v : order_.slices) e_.SetVariable(v, e_.Int(0));
    Value* place = e_.Eval(kUpdates, update_.indices[0]);
    if (update_.guard.valid()) is_own = b_.CreateAnd(is_own, e_.At(kUpdates, update_.guard));
    is_own = b_.CreateAnd(is_own, b_.CreateICmpEQ(OwnerOf(place), owner));
    Value* mask = e_.gpu().Ballot(is_own);
    Value* lane =
        b_.CreateIntCast(b_.CreateURem(e_.thread(), e_.Int(kWarp)), b_.getInt32Ty(), false);
    Value* warp = b_.CreateUDiv(e_.thread(), e_.Int(kWarp));
    auto ones = [&](Value* bits) { return b_.CreateUnaryIntrinsic(llvm::Intrinsic::ctpop, bits); };
    e_.If(b_.CreateICmpEQ(lane, b_.getInt32(0)), [&] { StoreAt(ones(mask), counts_, warp); });
    e_.gpu().Barrier();
    Value* count = b_.getInt32(0);
    Value* before = b_.getInt32(0);
    for (int64_t w = 0; w < threads_ / kWarp; ++w) {
      before = b_.CreateSelect(b_.CreateICmpEQ(warp, e_.Int(w)), count, before);
      count = b_.CreateAdd(count, LoadAt(b_.getInt32Ty(), counts_, e_.Int(w)));
    }
    Value* lower = b_.CreateSub(b_.CreateShl(b_.getInt32(1), lane), b_.getInt32(1));
    before = b_.CreateAdd(before, ones(b_.CreateAnd(mask, lower)));
    e_.If(is_own, [&] {
      Value* at = b_.CreateIntCast(before, index_type(), false);
      StoreAt(place, place_, at);
      StoreAt(number, number_, at);
    });
    e_.gpu().Barrier();
    return b_.CreateIntCast(count, index_type(), false);
  }

  void Link(Value* count) {
    e_.If(b_.CreateICmpSLT(e_.thread(), count), [&] {
      Value* place = LoadAt(index_type(), place_, e_.thread());
      llvm::AllocaInst* first = e_.NewSlot(b_.getInt32Ty());
      llvm::AllocaInst* next = e_.NewSlot(b_.getInt32Ty());
      b_.CreateStore(b_.getInt32(1), first);
      b_.CreateStore(b_.CreateIntCast(count, b_.getInt32Ty(), false), next);
      // From the last one back, so that the nearest one behind it stays.
      e_.Loop(e_.Int(0), count, e_.Int(1), [&](Value* i) {
        Value* other = b_.CreateSub(b_.CreateSub(count, e_.Int(1)), i);
        Value* same = b_.CreateICmpEQ(LoadAt(index_type(), place_, other), place);
        Value* behind = b_.CreateAnd(same, b_.CreateICmpSGT(other, e_.thread()));
        Value* ahead = b_.CreateAnd(same, b_.CreateICmpSLT(other, e_.thread()));
        Value* number = b_.CreateIntCast(other, b_.getInt32Ty(), false);
        b_.CreateStore(b_.CreateSelect(behind, number, b_.CreateLoad(b_.getInt32Ty(), next)), next);
        b_.CreateStore(
            b_.CreateSelect(ahead, b_.getInt32(0), b_.CreateLoad(b_.getInt32Ty(), first)), first);
      });
      StoreAt(b_.CreateLoad(b_.getInt32Ty(), next), next_, e_.thread());
      StoreAt(b_.CreateLoad(b_.getInt32Ty(), first), first_, e_.thread());
    });
  }

  void Apply(Value* count) {
    const int64_t points = e_.kernel().PointsOf(order_.slices);
    e_.Loop(e_.thread(), b_.CreateMul(count, e_.Int(points)), e_.Int(threads_), [&](Value* i) {
      Value* entry = points > 1 ? b_.CreateUDiv(i, e_.Int(points)) : i;
      if (points > 1) {
        e_.Delinearise(b_.CreateURem(i, e_.Int(points)), order_.slices);
      } else {
        for (VariableId v : order_.slices) e_.SetVariable(v, e_.Int(0));
      }
      Value* is_first = b_.CreateICmpNE(LoadAt(b_.getInt32Ty(), first_, entry), b_.getInt32(0));
      e_.If(is_first, [&] { Follow(entry, count); });
    });
  }

  // The updates from an entry on that go to the same place.
  void Follow(Value* entry, Value* count) {
    auto update = [&](Values& values) {
      Value*& at = values[0];
      {
        GpuEmitter::Scope scope(e_);
        e_.Delinearise(LoadAt(index_type(), number_, at), order_.in_order);
        e_.EmitUpdates(kUpdates);
      }
      at = b_.CreateIntCast(LoadAt(b_.getInt32Ty(), next_, at), index_type(), false);
      return b_.CreateICmpSLT(at, count);
    };
    EmitDoWhile(b_, {entry}, update, {.name = "update", .after = "updated"});
  }

  GpuEmitter& e_;
  Builder& b_;
  const GpuUpdateOrder order_;
  const Update& update_;
  const int64_t threads_, updates_;
  Value *place_, *number_, *next_, *first_, *counts_;  // in shared memory
};

}  // namespace

// The threads of a block share an update's points; the next update waits for all of them.
void EmitScatter(GpuEmitter& e) {
  const GpuUpdateOrder order = kernel::OrderOfUpdates(e.kernel());
  e.Loop(e.block(), e.Int(e.outer_points()), e.Int(e.launch().blocks), [&](Value* point) {
    e.Delinearise(point, e.OuterVariables());
    e.InOrder(order.in_order, [&] {
      e.Loop(e.thread(), e.Int(e.kernel().PointsOf(order.others)), e.Int(e.launch().threads),
             [&](Value* i) {
               e.Delinearise(i, order.others);
               e.EmitUpdates(kUpdates);
             });
      e.gpu().Barrier();
    });
  });
}

void EmitOwners(GpuEmitter& e) { Owners(e).Emit(); }

}  // namespace kiln::codegen
