#include "ir/analysis/alias.h"

#include <algorithm>

namespace kiln::ir {

namespace {

// Whether the parts of an element have its place in memory: the layouts are equal, except for the
// last dimension of `parts`, which is additional and the most minor one.
bool HasMemoryOf(const Shape& parts, const Shape& whole) {
  if (parts.is_row_major() && whole.is_row_major()) return true;
  const std::vector<int64_t>& order = parts.minor_to_major();
  if (parts.rank() == whole.rank()) return order == whole.minor_to_major();
  if (parts.rank() != whole.rank() + 1 || order.empty() || order[0] != whole.rank()) return false;
  return std::equal(order.begin() + 1, order.end(), whole.minor_to_major().begin(),
                    whole.minor_to_major().end());
}

bool IsNarrow(ElementType type) { return WideOf(type) != type; }

}  // namespace

bool IsAlias(const Instruction& i) {
  switch (i.opcode()) {
    case Opcode::kTuple:
    case Opcode::kGetTupleElement:
    case Opcode::kOptBarrier:
      return true;
    case Opcode::kBitcastConvert: {
      const Shape &from = i.operand(0)->shape(), &to = i.shape();
      if (from.byte_size() != to.byte_size()) return false;
      return from.rank() > to.rank() ? HasMemoryOf(from, to) : HasMemoryOf(to, from);
    }
    // Elements of less than a byte, and the bytes that they are.
    case Opcode::kBitcast:
      return IsNarrow(i.shape().type()) != IsNarrow(i.operand(0)->shape().type()) &&
             ByteWidth(i.shape().type()) == ByteWidth(i.operand(0)->shape().type()) &&
             i.shape().dimensions() == i.operand(0)->shape().dimensions() &&
             i.shape().minor_to_major() == i.operand(0)->shape().minor_to_major();
    case Opcode::kReshape:
      return i.shape().is_row_major() && i.operand(0)->shape().is_row_major() &&
             i.shape().byte_size() == i.operand(0)->shape().byte_size();
    default:
      return false;
  }
}

bool KeepsLeaf(const Instruction& i, int64_t leaf) {
  if (i.opcode() != Opcode::kWhile) return false;
  const Computation& body = *i.called(1);
  return OriginOf({body.root(), leaf}) == Leaf{body.parameter(0), leaf};
}

Leaf OriginOf(Leaf leaf) {
  while (IsAlias(*leaf.instruction) || KeepsLeaf(*leaf.instruction, leaf.index)) {
    const Instruction& i = *leaf.instruction;
    if (i.opcode() == Opcode::kTuple) {
      int64_t operand = 0;
      for (; leaf.index >= LeafCount(i.operand(operand)->shape()); ++operand) {
        leaf.index -= LeafCount(i.operand(operand)->shape());
      }
      leaf.instruction = i.operand(operand);
      continue;
    }
    if (i.opcode() == Opcode::kGetTupleElement) {
      leaf.index += LeafOffset(i.operand(0)->shape(), i.attributes().Int(Attr::kIndex));
    }
    leaf.instruction = i.operand(0);
  }
  return leaf;
}

const std::vector<TupleUses::Place>& TupleUses::PlacesOf(const Instruction& tuple,
                                                         const Instruction& operand) {
  auto [it, fresh] = places_.try_emplace(&tuple);
  if (fresh) {
    int64_t leaves = 0;
    for (int64_t o = 0; o < tuple.operand_count(); ++o) {
      it->second[tuple.operand(o)].push_back({o, leaves});
      leaves += LeafCount(tuple.operand(o)->shape());
    }
  }
  return it->second.at(&operand);
}

const TupleUses::Users& TupleUses::UsersOf(const Instruction& value) {
  auto [it, fresh] = users_.try_emplace(&value);
  Users& users = it->second;
  if (!fresh) return users;
  users.leaves_before = {0};
  for (const Shape& element : value.shape().elements()) {
    users.leaves_before.push_back(users.leaves_before.back() + LeafCount(element));
  }
  for (const Instruction* user : value.users()) {
    if (user->opcode() == Opcode::kGetTupleElement) {
      users.elements[user->attributes().Int(Attr::kIndex)].push_back(user);
    } else {
      users.others.push_back(user);
    }
  }
  return users;
}

Readers ReadersOf(Leaf origin, TupleUses& uses) {
  Readers result;
  std::vector<Leaf> names = {origin};
  auto add = [&](const Instruction* user, const Leaf& name) {
    if (user->opcode() == Opcode::kTuple) {
      for (const TupleUses::Place& place : uses.PlacesOf(*user, *name.instruction)) {
        names.push_back({user, place.leaves_before + name.index});
      }
      return;
    }
    for (int64_t o = 0; o < user->operand_count(); ++o) {
      if (user->operand(o) != name.instruction) continue;
      if (IsAlias(*user)) {
        names.push_back({user, name.index});
      } else {
        result.readers.push_back({user, o, name.index});
        if (KeepsLeaf(*user, name.index)) names.push_back({user, name.index});
      }
    }
  };
  while (!names.empty()) {
    const Leaf name = names.back();
    names.pop_back();
    result.is_result |= name.instruction->IsRoot();
    if (!name.instruction->shape().is_tuple()) {
      for (const Instruction* user : name.instruction->users()) add(user, name);
      continue;
    }
    const TupleUses::Users& users = uses.UsersOf(*name.instruction);
    for (const Instruction* user : users.others) add(user, name);
    // The element that the leaf is in; of empty ones beside it there are no leaves.
    auto after = std::ranges::upper_bound(users.leaves_before, name.index);
    const int64_t k = after - users.leaves_before.begin() - 1;
    auto elements = users.elements.find(k);
    if (elements == users.elements.end()) continue;
    for (const Instruction* user : elements->second) {
      names.push_back({user, name.index - users.leaves_before[static_cast<size_t>(k)]});
    }
  }
  return result;
}

std::vector<CallAlias> CallAliases(const Instruction& call) {
  std::vector<CallAlias> aliases;
  for (const OperandAlias& alias : call.attributes().Aliases(Attr::kOutputToOperandAliasing)) {
    const Shape& operand = call.operand(alias.operand)->shape();
    aliases.push_back({LeafAt(call.shape(), alias.output_index), alias.operand,
                       LeafAt(operand, alias.operand_index)});
  }
  return aliases;
}

std::vector<std::pair<size_t, size_t>> AliasedArrays(const Instruction& call) {
  // Of arrays in a shape before leaf `end`.
  auto count = [](const Shape& shape, int64_t end) {
    size_t arrays = 0;
    int64_t leaf = 0;
    ForEachLeaf(shape, [&](const Shape& s, std::span<const int64_t>) {
      if (leaf++ < end && s.is_array()) ++arrays;
    });
    return arrays;
  };
  std::vector<std::pair<size_t, size_t>> arrays;
  for (const CallAlias& alias : CallAliases(call)) {
    size_t operand = 0;
    for (int64_t o = 0; o < alias.operand; ++o)
      operand += count(call.operand(o)->shape(), INT64_MAX);
    operand += count(call.operand(alias.operand)->shape(), alias.leaf);
    arrays.push_back({count(call.shape(), alias.output), operand});
  }
  return arrays;
}

int64_t AliasedOperand(const Instruction& call, int64_t output) {
  const auto& aliases = call.attributes().Aliases(Attr::kOutputToOperandAliasing);
  if (aliases.empty()) return -1;
  Ints path;
  int64_t leaf = 0;
  ForEachLeaf(call.shape(), [&](const Shape&, std::span<const int64_t> index) {
    if (leaf++ == output) path.assign(index.begin(), index.end());
  });
  for (const OperandAlias& alias : aliases) {
    if (alias.output_index == path && alias.operand_index.empty()) return alias.operand;
  }
  return -1;
}

bool MayShareInCall(const Instruction& call, int64_t operand, int64_t output) {
  switch (call.opcode()) {
    case Opcode::kCholesky:
      return true;
    case Opcode::kFft:
      return call.shape().type() == call.operand(0)->shape().type();
    case Opcode::kTriangularSolve:
      return operand == 1;
    default:
      return AliasedOperand(call, output) == operand;
  }
}

}  // namespace kiln::ir
