// Emission of a nest's stages inside loops: shared by the files nest*.cc.
//
// No pass of LLVM's moves code here, so everything is emitted where it belongs at once: whenever a
// loop is opened, its variable is bound, and all that has become known is emitted there, nodes and
// the parts of addresses alike. Closing a loop (or leaving one version of a loop's body for the
// next) rewinds to what was known outside.
#pragma once

#include <functional>
#include <optional>
#include <vector>

#include "base/status.h"
#include "codegen/control_flow.h"
#include "codegen/elemental.h"
#include "kernel/kernel.h"
#include "kernel/schedule/cpu/nest.h"
#include "llvm/IR/Function.h"
#include "target/target.h"

namespace kiln::codegen {

inline MathOptions MathOf(const target::Cpu& cpu) {
  return {cpu.has_fma, cpu.has_f16,
          cpu.Has("avx512f") && cpu.Has("avx512dq") && cpu.Has("avx512vl")};
}

// A value at the current point: one scalar, or one vector for each of the points' copies.
struct Lanes {
  std::vector<llvm::Value*> copies;
  bool vector = false;
  llvm::Value* splat = nullptr;  // of the scalar, where it was last wanted
  bool known() const { return !copies.empty(); }
  // Values equal for all copies exist once.
  llvm::Value* Copy(int u) const { return copies[copies.size() == 1 ? 0 : static_cast<size_t>(u)]; }
};

class NestEmitter {
 public:
  using NodeId = kernel::NodeId;
  using StageId = kernel::StageId;
  using VariableId = kernel::VariableId;
  using ReductionId = kernel::ReductionId;

  // Emits into a new block, the function's first.
  NestEmitter(llvm::Function* function, const kernel::Kernel& kernel, const target::Cpu& cpu);
  // What a schedule says of memory, before the first loop is opened: prefetches, staged rows and
  // stores past the caches. Staged rows are those of `other`, if there is one.
  void SetMemory(const kernel::CpuNestSchedule& schedule, const NestEmitter* other = nullptr);
  // Emits into a function that has code already, from a point on. Of many parameters the addresses
  // are not kept in registers.
  NestEmitter(llvm::Function* function, const kernel::Kernel& kernel, const target::Cpu& cpu,
              Builder::InsertPoint at);
  // The same, with the parameters' addresses at hand.
  NestEmitter(Values args, const kernel::Kernel& kernel, const target::Cpu& cpu,
              Builder::InsertPoint at);

  Builder& builder() { return b_; }
  const Status& status() const { return status_; }
  void Fail(Status status) {
    if (status_.ok()) status_ = std::move(status);
  }

  llvm::ConstantInt* Int(int64_t value) { return b_.getInt64(static_cast<uint64_t>(value)); }

  // --- Loops (nest_loops.cc)
  // A range of a variable: [begin, end) with begin < end unless `maybe_empty`; every range's length
  // is a multiple of `multiple`, and every begin one of `aligned`.
  struct Range {
    llvm::Value* begin;
    llvm::Value* end;
    int64_t multiple = 1;
    int64_t aligned = 1;
    bool maybe_empty = false;
  };
  Range FullRange(VariableId variable);
  // Runs `body` with the variable bound to vectors that cover the range: unrolled ones, then single
  // and masked or scalar ones; or masked ones alone.
  void VectorLoop(VariableId variable, const Range& range, int64_t width,
                  const kernel::CpuStageSchedule& schedule, Values& carried,
                  const std::function<void(Values& carried)>& body);
  // Inside a VectorLoop: runs `body` with the variable's points as copies, and for what is left one
  // by one.
  void TileLoop(VariableId variable, const Range& range, const std::function<void()>& body);
  // What an item of a schedule covers: outer variables of one point, which are bound, and ranges of
  // the others. The caller unbinds them. With `end_item`, all items of a single variable before
  // that one are covered.
  struct ItemLoop {
    VariableId variable;
    Range range;
    bool whole = false;  // all of the variable, in each item
  };
  struct Item {
    std::vector<ItemLoop> loops;
    std::vector<VariableId> bound;
  };
  Item OpenItem(llvm::Value* item, const kernel::CpuNestSchedule& schedule,
                llvm::Value* end_item = nullptr);
  // Calls `body` with a variable's points as the copies of a vector that is bound, or one by one
  // where it is a scalar. What does not depend on the points is emitted before, once.
  void TilePoints(VariableId variable, llvm::Value* first, int count,
                  const std::function<void()>& body);
  // Calls `body` with all points of a variable, piece by piece where there are many, in a kernel's
  // own function: it returns between two pieces where the run is to end.
  void InPieces(VariableId variable, Values& carried,
                const std::function<void(const Range&, Values& carried)>& body);
  // A scalar loop.
  void ScalarLoop(VariableId variable, const Range& range, Values& carried,
                  const std::function<void(Values& carried)>& body);

