#include "grad/scatter_loop.h"

#include <algorithm>

#include "grad/apply.h"
#include "ops/gather_scatter.h"

namespace kiln::grad {

using ir::Computation;
using ir::Instruction;

namespace {

constexpr ElementType kIndex = ElementType::kS64;

// The loop's state is the number of the iteration, the matrix of starts, with a row for each index
// vector and a column for each dimension of the operands, then the operands, then the updates, with
// a first dimension for the rows.
class Loop {
 public:
  Loop(Builder& b, Instruction* op)
      : b_(b),
        op_(op),
        n_(op->operand_count() / 2),
        rank_(op->operand(0)->shape().rank()),
        indices_(op->operand(n_)),
        map_(SliceMapOf(Opcode::kScatter, op->attributes(), rank_, indices_->shape().rank())) {
    const Shape& updates = op->operand(n_ + 1)->shape();
    for (int64_t d = 0; d < indices_->shape().rank(); ++d) {
      if (d == map_.index_vector_dim) continue;
      outside_.push_back(d);
      count_ *= indices_->shape().dim(d);
    }
    for (int64_t at : map_.slice) sizes_.push_back(at >= 0 ? updates.dim(at) : 1);
  }

  Instruction* Run() {
    if (count_ == 0) {
      return b_.OneOrTuple({op_->operands().begin(), op_->operands().begin() + n_});
    }
    std::vector<Instruction*> state = {b_.Scalar(kIndex, 0), Starts()};
    for (int64_t k = 0; k < n_; ++k) state.push_back(op_->operand(k));
    for (int64_t k = 0; k < n_; ++k) state.push_back(Updates(op_->operand(n_ + 1 + k)));
    Instruction* first = b_.Tuple(std::move(state));
    Instruction* last = b_.Add(Opcode::kWhile, {first}, {}, std::nullopt,
                               {Condition(first->shape()), Body(first->shape())});
    std::vector<Instruction*> results;
    for (int64_t k = 0; k < n_; ++k) results.push_back(b_.Element(last, 2 + k));
    return b_.OneOrTuple(std::move(results));
  }

 private:
  static Dimension Size(int64_t size) { return Dimension(size); }

  // x with dimensions in another order, the first ones joined to one of `count_`.
  Instruction* Rows(Instruction* x, Ints order, std::vector<Dimension> rest) {
    rest.insert(rest.begin(), Size(count_));
    return b_.Reshape(b_.Transpose(x, std::move(order)), std::move(rest));
  }

  Instruction* Starts() {
    Shape shape = indices_->shape();
    Ints order = outside_;
    const bool has_vectors = map_.index_vector_dim < shape.rank();
    if (has_vectors) order.push_back(map_.index_vector_dim);
    const int64_t components = has_vectors ? shape.dim(map_.index_vector_dim) : 1;
    Instruction* vectors = Rows(b_.Convert(indices_, kIndex), order, {Size(components)});
    shape = Shape(kIndex, {});
    for (int64_t d : outside_) shape = WithDimension(shape, indices_->shape().dimension(d));
    std::vector<Instruction*> columns;
    for (size_t d = 0; d < sizes_.size(); ++d) {
      if (map_.component[d] >= 0) {
        const int64_t c = map_.component[d];
        columns.push_back(b_.Slice(vectors, {{0, count_, 1}, {c, c + 1, 1}}));
      } else if (map_.batch[d] >= 0) {
        const auto place = std::ranges::find(outside_, map_.batch[d]) - outside_.begin();
        columns.push_back(b_.Reshape(b_.Iota(shape, place), {Size(count_), Size(1)}));
      } else {
        columns.push_back(b_.Number(Shape(kIndex, {count_, 1}), 0));
      }
    }
    if (columns.empty()) return b_.Number(Shape(kIndex, {count_, 0}), 0);
    return b_.Concatenate(std::move(columns), 1);
  }

  static Shape WithDimension(const Shape& shape, const Dimension& dimension) {
    std::vector<Dimension> dimensions = shape.dimensions();
    dimensions.push_back(dimension);
    return Shape(shape.type(), std::move(dimensions));
  }

  Instruction* Updates(Instruction* u) {
    Ints order;
    for (int64_t d : outside_) order.push_back(map_.outside[static_cast<size_t>(d)]);
    for (int64_t at : map_.slice) {
      if (at >= 0) order.push_back(at);
    }
    return Rows(u, std::move(order), {sizes_.begin(), sizes_.end()});
  }

