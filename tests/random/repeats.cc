#include "random/repeats.h"

#include <algorithm>
#include <cstdlib>
#include <iostream>
#include <optional>
#include <random>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "ir/text.h"
#include "ir/verifier.h"
#include "passes/control/computations.h"
#include "random/fodder.h"
#include "random/module.h"
#include "random/ops.h"
#include "random/rows.h"
#include "support/literal.h"

namespace kiln::testing {
namespace {

using ir::Computation;
using ir::Instruction;
using Set = std::unordered_set<const Instruction*>;

// So many results are added to a computation at most, and so many ops are in a fusion.
constexpr int64_t kMostResults = 8;
constexpr size_t kMostMembers = 24;

// Whether the op may be in a fusion, or be made again. Fusions may be in each other.
bool IsPlain(const Instruction& i) {
  switch (i.opcode()) {
    case Opcode::kCall:
    case Opcode::kConditional:
    case Opcode::kCustomCall:
    case Opcode::kOptBarrier:
    case Opcode::kParameter:
    case Opcode::kTuple:
    case Opcode::kWhile:
      return false;
    case Opcode::kConstant:
      return i.shape().is_array();
    default:
      return true;
  }
}

// Whether a value that was made on the way to others may be a result: of half types, narrow and
// complex ones nothing bounds by how much evaluators differ.
bool MayBeResult(const Instruction& i) {
  if (!i.shape().is_array()) return false;
  const ElementType type = i.shape().type();
  return IsCounted(type) || type == ElementType::kF32 || type == ElementType::kF64;
}

// What the values need, or what needs them, with themselves.
Set Closure(const Set& values, bool users) {
  Set all = values;
  std::vector<const Instruction*> work(values.begin(), values.end());
  while (!work.empty()) {
    const Instruction* i = work.back();
    work.pop_back();
    for (const Instruction* next : users ? i->users() : i->operands()) {
      if (all.insert(next).second) work.push_back(next);
    }
  }
  return all;
}

class Repeater {
 public:
  Repeater(ir::Module& module, uint64_t seed)
      : module_(module), random_(seed * 0x9e3779b97f4a7c15u + 4242) {}

  void Run() {
    Computation& entry = *module_.entry();
    Enrich(entry);
    std::vector<Instruction*> results(Results(entry).begin(), Results(entry).end());
    std::shuffle(results.begin(), results.end(), random_);
    SetResults(entry, std::move(results));
    module_.RemoveUnusedComputations();
    module_.SortComputations();
  }

 private:
  int64_t Pick(int64_t low, int64_t high) {
    return low + static_cast<int64_t>(random_() % static_cast<uint64_t>(high - low + 1));
  }
  bool Chance(int percent) { return Pick(1, 100) <= percent; }
  template <typename T>
  auto& AnyOf(T&& list) {
    return list[static_cast<size_t>(Pick(0, std::ssize(list) - 1))];
  }

  static void PutInOrder(Computation& c) { c.Reorder(c.PostOrder()); }

  // --- Results: while a computation grows, its root is a tuple.

  static void MakeRootTuple(Computation& c) {
    Instruction* root = c.root();
    if (root->opcode() == Opcode::kTuple && root->users().empty()) return;
    std::vector<Instruction*> elements = {root};
    if (root->shape().is_tuple()) {
      elements.clear();
      for (int64_t k = 0; k < std::ssize(root->shape().elements()); ++k) {
        elements.push_back(ir::ElementOf(root, k));
      }
    }
    c.set_root(passes::MakeTuple(&c, std::move(elements), nullptr));
  }

  static std::span<Instruction* const> Results(const Computation& c) {
    return c.root()->operands();
  }
  static void SetResults(Computation& c, std::vector<Instruction*> results) {
    Instruction* old = c.root();
    c.set_root(passes::MakeTuple(&c, std::move(results), nullptr));
    c.Remove(old);
  }
  static void AddResult(Computation& c, Instruction* value) {
    std::vector<Instruction*> results(Results(c).begin(), Results(c).end());
    results.push_back(value);
    SetResults(c, std::move(results));
  }

