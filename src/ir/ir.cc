#include "ir/ir.h"

#include <algorithm>
#include <unordered_set>
#include <utility>

#include "ir/instruction_map.h"

namespace kiln::ir {
namespace {

void AddUser(std::vector<Instruction*>& users, Instruction* user) {
  if (std::find(users.rbegin(), users.rend(), user) == users.rend()) users.push_back(user);
}

// From the end: an array that thousands read mostly loses those it got last.
void RemoveUser(std::vector<Instruction*>& users, const Instruction* user) {
  auto at = std::find(users.rbegin(), users.rend(), user);
  if (at != users.rend()) users.erase(std::next(at).base());
}

// HLO's names are letters, digits, '_', '.' and '-', and do not begin with the last three or a
// digit.
std::string ValidName(std::string_view wanted) {
  auto is_letter = [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_';
  };
  std::string name(wanted);
  for (char& c : name) {
    if (!is_letter(c) && !(c >= '0' && c <= '9') && c != '.' && c != '-') c = '_';
  }
  if (name.empty() || !is_letter(name[0])) name.insert(name.begin(), '_');
  return name;
}

// `wanted`, made valid, where it is free, else with the first free number behind it.
std::string UniqueName(std::unordered_map<std::string, int64_t>& taken, std::string_view wanted) {
  std::string name = ValidName(wanted);
  auto [it, fresh] = taken.try_emplace(name, 0);
  if (fresh) return name;
  // "add.7" counts on from "add", so that names do not grow by a number per copy.
  size_t dot = name.rfind('.');
  if (dot != std::string::npos && ParseInt(std::string_view(name).substr(dot + 1))) {
    name.resize(dot);
  }
  int64_t& next = taken[name];
  while (true) {
    std::string candidate = Cat(name, ".", ++next);
    if (taken.try_emplace(candidate, 0).second) return candidate;
  }
}

}  // namespace

bool Instruction::IsRoot() const { return parent_->root() == this; }

bool Instruction::IsConstantOf(double value) const {
  if (opcode_ == Opcode::kBroadcast) return operands_[0]->IsConstantOf(value);
  return IsConstant() && shape_.is_array() && literal_->IsAll(value);
}

ProgramShape Computation::program_shape() const {
  ProgramShape shape;
  for (const Instruction* p : parameters_) shape.parameters.push_back(p->shape());
  shape.result = root_->shape();
  return shape;
}

Result<Instruction*> Computation::Add(InstructionSpec spec) {
  std::vector<const Shape*> operands;
  for (const Instruction* operand : spec.operands) operands.push_back(&operand->shape());
  std::vector<ProgramShape> called;
  for (const Computation* c : spec.called) called.push_back(c->program_shape());
  InferenceInput input{spec.opcode, operands, spec.attributes, spec.shape ? &*spec.shape : nullptr,
                       called};
  KILN_ASSIGN_OR_RETURN(Shape shape, InferShape(input));
  spec.shape = std::move(shape);
  return Create(std::move(spec));
}

Instruction* Computation::Create(InstructionSpec spec, Instruction* before) {
  auto owned = std::make_unique<Instruction>();
  Instruction* instruction = owned.get();
  instruction->opcode_ = spec.opcode;
  instruction->shape_ = std::move(*spec.shape);
  instruction->name_ = parent_->UniqueInstructionName(
      spec.name.empty() ? OpcodeName(spec.opcode) : std::string_view(spec.name));
  instruction->op_name_ = std::move(spec.op_name);
  instruction->parent_ = this;
  instruction->id_ = parent_->NextId();
  instruction->operands_ = std::move(spec.operands);
  instruction->attributes_ = std::move(spec.attributes);
  instruction->called_ = std::move(spec.called);
  instruction->literal_ = std::move(spec.literal);
  auto at = before ? before->position_ : instructions_.end();
  instruction->position_ = instructions_.insert(at, std::move(owned));
  for (Instruction* operand : instruction->operands_) {
    // Only the last user can be this one: a fresh instruction is nobody's user yet.
    if (operand->users_.empty() || operand->users_.back() != instruction) {
      operand->users_.push_back(instruction);
    }
  }
  if (spec.opcode == Opcode::kParameter) {
    size_t number = static_cast<size_t>(instruction->attributes_.Int(Attr::kParameterNumber));
    if (parameters_.size() <= number) parameters_.resize(number + 1);
    parameters_[number] = instruction;
  }
  return instruction;
}

void Computation::ReplaceOperand(Instruction* user, int64_t index, Instruction* operand) {
  Instruction* old = user->operands_[index];
  if (old == operand) return;
  user->operands_[index] = operand;
  if (std::find(user->operands_.begin(), user->operands_.end(), old) == user->operands_.end()) {
    RemoveUser(old->users_, user);
  }
  AddUser(operand->users_, user);
}

void Computation::SetOperands(Instruction* user, std::vector<Instruction*> operands) {
  std::vector<Instruction*> before = std::exchange(user->operands_, std::move(operands));
  const std::vector<Instruction*>& now = user->operands_;
  // Calls f(x) for each of `of` that is not among `but`, once.
  auto for_each = [](const std::vector<Instruction*>& of, const std::vector<Instruction*>& but,
                     auto f) {
    for (auto x = of.begin(); x != of.end(); ++x) {
      bool is_other = std::find(but.begin(), but.end(), *x) == but.end();
      if (is_other && std::find(of.begin(), x, *x) == x) f(*x);
    }
  };
  for_each(before, now, [&](Instruction* x) { RemoveUser(x->users_, user); });
  // No search among the users, who may be many: it was none.
  for_each(now, before, [&](Instruction* x) { x->users_.push_back(user); });
}

void Computation::ReplaceAllUses(Instruction* from, Instruction* to) {
  if (from == to) return;
  std::vector<Instruction*> users = std::move(from->users_);
  from->users_.clear();
  for (Instruction* user : users) {
    if (user == to) {
      from->users_.push_back(user);
      continue;
    }
    std::replace(user->operands_.begin(), user->operands_.end(), from, to);
    AddUser(to->users_, user);
  }
  if (root_ == from) root_ = to;
}

Instruction* Computation::Replace(Instruction* from, InstructionSpec spec) {
  Instruction* to = Create(std::move(spec), from);
  ReplaceAllUses(from, to);
  if (from->users_.empty()) Remove(from);
  return to;
}

void Computation::Remove(Instruction* instruction) {
  std::vector<Instruction*> operands = std::move(instruction->operands_);
  std::sort(operands.begin(), operands.end());
  operands.erase(std::unique(operands.begin(), operands.end()), operands.end());
  for (Instruction* operand : operands) RemoveUser(operand->users_, instruction);
  if (instruction->opcode_ == Opcode::kParameter) {
    std::replace(parameters_.begin(), parameters_.end(), instruction,
                 static_cast<Instruction*>(nullptr));
  }
  instructions_.erase(instruction->position_);
}

void Computation::SetParameters(std::vector<Instruction*> parameters) {
  parameters_ = std::move(parameters);
  for (size_t k = 0; k < parameters_.size(); ++k) {
    parameters_[k]->attributes_.Set(Attr::kParameterNumber, static_cast<int64_t>(k));
  }
}

void Computation::TakeInstruction(Instruction* instruction, std::vector<Instruction*> operands,
                                  Instruction* before) {
  SetOperands(instruction, std::move(operands));
  instructions_.splice(before ? before->position_ : instructions_.end(),
                       instruction->parent_->instructions_, instruction->position_);
  instruction->parent_ = this;
}

Instruction* Computation::TakeInstructions(Computation* from,
                                           std::span<Instruction* const> arguments,
                                           Instruction* before) {
  auto at = before ? before->position_ : instructions_.end();
  for (size_t k = 0; k < arguments.size(); ++k) {
    from->ReplaceAllUses(from->parameters_[k], arguments[k]);
  }
  for (auto it = from->instructions_.begin(); it != from->instructions_.end();) {
    auto next = std::next(it);
    if ((*it)->opcode_ != Opcode::kParameter) {
      (*it)->parent_ = this;
      instructions_.splice(at, from->instructions_, it);
    }
    it = next;
  }
  return std::exchange(from->root_, nullptr);
}

void Computation::Move(Instruction* instruction, Instruction* before) {
  instructions_.splice(before ? before->position_ : instructions_.end(), instructions_,
                       instruction->position_);
}

void Computation::Reorder(std::span<Instruction* const> order) {
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
      if (top.next < top.instruction->operands_.size()) {
        Instruction* operand = top.instruction->operands_[top.next++];
        if (done.Insert(operand)) stack.push_back({operand});
      } else {
        order.push_back(top.instruction);
        stack.pop_back();
      }
    }
  };
  if (root_) visit(root_);
  for (const auto& instruction : instructions_) visit(instruction.get());
  return order;
}

