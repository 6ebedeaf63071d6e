#include "ir/ir.h"

#include <algorithm>
#include <atomic>
#include <unordered_set>
#include <utility>

#include "ir/analysis/effects.h"
#include "ir/builder.h"
#include "ir/computation_copies.h"
#include "ir/instruction_map.h"

namespace kiln::ir {
namespace {

// Of a module: there is room for 2^40 changes before the next one's.
int64_t FirstVersion() {
  static std::atomic<int64_t> modules = 0;
  return ++modules << 40;
}

}  // namespace

bool Instruction::IsRoot() const { return parent_->root() == this; }

void Instruction::set_called(int64_t i, Computation* computation) {
  parent_->NoteChange();
  // Readers of text set the callees later.
  if (Computation* before = called_[i]) --before->call_count_;
  if (computation) ++computation->call_count_;
  called_[i] = computation;
}

bool Instruction::IsConstantOf(double value) const {
  if (opcode_ == Opcode::kBroadcast) return operands_[0]->IsConstantOf(value);
  return IsConstant() && shape_.is_array() && literal_->IsAll(value);
}

Instruction::Instruction() = default;
Instruction::~Instruction() = default;

Module::Module(std::string name) : name_(std::move(name)) {}
Module::~Module() = default;

Computation::~Computation() = default;
Computation::Computation(Module* parent, std::string name)
    : name_(std::move(name)), parent_(parent), instructions_(&parent->memory_) {
  if (parent->last_version_ == 0) parent->last_version_ = FirstVersion();
  NoteChange();
}

ProgramShape Computation::program_shape() const {
  ProgramShape shape;
  for (const Instruction* p : parameters_) shape.parameters.push_back(p->shape());
  shape.result = root_->shape();
  return shape;
}

Result<Instruction*> Computation::Add(InstructionSpec spec) {
  KILN_ASSIGN_OR_RETURN(spec.shape, InferShape(spec));
  return Create(std::move(spec));
}

Instruction* Computation::Create(InstructionSpec spec, Instruction* before) {
  auto at = instructions_.emplace(before ? before->position_ : instructions_.end());
  Instruction* instruction = &*at;
  instruction->position_ = at;
  if (before) is_in_creation_order_ = false;
  instruction->opcode_ = spec.opcode;
  instruction->shape_ = std::move(*spec.shape);
  instruction->name_ = parent_->instruction_names_.Unique(
      spec.name.empty() ? OpcodeName(spec.opcode) : std::string_view(spec.name));
  instruction->op_name_ = std::move(spec.op_name);
  instruction->frontend_attributes_ = std::move(spec.frontend_attributes);
  instruction->parent_ = this;
  instruction->id_ = parent_->NextId();
  instruction->operands_.assign(spec.operands);
  instruction->attributes_ = std::move(spec.attributes);
  instruction->called_.assign(spec.called);
  instruction->literal_ = std::move(spec.literal);
  Note(*instruction);
  CountCalls(*instruction, 1);
  for (Instruction* operand : instruction->operands_) {
    // Only the last user can be this one: a fresh instruction is nobody's user yet.
    std::span<Instruction* const> users = operand->users();
    if (users.empty() || users.back() != instruction) operand->users_.AddNew(instruction);
  }
  if (spec.opcode == Opcode::kParameter) {
    size_t number = static_cast<size_t>(instruction->attributes_.Int(Attr::kParameterNumber));
    if (parameters_.size() <= number) parameters_.resize(number + 1);
    parameters_[number] = instruction;
  }
  return instruction;
}

void Computation::Note(const Instruction& instruction) {
  NoteChange();
  opcodes_.set(static_cast<size_t>(instruction.opcode_));
  may_call_ |= !instruction.called_.empty();
}

void Computation::CountCalls(const Instruction& instruction, int64_t change) {
  for (Computation* callee : instruction.called_) {
    if (callee) callee->call_count_ += change;
  }
}

void Computation::ReplaceOperand(Instruction* user, int64_t index, Instruction* operand) {
  Instruction* old = user->operands_[index];
  if (old == operand) return;
  NoteChange();
  user->operands_[index] = operand;
  if (std::find(user->operands_.begin(), user->operands_.end(), old) == user->operands_.end()) {
    old->users_.Remove(user);
  }
  operand->users_.Add(user);
}

void Computation::SetOperands(Instruction* user, std::span<Instruction* const> operands) {
  NoteChange();
  const ShortList<Instruction*, 2> before = std::move(user->operands_);
  user->operands_.assign(operands);
  // Mostly a few change, side by side.
  const size_t least = std::min(before.size(), operands.size());
  size_t front = 0, back = 0;
  while (front < least && before[front] == operands[front]) ++front;
  while (back < least - front &&
         before[before.size() - 1 - back] == operands[operands.size() - 1 - back]) {
    ++back;
  }
  if (constexpr size_t kFew = 8; std::max(before.size(), operands.size()) - front - back <= kFew) {
    const auto is_first = [](std::span<Instruction* const> of, size_t k) {
      return std::ranges::find(of.first(k), of[k]) == of.begin() + static_cast<std::ptrdiff_t>(k);
    };
    for (size_t k = front; k < before.size() - back; ++k) {
      const bool stays = std::ranges::find(operands, before[k]) != operands.end();
      if (!stays && is_first(before, k)) before[k]->users_.Remove(user);
    }
    for (size_t k = front; k < operands.size() - back; ++k) {
      const bool was_there = std::ranges::find(before, operands[k]) != before.end();
      if (!was_there && is_first(operands, k)) operands[k]->users_.AddNew(user);
    }
    return;
  }
  using Sorted = ShortList<Instruction*, 16>;
  auto distinct = [](std::span<Instruction* const> of) {
    Sorted sorted;
    sorted.assign(of);
    std::ranges::sort(sorted);
    sorted.truncate(std::ranges::unique(sorted).begin());
    return sorted;
  };
  const Sorted old = distinct(before), now = distinct(operands);
  for (Instruction* x : old) {
    if (!std::ranges::binary_search(now, x)) x->users_.Remove(user);
  }
  for (Instruction* x : now) {
    if (!std::ranges::binary_search(old, x)) x->users_.AddNew(user);
  }
}

void Computation::ReplaceAllUses(Instruction* from, Instruction* to) {
  if (from == to) return;
  NoteChange();
  Users users = std::move(from->users_);
  for (Instruction* user : users.all()) {
    if (user == to) {
      from->users_.AddNew(user);
      continue;
    }
    std::replace(user->operands_.begin(), user->operands_.end(), from, to);
    to->users_.Add(user);
  }
  if (root_ == from) root_ = to;
}

Instruction* Computation::Replace(Instruction* from, InstructionSpec spec) {
  Instruction* to = Create(std::move(spec), from);
  ReplaceAllUses(from, to);
  if (control_) control_->Replace(from, to);
  if (from->users_.empty()) Remove(from);
  return to;
}

void Computation::Remove(Instruction* instruction) {
  NoteChange();
  SetOperands(instruction, {});
  if (instruction->opcode_ == Opcode::kParameter) {
    std::replace(parameters_.begin(), parameters_.end(), instruction,
                 static_cast<Instruction*>(nullptr));
  }
  CountCalls(*instruction, -1);
  BypassControl(instruction);
  instructions_.erase(instruction->position_);
}

void Computation::Clear() {
  NoteChange();
  for (const Instruction& instruction : instructions_) CountCalls(instruction, -1);
  root_ = nullptr;
  parameters_.clear();
  instructions_.clear();
  opcodes_.reset();
  may_call_ = false;
  is_in_creation_order_ = true;
  control_.reset();
}

void Computation::SetParameters(std::vector<Instruction*> parameters) {
  NoteChange();
  parameters_ = std::move(parameters);
  for (size_t k = 0; k < parameters_.size(); ++k) {
    Attributes& attributes = parameters_[k]->attributes_;
    const auto number = static_cast<int64_t>(k);
    if (attributes.Int(Attr::kParameterNumber) != number) {
      attributes.Set(Attr::kParameterNumber, number);
    }
  }
}

void Computation::TakeInstruction(Instruction* instruction, std::span<Instruction* const> operands,
                                  Instruction* before) {
  NoteChange();
  instruction->parent_->NoteChange();
  SetOperands(instruction, operands);
  instruction->parent_->BypassControl(instruction);
  is_in_creation_order_ = false;
  instructions_.splice(before ? before->position_ : instructions_.end(),
                       instruction->parent_->instructions_, instruction->position_);
  instruction->parent_ = this;
  Note(*instruction);
}

Instruction* Computation::TakeInstructions(Computation* from,
                                           std::span<Instruction* const> arguments,
                                           Instruction* before) {
  NoteChange();
  from->NoteChange();
  auto at = before ? before->position_ : instructions_.end();
  for (size_t k = 0; k < arguments.size(); ++k) {
    from->ReplaceAllUses(from->parameters_[k], arguments[k]);
  }
  opcodes_ |= from->opcodes_;
  may_call_ |= from->may_call_;
  is_in_creation_order_ = false;
  for (Instruction* parameter : from->parameters_) from->BypassControl(parameter);
  std::vector<std::pair<Instruction*, Instruction*>> edges;
  for (Instruction* i : from->instructions()) {
    for (Instruction* before_it : i->control_predecessors()) edges.emplace_back(before_it, i);
  }
  from->control_.reset();
  for (auto it = from->instructions_.begin(); it != from->instructions_.end();) {
    auto next = std::next(it);
    if (it->opcode_ != Opcode::kParameter) {
      it->parent_ = this;
      instructions_.splice(at, from->instructions_, it);
    }
    it = next;
  }
  for (auto [first, second] : edges) AddEdge(first, second);
  return std::exchange(from->root_, nullptr);
}

void Computation::Move(Instruction* instruction, Instruction* before) {
  NoteChange();
  is_in_creation_order_ = false;
  instructions_.splice(before ? before->position_ : instructions_.end(), instructions_,
                       instruction->position_);
}

void Computation::Reorder(std::span<Instruction* const> order) {
  if (std::ranges::equal(instructions(), order)) return;
  for (Instruction* instruction : order) Move(instruction, nullptr);
}

std::vector<Instruction*> Computation::PostOrder() const {
  std::vector<Instruction*> order;
  order.reserve(instructions_.size());
  InstructionSet done(*this);
  struct Visit {
    Instruction* instruction;
    size_t next = 0;
  };
  std::vector<Visit> stack;
  auto visit = [&](Instruction* start) {
    if (!done.Insert(start)) return;
    stack.push_back({start});
    while (!stack.empty()) {
      Visit& top = stack.back();
      const size_t operands = top.instruction->operands_.size();
      Instruction* needed = nullptr;
      if (top.next < operands) {
        needed = top.instruction->operands_[top.next];
      } else if (control_) {
        auto predecessors = control_->Predecessors(top.instruction);
        if (top.next - operands < predecessors.size()) needed = predecessors[top.next - operands];
      }
      if (needed) {
        ++top.next;
        if (done.Insert(needed)) stack.push_back({needed});
      } else {
        order.push_back(top.instruction);
        stack.pop_back();
      }
    }
  };
  if (root_) visit(root_);
  for (Instruction* instruction : instructions()) visit(instruction);
  return WithEffectsInOrder(*this, std::move(order));
}

bool Computation::ComesBefore(const Instruction* a, const Instruction* b) const {
  if (is_in_creation_order_) return a->id_ < b->id_;
  // Forward and backward in turn, so that it takes as long as the two are apart.
  std::pmr::list<Instruction>::const_iterator next = a->position_, last = a->position_;
  while (true) {
    if (next != instructions_.end() && &*next++ == b) return true;
    if (next == instructions_.end()) return false;
    if (last == instructions_.begin()) continue;
    if (&*--last == b) return false;
  }
}

bool Computation::MoveBefore(Instruction* before, Instruction* after) {
  std::unordered_set<const Instruction*> needed = {before};
  std::vector<Instruction*> moved;
  for (auto it = before->position_; &*it != after; --it) {
    if (!needed.contains(&*it)) continue;
    moved.push_back(&*it);
    needed.insert(it->operands_.begin(), it->operands_.end());
    if (!control_) continue;
    auto predecessors = control_->Predecessors(&*it);
    needed.insert(predecessors.begin(), predecessors.end());
  }
  if (needed.contains(after)) return false;
  for (Instruction* instruction : moved) {
    Move(instruction, after);
    after = instruction;
  }
  return true;
}

Status Computation::AddControlDependency(Instruction* before, Instruction* after) {
  if (before->parent_ != this || after->parent_ != this) {
    return InvalidArgument("'", after->name_, "' cannot wait for '", before->name_,
                           "', which is of another computation");
  }
  if (before == after) return InvalidArgument("'", after->name_, "' cannot wait for itself");
  if (!ComesBefore(before, after) && !MoveBefore(before, after)) {
    return InvalidArgument("'", after->name_, "' cannot wait for '", before->name_,
                           "', which needs it");
  }
  AddEdge(before, after);
  return OkStatus();
}

void Computation::AddEdge(Instruction* before, Instruction* after) {
  if (!control_) control_ = std::make_unique<ControlEdges>();
  if (control_->Add(before, after)) NoteChange();
}

void Computation::DropControlDependencies() {
  if (!control_) return;
  control_.reset();
  NoteChange();
}

void Computation::BypassControl(Instruction* instruction) {
  if (!control_) return;
  control_->Bypass(instruction);
  if (control_->empty()) control_.reset();
}

Computation* Module::AddComputation(std::string_view name) {
  computations_.push_back(std::make_unique<Computation>(this, computation_names_.Unique(name)));
  return computations_.back().get();
}

std::vector<Computation*> Module::CalleesFirst() const {
  std::vector<Computation*> order;
  std::unordered_set<const Computation*> done;
  std::function<void(Computation*)> visit = [&](Computation* c) {
    if (!done.insert(c).second) return;
    if (c->MayCall()) {
      for (Instruction* instruction : c->instructions()) {
        for (Computation* callee : instruction->called()) visit(callee);
      }
    }
    order.push_back(c);
  };
  if (entry_) visit(entry_);
  for (const auto& c : computations_) visit(c.get());
  return order;
}

void Module::SortComputations() {
  std::unordered_map<const Computation*, size_t> position;
  for (const Computation* c : CalleesFirst()) position.emplace(c, position.size());
  std::sort(computations_.begin(), computations_.end(), [&](const auto& a, const auto& b) {
    return position.at(a.get()) < position.at(b.get());
  });
}

void Module::RemoveUnusedComputations() {
  std::unordered_set<const Computation*> used;
  std::vector<const Computation*> work;
  if (entry_) work.push_back(entry_);
  while (!work.empty()) {
    const Computation* c = work.back();
    work.pop_back();
    if (!used.insert(c).second || !c->MayCall()) continue;
    for (Instruction* instruction : c->instructions()) {
      for (const Computation* callee : instruction->called()) work.push_back(callee);
    }
  }
  for (const auto& c : computations_) {
    if (!used.contains(c.get())) c->Clear();
  }
  std::erase_if(computations_, [&](const auto& c) { return !used.contains(c.get()); });
}

void Module::DropControlDependencies() {
  for (const auto& c : computations_) c->DropControlDependencies();
}

Computation* Module::CloneComputation(
    const Computation& computation, std::string name,
    std::unordered_map<const Instruction*, Instruction*>* mapping) {
  return ComputationCopies(*this, mapping).Add(computation, std::move(name));
}

std::unique_ptr<Module> Module::Clone(
    std::unordered_map<const Instruction*, Instruction*>* mapping) const {
  auto clone = std::make_unique<Module>(name_);
  clone->aliases_ = aliases_;
  clone->is_scheduled_ = is_scheduled_;
  if (entry_) clone->entry_ = clone->CloneComputation(*entry_, entry_->name(), mapping);
  return clone;
}

int64_t Module::instruction_count() const {
  int64_t n = 0;
  for (const auto& c : computations_) n += c->instruction_count();
  return n;
}

InstructionSpec CopySpec(const Instruction& i, std::vector<Instruction*> operands) {
  return InstructionSpec{.opcode = i.opcode(),
                         .operands = std::move(operands),
                         .attributes = i.attributes(),
                         .called = {i.called().begin(), i.called().end()},
                         .shape = i.shape(),
                         .literal = i.shared_literal(),
                         .name = i.name(),
                         .op_name = i.op_name(),
                         .frontend_attributes = i.frontend_attributes()};
}

Instruction* ElementOf(Instruction* tuple, int64_t k, Instruction* before) {
  if (tuple->opcode() == Opcode::kTuple) return tuple->operand(k);
  return tuple->parent()->Create({.opcode = Opcode::kGetTupleElement,
                                  .operands = {tuple},
                                  .attributes = {{Attr::kIndex, k}},
                                  .shape = tuple->shape().elements()[static_cast<size_t>(k)]},
                                 before);
}

bool IsScalarBitcast(const Instruction& i) {
  return i.opcode() == Opcode::kBitcastConvert && i.shape().is_scalar() &&
         i.operand(0)->shape().is_scalar();
}

}  // namespace kiln::ir
