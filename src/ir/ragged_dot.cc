#include "ir/ragged_dot.h"

#include <algorithm>

namespace kiln::ir {
namespace {

bool Has(const Ints& list, int64_t d) { return std::ranges::find(list, d) != list.end(); }
size_t PlaceOf(const Ints& list, int64_t d) {
  return static_cast<size_t>(std::ranges::find(list, d) - list.begin());
}
Ints Shifted(Ints list) {
  for (int64_t& d : list) ++d;
  return list;
}
Attributes DotOf(const Ints& lhs_batch, const Ints& rhs_batch, const Ints& lhs_contracting,
                 const Ints& rhs_contracting) {
  return {{Attr::kLhsBatchDims, lhs_batch},
          {Attr::kRhsBatchDims, rhs_batch},
          {Attr::kLhsContractingDims, lhs_contracting},
          {Attr::kRhsContractingDims, rhs_contracting}};
}

struct Ragged {
  Builder& b;
  Instruction *lhs, *rhs, *sizes;
  Ints lhs_batch, rhs_batch, lhs_contracting, rhs_contracting;
  int64_t ragged, group;
  Ints outer;  // dimensions of lhs of which each index has sizes of its own
  Instruction *begins = nullptr, *ends = nullptr;  // of groups

  // Batch dimensions, then those of the kind of `ragged`, before it.
  void FindOuter() {
    if (sizes->shape().rank() == 1) return;
    if (Has(lhs_batch, ragged)) {
      outer.assign(lhs_batch.begin(), lhs_batch.begin() + PlaceOf(lhs_batch, ragged));
      return;
    }
    outer = lhs_batch;
    if (Has(lhs_contracting, ragged)) {
      outer.insert(outer.end(), lhs_contracting.begin(),
                   lhs_contracting.begin() + PlaceOf(lhs_contracting, ragged));
      return;
    }
    for (int64_t d = 0; d < ragged; ++d) {
      if (!Has(lhs_batch, d) && !Has(lhs_contracting, d)) outer.push_back(d);
    }
  }

  Status Check() const {
    const Shape &l = lhs->shape(), &r = rhs->shape(), &s = sizes->shape();
    auto inside = [](const Ints& list, int64_t rank) {
      return std::ranges::all_of(list, [&](int64_t d) { return d >= 0 && d < rank; });
    };
    bool fits = l.is_array() && r.is_array() && s.is_array() && l.is_static() && r.is_static() &&
                s.is_static() && s.rank() > 0 && IsInteger(s.type()) && ragged >= 0 &&
                ragged < l.rank() && group < r.rank() && inside(lhs_batch, l.rank()) &&
                inside(lhs_contracting, l.rank()) && inside(rhs_batch, r.rank()) &&
                inside(rhs_contracting, r.rank()) && lhs_batch.size() == rhs_batch.size() &&
                lhs_contracting.size() == rhs_contracting.size();
    const bool free = !Has(lhs_batch, ragged) && !Has(lhs_contracting, ragged);
    fits &= free == (group >= 0) && !Has(rhs_batch, group) && !Has(rhs_contracting, group);
    if (fits) return OkStatus();
    return InvalidArgument("has operands ", l, ", ", r, " and ", s,
                           ", which its dimensions do not fit");
  }
  Status CheckSizes() const {
    const Shape& s = sizes->shape();
    bool fits = s.rank() == std::ssize(outer) + 1;
    for (size_t k = 0; fits && k < outer.size(); ++k) {
      fits = s.dim(static_cast<int64_t>(k)) == lhs->shape().dim(outer[k]);
    }
    if (group >= 0) fits &= rhs->shape().dim(group) == Groups();
    if (fits) return OkStatus();
    return InvalidArgument("has groups of sizes ", s, " for operands ", lhs->shape(), " and ",
                           rhs->shape());
  }

  int64_t Groups() const { return sizes->shape().dim(sizes->shape().rank() - 1); }

  void FindGroups() {
    sizes = b.Convert(sizes, ElementType::kS64);
    const Shape& shape = sizes->shape();
    std::vector<WindowDimension> window(static_cast<size_t>(shape.rank()));
    window.back().size = std::max<int64_t>(Groups(), 1);
    window.back().low = window.back().size - 1;
    ends = b.Add(Opcode::kReduceWindow, {sizes, b.Scalar(ElementType::kS64, 0)},
                 {{Attr::kWindow, window}}, std::nullopt,
                 {b.Reducer(Opcode::kAdd, ElementType::kS64)});
    begins = b.Minus(ends, sizes);
  }

  // Whether a row is in a group, for an array with the groups as its first dimension. place[d] is
  // that of dimension d of lhs.
  Instruction* InGroup(const std::vector<Dimension>& dimensions, const Ints& place) {
    const Shape shape(ElementType::kS64, dimensions);
    Ints at;
    for (int64_t d : outer) at.push_back(place[static_cast<size_t>(d)]);
    at.push_back(0);
    Instruction* row = b.Iota(shape, place[static_cast<size_t>(ragged)]);
    return b.And(b.Compare(Direction::kGe, row, b.Broadcast(begins, dimensions, at)),
                 b.Compare(Direction::kLt, row, b.Broadcast(ends, dimensions, at)));
  }

