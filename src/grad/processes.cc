// Values of groups of processes. All processes run the program and its derivative, so that the sum
// of what they compute is differentiated.
#include <algorithm>
#include <set>

#include "grad/rules.h"

namespace kiln::grad {

using ir::Instruction;

namespace {

// The operands' cotangents, one for each array of the result.
std::vector<Instruction*> Each(Builder& b, const Instruction* op, const Derivative& cotangent) {
  if (op->shape().is_array()) return {cotangent.array};
  std::vector<Instruction*> each;
  for (size_t k = 0; k < op->shape().elements().size(); ++k) {
    each.push_back(b.Whole(cotangent.Element(k), op->shape().elements()[k]));
  }
  return each;
}

void HandOn(Reverse& reverse, const Instruction* op, Instruction* cotangents) {
  if (cotangents->shape().is_array()) return reverse.Add(op->operand(0), cotangents);
  for (int64_t k = 0; k < op->operand_count(); ++k) {
    reverse.Add(op->operand(k), reverse.builder().Element(cotangents, k));
  }
}

// The groups, and how processes are numbered there.
Attributes GroupsOf(const Instruction* op) {
  Attributes attributes;
  for (Attr key : {Attr::kReplicaGroups, Attr::kChannelId, Attr::kUseGlobalDeviceIds}) {
    if (const AttrValue* value = op->attributes().Find(key)) attributes.Set(key, *value);
  }
  return attributes;
}

Instruction* SumOfGroup(Builder& b, const Instruction* op, std::vector<Instruction*> x) {
  ir::Computation* sum = b.Reducer(Opcode::kAdd, x[0]->shape().type(), "sum");
  return b.Add(Opcode::kAllReduce, std::move(x), GroupsOf(op), std::nullopt, {sum});
}

Shape OneOrTuple(std::vector<Shape> shapes) {
  return shapes.size() == 1 ? std::move(shapes[0]) : Shape::Tuple(std::move(shapes));
}

Shape ShapeOfOperands(const Instruction* op) {
  std::vector<Shape> shapes;
  for (const Instruction* x : op->operands()) shapes.push_back(x->shape());
  return OneOrTuple(std::move(shapes));
}

Instruction* Permuted(Builder& b, const Instruction* op, Instruction* x, Groups pairs) {
  Attributes attributes = {{Attr::kSourceTargetPairs, std::move(pairs)}};
  if (const AttrValue* channel = op->attributes().Find(Attr::kChannelId)) {
    attributes.Set(Attr::kChannelId, *channel);
  }
  return b.Add(Opcode::kCollectivePermute, {x}, std::move(attributes));
}

}  // namespace

// Sums: each operand is a part of the sums of all processes of the group.
template <>
bool Transpose<Opcode::kAllReduce>(Reverse& reverse, Instruction* op, const Derivative& cotangent) {
  Builder& b = reverse.builder();
  b.RequireSum(op);
  HandOn(reverse, op, SumOfGroup(b, op, Each(b, op, cotangent)));
  return true;
}

// Each process has a piece of the sums of cotangents, those of its own operand.
template <>
bool Transpose<Opcode::kAllGather>(Reverse& reverse, Instruction* op, const Derivative& cotangent) {
  Builder& b = reverse.builder();
  const std::vector<Instruction*> t = Each(b, op, cotangent);
  Attributes attributes = GroupsOf(op);
  attributes.Set(Attr::kDimensions, op->dimensions());
  for (size_t k = 0; k < t.size(); ++k) {
    Instruction* x = op->operand(static_cast<int64_t>(k));
    if (!reverse.IsActive(x)) continue;
    reverse.Add(x, b.Add(Opcode::kReduceScatter, {t[k]}, attributes, x->shape(),
                         {b.Reducer(Opcode::kAdd, x->shape().type(), "sum")}));
  }
  return true;
}

// The other way round.
template <>
bool Transpose<Opcode::kReduceScatter>(Reverse& reverse, Instruction* op,
                                       const Derivative& cotangent) {
  Builder& b = reverse.builder();
  b.RequireSum(op);
  Attributes attributes = GroupsOf(op);
  attributes.Set(Attr::kDimensions, op->dimensions());
  HandOn(reverse, op,
         b.Add(Opcode::kAllGather, Each(b, op, cotangent), std::move(attributes),
               ShapeOfOperands(op)));
  return true;
}

// Operand k of process p is result p of process k.
template <>
bool Transpose<Opcode::kAllToAll>(Reverse& reverse, Instruction* op, const Derivative& cotangent) {
  Builder& b = reverse.builder();
  HandOn(reverse, op, b.Add(Opcode::kAllToAll, Each(b, op, cotangent), op->attributes()));
  return true;
}

// From targets to sources.
template <>
bool Transpose<Opcode::kCollectivePermute>(Reverse& reverse, Instruction* op,
                                           const Derivative& cotangent) {
  Builder& b = reverse.builder();
  Groups pairs;
  std::set<int64_t> sources;
  for (const Ints& pair : op->attributes().GroupsOf(Attr::kSourceTargetPairs)) {
    pairs.push_back({pair[1], pair[0]});
    if (sources.insert(pair[0]).second) continue;
    b.Fail(Unimplemented("'", op->name(), "': collective-permute has no derivative where process ",
                         pair[0], " is the source of several others"));
  }
  reverse.Add(op->operand(0), Permuted(b, op, cotangent.array, std::move(pairs)));
  return true;
}

// The sum of a group's cotangents to its first process, by sums of two, of four processes, and so
// on; zeros to the others.
template <>
bool Transpose<Opcode::kCollectiveBroadcast>(Reverse& reverse, Instruction* op,
                                             const Derivative& cotangent) {
  Builder& b = reverse.builder();
  Groups groups, first;
  size_t largest = 0;
  for (Ints group : op->attributes().GroupsOf(Attr::kReplicaGroups)) {
    std::erase(group, -1);
    if (group.empty()) continue;
    largest = std::max(largest, group.size());
    first.push_back({group[0], group[0]});
    groups.push_back(std::move(group));
  }
  Instruction* t = cotangent.array;
  if (groups.empty()) {
    t = SumOfGroup(b, op, {t});
    first = {{0, 0}};
  }
  for (size_t step = 1; step < largest; step *= 2) {
    Groups pairs;
    for (const Ints& group : groups) {
      for (size_t k = step; k < group.size(); k += 2 * step) {
        pairs.push_back({group[k], group[k - step]});
      }
    }
    t = b.Plus(t, Permuted(b, op, t, std::move(pairs)));
  }
  reverse.Add(op->operand(0), Permuted(b, op, t, std::move(first)));
  return true;
}

}  // namespace kiln::grad