  // --- Binding
  struct Mark {
    size_t nodes, accesses;
  };
  Mark GetMark() const { return {emitted_.size(), undo_.size()}; }
  void Rewind(Mark mark);
  void Bind(VariableId variable, llvm::Value* value);
  void Unbind(VariableId variable);
  // Makes `variable` the vector variable of what follows: lane l of copy u is value + u*width + l.
  // `mask` (or null) tells the lanes that count.
  void BindVector(VariableId variable, llvm::Value* value, int64_t width, int copies,
                  llvm::Value* mask, int64_t aligned);
  void UnbindVector();
  // Lets a condition (null: no more) decide whether vectors are stored into the kernel's arguments.
  void SetStores(llvm::Value* condition) { stores_ = condition; }
  // Opens the code of a schedule's case: the place where it begins tells what its tests give. They
  // are left out elsewhere.
  void OpenCase(VariableId variable, int64_t begin);
  void CloseCase(VariableId variable);
  bool IsInCase(VariableId variable) const;
  // The same vectors that another emitter has, along a variable of this one's.
  void BindVectorLike(const NestEmitter& other, VariableId variable);
  // Makes the copies those of `count` points of another variable from `value` on.
  void BindTile(VariableId variable, llvm::Value* value, int count, int64_t aligned = 1);
  void UnbindTile();
  llvm::Value* bound(VariableId variable) const { return bound_[variable]; }
  // How many lanes of a masked vector count, as i64.
  void SetLanesLeft(llvm::Value* left) { lanes_left_ = left; }
  int64_t width() const { return width_; }
  int copies() const { return copies_; }
  // Whether copies are points of a variable that is not the vector's.
  bool tiled() const { return tile_variable_.valid(); }
  llvm::Value* mask() const { return mask_; }

  // --- Values (nest_values.cc)
  // Emits the nodes of a stage, and the parts of its addresses, that can be and have not been.
  // `ahead` of the stage nothing is read that the kernel itself writes.
  void EmitReady(StageId stage, bool ahead = false);
  void EmitReadyInAll();
  // A node's value for a copy, as a vector where `vector`.
  llvm::Value* Use(StageId stage, NodeId node, int copy, bool vector);
  // A bound variable's value for a copy, as a vector where it is the vector variable.
  llvm::Value* Position(VariableId variable, int copy, llvm::IntegerType* type);
  // One of the stage's stores, for all copies.
  void EmitStore(StageId stage, int store);
  // The prefetches of the stage's vectors at this point.
  void EmitPrefetches(StageId stage);
  // Whether a node's value is known, and is not a vector.
  bool IsKnownScalar(StageId stage, NodeId node) const {
    return values_[stage][node].known() && !values_[stage][node].vector;
  }
  // One of the stage's updates, for all copies; its guard is the caller's affair.
  void EmitUpdate(StageId stage, int update);
  // The same lane by lane, in order, of those for which the guard holds.
  void EmitUpdateByLanes(StageId stage, int update);
  // The result of a combiner for its arguments, all scalars or all vectors.
  Values EmitCombiner(const kernel::Combiner& combiner, const Values& arguments);
  // Results of a reduction, for kReduced nodes.
  void SetReduced(StageId stage, ReductionId reduction, int result, Lanes value);
  void ForgetReduced();
  const Lanes& Reduced(StageId stage, ReductionId reduction, int result) const {
    return reduced_[stage][reduction][result];
  }
  // Whether any of the stage's inner variables has no points at all.
  bool IsDead(StageId stage) const { return dead_[stage]; }

  // Where a strip's points are kept from here on: in `scratch`, of the vector variable's points
  // from `begin` on.
  void OpenStrip(llvm::Value* scratch, llvm::Value* begin);

  // The stage's vectors that are known here, are needed by what is not, and cost much to make.
  std::vector<NodeId> Costly(StageId stage) const;
  const Lanes& ValueOf(StageId stage, NodeId node) const { return values_[stage][node]; }
  // A node's value that has been made before.
  void SetValue(StageId stage, NodeId node, Lanes value);

  // A row of so many elements on the function's stack.
  llvm::Value* NewRow(ElementType type, int64_t points);

  // Accesses that are in no stage: partial results of split reductions, and what is kept of a
  // strip. `id` is what AddAccess gave. Memory that is `padded` has room for whole vectors.
  int AddAccess(const kernel::Index& index, ElementType type, llvm::Value* base,
                bool padded = false) {
    int id = AddAccess(index, type, base, {}, {});
    accesses_[id].padded = padded;
    return id;
  }
  void LoadAccess(int id, Lanes& value);
  void StoreAccess(int id, const Lanes& value);