  // x once for each group, in front.
  Instruction* ForEachGroup(Instruction* x) {
    std::vector<Dimension> dimensions = x->shape().dimensions();
    Ints place(dimensions.size());
    for (size_t d = 0; d < place.size(); ++d) place[d] = static_cast<int64_t>(d) + 1;
    dimensions.insert(dimensions.begin(), Dimension(Groups()));
    return b.Broadcast(x, std::move(dimensions), std::move(place));
  }

  // The places in a dot's result, behind the groups', of the dimensions of lhs; -1 of others.
  Ints PlacesInResult() const {
    Ints place(static_cast<size_t>(lhs->shape().rank()), -1);
    int64_t next = 1;
    for (int64_t d : lhs_batch) place[static_cast<size_t>(d)] = next++;
    for (int64_t d = 0; d < lhs->shape().rank(); ++d) {
      if (!Has(lhs_batch, d) && !Has(lhs_contracting, d)) place[static_cast<size_t>(d)] = next++;
    }
    return place;
  }

  Instruction* OfFree(ElementType type) {
    Ints lhs_b = Shifted(lhs_batch), rhs_b = rhs_batch;
    lhs_b.insert(lhs_b.begin(), 0);
    rhs_b.insert(rhs_b.begin(), group);
    Instruction* dot =
        b.Add(Opcode::kDot, {ForEachGroup(lhs), rhs},
              DotOf(lhs_b, rhs_b, Shifted(lhs_contracting), rhs_contracting), Shape::Scalar(type));
    if (!dot) return nullptr;
    Instruction* in = InGroup(dot->shape().dimensions(), PlacesInResult());
    return b.Sum(b.Select(in, dot, b.Number(dot, 0)), {0});
  }

  Instruction* OfContracting(ElementType type) {
    Ints lhs_b = Shifted(lhs_batch), rhs_b = Shifted(rhs_batch);
    lhs_b.insert(lhs_b.begin(), 0);
    rhs_b.insert(rhs_b.begin(), 0);
    // Both are zero outside of a group, as 0 times infinity is none.
    Instruction *x = ForEachGroup(lhs), *y = ForEachGroup(rhs);
    if (!b.ok()) return nullptr;
    Ints place(static_cast<size_t>(lhs->shape().rank()), -1);
    for (size_t k = 0; k < lhs_batch.size(); ++k) {
      place[static_cast<size_t>(lhs_batch[k])] = rhs_batch[k] + 1;
    }
    for (size_t k = 0; k < lhs_contracting.size(); ++k) {
      place[static_cast<size_t>(lhs_contracting[k])] = rhs_contracting[k] + 1;
    }
    Ints own(place.size());
    for (size_t d = 0; d < own.size(); ++d) own[d] = static_cast<int64_t>(d) + 1;
    x = b.Select(InGroup(x->shape().dimensions(), own), x, b.Number(x, 0));
    y = b.Select(InGroup(y->shape().dimensions(), place), y, b.Number(y, 0));
    return b.Add(Opcode::kDot, {x, y},
                 DotOf(lhs_b, rhs_b, Shifted(lhs_contracting), Shifted(rhs_contracting)),
                 Shape::Scalar(type));
  }

  Instruction* OfBatch(ElementType type) {
    Instruction* dot =
        b.Add(Opcode::kDot, {lhs, rhs},
              DotOf(lhs_batch, rhs_batch, lhs_contracting, rhs_contracting), Shape::Scalar(type));
    Instruction* each = dot ? ForEachGroup(dot) : nullptr;
    if (!each) return nullptr;
    Instruction* in = InGroup(each->shape().dimensions(), PlacesInResult());
    in = b.Reduce(Opcode::kOr, in, 0.0, {0});
    return b.Select(in, dot, b.Number(dot, 0));
  }
};

}  // namespace

Instruction* RaggedDot(Builder& b, Instruction* lhs, Instruction* rhs, Instruction* sizes,
                       const Attributes& dot, int64_t ragged, int64_t group, ElementType type) {
  Ragged r{b,
           lhs,
           rhs,
           sizes,
           dot.IntsOf(Attr::kLhsBatchDims),
           dot.IntsOf(Attr::kRhsBatchDims),
           dot.IntsOf(Attr::kLhsContractingDims),
           dot.IntsOf(Attr::kRhsContractingDims),
           ragged,
           group};
  Status status = r.Check();
  if (status.ok()) {
    r.FindOuter();
    status = r.CheckSizes();
  }
  if (!status.ok()) return b.Fail(status);
  r.FindGroups();
  if (!b.ok()) return nullptr;
  Instruction* result = Has(r.lhs_batch, ragged)         ? r.OfBatch(type)
                        : Has(r.lhs_contracting, ragged) ? r.OfContracting(type)
                                                         : r.OfFree(type);
  return result;
}

}  // namespace kiln::ir
