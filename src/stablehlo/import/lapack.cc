// LAPACK's functions that are the library's own: eigenvalues, singular values and the like. Their
// matrices are column-major in the program, a layout in memory; the library's are row-major, with
// the same elements.
#include <algorithm>
#include <optional>

#include "stablehlo/import/calls.h"
#include "stablehlo/import/extensions.h"

namespace kiln::stablehlo {
namespace {

using mlir::Attribute;
using mlir::AttributeKind;

// Operands and results are given by letters: m for matrices, v for vectors, n for numbers, each
// behind the batch. Attributes are words "name=letters", with the letters allowed, "name=?" for
// booleans and "name=#" for integers.
struct Function {
  std::string_view name;  // as in "lapack_s<name>_ffi"
  std::string_view own;   // the library's
  std::string_view operands, results, complex_results;
  std::string_view attributes;
};
constexpr Function kFunctions[] = {
    {"gees", "gees", "m", "mmvvnn", "mmvnn", "mode=NV sort=NS"},
    {"geev", "geev", "m", "vvmmn", "vmmn", "compute_left=NV compute_right=NV"},
    {"gehrd", "gehrd", "m", "mvn", "mvn", "low=# high=#"},
    {"geqp3", "geqp3", "mv", "mvv", "mvv", ""},
    {"gesdd", "gesdd", "m", "mvmmn", "mvmmn", "mode=NSA"},
    {"gesvd", "gesvd", "m", "mvmmn", "mvmmn", "mode=NSA"},
    {"gtsv", "gtsv", "vvvm", "vvvmn", "vvvmn", ""},
    {"heevd", "syevd", "m", "mvn", "mvn", "mode=NV uplo=LU"},
    {"hetrd", "sytrd", "m", "mvvvn", "mvvvn", "uplo=LU"},
    {"ormqr", "ormqr", "mvm", "m", "m", "left=? transpose=?"},
    {"syevd", "syevd", "m", "mvn", "mvn", "mode=NV uplo=LU"},
    {"sytrd", "sytrd", "m", "mvvvn", "mvvvn", "uplo=LU"},
    {"unmqr", "ormqr", "mvm", "m", "m", "left=? transpose=?"},
};

// The name between "lapack_s" and "_ffi", or "" for other targets.
std::string_view NameOf(std::string_view target) {
  constexpr std::string_view kPrefix = "lapack_", kSuffix = "_ffi";
  if (!target.starts_with(kPrefix) || !target.ends_with(kSuffix)) return "";
  if (target.size() < kPrefix.size() + 1 + kSuffix.size()) return "";
  if (std::string_view("sdcz").find(target[kPrefix.size()]) == std::string_view::npos) return "";
  target.remove_prefix(kPrefix.size() + 1);
  target.remove_suffix(kSuffix.size());
  return target;
}

const Function* FindFunction(std::string_view target) {
  const auto* found = std::ranges::find(kFunctions, NameOf(target), &Function::name);
  return found == std::end(kFunctions) ? nullptr : found;
}

// One word of the library's attributes.
Result<std::string> AttributeText(const Op& op, std::string_view name, std::string_view allowed) {
  const Attribute* config = op.Find("mhlo.backend_config");
  if (!config) config = op.Find("backend_config");
  const bool is_list = config && config->is(AttributeKind::kDictionary);
  const Attribute* value = is_list ? mlir::Find(config->fields, name) : nullptr;
  std::optional<int64_t> number;
  if (value) number = mlir::IntOf(*value);
  if (number && allowed == "#") return Cat(name, "=", *number);
  if (number && allowed == "?") return Cat(name, "=", *number != 0 ? 1 : 0);
  for (char letter : allowed) {
    if (number != letter) continue;
    if (name == "sort" && letter == 'S') {
      return Unimplemented("gees with a selection of eigenvalues is not implemented");
    }
    return Cat(name, "=", std::string_view(&letter, 1));
  }
  const std::string_view kind = allowed == "#" ? "an integer" : allowed == "?" ? "a boolean" : "";
  return InvalidArgument("backend_config must have ", name, ", ",
                         kind.empty() ? Cat("one of the letters ", allowed) : std::string(kind));
}

Result<std::string> AttributesText(const Op& op, std::string_view words) {
  std::string text;
  while (!words.empty()) {
    const std::string_view word = words.substr(0, words.find(' '));
    words.remove_prefix(std::min(word.size() + 1, words.size()));
    const size_t equals = word.find('=');
    KILN_ASSIGN_OR_RETURN(std::string one,
                          AttributeText(op, word.substr(0, equals), word.substr(equals + 1)));
    text += Cat(text.empty() ? "" : " ", one);
  }
  return text;
}

// Matrices must be column-major, and the other arrays row-major; all of them have the batch's
// dimensions in front, of any order in the first place.
Status CheckLayouts(const Op& op, std::string_view name, std::string_view letters,
                    std::span<const Shape> shapes) {
  const Attribute* layouts = op.Find(name);
  bool fits = layouts && layouts->items.size() >= letters.size();
  for (size_t i = 0; fits && i < letters.size(); ++i) {
    const int64_t rank = shapes[i].rank();
    Ints expected;
    for (int64_t d = rank - 1; d >= 0; --d) expected.push_back(d);
    if (letters[i] == 'm' && rank >= 2) std::swap(expected[0], expected[1]);
    const std::optional<Ints> order = mlir::IntsOf(*layouts->items[i]);
    fits = order ? *order == expected : rank == 0;
  }
  if (fits) return OkStatus();
  return Unimplemented("the attribute ", name,
                       " must make matrices column-major and other arrays row-major; other layouts "
                       "are not implemented");
}

Status CheckShapes(std::string_view what, std::string_view letters, std::span<const Shape> shapes) {
  if (shapes.size() != letters.size()) {
    return InvalidArgument("found ", shapes.size(), " ", what, "; expected ", letters.size());
  }
  for (size_t i = 0; i < shapes.size(); ++i) {
    const int64_t least = letters[i] == 'm' ? 2 : letters[i] == 'v' ? 1 : 0;
    if (shapes[i].is_array() && shapes[i].is_static() && shapes[i].rank() >= least) continue;
    return InvalidArgument("found ", shapes[i], " among the ", what, "; expected ",
                           least == 2   ? "matrices"
                           : least == 1 ? "vectors"
                                        : "an array");
  }
  return OkStatus();
}

Result<Values> CallLapack(Op& op) {
  KILN_ASSIGN_OR_RETURN(std::string target, op.Word("call_target_name"));
  const Function& function = *FindFunction(target);
  KILN_ASSIGN_OR_RETURN(ShapeOperands found, ShapeOperandsOf(op));
  std::vector<Shape> operands, results = found.results;
  for (const ir::Instruction* operand : found.others) operands.push_back(operand->shape());
  for (size_t i = results.size(); i < op.result_count(); ++i) {
    KILN_ASSIGN_OR_RETURN(Shape shape, op.ResultShape(i));
    results.push_back(std::move(shape));
  }
  KILN_RETURN_IF_ERROR(CheckShapes("operands", function.operands, operands));
  const ElementType type = operands[0].type();
  if (!IsFloat(type) && !IsComplex(type)) {
    return InvalidArgument("found ", operands[0], "; expected floats or complex numbers");
  }
  const std::string_view letters = IsComplex(type) ? function.complex_results : function.results;
  KILN_RETURN_IF_ERROR(CheckShapes("results", letters, results));
  KILN_RETURN_IF_ERROR(CheckLayouts(op, "operand_layouts", function.operands, operands));
  KILN_RETURN_IF_ERROR(CheckLayouts(op, "result_layouts", letters, results));
  KILN_ASSIGN_OR_RETURN(std::string attributes, AttributesText(op, function.attributes));
  return CallTo(op, Cat("lapack.", function.own), std::move(found.others), std::move(attributes),
                /*side_effect=*/false, {}, {}, std::move(results));
}

}  // namespace

Lowering FindLapack(std::string_view target) { return FindFunction(target) ? CallLapack : nullptr; }

}  // namespace kiln::stablehlo
