// Mutations of modules.
#include <algorithm>
#include <cstring>
#include <functional>
#include <unordered_map>

#include "ir/verifier.h"
#include "mutate.h"
#include "tools/reduce/rebuild.h"

namespace kiln::fuzz {
namespace {

using ir::Computation;
using ir::Instruction;

constexpr ElementType kTypes[] = {
    ElementType::kPred, ElementType::kS8,  ElementType::kS16,  ElementType::kS32,
    ElementType::kS64,  ElementType::kU8,  ElementType::kU16,  ElementType::kU32,
    ElementType::kU64,  ElementType::kF16, ElementType::kBF16, ElementType::kF32,
    ElementType::kF64,  ElementType::kC64, ElementType::kS4,   ElementType::kF8E4M3FN};
constexpr int64_t kSizes[] = {0, 1, 2, 3, 4, 5, 7, 8, 9, 16, 17, 31, 33, 64, 65, 100};

// Makes a module anew, with changes to what its instructions are made of.
class Rebuilder {
 public:
  // Changes a spec, whose operands are those of the new module.
  using Change = std::function<void(const Instruction& from, ir::InstructionSpec& spec)>;

  explicit Rebuilder(const ir::Module& module)
      : from_(module), to_(std::make_unique<ir::Module>(module.name())) {}

  Change change;
  std::function<ElementType(ElementType)> type_of;

  std::unique_ptr<ir::Module> Run() {
    for (const Computation* c : from_.CalleesFirst()) {
      if (!Copy(*c)) return nullptr;
    }
    to_->set_entry(computations_.at(from_.entry()));
    to_->RemoveUnusedComputations();
    to_->SortComputations();
    to_->aliases() = from_.aliases();
    if (ir::Verify(*to_).ok()) return std::move(to_);
    to_->aliases().clear();
    return ir::Verify(*to_).ok() ? std::move(to_) : nullptr;
  }

 private:
  Shape ShapeOf(const Shape& shape) const {
    Shape mapped = shape;
    if (shape.is_tuple()) {
      for (Shape& element : mapped.mutable_elements()) element = ShapeOf(element);
    } else if (shape.is_array() && type_of) {
      mapped.set_type(type_of(shape.type()));
    }
    return mapped;
  }

  // Elements are the numbers that they were, as far as the type has them; arrays repeat one.
  static Literal LiteralOf(const Literal& old, const Shape& shape) {
    if (old.shape() == shape || !old.shape().is_array()) return old;
    Literal made(shape);
    if (shape.num_elements() == 0) return made;
    const Literal scalar = Literal::ScalarOf(
        shape.type(),
        IsComplex(old.shape().type()) ? 1 : old.AsDouble(old.shape().num_elements() / 2));
    for (int64_t at = 0; at < made.byte_size(); at += scalar.byte_size()) {
      std::memcpy(made.data() + at, scalar.data(), static_cast<size_t>(scalar.byte_size()));
    }
    return made;
  }

  // Zeros of the shape; null where there are none, as of tokens.
  static Instruction* Zeros(Computation* c, const Shape& shape) {
    if (shape.is_tuple()) {
      std::vector<Instruction*> elements;
      for (const Shape& element : shape.elements()) {
        elements.push_back(Zeros(c, element));
        if (!elements.back()) return nullptr;
      }
      auto tuple = c->Add({.opcode = Opcode::kTuple, .operands = std::move(elements)});
      return tuple.ok() ? *tuple : nullptr;
    }
    if (!shape.is_array() || !shape.is_static()) return nullptr;
    auto literal = std::make_shared<const Literal>(Literal::ScalarOf(shape.type(), 0));
    auto zero =
        c->Add({.opcode = Opcode::kConstant, .shape = literal->shape(), .literal = literal});
    if (!zero.ok() || shape.rank() == 0) return zero.ok() ? *zero : nullptr;
    auto all = c->Add({.opcode = Opcode::kBroadcast,
                       .operands = {*zero},
                       .attributes = {{Attr::kDimensions, Ints{}}},
                       .shape = shape});
    return all.ok() ? *all : nullptr;
  }

