#include "interp/bounded.h"

#include <algorithm>
#include <cstring>
#include <optional>

#include "base/strings.h"
#include "interp/strided.h"
#include "ir/resize.h"

namespace kiln::interp {
namespace {

using ir::Instruction;

Result<ir::InstructionSpec> SpecFor(const Instruction& i, std::span<const Shape* const> sizes) {
  std::vector<ProgramShape> programs;
  for (const ir::Computation* c : i.called()) programs.push_back(c->program_shape());
  KILN_ASSIGN_OR_RETURN(ir::InstructionSpec spec, ir::WithOperandShapes(i, sizes, programs));
  if (!spec.shape->is_static()) return ir::SizesAreUnknown(i.shape());
  return spec;
}

}  // namespace

bool HasUnknownSizes(const Instruction& i) {
  return !i.shape().is_static() || std::ranges::any_of(i.operands(), [](const Instruction* o) {
    return !o->shape().is_static();
  });
}

Result<SizedInstruction> SizedInstruction::Of(const Instruction& i,
                                              std::span<const Literal* const> operands) {
  std::vector<const Shape*> sizes;
  for (const Literal* operand : operands) sizes.push_back(&operand->shape());
  Result<ir::InstructionSpec> spec = SpecFor(i, sizes);
  if (!spec.ok()) return spec.status().WithContext(Cat("'", i.name(), "' of shape ", i.shape()));
  SizedInstruction sized;
  sized.module_ = std::make_unique<ir::Module>("sized");
  ir::Computation* c = sized.module_->AddComputation("sized");
  for (size_t o = 0; o < sizes.size(); ++o) {
    const auto number = static_cast<int64_t>(o);
    spec->operands.push_back(c->Create({.opcode = Opcode::kParameter,
                                        .attributes = {{Attr::kParameterNumber, number}},
                                        .shape = *sizes[o]}));
  }
  sized.instruction_ = c->Create(*std::move(spec));
  return sized;
}

std::vector<Literal> OperandsOfEqualSizes(const Instruction& i,
                                          std::span<const Literal* const> operands) {
  // Scalars beside arrays are repeated anyway.
  const int64_t rank = i.shape().rank();
  auto is_array = [&](size_t o) { return operands[o]->shape().rank() == rank; };
  std::vector<int64_t> sizes;
  bool are_equal = true;
  for (int64_t d = 0; d < rank; ++d) {
    std::optional<int64_t> common, any;
    for (size_t o = 0; o < operands.size(); ++o) {
      if (!is_array(o)) continue;
      const int64_t size = operands[o]->shape().dim(d);
      are_equal &= !any || *any == size;
      any = size;
      if (i.operand(static_cast<int64_t>(o))->shape().dimension(d).is_constant()) continue;
      const int64_t smaller = std::min(size, common.value_or(size));
      common = smaller == 1 ? std::max(size, common.value_or(size)) : smaller;
    }
    sizes.push_back(common ? *common : any.value_or(0));
  }
  if (are_equal) return {};
  std::vector<Literal> fitted;
  for (size_t o = 0; o < operands.size(); ++o) {
    if (!is_array(o)) {
      fitted.push_back(*operands[o]);
      continue;
    }
    const Literal& x = *operands[o];
    std::vector<int64_t> strides = RowMajorStrides(x.shape().dims());
    for (int64_t d = 0; d < rank; ++d) {
      if (x.shape().dim(d) == 1) strides[static_cast<size_t>(d)] = 0;
    }
    Literal out(Shape(x.shape().type(), sizes));
    const auto width = static_cast<size_t>(ByteWidth(x.shape().type()));
    std::byte* next = out.data();
    ForEachOffset(sizes, strides, [&](int64_t at) {
      std::memcpy(next, x.data() + static_cast<size_t>(at) * width, width);
      next += width;
    });
    fitted.push_back(std::move(out));
  }
  return fitted;
}

Result<Literal> EvaluateSetDimensionSize(const Instruction& i,
                                         std::span<const Literal* const> operands) {
  const Literal& x = *operands[0];
  const int64_t along = i.dimensions()[0], size = operands[1]->AsInt(0);
  const Dimension &before = i.operand(0)->shape().dimension(along),
                  &after = i.shape().dimension(along);
  auto fail = [&](const auto&... reason) {
    return InvalidArgument("'", i.name(), "' of shape ", i.shape(), ": the size of dimension ",
                           along, " is ", size, "; expected ", reason...);
  };
  if (size < 0 || size > before.size()) return fail("0 to ", before.size());
  Shape shape(x.shape().type(), x.shape().dims());
  // A declared size has zeros behind the one that is given.
  shape.set_dimension(along, after.is_constant() ? after.size() : size);
  Literal out(shape);
  // Contiguous pieces.
  int64_t pieces = 1, width = ByteWidth(shape.type());
  for (int64_t d = 0; d < shape.rank(); ++d) {
    if (d < along) pieces *= shape.dim(d);
    if (d > along) width *= shape.dim(d);
  }
  const int64_t from = x.shape().dim(along) * width, to = shape.dim(along) * width;
  for (int64_t k = 0; k < pieces; ++k) {
    std::copy_n(x.data() + k * from, std::min(from, size * width), out.data() + k * to);
  }
  return out;
}

}  // namespace kiln::interp
