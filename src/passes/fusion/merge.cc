#include "passes/fusion/merge.h"

#include <algorithm>
#include <unordered_map>
#include <unordered_set>

#include "base/strings.h"
#include "passes/control/computations.h"
#include "passes/fusion/grow.h"

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

  // An instruction's own work, inside.
  Instruction* Emit(const Instruction& i) {
    return body_->Create(ir::CopySpec(i, Inside(i.operands())));
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
      outputs.push_back(ir::ElementOf(fusion, static_cast<int64_t>(k)));
    }
    return outputs;
  }

  void SetInside(const Instruction* outer, Instruction* inner) { inside_[outer] = inner; }

  // The finished fusion, before `before` in the outer computation.
  Instruction* Finish(const std::vector<Instruction*>& outputs, Instruction* before) {
    Instruction* root = outputs[0];
    if (outputs.size() > 1) root = MakeTuple(body_, outputs, nullptr);
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
    for (Instruction* member : body.instructions()) {
      std::string its = FusionKind(*member);
      bool counts = member->opcode() == Opcode::kFusion ? its == "kOutput" : its != "kLoop";
      if (counts) kind = std::move(its);
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

// Replaces the original instructions by the results of a fusion. A fusion of one output is that
// output.
void ReplaceOutputs(const std::vector<Instruction*>& old, Instruction* fusion) {
  Computation* c = fusion->parent();
  if (old.size() == 1) return c->ReplaceAllUses(old[0], fusion);
  for (size_t k = 0; k < old.size(); ++k) {
    if (!old[k]) continue;
    c->ReplaceAllUses(old[k], ir::ElementOf(fusion, static_cast<int64_t>(k)));
  }
}

void RemoveKernel(Instruction* kernel) {
  Computation* c = kernel->parent();
  std::vector<Instruction*> users(kernel->users().begin(), kernel->users().end());
  for (Instruction* user : users) c->Remove(user);
  c->Remove(kernel);
}

}  // namespace

std::vector<Computation*> ProgramComputations(ir::Module& module) {
  std::vector<Computation*> result = {module.entry()};
  std::unordered_set<const Computation*> seen = {module.entry()};
  for (size_t i = 0; i < result.size(); ++i) {
    for (Instruction* instruction : result[i]->instructions()) {
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
  bool last_use = producer->users().size() == 1 && !producer->IsRoot();
  FusionGrower grower(consumer);
  last_use ? grower.Take(producer) : grower.Copy(producer);
  return grower.Finish();
}

Instruction* MergeKeeping(Instruction* producer, Instruction* consumer) {
  FusionGrower grower(consumer);
  grower.TakeKeeping(producer);
  return grower.Finish();
}

Instruction* MergeSiblings(const std::vector<Instruction*>& siblings) {
  FusionGrower grower(siblings.back());
  for (size_t s = siblings.size() - 1; s-- > 0;) grower.TakeKeeping(siblings[s]);
  return grower.Finish();
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

Instruction* MergeChain(Instruction* gemm, Instruction* rows) {
  FusedBuilder builder(rows);
  std::vector<Instruction*> old, results;
  std::vector<Instruction*> made = OutputsOf(gemm), inside = builder.EmitFusion(*gemm);
  for (size_t k = 0; k < made.size(); ++k) {
    if (!made[k]) continue;
    builder.SetInside(made[k], inside[k]);
    if (made[k]->users().size() == 1 && *made[k]->users().begin() == rows) continue;
    old.push_back(made[k]);
    results.push_back(inside[k]);
  }
  std::vector<Instruction*> last = OutputsOf(rows);
  inside = builder.EmitFusion(*rows);
  old.insert(old.end(), last.begin(), last.end());
  results.insert(results.end(), inside.begin(), inside.end());
  Instruction* chain = builder.Finish(results, rows);
  ReplaceOutputs(old, chain);
  RemoveKernel(rows);
  RemoveKernel(gemm);
  return chain;
}

Instruction* MergeGroup(const std::vector<Instruction*>& members,
                        const std::vector<Instruction*>& outputs) {
  Instruction* last = members.back();
  Computation* c = last->parent();
  FusedBuilder builder(last);
  std::unordered_map<const Instruction*, Instruction*> inner;
  for (const Instruction* m : members) {
    inner[m] = builder.Emit(*m);
    builder.SetInside(m, inner[m]);
  }
  std::vector<Instruction*> results;
  for (const Instruction* output : outputs) results.push_back(inner[output]);
  Instruction* fusion = builder.Finish(results, last);
  for (size_t k = 0; k < outputs.size(); ++k) {
    Instruction* value = fusion;
    if (outputs.size() > 1) {
      value = ir::ElementOf(fusion, static_cast<int64_t>(k), last);
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
  for (Instruction* member : fused.instructions()) {
    if (member->opcode() == Opcode::kParameter) continue;
    std::vector<Instruction*> operands;
    for (const Instruction* operand : member->operands()) operands.push_back(map.at(operand));
    made.push_back(c->Create(ir::CopySpec(*member, std::move(operands)), fusion));
    map[member] = made.back();
  }
  c->ReplaceAllUses(fusion, map.at(fused.root()));
  c->Remove(fusion);
  return made;
}

}  // namespace kiln::passes
