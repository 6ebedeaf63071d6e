#include <algorithm>
#include <array>
#include <functional>
#include <span>
#include <string_view>
#include <unordered_map>

#include "ir/analysis/effects.h"
#include "passes/control/computations.h"
#include "passes/passes.h"

namespace kiln::passes {
namespace {

using ir::Instruction;

size_t HashBytes(const Literal& literal) {
  size_t n = static_cast<size_t>(std::min<int64_t>(literal.byte_size(), 256));
  return std::hash<std::string_view>()({reinterpret_cast<const char*>(literal.data()), n});
}

// The operands; a commutative op's two in an order of their own, so that x + y equals y + x.
std::span<Instruction* const> Ordered(const Instruction& i, std::array<Instruction*, 2>& storage) {
  if (!HasTrait(i.opcode(), kCommutative) || i.operand_count() != 2 ||
      i.operand(0)->id() <= i.operand(1)->id()) {
    return i.operands();
  }
  storage = {i.operand(1), i.operand(0)};
  return storage;
}

size_t HashOf(const ir::Computation& c) {
  size_t hash = static_cast<size_t>(c.instruction_count());
  for (Instruction* i : c.instructions()) {
    hash = hash * 31 + static_cast<size_t>(i->opcode());
    if (!i->shape().is_array()) continue;
    hash = hash * 31 + static_cast<size_t>(i->shape().type());
    if (i->IsConstant()) hash = hash * 31 + HashBytes(i->literal());
  }
  return hash;
}

size_t HashOf(const Instruction& i) {
  size_t hash = static_cast<size_t>(i.opcode()) * 31 + i.attributes().Hash();
  std::array<Instruction*, 2> ordered;
  for (const Instruction* operand : Ordered(i, ordered)) {
    hash = hash * 1000003 + static_cast<size_t>(operand->id());
  }
  if (i.shape().is_array()) {
    for (const Dimension& d : i.shape().dimensions()) {
      hash = hash * 31 + static_cast<size_t>(d.size());
    }
    hash = hash * 31 + static_cast<size_t>(i.shape().type());
  }
  if (i.IsConstant() && i.shape().is_array()) hash = hash * 31 + HashBytes(i.literal());
  // Fusions of one array may be very many.
  for (const ir::Computation* callee : i.called()) hash = hash * 31 + HashOf(*callee);
  return hash;
}

bool Same(const Instruction& a, const Instruction& b) {
  std::array<Instruction*, 2> of_a, of_b;
  if (a.opcode() != b.opcode() || !(a.shape() == b.shape()) ||
      !(a.attributes() == b.attributes()) ||
      !std::ranges::equal(Ordered(a, of_a), Ordered(b, of_b)) ||
      a.called().size() != b.called().size()) {
    return false;
  }
  for (size_t c = 0; c < a.called().size(); ++c) {
    if (!IsSameComputation(*a.called(c), *b.called(c))) return false;
  }
  return !a.IsConstant() || a.literal() == b.literal();
}

// reduce(x, f), reduce(y, g) => reduce(x, f), reduce(y, f)   where f and g are equal computations,
// of ops other than loops, branches and fusions
bool ShareComputations(ir::Module& module) {
  bool changed = false;
  std::unordered_multimap<size_t, ir::Computation*> seen;
  // Callees first: then equal computations call the same ones.
  for (ir::Computation* c : module.CalleesFirst()) {
    for (Instruction* i : c->instructions()) {
      Opcode op = i->opcode();
      if (op == Opcode::kWhile || op == Opcode::kConditional || op == Opcode::kFusion) continue;
      for (int64_t k = 0; k < static_cast<int64_t>(i->called().size()); ++k) {
        ir::Computation* callee = i->called(k);
        auto [first, last] = seen.equal_range(HashOf(*callee));
        while (first != last && !IsSameComputation(*first->second, *callee)) ++first;
        if (first == last) {
          seen.emplace(HashOf(*callee), callee);
        } else if (first->second != callee) {
          i->set_called(k, first->second);
          changed = true;
        }
      }
    }
  }
  if (changed) module.RemoveUnusedComputations();
  return changed;
}

}  // namespace

// g(f(x), f(x)) => g(y, y)   where y = f(x) is made once. Called computations are equal; operands
// of commutative ops may be in any order
Result<bool> EliminateCommonSubexpressions(ir::Module& module, const PassContext& context) {
  bool changed = ShareComputations(module);
  for (const auto& c : module.computations()) {
    KILN_RETURN_IF_ERROR(context.interrupt.Check());
    std::unordered_multimap<size_t, Instruction*> seen;
    seen.reserve(static_cast<size_t>(c->instruction_count()));
    for (auto it = c->instructions().begin(); it != c->instructions().end();) {
      Instruction* i = *it++;
      // Values behind different barriers stay distinct.
      if (i->opcode() == Opcode::kParameter || i->opcode() == Opcode::kOptBarrier ||
          !ir::IsPure(*i)) {
        continue;
      }
      size_t hash = HashOf(*i);
      Instruction* twin = nullptr;
      auto [first, last] = seen.equal_range(hash);
      for (; first != last && !twin; ++first) {
        if (Same(*first->second, *i)) twin = first->second;
      }
      if (!twin) {
        seen.emplace(hash, i);
        continue;
      }
      c->ReplaceAllUses(i, twin);
      c->Remove(i);
      changed = true;
    }
  }
  return changed;
}

}  // namespace kiln::passes
