// The graph inside the compiler: a module of computations of instructions, with HLO's semantics.
//
// Ownership: a Module owns its Computations, a Computation its Instructions; every other pointer is
// borrowed and lives as long as its owner keeps it. A module is used by one thread at a time.
// Instructions are in order, operands and control predecessors first. In a scheduled module
// (Module::is_scheduled) it is the order of execution.
#pragma once

#include <bitset>
#include <cstdint>
#include <functional>
#include <iterator>
#include <list>
#include <memory>
#include <memory_resource>
#include <optional>
#include <ranges>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "base/node_pool.h"
#include "base/short_list.h"
#include "base/status.h"
#include "ir/control_edges.h"
#include "ir/frontend_attributes.h"
#include "ir/names.h"
#include "ir/users.h"
#include "ops/attributes.h"
#include "ops/inference.h"
#include "ops/op.h"
#include "tensor/literal.h"
#include "tensor/shape.h"

namespace kiln::ir {

class Computation;
class Module;

class Instruction {
 public:
  // Of a computation alone.
  Instruction();
  ~Instruction();
  Opcode opcode() const { return opcode_; }
  const Shape& shape() const { return shape_; }
  void set_shape(Shape shape);
  // Unique in its module, without the '%'.
  const std::string& name() const { return name_; }
  Computation* parent() const { return parent_; }
  // Unique in its module, growing with creation: a stable key for ordered results.
  int64_t id() const { return id_; }

  std::span<Instruction* const> operands() const { return operands_; }
  Instruction* operand(int64_t i) const { return operands_[i]; }
  int64_t operand_count() const { return static_cast<int64_t>(operands_.size()); }
  // Each user once, in no particular order.
  std::span<Instruction* const> users() const { return users_.all(); }

  const Attributes& attributes() const { return attributes_; }
  Attributes& mutable_attributes();
  const Ints& dimensions() const { return attributes_.IntsOf(Attr::kDimensions); }
  // Computations that the op calls, in the order of its attributes: to_apply or calls of call,
  // fusion and reduce; condition, body of while; the branches of conditional.
  std::span<Computation* const> called() const { return called_; }
  Computation* called(int64_t i) const { return called_[i]; }
  void set_called(int64_t i, Computation* computation);
  // Of a constant.
  const Literal& literal() const { return *literal_; }
  const std::shared_ptr<const Literal>& shared_literal() const { return literal_; }

  // Where the op came from, for dumps and messages: HLO's metadata op_name.
  const std::string& op_name() const { return op_name_; }
  void set_op_name(std::string name) { op_name_ = std::move(name); }
  // Null where there are none.
  const FrontendAttributesRef& frontend_attributes() const { return frontend_attributes_; }
  void set_frontend_attributes(FrontendAttributesRef attributes) {
    frontend_attributes_ = std::move(attributes);
  }
  // The text for a key, or null.
  const std::string* FindFrontendAttribute(std::string_view key) const {
    return frontend_attributes_ ? frontend_attributes_->Find(key) : nullptr;
  }

  // Instructions of the computation that end before this one begins, beside the operands, and those
  // that wait for this one. See Computation::AddControlDependency.
  std::span<Instruction* const> control_predecessors() const;
  std::span<Instruction* const> control_successors() const;

  bool IsConstant() const { return opcode_ == Opcode::kConstant; }
  bool IsRoot() const;
  // A constant (or a broadcast of one) whose every element is `value`.
  bool IsConstantOf(double value) const;

 private:
  friend class Computation;
  friend class Module;
  // Fields read by walks over graphs come first.
  Opcode opcode_ = Opcode::kParameter;
  Computation* parent_ = nullptr;
  int64_t id_ = 0;
  ShortList<Instruction*, 2> operands_;
  Users users_;
  ShortList<Computation*, 2> called_;
  Shape shape_;
  Attributes attributes_;
  std::string name_;
  std::string op_name_;
  std::shared_ptr<const Literal> literal_;
  FrontendAttributesRef frontend_attributes_;
  std::pmr::list<Instruction>::iterator position_;
};

// The parts of a new instruction.
struct InstructionSpec {
  Opcode opcode;
  std::vector<Instruction*> operands = {};
  Attributes attributes = {};
  std::vector<Computation*> called = {};
  // The shape, wholly (Create) or as far as the operands do not determine it (Add); see
  // InferenceInput::declared.
  std::optional<Shape> shape = std::nullopt;
  std::shared_ptr<const Literal> literal = nullptr;
  std::string name = {};  // made unique by a suffix; empty: from the opcode
  std::string op_name = {};
  FrontendAttributesRef frontend_attributes = {};
};

// The instructions of a computation, as pointers, in their order. The view and its iterators hold
// like those of a std::list: until the instruction at hand is removed.
class Instructions {
 public:
  class Iterator {
   public:
    using iterator_category = std::bidirectional_iterator_tag;
    using difference_type = std::ptrdiff_t;
    using value_type = Instruction*;
    using reference = Instruction*;
    using pointer = void;

