#include "passes/simplify/starts.h"

#include <limits>

#include "passes/simplify/terms.h"

namespace kiln::passes::simplify {

using ir::Instruction;

namespace {

// The costs of ops on starts, which are scalars.
constexpr int64_t kClampCost = 4, kAddCost = 2;

bool HasIndex(ElementType type, int64_t index) {
  if (!IsInteger(type)) return false;
  int64_t bits = BitWidth(type) - (kiln::IsSigned(type) ? 1 : 0);
  return bits >= 63 || index < int64_t{1} << bits;
}

}  // namespace

std::optional<int64_t> IndexOf(const Instruction* x, int64_t element) {
  if (x->opcode() == Opcode::kBroadcast && x->operand(0)->shape().num_elements() == 1) {
    return IndexOf(x->operand(0), 0);
  }
  if (!x->IsConstant()) return std::nullopt;
  int64_t value = x->literal().AsInt(element);
  return value < 0 && !IsSigned(x) ? INT64_MAX : value;
}

Instruction* ClampedStart(Instruction* at, Instruction* start, int64_t room) {
  const Shape& shape = start->shape();
  if (!HasIndex(shape.type(), room)) return nullptr;
  return MakeShaped(
      at, shape, Opcode::kClamp,
      {SplatNumber(at, shape, 0), start, SplatNumber(at, shape, static_cast<double>(room))});
}

void StartSum::Add(Instruction* start, int64_t room) {
  if (!has_type_) type_ = start->shape().type();
  has_type_ = true;
  if (room > 0) terms_.push_back({start, room});
}

bool StartSum::Next(int64_t size) {
  // The slice's own start is clamped anyway.
  int64_t room = size - at_->shape().dim(static_cast<int64_t>(sums_.size()));
  bool as_is = number_ == 0 && terms_.size() == 1 && terms_[0].room == room;
  if (as_is) {
    terms_[0].room = -1;
  } else {
    if (!HasIndex(type_, size)) return false;
    int64_t count = static_cast<int64_t>(terms_.size());
    cost_ += count * kClampCost;
    int64_t added = count - 1 + (number_ != 0 ? 1 : 0);
    if (count > 0) cost_ += added * kAddCost;
  }
  for (const Term& term : terms_) {
    if (term.start->shape().type() != type_) return false;
  }
  sums_.push_back({std::move(terms_), number_});
  terms_.clear();
  number_ = 0;
  return true;
}

std::vector<Instruction*> StartSum::Make() {
  std::vector<Instruction*> starts;
  Shape shape = Shape::Scalar(type_);
  for (const Sum& sum : sums_) {
    Instruction* start = nullptr;
    for (const Term& term : sum.terms) {
      Instruction* clamped = term.room < 0 ? term.start : ClampedStart(at_, term.start, term.room);
      start = start ? MakeShaped(at_, shape, Opcode::kAdd, {start, clamped}) : clamped;
    }
    if (!start || sum.number != 0) {
      Instruction* number = SplatNumber(at_, shape, static_cast<double>(sum.number));
      start = start ? MakeShaped(at_, shape, Opcode::kAdd, {start, number}) : number;
    }
    starts.push_back(start);
  }
  return starts;
}

}  // namespace kiln::passes::simplify
