// Sizes and offsets of the interface of foreign functions, in the header that KILN_TEST_HEADER
// names: the plugin's or jaxlib's. ffi_test.py compares what both print. An older header has other
// names, and lacks additions.
#include KILN_TEST_HEADER
#if XLA_FFI_API_MINOR < 4
#define XLA_FFI_InternalExtension XLA_FFI_Extension_Base
#define XLA_FFI_Error_GetDetails XLA_FFI_Error_GetMessage
#define XLA_FFI_Error_GetDetails_Args XLA_FFI_Error_GetMessage_Args
#define XLA_FFI_InvokeContext_Get XLA_FFI_ExecutionContext_Get
#define XLA_FFI_InvokeContext_Get_Args XLA_FFI_ExecutionContext_Get_Args
#endif
#if XLA_FFI_API_MINOR < 3
#define KilnFfiStateArgsOf02 XLA_FFI_State_Get_Args
#endif

#include <cstddef>
#include <cstdio>

#define SIZE(type) std::printf("%s %zu\n", #type, sizeof(type))
#define FIELD(type, field)                                             \
  std::printf("%s.%s %zu %zu\n", #type, #field, offsetof(type, field), \
              sizeof(static_cast<type*>(nullptr)->field))
#define NUMBER(name) std::printf("%s %zu\n", #name, static_cast<size_t>(name))

