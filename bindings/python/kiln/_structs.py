"""The structs of the C ABI; the headers say what their fields mean."""

import ctypes
from ctypes import (POINTER, c_char_p, c_double, c_int32, c_int64, c_size_t, c_uint64,
                    c_void_p)

LogFunction = ctypes.CFUNCTYPE(None, c_void_p, c_int32, c_void_p, c_size_t)
DestroyFunction = ctypes.CFUNCTYPE(None, c_void_p)
ReadyFunction = ctypes.CFUNCTYPE(None, c_void_p, c_void_p)
CallFunction = ctypes.CFUNCTYPE(c_void_p, c_void_p, c_void_p)


class Output(ctypes.Structure):
    """A struct that the library fills in."""

    def __init__(self) -> None:
        super().__init__()
        self.struct_size = ctypes.sizeof(self)


class Shape(Output):
    """kiln_shape"""

    _fields_ = [('struct_size', c_size_t),
                ('dtype', c_int32),
                ('reserved', c_int32),
                ('rank', c_size_t),
                ('dims', POINTER(c_int64)),
                ('byte_size', c_int64)]


class MemoryInfo(Output):
    """kiln_memory_info"""

    _fields_ = [('struct_size', c_size_t),
                ('live_bytes', c_int64),
                ('peak_bytes', c_int64),
                ('limit_bytes', c_int64)]


class CacheInfo(Output):
    """kiln_cache_info"""

    _fields_ = [('struct_size', c_size_t),
                ('hits', c_int64),
                ('misses', c_int64),
                ('written', c_int64),
                ('evicted', c_int64),
                ('failed', c_int64),
                ('read_bytes', c_int64),
                ('written_bytes', c_int64),
                ('folder_bytes', c_int64),
                ('limit_bytes', c_int64)]


class ProgramInfo(Output):
    """kiln_program_info"""

    _fields_ = [('struct_size', c_size_t),
                ('kernels', c_int64),
                ('temporary_bytes', c_int64),
                ('compile_microseconds', c_int64)]


class ProgramMemory(Output):
    """kiln_program_memory"""

    _fields_ = [('struct_size', c_size_t),
                ('code_bytes', c_int64),
                ('argument_bytes', c_int64),
                ('output_bytes', c_int64),
                ('alias_bytes', c_int64),
                ('temporary_bytes', c_int64),
                ('scratch_bytes', c_int64),
                ('constant_bytes', c_int64),
                ('peak_bytes', c_int64),
                ('frozen_bytes', c_int64)]


class ProgramCost(Output):
    """kiln_program_cost"""

    _fields_ = [('struct_size', c_size_t),
                ('flops', c_int64),
                ('transcendentals', c_int64),
                ('bytes_accessed', c_int64),
                ('partial', c_int64)]


class CallArray(ctypes.Structure):
    """kiln_call_array"""

    _fields_ = [('struct_size', c_size_t),
                ('dtype', c_int32),
                ('reserved', c_int32),
                ('rank', c_size_t),
                ('dims', POINTER(c_int64)),
                ('data', c_void_p),
                ('byte_size', c_int64),
                ('minor_to_major', POINTER(c_int64))]


class CallAttribute(ctypes.Structure):
    """kiln_call_attribute"""


CallAttribute._fields_ = [('struct_size', c_size_t),
                          ('name', c_void_p),
                          ('name_length', c_size_t),
                          ('kind', c_int32),
                          ('dtype', c_int32),
                          ('count', c_size_t),
                          ('data', c_void_p),
                          ('members', POINTER(POINTER(CallAttribute)))]


class CustomCall(ctypes.Structure):
    """kiln_custom_call"""

    _fields_ = [('struct_size', c_size_t),
                ('target', c_void_p),
                ('target_length', c_size_t),
                ('backend_config', c_void_p),
                ('backend_config_length', c_size_t),
                ('operands', POINTER(POINTER(CallArray))),
                ('operand_count', c_size_t),
                ('results', POINTER(POINTER(CallArray))),
                ('result_count', c_size_t),
                ('api_version', c_int32),
                ('has_side_effect', c_int32),
                ('attributes', POINTER(POINTER(CallAttribute))),
                ('attribute_count', c_size_t),
                ('aliases', POINTER(c_int64)),
                ('state', c_void_p)]


class CallHandler(ctypes.Structure):
    """kiln_call_handler"""

    _fields_ = [('struct_size', c_size_t),
                ('execute', c_void_p),
                ('instantiate', c_void_p),
                ('destroy_state', c_void_p),
                ('user_data', c_void_p),
                ('destroy', c_void_p)]


