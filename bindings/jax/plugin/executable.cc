#include "plugin/executable.h"

#include <utility>

#include "plugin/error.h"
#include "plugin/program.h"

PJRT_Executable::PJRT_Executable(std::shared_ptr<const kiln_jax::Program> shared)
    : program(std::move(shared)) {
  for (const kiln_jax::Argument& argument : program->arguments) {
    layouts.push_back({kiln_jax::LayoutText(argument.layout, argument.dims.size())});
  }
  for (const kiln_jax::BufferSpec& output : program->outputs) {
    layouts.push_back({kiln_jax::LayoutText(output.layout, output.dims.size())});
  }
  for (PJRT_Layouts_MemoryLayout& layout : layouts) {
    const bool is_argument = argument_layouts.size() < program->arguments.size();
    (is_argument ? argument_layouts : output_layouts).push_back(&layout);
  }
}

namespace kiln_jax {

PJRT_Error* ExecutableDestroy(PJRT_Executable_Destroy_Args* args) {
  delete args->executable;
  return nullptr;
}

PJRT_Error* ExecutableName(PJRT_Executable_Name_Args* args) {
  static constexpr char kName[] = "main";
  args->executable_name = kName;
  args->executable_name_size = sizeof(kName) - 1;
  return nullptr;
}

PJRT_Error* ExecutableNumReplicas(PJRT_Executable_NumReplicas_Args* args) {
  args->num_replicas = 1;
  return nullptr;
}

PJRT_Error* ExecutableNumPartitions(PJRT_Executable_NumPartitions_Args* args) {
  args->num_partitions = 1;
  return nullptr;
}

PJRT_Error* ExecutableNumOutputs(PJRT_Executable_NumOutputs_Args* args) {
  args->num_outputs = args->executable->program->outputs.size();
  return nullptr;
}

PJRT_Error* ExecutableCodeSize(PJRT_Executable_SizeOfGeneratedCodeInBytes_Args* args) {
  kiln_program_memory memory = KILN_PROGRAM_MEMORY_INIT;
  if (kiln_error* error = kiln_executable_memory(args->executable->program->executable, &memory)) {
    return TakeError(error);
  }
  args->size_in_bytes = memory.code_bytes;
  return nullptr;
}

PJRT_Error* ExecutableCost(PJRT_Executable_GetCostAnalysis_Args* args) {
  args->properties = args->executable->program->cost.data();
  args->num_properties = args->executable->program->cost.size();
  return nullptr;
}

PJRT_Error* ExecutableOutputMemoryKinds(PJRT_Executable_OutputMemoryKinds_Args* args) {
  args->num_outputs = args->executable->program->outputs.size();
  args->memory_kinds = args->executable->program->output_kinds.data();
  args->memory_kind_sizes = args->executable->program->output_kind_sizes.data();
  return nullptr;
}

PJRT_Error* ExecutableParameterMemoryKinds(PJRT_Executable_ParameterMemoryKinds_Args* args) {
  args->num_parameters = args->executable->program->arguments.size();
  args->memory_kinds = args->executable->program->argument_kinds.data();
  args->memory_kind_sizes = args->executable->program->argument_kind_sizes.data();
  return nullptr;
}

PJRT_Error* ExecutableOutputTypes(PJRT_Executable_OutputElementTypes_Args* args) {
  args->output_types = args->executable->program->output_types.data();
  args->num_output_types = args->executable->program->output_types.size();
  return nullptr;
}

PJRT_Error* ExecutableOutputDimensions(PJRT_Executable_OutputDimensions_Args* args) {
  args->num_outputs = args->executable->program->outputs.size();
  args->dims = args->executable->program->output_dims.data();
  args->dim_sizes = args->executable->program->output_ranks.data();
  return nullptr;
}

PJRT_Error* ExecutableFingerprint(PJRT_Executable_Fingerprint_Args* args) {
  args->executable_fingerprint = args->executable->program->fingerprint.c_str();
  args->executable_fingerprint_size = args->executable->program->fingerprint.size();
  return nullptr;
}

PJRT_Error* ExecutableMemoryStats(PJRT_Executable_GetCompiledMemoryStats_Args* args) {
  kiln_program_memory memory = KILN_PROGRAM_MEMORY_INIT;
  if (kiln_error* error = kiln_executable_memory(args->executable->program->executable, &memory)) {
    return TakeError(error);
  }
  args->generated_code_size_in_bytes = memory.code_bytes;
  args->argument_size_in_bytes = memory.argument_bytes;
  args->output_size_in_bytes = memory.output_bytes;
  args->alias_size_in_bytes = memory.alias_bytes;
  args->temp_size_in_bytes = memory.temporary_bytes;
  args->host_generated_code_size_in_bytes = 0;
  args->host_argument_size_in_bytes = 0;
  args->host_output_size_in_bytes = 0;
  args->host_alias_size_in_bytes = 0;
  args->host_temp_size_in_bytes = 0;
  using Args = PJRT_Executable_GetCompiledMemoryStats_Args;
  if (args->struct_size >= offsetof(Args, total_size_in_bytes)) {
    args->peak_memory_in_bytes = memory.peak_bytes;
  }
  if (args->struct_size >= sizeof(Args)) {
    args->total_size_in_bytes = memory.argument_bytes + memory.output_bytes - memory.alias_bytes +
                                memory.temporary_bytes + memory.constant_bytes;
  }
  return nullptr;
}

PJRT_Error* LoadedDestroy(PJRT_LoadedExecutable_Destroy_Args* args) {
  delete args->executable;
  return nullptr;
}

PJRT_Error* LoadedGetExecutable(PJRT_LoadedExecutable_GetExecutable_Args* args) {
  args->executable = new PJRT_Executable(args->loaded_executable->program);
  return nullptr;
}

PJRT_Error* LoadedAddressableDevices(PJRT_LoadedExecutable_AddressableDevices_Args* args) {
  args->addressable_devices = &args->executable->program->device;
  args->num_addressable_devices = 1;
  return nullptr;
}

PJRT_Error* LoadedLogicalIds(PJRT_LoadedExecutable_AddressableDeviceLogicalIds_Args* args) {
  static constexpr PJRT_LogicalDeviceIds kIds[] = {{0, 0}};
  args->addressable_device_logical_ids = kIds;
  args->num_addressable_device_logical_ids = 1;
  return nullptr;
}

PJRT_Error* LoadedDeviceAssignment(PJRT_LoadedExecutable_GetDeviceAssignment_Args* args) {
  args->serialized_bytes = args->executable->program->assignment.data();
  args->serialized_bytes_size = args->executable->program->assignment.size();
  args->serialized_device_assignment = nullptr;
  args->serialized_device_assignment_deleter = [](PJRT_DeviceAssignmentSerialized*) {};
  return nullptr;
}

PJRT_Error* LoadedDelete(PJRT_LoadedExecutable_Delete_Args* args) {
  args->executable->deleted = true;
  return nullptr;
}

PJRT_Error* LoadedIsDeleted(PJRT_LoadedExecutable_IsDeleted_Args* args) {
  args->is_deleted = args->executable->deleted;
  return nullptr;
}

PJRT_Error* LoadedFingerprint(PJRT_LoadedExecutable_Fingerprint_Args* args) {
  args->executable_fingerprint = args->executable->program->fingerprint.c_str();
  args->executable_fingerprint_size = args->executable->program->fingerprint.size();
  return nullptr;
}

}  // namespace kiln_jax
