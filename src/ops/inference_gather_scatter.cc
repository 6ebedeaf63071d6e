// Ops that read or write slices at positions given by operands.
#include <algorithm>

#include "ops/gather_scatter.h"
#include "ops/inference_rules.h"

namespace kiln::rules {
namespace {

bool Contains(const Ints& list, int64_t value) {
  return std::find(list.begin(), list.end(), value) != list.end();
}

Status RequireSorted(const InferenceInput& input, Attr key) {
  if (std::ranges::is_sorted(input.attributes.IntsOf(key))) return OkStatus();
  return Error(input, "; ", InfoOf(key).name, " must be in ascending order");
}

// The operands from `first` on are integer scalars of one type, one for each dimension.
Status RequireStarts(const InferenceInput& input, size_t first) {
  int64_t rank = OperandShape(input, 0).rank();
  int64_t count = static_cast<int64_t>(input.operands.size() - first);
  if (count != rank) {
    return Error(input, "; there are ", count, " start indices; expected ", rank);
  }
  for (size_t i = first; i < input.operands.size(); ++i) {
    const Shape& start = *input.operands[i];
    if (!start.is_scalar() || !IsInteger(start.type()) ||
        start.type() != input.operands[first]->type()) {
      return Error(input, "; the start indices must be integer scalars of one type");
    }
  }
  return OkStatus();
}

// A slice of size `size` along dimension d of the operand. With symbols, only sizes invalid for
// all values fail.
Status RequireFits(const InferenceInput& input, std::string_view what, int64_t d,
                   const Dimension& size) {
  const Dimension& dimension = OperandShape(input, 0).dimension(d);
  if (size == dimension) return OkStatus();
  Dimension rest = dimension.size() - size.size();
  if (dimension.is_symbolic() || size.is_symbolic()) {
    if (dimension.is_bounded() || size.is_bounded()) {
      return Error(input, "; ", what, " of dimension ", d, " is ", size, "; expected ", dimension,
                   " or a number");
    }
    KILN_ASSIGN_OR_RETURN(rest, Symbolic(input, d, Dimension::Difference(dimension, size)));
  }
  if ((size.is_constant() && size.size() < 0) || (rest.is_constant() && rest.size() < 0)) {
    return Error(input, "; ", what, " of dimension ", d, " is ", size, "; expected 0 to ",
                 dimension);
  }
  return OkStatus();
}

// The size of a slice in an attribute; a dimension that is not constant must be covered.
Dimension SliceSize(const InferenceInput& input, Attr key, int64_t d, int64_t size) {
  const Dimension& dimension = OperandShape(input, 0).dimension(d);
  if (const Dimension* some = input.attributes.SymbolicAt(key, d)) return *some;
  return size == dimension.size() ? dimension : Dimension(size);
}

// The common checks of gather and scatter. `indices` is the array of index vectors; `rank` is the
// rank of the slices' array.
Status RequireSlices(const InferenceInput& input, const Shape& indices, int64_t rank) {
  SliceAttributes names = SliceAttributesOf(input.opcode);
  const Attributes& a = input.attributes;
  const Shape& operand = OperandShape(input, 0);
  auto name = [](Attr key) { return InfoOf(key).name; };
  if (!IsInteger(indices.type())) return Error(input, "; the indices must be integers");
  int64_t vector_dim = a.Int(Attr::kIndexVectorDim);
  if (vector_dim < 0 || vector_dim > indices.rank()) {
    return Error(input, "; index_vector_dim is ", vector_dim, "; expected 0 to ", indices.rank());
  }
  const Ints &slice = a.IntsOf(names.slice_dims), &dropped = a.IntsOf(names.dropped_dims);
  const Ints &start_map = a.IntsOf(names.start_map), &batch = a.IntsOf(names.operand_batch);
  const Ints& indices_batch = a.IntsOf(names.indices_batch);
  KILN_RETURN_IF_ERROR(RequireAxes(input, name(names.slice_dims), slice, rank));
  Ints gone = dropped;
  gone.insert(gone.end(), batch.begin(), batch.end());
  KILN_RETURN_IF_ERROR(
      RequireAxes(input, Cat(name(names.dropped_dims), " with ", name(names.operand_batch)), gone,
                  operand.rank()));
  Ints placed = start_map;
  placed.insert(placed.end(), batch.begin(), batch.end());
  KILN_RETURN_IF_ERROR(RequireAxes(input,
                                   Cat(name(names.start_map), " with ", name(names.operand_batch)),
                                   placed, operand.rank()));
  KILN_RETURN_IF_ERROR(
      RequireAxes(input, name(names.indices_batch), indices_batch, indices.rank()));
  for (Attr key : {names.slice_dims, names.dropped_dims, names.operand_batch}) {
    KILN_RETURN_IF_ERROR(RequireSorted(input, key));
  }
  if (static_cast<int64_t>(slice.size() + gone.size()) != operand.rank()) {
    return Error(input, "; ", name(names.slice_dims), " has ", slice.size(), " entries; expected ",
                 operand.rank() - static_cast<int64_t>(gone.size()),
                 ", one for each dimension of the operand that slices keep");
  }
  const Dimension vector_size =
      vector_dim < indices.rank() ? indices.dimension(vector_dim) : Dimension(1);
  if (vector_size != Dimension(static_cast<int64_t>(start_map.size()))) {
    return Error(input, "; ", name(names.start_map), " has ", start_map.size(),
                 " entries; expected ", vector_size, ", as many as an index vector");
  }
  if (batch.size() != indices_batch.size()) {
    return Error(input, "; ", name(names.operand_batch), " has ", batch.size(), " entries and ",
                 name(names.indices_batch), " ", indices_batch.size(), "; expected equally many");
  }
  for (size_t b = 0; b < batch.size(); ++b) {
    if (indices_batch[b] == vector_dim ||
        indices.dimension(indices_batch[b]) != operand.dimension(batch[b])) {
      return Error(input, "; dimension ", batch[b], " of the operand goes with dimension ",
                   indices_batch[b],
                   " of the indices; they must be of equal size, and the latter "
                   "not the index vector's");
    }
  }
  return OkStatus();
}

int64_t OutsideRank(const InferenceInput& input, const Shape& indices) {
  int64_t vector_dim = input.attributes.Int(Attr::kIndexVectorDim);
  return indices.rank() - (vector_dim < indices.rank() ? 1 : 0);
}

}  // namespace

Result<Shape> InferDynamicSlice(const InferenceInput& input) {
  KILN_RETURN_IF_ERROR(RequireTypes(input));
  KILN_RETURN_IF_ERROR(RequireStarts(input, 1));
  const Shape& operand = OperandShape(input, 0);
  const Ints& sizes = input.attributes.IntsOf(Attr::kDynamicSliceSizes);
  if (static_cast<int64_t>(sizes.size()) != operand.rank()) {
    return Error(input, "; dynamic_slice_sizes has ", sizes.size(), " entries; expected ",
                 operand.rank());
  }
  Shape result = WithoutLayout(operand);
  for (int64_t d = 0; d < operand.rank(); ++d) {
    const Dimension size = SliceSize(input, Attr::kDynamicSliceSizes, d, sizes[d]);
    KILN_RETURN_IF_ERROR(RequireFits(input, "the slice", d, size));
    result.set_dimension(d, size);
  }
  return result;
}

Result<Shape> InferDynamicUpdateSlice(const InferenceInput& input) {
  KILN_RETURN_IF_ERROR(RequireTypes(input));
  KILN_RETURN_IF_ERROR(RequireStarts(input, 2));
  const Shape &operand = OperandShape(input, 0), &update = OperandShape(input, 1);
  if (update.type() != operand.type() || update.rank() != operand.rank()) {
    return Error(input, "; operand and update must have one element type and rank");
  }
  for (int64_t d = 0; d < operand.rank(); ++d) {
    const Dimension &all = operand.dimension(d), &part = update.dimension(d);
    if (all == part) continue;
    if (part.is_bounded()) {
      return Error(input, "; dimension ", d, " of the update is ", part, "; expected ", all,
                   " or a number");
    }
    KILN_RETURN_IF_ERROR(RequireFits(input, "the update", d, part));
  }
  return WithoutLayout(operand);
}

Result<Shape> InferGather(const InferenceInput& input) {
  KILN_RETURN_IF_ERROR(RequireTypes(input));
  const Shape &operand = OperandShape(input, 0), &indices = OperandShape(input, 1);
  const Attributes& a = input.attributes;
  const Ints& offset_dims = a.IntsOf(Attr::kOffsetDims);
  int64_t rank = OutsideRank(input, indices) + static_cast<int64_t>(offset_dims.size());
  KILN_RETURN_IF_ERROR(RequireSlices(input, indices, rank));
  const Ints& sizes = a.IntsOf(Attr::kSliceSizes);
  if (static_cast<int64_t>(sizes.size()) != operand.rank()) {
    return Error(input, "; slice_sizes has ", sizes.size(), " entries; expected ", operand.rank());
  }
  for (int64_t d = 0; d < operand.rank(); ++d) {
    const Dimension size = SliceSize(input, Attr::kSliceSizes, d, sizes[d]);
    KILN_RETURN_IF_ERROR(RequireFits(input, "the slice", d, size));
    bool dropped = Contains(a.IntsOf(Attr::kCollapsedSliceDims), d) ||
                   Contains(a.IntsOf(Attr::kOperandBatchingDims), d);
    if (dropped && size != Dimension(0) && size != Dimension(1)) {
      return Error(input, "; slice_sizes of dimension ", d, " is ", size,
                   "; the slices do not keep it, so that it must be 1");
    }
  }
  SliceMap map = SliceMapOf(input.opcode, a, operand.rank(), indices.rank());
  std::vector<Dimension> dimensions(static_cast<size_t>(rank));
  for (int64_t d = 0; d < operand.rank(); ++d) {
    if (map.slice[d] < 0) continue;
    dimensions[map.slice[d]] = SliceSize(input, Attr::kSliceSizes, d, sizes[d]);
  }
  for (int64_t d = 0; d < indices.rank(); ++d) {
    if (map.outside[d] >= 0) dimensions[map.outside[d]] = indices.dimension(d);
  }
  return Shape(operand.type(), std::move(dimensions));
}

Result<Shape> InferScatter(const InferenceInput& input) {
  KILN_RETURN_IF_ERROR(RequireTypes(input));
  if (input.operands.size() % 2 == 0) {
    return Error(input, "; expected as many updates as operands, and the indices between them");
  }
  size_t n = input.operands.size() / 2;
  const Shape &operand = OperandShape(input, 0), &indices = *input.operands[n];
  const Shape& updates = *input.operands[n + 1];
  std::vector<Shape> scalars, results;
  for (size_t i = 0; i < n; ++i) {
    const Shape &x = *input.operands[i], &u = *input.operands[n + 1 + i];
    if (!x.SameDimensions(operand) || !u.SameDimensions(updates) || x.type() != u.type()) {
      return Error(input,
                   "; the operands' dimensions must be equal, the updates' too, and each "
                   "update must have its operand's element type");
    }
    scalars.push_back(Shape::Scalar(x.type()));
    results.push_back(WithoutLayout(x));
  }
  const Attributes& a = input.attributes;
  KILN_RETURN_IF_ERROR(RequireSlices(input, indices, updates.rank()));
  int64_t rank =
      OutsideRank(input, indices) + static_cast<int64_t>(a.IntsOf(Attr::kUpdateWindowDims).size());
  if (updates.rank() != rank) {
    return Error(input, "; the updates have ", updates.rank(), " dimensions; expected ", rank,
                 ", those of the slices and those of the indices");
  }
  SliceMap map = SliceMapOf(input.opcode, a, operand.rank(), indices.rank());
  for (int64_t d = 0; d < operand.rank(); ++d) {
    if (map.slice[d] < 0) continue;
    const Dimension &part = updates.dimension(map.slice[d]), &all = operand.dimension(d);
    if (part == all) continue;
    if (part.is_bounded()) {
      return Error(input, "; dimension ", map.slice[d], " of the updates is ", part, "; expected ",
                   all, " or a number");
    }
    KILN_RETURN_IF_ERROR(RequireFits(input, "the slice", d, part));
  }
  for (int64_t d = 0; d < indices.rank(); ++d) {
    if (map.outside[d] >= 0 && updates.dimension(map.outside[d]) != indices.dimension(d)) {
      return Error(input, "; dimension ", map.outside[d], " of the updates must be dimension ", d,
                   " of the indices, of size ", indices.dimension(d));
    }
  }
  KILN_RETURN_IF_ERROR(RequireReducer(input, scalars));
  if (n == 1) return std::move(results[0]);
  return Shape::Tuple(std::move(results));
}

}  // namespace kiln::rules
