// Type legalisation: replaces some types of values by others, except in the entry's parameters and
// results.
//
// A leaf (an array, or a token, wherever it is in a tuple) that a subclass maps becomes a leaf of
// another type, or a tuple of several. Structural ops (tuples, loops, conditionals) follow by their
// shapes, computations of reducers and the like take the parts one by one, and all other ops are
// the subclass's.
#pragma once

#include <unordered_map>

#include "passes/expand/builder.h"
#include "passes/pass.h"

namespace kiln::passes::expand {

class TypeLegalisation {
 public:
  explicit TypeLegalisation(ir::Module& module) : module_(module) {}
  virtual ~TypeLegalisation() = default;
  TypeLegalisation(const TypeLegalisation&) = delete;
  TypeLegalisation& operator=(const TypeLegalisation&) = delete;

  // Whether anything was mapped.
  Result<bool> Run(const PassContext& context);

 protected:
  // The first changes of the module, if anything is mapped.
  virtual Status Prepare() { return OkStatus(); }
  // Whether a leaf is mapped, and its new shape.
  virtual bool Maps(const Shape& leaf) const = 0;
  virtual Shape Mapped(const Shape& leaf) const = 0;
  // A leaf as it is in the entry's parameters and results, and for calls, in its new form, and
  // back.
  virtual ir::Instruction* FromMemory(Builder& b, ir::Instruction* leaf) = 0;
  virtual ir::Instruction* ToMemory(Builder& b, ir::Instruction* mapped, const Shape& leaf) = 0;
  // The legalised form of an op of shape `shape`, with legalised operands.
  virtual Result<ir::Instruction*> ValueOf(Builder& b, ir::Instruction* i, const Shape& shape) = 0;

  // The shape that a value had, if it has another one now.
  const Shape* Before(const ir::Instruction* x) const {
    auto it = shapes_.find(x);
    return it == shapes_.end() ? nullptr : &it->second;
  }
  bool HasMapped(const Shape& shape) const;
  Shape MappedAll(const Shape& shape) const;
  // An op that calls a computation of scalars (reduce, sort, scatter, ...), on the new operands.
  Result<ir::Instruction*> Folded(Builder& b, ir::Instruction* i, const Shape& shape);
  // An op that runs as a call: on operands and to a result as in memory.
  Result<ir::Instruction*> Called(Builder& b, ir::Instruction* i);

  ir::Module& module_;

 private:
  Status Expand(ir::Computation& c, const PassContext& context);
  Status ExpandParameter(ir::Computation& c, ir::Instruction* p);
  void Legalise(ir::Instruction* i, const Shape& was);
  ir::Instruction* FromMemoryAll(Builder& b, ir::Instruction* value);
  ir::Instruction* ToMemoryAll(Builder& b, ir::Instruction* value, const Shape& shape);

  std::unordered_map<const ir::Instruction*, Shape> shapes_;
};

}  // namespace kiln::passes::expand
