// The functions that handlers call.
#include "plugin/ffi/table.h"

#include <condition_variable>
#include <cstddef>
#include <cstdlib>
#include <map>
#include <mutex>
#include <new>
#include <utility>

#include "plugin/ffi/task_pool.h"

namespace kiln_jax {
namespace {

struct Outcome {
  std::mutex mutex;
  std::condition_variable changed;
  bool is_there = false;
  XLA_FFI_Error* error = nullptr;
};

}  // namespace
}  // namespace kiln_jax

struct XLA_FFI_Future {
  std::shared_ptr<kiln_jax::Outcome> outcome = std::make_shared<kiln_jax::Outcome>();
};

namespace kiln_jax {
namespace {

/** The static error for a failure of an allocation. */
XLA_FFI_Error* NoMemory() {
  static XLA_FFI_Error error{XLA_FFI_Error_Code_RESOURCE_EXHAUSTED, "out of memory"};
  return &error;
}

XLA_FFI_Error* Make(XLA_FFI_Error_Code code, std::string message) {
  XLA_FFI_Error* error = new (std::nothrow) XLA_FFI_Error{code, std::move(message)};
  return error == nullptr ? NoMemory() : error;
}

void Destroy(XLA_FFI_Error* error) {
  if (error != NoMemory()) delete error;
}

XLA_FFI_Error* ErrorCreate(XLA_FFI_Error_Create_Args* args) {
  try {
    return Make(args->errc, args->message == nullptr ? "" : args->message);
  } catch (const std::bad_alloc&) {
    return NoMemory();
  }
}

void ErrorGetDetails(XLA_FFI_Error_GetDetails_Args* args) {
  args->message = args->error->message.c_str();
  if (args->struct_size > offsetof(XLA_FFI_Error_GetDetails_Args, errc)) {
    args->errc = args->error->code;
  }
}

void ErrorDestroy(XLA_FFI_Error_Destroy_Args* args) { Destroy(args->error); }

/** The user's types, by name. */
struct Types {
  struct Type {
    int64_t id = 0;
    void (*deleter)(void*) = nullptr;
  };
  std::mutex mutex;
  std::map<std::string, Type> by_name;
  // Far from those that XLA counts from 1: one type can be registered with both.
  int64_t next = int64_t{1} << 40;
};

Types& AllTypes() {
  static Types& types = *new Types;
  return types;
}

XLA_FFI_Error* HandlerRegister(XLA_FFI_Handler_Register_Args* args) {
  const XLA_FFI_Handler_Bundle& bundle = args->bundle;
  XLA_FFI_Handler* const handlers[] = {bundle.instantiate, bundle.prepare, bundle.initialize,
                                       bundle.execute};
  return RegisterFfiTarget({args->name.ptr, args->name.len}, handlers, 1);
}

XLA_FFI_Error* StreamGet(XLA_FFI_Stream_Get_Args*) {
  return Make(XLA_FFI_Error_Code_UNIMPLEMENTED, "Kiln's processor has no streams");
}

XLA_FFI_Error* TypeRegister(XLA_FFI_Type_Register_Args* args) {
  return RegisterFfiType({args->name.ptr, args->name.len}, args->type_id, args->type_info);
}

XLA_FFI_Error* InvokeContextGet(XLA_FFI_InvokeContext_Get_Args* args) {
  return Make(XLA_FFI_Error_Code_NOT_FOUND,
              "the execution has no data of the type " + std::to_string(args->type_id->type_id));
}

FfiState* StateOf(XLA_FFI_InvokeContext* context, XLA_FFI_ExecutionStage stage) {
  return stage < kFfiStages ? context->states[stage] : nullptr;
}

XLA_FFI_Error* SetState(FfiState* state, int64_t id, void* value) {
  if (state == nullptr) {
    return Make(XLA_FFI_Error_Code_INVALID_ARGUMENT, "the stage cannot have a state");
  }
  if (state->is_set()) {
    return Make(XLA_FFI_Error_Code_FAILED_PRECONDITION, "the stage has a state already");
  }
  Types& types = AllTypes();
  std::lock_guard lock(types.mutex);
  for (const auto& [name, type] : types.by_name) {
    if (type.id != id) continue;
    state->Set(id, type.deleter, value);
    return nullptr;
  }
  return Make(XLA_FFI_Error_Code_NOT_FOUND,
              "no type has the id " + std::to_string(id) +
                  "; jax.ffi.register_ffi_type with platform=\"kiln\" registers it");
}

XLA_FFI_Error* GetState(const FfiState* state, int64_t id, void** value) {
  if (state == nullptr || !state->is_set()) {
    return Make(XLA_FFI_Error_Code_NOT_FOUND, "the stage has no state");
  }
  if (state->type() != id) {
    return Make(XLA_FFI_Error_Code_INVALID_ARGUMENT, "the stage's state is of another type");
  }
  *value = state->state();
  return nullptr;
}

/** The arguments of a handler of version 0.2, or NULL: they are shorter. */
template <typename Args>
KilnFfiStateArgsOf02* Older(Args* args) {
  static_assert(sizeof(KilnFfiStateArgsOf02) < sizeof(Args));
  return args->struct_size < sizeof(Args) ? reinterpret_cast<KilnFfiStateArgsOf02*>(args) : nullptr;
}

XLA_FFI_Error* StateSet(XLA_FFI_State_Set_Args* args) {
  if (const KilnFfiStateArgsOf02* older = Older(args)) {
    return SetState(StateOf(older->ctx, XLA_FFI_ExecutionStage_INSTANTIATE),
                    older->type_id->type_id, older->state);
  }
  return SetState(StateOf(args->ctx, args->stage), args->type_id->type_id, args->state);
}

XLA_FFI_Error* StateGet(XLA_FFI_State_Get_Args* args) {
  if (KilnFfiStateArgsOf02* older = Older(args)) {
    return GetState(StateOf(older->ctx, XLA_FFI_ExecutionStage_INSTANTIATE),
                    older->type_id->type_id, &older->state);
  }
  return GetState(StateOf(args->ctx, args->stage), args->type_id->type_id, &args->state);
}

XLA_FFI_Error* MemoryAllocate(XLA_FFI_DeviceMemory_Allocate_Args* args) {
  const size_t alignment = args->alignment < sizeof(void*) ? sizeof(void*) : args->alignment;
  // Memory of no bytes has an address, too.
  if (posix_memalign(&args->data, alignment, args->size == 0 ? 1 : args->size) == 0) return nullptr;
  return Make(XLA_FFI_Error_Code_RESOURCE_EXHAUSTED,
              "cannot allocate " + std::to_string(args->size) + " bytes aligned to " +
                  std::to_string(alignment));
}

XLA_FFI_Error* MemoryFree(XLA_FFI_DeviceMemory_Free_Args* args) {
  std::free(args->data);
  return nullptr;
}

XLA_FFI_Error* PoolSchedule(XLA_FFI_ThreadPool_Schedule_Args* args) {
  ScheduleTask(args->task, args->data);
  return nullptr;
}

XLA_FFI_Error* PoolNumThreads(XLA_FFI_ThreadPool_NumThreads_Args* args) {
  *args->num_threads = TaskThreads();
  return nullptr;
}

XLA_FFI_Error* FutureCreate(XLA_FFI_Future_Create_Args* args) {
  args->future = new XLA_FFI_Future;
  return nullptr;
}

/** The future may be gone as soon as its outcome is known. */
void Fulfil(XLA_FFI_Future* future, XLA_FFI_Error* error) {
  const std::shared_ptr<Outcome> outcome = future->outcome;
  std::lock_guard lock(outcome->mutex);
  outcome->is_there = true;
  outcome->error = error;
  outcome->changed.notify_all();
}

XLA_FFI_Error* FutureSetAvailable(XLA_FFI_Future_SetAvailable_Args* args) {
  Fulfil(args->future, nullptr);
  return nullptr;
}

XLA_FFI_Error* FutureSetError(XLA_FFI_Future_SetError_Args* args) {
  Fulfil(args->future, args->error);
  return nullptr;
}

XLA_FFI_Error* RunIdGet(XLA_FFI_RunId_Get_Args* args) {
  args->run_id = args->ctx->run_id;
  return nullptr;
}

XLA_FFI_Error* DeviceOrdinalGet(XLA_FFI_DeviceOrdinal_Get_Args* args) {
  args->device_ordinal = 0;
  return nullptr;
}

/** Nothing is attached to executions. */
XLA_FFI_Error* FindExtension(XLA_FFI_InvokeContext_FindExtension_Args* args) {
  args->extension = nullptr;
  return nullptr;
}

/** Executions have no options of their own. */
XLA_FFI_Error* CustomOptionsGet(XLA_FFI_CustomOptions_Get_Args* args) {
  static const XLA_FFI_Attrs none = {sizeof(XLA_FFI_Attrs), nullptr, 0, nullptr, nullptr, nullptr};
  args->attrs = &none;
  return nullptr;
}

/** An entry of the table, whose exceptions are errors. */
template <typename Args, XLA_FFI_Error* (*function)(Args*)>
XLA_FFI_Error* Entry(Args* args) {
  try {
    return function(args);
  } catch (...) {
    return NoMemory();
  }
}

XLA_FFI_Api MakeApi() {
  XLA_FFI_Api api = {};
  api.struct_size = sizeof api;
  api.api_version = {sizeof(XLA_FFI_Api_Version), nullptr, XLA_FFI_API_MAJOR, XLA_FFI_API_MINOR};
  api.XLA_FFI_Error_Create = &ErrorCreate;
  api.XLA_FFI_Error_GetDetails = &ErrorGetDetails;
  api.XLA_FFI_Error_Destroy = &ErrorDestroy;
#define KILN_JAX_SET(name, function) api.XLA_FFI_##name = &Entry<XLA_FFI_##name##_Args, function>
  KILN_JAX_SET(Handler_Register, HandlerRegister);
  KILN_JAX_SET(Stream_Get, StreamGet);
  KILN_JAX_SET(Type_Register, TypeRegister);
  KILN_JAX_SET(InvokeContext_Get, InvokeContextGet);
  KILN_JAX_SET(State_Set, StateSet);
  KILN_JAX_SET(State_Get, StateGet);
  KILN_JAX_SET(DeviceMemory_Allocate, MemoryAllocate);
  KILN_JAX_SET(DeviceMemory_Free, MemoryFree);
  KILN_JAX_SET(ThreadPool_Schedule, PoolSchedule);
  KILN_JAX_SET(ThreadPool_NumThreads, PoolNumThreads);
  KILN_JAX_SET(Future_Create, FutureCreate);
  KILN_JAX_SET(Future_SetAvailable, FutureSetAvailable);
  KILN_JAX_SET(Future_SetError, FutureSetError);
  KILN_JAX_SET(RunId_Get, RunIdGet);
  KILN_JAX_SET(DeviceOrdinal_Get, DeviceOrdinalGet);
  KILN_JAX_SET(InvokeContext_FindExtension, FindExtension);
  KILN_JAX_SET(CustomOptions_Get, CustomOptionsGet);
#undef KILN_JAX_SET
  return api;
}

}  // namespace

FfiState::~FfiState() {
  if (state_ != nullptr && deleter_ != nullptr) deleter_(state_);
}

void FfiState::Set(int64_t type, void (*deleter)(void*), void* state) {
  type_ = type;
  deleter_ = deleter;
  state_ = state;
}

const XLA_FFI_Api* FfiApi() {
  static const XLA_FFI_Api api = MakeApi();
  return &api;
}

kiln_error* TakeFfiError(XLA_FFI_Error* error) {
  if (error == nullptr) return nullptr;
  kiln_error* made = kiln_error_create(static_cast<kiln_code>(error->code), error->message.data(),
                                       error->message.size());
  Destroy(error);
  return made;
}

kiln_error* AwaitFfiFuture(XLA_FFI_Future* future) {
  XLA_FFI_Error* error = nullptr;
  {
    std::unique_lock lock(future->outcome->mutex);
    future->outcome->changed.wait(lock, [&] { return future->outcome->is_there; });
    error = future->outcome->error;
  }
  delete future;
  return TakeFfiError(error);
}

XLA_FFI_Error* RegisterFfiType(const std::string& name, XLA_FFI_TypeId* id,
                               const XLA_FFI_TypeInfo* info) {
  Types& types = AllTypes();
  std::lock_guard lock(types.mutex);
  auto [it, is_new] = types.by_name.try_emplace(name);
  if (!is_new && id->type_id != 0 && id->type_id != it->second.id) {
    return Make(XLA_FFI_Error_Code_ALREADY_EXISTS,
                "the type \"" + name + "\" is registered with another id");
  }
  if (is_new) {
    it->second.id = id->type_id != 0 ? id->type_id : types.next++;
    it->second.deleter = info == nullptr ? nullptr : info->deleter;
  }
  id->type_id = it->second.id;
  return nullptr;
}

}  // namespace kiln_jax