class CustomCallOptions(ctypes.Structure):
    """kiln_custom_call_options"""

    _fields_ = [('struct_size', c_size_t),
                ('backend_config', c_char_p),
                ('backend_config_length', c_size_t),
                ('aliases', POINTER(c_int64)),
                ('alias_count', c_size_t),
                ('has_side_effect', c_int32),
                ('api_version', c_int32),
                ('operand_layouts', POINTER(c_int64)),
                ('operand_layout_count', c_size_t),
                ('result_layouts', POINTER(c_int64)),
                ('result_layout_count', c_size_t)]


class AttentionOptions(ctypes.Structure):
    """kiln_attention_options"""

    _fields_ = [('struct_size', c_size_t),
                ('scale', c_double),
                ('causal', c_int32),
                ('reserved', c_int32),
                ('mask', c_uint64),
                ('bias', c_uint64)]


class GradientOptions(ctypes.Structure):
    """kiln_gradient_options"""

    _fields_ = [('struct_size', c_size_t),
                ('recompute_loops', c_int32),
                ('reserved', c_int32)]


class GradientCall(ctypes.Structure):
    """kiln_gradient_call"""

    _fields_ = [('struct_size', c_size_t),
                ('target', c_char_p),
                ('target_length', c_size_t),
                ('backend_config', c_char_p),
                ('backend_config_length', c_size_t),
                ('operands', POINTER(c_uint64)),
                ('operand_count', c_size_t),
                ('results', POINTER(c_uint64)),
                ('result_count', c_size_t),
                ('cotangents', POINTER(c_uint64)),
                ('gradients', POINTER(c_uint64))]


class StablehloOptions(ctypes.Structure):
    """kiln_stablehlo_options"""

    _fields_ = [('struct_size', c_size_t),
                ('entry', c_char_p),
                ('entry_length', c_size_t),
                ('arguments', POINTER(POINTER(Shape))),
                ('argument_count', c_size_t),
                ('cancel', POINTER(c_int32)),
                ('timeout_ns', c_int64)]


class SymbolSize(ctypes.Structure):
    """kiln_symbol_size"""

    _fields_ = [('name', c_char_p),
                ('name_length', c_size_t),
                ('size', c_int64)]


class ContextOptions(ctypes.Structure):
    """kiln_context_options"""

    _fields_ = [('struct_size', c_size_t),
                ('threads', c_int32),
                ('callbacks_from_any_thread', c_int32),
                ('allocate', c_void_p),
                ('deallocate', c_void_p),
                ('allocator_user_data', c_void_p),
                ('allocator_destroy', c_void_p),
                ('log', LogFunction),
                ('log_user_data', c_void_p),
                ('log_destroy', DestroyFunction),
                ('log_level', c_int32),
                ('gpu', c_int32),
                ('gpu_memory_bytes', c_int64),
                ('cache_folder', c_char_p),
                ('cache_folder_length', c_size_t),
                ('gpu_library', c_int32),
                ('cpu_devices', c_int32),
                ('cache_bytes', c_int64),
                ('run_tasks', c_void_p),
                ('pool_user_data', c_void_p),
                ('pool_destroy', c_void_p)]


class Alias(ctypes.Structure):
    """kiln_alias"""

    _fields_ = [('result', c_size_t),
                ('argument', c_size_t),
                ('must', c_int32),
                ('reserved', c_int32)]


class CompileOptions(ctypes.Structure):
    """kiln_compile_options"""

    _fields_ = [('struct_size', c_size_t),
                ('device', c_void_p),
                ('replicas', c_int32),
                ('partitions', c_int32),
                ('symbols', POINTER(SymbolSize)),
                ('symbol_count', c_size_t),
                ('disabled_passes', c_char_p),
                ('disabled_passes_length', c_size_t),
                ('verify', c_int32),
                ('dump_ptx_sm', c_int32),
                ('dump_folder', c_char_p),
                ('dump_folder_length', c_size_t),
                ('aliases', POINTER(Alias)),
                ('alias_count', c_size_t),
                ('optimization', c_int32),
                ('allow_tf32', c_int32),
                ('cancel', POINTER(c_int32)),
                ('timeout_ns', c_int64),
                ('dump_large_constants', c_int32),
                ('dump_forms', c_int32),
                ('donors', POINTER(c_size_t)),
                ('donor_count', c_size_t),
                ('frozen', POINTER(c_size_t)),
                ('frozen_count', c_size_t),
                ('frozen_names', c_char_p),
                ('frozen_names_length', c_size_t),
                ('memory_limit_bytes', c_int64),
                ('allow_bf16', c_int32),
                ('keep_subnormals', c_int32),
                ('takes_graph', c_int32)]


