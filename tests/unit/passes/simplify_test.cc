// Every rewrite of the algebraic simplifier, one at a time, on random computations: the value
// stays, and the order that simplify.h promises goes down.

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <random>
#include <set>
#include <tuple>
#include <unordered_map>
#include <unordered_set>

#include "base/strings.h"
#include "interp/interpreter.h"
#include "ir/text.h"
#include "ir/verifier.h"
#include "kernel/window.h"
#include "passes/simplify/simplify.h"
#include "random/fodder.h"
#include "support/labels.h"

namespace kiln::passes {
namespace {

using ir::Instruction;
using testing::BitDifference;
using testing::Fodder;
using testing::SpecialArguments;

// Whether a broadcast changes the order of dimensions, but for those of size 1.
bool MovesElements(const Instruction& i) {
  int64_t last = -1;
  for (int64_t d : i.dimensions()) {
    if (i.shape().dim(d) == 1) continue;
    if (d < last) return true;
    last = d;
  }
  return false;
}

// The weight of an op for one element of its result, of its operand (reductions) or of its products
// (dots). What only says where elements are weighs less than arithmetic; a repeated scalar, a
// count and a reshape are free.
double Weight(const Instruction& i) {
  switch (i.opcode()) {
    case Opcode::kParameter:
    case Opcode::kConstant:
    case Opcode::kIota:
    case Opcode::kReshape:
    case Opcode::kTuple:
    case Opcode::kGetTupleElement:
      return 0;
    case Opcode::kBroadcast:
      // One that only moves dimensions is a transpose that does not say so.
      if (i.operand(0)->shape().is_scalar()) return 0;
      if (i.operand(0)->shape().num_elements() < i.shape().num_elements()) return 0.5;
      return MovesElements(i) ? 1 : 0.5;
    case Opcode::kTranspose:
    case Opcode::kSlice:
    case Opcode::kPad:
    case Opcode::kConcatenate:
    case Opcode::kReverse:
    case Opcode::kCopy:
      return 1;
    case Opcode::kClamp:
    case Opcode::kReduce:
      return 4;
    case Opcode::kGather: {
      // As a dynamic slice, and it looks up where each slice is.
      const double vectors = static_cast<double>(i.operand(1)->shape().num_elements());
      return 2 + 2 * vectors / std::max(1.0, static_cast<double>(i.shape().num_elements()));
    }
    case Opcode::kReduceWindow:
      return 5;
    case Opcode::kScatter:
      // It looks up where each window is, and combines there.
      return 6;
    case Opcode::kDivide:
    case Opcode::kRemainder:
      return IsInteger(i.shape().type()) ? 16 : 8;
    case Opcode::kDot:
      return 16;
    case Opcode::kPower:
      return 32;
    default:
      return IsTranscendental(i.opcode()) ? 16 : 2;
  }
}

double Points(const Instruction& i) {
  if (!i.shape().is_array()) return 0;
  double points = static_cast<double>(i.shape().num_elements());
  if (i.opcode() == Opcode::kReduce) {
    points = static_cast<double>(i.operand(0)->shape().num_elements());
  }
  if (i.opcode() == Opcode::kReduceWindow) {
    points = static_cast<double>(kernel::WindowReads(i));
  }
  if (i.opcode() == Opcode::kDot) {
    for (int64_t d : i.attributes().IntsOf(Attr::kLhsContractingDims)) {
      points *= static_cast<double>(i.operand(0)->shape().dim(d));
    }
  }
  return points;
}

// What simplify.h calls the order.
struct Order {
  // Of what depends on data.
  double work = 0, count = 0, terms = 0, form = 0, moved = 0;
  // Of everything.
  double all_work = 0, all_form = 0, all_count = 0, all_terms = 0;
  auto operator<=>(const Order&) const = default;
  std::string ToString() const {
    return Cat("work ", work, ", count ", count, ", terms ", terms, ", form ", form, ", moved ",
               moved, "; of all: ", all_work, ", ", all_count, ", ", all_terms, ", ", all_form);
  }
};

// `is_constant` tells which of the operands depend on constants alone.
double FormOf(const Instruction& i, const std::vector<bool>& is_constant) {
  double form = 0;
  bool ordered = HasTrait(i.opcode(), kCommutative) || i.opcode() == Opcode::kCompare;
  if (ordered && i.operand_count() == 2) form += is_constant[0] && !is_constant[1];
  if (!i.shape().is_array()) return form;
  bool arithmetic = i.opcode() == Opcode::kAdd || i.opcode() == Opcode::kMultiply ||
                    i.opcode() == Opcode::kMaximum || i.opcode() == Opcode::kMinimum;
  form += arithmetic && IsPred(i.shape().type());
  form += i.opcode() == Opcode::kSelect && IsPred(i.shape().type()) ? 2 : 0;
  form += i.opcode() == Opcode::kBroadcast &&
          i.shape().num_elements() == i.operand(0)->shape().num_elements();
  form += i.opcode() == Opcode::kSubtract && is_constant[1] && !is_constant[0];
  if (i.opcode() == Opcode::kReverse) form += static_cast<double>(i.dimensions().size());
  form += i.IsConstant() && i.shape().rank() > 0 && i.shape().num_elements() > 1 &&
          i.literal().IsSplat();
  return form;
}

Order OrderOf(const ir::Computation& c) {
  std::unordered_set<const Instruction*> needed = {c.root()};
  std::vector<const Instruction*> work = {c.root()};
  while (!work.empty()) {
    const Instruction* i = work.back();
    work.pop_back();
    for (const Instruction* operand : i->operands()) {
      if (needed.insert(operand).second) work.push_back(operand);
    }
  }
  Order order;
  struct Term {
    bool constant;
    double data, all;
    std::set<const Instruction*> rearrangements;  // among what it is made of
  };
  std::unordered_map<const Instruction*, Term> terms;
  for (Instruction* owned : c.instructions()) {
    const Instruction& i = *owned;
    if (!needed.contains(&i)) continue;
    Term term{i.IsConstant(), 1, 1, {}};
    if (i.operand_count() > 0) term.constant = true;
    std::vector<bool> is_constant;
    for (const Instruction* operand : i.operands()) {
      const Term& of = terms.at(operand);
      is_constant.push_back(of.constant);
      term.constant &= of.constant;
      term.data += of.data;
      term.all += of.all;
      term.rearrangements.insert(of.rearrangements.begin(), of.rearrangements.end());
    }
    if (term.constant) term.data = 0;
    double done = Weight(i) * Points(i), form = FormOf(i, is_constant);
    order.all_work += done;
    order.all_form += form;
    bool spread = i.opcode() == Opcode::kBroadcast && i.operand(0)->shape().is_scalar() &&
                  i.shape().num_elements() > 1;
    order.all_count += !spread;
    if (!term.constant) {
      order.work += done;
      order.form += form;
      order.count += !spread;
      if (i.opcode() == Opcode::kReshape || i.opcode() == Opcode::kTranspose) {
        term.rearrangements.insert(&i);
      } else if (!spread) {
        order.moved += static_cast<double>(term.rearrangements.size());
      }
    }
    terms[&i] = term;
    if (&i == c.root()) {
      order.terms = term.data;
      order.all_terms = term.all;
    }
  }
  return order;
}

// Whether an inexact rewrite kept its word: powers are rounded once or twice, and sums and products
// are taken in another order; a product that underflows may give a zero of either sign.
// `from` is what is summed, `sums` tells that the rewrite was one of its sum.
bool IsWithinBound(const Instruction& from, const std::vector<const Literal*>& operands, bool sums,
                   const Literal& expected, const Literal& actual) {
  if (!IsFloat(from.shape().type())) return false;
  bool power = from.opcode() == Opcode::kPower, reduce = from.opcode() == Opcode::kReduce;
  bool dot = from.opcode() == Opcode::kDot;
  // Of roots, their logarithms and quotients by them; of extrema of what a function makes.
  bool root = from.opcode() == Opcode::kMultiply || from.opcode() == Opcode::kDivide ||
              from.opcode() == Opcode::kLog || from.opcode() == Opcode::kMaximum ||
              from.opcode() == Opcode::kMinimum;
  // Of cumulative sums of one number.
  root |= from.opcode() == Opcode::kReduceWindow;
  bool scatter = from.opcode() == Opcode::kScatter;
  if (!power && !reduce && !dot && !root && !scatter) return false;
  double epsilon = 0, largest = 0, smallest = 0;
  VisitKernelType(from.shape().type(), [&](auto zero) {
    using Limits = std::numeric_limits<decltype(zero)>;
    epsilon = static_cast<double>(Limits::epsilon());
    largest = static_cast<double>(Limits::max());
    smallest = static_cast<double>(Limits::denorm_min());
  });
  double scale = 0;
  sums |= reduce;
  if (scatter) {
    for (int64_t k = 0; k < operands[2]->shape().num_elements(); ++k) {
      scale += std::abs(operands[2]->AsDouble(k));
    }
  }
  if (dot) {
    for (int64_t d : from.attributes().IntsOf(Attr::kLhsContractingDims)) {
      sums |= from.operand(0)->shape().dim(d) > 1;
    }
    double largest_factor = 0;
    for (int64_t k = 0; k < operands[0]->shape().num_elements(); ++k) {
      scale += std::abs(operands[0]->AsDouble(k));
    }
    for (int64_t k = 0; k < operands[1]->shape().num_elements(); ++k) {
      largest_factor = std::max(largest_factor, std::abs(operands[1]->AsDouble(k)));
    }
    scale *= largest_factor;
  }
  if (reduce) {
    bool product = from.called(0)->root()->opcode() == Opcode::kMultiply;
    for (const Literal* x : operands) {
      for (int64_t k = 0; k < x->shape().num_elements(); ++k) scale += std::abs(x->AsDouble(k));
    }
    // Partial products may leave the range where others do not.
    if (product && !(scale < 1e3)) return true;
    if (product) scale = 0;
  }
  for (int64_t k = 0; k < expected.shape().num_elements(); ++k) {
    double e = expected.AsDouble(k), a = actual.AsDouble(k);
    if (e == a || (std::isnan(e) && std::isnan(a))) continue;
    // Without sums there is one rounding; of f64 the evaluator's dot has two.
    if (dot && !sums && from.shape().type() != ElementType::kF64) return false;
    // A partial sum, or a product, may overflow where the whole does not.
    if (sums && !(scale < largest)) continue;
    double bound = 4 * epsilon * std::max(scale, std::abs(e)) + 2 * smallest;
    // A root next to 1 has lost what its logarithm is made of.
    if (from.opcode() == Opcode::kLog) bound += epsilon;
    if (from.opcode() == Opcode::kReduceWindow) {
      bound *= static_cast<double>(expected.shape().num_elements());
    }
    if (!(std::abs(e - a) <= bound)) return false;
  }
  return true;
}

class Rewriter {
 public:
  Rewriter(uint64_t seed, int ops, std::map<std::string, int>* fired)
      : random_(seed), module_(Fodder(seed, ops)), c_(module_->entry()), fired_(fired) {
    arguments_ = SpecialArguments(*module_, seed);
    // Without some of the families others get to see more.
    for (const simplify::Family& family : simplify::Families()) {
      bool always = family.name == "empty arrays" || family.name == "association";
      if (always || random_() % 4 != 0) families_.push_back(&family);
    }
  }

