#include "stablehlo/text/forms.h"

#include <algorithm>
#include <unordered_map>

#include "stablehlo/text/reader.h"

namespace kiln::stablehlo {
namespace {

struct Row {
  std::string_view dialect;
  std::string_view names;
  std::string_view form;
};

constexpr Row kRows[] = {
    {"builtin", "module", "@module"},
    {"func", "func", "@function"},
    {"func", "call", "callee:ref ( %* ) {} : function"},
    {"func", "return", "%* {} : operands"},
    {"arith", "constant", "@constant"},

    {"stablehlo", "constant", "@constant"},
    {"stablehlo", "iota", "dim = iota_dimension:i64 {} : result"},
    {"stablehlo", "create_token partition_id replica_id", "{} : result"},
    {"stablehlo",
     "abs cbrt ceil convert cosine count_leading_zeros exponential exponential_minus_one floor "
     "imag "
     "is_finite log log_plus_one logistic negate not popcnt real round_nearest_afz "
     "round_nearest_even rsqrt sign sine sqrt tan tanh uniform_dequantize uniform_quantize",
     "% {} : same"},
    {"stablehlo",
     "add and atan2 divide maximum minimum multiply or power remainder shift_left "
     "shift_right_arithmetic shift_right_logical subtract xor",
     "% , % {} : same"},
    {"stablehlo", "after_all clamp", "%* {} : same"},
    {"stablehlo", "complex", "% , % {} : complex"},
    {"stablehlo", "select", "%* {} : select"},
    {"stablehlo", "compare",
     "comparison_direction:enum.comparison_direction , % , % "
     "(? , compare_type:enum.comparison_type ?) {} : function"},
    {"stablehlo",
     "bitcast_convert compute_reshape_shape cstr_reshapable dynamic_pad dynamic_reshape "
     "dynamic_update_slice real_dynamic_slice reshape",
     "%* {} : function"},
    {"stablehlo", "broadcast", "% , sizes = broadcast_sizes:ints {} : function"},
    {"stablehlo", "broadcast_in_dim", "% , dims = broadcast_dimensions:ints {} : function"},
    {"stablehlo", "dynamic_broadcast_in_dim",
     "% , % , dims = broadcast_dimensions:ints {} : function"},
    {"stablehlo", "cholesky", "% (? , lower = lower:bool ?) {} : same"},
    {"stablehlo", "composite", "name:string %* @regions {} : function"},
    {"stablehlo", "concatenate", "%* , dim = dimension:i64 {} : function"},
    {"stablehlo", "convolution", "( %* ) dim_numbers = @conv , window = { @window } {} : function"},
    {"stablehlo", "custom_call", "call_target_name:symbol ( %* ) {} : function"},
    {"stablehlo", "dot", "% , % @precision {} : function"},
    {"stablehlo", "dot_general", "% , % , @dot_dimensions @precision {} : function"},
    {"stablehlo", "dynamic_iota", "% , dim = iota_dimension:i64 {} : function"},
    {"stablehlo", "dynamic_slice", "%* , sizes = slice_sizes:ints {} : function"},
    {"stablehlo", "einsum", "% , % , config = einsum_config:string {} : function"},
    {"stablehlo", "unary_einsum", "% , config = einsum_config:string {} : function"},
    {"stablehlo", "fft",
     "% , type = fft_type:enum.fft_type , length = fft_length:ints {} : function"},
    {"stablehlo", "get_dimension_size", "% , dim = dimension:i64 {} : function"},
    {"stablehlo", "get_tuple_element", "% [ index:i32 ] {} : function"},
    {"stablehlo", "optimization_barrier", "{} @barrier"},
    {"stablehlo", "pad",
     "% , % , low = edge_padding_low:ints , high = edge_padding_high:ints , "
     "interior = interior_padding:ints {} : function"},
    {"stablehlo", "reduce", "@reduce"},
    {"stablehlo", "reduce_precision", "% , format = @format {} : same"},
    {"stablehlo", "return", "%* {} : operands"},
    {"stablehlo", "reverse", "% , dims = dimensions:ints {} : same"},
    {"stablehlo", "rng",
     "% , % , % , distribution = rng_distribution:enum.rng_distribution {} : function"},
    {"stablehlo", "rng_bit_generator",
     "% , algorithm = rng_algorithm:enum.rng_algorithm {} : function"},
    {"stablehlo", "set_dimension_size", "% , % , dim = dimension:i64 {} : function"},
    {"stablehlo", "slice", "% @slices {} : function"},
    {"stablehlo", "trace", "% , tag:string {} : operands"},
    {"stablehlo", "transpose", "% , dims = permutation:ints {} : function"},
    {"stablehlo", "tuple", "%* {} : tuple"},
    {"stablehlo", "while", "@while"},
    // Operations with the generic form only; listed to be known by name.
    {"stablehlo",
     "all_gather all_reduce all_to_all async_done async_start batch_norm_grad batch_norm_inference "
     "batch_norm_training case collective_broadcast collective_permute collective_reduce "
     "cross-replica-sum dynamic_conv dynamic_gather gather if infeed map outfeed recv "
     "reduce_scatter reduce_window scatter select_and_scatter send sort torch_index_select "
     "triangular_solve",
     ""},

    {"chlo", "constant", "@constant"},
    {"chlo",
     "_asin_acos_kernel acos acosh asin asinh atan atanh bessel_i1e conj cosh digamma erf erf_inv "
     "erfc is_inf is_neg_inf is_pos_inf lgamma sinh square tan",
     "% {} : same"},
    {"chlo", "mulhi next_after polygamma zeta", "% , % {} : same"},
    {"chlo",
     "broadcast_add broadcast_and broadcast_atan2 broadcast_compare broadcast_complex "
     "broadcast_divide broadcast_maximum broadcast_minimum broadcast_multiply broadcast_next_after "
     "broadcast_or broadcast_polygamma broadcast_power broadcast_remainder broadcast_select "
     "broadcast_shift_left broadcast_shift_right_arithmetic broadcast_shift_right_logical "
     "broadcast_subtract broadcast_xor broadcast_zeta minimum_broadcast_shapes",
     "%* {} : function"},
    {"chlo", "scan", "@scan : function"},
    {"chlo", "top_k", "( % , k = k:i64 ) {} : function"},
    {"chlo", "constant_like ragged_dot", ""},

    {"check", "expect_eq", "% , % {} : each"},
    {"check", "expect_almost_eq", "% , % (? , tolerance = tolerance:f64 ?) {} : each"},
    {"check", "expect_close",
     "% , % (? , max_ulp_difference = max_ulp_difference:u64 ?) "
     "(? , min_ulp_difference = min_ulp_difference:u64 ?) {} : each"},
    {"check", "almost_eq eq expect_almost_eq_const expect_eq_const", "% , @value {}"},
    {"check", "expect_serialized_eq",
     "% , probe_id = probe_id:string (? , iter = iteration:i32 ?) {} : operands"},
    {"interpreter", "print", "% {} : same"},
    {"interpreter", "run_parallel", ""},
    {"interpreter", "probe", "% , probe_id = probe_id:string {} : same"},

    // Operations of partitioned programs, without effect on values.
    {"sdy", "mesh", "sym_name:symbol = mesh:opaque.sdy.mesh {}"},
    {"sdy", "sharding_constraint", "% sharding:opaque.sdy.sharding {} : same"},
};

// Forms by name with dialect.
const std::unordered_map<std::string, std::string_view>& Forms() {
  static const std::unordered_map<std::string, std::string_view> forms = [] {
    std::unordered_map<std::string, std::string_view> map;
    for (const Row& row : kRows) {
      for (std::string_view name : Split(row.names, ' ')) {
        map.emplace(Cat(row.dialect, ".", name), row.form);
      }
    }
    return map;
  }();
  return forms;
}

}  // namespace

std::optional<std::string_view> FormOf(std::string_view name) {
  auto found = Forms().find(std::string(name));
  if (found == Forms().end()) return std::nullopt;
  return found->second;
}

std::string CanonicalName(std::string_view name) {
  constexpr std::string_view kOld = "mhlo.";
  if (name.starts_with(kOld)) {
    std::string now = Cat("stablehlo.", name.substr(kOld.size()));
    if (FormOf(now)) return now;
  }
  return std::string(name);
}

// Whether the first of these parts is next, and a word behind it, if any.
bool Reader::LookingAtParts(std::span<const std::string_view> parts) {
  const size_t begin = scanner_.position();
  bool looking = scanner_.Take(parts[0]);
  const bool word = parts.size() > 1 && parts[1].find(':') == std::string_view::npos &&
                    parts[1][0] >= 'a' && parts[1][0] <= 'z';
  if (word) looking = looking && scanner_.PeekWord() == parts[1];
  scanner_.Rewind(begin);
  return looking;
}

Status Reader::ReadForm(Operation* operation, std::string_view form, Scope& scope) {
  std::vector<std::string_view> words = Split(form, ' ');
  for (size_t i = 0; i < words.size(); ++i) {
    const std::string_view word = words[i];
    const size_t colon = word.find(':');
    if (word == "%") {
      KILN_ASSIGN_OR_RETURN(Value * value, ReadOperand(scope));
      operation->operands.push_back(value);
    } else if (word == "%*") {
      KILN_RETURN_IF_ERROR(ReadOperands(operation, scope));
    } else if (word == "{}") {
      if (scanner_.Take("<")) {
        KILN_RETURN_IF_ERROR(ReadDictionary(operation->attributes));
        KILN_RETURN_IF_ERROR(scanner_.Expect(">"));
      }
      if (scanner_.Looking("{")) KILN_RETURN_IF_ERROR(ReadDictionary(operation->attributes));
    } else if (word == "(?") {
      if (!LookingAtParts({words.begin() + i + 1, words.end()})) {
        i = static_cast<size_t>(std::find(words.begin() + i, words.end(), "?)") - words.begin());
      }
    } else if (word == "?)") {
      // Nothing is written there.
    } else if (word == ":") {
      KILN_RETURN_IF_ERROR(ReadTypesOf(operation, words[++i]));
    } else if (word.starts_with("@")) {
      KILN_RETURN_IF_ERROR(ReadPart(operation, word.substr(1), scope));
    } else if (colon != std::string_view::npos) {
      KILN_RETURN_IF_ERROR(
          ReadAttributeOf(operation, word.substr(0, colon), word.substr(colon + 1)));
    } else if (word[0] >= 'a' && word[0] <= 'z') {
      KILN_RETURN_IF_ERROR(scanner_.ExpectKeyword(word));
    } else {
      KILN_RETURN_IF_ERROR(scanner_.Expect(word));
    }
  }
  return OkStatus();
}

Status Reader::ReadAttributeOf(Operation* operation, std::string_view name, std::string_view kind) {
  const size_t at = scanner_.position();
  const Attribute* value = nullptr;
  constexpr std::string_view kEnum = "enum.", kOpaque = "opaque.";
  if (kind == "ints") {
    KILN_ASSIGN_OR_RETURN(List<int64_t> ints, ReadInts());
    KILN_ASSIGN_OR_RETURN(value, MakeInts(ints));
  } else if (kind.starts_with(kEnum)) {
    KILN_ASSIGN_OR_RETURN(value, ReadEnum(Cat("stablehlo.", kind.substr(kEnum.size()))));
  } else if (kind == "bool") {
    Attribute attribute{.kind = AttributeKind::kBool};
    attribute.boolean = scanner_.TakeKeyword("true");
    if (!attribute.boolean && !scanner_.TakeKeyword("false")) {
      return scanner_.Fail("true or false");
    }
    KILN_ASSIGN_OR_RETURN(value, Make(std::move(attribute), at));
  } else if (kind == "string") {
    KILN_ASSIGN_OR_RETURN(std::string text, scanner_.String());
    KILN_ASSIGN_OR_RETURN(value, MakeText(AttributeKind::kString, std::move(text)));
  } else if (kind == "symbol") {
    KILN_ASSIGN_OR_RETURN(std::string text, scanner_.Symbol());
    KILN_ASSIGN_OR_RETURN(value, MakeText(AttributeKind::kString, std::move(text)));
  } else if (kind == "ref") {
    KILN_ASSIGN_OR_RETURN(value, ReadSymbolAttribute());
  } else if (kind.starts_with(kOpaque)) {
    KILN_RETURN_IF_ERROR(scanner_.SkipBalanced());
    KILN_ASSIGN_OR_RETURN(
        value, MakeText(AttributeKind::kOpaque,
                        Cat("#", kind.substr(kOpaque.size()), scanner_.Text(at, scanner_.end()))));
  } else {
    // A number without a type, because the types of the operation may follow.
    Type type;
    const bool is_float = kind == "f64";
    if (is_float) {
      KILN_ASSIGN_OR_RETURN(const Type* f64, GetFloat(mlir::FloatKind::kF64));
      type = *f64;
    } else {
      type.kind = mlir::TypeKind::kInteger;
      type.width = kind.ends_with("64") ? 64 : 32;
      if (kind[0] == 'u') type.signedness = mlir::Signedness::kUnsigned;
    }
    KILN_ASSIGN_OR_RETURN(const Type* known, GetType(type, at));
    KILN_ASSIGN_OR_RETURN(Number number, scanner_.TakeNumber());
    KILN_ASSIGN_OR_RETURN(value, MakeNumber(number, known));
  }
  return Set(operation, name, value, at);
}

Status Reader::ReadTypesOf(Operation* operation, std::string_view style) {
  const bool optional = style == "operands" || style == "pairwise";
  if (optional && operation->operands.empty() && !scanner_.Looking(":")) return OkStatus();
  KILN_RETURN_IF_ERROR(scanner_.Expect(":"));
  const size_t at = scanner_.position();
  List<const Type*> types;
  do {
    KILN_ASSIGN_OR_RETURN(const Type* type, ReadType());
    types.push_back(type);
  } while (scanner_.Take(","));
  if (types.size() == 1 && types[0]->is(mlir::TypeKind::kFunction)) {
    KILN_RETURN_IF_ERROR(CheckOperands(*operation, types[0]->inputs, at));
    return AddResults(operation, types[0]->results);
  }
  if (scanner_.Take("->")) {
    KILN_RETURN_IF_ERROR(CheckOperands(*operation, types, at));
    KILN_ASSIGN_OR_RETURN(List<const Type*> results, ReadResultTypes());
    return AddResults(operation, results);
  }
  return SetTypes(operation, style, types, at);
}

// The meaning of types that are not a function type:
//   same      the one type of all operands and the result
//   result    the type of the result; there are no operands
//   operands  the types of the operands; there are no results
//   each      the types of the operands, or their one type; there are no results
//   pairwise  the types of the operands, and also of the results
//   select    the type of the predicate, and the type of the others
//   complex   the type of the result; the operands are its parts
//   tuple     the type of the result; the operands are its elements
//   function  none: an error
Status Reader::SetTypes(Operation* operation, std::string_view style,
                        const List<const Type*>& types, size_t position) {
  const size_t operands = operation->operands.size();
  if (style == "operands" || style == "pairwise" || (style == "each" && types.size() == operands)) {
    KILN_RETURN_IF_ERROR(CheckOperands(*operation, types, position));
    return style == "pairwise" ? AddResults(operation, types) : OkStatus();
  }
  if (style == "select" && types.size() == 2) {
    KILN_RETURN_IF_ERROR(CheckOperands(*operation, {types[0], types[1], types[1]}, position));
    return AddResults(operation, {types[1]});
  }
  if (style == "function") return scanner_.Fail("'->' and the types of results");
  if (types.size() != 1) {
    return scanner_.FailAt(position, style == "select" ? "two types, or those of a function"
                                                       : "one type, or those of a function");
  }
  List<const Type*> inputs;
  if (style == "same" || style == "each") {
    inputs.assign(operands, types[0]);
  } else if (style == "complex") {
    Type part = *types[0];
    if (!part.element || !part.element->is(mlir::TypeKind::kComplex)) {
      return scanner_.FailAt(position, "a tensor of complex numbers");
    }
    part.element = part.element->element;
    KILN_ASSIGN_OR_RETURN(const Type* known, GetType(part, position));
    inputs.assign(operands, known);
  } else if (style == "tuple") {
    if (!types[0]->is(mlir::TypeKind::kTuple)) return scanner_.FailAt(position, "a tuple");
    inputs = types[0]->inputs;
  }
  KILN_RETURN_IF_ERROR(CheckOperands(*operation, inputs, position));
  return style == "each" ? OkStatus() : AddResults(operation, types);
}

}  // namespace kiln::stablehlo
