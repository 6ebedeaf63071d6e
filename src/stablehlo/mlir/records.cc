#include "stablehlo/mlir/records.h"

namespace kiln::mlir {
namespace {

struct Schema {
  std::string_view name;
  std::string_view fields;
};
constexpr Schema kSchemas[] = {
    {"stablehlo.scatter",
     "update_window_dims:ints inserted_window_dims:ints input_batching_dims:ints "
     "scatter_indices_batching_dims:ints scatter_dims_to_operand_dims:ints index_vector_dim:int"},
    {"stablehlo.gather",
     "offset_dims:ints collapsed_slice_dims:ints operand_batching_dims:ints "
     "start_indices_batching_dims:ints start_index_map:ints index_vector_dim:int"},
    {"stablehlo.dot",
     "lhs_batching_dimensions:ints rhs_batching_dimensions:ints lhs_contracting_dimensions:ints "
     "rhs_contracting_dimensions:ints"},
    {"chlo.ragged_dot",
     "lhs_batching_dimensions:ints rhs_batching_dimensions:ints lhs_contracting_dimensions:ints "
     "rhs_contracting_dimensions:ints lhs_ragged_dimensions:ints rhs_group_dimensions:ints"},
    {"stablehlo.dot_algorithm",
     "lhs_precision_type:type rhs_precision_type:type accumulation_type:type "
     "lhs_component_count:int rhs_component_count:int num_primitive_operations:int "
     "allow_imprecise_accumulation:bool"},
    {"stablehlo.conv",
     "input_batch_dimension:int input_feature_dimension:int input_spatial_dimensions:ints "
     "kernel_input_feature_dimension:int kernel_output_feature_dimension:int "
     "kernel_spatial_dimensions:ints output_batch_dimension:int output_feature_dimension:int "
     "output_spatial_dimensions:ints"},
    {"stablehlo.channel_handle", "handle:int type:int"},
    {"stablehlo.output_operand_alias",
     "output_tuple_indices:ints operand_index:int operand_tuple_indices:ints"},
    {"stablehlo.result_accuracy", "atol:f64 rtol:f64 ulps:int mode:mode"},
    {"stablehlo.bounds", "bounds:ints"},
};

}  // namespace

std::string_view RecordFields(std::string_view record) {
  for (const Schema& schema : kSchemas) {
    if (schema.name == record) return schema.fields;
  }
  return {};
}

}  // namespace kiln::mlir