  Instruction* Constant(Computation& c, const Shape& shape) {
    auto literal = std::make_shared<const Literal>(
        SampleLiteral(Shape(shape.type(), shape.dimensions()), random_() % 1000));
    return c.Create({.opcode = Opcode::kConstant, .shape = shape, .literal = literal});
  }
  // One of the size of the results, if these have one.
  Instruction* SmallConstant(Computation& c, const Shape* space) {
    const ElementType type = kValueTypes[Pick(0, std::size(kValueTypes) - 1)];
    if (space && Chance(50)) return Constant(c, Shape(type, space->dimensions()));
    if (space) {
      return c.Create({.opcode = Opcode::kBroadcast,
                       .operands = {Constant(c, Shape::Scalar(type))},
                       .attributes = {{Attr::kDimensions, Ints{}}},
                       .shape = Shape(type, space->dimensions())});
    }
    return Constant(c, Chance(60) ? Shape::Scalar(type) : Shape(type, {Pick(1, 5)}));
  }

  // Arrays that the computation is given; elements of a parameter are taken out of it.
  Instruction* AnyInput(Computation& c) {
    if (c.parameters().empty()) return nullptr;
    Instruction* p = AnyOf(c.parameters());
    while (p->shape().is_tuple()) {
      if (p->shape().elements().empty()) return nullptr;
      p = ir::ElementOf(p, Pick(0, std::ssize(p->shape().elements()) - 1));
    }
    return p->shape().is_array() ? p : nullptr;
  }

  // The value made again, with what it is made of as deep as chance has it.
  Instruction* Again(Instruction* value, int depth) {
    const bool is_loop =
        value->opcode() == Opcode::kWhile || value->opcode() == Opcode::kConditional;
    if (!(IsPlain(*value) || value->opcode() == Opcode::kTuple || (is_loop && Chance(50)))) {
      return value;
    }
    std::vector<Instruction*> operands(value->operands().begin(), value->operands().end());
    if (depth > 0) {
      for (Instruction*& operand : operands) {
        if (Chance(50)) operand = Again(operand, depth - 1);
      }
    }
    if (HasTrait(value->opcode(), kCommutative) && operands.size() == 2 && Chance(30)) {
      std::swap(operands[0], operands[1]);
    }
    return value->parent()->Create(ir::CopySpec(*value, std::move(operands)));
  }

  // Some of the uses of a value are uses of another one, which is the same and needs none of them.
  void ShareUses(Instruction* value, Instruction* equal) {
    const Set needed = Closure({equal}, false);
    std::vector<Instruction*> users(value->users().begin(), value->users().end());
    for (Instruction* user : users) {
      if (needed.contains(user)) continue;
      for (int64_t o = 0; o < user->operand_count(); ++o) {
        if (user->operand(o) == value && Chance(50)) {
          value->parent()->ReplaceOperand(user, o, equal);
        }
      }
    }
  }

  // More results of the kinds that there are; those of one size, if it is said.
  void RepeatResults(Computation& c, const Shape* space = nullptr) {
    auto add = [&](Instruction* value) {
      const Shape& shape = value->shape();
      if (!space || (shape.is_array() && shape.SameDimensions(*space))) AddResult(c, value);
    };
    for (int64_t k = Pick(1, 5); k > 0; --k) {
      Instruction* value = Results(c).empty() ? nullptr : AnyOf(Results(c));
      switch (Pick(0, 7)) {
        case 0:
        case 1:
        case 2:
          if (value) AddResult(c, value);
          if (value && Chance(30)) AddResult(c, value);
          break;
        case 3:
        case 4:
          if (value) AddResult(c, Again(value, static_cast<int>(Pick(0, 4))));
          break;
        case 5:
          if (Instruction* input = AnyInput(c)) add(input);
          break;
        case 6:
          value = SmallConstant(c, space);
          AddResult(c, value);
          if (Chance(70)) AddResult(c, value);
          break;
        case 7:
          if (value && value->operand_count() > 0) {
            Instruction* inside = AnyOf(value->operands());
            if (IsPlain(*inside) && MayBeResult(*inside)) add(inside);
          }
          break;
      }
    }
  }

  // Values in the middle that are made twice.
  void RepeatValues(Computation& c) {
    std::vector<Instruction*> values;
    for (Instruction* i : c.instructions()) {
      if (IsPlain(*i) && !i->users().empty()) values.push_back(i);
    }
    if (values.empty()) return;
    for (int64_t k = Pick(0, 3); k > 0; --k) {
      Instruction* value = AnyOf(values);
      Instruction* equal = Again(value, static_cast<int>(Pick(0, 3)));
      if (equal != value) ShareUses(value, equal);
    }
  }