    Iterator() = default;
    explicit Iterator(std::pmr::list<Instruction>::const_iterator at) : at_(at) {}
    Instruction* operator*() const { return const_cast<Instruction*>(&*at_); }
    Iterator& operator++() { return ++at_, *this; }
    Iterator operator++(int) { return Iterator(at_++); }
    Iterator& operator--() { return --at_, *this; }
    Iterator operator--(int) { return Iterator(at_--); }
    bool operator==(const Iterator&) const = default;

   private:
    std::pmr::list<Instruction>::const_iterator at_;
  };

  explicit Instructions(const std::pmr::list<Instruction>& list) : list_(&list) {}
  Iterator begin() const { return Iterator(list_->begin()); }
  Iterator end() const { return Iterator(list_->end()); }
  size_t size() const { return list_->size(); }
  bool empty() const { return list_->empty(); }
  Instruction* front() const { return *begin(); }
  Instruction* back() const { return *std::prev(end()); }

 private:
  const std::pmr::list<Instruction>* list_;
};

class Computation {
 public:
  // Of a module alone.
  Computation(Module* parent, std::string name);
  ~Computation();
  const std::string& name() const { return name_; }
  Module* parent() const { return parent_; }
  Instructions instructions() const { return Instructions(instructions_); }
  int64_t instruction_count() const { return static_cast<int64_t>(instructions_.size()); }
  // False: no instruction is of that opcode. Says it without a look at them.
  bool MayHold(Opcode opcode) const { return opcodes_[static_cast<size_t>(opcode)]; }
  // False: no instruction calls a computation.
  bool MayCall() const { return may_call_; }
  // The number of call sites in the module, including those in dead computations.
  int64_t call_count() const { return call_count_; }
  // By parameter number.
  std::span<Instruction* const> parameters() const { return parameters_; }
  Instruction* parameter(int64_t i) const { return parameters_[i]; }
  Instruction* root() const { return root_; }
  void set_root(Instruction* root) { root_ = root, NoteChange(); }
  // Another number after each change of the computation, one that no computation of any module has
  // had; changes of callees do not count.
  int64_t version() const { return version_; }
  ProgramShape program_shape() const;

  // Appends an instruction whose shape is inferred; all checks of inference apply.
  Result<Instruction*> Add(InstructionSpec spec);
  // Inserts an instruction of the given, complete shape before `before` (null: at the end), with no
  // checks: for passes and readers, whose work the verifier checks.
  Instruction* Create(InstructionSpec spec, Instruction* before = nullptr);

  // Makes every user of `from` use `to` instead, and `to` the root where `from` was.
  void ReplaceAllUses(Instruction* from, Instruction* to);
  void ReplaceOperand(Instruction* user, int64_t index, Instruction* operand);
  // Replaces all uses of `from` by a new instruction at its place, which takes its control
  // dependencies, and removes `from`.
  Instruction* Replace(Instruction* from, InstructionSpec spec);
  void SetOperands(Instruction* user, std::span<Instruction* const> operands);
  // Removes an instruction that has no users and is not the root. What waited for it waits for what
  // it waited for. Where it is a parameter, callers must lose the operand, and SetParameters closes
  // the gap.
  void Remove(Instruction* instruction);
  // Removes all instructions with their calls. It must have no callers; it is only left to be
  // removed by Module::RemoveUnusedComputations().
  void Clear();
  // Numbers all parameters anew.
  void SetParameters(std::vector<Instruction*> parameters);
  // Moves an instruction of another computation of the module here, before `before` (null: at the
  // end), where it uses `operands`. It must be no parameter; its users are unchanged, and it leaves
  // its control dependencies as a removed one does.
  void TakeInstruction(Instruction* instruction, std::span<Instruction* const> operands,
                       Instruction* before);
  // Moves the instructions of another computation of the module, except parameters, before `before`
  // (null: to the end). arguments[k], an instruction of this computation, replaces parameter k.
  // Returns the former root. The other computation is left without a root, and must not be called.
  // Control dependencies of parameters are dropped.
  Instruction* TakeInstructions(Computation* from, std::span<Instruction* const> arguments,
                                Instruction* before);
  // Puts an instruction before another one (null: at the end).
  void Move(Instruction* instruction, Instruction* before);
  // Puts the instructions into this order, which must be a permutation of all.
  void Reorder(std::span<Instruction* const> order);
  // Operands and control predecessors before what needs them, depth first from the root, then the
  // ones the root does not need; but side effects in their order. The result depends on the graph
  // alone, and on that order.
  std::vector<Instruction*> PostOrder() const;

  // Makes `after` wait for `before`, as if for an operand. Where it comes first, `before` and what
  // that needs are moved to its front, side effects among them. INVALID_ARGUMENT, naming the two,
  // if `before` needs `after`, or is it. Takes constant time while instructions are in the order of
  // their creation, else a time that grows with the distance of the two.
  Status AddControlDependency(Instruction* before, Instruction* after);
  bool HasControlDependencies() const { return control_ != nullptr; }
  void DropControlDependencies();

