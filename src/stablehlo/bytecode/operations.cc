#include "stablehlo/bytecode/operations.h"

#include <deque>
#include <string>

namespace kiln::stablehlo {
namespace {

// Names and versions with the same attributes. An attribute is "name:kind=defaults", with '+' in
// front if it is added, and '-' if it is dropped.
struct Row {
  std::string_view names;
  std::string_view versions;
  std::string_view attributes;
};

// Lists shared by several.
#define CHANNEL "channel_id:channel=0 +channel_type:channel "
#define CONV_DIMENSIONS                                                                    \
  "input_batch_dimension:conv input_feature_dimension:conv input_spatial_dimensions:conv " \
  "kernel_input_feature_dimension:conv kernel_output_feature_dimension:conv "              \
  "kernel_spatial_dimensions:conv lhs_dilation:ints=1 output_batch_dimension:conv "        \
  "output_feature_dimension:conv output_spatial_dimensions:conv "
#define CONV_COUNTS "batch_group_count feature_group_count "
#define CONV_REST \
  "precision_config=DEFAULT rhs_dilation:ints=1 window_reversal:bools=false window_strides:ints=1"
#define CUSTOM_CALL                                                                \
  "api_version:number=API_VERSION_ORIGINAL backend_config=empty call_target_name " \
  "called_computations:symbols=empty has_side_effect=false operand_layouts=empty " \
  "output_operand_aliases=empty result_layouts=empty"

constexpr Row kRows[] = {
    {"abs add after_all and async_done async_start atan2 bitcast_convert case cbrt ceil clamp "
     "complex compute_reshape_shape convert cosine count_leading_zeros create_token "
     "cstr_reshapable "
     "divide dynamic_pad dynamic_reshape dynamic_update_slice exponential exponential_minus_one "
     "floor if imag is_finite log log_plus_one logistic maximum minimum multiply negate not "
     "optimization_barrier or partition_id popcnt power real real_dynamic_slice remainder "
     "replica_id reshape return round_nearest_afz round_nearest_even rsqrt select shift_left "
     "shift_right_arithmetic shift_right_logical sign sine sqrt subtract tan tanh tuple "
     "uniform_dequantize uniform_quantize while xor",
     "1", ""},
    {"cbrt cosine exponential exponential_minus_one log log_plus_one logistic rsqrt sine sqrt tan "
     "tanh",
     "2", "result_accuracy=DEFAULT"},
    {"all_gather", "1 2", "all_gather_dim " CHANNEL "replica_groups use_global_device_ids:unit"},
    {"all_reduce", "1 2", CHANNEL "replica_groups use_global_device_ids:unit"},
    {"all_to_all", "1 2", CHANNEL "concat_dimension replica_groups split_count split_dimension"},
    {"batch_norm_grad batch_norm_inference batch_norm_training", "1", "epsilon feature_index"},
    {"broadcast", "1", "broadcast_sizes:ints"},
    {"broadcast_in_dim", "1", "broadcast_dimensions:ints"},
    {"call", "1", "callee:symbol"},
    {"cholesky", "1", "lower=false"},
    {"collective_broadcast", "1", CHANNEL "replica_groups"},
    {"collective_broadcast", "2", CHANNEL "has_dynamic_root:unit replica_groups"},
    {"collective_permute", "1", CHANNEL "source_target_pairs"},
    {"collective_reduce", "1",
     CHANNEL "has_dynamic_root:unit replica_groups use_global_device_ids:unit"},
    {"compare", "1", "compare_type=NOTYPE comparison_direction"},
    {"composite", "1 2", "composite_attributes=empty decomposition:symbol name version=0"},
    {"concatenate", "1", "dimension"},
    {"constant", "1", "value"},
    {"convolution", "1", CONV_COUNTS CONV_DIMENSIONS "padding=0 " CONV_REST},
    {"cross-replica-sum", "1", "replica_groups"},
    {"custom_call", "1", CUSTOM_CALL},
    {"custom_call", "2", CUSTOM_CALL " result_tilings=empty"},
    {"dot", "1", "precision_config=DEFAULT"},
    {"dot_general", "1",
     "lhs_batching_dimensions:dot lhs_contracting_dimensions:dot precision_config=DEFAULT "
     "rhs_batching_dimensions:dot rhs_contracting_dimensions:dot"},
    {"dot_general", "2",
     "accumulation_type:algorithm=none allow_imprecise_accumulation:algorithm=none "
     "lhs_batching_dimensions:dot lhs_component_count:algorithm=none "
     "lhs_contracting_dimensions:dot lhs_precision_type:algorithm=none "
     "num_primitive_operations:algorithm=none precision_config=DEFAULT "
     "rhs_batching_dimensions:dot rhs_component_count:algorithm=none "
     "rhs_contracting_dimensions:dot rhs_precision_type:algorithm=none"},
    {"dynamic_broadcast_in_dim", "1",
     "broadcast_dimensions:ints known_expanding_dimensions:ints=empty "
     "known_nonexpanding_dimensions:ints=empty"},
    // The operand is the padding, as in earlier versions.
    {"dynamic_conv", "1", CONV_COUNTS CONV_DIMENSIONS "-padding " CONV_REST},
    {"dynamic_conv", "2", CONV_COUNTS CONV_DIMENSIONS CONV_REST},
    {"dynamic_gather", "1",
     "collapsed_slice_dims:gather index_vector_dim:gather indices_are_sorted=false "
     "offset_dims:gather +operand_batching_dims:gather start_index_map:gather "
     "+start_indices_batching_dims:gather"},
    {"dynamic_gather", "2",
     "collapsed_slice_dims:gather index_vector_dim:gather indices_are_sorted=false "
     "offset_dims:gather operand_batching_dims:gather start_index_map:gather "
     "start_indices_batching_dims:gather"},
    {"dynamic_iota iota", "1", "iota_dimension"},
    {"dynamic_slice", "1", "slice_sizes:ints"},
    {"einsum unary_einsum", "1", "einsum_config"},
    {"fft", "1", "fft_length:ints fft_type"},
    {"func", "1",
     "arg_attrs=empty function_type res_attrs=empty sym_name sym_visibility=empty|public"},
    {"gather", "1",
     "collapsed_slice_dims:gather index_vector_dim:gather indices_are_sorted=false "
     "offset_dims:gather +operand_batching_dims:gather slice_sizes:ints start_index_map:gather "
     "+start_indices_batching_dims:gather"},
    {"gather", "2",
     "collapsed_slice_dims:gather index_vector_dim:gather indices_are_sorted=false "
     "offset_dims:gather operand_batching_dims:gather slice_sizes:ints start_index_map:gather "
     "start_indices_batching_dims:gather"},
    {"get_dimension_size set_dimension_size", "1", "dimension"},
    {"get_tuple_element", "1", "index"},
    {"infeed", "1", "infeed_config=empty layout=empty"},
    {"map reduce reverse", "1", "dimensions:ints"},
    {"outfeed", "1", "outfeed_config=empty"},
    {"pad", "1", "edge_padding_high:ints edge_padding_low:ints interior_padding:ints"},
    {"recv send", "1", "channel_id:channel channel_type:channel is_host_transfer=false"},
    {"recv send", "2",
     "channel_id:channel channel_type:channel is_host_transfer=false source_target_pairs=empty"},
    {"reduce_precision", "1", "exponent_bits mantissa_bits"},
    {"reduce_scatter", "1", CHANNEL "replica_groups scatter_dimension use_global_device_ids:unit"},
    {"reduce_window", "1",
     "base_dilations:ints=1 padding=0 window_dilations:ints=1 window_dimensions:ints "
     "window_strides:ints=1"},
    {"rng", "1", "rng_distribution"},
    {"rng_bit_generator", "1", "rng_algorithm"},
    {"scatter", "1",
     "index_vector_dim:scatter indices_are_sorted=false +input_batching_dims:scatter "
     "inserted_window_dims:scatter scatter_dims_to_operand_dims:scatter "
     "+scatter_indices_batching_dims:scatter unique_indices=false update_window_dims:scatter"},
    {"scatter", "2",
     "index_vector_dim:scatter indices_are_sorted=false input_batching_dims:scatter "
     "inserted_window_dims:scatter scatter_dims_to_operand_dims:scatter "
     "scatter_indices_batching_dims:scatter unique_indices=false update_window_dims:scatter"},
    {"select_and_scatter", "1", "padding=0 window_dimensions:ints window_strides:ints=1"},
    {"slice", "1", "limit_indices:ints start_indices:ints strides:ints"},
    {"sort", "1", "dimension=-1 is_stable=false"},
    {"torch_index_select", "1", "batch_dims dim"},
    {"trace", "1", "tag"},
    {"transpose", "1", "permutation:ints"},
    {"triangular_solve", "1", "left_side lower transpose_a unit_diagonal"},
};

#undef CHANNEL
#undef CONV_DIMENSIONS
#undef CONV_COUNTS
#undef CONV_REST
#undef CUSTOM_CALL

VhloAttribute ParseAttribute(std::string_view word) {
  VhloAttribute attribute;
  attribute.added = word.starts_with("+");
  attribute.dropped = word.starts_with("-");
  if (attribute.added || attribute.dropped) word.remove_prefix(1);
  if (const size_t equals = word.find('='); equals != std::string_view::npos) {
    attribute.defaults = word.substr(equals + 1);
    word = word.substr(0, equals);
  }
  if (const size_t colon = word.find(':'); colon != std::string_view::npos) {
    attribute.kind = word.substr(colon + 1);
    word = word.substr(0, colon);
  }
  attribute.name = word;
  return attribute;
}

struct VhloTable {
  VhloTable() {
    for (const Row& row : kRows) {
      std::vector<VhloAttribute> attributes;
      for (std::string_view word : Split(row.attributes, ' ')) {
        if (!word.empty()) attributes.push_back(ParseAttribute(word));
      }
      for (std::string_view name : Split(row.names, ' ')) {
        const bool is_func = name == "func" || name == "call";
        const std::string& today = names.emplace_back(Cat(is_func ? "func." : "stablehlo.", name));
        for (std::string_view version : Split(row.versions, ' ')) {
          by_name.emplace(Cat(name, "_v", version), VhloOperation{today, attributes});
        }
      }
    }
  }

  std::deque<std::string> names;
  std::unordered_map<std::string, VhloOperation> by_name;
};

}  // namespace

const VhloOperation* FindVhloOperation(std::string_view name) {
  static const VhloTable table;
  auto found = table.by_name.find(std::string(name));
  return found == table.by_name.end() ? nullptr : &found->second;
}

}  // namespace kiln::stablehlo
