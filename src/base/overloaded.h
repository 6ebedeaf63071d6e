// A visitor of a variant that is made of functions, one for each alternative.
#pragma once

namespace kiln {

//   std::visit(Overloaded{[](const A&) { … }, [](const B&) { … }}, variant)
//
// does not compile where an alternative is forgotten.
template <typename... F>
struct Overloaded : F... {
  using F::operator()...;
};

}  // namespace kiln