  // All that is done with a computation that has no loops or branches but those that are done.
  // Its first results stay what they are.
  void Enrich(Computation& c) {
    MakeRootTuple(c);
    const int64_t before = std::ssize(Results(c));
    std::vector<Instruction*> callers;
    for (Instruction* i : c.instructions()) {
      if (i->opcode() == Opcode::kWhile || i->opcode() == Opcode::kConditional ||
          i->opcode() == Opcode::kCall) {
        callers.push_back(i);
      }
    }
    for (Instruction* caller : callers) {
      caller->opcode() == Opcode::kWhile ? EnrichLoop(caller) : EnrichBranches(caller);
    }
    RepeatValues(c);
    RepeatResults(c);
    PutInOrder(c);
    for (int64_t k = Pick(0, 3); k > 0; --k) MakeFusion(c, 0);
    if (Chance(30)) MakeFusionOfSeveral(c);
    if (Chance(30)) RepeatResults(c);
    std::vector<Instruction*> results(Results(c).begin(), Results(c).end());
    if (std::ssize(results) > before + kMostResults) {
      results.resize(static_cast<size_t>(before + kMostResults));
      SetResults(c, std::move(results));
    }
    PutInOrder(c);
  }

  // Puts a new instruction with more results in the place of a caller, whose elements are among
  // them: `first` of them at the front. An array is now the first.
  void ReplaceCaller(Instruction* caller, ir::InstructionSpec spec, int64_t first) {
    Computation& c = *caller->parent();
    const Shape shape = caller->shape();
    const auto count = std::ssize(spec.shape->elements());
    Instruction* made = c.Create(std::move(spec), caller);
    std::vector<Instruction*> elements;
    for (int64_t k = 0; k < first; ++k) elements.push_back(ir::ElementOf(made, k, caller));
    std::vector<Instruction*> users(caller->users().begin(), caller->users().end());
    for (Instruction* user : users) {
      if (shape.is_array() || user->opcode() != Opcode::kGetTupleElement) continue;
      c.ReplaceAllUses(user, elements[static_cast<size_t>(user->attributes().Int(Attr::kIndex))]);
      c.Remove(user);
    }
    if (!caller->users().empty()) {
      Instruction* whole = shape.is_array() ? elements[0] : passes::MakeTuple(&c, elements, caller);
      c.ReplaceAllUses(caller, whole);
    }
    c.Remove(caller);
    for (int64_t k = 0; k < count; ++k) {
      if (k >= first ? Chance(70) : Chance(10)) AddResult(c, ir::ElementOf(made, k));
    }
  }

  // A value of the shape that does not need `user`.
  Instruction* ValueFor(Computation& c, const Shape& shape, const Instruction* user) {
    const Set after = user ? Closure({user}, true) : Set();
    std::vector<Instruction*> fitting;
    for (Instruction* i : c.instructions()) {
      if (i->shape() == shape && MayBeResult(*i) && !after.contains(i)) fitting.push_back(i);
    }
    if (!fitting.empty() && Chance(60)) return AnyOf(fitting);
    if (shape.is_array()) return Constant(c, shape);
    std::vector<Instruction*> elements;
    for (const Shape& element : shape.elements()) elements.push_back(ValueFor(c, element, user));
    return passes::MakeTuple(&c, std::move(elements), nullptr);
  }