  Instruction* CopyOf(Computation* c, const Instruction* i) {
    std::vector<Instruction*> operands;
    for (const Instruction* operand : i->operands()) operands.push_back(made_.at(operand));
    ir::InstructionSpec spec = ir::CopySpec(*i, std::move(operands));
    spec.shape = ShapeOf(i->shape());
    if (i->IsConstant()) {
      spec.literal = std::make_shared<const Literal>(LiteralOf(i->literal(), *spec.shape));
    }
    for (Computation*& callee : spec.called) callee = computations_.at(callee);
    if (change) change(*i, spec);
    auto made = c->Add(spec);
    if (made.ok()) return *made;
    return i->opcode() == Opcode::kParameter ? nullptr : Zeros(c, ShapeOf(i->shape()));
  }

  bool Copy(const Computation& from) {
    Computation* c = to_->AddComputation(from.name());
    computations_[&from] = c;
    // Numbers of parameters are in their order.
    for (const Instruction* p : from.parameters()) {
      if (!(made_[p] = CopyOf(c, p))) return false;
    }
    for (const Instruction* i : from.instructions()) {
      if (made_.contains(i)) continue;
      if (!(made_[i] = CopyOf(c, i))) return false;
    }
    c->set_root(made_.at(from.root()));
    return true;
  }

  const ir::Module& from_;
  std::unique_ptr<ir::Module> to_;
  std::unordered_map<const Computation*, Computation*> computations_;
  std::unordered_map<const Instruction*, Instruction*> made_;
};

// --- What is changed.

class Changes {
 public:
  Changes(Mutator& mutator, const ir::Module& module) : m_(mutator), module_(module) {
    for (const auto& c : module.computations()) {
      for (const Instruction* i : c->instructions()) all_.push_back(i);
    }
  }

  std::unique_ptr<ir::Module> Make() {
    if (all_.empty()) return nullptr;
    switch (m_.Below(10)) {
      case 0:
        return WithSize();
      case 1:
        return WithType();
      case 2:
      case 3:
        return With(&Changes::Op);
      case 4:
      case 5:
        return With(&Changes::Operand);
      case 6:
      case 7:
        return With(&Changes::Attribute);
      case 8:
        return m_.Chance(50) ? With(&Changes::Callee) : With(&Changes::Constant);
      default:
        return WithResults();
    }
  }

 private:
  template <typename T, size_t n>
  const T& OneOf(const T (&choices)[n]) {
    return choices[m_.Below(n)];
  }

  // A size becomes another one, everywhere.
  std::unique_ptr<ir::Module> WithSize() {
    std::vector<int64_t> sizes;
    for (const Instruction* i : all_) {
      if (!i->shape().is_array() || !i->shape().is_static()) continue;
      for (int64_t size : i->shape().dims()) sizes.push_back(size);
    }
    if (sizes.empty()) return nullptr;
    auto rebuilt =
        tools::Rebuild(module_, {.sizes = {{sizes[m_.Below(sizes.size())], OneOf(kSizes)}}});
    return rebuilt.ok() ? *std::move(rebuilt) : nullptr;
  }

  std::unique_ptr<ir::Module> WithType() {
    const Instruction* some = all_[m_.Below(all_.size())];
    if (!some->shape().is_array()) return nullptr;
    const ElementType from = some->shape().type(), to = OneOf(kTypes);
    Rebuilder rebuilder(module_);
    rebuilder.type_of = [=](ElementType type) { return type == from ? to : type; };
    return rebuilder.Run();
  }

  // One instruction's spec is changed.
  std::unique_ptr<ir::Module> With(void (Changes::*change)(const Instruction&,
                                                           ir::InstructionSpec&)) {
    const Instruction* chosen = all_[m_.Below(all_.size())];
    Rebuilder rebuilder(module_);
    rebuilder.change = [&](const Instruction& i, ir::InstructionSpec& spec) {
      if (&i == chosen) (this->*change)(i, spec);
    };
    return rebuilder.Run();
  }

  void Op(const Instruction& i, ir::InstructionSpec& spec) {
    for (int tries = 0; tries < 100; ++tries) {
      const auto op = static_cast<Opcode>(m_.Below(kOpcodeCount));
      const Arity arity = ArityOf(op);
      const bool fits = i.operand_count() >= arity.min &&
                        (arity.max < 0 || i.operand_count() <= arity.max) &&
                        !HasTrait(op, kSideEffect) && !HasTrait(op, kCompilerOnly) &&
                        !HasTrait(op, kSessionOnly) && i.called().empty();
      if (!fits || i.operand_count() == 0 || i.opcode() == Opcode::kTuple) continue;
      if (IsElementwise(i.opcode()) != IsElementwise(op) && m_.Chance(80)) continue;
      spec.opcode = op;
      if (IsElementwise(op) && op != Opcode::kConvert && op != Opcode::kBitcastConvert) {
        spec.shape.reset();
      }
      return;
    }
  }