class ExecuteOptions(ctypes.Structure):
    """kiln_execute_options"""

    _fields_ = [('struct_size', c_size_t),
                ('threads', c_int32),
                ('donate_aliased', c_int32),
                ('cancel', POINTER(c_int32)),
                ('donated', POINTER(c_size_t)),
                ('donated_count', c_size_t),
                ('kept', POINTER(c_size_t)),
                ('kept_count', c_size_t),
                ('stream', c_void_p),
                ('timeout_ns', c_int64),
                ('trace', c_void_p)]


class NamedBuffer(ctypes.Structure):
    """kiln_named_buffer"""

    _fields_ = [('name', c_char_p),
                ('name_length', c_size_t),
                ('buffer', c_void_p)]


class TextPair(ctypes.Structure):
    """kiln_text_pair"""

    _fields_ = [('key', c_char_p),
                ('key_length', c_size_t),
                ('value', c_char_p),
                ('value_length', c_size_t)]


class SafetensorsOptions(ctypes.Structure):
    """kiln_safetensors_options"""

    _fields_ = [('struct_size', c_size_t),
                ('metadata', POINTER(TextPair)),
                ('metadata_count', c_size_t)]


class SessionOptions(ctypes.Structure):
    """kiln_session_options"""

    _fields_ = [('struct_size', c_size_t),
                ('device', c_void_p),
                ('jit', c_int32),
                ('soft_placement', c_int32),
                ('min_cluster_size', c_int64),
                ('max_cluster_size', c_int64),
                ('cluster_fuel', c_int64),
                ('ops_to_cluster', c_char_p),
                ('ops_to_cluster_length', c_size_t),
                ('cluster_exclude_ops', c_char_p),
                ('cluster_exclude_ops_length', c_size_t),
                ('no_cpu_clustering', c_int32),
                ('lazy', c_int32),
                ('asynchronous_compilation', c_int32),
                ('strict', c_int32),
                ('memory_limit_bytes', c_int64)]


class OpMetadata(Output):
    """kiln_op_metadata"""

    _fields_ = [('struct_size', c_size_t),
                ('op', c_char_p),
                ('op_length', c_size_t),
                ('device', c_char_p),
                ('device_length', c_size_t),
                ('kind', c_char_p),
                ('count', c_int64),
                ('nanoseconds', c_int64),
                ('bytes', c_int64),
                ('flops', c_int64)]


class FunctionOptions(ctypes.Structure):
    """kiln_function_options"""

    _fields_ = [('struct_size', c_size_t),
                ('device', c_void_p),
                ('must_compile', c_int32),
                ('lazy', c_int32),
                ('max_programs', c_int64),
                ('asynchronous_compilation', c_int32),
                ('reserved', c_int32)]


class FunctionInfo(Output):
    """kiln_function_info"""

    _fields_ = [('struct_size', c_size_t),
                ('calls', c_int64),
                ('compiles', c_int64),
                ('fallbacks', c_int64),
                ('evictions', c_int64),
                ('programs', c_int64)]


class ScheduleOptions(ctypes.Structure):
    """kiln_schedule_options"""

    _fields_ = [('struct_size', c_size_t),
                ('kind', c_int32),
                ('reserved', c_int32),
                ('start', c_double),
                ('peak', c_double),
                ('end', c_double),
                ('warmup_steps', c_int64),
                ('steps', c_int64)]


class OptimizerOptions(ctypes.Structure):
    """kiln_optimizer_options"""

    _fields_ = [('struct_size', c_size_t),
                ('kind', c_int32),
                ('nesterov', c_int32),
                ('momentum', c_double),
                ('beta1', c_double),
                ('beta2', c_double),
                ('epsilon', c_double),
                ('weight_decay', c_double),
                ('initial_sum', c_double),
                ('clip_threshold', c_double),
                ('centered', c_int32),
                ('master_weights', c_int32),
                ('decayed', POINTER(c_int32)),
                ('decayed_count', c_size_t)]


class LossScaleOptions(ctypes.Structure):
    """kiln_loss_scale_options"""

    _fields_ = [('struct_size', c_size_t),
                ('initial', c_double),
                ('growth', c_double),
                ('backoff', c_double),
                ('interval', c_int64)]


class InitializerOptions(ctypes.Structure):
    """kiln_initializer_options"""

    _fields_ = [('struct_size', c_size_t),
                ('kind', c_int32),
                ('reserved', c_int32),
                ('seed', c_int64),
                ('scale', c_double),
                ('in_dimension', c_int64),
                ('out_dimension', c_int64)]