Computation* Module::AddComputation(std::string name) {
  computations_.push_back(std::make_unique<Computation>());
  Computation* c = computations_.back().get();
  c->name_ = UniqueComputationName(name);
  c->parent_ = this;
  return c;
}

std::vector<Computation*> Module::CalleesFirst() const {
  std::vector<Computation*> order;
  std::unordered_set<const Computation*> done;
  std::function<void(Computation*)> visit = [&](Computation* c) {
    if (!done.insert(c).second) return;
    for (const auto& instruction : c->instructions()) {
      for (Computation* callee : instruction->called()) visit(callee);
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
    if (!used.insert(c).second) continue;
    for (const auto& instruction : c->instructions()) {
      for (const Computation* callee : instruction->called()) work.push_back(callee);
    }
  }
  std::erase_if(computations_, [&](const auto& c) { return !used.contains(c.get()); });
}

Computation* Module::CloneComputation(
    const Computation& computation, std::string name,
    std::unordered_map<const Instruction*, Instruction*>* mapping) {
  std::unordered_map<const Instruction*, Instruction*> local;
  auto& map = mapping ? *mapping : local;
  std::unordered_map<const Computation*, Computation*> copies;
  std::function<Computation*(const Computation&, std::string)> copy =
      [&](const Computation& from, std::string wanted) -> Computation* {
    if (auto it = copies.find(&from); it != copies.end()) return it->second;
    // Callees first, so that they stand before their caller.
    for (const auto& instruction : from.instructions()) {
      for (const Computation* callee : instruction->called()) copy(*callee, callee->name());
    }
    Computation* to = AddComputation(std::move(wanted));
    copies.emplace(&from, to);
    for (const auto& instruction : from.instructions()) {
      std::vector<Instruction*> operands;
      for (const Instruction* operand : instruction->operands())
        operands.push_back(map.at(operand));
      InstructionSpec spec = CopySpec(*instruction, std::move(operands));
      for (Computation*& callee : spec.called) callee = copies.at(callee);
      map[instruction.get()] = to->Create(std::move(spec));
    }
    if (from.root()) to->set_root(map.at(from.root()));
    return to;
  };
  return copy(computation, std::move(name));
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

std::string Module::UniqueInstructionName(std::string_view wanted) {
  return UniqueName(instruction_names_, wanted);
}

std::string Module::UniqueComputationName(std::string_view wanted) {
  return UniqueName(computation_names_, wanted);
}

InstructionSpec CopySpec(const Instruction& i, std::vector<Instruction*> operands) {
  return InstructionSpec{.opcode = i.opcode(),
                         .operands = std::move(operands),
                         .attributes = i.attributes(),
                         .called = {i.called().begin(), i.called().end()},
                         .shape = i.shape(),
                         .literal = i.shared_literal(),
                         .name = i.name(),
                         .op_name = i.op_name()};
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
