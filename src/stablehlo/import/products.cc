#include "stablehlo/import/products.h"

#include <algorithm>

#include "stablehlo/import/quantised.h"

namespace kiln::stablehlo {
namespace {

using ir::Instruction;

bool Has(const Ints& list, int64_t value) { return std::ranges::find(list, value) != list.end(); }

Result<Values> Dot(Op& op) {
  KILN_ASSIGN_OR_RETURN(const DotDimensions d, DotDimensionsOf(op));
  Product product;
  product.make = [&](Instruction* lhs, Instruction* rhs, ElementType type) {
    return Result<Instruction*>(DotOf(op.b, lhs, rhs, d, type));
  };
  const Shape &lhs = op.shape(0), &rhs = op.shape(1);
  product.terms = 1;
  for (int64_t k = 0; k < lhs.rank(); ++k) {
    if (Has(d.lhs_contracting, k)) product.terms *= lhs.dim(k);
  }
  // The batch, the rest of lhs and the rest of rhs.
  product.result_dimension = [&](int64_t axis) -> std::optional<int64_t> {
    if (axis >= rhs.rank() || Has(d.rhs_contracting, axis)) return std::nullopt;
    const auto batch = std::ranges::find(d.rhs_batch, axis);
    if (batch != d.rhs_batch.end()) return batch - d.rhs_batch.begin();
    int64_t place = lhs.rank() - std::ssize(d.lhs_contracting);
    for (int64_t k = 0; k < axis; ++k) {
      place += Has(d.rhs_contracting, k) || Has(d.rhs_batch, k) ? 0 : 1;
    }
    return place;
  };
  return LowerProduct(op, product);
}

// An operand of einsum, with the letter of each dimension. The dimensions of "..." have numbers
// above those of letters, counted from the last dimension.
struct Lettered {
  Instruction* x = nullptr;
  Ints letters;
};
constexpr int64_t kEllipsis = 1000;

Status BadConfig(std::string_view config) {
  return InvalidArgument("einsum_config is \"", config, "\"");
}

// The letters of one operand, or of the result where rank is -1, of `hidden` dimensions in "...".
Result<Ints> LettersOf(std::string_view config, std::string_view text, int64_t rank,
                       int64_t hidden) {
  Ints letters;
  for (size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if (c == ' ') continue;
    if (text.substr(i).starts_with("...")) {
      const auto named = static_cast<int64_t>(std::ranges::count_if(
          text, [](char x) { return (x >= 'a' && x <= 'z') || (x >= 'A' && x <= 'Z'); }));
      const int64_t count = rank < 0 ? hidden : rank - named;
      for (int64_t k = count; k-- > 0;) letters.push_back(kEllipsis + k);
      i += 2;
    } else if ((c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z')) {
      letters.push_back(c);
    } else {
      return BadConfig(config);
    }
  }
  if (rank >= 0 && std::ssize(letters) != rank) {
    return InvalidArgument("einsum_config is \"", config, "\", where \"", text, "\" is for ", rank,
                           " dimensions");
  }
  return letters;
}

// Takes the diagonal of dimensions with one letter, and the sum along dimensions whose letter is
// not in `kept`.
void Simplify(Builder& b, Lettered& operand, const Ints& kept) {
  for (size_t j = 1; j < operand.letters.size();) {
    const auto i = static_cast<size_t>(std::ranges::find(operand.letters, operand.letters[j]) -
                                       operand.letters.begin());
    if (i == j || !operand.x) {
      ++j;
      continue;
    }
    const Shape& shape = operand.x->shape();
    const Shape index(ElementType::kS32, shape.dimensions());
    Instruction* same = b.Compare(
        Direction::kEq,
        b.Add(Opcode::kIota, {}, {{Attr::kIotaDimension, static_cast<int64_t>(i)}}, index),
        b.Add(Opcode::kIota, {}, {{Attr::kIotaDimension, static_cast<int64_t>(j)}}, index));
    Instruction* diagonal = b.Select(same, operand.x, b.Number(shape, 0));
    operand.x = b.Reduce(Opcode::kAdd, diagonal, 0, {static_cast<int64_t>(j)});
    operand.letters.erase(operand.letters.begin() + static_cast<std::ptrdiff_t>(j));
  }
  Ints summed, left;
  for (size_t d = 0; d < operand.letters.size(); ++d) {
    if (Has(kept, operand.letters[d])) {
      left.push_back(operand.letters[d]);
    } else {
      summed.push_back(static_cast<int64_t>(d));
    }
  }
  if (summed.empty()) return;
  operand.x = b.Reduce(Opcode::kAdd, operand.x, 0, std::move(summed));
  operand.letters = std::move(left);
}

Result<Values> Einsum(Op& op) {
  KILN_ASSIGN_OR_RETURN(std::string config, op.Word("einsum_config"));
  const size_t arrow = config.find("->");
  if (arrow == std::string::npos) return BadConfig(config);
  const std::string_view inputs = std::string_view(config).substr(0, arrow);
  const std::string_view output = std::string_view(config).substr(arrow + 2);
  const std::vector<std::string_view> texts = Split(inputs, ',');
  if (texts.size() != op.operands.size() && !(texts.empty() && op.operands.size() == 1)) {
    return BadConfig(config);
  }
  std::vector<Lettered> operands;
  int64_t hidden = 0;
  for (size_t i = 0; i < op.operands.size(); ++i) {
    const std::string_view text = texts.empty() ? std::string_view() : texts[i];
    KILN_ASSIGN_OR_RETURN(Ints letters, LettersOf(config, text, op.shape(i).rank(), 0));
    const auto of_dots = std::ranges::count_if(letters, [](int64_t x) { return x >= kEllipsis; });
    hidden = std::max<int64_t>(hidden, of_dots);
    operands.push_back({op.operand(i), std::move(letters)});
  }
  KILN_ASSIGN_OR_RETURN(Ints result, LettersOf(config, output, -1, hidden));
  for (size_t k = 0; k < result.size(); ++k) {
    bool known = std::ranges::count(result, result[k]) == 1, found = false;
    for (const Lettered& operand : operands) found |= Has(operand.letters, result[k]);
    if (!known || !found) return BadConfig(config);
  }
  for (size_t i = 0; i < operands.size(); ++i) {
    Ints kept = result;
    for (size_t k = 0; k < operands.size(); ++k) {
      if (k != i) kept.insert(kept.end(), operands[k].letters.begin(), operands[k].letters.end());
    }
    Simplify(op.b, operands[i], kept);
  }
  KILN_RETURN_IF_ERROR(op.b.status());
  KILN_ASSIGN_OR_RETURN(ElementType type, op.ResultElement(0));
  Lettered all = operands[0];
  if (operands.size() == 2) {
    const Lettered &lhs = operands[0], &rhs = operands[1];
    DotDimensions d;
    Ints batch, free;
    for (size_t i = 0; i < lhs.letters.size(); ++i) {
      const int64_t letter = lhs.letters[i];
      if (!Has(rhs.letters, letter)) {
        free.push_back(letter);
        continue;
      }
      const int64_t other = std::ranges::find(rhs.letters, letter) - rhs.letters.begin();
      const bool is_batch = Has(result, letter);
      (is_batch ? d.lhs_batch : d.lhs_contracting).push_back(static_cast<int64_t>(i));
      (is_batch ? d.rhs_batch : d.rhs_contracting).push_back(other);
      if (is_batch) batch.push_back(letter);
    }
    for (int64_t letter : rhs.letters) {
      if (!Has(lhs.letters, letter)) free.push_back(letter);
    }
    all.x = DotOf(op.b, lhs.x, rhs.x, d, type);
    all.letters = std::move(batch);
    all.letters.insert(all.letters.end(), free.begin(), free.end());
  }
  Ints permutation;
  for (int64_t letter : result) {
    permutation.push_back(std::ranges::find(all.letters, letter) - all.letters.begin());
  }
  return op.One(op.b.Convert(op.b.Transpose(all.x, std::move(permutation)), type));
}

// Ones where index i of the ragged dimension belongs to group g, of the shape [groups, lhs...].
Instruction* GroupsOf(Op& op, Instruction* lhs, int64_t dimension) {
  Builder& b = op.b;
  const Shape& sizes = op.shape(2);
  const Shape square(sizes.type(), {sizes.dim(0), sizes.dim(0)});
  auto iota = [&](const Shape& shape, int64_t d) {
    return b.Add(Opcode::kIota, {}, {{Attr::kIotaDimension, d}}, shape);
  };
  // Where groups end: the sums of the sizes up to there.
  Instruction* before = b.Compare(Direction::kLe, iota(square, 1), iota(square, 0));
  Instruction* all = b.SpreadAlong(square, 1, op.operand(2));
  Instruction* ends = b.Reduce(Opcode::kAdd, b.Select(before, all, b.Number(square, 0)), 0, {1});
  Instruction* starts = b.Add(Opcode::kSubtract, {ends, op.operand(2)});
  std::vector<Dimension> dimensions = lhs->shape().dimensions();
  dimensions.insert(dimensions.begin(), sizes.dimension(0));
  const Shape whole(sizes.type(), dimensions);
  Instruction* place = iota(whole, dimension + 1);
  return b.Add(Opcode::kAnd, {b.Compare(Direction::kGe, place, b.SpreadAlong(whole, 0, starts)),
                              b.Compare(Direction::kLt, place, b.SpreadAlong(whole, 0, ends))});
}

// Groups of rows of lhs, or of contracted elements, each with its own part of rhs, or of the
// result. Each group becomes an array of its own, with zeros for elements of others.
Result<Values> RaggedDot(Op& op) {
  KILN_ASSIGN_OR_RETURN(const mlir::Attribute* record, op.Record("ragged_dot_dimension_numbers"));
  DotDimensions d;
  KILN_ASSIGN_OR_RETURN(d.lhs_batch, IntsField(*record, "lhs_batching_dimensions"));
  KILN_ASSIGN_OR_RETURN(d.rhs_batch, IntsField(*record, "rhs_batching_dimensions"));
  KILN_ASSIGN_OR_RETURN(d.lhs_contracting, IntsField(*record, "lhs_contracting_dimensions"));
  KILN_ASSIGN_OR_RETURN(d.rhs_contracting, IntsField(*record, "rhs_contracting_dimensions"));
  KILN_ASSIGN_OR_RETURN(Ints ragged, IntsField(*record, "lhs_ragged_dimensions"));
  KILN_ASSIGN_OR_RETURN(Ints group, IntsField(*record, "rhs_group_dimensions"));
  KILN_ASSIGN_OR_RETURN(ElementType type, op.ResultElement(0));
  const Shape &lhs = op.shape(0), &sizes = op.shape(2);
  if (ragged.size() != 1 || ragged[0] < 0 || ragged[0] >= lhs.rank() || group.size() > 1) {
    return InvalidArgument("expected one ragged dimension, and at most one of groups");
  }
  // Where the batch is ragged groups do not matter.
  if (Has(d.lhs_batch, ragged[0])) {
    return op.One(DotOf(op.b, op.operand(0), op.operand(1), d, type));
  }
  if (sizes.rank() != 1 || !IsInteger(sizes.type()) || !sizes.is_static() || !lhs.is_static()) {
    return Unimplemented("sizes of groups of the shape ", sizes, " are not implemented");
  }
  const bool contracting = Has(d.lhs_contracting, ragged[0]);
  if (contracting ? !group.empty() : group.empty()) {
    return InvalidArgument("the dimension of groups does not fit the ragged one");
  }
  Instruction* mask = GroupsOf(op, op.operand(0), ragged[0]);
  KILN_RETURN_IF_ERROR(op.b.status());
  const Shape whole(lhs.type(), mask->shape().dimensions());
  Ints dimensions;
  for (int64_t k = 0; k < lhs.rank(); ++k) dimensions.push_back(k + 1);
  Instruction* repeated = op.b.BroadcastInDim(op.operand(0), whole.dimensions(), dimensions);
  Instruction* groups = op.b.Select(mask, repeated, op.b.Number(whole, 0));
  for (int64_t& k : d.lhs_batch) ++k;
  for (int64_t& k : d.lhs_contracting) ++k;
  if (!contracting) {
    d.lhs_contracting.push_back(0);
    d.rhs_contracting.push_back(group[0]);
    return op.One(DotOf(op.b, groups, op.operand(1), d, type));
  }
  Instruction* product = DotOf(op.b, groups, op.operand(1), d, type);
  KILN_RETURN_IF_ERROR(op.b.status());
  // The groups stand behind the batch, and are wanted before it.
  const auto at = std::ssize(d.lhs_batch);
  Ints permutation = {at};
  for (int64_t k = 0; k < product->shape().rank(); ++k) {
    if (k != at) permutation.push_back(k);
  }
  return op.One(op.b.Transpose(product, std::move(permutation)));
}

}  // namespace

Instruction* ProductOf(Builder& b, Opcode opcode, Instruction* lhs, Instruction* rhs,
                       Attributes attributes, ElementType type) {
  if (!lhs || !rhs) return nullptr;
  // Factors of different types are converted to the type of the product. So are integers and truth
  // values with a product of another kind, be it signed or not: their sums may exceed their type.
  const ElementType left = lhs->shape().type();
  const bool widened = !IsFloat(left) && !IsComplex(left) && CategoryOf(left) != CategoryOf(type);
  if (left != rhs->shape().type() || widened) {
    lhs = b.Convert(lhs, type);
    rhs = b.Convert(rhs, type);
    if (!lhs || !rhs) return nullptr;
  }
  const ElementType factors = lhs->shape().type();
  const bool wider = CategoryOf(factors) == CategoryOf(type) && BitWidth(type) > BitWidth(factors);
  // Sums of a narrower type, or of another kind, are converted at the end.
  const Shape declared = Shape::Scalar(wider ? type : factors);
  return b.Convert(b.Add(opcode, {lhs, rhs}, std::move(attributes), declared), type);
}

Instruction* DotOf(Builder& b, Instruction* lhs, Instruction* rhs, const DotDimensions& d,
                   ElementType type) {
  Attributes attributes;
  auto set = [&](Attr key, const Ints& dimensions) {
    if (!dimensions.empty()) attributes.Set(key, dimensions);
  };
  set(Attr::kLhsBatchDims, d.lhs_batch);
  set(Attr::kRhsBatchDims, d.rhs_batch);
  set(Attr::kLhsContractingDims, d.lhs_contracting);
  set(Attr::kRhsContractingDims, d.rhs_contracting);
  return ProductOf(b, Opcode::kDot, lhs, rhs, std::move(attributes), type);
}

Result<DotDimensions> DotDimensionsOf(const Op& op) {
  DotDimensions d;
  if (op.operation.name == "stablehlo.dot") {
    if (op.shape(0).rank() < 1 || op.shape(1).rank() < 1) {
      return InvalidArgument("found ", op.shape(0), " and ", op.shape(1),
                             "; expected vectors or matrices");
    }
    d.lhs_contracting = {op.shape(0).rank() - 1};
    d.rhs_contracting = {0};
    return d;
  }
  KILN_ASSIGN_OR_RETURN(const mlir::Attribute* record, op.Record("dot_dimension_numbers"));
  KILN_ASSIGN_OR_RETURN(d.lhs_batch, IntsField(*record, "lhs_batching_dimensions"));
  KILN_ASSIGN_OR_RETURN(d.rhs_batch, IntsField(*record, "rhs_batching_dimensions"));
  KILN_ASSIGN_OR_RETURN(d.lhs_contracting, IntsField(*record, "lhs_contracting_dimensions"));
  KILN_ASSIGN_OR_RETURN(d.rhs_contracting, IntsField(*record, "rhs_contracting_dimensions"));
  return d;
}

static constexpr Row kRows[] = {
    {"stablehlo.dot", Dot, 2, 1, 0, Quantised::kOwn},
    {"stablehlo.dot_general", Dot, 2, 1, 0, Quantised::kOwn},
    {"stablehlo.einsum", Einsum, 2, 1},
    {"stablehlo.unary_einsum", Einsum, 1, 1},
    {"chlo.ragged_dot", RaggedDot, 3, 1},
};

std::span<const Row> ProductRows() { return kRows; }

}  // namespace kiln::stablehlo
