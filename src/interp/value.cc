#include "interp/value.h"

namespace kiln::interp {

Value::Value(Literal literal) {
  if (literal.shape().is_tuple()) {
    std::vector<Value> elements;
    for (Literal& element : literal.elements()) elements.emplace_back(std::move(element));
    *this = Value(std::move(elements));
  } else {
    array_ = std::make_shared<Literal>(std::move(literal));
  }
}

Value Value::Sharing(std::shared_ptr<const Literal> literal) {
  Value value;
  if (literal->shape().is_tuple()) {
    std::vector<Value> elements;
    for (const Literal& element : literal->elements()) {
      elements.push_back(Sharing(std::shared_ptr<const Literal>(literal, &element)));
    }
    return Value(std::move(elements));
  }
  value.array_ = std::move(literal);
  return value;
}

Literal Value::Take() && {
  if (elements_) {
    std::vector<Literal> literals;
    bool alone = elements_.use_count() == 1;
    for (const Value& element : *elements_) {
      // The vector was made non-const here, so that an unshared one may be taken apart.
      literals.push_back(alone ? std::move(const_cast<Value&>(element)).Take()
                               : Value(element).Take());
    }
    return Literal::Tuple(std::move(literals));
  }
  // Borrowed literals count no uses, and shared ones have other owners.
  if (array_.use_count() == 1) return std::move(const_cast<Literal&>(*array_));
  return *array_;
}

}  // namespace kiln::interp