  llvm::Value* Arg(kernel::ParamId param) { return args_[param]; }
  const Values& args() const { return args_; }

 private:
  // An index as far as it is known, apart from its constant: which terms are in the sum. Accesses
  // at the same index share it, and with it the register that it takes.
  struct Offset {
    kernel::Index index;
    StageId stage;  // of kValue atoms
    llvm::Value* sum = nullptr;
    std::vector<bool> done;
  };
  // Where memory is accessed: constant + offset from the base, which is a parameter's address,
  // loaded whenever it is wanted, where `base` is null.
  struct Access {
    ElementType type = ElementType::kInvalid;
    llvm::Value* base = nullptr;
    kernel::ParamId param;
    int64_t constant = 0;
    int offset = -1;
    // Masked stores are not forwarded to loads.
    bool padded = false;
    // The last address without the constant, and the offset in it. It holds in its block.
    llvm::Instruction* last = nullptr;
    llvm::Value* last_sum = nullptr;
  };

  void LoadArgs(llvm::Function* function);
  void StageRows(kernel::ParamId param, const NestEmitter* other);
  void KeepValues(const kernel::CpuNestSchedule& schedule, const NestEmitter* other);
  // A prefetch of the line of a byte.
  void AskFor(llvm::Value* pointer, int64_t byte, bool write);
  llvm::Value* LoadArg(kernel::ParamId param);
  int AddAccess(const kernel::Index& index, ElementType type, llvm::Value* base,
                kernel::ParamId param, StageId stage);
  void AddAccesses();
  void FindLive();
  bool Known(StageId stage, const kernel::Index& index) const;
  bool TermKnown(StageId stage, const kernel::Index::Term& term) const;
  bool TermIsVector(StageId stage, const kernel::Index::Term& term) const;
  bool ReadsOutput(const kernel::Node& node) const;
  bool Ready(StageId stage, const kernel::Node& node) const;
  // Whether a node is an exponential, or is read from where earlier stages store such alone.
  bool IsExponential(StageId stage, NodeId node) const;
  Dividends DividendsOf(StageId stage, NodeId node) const;
  void EmitNode(StageId stage, NodeId node);
  // A node's value from here on, which is stored where later stages want it.
  void AddValue(StageId stage, NodeId node, Lanes value);
  // A test of a case, or a select or an 'and' by one: a constant, or one of its operands. Null for
  // others.
  std::optional<Lanes> InCase(StageId stage, const kernel::Node& node);
  struct Case {
    VariableId variable;
    std::optional<int64_t> begin;  // of the piece whose code is open
  };
  // The case that the node is a test of, or null.
  const Case* CaseOf(const kernel::Node& node) const;
  void EmitReciprocalAhead(StageId stage, NodeId node);
  void AdvanceAccess(int id);
  // The value of an index, as i64 or, where `vector`, <width x int type>.
  llvm::Value* EmitIndex(StageId stage, const kernel::Index& index, int copy, bool vector,
                         llvm::IntegerType* type);
  llvm::Value* EmitAtom(StageId stage, const kernel::Atom& atom, int copy, bool vector,
                        llvm::IntegerType* type);
  // The lanes' values of a quotient or remainder beside that of the first lane of the first copy,
  // which is known or not. Nothing where they are not the same for all first lanes.
  struct AtomLanes {
    std::optional<int64_t> first;
    std::vector<int64_t> further;
  };
  std::optional<AtomLanes> LanesOf(StageId stage, const kernel::Atom& atom, int copy) const;
  llvm::Value* Numbers(const std::vector<int64_t>& numbers, llvm::IntegerType* type);
  // <first + factor * lane>.
  llvm::Value* Ramp(int64_t first, int64_t factor, llvm::IntegerType* type);
  // How far copy `copy` is along a variable from the first.
  int64_t CopyOffset(VariableId variable, int copy) const;
  bool IsVectorIndex(StageId stage, const kernel::Index& index) const;
  llvm::IntegerType* IndexType(const kernel::Index& index, bool vector);

