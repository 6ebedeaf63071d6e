// Values of indices, and how they go from lane to lane.
#include <numeric>

#include "codegen/cpu/nest_emitter.h"

namespace kiln::codegen {

using kernel::Atom;
using kernel::Index;
using llvm::Value;

namespace {

bool FitsInt32(const Index& index) {
  if (index.low() < INT32_MIN || index.high() > INT32_MAX) return false;
  for (const Index::Term& t : index.terms()) {
    if (t.coefficient < INT32_MIN || t.coefficient > INT32_MAX) return false;
    if (t.atom.inner && !FitsInt32(*t.atom.inner)) return false;
    if (t.atom.divisor > INT32_MAX) return false;
  }
  return true;
}

}  // namespace

// Vectors of indices are of i32 where that is wide enough: only such are divided fast.
llvm::IntegerType* NestEmitter::IndexType(const Index& index, bool vector) {
  return vector && FitsInt32(index) ? b_.getInt32Ty() : b_.getInt64Ty();
}

Value* NestEmitter::Ramp(int64_t first, int64_t factor, llvm::IntegerType* type) {
  std::vector<int64_t> numbers;
  for (int64_t l = 0; l < width_; ++l) numbers.push_back(first + factor * l);
  return Numbers(numbers, type);
}

Value* NestEmitter::Numbers(const std::vector<int64_t>& numbers, llvm::IntegerType* type) {
  std::vector<llvm::Constant*> lanes;
  for (int64_t number : numbers) {
    lanes.push_back(llvm::ConstantInt::get(type, static_cast<uint64_t>(number), true));
  }
  return llvm::ConstantVector::get(lanes);
}

Value* NestEmitter::Position(VariableId variable, int copy, llvm::IntegerType* type) {
  Index index = Index::Variable(variable, kernel_.variables[variable].extent);
  Value* value = EmitIndex({}, index, copy, width_ > 1, type);
  return width_ > 1 ? value : b_.CreateIntCast(value, type, true);
}

Value* NestEmitter::EmitIndex(StageId stage, const Index& index, int copy, bool vector,
                              llvm::IntegerType* type) {
  Value* scalar = Int(index.constant());
  Value* lanes = nullptr;
  auto add_lanes = [&](Value* v) { lanes = lanes ? b_.CreateAdd(lanes, v) : v; };
  for (const Index::Term& t : index.terms()) {
    bool term_vector = vector && TermIsVector(stage, t);
    if (t.atom.kind == Atom::Kind::kVariable) {
      // The first lane of the first copy is a scalar; the others follow at constant distances.
      const VariableId variable = t.atom.variable;
      scalar = b_.CreateAdd(scalar, b_.CreateMul(bound_[variable], Int(t.coefficient)));
      if (term_vector) {
        add_lanes(Ramp(CopyOffset(variable, copy) * t.coefficient,
                       variable == vector_variable_ ? t.coefficient : 0, type));
      }
      continue;
    }
    Value* atom = EmitAtom(stage, t.atom, copy, term_vector, term_vector ? type : b_.getInt64Ty());
    Value* factor =
        llvm::ConstantInt::get(atom->getType(), static_cast<uint64_t>(t.coefficient), true);
    Value* term = b_.CreateMul(atom, factor);
    if (term_vector) {
      add_lanes(term);
    } else {
      scalar = b_.CreateAdd(scalar, term);
    }
  }
  if (!vector) return scalar;
  Value* splat = Splat(b_, b_.CreateTrunc(scalar, type), width_);
  return lanes ? b_.CreateAdd(splat, lanes) : splat;
}

// With inner = v + k + n * (what all lanes share), where n is a multiple of g as the first lane's v
// is, the lanes' quotients and remainders by c are
//   (k mod c + l) div c,  (k mod c + l) mod c  further than the first lane's without k, where c
//   divides g;
//   0, l  further than the first lane's, where g is a multiple of what all lanes need, and divides
//   c.
std::optional<NestEmitter::AtomLanes> NestEmitter::LanesOf(StageId stage, const Atom& atom,
                                                           int copy) const {
  if (width_ == 1) return std::nullopt;
  if (atom.kind != Atom::Kind::kDiv && atom.kind != Atom::Kind::kMod) return std::nullopt;
  int64_t known = aligned_;
  bool varies = false;
  for (const Index::Term& t : atom.inner->terms()) {
    if (t.atom.kind == Atom::Kind::kVariable && t.atom.variable == vector_variable_) {
      if (t.coefficient != 1) return std::nullopt;
      varies = true;
    } else if (TermIsVector(stage, t)) {
      return std::nullopt;
    } else {
      known = std::gcd(known, t.coefficient);
    }
  }
  if (!varies) return std::nullopt;
  const int64_t c = atom.divisor, begin = CopyOffset(vector_variable_, copy);
  const bool is_div = atom.kind == Atom::Kind::kDiv;
  auto mod = [](int64_t x, int64_t m) { return (x % m + m) % m; };
  AtomLanes lanes;
  if (known % c == 0) {
    const int64_t first = mod(atom.inner->constant(), c);
    if (!is_div) lanes.first = first;
    for (int64_t l = begin; l < begin + width_; ++l) {
      lanes.further.push_back(is_div ? (first + l) / c : (first + l) % c - first);
    }
    return lanes;
  }
  const int64_t all = CopyOffset(vector_variable_, copies_ - 1) + width_;
  if (c % known != 0 || mod(atom.inner->constant(), known) + all > known) return std::nullopt;
  for (int64_t l = begin; l < begin + width_; ++l) lanes.further.push_back(is_div ? 0 : l);
  return lanes;
}

Value* NestEmitter::EmitAtom(StageId stage, const Atom& atom, int copy, bool vector,
                             llvm::IntegerType* type) {
  if (atom.kind == Atom::Kind::kVariable) return bound_[atom.variable];
  if (std::optional<AtomLanes> lanes = LanesOf(stage, atom, copy)) {
    if (!vector && lanes->first) return Int(*lanes->first);
    if (vector) {
      Value* first = EmitAtom(stage, atom, 0, false, b_.getInt64Ty());
      Value* splat = Splat(b_, b_.CreateTrunc(first, type), width_);
      return b_.CreateAdd(splat, Numbers(lanes->further, type));
    }
  }
  if (atom.kind == Atom::Kind::kValue) {
    Value* value = Use(stage, atom.node, copy, vector);
    ElementType from = kernel_.stages[stage].nodes[atom.node].type;
    llvm::Type* target = vector ? llvm::cast<llvm::Type>(llvm::FixedVectorType::get(
                                      type, static_cast<unsigned>(width_)))
                                : type;
    return b_.CreateIntCast(value, target, IsSigned(from));
  }
  Value* x = EmitIndex(stage, *atom.inner, copy, vector, type);
  auto number = [&](int64_t n) {
    return llvm::ConstantInt::get(x->getType(), static_cast<uint64_t>(n), true);
  };
  int64_t c = atom.divisor;
  bool power_of_two = (c & (c - 1)) == 0;
  bool natural = atom.inner->low() >= 0;
  auto quotient = [&] {
    if (power_of_two) return b_.CreateAShr(x, number(__builtin_ctzll(c)));
    if (natural) return b_.CreateUDiv(x, number(c));
    Value* negative = b_.CreateICmpSLT(x, number(0));
    return b_.CreateSDiv(b_.CreateSelect(negative, b_.CreateSub(x, number(c - 1)), x), number(c));
  };
  if (atom.kind == Atom::Kind::kDiv) return quotient();
  if (power_of_two) return b_.CreateAnd(x, number(c - 1));
  return b_.CreateSub(x, b_.CreateMul(quotient(), number(c)));
}

}  // namespace kiln::codegen
