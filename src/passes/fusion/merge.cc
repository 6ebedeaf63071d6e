#include "passes/fusion/merge.h"

#include <algorithm>
#include <unordered_map>
#include <unordered_set>

#include "base/strings.h"

namespace kiln::passes {
namespace {

using ir::Computation;
using ir::Instruction;

// A fused computation under construction: values of the outer computation become its parameters
// when they are first asked for.
class FusedBuilder {
 public:
  explicit FusedBuilder(Instruction* at) : outer_(at->parent()) {
    body_ = outer_->parent()->AddComputation("fused_computation");
  }

  // An instruction's or a fusion's own work, as values inside. Several outputs are the elements of
  // the returned list.
  std::vector<Instruction*> Emit(const Instruction& i) {
    std::vector<Instruction*> outputs;
    if (i.opcode() != Opcode::kFusion) {
      outputs.push_back(body_->Create(ir::CopySpec(i, Inside(i.operands()))));
      return outputs;
    }
    const Computation& fused = *i.called(0);
    std::unordered_map<const Instruction*, Instruction*> map;
    std::vector<Instruction*> arguments = Inside(i.operands());
    for (size_t p = 0; p < arguments.size(); ++p) map[fused.parameter(p)] = arguments[p];
    const Instruction* root = fused.root();
    bool several = root->opcode() == Opcode::kTuple;
    for (const auto& member : fused.instructions()) {
      if (member->opcode() == Opcode::kParameter || (several && member.get() == root)) continue;
      std::vector<Instruction*> operands;
      for (const Instruction* operand : member->operands()) operands.push_back(map.at(operand));
      map[member.get()] = body_->Create(ir::CopySpec(*member, std::move(operands)));
    }
    if (!several) return {map.at(root)};
    for (const Instruction* output : root->operands()) outputs.push_back(map.at(output));
    return outputs;
  }

  // An instruction's or a fusion's own work, as a fusion inside; its outputs.
  std::vector<Instruction*> EmitFusion(const Instruction& i) {
    Instruction* fusion = nullptr;
    if (i.opcode() == Opcode::kFusion) {
      fusion = body_->Create(ir::CopySpec(i, Inside(i.operands())));
    } else {
      fusion = FusionOf(i);
    }
    if (!i.shape().is_tuple()) return {fusion};
    std::vector<Instruction*> outputs;
    for (size_t k = 0; k < i.shape().elements().size(); ++k) {
      outputs.push_back(body_->Create({.opcode = Opcode::kGetTupleElement,
                                       .operands = {fusion},
                                       .attributes = {{Attr::kIndex, static_cast<int64_t>(k)}},
                                       .shape = i.shape().elements()[k]}));
    }
    return outputs;
  }

  // The same of an instruction that is to be removed: what a fusion has inside comes here as it is.
  std::vector<Instruction*> Take(const Instruction& i) {
    if (i.opcode() != Opcode::kFusion) return Emit(i);
    std::vector<Instruction*> arguments = Inside(i.operands());
    Instruction* root = body_->TakeInstructions(i.called(0), arguments);
    if (root->opcode() != Opcode::kTuple) return {root};
    std::vector<Instruction*> outputs(root->operands().begin(), root->operands().end());
    body_->Remove(root);
    return outputs;
  }

  void SetInside(const Instruction* outer, Instruction* inner) { inside_[outer] = inner; }

  // The finished fusion, before `before` in the outer computation.
  Instruction* Finish(const std::vector<Instruction*>& outputs, Instruction* before) {
    Instruction* root = outputs[0];
    if (outputs.size() > 1) {
      std::vector<Shape> shapes;
      for (const Instruction* output : outputs) shapes.push_back(output->shape());
      root = body_->Create({.opcode = Opcode::kTuple,
                            .operands = outputs,
                            .shape = Shape::Tuple(std::move(shapes))});
    }
    body_->set_root(root);
    return outer_->Create({.opcode = Opcode::kFusion,
                           .operands = operands_,
                           .attributes = {{Attr::kFusionKind, KindOf(*body_)}},
                           .called = {body_},
                           .shape = root->shape(),
                           .op_name = outputs.back()->op_name()},
                          before);
  }

 private:
  static std::string KindOf(const Computation& body) {
    std::string kind = "kLoop";
    for (const auto& member : body.instructions()) {
      bool folds = member->opcode() == Opcode::kReduce ||
                   member->opcode() == Opcode::kReduceWindow ||
                   member->opcode() == Opcode::kScatter || member->opcode() == Opcode::kSort ||
                   member->opcode() == Opcode::kTopK;
      if (folds) kind = "kInput";
      if (member->opcode() == Opcode::kDot) kind = "kOutput";
      if (member->opcode() == Opcode::kFusion &&
          member->attributes().Text(Attr::kFusionKind) == "kOutput") {
        kind = "kOutput";
      }
    }
    return kind;
  }

