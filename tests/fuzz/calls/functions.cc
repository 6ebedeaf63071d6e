#include "calls/functions.h"

#include <type_traits>
#include <unordered_map>
#include <utility>

#include "base/strings.h"
#include "calls/callers.h"
#include "kiln/kiln.h"

namespace kiln::fuzz {
namespace {

template <typename T>
T As(const Argument& argument) {
  if constexpr (std::is_pointer_v<T>) {
    return static_cast<T>(const_cast<void*>(argument.pointer));
  } else if constexpr (std::is_floating_point_v<T>) {
    return static_cast<T>(argument.real);
  } else {
    static_assert(std::is_integral_v<T>, "arguments of this type need a generator");
    return static_cast<T>(argument.number);
  }
}

template <typename... P, size_t... I>
uint64_t Apply(kiln_value (*function)(P...), const Argument* arguments, std::index_sequence<I...>) {
  return function(As<P>(arguments[I])...);
}

template <auto function>
struct Builder;
template <typename... P, kiln_value (*function)(P...)>
struct Builder<function> {
  static uint64_t Call(const Argument* arguments) {
    return Apply(function, arguments, std::index_sequence_for<P...>());
  }
};

// "(kiln_graph* graph, const int64_t* dims)"; builder functions take no functions.
std::vector<Parameter> ParametersOf(std::string_view signature) {
  std::vector<Parameter> parameters;
  for (std::string_view piece : Split(signature.substr(1, signature.size() - 2), ',')) {
    piece = Trim(piece);
    const size_t space = piece.rfind(' ');
    parameters.push_back(
        {std::string(piece.substr(0, space)), std::string(piece.substr(space + 1))});
  }
  return parameters;
}

// One that has no Call_NAME does not link.
#define KILN_FUZZ_CALLED(name, parameters) {#name, {}, nullptr, &Call_##name},
#define KILN_FUZZ_BUILT(name, parameters) \
  {#name, ParametersOf(#parameters), &Builder<&name>::Call, nullptr},
#define KILN_FUZZ_kInit KILN_FUZZ_CALLED
#define KILN_FUZZ_kCreate KILN_FUZZ_CALLED
#define KILN_FUZZ_kRetain KILN_FUZZ_CALLED
#define KILN_FUZZ_kRelease KILN_FUZZ_CALLED
#define KILN_FUZZ_kQuery KILN_FUZZ_CALLED
#define KILN_FUZZ_kUpdate KILN_FUZZ_CALLED
#define KILN_FUZZ_kRun KILN_FUZZ_CALLED
#define KILN_FUZZ_kWrite KILN_FUZZ_CALLED
#define KILN_FUZZ_kBuild KILN_FUZZ_BUILT

}  // namespace

const std::vector<Function>& Functions() {
  static const std::vector<Function>* functions = new std::vector<Function>{
#define KILN_FUNCTION(name, returns, parameters, role, hands_over, threads, since) \
  KILN_FUZZ_##role(name, parameters)
#include "capi/api.def"
#include "capi/builders.def"
#undef KILN_FUNCTION
  };
  return *functions;
}

size_t FunctionByName(std::string_view name) {
  static const auto* places = [] {
    auto* made = new std::unordered_map<std::string_view, size_t>;
    for (size_t i = 0; i < Functions().size(); ++i) made->emplace(Functions()[i].name, i);
    return made;
  }();
  return places->at(name);
}

}  // namespace kiln::fuzz