  void EnrichLoop(Instruction* loop) {
    Computation& c = *loop->parent();
    Computation* condition = passes::OwnCallee(loop, 0);
    Computation* body = passes::OwnCallee(loop, 1);
    const int64_t before = std::ssize(loop->shape().elements());
    Enrich(*body);
    // What the new elements begin with: where they go on as others do, like these.
    std::vector<Instruction*> start;
    for (int64_t k = 0; k < before; ++k) start.push_back(ir::ElementOf(loop->operand(0), k));
    struct Twins {
      size_t one, other;
    };
    std::vector<Twins> twins;
    for (size_t k = start.size(); k < Results(*body).size(); ++k) {
      auto next = Results(*body);
      std::vector<size_t> alike;
      for (size_t j = 0; j < k; ++j) {
        if (next[j] == next[k] && start[j]->shape() == next[k]->shape()) alike.push_back(j);
      }
      if (!alike.empty() && Chance(60)) {
        twins.push_back({AnyOf(alike), k});
        start.push_back(start[twins.back().one]);
      } else {
        start.push_back(ValueFor(c, next[k]->shape(), loop));
      }
    }
    // What is only given through, to its own place or to another one's.
    const size_t through = start.size(), kept = static_cast<size_t>(Pick(0, 2));
    for (size_t k = 0; k < kept; ++k) {
      start.push_back(k > 0 ? start.back() : ValueFor(c, AnyOf(start)->shape(), loop));
    }
    Instruction* from = passes::MakeTuple(&c, start, loop);
    for (Computation* called : {condition, body}) Widen(*called->parameter(0), from->shape());
    Instruction* p = body->parameter(0);
    for (size_t k = 0; k < kept; ++k) {
      AddResult(*body, ir::ElementOf(p, static_cast<int64_t>(through + (Chance(70) ? k : 0))));
    }
    for (auto [one, other] : twins) {
      std::vector<Instruction*> users(p->users().begin(), p->users().end());
      for (Instruction* user : users) {
        if (user->opcode() != Opcode::kGetTupleElement || Chance(50)) continue;
        if (user->attributes().Int(Attr::kIndex) != static_cast<int64_t>(one)) continue;
        Instruction* twin = ir::ElementOf(p, static_cast<int64_t>(other));
        ShareUses(user, twin);
      }
    }
    PutInOrder(*condition);
    PutInOrder(*body);
    ir::InstructionSpec spec = ir::CopySpec(*loop, {from});
    spec.shape = from->shape();
    ReplaceCaller(loop, std::move(spec), before);
    PutInOrder(c);
  }

  // A tuple that a computation takes has more elements; who takes it whole takes the first ones.
  static void Widen(Instruction& parameter, const Shape& shape) {
    Computation& c = *parameter.parent();
    const int64_t before = std::ssize(parameter.shape().elements());
    parameter.set_shape(shape);
    std::vector<Instruction*> users(parameter.users().begin(), parameter.users().end());
    Instruction* whole = nullptr;
    for (Instruction* user : users) {
      if (user->opcode() == Opcode::kGetTupleElement) continue;
      if (!whole) {
        std::vector<Instruction*> elements;
        for (int64_t k = 0; k < before; ++k) elements.push_back(ir::ElementOf(&parameter, k));
        whole = passes::MakeTuple(&c, std::move(elements), nullptr);
      }
      for (int64_t o = 0; o < user->operand_count(); ++o) {
        if (user->operand(o) == &parameter) c.ReplaceOperand(user, o, whole);
      }
    }
  }

  // A conditional or a call: all its computations give what the first one does.
  void EnrichBranches(Instruction* caller) {
    Computation& c = *caller->parent();
    const Shape& shape = caller->shape();
    const int64_t before = shape.is_tuple() ? std::ssize(shape.elements()) : 1;
    std::vector<Shape> more;
    for (size_t b = 0; b < caller->called().size(); ++b) {
      Computation* branch = passes::OwnCallee(caller, static_cast<int64_t>(b));
      Enrich(*branch);
      std::vector<Instruction*> own(Results(*branch).begin(), Results(*branch).end());
      if (b == 0) {
        for (size_t k = static_cast<size_t>(before); k < own.size(); ++k) {
          more.push_back(own[k]->shape());
        }
        continue;
      }
      std::vector<Instruction*> results(own.begin(), own.begin() + before);
      for (const Shape& wanted : more) {
        std::vector<Instruction*> fitting;
        for (Instruction* i : own) {
          if (i->shape() == wanted) fitting.push_back(i);
        }
        results.push_back(!fitting.empty() && Chance(90) ? AnyOf(fitting)
                                                         : ValueFor(*branch, wanted, nullptr));
      }
      SetResults(*branch, std::move(results));
      PutInOrder(*branch);
    }
    ir::InstructionSpec spec =
        ir::CopySpec(*caller, {caller->operands().begin(), caller->operands().end()});
    spec.shape = caller->called(0)->root()->shape();
    ReplaceCaller(caller, std::move(spec), before);
    PutInOrder(c);
  }

  // --- Fusions

