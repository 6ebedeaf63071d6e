#include "ir/specialise.h"

#include "ir/verifier.h"

namespace kiln::ir {
namespace {

// A dimension of an argument, and the size that it has.
struct Equation {
  int64_t parameter;
  Shape wanted, given;
  int64_t dimension;

  const Dimension& form() const { return wanted.dimension(dimension); }
  int64_t size() const { return given.dim(dimension); }
};

template <typename... Args>
Status Mismatch(int64_t parameter, const Shape& wanted, const Shape& given, const Args&... reason) {
  return InvalidArgument("argument ", parameter, " has shape ", given, "; expected ", wanted,
                         reason...);
}

// Compares all but the dimensions of symbols, which become equations.
Status Match(int64_t parameter, const Shape& wanted, const Shape& given,
             std::vector<Equation>& equations) {
  bool alike = wanted.is_tuple() == given.is_tuple() && wanted.is_token() == given.is_token() &&
               wanted.type() == given.type() && wanted.rank() == given.rank() &&
               wanted.elements().size() == given.elements().size();
  if (!alike) return Mismatch(parameter, wanted, given);
  for (int64_t i = 0; i < wanted.rank(); ++i) {
    const Dimension& to = wanted.dimension(i);
    const Dimension& from = given.dimension(i);
    if (to.is_symbolic()) {
      if (!from.is_constant()) {
        return Mismatch(parameter, wanted, given, ": dimension ", i, " must be a number");
      }
      equations.push_back({parameter, wanted, given, i});
    } else if (to.is_bounded()) {
      if (from.is_symbolic() || from.size() > to.size()) return Mismatch(parameter, wanted, given);
    } else if (from != to) {
      return Mismatch(parameter, wanted, given);
    }
  }
  for (size_t i = 0; i < wanted.elements().size(); ++i) {
    KILN_RETURN_IF_ERROR(Match(parameter, wanted.elements()[i], given.elements()[i], equations));
  }
  return OkStatus();
}

// Solves an equation with one unknown, which is not multiplied with itself. Whether it is done
// with: it has given a size, or it holds.
Result<bool> Solve(const Equation& equation, SymbolSizes& sizes) {
  auto fail = [&](const auto&... reason) {
    return Mismatch(equation.parameter, equation.wanted, equation.given, ", where ",
                    equation.form(), reason...);
  };
  Result<Polynomial> rest = equation.form().form().With(sizes);
  if (!rest.ok()) return rest.status();
  if (rest->is_constant()) {
    if (rest->constant() == equation.size()) return true;
    return fail(" is ", rest->constant(), " already");
  }
  const Polynomial::Term& term = rest->terms().front();
  const bool linear =
      term.symbols.size() == 1 && (rest->terms().size() == 1 || rest->terms()[1].symbols.empty());
  if (!linear) return false;
  int64_t product = 0;
  if (__builtin_sub_overflow(equation.size(), rest->constant(), &product)) {
    return fail(" would take a size beyond an int64");
  }
  if (product % term.times != 0 || product / term.times < 0) {
    return fail(" is ", equation.size(), " for no size ", term.symbols.front());
  }
  sizes.emplace(term.symbols.front(), product / term.times);
  return true;
}

Status Substitute(Shape& shape, const SymbolSizes& sizes) {
  for (int64_t i = 0; i < shape.rank(); ++i) {
    const Dimension& size = shape.dimension(i);
    if (!size.is_symbolic()) continue;
    Result<Dimension> number = size.With(sizes);
    if (!number.ok()) return number.status().WithContext(Cat("dimension ", i, " of ", shape));
    if (number->size() < 0) {
      return InvalidArgument("dimension ", i, " of ", shape, " would be ", *number,
                             ", which is a negative dimension");
    }
    shape.set_dimension(i, *std::move(number));
  }
  for (Shape& element : shape.mutable_elements()) {
    KILN_RETURN_IF_ERROR(Substitute(element, sizes));
  }
  return ValidateShape(shape);
}

// The numbers of an attribute's value, by their positions.
int64_t* NumberAt(AttrValue& value, int64_t position) {
  const size_t i = static_cast<size_t>(position);
  if (auto* ints = std::get_if<Ints>(&value)) return &(*ints)[i];
  if (auto* slices = std::get_if<std::vector<SliceDimension>>(&value)) {
    return i % 3 == 0 ? &(*slices)[i / 3].start : &(*slices)[i / 3].limit;
  }
  auto& paddings = std::get<std::vector<PaddingDimension>>(value);
  return i % 3 == 0 ? &paddings[i / 3].low : &paddings[i / 3].high;
}

Status SubstituteNumbers(Instruction& instruction, const SymbolSizes& sizes) {
  Attributes& attributes = instruction.mutable_attributes();
  for (const SymbolicNumber& number : SymbolicNumbers(attributes.Symbolic())) {
    KILN_ASSIGN_OR_RETURN(Dimension size, number.value.With(sizes));
    AttrValue value = *attributes.Find(number.key);
    *NumberAt(value, number.position) = size.size();
    attributes.Set(number.key, std::move(value));
  }
  attributes.Erase(Attr::kSymbolic);
  return OkStatus();
}

// A slice takes the whole of a dimension of symbols as [0:-1]; see InferSlice.
void SubstituteSlice(Instruction& slice, const Shape& symbolic_operand) {
  std::vector<SliceDimension> slices = slice.attributes().Slices(Attr::kSlice);
  const Shape& operand = slice.operand(0)->shape();
  for (size_t i = 0; i < slices.size(); ++i) {
    int64_t dimension = static_cast<int64_t>(i);
    const bool whole = !slice.attributes().SymbolicAt(Attr::kSlice, 3 * dimension + 1);
    if (symbolic_operand.dimension(dimension).is_symbolic() && whole && slices[i].limit == -1) {
      slices[i].limit = operand.dim(dimension);
    }
  }
  slice.mutable_attributes().Set(Attr::kSlice, std::move(slices));
}

// A dynamic slice or a gather likewise takes the whole of a dimension as size -1.
void SubstituteSizes(Instruction& instruction, Attr key) {
  Ints sizes = instruction.attributes().IntsOf(key);
  for (size_t i = 0; i < sizes.size(); ++i) {
    if (sizes[i] < 0) sizes[i] = instruction.operand(0)->shape().dim(static_cast<int64_t>(i));
  }
  instruction.mutable_attributes().Set(key, std::move(sizes));
}

void AddSymbols(const Dimension& dimension, std::set<std::string>& names) {
  if (!dimension.is_symbolic()) return;
  const Polynomial form = dimension.form();
  for (const Polynomial::Term& term : form.terms()) {
    names.insert(term.symbols.begin(), term.symbols.end());
  }
}

void AddSymbols(const Shape& shape, std::set<std::string>& names) {
  for (const Dimension& d : shape.dimensions()) AddSymbols(d, names);
  for (const Shape& element : shape.elements()) AddSymbols(element, names);
}

}  // namespace

std::set<std::string> SymbolsOf(const Module& module) {
  std::set<std::string> names;
  for (const auto& computation : module.computations()) {
    for (Instruction* instruction : computation->instructions()) {
      AddSymbols(instruction->shape(), names);
      for (const SymbolicNumber& number : instruction->attributes().Symbolic()) {
        AddSymbols(number.value, names);
      }
    }
  }
  return names;
}

Result<SymbolSizes> MatchSymbols(const Module& module, std::span<const Shape> arguments) {
  auto parameters = module.entry()->parameters();
  if (parameters.size() != arguments.size()) {
    return InvalidArgument("there are ", arguments.size(), " arguments; expected ",
                           parameters.size());
  }
  std::vector<Equation> open;
  for (size_t i = 0; i < arguments.size(); ++i) {
    KILN_RETURN_IF_ERROR(
        Match(static_cast<int64_t>(i), parameters[i]->shape(), arguments[i], open));
  }
  SymbolSizes sizes;
  // Each round substitutes the known sizes in the remaining equations.
  for (size_t before = open.size() + 1; !open.empty() && open.size() < before;) {
    before = open.size();
    std::vector<Equation> left;
    for (Equation& equation : open) {
      KILN_ASSIGN_OR_RETURN(bool done, Solve(equation, sizes));
      if (!done) left.push_back(std::move(equation));
    }
    open = std::move(left);
  }
  if (!open.empty()) {
    const Equation& e = open.front();
    return Mismatch(e.parameter, e.wanted, e.given, ": ", e.form(), " = ", e.size(),
                    " is not solved for its symbols; another dimension must tell all but one, "
                    "which is multiplied by a number only");
  }
  return sizes;
}

Result<std::unique_ptr<Module>> Specialise(const Module& module, const SymbolSizes& sizes) {
  std::unordered_map<const Instruction*, Instruction*> mapping;
  std::unique_ptr<Module> result = module.Clone(&mapping);
  std::unordered_map<const Instruction*, const Instruction*> original;
  for (const auto& [from, to] : mapping) original.emplace(to, from);
  for (const auto& computation : result->computations()) {
    for (Instruction* instruction : computation->instructions()) {
      Shape shape = instruction->shape();
      Status status = Substitute(shape, sizes);
      if (!status.ok()) {
        return status.WithContext(Cat("instruction '", instruction->name(), "'"));
      }
      instruction->set_shape(std::move(shape));
      if (instruction->opcode() == Opcode::kSlice) {
        SubstituteSlice(*instruction, original.at(instruction->operand(0))->shape());
      } else if (instruction->opcode() == Opcode::kDynamicSlice) {
        SubstituteSizes(*instruction, Attr::kDynamicSliceSizes);
      } else if (instruction->opcode() == Opcode::kGather) {
        SubstituteSizes(*instruction, Attr::kSliceSizes);
      }
      if (!instruction->attributes().Symbolic().empty()) {
        status = SubstituteNumbers(*instruction, sizes);
        if (!status.ok()) {
          return status.WithContext(Cat("instruction '", instruction->name(), "'"));
        }
      }
    }
  }
  // The check infers every shape from the operands' new ones.
  KILN_RETURN_IF_ERROR(CheckModule(*result, nullptr));
  return result;
}

}  // namespace kiln::ir