  void Operand(const Instruction& i, ir::InstructionSpec& spec) {
    if (spec.operands.empty()) return;
    // Instructions that are there already, those of the same shape first.
    Instruction*& operand = spec.operands[m_.Below(spec.operands.size())];
    std::vector<Instruction*> all, alike;
    for (Instruction* other : operand->parent()->instructions()) {
      all.push_back(other);
      if (other->shape() == operand->shape()) alike.push_back(other);
    }
    const auto& from = m_.Chance(80) ? alike : all;
    operand = from[m_.Below(from.size())];
  }

  int64_t Near(int64_t n) {
    switch (m_.Below(4)) {
      case 0:
        return n + 1;
      case 1:
        return n - 1;
      case 2:
        return -n;
      default:
        return OneOf(kSizes);
    }
  }

  void Attribute(const Instruction& i, ir::InstructionSpec& spec) {
    const auto& entries = i.attributes().entries();
    if (entries.empty() || i.opcode() == Opcode::kParameter) return;
    auto [key, value] = entries[m_.Below(entries.size())];
    if (auto* n = std::get_if<int64_t>(&value)) {
      *n = Near(*n);
    } else if (auto* b = std::get_if<bool>(&value)) {
      *b = !*b;
    } else if (auto* ints = std::get_if<Ints>(&value); ints && !ints->empty()) {
      if (m_.Chance(40)) {
        std::swap((*ints)[0], (*ints)[m_.Below(ints->size())]);
      } else {
        int64_t& one = (*ints)[m_.Below(ints->size())];
        one = Near(one);
      }
    } else if (auto* direction = std::get_if<Direction>(&value)) {
      *direction = static_cast<Direction>(m_.Below(6));
    } else if (auto* slices = std::get_if<std::vector<SliceDimension>>(&value);
               slices && !slices->empty()) {
      SliceDimension& s = (*slices)[m_.Below(slices->size())];
      int64_t* const parts[] = {&s.start, &s.limit, &s.stride};
      int64_t& part = *OneOf(parts);
      part = Near(part);
      spec.shape.reset();
    } else if (auto* padding = std::get_if<std::vector<PaddingDimension>>(&value);
               padding && !padding->empty()) {
      PaddingDimension& p = (*padding)[m_.Below(padding->size())];
      int64_t* const parts[] = {&p.low, &p.high, &p.interior};
      int64_t& part = *OneOf(parts);
      part = Near(part);
      spec.shape.reset();
    } else if (auto* window = std::get_if<std::vector<WindowDimension>>(&value);
               window && !window->empty()) {
      WindowDimension& w = (*window)[m_.Below(window->size())];
      int64_t* const parts[] = {&w.size, &w.stride,        &w.low,
                                &w.high, &w.base_dilation, &w.window_dilation};
      int64_t& part = *OneOf(parts);
      part = Near(part);
      if (m_.Chance(10)) w.reversed = !w.reversed;
      spec.shape.reset();
    } else {
      return;
    }
    spec.attributes.Set(key, std::move(value));
  }

  void Callee(const Instruction& i, ir::InstructionSpec& spec) {
    if (spec.called.empty()) return;
    Computation*& callee = spec.called[m_.Below(spec.called.size())];
    // Those that are whole already: no cycle.
    const auto& all = callee->parent()->computations();
    Computation* other = all[m_.Below(all.size())].get();
    if (other->root()) callee = other;
  }

  void Constant(const Instruction& i, ir::InstructionSpec& spec) {
    if (!i.IsConstant() || !i.shape().is_array() || i.shape().num_elements() == 0) return;
    static constexpr double kNumbers[] = {0, 1, -1, 2, 0.5, 3, 7, 1e9, -128};
    Literal literal = *spec.literal;
    const Literal one = Literal::ScalarOf(literal.shape().type(), OneOf(kNumbers));
    const auto width = static_cast<size_t>(one.byte_size());
    const auto count = static_cast<size_t>(literal.shape().num_elements());
    const size_t at = m_.Below(count);
    for (size_t k = m_.Chance(50) ? 0 : at; k < count; ++k) {
      std::memcpy(literal.data() + k * width, one.data(), width);
    }
    spec.literal = std::make_shared<const Literal>(std::move(literal));
  }