  Computation* Condition(const Shape& state) {
    Computation* condition = b_.computation()->parent()->AddComputation("scatter_condition");
    Builder b(condition);
    Instruction* number = b.Element(b.Parameter(state), 0);
    condition->set_root(
        b.Compare(Direction::kLt, number, b.Scalar(kIndex, static_cast<double>(count_))));
    return condition;
  }

  Computation* Body(const Shape& shape) {
    Computation* body = b_.computation()->parent()->AddComputation("scatter_body");
    Builder b(body);
    Instruction* parameter = b.Parameter(shape);
    std::vector<Instruction*> state;
    for (int64_t k = 0; k < std::ssize(shape.elements()); ++k) {
      state.push_back(b.Element(parameter, k));
    }
    Instruction* number = state[0];
    Instruction* is_inside = nullptr;
    const std::vector<Instruction*> starts = StartsOf(b, state[1], number, &is_inside);
    std::vector<Instruction*> pairs;  // slices of operands, then updates
    for (int64_t k = 0; k < n_; ++k) {
      pairs.push_back(SliceAt(b, state[static_cast<size_t>(2 + k)], starts, sizes_));
    }
    for (int64_t k = 0; k < n_; ++k) {
      pairs.push_back(Row(b, state[static_cast<size_t>(2 + n_ + k)], number));
    }
    const std::vector<Instruction*> results = Apply(b, *op_->called(0), pairs);
    state[0] = b.Plus(number, b.Scalar(kIndex, 1));
    for (size_t k = 0; k < results.size(); ++k) {
      Instruction* slice = results[k];
      if (is_inside) slice = b.Select(b.Spread(slice->shape(), is_inside), slice, pairs[k]);
      std::vector<Instruction*> operands = {state[2 + k], slice};
      operands.insert(operands.end(), starts.begin(), starts.end());
      state[2 + k] = b.Add(Opcode::kDynamicUpdateSlice, std::move(operands));
    }
    body->set_root(b.Tuple(std::move(state)));
    if (!b.ok()) b_.Fail(b.status());
    return body;
  }

  // The starts in a row of the matrix, and whether the slice there is inside.
  std::vector<Instruction*> StartsOf(Builder& b, Instruction* matrix, Instruction* number,
                                     Instruction** is_inside) {
    std::vector<Instruction*> starts;
    for (size_t d = 0; d < sizes_.size(); ++d) {
      Instruction* column = b.Scalar(kIndex, static_cast<double>(d));
      Instruction* start = b.Reshape(SliceAt(b, matrix, {number, column}, {1, 1}), {});
      starts.push_back(start);
      const int64_t last = op_->operand(0)->shape().dim(static_cast<int64_t>(d)) - sizes_[d];
      Instruction* fits =
          b.And(b.Compare(Direction::kGe, start, b.Scalar(kIndex, 0)),
                b.Compare(Direction::kLe, start, b.Scalar(kIndex, static_cast<double>(last))));
      *is_inside = *is_inside ? b.And(*is_inside, fits) : fits;
    }
    return starts;
  }

  static Instruction* SliceAt(Builder& b, Instruction* x, const std::vector<Instruction*>& starts,
                              const Ints& sizes) {
    std::vector<Instruction*> operands = {x};
    operands.insert(operands.end(), starts.begin(), starts.end());
    return b.Add(Opcode::kDynamicSlice, std::move(operands), {{Attr::kDynamicSliceSizes, sizes}});
  }

  // The update of a number.
  Instruction* Row(Builder& b, Instruction* updates, Instruction* number) {
    std::vector<Instruction*> starts(sizes_.size() + 1, b.Scalar(kIndex, 0));
    starts[0] = number;
    Ints sizes = sizes_;
    sizes.insert(sizes.begin(), 1);
    return b.Reshape(SliceAt(b, updates, starts, sizes), {sizes_.begin(), sizes_.end()});
  }

  Builder& b_;
  Instruction* op_;
  const int64_t n_, rank_;
  Instruction* indices_;
  const SliceMap map_;
  Ints outside_;  // the dimensions of the indices but for the vectors'
  int64_t count_ = 1;
  Ints sizes_;  // of a slice, by the operands' dimension
};

}  // namespace

Instruction* ScatterLoop(Builder& b, Instruction* op) {
  for (const Instruction* x : op->operands()) {
    if (x->shape().is_static()) continue;
    b.Fail(Unimplemented("'", op->name(),
                         "': scatter by such a computation has no derivative with ",
                         "dimensions that are not constant"));
    return b.Zeros(op->shape());
  }
  return Loop(b, op).Run();
}

}  // namespace kiln::grad