  // The fusion of one instruction, inside.
  Instruction* FusionOf(const Instruction& i) {
    Computation* alone = outer_->parent()->AddComputation("fused_computation");
    std::vector<Instruction*> distinct, arguments;
    for (Instruction* operand : i.operands()) {
      auto at = std::find(distinct.begin(), distinct.end(), operand);
      int64_t number = at - distinct.begin();
      if (at == distinct.end()) {
        distinct.push_back(operand);
        alone->Create({.opcode = Opcode::kParameter,
                       .attributes = {{Attr::kParameterNumber, number}},
                       .shape = operand->shape(),
                       .name = Cat("param_", number)});
      }
      arguments.push_back(alone->parameter(number));
    }
    alone->set_root(alone->Create(ir::CopySpec(i, std::move(arguments))));
    return body_->Create({.opcode = Opcode::kFusion,
                          .operands = Inside(distinct),
                          .attributes = {{Attr::kFusionKind, KindOf(*alone)}},
                          .called = {alone},
                          .shape = i.shape(),
                          .op_name = i.op_name()});
  }

  std::vector<Instruction*> Inside(std::span<Instruction* const> values) {
    std::vector<Instruction*> result;
    for (Instruction* value : values) {
      Instruction*& inner = inside_[value];
      if (!inner) {
        int64_t number = static_cast<int64_t>(operands_.size());
        inner = body_->Create({.opcode = Opcode::kParameter,
                               .attributes = {{Attr::kParameterNumber, number}},
                               .shape = value->shape(),
                               .name = Cat("param_", number)});
        operands_.push_back(value);
      }
      result.push_back(inner);
    }
    return result;
  }