  // More results, some of them twice.
  std::unique_ptr<ir::Module> WithResults() {
    auto more = module_.Clone();
    Computation* entry = more->entry();
    std::vector<Instruction*> values, results = {entry->root()};
    for (Instruction* i : entry->instructions()) {
      if (i->shape().is_array()) values.push_back(i);
    }
    if (entry->root()->opcode() == Opcode::kTuple) {
      results.assign(entry->root()->operands().begin(), entry->root()->operands().end());
    }
    for (size_t k = 1 + m_.Below(3); k > 0 && !values.empty() && !results.empty(); --k) {
      results.push_back(m_.Chance(50) ? values[m_.Below(values.size())]
                                      : results[m_.Below(results.size())]);
    }
    auto root = entry->Add({.opcode = Opcode::kTuple, .operands = std::move(results)});
    if (!root.ok()) return nullptr;
    entry->set_root(*root);
    more->aliases().clear();
    return ir::Verify(*more).ok() ? std::move(more) : nullptr;
  }

  Mutator& m_;
  const ir::Module& module_;
  std::vector<const Instruction*> all_;
};

// --- Rounding.

void Shake(Literal& literal, std::mt19937_64& random) {
  for (Literal& element : literal.elements()) Shake(element, random);
  const Shape& shape = literal.shape();
  if (!shape.is_array() || !(IsFloat(shape.type()) || IsComplex(shape.type()))) return;
  const auto parts = static_cast<size_t>(IsComplex(shape.type()) ? 2 : 1);
  const size_t width = static_cast<size_t>(ByteWidth(shape.type())) / parts;
  const auto most = static_cast<uint64_t>(width >= 4 ? 8 : 1);
  for (size_t at = 0; at + width <= static_cast<size_t>(literal.byte_size()); at += width) {
    uint64_t bits = 0;
    std::memcpy(&bits, literal.data() + at, width);
    // Zeros are often meant, and one below all ones may be no number.
    if ((bits << (65 - 8 * width)) == 0) continue;
    const uint64_t step = random() % (most + 1);
    bits = random() % 2 ? bits + step : bits - step;
    std::memcpy(literal.data() + at, &bits, width);
  }
}

}  // namespace

std::unique_ptr<ir::Module> Mutator::Module(const ir::Module& module) {
  return Changes(*this, module).Make();
}

std::unique_ptr<ir::Module> Shaken(const ir::Module& module, uint64_t seed) {
  std::mt19937_64 random(seed);
  Rebuilder rebuilder(module);
  rebuilder.change = [&](const Instruction& i, ir::InstructionSpec& spec) {
    if (!i.IsConstant()) return;
    Literal literal = *spec.literal;
    Shake(literal, random);
    spec.literal = std::make_shared<const Literal>(std::move(literal));
  };
  return rebuilder.Run();
}

std::unique_ptr<ir::Module> WithOtherNans(const ir::Module& module) {
  Rebuilder rebuilder(module);
  rebuilder.change = [&](const Instruction& i, ir::InstructionSpec& spec) {
    const bool reads_bits =
        i.opcode() == Opcode::kBitcastConvert ||
        (i.opcode() == Opcode::kCompare && i.attributes().Text(Attr::kOrderType) == "TOTALORDER");
    if (!reads_bits) return;
    for (Instruction*& x : spec.operands) {
      if (!x->shape().is_array() || !IsFloat(x->shape().type())) continue;
      Computation* c = x->parent();
      auto is_nan = c->Add({.opcode = Opcode::kCompare,
                            .operands = {x, x},
                            .attributes = {{Attr::kDirection, Direction::kNe}}});
      auto negative = c->Add({.opcode = Opcode::kNegate, .operands = {x}});
      if (!is_nan.ok() || !negative.ok()) continue;
      auto other = c->Add({.opcode = Opcode::kSelect, .operands = {*is_nan, *negative, x}});
      if (other.ok()) x = *other;
    }
  };
  return rebuilder.Run();
}

std::vector<Literal> Shaken(std::vector<Literal> literals, uint64_t seed) {
  std::mt19937_64 random(seed);
  for (Literal& literal : literals) Shake(literal, random);
  return literals;
}

}  // namespace kiln::fuzz