  // How the lanes of a vector access lie in memory.
  struct Address {
    llvm::Value* pointer = nullptr;  // of lane 0, or the base of `offsets`
    int64_t stride = 0;              // in elements
    int64_t tile_stride = 0;         // of the tile variable
    llvm::Value* offsets = nullptr;  // <width x int>, where there is no stride
    std::vector<int64_t> lanes;      // the same, where they are known
    int64_t alignment = 1;
    int64_t row_alignment = 1;  // of a square's rows, which go along the tile variable
  };
  // The access's address, and so many elements further.
  llvm::Value* PointerOf(Access& access, int64_t further);
  Address AddressOf(Access& access, int copy);
  // Makes known lanes a stride, where they are that; how far the first one is then.
  int64_t AddLanes(Address& address, llvm::IntegerType* type);
  // By one vector of what the lanes have between them; null if that is more than a vector.
  llvm::Value* LoadLanes(const Address& address, ElementType type);
  // Of all lanes, in elements from the address's pointer on.
  llvm::Value* GatherOffsets(const Address& address);
  llvm::Value* GatherPointers(const Address& address, ElementType type);
  llvm::Value* LanePointer(const Address& address, llvm::Value* offsets, ElementType type,
                           int64_t lane);
  llvm::Value* MemoryMask(llvm::Value* mask);
  llvm::Value* VectorLoad(const Address& address, ElementType type, llvm::Value* mask);
  void VectorStore(const Address& address, ElementType type, llvm::Value* value, llvm::Value* mask,
                   bool nontemporal);
  void AlignedStore(llvm::Value* value, llvm::Value* pointer, ElementType type, int64_t alignment,
                    bool nontemporal);
  void KeepStrips(const kernel::CpuNestSchedule& schedule);
  bool IsSquare(const Address& address) const;
  // Whether vectors of the copies are side by side in memory, element by element.
  bool IsInterleaved(const Address& address) const;
  // A vector of places of vectors one after another.
  llvm::Value* Pick(const Values& from, const std::function<int64_t(int64_t lane)>& place);
  Values LoadInterleaved(const Address& address, ElementType type);
  void StoreInterleaved(const Address& address, ElementType type, const Values& values,
                        bool nontemporal);
  // Every so many elements.
  llvm::Value* LoadStrided(const Address& address, ElementType type);
  // Rows of a square as its columns.
  void Transpose(Values& rows, ElementType type);
  // The vectors of all copies, loaded along the tile variable and transposed.
  Values LoadSquare(const Address& address, ElementType type);
  void StoreSquare(const Address& address, ElementType type, Values values, bool nontemporal);
  Lanes LoadFrom(Access& access, const Lanes& guard);
  void StoreTo(Access& access, const Lanes& value);

  Builder b_;
  const kernel::Kernel& kernel_;
  const target::Cpu& cpu_;
  bool nontemporal_ = false;
  Status status_;
  IdVector<kernel::ParamId, llvm::Value*>
      args_;  // null for those that are loaded when they are wanted

  IdVector<VariableId, llvm::Value*> bound_;
  VariableId vector_variable_;
  int64_t width_ = 1;
  int copies_ = 1;
  int64_t aligned_ = 1;
  llvm::Value* mask_ = nullptr;
  llvm::Value* lanes_left_ = nullptr;
  llvm::Value* stores_ = nullptr;
  std::vector<Case> cases_;
  VariableId tile_variable_;
  int64_t tile_aligned_ = 1;

  IdVector<StageId, bool> dead_;
  template <typename T>
  using ByNode = IdVector<StageId, IdVector<NodeId, T>>;
  ByNode<bool> live_;
  ByNode<Lanes> values_;
  // Of a division whose divisor is known, and the same for all lanes, before the
  // dividend is.
  ByNode<std::optional<Reciprocal>> reciprocals_;
  ByNode<std::optional<Bf16Reciprocal>> bf16_reciprocals_;
  // Also by result.
  IdVector<StageId, IdVector<ReductionId, std::vector<Lanes>>> reduced_;
  std::vector<Access> accesses_;
  std::vector<Offset> offsets_;
  ByNode<int> load_access_;
  IdVector<StageId, std::vector<int>> store_access_;                // also by store
  IdVector<StageId, std::vector<std::vector<int>>> update_access_;  // also by update and result
  struct Prefetch {
    StageId stage;
    int access;
    bool write;
  };
  std::vector<Prefetch> prefetches_;
  IdVector<kernel::ParamId, llvm::Value*> staged_;  // where its rows are kept
  std::vector<llvm::Value*> kept_;                  // where the rows of values are kept
  // Of a value that an earlier stage has made: where it is kept.
  ByNode<int> made_access_;
  // Where a value is stored for later stages (an access, or -1): what is read of a strip first, and
  // kept values. And the accesses that go to where a strip's are.
  ByNode<int> keep_access_;
  struct InStrip {
    int access;
    ElementType type;
    int64_t offset;
  };
  std::vector<InStrip> in_strip_;
  struct Emitted {
    StageId stage;
    NodeId node;
    bool reciprocal = false;
  };
  std::vector<Emitted> emitted_;
  struct Undo {
    int offset;
    llvm::Value* sum;
    std::vector<bool> done;
  };
  std::vector<Undo> undo_;
};

}  // namespace kiln::codegen
