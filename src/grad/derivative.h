// Derivatives of values: tangents of forward mode, cotangents of reverse mode.
#pragma once

#include <string_view>
#include <vector>

#include "ir/ir.h"
#include "tensor/shape.h"

namespace kiln::grad {

// An array of the value's shape, or the derivatives of a tuple's elements. Without either it is
// zero, and costs no instruction.
struct Derivative {
  ir::Instruction* array = nullptr;
  std::vector<Derivative> elements = {};

  bool IsZero() const {
    for (const Derivative& element : elements) {
      if (!element.IsZero()) return false;
    }
    return !array;
  }
  // Of an element; zero where there is none.
  Derivative Element(size_t k) const { return k < elements.size() ? elements[k] : Derivative(); }
};

// Whether values of a type, and of a shape or a part of it, have derivatives: floats and complex
// numbers do.
inline bool IsDifferentiable(ElementType type) { return IsFloat(type) || IsComplex(type); }
inline bool IsDifferentiable(const Shape& shape) {
  if (shape.is_array()) return IsDifferentiable(shape.type());
  for (const Shape& element : shape.elements()) {
    if (IsDifferentiable(element)) return true;
  }
  return false;
}

// The key of a frontend attribute, its text for a value without a derivative (stop_gradient), and
// the one for a call that reverse mode computes again.
inline constexpr std::string_view kGradientAttribute = "kiln.gradient";
inline constexpr std::string_view kStopped = "stop";
inline constexpr std::string_view kCheckpoint = "checkpoint";
inline bool IsStopped(const ir::Instruction& x) {
  const std::string* text = x.FindFrontendAttribute(kGradientAttribute);
  return text && *text == kStopped;
}

}  // namespace kiln::grad
