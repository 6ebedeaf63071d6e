#include "ir/specialise.h"

#include "ir/verifier.h"

namespace kiln::ir {
namespace {

using Sizes = std::map<std::string, int64_t>;

Status Match(int64_t parameter, const Shape& wanted, const Shape& given, Sizes& sizes) {
  auto fail = [&](const auto&... reason) {
    return InvalidArgument("argument ", parameter, " has shape ", given, "; expected ", wanted,
                           reason...);
  };
  bool alike = wanted.is_tuple() == given.is_tuple() && wanted.is_token() == given.is_token() &&
               wanted.type() == given.type() && wanted.rank() == given.rank() &&
               wanted.elements().size() == given.elements().size();
  if (!alike) return fail();
  for (int64_t i = 0; i < wanted.rank(); ++i) {
    const Dimension& to = wanted.dimension(i);
    const Dimension& from = given.dimension(i);
    if (to.is_symbol()) {
      if (!from.is_constant()) return fail(": dimension ", i, " must be a number");
      auto [it, fresh] = sizes.try_emplace(std::string(to.symbol()), from.size());
      if (!fresh && it->second != from.size()) {
        return fail(", where ", to, " is ", it->second, " already");
      }
    } else if (to.is_bounded()) {
      if (from.is_symbol() || from.size() > to.size()) return fail();
    } else if (from != to) {
      return fail();
    }
  }
  for (size_t i = 0; i < wanted.elements().size(); ++i) {
    KILN_RETURN_IF_ERROR(Match(parameter, wanted.elements()[i], given.elements()[i], sizes));
  }
  return OkStatus();
}

Status Substitute(Shape& shape, const Sizes& sizes) {
  for (int64_t i = 0; i < shape.rank(); ++i) {
    if (!shape.dimension(i).is_symbol()) continue;
    auto size = sizes.find(std::string(shape.dimension(i).symbol()));
    if (size == sizes.end()) {
      return InvalidArgument("symbol ", shape.dimension(i), " has no size");
    }
    shape.set_dimension(i, size->second);
  }
  for (Shape& element : shape.mutable_elements()) {
    KILN_RETURN_IF_ERROR(Substitute(element, sizes));
  }
  return ValidateShape(shape);
}

// A slice takes the whole of a symbol as [0:-1]; see InferSlice.
void SubstituteSlice(Instruction& slice, const Shape& symbolic_operand) {
  std::vector<SliceDimension> slices = slice.attributes().Slices(Attr::kSlice);
  const Shape& operand = slice.operand(0)->shape();
  for (size_t i = 0; i < slices.size(); ++i) {
    int64_t dimension = static_cast<int64_t>(i);
    if (symbolic_operand.dimension(dimension).is_symbol()) {
      slices[i].limit = operand.dim(dimension);
    }
  }
  slice.mutable_attributes().Set(Attr::kSlice, std::move(slices));
}

// A dynamic slice or a gather likewise takes the whole of a symbol as size -1.
void SubstituteSizes(Instruction& instruction, Attr key) {
  Ints sizes = instruction.attributes().IntsOf(key);
  for (size_t i = 0; i < sizes.size(); ++i) {
    if (sizes[i] < 0) sizes[i] = instruction.operand(0)->shape().dim(static_cast<int64_t>(i));
  }
  instruction.mutable_attributes().Set(key, std::move(sizes));
}

}  // namespace

Result<Sizes> MatchSymbols(const Module& module, std::span<const Shape> arguments) {
  auto parameters = module.entry()->parameters();
  if (parameters.size() != arguments.size()) {
    return InvalidArgument("there are ", arguments.size(), " arguments; expected ",
                           parameters.size());
  }
  Sizes sizes;
  for (size_t i = 0; i < arguments.size(); ++i) {
    KILN_RETURN_IF_ERROR(
        Match(static_cast<int64_t>(i), parameters[i]->shape(), arguments[i], sizes));
  }
  return sizes;
}

Result<std::unique_ptr<Module>> Specialise(const Module& module, const Sizes& sizes) {
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
    }
  }
  // The check infers every shape from the operands' new ones.
  KILN_RETURN_IF_ERROR(CheckModule(*result, nullptr));
  return result;
}

}  // namespace kiln::ir