  // Ops near each other between which there is nothing else; in order, or none. Most have the size
  // of the one that is set to `space`, if that is asked for.
  std::vector<Instruction*> AnyGroup(Computation& c, const Shape** space) {
    std::vector<Instruction*> plain;
    for (Instruction* i : c.instructions()) {
      if (IsPlain(*i)) plain.push_back(i);
    }
    std::vector<Instruction*> members;
    for (Instruction* i : Results(c)) {
      if (IsPlain(*i) && Chance(40)) members = {i};
    }
    if (members.empty() && plain.empty()) return {};
    if (members.empty()) members = {AnyOf(plain)};
    if (space && !members[0]->shape().is_array()) return {};
    if (space) *space = &members[0]->shape();
    Set chosen(members.begin(), members.end());
    auto fits = [&](const Instruction* i) {
      if (!space) return true;
      if (!i->shape().is_array() || i->opcode() == Opcode::kGetTupleElement) return false;
      return i->shape().SameDimensions(**space) ||
             std::ranges::all_of(i->users(), [&](auto* user) { return chosen.contains(user); });
    };
    for (int64_t k = Pick(0, 12); k > 0; --k) {
      const Instruction* near = AnyOf(members);
      const bool up = near->users().empty() || Chance(80);
      auto next = up ? near->operands() : near->users();
      if (next.empty()) continue;
      Instruction* i = AnyOf(next);
      if (IsPlain(*i) && fits(i) && chosen.insert(i).second) members.push_back(i);
    }
    if (!space && Chance(30)) chosen.insert(AnyOf(plain));
    // What is between them, and what takes their tuples apart.
    for (size_t size = 0; size != chosen.size();) {
      size = chosen.size();
      const Set above = Closure(chosen, false);
      for (const Instruction* i : Closure(chosen, true)) {
        if (above.contains(i)) chosen.insert(i);
      }
      const Set seen = chosen;
      for (const Instruction* i : seen) {
        if (i->shape().is_tuple()) chosen.insert(i->users().begin(), i->users().end());
      }
    }
    members.clear();
    for (Instruction* i : c.instructions()) {
      if (!chosen.contains(i)) continue;
      if (!IsPlain(*i)) return {};
      members.push_back(i);
    }
    return members.size() <= kMostMembers ? members : std::vector<Instruction*>();
  }

  // Puts ops into a fusion, whose results have repeats.
  void MakeFusion(Computation& c, int depth) {
    // What is of one size may be one kernel.
    const Shape* first = nullptr;
    std::vector<Instruction*> members = AnyGroup(c, Chance(60) ? &first : nullptr);
    if (members.empty()) return;
    std::optional<Shape> space;
    if (first) space = *first;
    const Set inside(members.begin(), members.end());
    Computation* body = module_.AddComputation("fused");
    std::unordered_map<const Instruction*, Instruction*> map;
    std::vector<Instruction*> operands, outputs, results;
    for (Instruction* m : members) {
      std::vector<Instruction*> inner;
      for (Instruction* operand : m->operands()) {
        Instruction*& in = map[operand];
        if (!in && operand->IsConstant() && operand->shape().rank() == 0 && Chance(90)) {
          in = body->Create(ir::CopySpec(*operand, {}));
        } else if (!in) {
          in = body->Create({.opcode = Opcode::kParameter,
                             .attributes = {{Attr::kParameterNumber, std::ssize(operands)}},
                             .shape = operand->shape()});
          operands.push_back(operand);
        }
        inner.push_back(in);
      }
      map[m] = body->Create(ir::CopySpec(*m, std::move(inner)));
      const bool is_output =
          m->shape().is_array() && (m->users().empty() || m->IsRoot() ||
                                    std::ranges::any_of(m->users(), [&](const Instruction* user) {
                                      return !inside.contains(user);
                                    }));
      if (!is_output) continue;
      outputs.push_back(m);
      results.push_back(map[m]);
    }
    if (outputs.empty()) return;
    body->set_root(passes::MakeTuple(body, results, nullptr));
    if (Chance(70)) RepeatResults(*body, space ? &*space : nullptr);
    if (Chance(20)) RepeatValues(*body);
    PutInOrder(*body);
    if (depth < 2 && Chance(20)) MakeFusion(*body, depth + 1);
    Finish(c, *body, operands, outputs);
    for (auto m = members.rbegin(); m != members.rend(); ++m) {
      if ((*m)->users().empty()) c.Remove(*m);
    }
    PutInOrder(c);
  }

