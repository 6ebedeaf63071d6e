/** @file
 *  Arguments of the functions on errors, on the plugin, and on events. */
#ifndef KILN_JAX_PLUGIN_API_EVENT_H_
#define KILN_JAX_PLUGIN_API_EVENT_H_

#include "plugin/api/types.h"

using PJRT_Event_OnReadyCallback = void (*)(PJRT_Error* error, void* user_arg);
using PJRT_Error_PayloadVisitor = void (*)(const char* key, size_t key_size, const char* value,
                                           size_t value_size, void* user_arg);

struct PJRT_Error_Destroy_Args {
  size_t struct_size;
  void* extension_start;
  PJRT_Error* error;
};

struct PJRT_Error_Message_Args {
  size_t struct_size;
  void* extension_start;
  const PJRT_Error* error;
  const char* message;
  size_t message_size;
};

struct PJRT_Error_GetCode_Args {
  size_t struct_size;
  void* extension_start;
  const PJRT_Error* error;
  PJRT_Error_Code code;
};

struct PJRT_Error_ForEachPayload_Args {
  size_t struct_size;
  void* extension_start;
  const PJRT_Error* error;
  PJRT_Error_PayloadVisitor visitor;
  void* user_arg;
};

struct PJRT_Plugin_Initialize_Args {
  size_t struct_size;
  void* extension_start;
};

struct PJRT_Plugin_Attributes_Args {
  size_t struct_size;
  void* extension_start;
  const PJRT_NamedValue* attributes;
  size_t num_attributes;
};

struct PJRT_Event_Destroy_Args {
  size_t struct_size;
  void* extension_start;
  PJRT_Event* event;
};

struct PJRT_Event_IsReady_Args {
  size_t struct_size;
  void* extension_start;
  PJRT_Event* event;
  bool is_ready;
};

struct PJRT_Event_Error_Args {
  size_t struct_size;
  void* extension_start;
  PJRT_Event* event;
};

struct PJRT_Event_Await_Args {
  size_t struct_size;
  void* extension_start;
  PJRT_Event* event;
};

struct PJRT_Event_OnReady_Args {
  size_t struct_size;
  void* extension_start;
  PJRT_Event* event;
  PJRT_Event_OnReadyCallback callback;
  void* user_arg;
};

#endif  // KILN_JAX_PLUGIN_API_EVENT_H_
