// Ops that fold or order elements along dimensions with absent elements.
#include <algorithm>

#include "base/strings.h"
#include "ir/reducer.h"
#include "passes/expand/sized.h"

namespace kiln::passes::expand {
namespace {

using ir::Computation;
using ir::Instruction;

using Values = Result<std::vector<Sized>>;

bool Contains(const Ints& list, int64_t value) { return std::ranges::count(list, value) > 0; }

std::vector<Instruction*> Parameters(Builder& b, const std::vector<Shape>& shapes) {
  std::vector<Instruction*> parameters;
  for (const Shape& shape : shapes) parameters.push_back(b.Parameter(shape));
  return parameters;
}

// The value of a computation at the end of another one.
Instruction* Inlined(Computation* into, const Computation& c, std::vector<Instruction*> arguments) {
  ir::Module& module = *into->parent();
  Computation* copy = module.CloneComputation(c, c.name());
  return into->TakeInstructions(copy, arguments, nullptr);
}

// f over present elements: f'((a, p), (b, q)) = (p and q ? f(a, b) : p ? a : b, p or q)
Computation* FoldOfSome(ir::Module& module, const Instruction* i, const Computation& f) {
  const size_t n = f.parameters().size() / 2;
  Computation* c = module.AddComputation(Cat(f.name(), ".some"));
  Builder b(c, nullptr, i);
  std::vector<Shape> shapes;
  for (size_t side = 0; side < 2; ++side) {
    for (size_t k = 0; k < n; ++k) {
      shapes.push_back(f.parameters()[side * n + k]->shape());
    }
    shapes.push_back(Shape::Scalar(ElementType::kPred));
  }
  const std::vector<Instruction*> parameters = Parameters(b, shapes);
  Instruction *p = parameters[n], *q = parameters[2 * n + 1];
  std::vector<Instruction*> arguments(parameters.begin(),
                                      parameters.begin() + static_cast<int64_t>(n));
  arguments.insert(arguments.end(), parameters.begin() + static_cast<int64_t>(n) + 1,
                   parameters.end() - 1);
  Instruction* folded = Inlined(c, f, std::move(arguments));
  Instruction* both = b.And(p, q);
  std::vector<Instruction*> results;
  for (size_t k = 0; k < n; ++k) {
    Instruction* value =
        folded->shape().is_tuple() ? b.Element(folded, static_cast<int64_t>(k)) : folded;
    Instruction* one = b.Select(p, parameters[k], parameters[n + 1 + k]);
    results.push_back(b.Select(both, value, one));
  }
  results.push_back(b.Or(p, q));
  c->set_root(b.Tuple(std::move(results)));
  return c;
}

// `less` on present elements, with these first: less'(p, q, ...) = !p and (q or less(...)), where p
// and q mark absent elements
Computation* LessOfSome(ir::Module& module, const Instruction* i, const Computation& less) {
  Computation* c = module.AddComputation(Cat(less.name(), ".some"));
  Builder b(c, nullptr, i);
  std::vector<Shape> shapes(2, Shape::Scalar(ElementType::kPred));
  for (const Instruction* p : less.parameters()) shapes.push_back(p->shape());
  const std::vector<Instruction*> parameters = Parameters(b, shapes);
  Instruction* before = Inlined(c, less, {parameters.begin() + 2, parameters.end()});
  Instruction* here = b.Unary(Opcode::kNot, parameters[0]);
  c->set_root(b.And(here, b.Or(parameters[1], before)));
  return c;
}

std::vector<Sized> Elements(Builder& b, Instruction* value, size_t first, size_t count,
                            const std::vector<Instruction*>& sizes) {
  std::vector<Sized> results;
  for (size_t k = first; k < first + count; ++k) {
    Instruction* element =
        value->shape().is_tuple() ? b.Element(value, static_cast<int64_t>(k)) : value;
    results.push_back({element, sizes});
  }
  return results;
}

}  // namespace

Values SizedReduce(Builder& b, const Instruction* i, const std::vector<Sized>& operands) {
  const Ints& reduced = i->dimensions();
  const size_t n = operands.size() / 2;
  int64_t kept = 0;
  Ints place;
  for (int64_t d = 0; d < operands[0].rank(); ++d) {
    place.push_back(Contains(reduced, d) ? -1 : kept++);
  }
  std::vector<Instruction*> sizes =
      SizesBy(b, operands, kept, [&](size_t, int64_t d) { return place[static_cast<size_t>(d)]; });
  // All operands have the first one's dimensions, and the smallest sizes of all.
  Sized all{operands[0].array,
            SizesBy(b, operands, operands[0].rank(), [](size_t, int64_t d) { return d; })};
  if (std::ranges::none_of(reduced, [&](int64_t d) { return all.size(d) != nullptr; })) {
    return Elements(b, OnArrays(b, i, ArraysOf(operands)), 0, n, sizes);
  }
  const Computation& f = *i->called(0);
  const std::optional<Opcode> opcode = n == 1 ? ir::ReducerOf(f) : std::nullopt;
  const ElementType type = all.shape().type();
  std::optional<Literal> identity;
  const bool sums = opcode == Opcode::kAdd || opcode == Opcode::kMultiply;
  if (opcode && (IsKernelType(type) || (IsComplex(type) && sums))) {
    identity = ir::IdentityOf(*opcode, type);
  }
  if (identity) {
    Instruction* filled = Filled(b, all, reduced, *std::move(identity));
    return Elements(b, OnArrays(b, i, {filled, operands[1].array}), 0, n, sizes);
  }
  std::vector<Instruction*> arrays = ArraysOf(operands);
  arrays.insert(arrays.begin() + static_cast<int64_t>(n), IsThere(b, all, reduced));
  arrays.push_back(b.Constant(Literal::Scalar(ElementType::kPred, true)));
  Computation* some = FoldOfSome(*b.computation()->parent(), i, f);
  Instruction* folded = b.Add(Opcode::kReduce, std::move(arrays), {{Attr::kDimensions, reduced}},
                              std::nullopt, {some});
  return Elements(b, folded, 0, n, sizes);
}

// Products with undefined elements must be 0: neither factor may be an infinity or a NaN.
Values SizedDot(Builder& b, const Instruction* i, const std::vector<Sized>& operands) {
  const Attributes& a = i->attributes();
  const Ints *batch[] = {&a.IntsOf(Attr::kLhsBatchDims), &a.IntsOf(Attr::kRhsBatchDims)},
             *contracting[] = {&a.IntsOf(Attr::kLhsContractingDims),
                               &a.IntsOf(Attr::kRhsContractingDims)};
  std::vector<Instruction*> arrays;
  std::vector<Ints> place;
  int64_t next = std::ssize(*batch[0]);
  for (size_t o = 0; o < 2; ++o) {
    if (operands[o].shape().type() == ElementType::kF8E8M0FNU) {
      for (int64_t d : *contracting[o]) {
        if (operands[o].size(d)) return HasNoCode(i, operands);  // it has no 0
      }
    }
    arrays.push_back(ZeroFilled(b, operands[o], *contracting[o]));
    place.emplace_back(static_cast<size_t>(operands[o].rank()), -1);
    for (int64_t d = 0; d < operands[o].rank(); ++d) {
      const auto k = std::ranges::find(*batch[o], d) - batch[o]->begin();
      if (k < std::ssize(*batch[o])) {
        place[o][static_cast<size_t>(d)] = k;
      } else if (!Contains(*contracting[o], d)) {
        place[o][static_cast<size_t>(d)] = next++;
      }
    }
  }
  Instruction* array = OnArrays(b, i, std::move(arrays));
  return std::vector<Sized>{
      {array, SizesBy(b, operands, array->shape().rank(),
                      [&](size_t o, int64_t d) { return place[o][static_cast<size_t>(d)]; })}};
}

Values SizedSort(Builder& b, const Instruction* i, const std::vector<Sized>& operands) {
  Sized all{operands[0].array,
            SizesBy(b, operands, operands[0].rank(), [](size_t, int64_t d) { return d; })};
  Instruction* there = IsThere(b, all, i->dimensions());
  const size_t n = operands.size();
  if (!there) return Elements(b, OnArrays(b, i, ArraysOf(operands)), 0, n, all.sizes);
  std::vector<Instruction*> arrays = ArraysOf(operands);
  arrays.insert(arrays.begin(), b.Unary(Opcode::kNot, there));
  Computation* less = LessOfSome(*b.computation()->parent(), i, *i->called(0));
  Instruction* sorted =
      b.Add(Opcode::kSort, std::move(arrays), i->attributes(), std::nullopt, {less});
  return Elements(b, sorted, 1, n, all.sizes);
}

}  // namespace kiln::passes::expand
