#include "ir/resize.h"

#include <algorithm>

#include "base/strings.h"
#include "ops/gather_scatter.h"
#include "ops/inference.h"

namespace kiln::ir {
namespace {

// The dimensions that are not constant.
std::vector<int64_t> UnknownOf(const Shape& shape) {
  std::vector<int64_t> unknown;
  for (int64_t d = 0; d < shape.rank(); ++d) {
    if (!shape.dimension(d).is_constant()) unknown.push_back(d);
  }
  return unknown;
}

// A reshape keeps the unknown sizes: in their order, or else each by its bound.
Result<Shape> Reshaped(const Shape& declared, const Shape& from, const Shape& sizes) {
  const std::vector<int64_t> to = UnknownOf(declared), of = UnknownOf(from);
  const bool in_order = std::ranges::equal(
      to, of, [&](int64_t t, int64_t o) { return declared.dimension(t) == from.dimension(o); });
  Shape shape = declared;
  for (size_t k = 0; k < to.size(); ++k) {
    if (in_order) {
      shape.set_dimension(to[k], sizes.dimension(of[k]));
      continue;
    }
    for (int64_t o : of) {
      if (from.dimension(o) != declared.dimension(to[k])) continue;
      const Dimension& now = shape.dimension(to[k]);
      if (now.is_constant() && now != sizes.dimension(o)) return SizesAreUnknown(declared);
      shape.set_dimension(to[k], sizes.dimension(o));
    }
  }
  return shape;
}

// The declared parts of the result's shape for operands with the shapes `sizes`.
Result<Shape> DeclaredShape(const Instruction& i, std::span<const Shape* const> sizes) {
  Shape shape = i.shape();
  switch (i.opcode()) {
    case Opcode::kBroadcast:
      for (size_t d = 0; d < i.dimensions().size(); ++d) {
        shape.set_dimension(i.dimensions()[d], sizes[0]->dimension(static_cast<int64_t>(d)));
      }
      break;
    case Opcode::kBitcast:
    case Opcode::kReshape: {
      KILN_ASSIGN_OR_RETURN(shape, Reshaped(shape, i.operand(0)->shape(), *sizes[0]));
      if (sizes[0]->is_static() && !shape.is_static()) return SizesAreUnknown(i.shape());
      break;
    }
    default:
      break;  // the dimensions are the operands', or only declared
  }
  return shape;
}

// Sizes that cover an unknown dimension, with its actual size.
Ints WholeSizes(Ints list, const Shape& declared, const Shape& sizes) {
  for (int64_t d = 0; d < declared.rank(); ++d) {
    int64_t& size = list[static_cast<size_t>(d)];
    if (!declared.dimension(d).is_constant() && size == declared.dim(d)) size = sizes.dim(d);
  }
  return list;
}

void SetWholeSizes(const Instruction& i, const Shape& sizes, Attributes& attributes) {
  const Attributes& a = i.attributes();
  if (i.opcode() == Opcode::kSlice) {
    std::vector<SliceDimension> slices = a.Slices(Attr::kSlice);
    for (int64_t d : UnknownOf(i.operand(0)->shape())) {
      slices[static_cast<size_t>(d)].limit = sizes.dim(d);
    }
    attributes.Set(Attr::kSlice, std::move(slices));
  } else if (i.opcode() == Opcode::kDynamicSlice || i.opcode() == Opcode::kGather) {
    const Attr key = i.opcode() == Opcode::kGather ? Attr::kSliceSizes : Attr::kDynamicSliceSizes;
    attributes.Set(key, WholeSizes(a.IntsOf(key), i.operand(0)->shape(), sizes));
  }
}

// An update along an unknown dimension is of all of it: it must not be less.
Status CheckUpdates(const Instruction& i, std::span<const Shape* const> sizes) {
  const bool scatter = i.opcode() == Opcode::kScatter;
  if (!scatter && i.opcode() != Opcode::kDynamicUpdateSlice) return OkStatus();
  const size_t update = scatter ? sizes.size() / 2 + 1 : 1;
  const Shape& operand = i.operand(0)->shape();
  Ints dims(static_cast<size_t>(operand.rank()));
  if (scatter) {
    const int64_t indices_rank = sizes[sizes.size() / 2]->rank();
    dims = SliceMapOf(i.opcode(), i.attributes(), operand.rank(), indices_rank).slice;
  } else {
    for (size_t d = 0; d < dims.size(); ++d) dims[d] = static_cast<int64_t>(d);
  }
  for (int64_t d : UnknownOf(operand)) {
    const int64_t part = dims[static_cast<size_t>(d)];
    if (part < 0 || i.operand(static_cast<int64_t>(update))->shape().dimension(part).is_constant())
      continue;
    if (sizes[update]->dimension(part) != sizes[0]->dimension(d)) {
      return InvalidArgument("dimension ", part, " of the update, ", *sizes[update],
                             ", is to be all of dimension ", d, " of ", *sizes[0]);
    }
  }
  return OkStatus();
}

}  // namespace

Status SizesAreUnknown(const Shape& declared) {
  return InvalidArgument("its operands do not tell its sizes at run time, of which ", declared,
                         " has the bounds; set-dimension-size gives a value a size");
}

bool MayBe(const Shape& sizes, const Shape& declared) {
  if (sizes.is_tuple() || declared.is_tuple()) {
    return sizes.is_tuple() && declared.is_tuple() &&
           std::ranges::equal(sizes.elements(), declared.elements(), MayBe);
  }
  if (sizes.is_token() != declared.is_token() || sizes.type() != declared.type()) return false;
  return std::ranges::equal(
      sizes.dimensions(), declared.dimensions(), [](const Dimension& d, const Dimension& to) {
        return d == to || (!d.is_symbolic() && to.is_bounded() && d.size() <= to.size());
      });
}

Result<InstructionSpec> WithOperandShapes(const Instruction& i,
                                          std::span<const Shape* const> shapes,
                                          std::span<const ProgramShape> called) {
  for (size_t o = 0; o < shapes.size(); ++o) {
    const Shape& declared = i.operand(static_cast<int64_t>(o))->shape();
    if (!MayBe(*shapes[o], declared)) {
      return InvalidArgument("operand ", o, " is ", *shapes[o], "; expected ", declared);
    }
  }
  KILN_RETURN_IF_ERROR(CheckUpdates(i, shapes));
  InstructionSpec spec = CopySpec(i, {});
  if (!shapes.empty()) SetWholeSizes(i, *shapes[0], spec.attributes);
  KILN_ASSIGN_OR_RETURN(Shape declared, DeclaredShape(i, shapes));
  KILN_ASSIGN_OR_RETURN(spec.shape,
                        kiln::InferShape({i.opcode(), shapes, spec.attributes, &declared, called}));
  if (!MayBe(*spec.shape, i.shape())) {
    return InvalidArgument("its operands make it ", *spec.shape, "; expected ", i.shape());
  }
  return spec;
}

}  // namespace kiln::ir