int main() {
  SIZE(XLA_FFI_InternalExtension);
  FIELD(XLA_FFI_InternalExtension, struct_size);
  FIELD(XLA_FFI_InternalExtension, type);
  FIELD(XLA_FFI_InternalExtension, next);
  SIZE(XLA_FFI_Api_Version);
  FIELD(XLA_FFI_Api_Version, struct_size);
  FIELD(XLA_FFI_Api_Version, extension_start);
  FIELD(XLA_FFI_Api_Version, major_version);
  FIELD(XLA_FFI_Api_Version, minor_version);
  SIZE(XLA_FFI_Error_Create_Args);
  FIELD(XLA_FFI_Error_Create_Args, struct_size);
  FIELD(XLA_FFI_Error_Create_Args, extension_start);
  FIELD(XLA_FFI_Error_Create_Args, message);
  FIELD(XLA_FFI_Error_Create_Args, errc);
  FIELD(XLA_FFI_Error_GetDetails_Args, struct_size);
  FIELD(XLA_FFI_Error_GetDetails_Args, extension_start);
  FIELD(XLA_FFI_Error_GetDetails_Args, error);
  FIELD(XLA_FFI_Error_GetDetails_Args, message);
  SIZE(XLA_FFI_Error_Destroy_Args);
  FIELD(XLA_FFI_Error_Destroy_Args, struct_size);
  FIELD(XLA_FFI_Error_Destroy_Args, extension_start);
  FIELD(XLA_FFI_Error_Destroy_Args, error);
  SIZE(XLA_FFI_Buffer);
  FIELD(XLA_FFI_Buffer, struct_size);
  FIELD(XLA_FFI_Buffer, extension_start);
  FIELD(XLA_FFI_Buffer, dtype);
  FIELD(XLA_FFI_Buffer, data);
  FIELD(XLA_FFI_Buffer, rank);
  FIELD(XLA_FFI_Buffer, dims);
  SIZE(XLA_FFI_ByteSpan);
  FIELD(XLA_FFI_ByteSpan, ptr);
  FIELD(XLA_FFI_ByteSpan, len);
  SIZE(XLA_FFI_Scalar);
  FIELD(XLA_FFI_Scalar, dtype);
  FIELD(XLA_FFI_Scalar, value);
  SIZE(XLA_FFI_Array);
  FIELD(XLA_FFI_Array, dtype);
  FIELD(XLA_FFI_Array, size);
  FIELD(XLA_FFI_Array, data);
  SIZE(XLA_FFI_TypeId);
  FIELD(XLA_FFI_TypeId, type_id);
  SIZE(XLA_FFI_TypeInfo);
  FIELD(XLA_FFI_TypeInfo, struct_size);
  FIELD(XLA_FFI_TypeInfo, extension_start);
  FIELD(XLA_FFI_TypeInfo, deleter);
  SIZE(XLA_FFI_Future_Create_Args);
  FIELD(XLA_FFI_Future_Create_Args, struct_size);
  FIELD(XLA_FFI_Future_Create_Args, extension_start);
  FIELD(XLA_FFI_Future_Create_Args, future);
  SIZE(XLA_FFI_Future_SetAvailable_Args);
  FIELD(XLA_FFI_Future_SetAvailable_Args, struct_size);
  FIELD(XLA_FFI_Future_SetAvailable_Args, extension_start);
  FIELD(XLA_FFI_Future_SetAvailable_Args, future);
  SIZE(XLA_FFI_Future_SetError_Args);
  FIELD(XLA_FFI_Future_SetError_Args, struct_size);
  FIELD(XLA_FFI_Future_SetError_Args, extension_start);
  FIELD(XLA_FFI_Future_SetError_Args, future);
  FIELD(XLA_FFI_Future_SetError_Args, error);
  SIZE(XLA_FFI_Args);
  FIELD(XLA_FFI_Args, struct_size);
  FIELD(XLA_FFI_Args, extension_start);
  FIELD(XLA_FFI_Args, size);
  FIELD(XLA_FFI_Args, types);
  FIELD(XLA_FFI_Args, args);
  SIZE(XLA_FFI_Rets);
  FIELD(XLA_FFI_Rets, struct_size);
  FIELD(XLA_FFI_Rets, extension_start);
  FIELD(XLA_FFI_Rets, size);
  FIELD(XLA_FFI_Rets, types);
  FIELD(XLA_FFI_Rets, rets);
  SIZE(XLA_FFI_Attrs);
  FIELD(XLA_FFI_Attrs, struct_size);
  FIELD(XLA_FFI_Attrs, extension_start);
  FIELD(XLA_FFI_Attrs, size);
  FIELD(XLA_FFI_Attrs, types);
  FIELD(XLA_FFI_Attrs, names);
  FIELD(XLA_FFI_Attrs, attrs);
  SIZE(XLA_FFI_CallFrame);
  FIELD(XLA_FFI_CallFrame, struct_size);
  FIELD(XLA_FFI_CallFrame, extension_start);
  FIELD(XLA_FFI_CallFrame, api);
  FIELD(XLA_FFI_CallFrame, ctx);
  FIELD(XLA_FFI_CallFrame, stage);
  FIELD(XLA_FFI_CallFrame, args);
  FIELD(XLA_FFI_CallFrame, rets);
  FIELD(XLA_FFI_CallFrame, attrs);
  FIELD(XLA_FFI_CallFrame, future);
  FIELD(XLA_FFI_Handler_Bundle, instantiate);
  FIELD(XLA_FFI_Handler_Bundle, prepare);
  FIELD(XLA_FFI_Handler_Bundle, initialize);
  FIELD(XLA_FFI_Handler_Bundle, execute);
  FIELD(XLA_FFI_Handler_Register_Args, struct_size);
  FIELD(XLA_FFI_Handler_Register_Args, extension_start);
  FIELD(XLA_FFI_Handler_Register_Args, name);
  FIELD(XLA_FFI_Handler_Register_Args, platform);
  SIZE(XLA_FFI_Type_Register_Args);
  FIELD(XLA_FFI_Type_Register_Args, struct_size);
  FIELD(XLA_FFI_Type_Register_Args, extension_start);
  FIELD(XLA_FFI_Type_Register_Args, name);
  FIELD(XLA_FFI_Type_Register_Args, type_id);
  FIELD(XLA_FFI_Type_Register_Args, type_info);
  SIZE(XLA_FFI_InvokeContext_Get_Args);
  FIELD(XLA_FFI_InvokeContext_Get_Args, struct_size);
  FIELD(XLA_FFI_InvokeContext_Get_Args, extension_start);
  FIELD(XLA_FFI_InvokeContext_Get_Args, ctx);
  FIELD(XLA_FFI_InvokeContext_Get_Args, type_id);
  FIELD(XLA_FFI_InvokeContext_Get_Args, data);
  SIZE(XLA_FFI_Stream_Get_Args);
  FIELD(XLA_FFI_Stream_Get_Args, struct_size);
  FIELD(XLA_FFI_Stream_Get_Args, extension_start);
  FIELD(XLA_FFI_Stream_Get_Args, ctx);
  FIELD(XLA_FFI_Stream_Get_Args, stream);
  SIZE(XLA_FFI_DeviceMemory_Allocate_Args);
  FIELD(XLA_FFI_DeviceMemory_Allocate_Args, struct_size);
  FIELD(XLA_FFI_DeviceMemory_Allocate_Args, extension_start);
  FIELD(XLA_FFI_DeviceMemory_Allocate_Args, ctx);
  FIELD(XLA_FFI_DeviceMemory_Allocate_Args, size);
  FIELD(XLA_FFI_DeviceMemory_Allocate_Args, alignment);
  FIELD(XLA_FFI_DeviceMemory_Allocate_Args, data);
  SIZE(XLA_FFI_DeviceMemory_Free_Args);
  FIELD(XLA_FFI_DeviceMemory_Free_Args, struct_size);
  FIELD(XLA_FFI_DeviceMemory_Free_Args, extension_start);
  FIELD(XLA_FFI_DeviceMemory_Free_Args, ctx);
  FIELD(XLA_FFI_DeviceMemory_Free_Args, size);
  FIELD(XLA_FFI_DeviceMemory_Free_Args, data);
  SIZE(XLA_FFI_ThreadPool_Schedule_Args);
  FIELD(XLA_FFI_ThreadPool_Schedule_Args, struct_size);
  FIELD(XLA_FFI_ThreadPool_Schedule_Args, extension_start);
  FIELD(XLA_FFI_ThreadPool_Schedule_Args, ctx);
  FIELD(XLA_FFI_ThreadPool_Schedule_Args, task);
  FIELD(XLA_FFI_ThreadPool_Schedule_Args, data);
  SIZE(XLA_FFI_ThreadPool_NumThreads_Args);
  FIELD(XLA_FFI_ThreadPool_NumThreads_Args, struct_size);
  FIELD(XLA_FFI_ThreadPool_NumThreads_Args, extension_start);
  FIELD(XLA_FFI_ThreadPool_NumThreads_Args, ctx);
  FIELD(XLA_FFI_ThreadPool_NumThreads_Args, num_threads);
  SIZE(XLA_FFI_RunId_Get_Args);
  FIELD(XLA_FFI_RunId_Get_Args, struct_size);
  FIELD(XLA_FFI_RunId_Get_Args, extension_start);
  FIELD(XLA_FFI_RunId_Get_Args, ctx);
  FIELD(XLA_FFI_RunId_Get_Args, run_id);
  SIZE(XLA_FFI_DeviceOrdinal_Get_Args);
  FIELD(XLA_FFI_DeviceOrdinal_Get_Args, struct_size);
  FIELD(XLA_FFI_DeviceOrdinal_Get_Args, extension_start);
  FIELD(XLA_FFI_DeviceOrdinal_Get_Args, ctx);
  FIELD(XLA_FFI_DeviceOrdinal_Get_Args, device_ordinal);
  SIZE(XLA_FFI_Metadata);
  FIELD(XLA_FFI_Metadata, struct_size);
  FIELD(XLA_FFI_Metadata, api_version);
  FIELD(XLA_FFI_Metadata, traits);
  FIELD(XLA_FFI_Metadata, state_type_id);
  SIZE(XLA_FFI_Metadata_Extension);
  FIELD(XLA_FFI_Metadata_Extension, extension_base);
  FIELD(XLA_FFI_Metadata_Extension, metadata);
  FIELD(XLA_FFI_Api, struct_size);
  FIELD(XLA_FFI_Api, extension_start);
  FIELD(XLA_FFI_Api, api_version);
  FIELD(XLA_FFI_Api, internal_api);
  FIELD(XLA_FFI_Api, XLA_FFI_Error_Create);
  FIELD(XLA_FFI_Api, XLA_FFI_Error_GetDetails);
  FIELD(XLA_FFI_Api, XLA_FFI_Error_Destroy);
  FIELD(XLA_FFI_Api, XLA_FFI_Handler_Register);
  FIELD(XLA_FFI_Api, XLA_FFI_Stream_Get);
  FIELD(XLA_FFI_Api, XLA_FFI_Type_Register);
  FIELD(XLA_FFI_Api, XLA_FFI_InvokeContext_Get);
  FIELD(XLA_FFI_Api, XLA_FFI_State_Set);
  FIELD(XLA_FFI_Api, XLA_FFI_State_Get);
  FIELD(XLA_FFI_Api, XLA_FFI_DeviceMemory_Allocate);
  FIELD(XLA_FFI_Api, XLA_FFI_DeviceMemory_Free);
  FIELD(XLA_FFI_Api, XLA_FFI_ThreadPool_Schedule);
  FIELD(XLA_FFI_Api, XLA_FFI_ThreadPool_NumThreads);
  FIELD(XLA_FFI_Api, XLA_FFI_Future_Create);
  FIELD(XLA_FFI_Api, XLA_FFI_Future_SetAvailable);
  FIELD(XLA_FFI_Api, XLA_FFI_Future_SetError);
  FIELD(XLA_FFI_Api, XLA_FFI_RunId_Get);
  FIELD(XLA_FFI_Api, XLA_FFI_DeviceOrdinal_Get);
  NUMBER(XLA_FFI_Extension_Metadata);
  NUMBER(XLA_FFI_Error_Code_INVALID_ARGUMENT);
  NUMBER(XLA_FFI_Error_Code_NOT_FOUND);
  NUMBER(XLA_FFI_Error_Code_ALREADY_EXISTS);
  NUMBER(XLA_FFI_Error_Code_RESOURCE_EXHAUSTED);
  NUMBER(XLA_FFI_Error_Code_FAILED_PRECONDITION);
  NUMBER(XLA_FFI_Error_Code_UNIMPLEMENTED);
  NUMBER(XLA_FFI_ArgType_BUFFER);
  NUMBER(XLA_FFI_RetType_BUFFER);
  NUMBER(XLA_FFI_AttrType_ARRAY);
  NUMBER(XLA_FFI_AttrType_DICTIONARY);
  NUMBER(XLA_FFI_AttrType_SCALAR);
  NUMBER(XLA_FFI_AttrType_STRING);
  NUMBER(XLA_FFI_ExecutionStage_INSTANTIATE);
  NUMBER(XLA_FFI_ExecutionStage_PREPARE);
  NUMBER(XLA_FFI_ExecutionStage_INITIALIZE);
  NUMBER(XLA_FFI_ExecutionStage_EXECUTE);
#if XLA_FFI_API_MINOR < 3 || defined(KILN_JAX_PLUGIN_FFI_API_H_)
  SIZE(KilnFfiStateArgsOf02);
  FIELD(KilnFfiStateArgsOf02, struct_size);
  FIELD(KilnFfiStateArgsOf02, extension_start);
  FIELD(KilnFfiStateArgsOf02, ctx);
  FIELD(KilnFfiStateArgsOf02, type_id);
  FIELD(KilnFfiStateArgsOf02, state);
#endif
#if XLA_FFI_API_MINOR >= 3
  SIZE(XLA_FFI_State_Set_Args);
  FIELD(XLA_FFI_State_Set_Args, struct_size);
  FIELD(XLA_FFI_State_Set_Args, extension_start);
  FIELD(XLA_FFI_State_Set_Args, ctx);
  FIELD(XLA_FFI_State_Set_Args, stage);
  FIELD(XLA_FFI_State_Set_Args, type_id);
  FIELD(XLA_FFI_State_Set_Args, state);
  SIZE(XLA_FFI_State_Get_Args);
  FIELD(XLA_FFI_State_Get_Args, struct_size);
  FIELD(XLA_FFI_State_Get_Args, extension_start);
  FIELD(XLA_FFI_State_Get_Args, ctx);
  FIELD(XLA_FFI_State_Get_Args, stage);
  FIELD(XLA_FFI_State_Get_Args, type_id);
  FIELD(XLA_FFI_State_Get_Args, state);
#endif
#if XLA_FFI_API_MINOR >= 4
  SIZE(XLA_FFI_Error_GetDetails_Args);
  FIELD(XLA_FFI_Error_GetDetails_Args, errc);
  SIZE(XLA_FFI_Handler_Bundle);
  FIELD(XLA_FFI_Handler_Bundle, record);
  SIZE(XLA_FFI_Handler_Register_Args);
  FIELD(XLA_FFI_Handler_Register_Args, bundle);
  FIELD(XLA_FFI_Handler_Register_Args, traits);
  SIZE(XLA_FFI_ExtensionId);
  FIELD(XLA_FFI_ExtensionId, extension_type);
  FIELD(XLA_FFI_ExtensionId, major_version);
  FIELD(XLA_FFI_ExtensionId, minor_version);
  SIZE(XLA_FFI_Extension);
  FIELD(XLA_FFI_Extension, struct_size);
  FIELD(XLA_FFI_Extension, id);
  FIELD(XLA_FFI_Extension, next);
  SIZE(XLA_FFI_InvokeContext_FindExtension_Args);
  FIELD(XLA_FFI_InvokeContext_FindExtension_Args, struct_size);
  FIELD(XLA_FFI_InvokeContext_FindExtension_Args, extension_start);
  FIELD(XLA_FFI_InvokeContext_FindExtension_Args, ctx);
  FIELD(XLA_FFI_InvokeContext_FindExtension_Args, extension_type);
  FIELD(XLA_FFI_InvokeContext_FindExtension_Args, extension);
  FIELD(XLA_FFI_Api, XLA_FFI_InvokeContext_FindExtension);
#endif
#if XLA_FFI_API_MINOR >= 5
  SIZE(XLA_FFI_CustomOptions_Get_Args);
  FIELD(XLA_FFI_CustomOptions_Get_Args, struct_size);
  FIELD(XLA_FFI_CustomOptions_Get_Args, extension_start);
  FIELD(XLA_FFI_CustomOptions_Get_Args, ctx);
  FIELD(XLA_FFI_CustomOptions_Get_Args, attrs);
  FIELD(XLA_FFI_Api, XLA_FFI_CustomOptions_Get);
  SIZE(XLA_FFI_Api);
#endif
  return 0;
}