  void Run() {
    Evaluate();
    Order order = OrderOf(*c_);
    for (int steps = 0;; ++steps) {
      ASSERT_LT(steps, 2000) << "rewriting does not end";
      RemoveUnneeded();
      const simplify::Family* family = nullptr;
      Instruction *from = nullptr, *to = nullptr;
      if (!Next(&family, &from, &to)) break;
      if (fired_) ++(*fired_)[std::string(family->name)];
      std::string what = Cat(family->name, ": ", ir::ToHloText(*from), " => ", ir::ToHloText(*to),
                             "\nin ", ir::ToHloText(*module_));
      ASSERT_EQ(ir::Verify(*module_).ToString(), "OK") << what;
      CheckValue(*from, *to, what);
      c_->ReplaceAllUses(from, to);
      Order next = OrderOf(*c_);
      ASSERT_LT(next, order) << next.ToString() << "\nwas " << order.ToString() << "\n" << what;
      order = next;
      if (::testing::Test::HasFailure()) return;
    }
  }

 private:
  bool Next(const simplify::Family** family, Instruction** from, Instruction** to) {
    for (Instruction* owned : c_->instructions()) {
      Instruction* i = owned;
      if (!simplify::MayReplace(*i)) continue;
      for (const simplify::Family* f : families_) {
        Instruction* simpler = f->rewrite(i);
        if (!simpler || simpler == i) continue;
        *family = f;
        *from = i;
        *to = simpler;
        return true;
      }
    }
    return false;
  }