 private:
  friend class Instruction;
  friend class Module;
  void Note(const Instruction& instruction);
  void NoteChange();
  // That the instruction's calls are there, or are no more.
  static void CountCalls(const Instruction& instruction, int64_t change);
  bool ComesBefore(const Instruction* a, const Instruction* b) const;
  // Before `after`, which comes first, `before` and what it needs; false if it needs `after`.
  bool MoveBefore(Instruction* before, Instruction* after);
  // A control dependency known to be right.
  void AddEdge(Instruction* before, Instruction* after);
  void BypassControl(Instruction* instruction);

  std::string name_;
  Module* parent_;
  std::pmr::list<Instruction> instructions_;
  std::vector<Instruction*> parameters_;
  Instruction* root_ = nullptr;
  int64_t version_ = 0;
  // Of instructions that are or were here.
  std::bitset<kOpcodeCount> opcodes_;
  bool may_call_ = false;
  // Their ids grow from each to the next.
  bool is_in_creation_order_ = true;
  int64_t call_count_ = 0;
  // Null where there are none.
  std::unique_ptr<ControlEdges> control_;
};

// A result that shares its memory with a parameter. Indices are paths into tuples.
struct InputOutputAlias {
  std::vector<int64_t> output_index;
  int64_t parameter = 0;
  std::vector<int64_t> parameter_index;
  bool must_alias = false;
};

class Module {
 public:
  explicit Module(std::string name);
  ~Module();
  Module(const Module&) = delete;
  Module& operator=(const Module&) = delete;

  const std::string& name() const { return name_; }
  void set_name(std::string name) { name_ = std::move(name); }
  // Called computations come before their callers.
  const std::vector<std::unique_ptr<Computation>>& computations() const { return computations_; }
  Computation* entry() const { return entry_; }
  void set_entry(Computation* entry) { entry_ = entry; }
  std::vector<InputOutputAlias>& aliases() { return aliases_; }
  const std::vector<InputOutputAlias>& aliases() const { return aliases_; }
  bool is_scheduled() const { return is_scheduled_; }
  void set_is_scheduled(bool scheduled) { is_scheduled_ = scheduled; }

  // Of that name, made unique.
  Computation* AddComputation(std::string_view name);
  // Removes computations that the entry does not reach.
  void RemoveUnusedComputations();
  // A deep copy; `mapping`, if given, receives old instruction to new.
  std::unique_ptr<Module> Clone(
      std::unordered_map<const Instruction*, Instruction*>* mapping = nullptr) const;
  // Copies a computation of this or another module, and its callees, into this one.
  Computation* CloneComputation(
      const Computation& computation, std::string name,
      std::unordered_map<const Instruction*, Instruction*>* mapping = nullptr);
  // Computations in an order in which callees come before callers (recomputed).
  std::vector<Computation*> CalleesFirst() const;
  // Puts computations() in that order.
  void SortComputations();
  // Of all computations.
  void DropControlDependencies();
  int64_t instruction_count() const;

  int64_t NextId() { return next_id_++; }

 private:
  friend class Computation;
  std::string name_;
  // Of instructions, which come and go.
  NodePool memory_;
  std::vector<std::unique_ptr<Computation>> computations_;
  Computation* entry_ = nullptr;
  std::vector<InputOutputAlias> aliases_;
  bool is_scheduled_ = false;
  int64_t next_id_ = 0;
  int64_t last_version_ = 0;
  Names instruction_names_;
  Names computation_names_;
};

inline void Computation::NoteChange() { version_ = ++parent_->last_version_; }
inline std::span<Instruction* const> Instruction::control_predecessors() const {
  if (!parent_->control_) return {};
  return parent_->control_->Predecessors(this);
}
inline std::span<Instruction* const> Instruction::control_successors() const {
  if (!parent_->control_) return {};
  return parent_->control_->Successors(this);
}
inline void Instruction::set_shape(Shape shape) {
  shape_ = std::move(shape);
  parent_->NoteChange();
}
inline Attributes& Instruction::mutable_attributes() {
  parent_->NoteChange();
  return attributes_;
}

// A spec for a copy of `instruction` with other operands.
InstructionSpec CopySpec(const Instruction& instruction, std::vector<Instruction*> operands);

// Element `k` of a tuple: the tuple op's operand, or a new instruction before `before` (null: at
// the end).
Instruction* ElementOf(Instruction* tuple, int64_t k, Instruction* before = nullptr);

// Whether an instruction is the bits of a scalar as another scalar: a bitcast-convert between types
// of one width.
bool IsScalarBitcast(const Instruction& instruction);

}  // namespace kiln::ir

template <>
inline constexpr bool std::ranges::enable_borrowed_range<kiln::ir::Instructions> = true;
