#include "passes/fusion/grow.h"

#include <algorithm>

#include "passes/control/computations.h"

namespace kiln::passes {

using ir::Computation;
using ir::Instruction;

std::string FusionKind(const Instruction& i) {
  if (i.opcode() == Opcode::kFusion) return i.attributes().Text(Attr::kFusionKind);
  if (!IsHero(i.opcode())) return "kLoop";
  return OpRoleOf(i.opcode()) == OpRole::kDot ? "kOutput" : "kInput";
}

namespace {

// Users of a kernel's whole tuple get a rebuilt tuple of its outputs; so does the computation if it
// is the root.
void TakeApart(Instruction* kernel) {
  Computation* c = kernel->parent();
  std::vector<Instruction*> users(kernel->users().begin(), kernel->users().end());
  auto put_together = [&](Instruction* before) {
    std::vector<Instruction*> elements;
    for (size_t k = 0; k < kernel->shape().elements().size(); ++k) {
      elements.push_back(ir::ElementOf(kernel, static_cast<int64_t>(k), before));
    }
    return MakeTuple(c, std::move(elements), before);
  };
  if (kernel->IsRoot()) c->set_root(put_together(nullptr));
  for (Instruction* user : users) {
    if (user->opcode() == Opcode::kGetTupleElement) continue;
    Instruction* whole = put_together(user);
    for (int64_t o = 0; o < user->operand_count(); ++o) {
      if (user->operand(o) == kernel) c->ReplaceOperand(user, o, whole);
    }
  }
}

}  // namespace

std::vector<Instruction*> OutputsOf(Instruction* kernel) {
  if (!kernel->shape().is_tuple()) return {kernel};
  TakeApart(kernel);
  std::vector<Instruction*> outputs(kernel->shape().elements().size(), nullptr);
  std::vector<Instruction*> users(kernel->users().begin(), kernel->users().end());
  for (Instruction* user : users) {
    Instruction*& output = outputs[static_cast<size_t>(user->attributes().Int(Attr::kIndex))];
    if (output) {
      user->parent()->ReplaceAllUses(user, output);
      user->parent()->Remove(user);
    } else {
      output = user;
    }
  }
  return outputs;
}

FusionGrower::FusionGrower(Instruction* kernel)
    : outer_(kernel->parent()), kind_(FusionKind(*kernel)) {
  if (kernel->opcode() == Opcode::kFusion) {
    fusion_ = kernel;
    body_ = kernel->called(0);
    operands_.assign(kernel->operands().begin(), kernel->operands().end());
    parameters_.assign(body_->parameters().begin(), body_->parameters().end());
    Instruction* root = body_->root();
    if (root->opcode() == Opcode::kTuple) {
      std::vector<Instruction*> outer = OutputsOf(kernel);
      for (size_t k = 0; k < outer.size(); ++k) outputs_.push_back({root->operand(k), outer[k]});
      body_->set_root(nullptr);
      body_->Remove(root);
    } else {
      outputs_ = {{root, nullptr}};
    }
    // A reader of text puts parameters where they stand in it.
    Instruction* front = body_->instructions().front();
    for (Instruction* p : parameters_) {
      if (p != front) body_->Move(p, front);
    }
    auto is_parameter = [](const auto& i) { return i->opcode() == Opcode::kParameter; };
    auto first = std::ranges::find_if_not(body_->instructions(), is_parameter);
    if (first != body_->instructions().end()) first_ = *first;  // else it hands an operand on
    return;
  }
  body_ = outer_->parent()->AddComputation("fused_computation");
  first_ = kernel;
  std::vector<Instruction*> arguments = Inside(kernel->operands());
  fusion_ = outer_->Create({.opcode = Opcode::kFusion,
                            .operands = operands_,
                            .called = {body_},
                            .shape = kernel->shape(),
                            .op_name = kernel->op_name()},
                           kernel);
  outer_->ReplaceAllUses(kernel, fusion_);
  body_->TakeInstruction(kernel, arguments, nullptr);
  outputs_ = {{kernel, nullptr}};
}

std::vector<Instruction*> FusionGrower::Inside(std::span<Instruction* const> values) {
  std::vector<Instruction*> result;
  for (Instruction* value : values) {
    size_t at = std::ranges::find(operands_, value) - operands_.begin();
    if (at == operands_.size()) {
      auto number = static_cast<int64_t>(body_->parameters().size());
      const auto& members = body_->instructions();
      Instruction* parameter = body_->Create({.opcode = Opcode::kParameter,
                                              .attributes = {{Attr::kParameterNumber, number}},
                                              .shape = value->shape(),
                                              .name = "param"},
                                             members.empty() ? nullptr : members.front());
      at = at_++;
      operands_.insert(operands_.begin() + at, value);
      parameters_.insert(parameters_.begin() + at, parameter);
    }
    result.push_back(parameters_[at]);
  }
  return result;
}

void FusionGrower::Substitute(const Instruction* outer, Instruction* inner) {
  for (size_t k = operands_.size(); k-- > 0;) {
    if (operands_[k] != outer) continue;
    for (Output& output : outputs_) {
      if (output.inner == parameters_[k]) output.inner = inner;
    }
    body_->ReplaceAllUses(parameters_[k], inner);
    body_->Remove(parameters_[k]);
    operands_.erase(operands_.begin() + k);
    parameters_.erase(parameters_.begin() + k);
  }
}

std::vector<Instruction*> FusionGrower::Move(Instruction* kernel) {
  std::vector<Instruction*> arguments = Inside(kernel->operands());
  if (kind_ == "kLoop") kind_ = FusionKind(*kernel);
  if (kernel->opcode() != Opcode::kFusion) {
    body_->TakeInstruction(kernel, arguments, first_);
    return {kernel};
  }
  Instruction* root = body_->TakeInstructions(kernel->called(0), arguments, first_);
  outer_->Remove(kernel);
  if (root->opcode() != Opcode::kTuple) return {root};
  std::vector<Instruction*> inner(root->operands().begin(), root->operands().end());
  body_->Remove(root);
  return inner;
}

void FusionGrower::Take(Instruction* producer) {
  // The fusion lets go of it first, which has no users then while it moves.
  std::vector<Instruction*> others = operands_;
  std::erase(others, producer);
  outer_->SetOperands(fusion_, others);
  at_ = std::ranges::find(operands_, producer) - operands_.begin();
  Substitute(producer, Move(producer)[0]);
}

void FusionGrower::Copy(const Instruction* producer) {
  at_ = std::ranges::find(operands_, producer) - operands_.begin();
  std::vector<Instruction*> arguments = Inside(producer->operands());
  if (kind_ == "kLoop") kind_ = FusionKind(*producer);
  if (producer->opcode() != Opcode::kFusion) {
    return Substitute(producer,
                      body_->Create(ir::CopySpec(*producer, std::move(arguments)), first_));
  }
  const Computation& fused = *producer->called(0);
  Computation* copy = body_->parent()->CloneComputation(fused, fused.name());
  Substitute(producer, body_->TakeInstructions(copy, arguments, first_));
}

void FusionGrower::TakeKeeping(Instruction* kernel) {
  std::vector<Instruction*> outer = OutputsOf(kernel), others = operands_;
  auto is_made = [&](Instruction* o) { return std::ranges::find(outer, o) != outer.end(); };
  auto first = std::ranges::find_if(operands_, is_made);
  at_ = first == operands_.end() ? 0 : first - operands_.begin();
  std::erase_if(others, is_made);
  outer_->SetOperands(fusion_, others);
  const bool had_several = kernel->shape().is_tuple();
  std::vector<bool> is_kept;
  std::vector<Shape> shapes;
  for (const Instruction* o : outer) {
    is_kept.push_back(o && (o->IsRoot() || !o->users().empty()));
    if (is_kept.back()) shapes.push_back(o->shape());
  }
  const auto kept = static_cast<int64_t>(shapes.size());
  if (kept > 0) {
    for (const Output& own : outputs_) shapes.push_back(own.inner->shape());
    bool was_alone = !fusion_->shape().is_tuple();
    fusion_->set_shape(Shape::Tuple(std::move(shapes)));
    if (was_alone) {
      outputs_[0].outer = ir::ElementOf(fusion_, kept);
      outer_->ReplaceAllUses(fusion_, outputs_[0].outer);
    }
  }
  std::vector<Output> outputs;
  for (size_t k = 0; k < outer.size(); ++k) {
    if (had_several && outer[k]) outer_->ReplaceOperand(outer[k], 0, fusion_);
    if (!is_kept[k]) continue;
    Instruction* element = outer[k];
    if (!had_several) {
      element = ir::ElementOf(fusion_, 0);
      outer_->ReplaceAllUses(kernel, element);
    }
    outputs.push_back({nullptr, element});
  }
  std::vector<Instruction*> inner = Move(kernel);
  auto output = outputs.begin();
  for (size_t k = 0; k < outer.size(); ++k) {
    if (is_kept[k]) (output++)->inner = inner[k];
    if (!outer[k]) continue;
    Substitute(outer[k], inner[k]);
    if (!is_kept[k] && had_several) outer_->Remove(outer[k]);
  }
  outputs_.insert(outputs_.begin(), outputs.begin(), outputs.end());
}

Instruction* FusionGrower::Finish() {
  Instruction* root = outputs_[0].inner;
  if (outputs_.size() > 1) {
    std::vector<Instruction*> inner;
    for (size_t k = 0; k < outputs_.size(); ++k) {
      auto [value, outer] = outputs_[k];
      inner.push_back(value);
      if (outer) outer->mutable_attributes().Set(Attr::kIndex, static_cast<int64_t>(k));
    }
    root = MakeTuple(body_, std::move(inner), nullptr);
  } else if (outputs_[0].outer) {
    outer_->ReplaceAllUses(outputs_[0].outer, fusion_);
    outer_->Remove(outputs_[0].outer);
  }
  body_->set_root(root);
  body_->SetParameters(parameters_);
  fusion_->set_shape(root->shape());
  fusion_->mutable_attributes().Set(Attr::kFusionKind, kind_);
  outer_->SetOperands(fusion_, operands_);
  return fusion_;
}

}  // namespace kiln::passes