  Computation* outer_;
  Computation* body_;
  std::vector<Instruction*> operands_;
  std::unordered_map<const Instruction*, Instruction*> inside_;
};

}  // namespace

std::vector<Computation*> ProgramComputations(ir::Module& module) {
  std::vector<Computation*> result = {module.entry()};
  std::unordered_set<const Computation*> seen = {module.entry()};
  for (size_t i = 0; i < result.size(); ++i) {
    for (const auto& instruction : result[i]->instructions()) {
      if (instruction->opcode() != Opcode::kWhile &&
          instruction->opcode() != Opcode::kConditional) {
        continue;
      }
      for (Computation* callee : instruction->called()) {
        if (seen.insert(callee).second) result.push_back(callee);
      }
    }
  }
  return result;
}

Instruction* MergeProducer(Instruction* producer, Instruction* consumer) {
  Computation* c = consumer->parent();
  FusedBuilder builder(consumer);
  bool last_use = producer->users().size() == 1 && !producer->IsRoot();
  builder.SetInside(producer, (last_use ? builder.Take(*producer) : builder.Emit(*producer))[0]);
  Instruction* fusion = builder.Finish(builder.Take(*consumer), consumer);
  c->ReplaceAllUses(consumer, fusion);
  c->Remove(consumer);
  if (producer->users().empty() && !producer->IsRoot()) c->Remove(producer);
  return fusion;
}

namespace {

// The instructions that stand for a kernel's outputs: itself, or what takes its tuple apart (null
// where nothing does; two of the same element are made one).
std::vector<Instruction*> OutputsOf(Instruction* kernel) {
  if (!kernel->shape().is_tuple()) return {kernel};
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

// Hands the results of a fusion on to the users of what they replace. A fusion of one output is
// that output.
void ReplaceOutputs(const std::vector<Instruction*>& old, Instruction* fusion) {
  Computation* c = fusion->parent();
  if (old.size() == 1) return c->ReplaceAllUses(old[0], fusion);
  for (size_t k = 0; k < old.size(); ++k) {
    if (!old[k]) continue;
    c->ReplaceAllUses(old[k], c->Create({.opcode = Opcode::kGetTupleElement,
                                         .operands = {fusion},
                                         .attributes = {{Attr::kIndex, static_cast<int64_t>(k)}},
                                         .shape = old[k]->shape()}));
  }
}

void RemoveKernel(Instruction* kernel) {
  Computation* c = kernel->parent();
  std::vector<Instruction*> users(kernel->users().begin(), kernel->users().end());
  for (Instruction* user : users) c->Remove(user);
  c->Remove(kernel);
}

// One kernel of a producer and its consumer, which keeps what others read of the producer. `put`
// puts a kernel inside.
template <typename Put>
Instruction* MergePair(Instruction* producer, Instruction* consumer, Put put) {
  FusedBuilder builder(consumer);
  std::vector<Instruction*> old, results;
  std::vector<Instruction*> made = OutputsOf(producer), inside = (builder.*put)(*producer);
  for (size_t k = 0; k < made.size(); ++k) {
    if (!made[k]) continue;
    builder.SetInside(made[k], inside[k]);
    bool others =
        made[k]->IsRoot() || std::any_of(made[k]->users().begin(), made[k]->users().end(),
                                         [&](const Instruction* user) { return user != consumer; });
    if (!others) continue;
    old.push_back(made[k]);
    results.push_back(inside[k]);
  }
  std::vector<Instruction*> last = OutputsOf(consumer);
  inside = (builder.*put)(*consumer);
  old.insert(old.end(), last.begin(), last.end());
  results.insert(results.end(), inside.begin(), inside.end());
  Instruction* fusion = builder.Finish(results, consumer);
  ReplaceOutputs(old, fusion);
  RemoveKernel(consumer);
  RemoveKernel(producer);
  return fusion;
}

}  // namespace

Instruction* MergeKeeping(Instruction* producer, Instruction* consumer) {
  return MergePair(producer, consumer, &FusedBuilder::Take);
}

Instruction* MergeSiblings(const std::vector<Instruction*>& siblings) {
  FusedBuilder builder(siblings.back());
  std::vector<Instruction*> old, results;
  for (Instruction* s : siblings) {
    for (Instruction* output : OutputsOf(s)) old.push_back(output);
    for (Instruction* output : builder.Take(*s)) results.push_back(output);
  }
  Instruction* fusion = builder.Finish(results, siblings.back());
  ReplaceOutputs(old, fusion);
  for (Instruction* s : siblings) RemoveKernel(s);
  return fusion;
}

Instruction* MergeBundle(const std::vector<Instruction*>& kernels) {
  FusedBuilder builder(kernels.back());
  std::vector<Instruction*> old, results;
  for (Instruction* k : kernels) {
    for (Instruction* output : OutputsOf(k)) old.push_back(output);
    for (Instruction* output : builder.EmitFusion(*k)) results.push_back(output);
  }
  Instruction* bundle = builder.Finish(results, kernels.back());
  ReplaceOutputs(old, bundle);
  for (Instruction* k : kernels) RemoveKernel(k);
  return bundle;
}

Instruction* MergeChain(Instruction* product, Instruction* rows) {
  return MergePair(product, rows, &FusedBuilder::EmitFusion);
}

Instruction* MergeGroup(const std::vector<Instruction*>& members,
                        const std::vector<Instruction*>& outputs) {
  Instruction* last = members.back();
  Computation* c = last->parent();
  FusedBuilder builder(last);
  std::unordered_map<const Instruction*, Instruction*> inner;
  for (const Instruction* m : members) {
    inner[m] = builder.Emit(*m)[0];
    builder.SetInside(m, inner[m]);
  }
  std::vector<Instruction*> results;
  for (const Instruction* output : outputs) results.push_back(inner[output]);
  Instruction* fusion = builder.Finish(results, last);
  for (size_t k = 0; k < outputs.size(); ++k) {
    Instruction* value = fusion;
    if (outputs.size() > 1) {
      value = c->Create({.opcode = Opcode::kGetTupleElement,
                         .operands = {fusion},
                         .attributes = {{Attr::kIndex, static_cast<int64_t>(k)}},
                         .shape = outputs[k]->shape()},
                        last);
    }
    c->ReplaceAllUses(outputs[k], value);
  }
  for (size_t i = members.size(); i-- > 0;) {
    if (members[i]->users().empty() && !members[i]->IsRoot()) c->Remove(members[i]);
  }
  return fusion;
}

std::vector<Instruction*> Unfuse(Instruction* fusion) {
  Computation* c = fusion->parent();
  const Computation& fused = *fusion->called(0);
  std::unordered_map<const Instruction*, Instruction*> map;
  std::vector<Instruction*> made;
  for (int64_t p = 0; p < fusion->operand_count(); ++p) {
    map[fused.parameter(p)] = fusion->operand(p);
  }
  for (const auto& member : fused.instructions()) {
    if (member->opcode() == Opcode::kParameter) continue;
    std::vector<Instruction*> operands;
    for (const Instruction* operand : member->operands()) operands.push_back(map.at(operand));
    made.push_back(c->Create(ir::CopySpec(*member, std::move(operands)), fusion));
    map[member.get()] = made.back();
  }
  c->ReplaceAllUses(fusion, map.at(fused.root()));
  c->Remove(fusion);
  return made;
}

}  // namespace kiln::passes
