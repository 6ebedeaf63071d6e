// Values inside the evaluator: tuples are built and decomposed without copying arrays.
#pragma once

#include <memory>
#include <vector>

#include "tensor/literal.h"

namespace kiln::interp {

// An array (or token), or a tuple of values. Copies share.
class Value {
 public:
  Value() = default;
  explicit Value(Literal literal);
  explicit Value(std::vector<Value> elements)
      : elements_(std::make_shared<const std::vector<Value>>(std::move(elements))) {}
  // The literal is owned, or, by Borrowed, outlives the value.
  static Value Sharing(std::shared_ptr<const Literal> literal);
  static Value Borrowed(const Literal& literal) {
    return Sharing(std::shared_ptr<const Literal>(std::shared_ptr<void>(), &literal));
  }

  const Literal& array() const { return *array_; }
  const Value& element(int64_t i) const { return (*elements_)[static_cast<size_t>(i)]; }
  // The array, if nobody else has it: it may be changed. Otherwise null.
  Literal* unshared_array() {
    const bool is_own = array_.use_count() == 1 && !array_->is_borrowed();
    return is_own ? const_cast<Literal*>(array_.get()) : nullptr;
  }
  // The value as one literal: moved if unshared, otherwise copied.
  Literal Take() &&;

 private:
  std::shared_ptr<const Literal> array_;
  std::shared_ptr<const std::vector<Value>> elements_;  // of a tuple
};

}  // namespace kiln::interp