  // Puts an op that has several results, like a sort of several arrays, into a fusion, whose root
  // it is.
  void MakeFusionOfSeveral(Computation& c) {
    std::vector<Instruction*> several;
    for (Instruction* i : c.instructions()) {
      if (IsPlain(*i) && i->opcode() != Opcode::kFusion && i->shape().is_tuple()) {
        several.push_back(i);
      }
    }
    if (several.empty()) return;
    Instruction* op = AnyOf(several);
    Computation* body = module_.AddComputation("fused");
    std::vector<Instruction*> operands(op->operands().begin(), op->operands().end()), inner;
    for (const Instruction* operand : operands) {
      inner.push_back(body->Create({.opcode = Opcode::kParameter,
                                    .attributes = {{Attr::kParameterNumber, std::ssize(inner)}},
                                    .shape = operand->shape()}));
    }
    body->set_root(body->Create(ir::CopySpec(*op, inner)));
    c.ReplaceAllUses(op, c.Create({.opcode = Opcode::kFusion,
                                   .operands = operands,
                                   .attributes = {{Attr::kFusionKind, std::string("kInput")}},
                                   .called = {body},
                                   .shape = op->shape()},
                                  op));
    c.Remove(op);
  }

  // Makes the fusion whose first results are the outputs, and uses it in their places.
  void Finish(Computation& c, Computation& body, const std::vector<Instruction*>& operands,
              const std::vector<Instruction*>& outputs) {
    std::vector<Instruction*> results(Results(body).begin(), Results(body).end());
    const std::vector<Instruction*> firsts(results.begin(), results.begin() + std::ssize(outputs));
    std::shuffle(results.begin(), results.end(), random_);
    SetResults(body, results);
    const bool single = results.size() == 1 && Chance(70);
    if (single) {
      Instruction* tuple = body.root();
      body.set_root(results[0]);
      body.Remove(tuple);
    }
    PutInOrder(body);
    static constexpr const char* kKinds[] = {"kLoop",  "kLoop",  "kLoop",   "kInput",
                                             "kInput", "kInput", "kOutput", "kCustom"};
    Instruction* fusion = c.Create(
        {.opcode = Opcode::kFusion,
         .operands = operands,
         .attributes = {{Attr::kFusionKind, std::string(kKinds[Pick(0, std::size(kKinds) - 1)])}},
         .called = {&body},
         .shape = body.root()->shape()});
    if (single) return c.ReplaceAllUses(outputs[0], fusion);
    std::vector<Instruction*> elements;
    for (int64_t k = 0; k < std::ssize(results); ++k) {
      elements.push_back(ir::ElementOf(fusion, k));
    }
    std::vector<bool> is_used(results.size());
    for (size_t o = 0; o < outputs.size(); ++o) {
      std::vector<size_t> equal;
      for (size_t k = 0; k < results.size(); ++k) {
        if (results[k] == firsts[o]) equal.push_back(k);
      }
      const size_t first = AnyOf(equal);
      for (size_t k : equal) {
        if (k != first) ShareUses(outputs[o], elements[k]);
      }
      c.ReplaceAllUses(outputs[o], elements[first]);
    }
    for (Instruction* element : elements) {
      if (element->users().empty() && Chance(75)) AddResult(c, element);
    }
  }

  ir::Module& module_;
  std::mt19937_64 random_;
};

}  // namespace

void AddRepeats(ir::Module& module, uint64_t seed) {
  Repeater(module, seed).Run();
  if (Status status = ir::Verify(module); !status.ok()) {
    std::cerr << "random repeats: " << status.ToString() << "\n" << ir::ToHloText(module);
    std::abort();
  }
}

std::unique_ptr<ir::Module> RandomRepeatsModule(uint64_t seed) {
  std::unique_ptr<ir::Module> module;
  switch (seed % 4) {
    case 0:
      module = RandomModule(seed, {.ops = 14, .max_elements = 4000});
      break;
    case 1:
      module = ControlFodder(seed);
      break;
    case 2:
      module = RandomRowsModule(seed);
      break;
    case 3:
      module = RandomModule(seed, kRareTypesOptions);
      break;
  }
  AddRepeats(*module, seed);
  return module;
}

}  // namespace kiln::testing