  void RemoveUnneeded() {
    for (bool again = true; again;) {
      again = false;
      for (auto it = c_->instructions().end(); it != c_->instructions().begin();) {
        Instruction* i = *--it;
        if (!i->users().empty() || i->IsRoot() || i->opcode() == Opcode::kParameter) continue;
        ++it;
        values_.erase(i);
        c_->Remove(i);
        again = true;
      }
    }
  }

  std::vector<const Literal*> OperandsOf(const Instruction& i) const {
    std::vector<const Literal*> operands;
    for (const Instruction* operand : i.operands()) operands.push_back(&values_.at(operand));
    return operands;
  }

  // What a rewrite of a slice or sum of products takes in another order: the products.
  static const Instruction& SumIn(const Instruction& from) {
    if (from.opcode() != Opcode::kSlice && from.opcode() != Opcode::kReduce &&
        from.opcode() != Opcode::kAdd) {
      return from;
    }
    for (const Instruction* operand : from.operands()) {
      if (operand->opcode() == Opcode::kDot || operand->opcode() == Opcode::kScatter) {
        return *operand;
      }
    }
    return from;
  }

  // The values of what has none yet.
  void Evaluate() {
    for (Instruction* i : c_->instructions()) {
      if (i->IsRoot() || values_.contains(i)) continue;
      if (i->opcode() == Opcode::kParameter) {
        values_[i] = arguments_[static_cast<size_t>(i->attributes().Int(Attr::kParameterNumber))];
        continue;
      }
      if (i->IsConstant()) {
        values_[i] = i->literal();
        continue;
      }
      auto value = interp::EvaluateInstruction(*i, OperandsOf(*i));
      ASSERT_TRUE(value.ok()) << value.status().ToString();
      values_[i] = *std::move(value);
    }
  }

