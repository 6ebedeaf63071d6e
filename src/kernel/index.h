// Index expressions: where in a buffer an iteration of a kernel reads or writes.
//
// An Index is  constant + sum of coefficient * atom,  an atom being an iteration variable, a floor
// division or a remainder of another index by a positive constant, or a value that the kernel
// computes. Every operation simplifies by the variables' extents, so that the index of a chain of
// reshapes, transposes and slices ends as short as it can:
//   (a*c + b) floordiv c => a               where 0 <= b < c
//   (a*c + b) mod c      => b               where 0 <= b < c
//   c * (e floordiv c) + e mod c => e
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/id.h"

namespace kiln::kernel {

class Index;
struct Variable;
using VariableId = Id<Variable>;  // of Kernel::variables
struct Node;
using NodeId = Id<Node>;  // of Stage::nodes, or of Combiner::nodes

struct Atom {
  enum class Kind : uint8_t { kVariable, kDiv, kMod, kValue };
  Kind kind = Kind::kVariable;
  VariableId variable;                 // of kVariable
  NodeId node;                         // of kValue
  int64_t divisor = 0;                 // of kDiv, kMod
  std::shared_ptr<const Index> inner;  // of kDiv, kMod; of kValue: on whose variables it depends
  int64_t low = 0, high = 0;           // inclusive range of the atom's value
  bool operator==(const Atom& other) const;
};

class Index {
 public:
  struct Term {
    int64_t coefficient;
    Atom atom;
    bool operator==(const Term&) const = default;
  };

  Index() = default;
  Index(int64_t constant) : constant_(constant) {}  // NOLINT: a number is an index
  // An iteration variable, counting 0 ... extent-1. A variable of extent 1 is the constant 0.
  static Index Variable(VariableId id, int64_t extent);
  // The value of a node, known to lie in [low, high], which depends on the variables that `depends`
  // has.
  static Index Value(NodeId id, int64_t low, int64_t high, Index depends);
  static Index OfTerm(int64_t coefficient, Atom atom);

  int64_t constant() const { return constant_; }
  const std::vector<Term>& terms() const { return terms_; }
  bool is_constant() const { return terms_.empty(); }
  // Inclusive bounds of its values.
  int64_t low() const;
  int64_t high() const;

  friend Index operator+(const Index& a, const Index& b);
  friend Index operator-(const Index& a, const Index& b) { return a + b * -1; }
  friend Index operator*(const Index& a, int64_t factor);
  Index FloorDiv(int64_t divisor) const;
  Index Mod(int64_t divisor) const;
  bool operator==(const Index&) const = default;
  // Adds other * factor in place.
  void AddMultiple(const Index& other, int64_t factor);

  // The stride of a variable in the index; nothing if it is not constant (the variable is inside a
  // division, a remainder or a value).
  std::optional<int64_t> StrideOf(VariableId variable) const;
  bool DependsOn(VariableId variable) const;
  // The index with each variable replaced by its own among the replacements.
  Index Substitute(const IdVector<VariableId, Index>& replacements) const;
  // Its value for these variables; no kValue atom may be left.
  int64_t Evaluate(const IdVector<VariableId, int64_t>& variables) const;
  // "4 + 10*d0 + d1 floordiv 3".
  std::string ToString() const;

 private:
  void Add(int64_t coefficient, const Atom& atom);
  void Recombine();
  int64_t constant_ = 0;
  std::vector<Term> terms_;
};

// Row-major: the offset of an index vector, and the index vector of an offset.
Index Linearise(std::span<const Index> indices, std::span<const int64_t> strides);
std::vector<Index> Delinearise(const Index& offset, std::span<const int64_t> dims);
// The same element's indices in an array of as many elements in the same order. Dimensions that the
// two arrays share keep their indices.
std::vector<Index> Reshaped(std::span<const Index> indices, std::span<const int64_t> from,
                            std::span<const int64_t> to);

}  // namespace kiln::kernel