  void CheckValue(const Instruction& from, const Instruction& to, const std::string& what) {
    Evaluate();
    const Literal expected = values_.at(&from);
    const Literal& actual = values_.at(&to);
    std::string difference = BitDifference(expected, actual);
    if (difference.empty()) return;
    const Instruction& sum = SumIn(from);
    ASSERT_TRUE(IsWithinBound(sum, OperandsOf(sum), &sum != &from, expected, actual))
        << difference << "\n"
        << what;
    // What is made of it is made of the new value from here on.
    values_.clear();
    Evaluate();
    values_[&from] = values_.at(&to);
    std::unordered_map<const Instruction*, Literal> fresh;
    std::swap(fresh, values_);
    for (Instruction* i : c_->instructions()) {
      if (i->opcode() == Opcode::kParameter || i->IsConstant() || i == &from) {
        values_[i] = fresh.at(i);
      }
    }
    Evaluate();
  }

  std::mt19937_64 random_;
  std::unique_ptr<ir::Module> module_;
  ir::Computation* c_;
  std::map<std::string, int>* fired_;
  std::vector<Literal> arguments_;
  std::vector<const simplify::Family*> families_;
  std::unordered_map<const Instruction*, Literal> values_;
};

void RunSeeds(uint64_t first, uint64_t count, int ops) {
  std::map<std::string, int> fired;
  for (uint64_t seed = first; seed < first + count; ++seed) {
    SCOPED_TRACE(Cat("seed ", static_cast<int64_t>(seed)));
    Rewriter(seed, ops, &fired).Run();
    if (::testing::Test::HasFailure()) return;
  }
  for (const simplify::Family& family : simplify::Families()) {
    EXPECT_GT(fired[std::string(family.name)], static_cast<int>(count / 100))
        << "the rules of '" << family.name << "' are hardly tested";
  }
}

TEST(PassesSimplify, EveryRewriteKeepsTheValueAndReducesTheOrder) { RunSeeds(1, 1500, 24); }

TEST(SlowPassesSimplify, EveryRewriteKeepsTheValueAndReducesTheOrder) {
  RunSeeds(10000, 10000, 40);
}

KILN_LABEL(slow, "SlowPassesSimplify");

}  // namespace
}  // namespace kiln::passes
