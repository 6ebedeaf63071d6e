#include "plugin/ffi/call.h"

#include <atomic>
#include <cstddef>
#include <deque>
#include <memory>
#include <new>
#include <optional>
#include <vector>

#include "plugin/ffi/table.h"

/** XLA's object for the failures of functions without the interface, which their library fills in
 *  by functions of jaxlib. */
struct XlaCustomCallStatus_ {
  std::optional<std::string> message;
};

namespace kiln_jax {
namespace {

kiln_error* Error(kiln_code code, const std::string& message) {
  return kiln_error_create(code, message.data(), message.size());
}

// The interface has no const.
template <typename T>
T* Mutable(const T* pointer) {
  return const_cast<T*>(pointer);
}

/** The attributes of a call in the interface's form. */
class Attributes {
 public:
  XLA_FFI_Attrs Make(const kiln_call_attribute* const* list, size_t count) {
    XLA_FFI_Attrs made = {};
    made.struct_size = sizeof made;
    made.size = static_cast<int64_t>(count);
    std::vector<XLA_FFI_AttrType>& types = types_.emplace_back();
    std::vector<XLA_FFI_ByteSpan*>& names = names_.emplace_back();
    std::vector<void*>& values = values_.emplace_back();
    for (size_t i = 0; i < count; ++i) {
      const kiln_call_attribute& attribute = *list[i];
      names.push_back(
          &spans_.emplace_back(XLA_FFI_ByteSpan{attribute.name, attribute.name_length}));
      auto [type, value] = ValueOf(attribute);
      types.push_back(type);
      values.push_back(value);
    }
    made.types = types.data();
    made.names = names.data();
    made.attrs = values.data();
    return made;
  }

 private:
  std::pair<XLA_FFI_AttrType, void*> ValueOf(const kiln_call_attribute& attribute) {
    const auto dtype = static_cast<XLA_FFI_DataType>(attribute.dtype);
    void* data = Mutable(attribute.data);
    switch (attribute.kind) {
      case KILN_CALL_SCALAR:
        return {XLA_FFI_AttrType_SCALAR, &scalars_.emplace_back(XLA_FFI_Scalar{dtype, data})};
      case KILN_CALL_ARRAY:
        return {XLA_FFI_AttrType_ARRAY,
                &arrays_.emplace_back(XLA_FFI_Array{dtype, attribute.count, data})};
      case KILN_CALL_STRING:
        return {XLA_FFI_AttrType_STRING, &spans_.emplace_back(XLA_FFI_ByteSpan{
                                             static_cast<const char*>(data), attribute.count})};
      default:
        return {XLA_FFI_AttrType_DICTIONARY,
                &dictionaries_.emplace_back(Make(attribute.members, attribute.count))};
    }
  }

  std::deque<std::vector<XLA_FFI_AttrType>> types_;
  std::deque<std::vector<XLA_FFI_ByteSpan*>> names_;
  std::deque<std::vector<void*>> values_;
  std::deque<XLA_FFI_ByteSpan> spans_;
  std::deque<XLA_FFI_Scalar> scalars_;
  std::deque<XLA_FFI_Array> arrays_;
  std::deque<XLA_FFI_Attrs> dictionaries_;
};

/** A call in a program, for all its executions. */
struct CallSite {
  Attributes storage;
  XLA_FFI_Attrs attributes = {};
  FfiState state;  // of the instantiate stage
};

/** The arrays of one execution. */
class Buffers {
 public:
  explicit Buffers(const kiln_custom_call& call)
      : types_(call.operand_count + call.result_count, XLA_FFI_ArgType_BUFFER) {
    buffers_.reserve(types_.size());
    Add(call.operands, call.operand_count);
    Add(call.results, call.result_count);
    for (XLA_FFI_Buffer& buffer : buffers_) pointers_.push_back(&buffer);
    operands_ = call.operand_count;
  }

  void Put(XLA_FFI_CallFrame* frame) {
    frame->args.size = static_cast<int64_t>(operands_);
    frame->args.types = types_.data();
    frame->args.args = pointers_.data();
    frame->rets.size = static_cast<int64_t>(buffers_.size() - operands_);
    frame->rets.types = result_types_.data();
    frame->rets.rets = pointers_.data() + operands_;
  }

 private:
  void Add(const kiln_call_array* const* arrays, size_t count) {
    for (size_t i = 0; i < count; ++i) {
      const kiln_call_array& array = *arrays[i];
      buffers_.push_back({sizeof(XLA_FFI_Buffer), nullptr,
                          static_cast<XLA_FFI_DataType>(array.dtype), array.data,
                          static_cast<int64_t>(array.rank), Mutable(array.dims)});
    }
    result_types_.resize(count, XLA_FFI_RetType_BUFFER);  // the results come last
  }

  std::vector<XLA_FFI_ArgType> types_;
  std::vector<XLA_FFI_RetType> result_types_;
  std::vector<XLA_FFI_Buffer> buffers_;
  std::vector<void*> pointers_;
  size_t operands_ = 0;
};

XLA_FFI_CallFrame MakeFrame(XLA_FFI_ExecutionStage stage, XLA_FFI_InvokeContext* context,
                            const XLA_FFI_Attrs& attributes) {
  XLA_FFI_CallFrame frame = {};
  frame.struct_size = offsetof(XLA_FFI_CallFrame, future);  // what handlers expect
  frame.api = FfiApi();
  frame.ctx = context;
  frame.stage = stage;
  frame.args.struct_size = sizeof frame.args;
  frame.rets.struct_size = sizeof frame.rets;
  frame.attrs = attributes;
  return frame;
}

/** Calls the handler of a stage, if there is one, and waits for its result. */
kiln_error* RunStage(const FfiTarget& target, XLA_FFI_CallFrame* frame) {
  XLA_FFI_Handler* handler = target.handlers[frame->stage];
  if (handler == nullptr) return nullptr;
  if (kiln_error* error = TakeFfiError(handler(frame))) return error;
  return frame->future == nullptr ? nullptr : AwaitFfiFuture(frame->future);
}

kiln_error* ExecuteTyped(const FfiTarget& target, const kiln_custom_call& call) {
  static std::atomic<int64_t> runs{0};
  auto* site = static_cast<CallSite*>(call.state);
  FfiState states[kFfiStages];
  XLA_FFI_InvokeContext context;
  context.states[XLA_FFI_ExecutionStage_INSTANTIATE] = &site->state;
  context.states[XLA_FFI_ExecutionStage_PREPARE] = &states[XLA_FFI_ExecutionStage_PREPARE];
  context.states[XLA_FFI_ExecutionStage_INITIALIZE] = &states[XLA_FFI_ExecutionStage_INITIALIZE];
  context.run_id = ++runs;
  Buffers buffers(call);
  for (auto stage : {XLA_FFI_ExecutionStage_PREPARE, XLA_FFI_ExecutionStage_INITIALIZE,
                     XLA_FFI_ExecutionStage_EXECUTE}) {
    XLA_FFI_CallFrame frame = MakeFrame(stage, &context, site->attributes);
    buffers.Put(&frame);
    if (kiln_error* error = RunStage(target, &frame)) return error;
  }
  return nullptr;
}

/** Calls a function without the interface. Several results are a list of their addresses. */
kiln_error* ExecuteUntyped(const FfiTarget& target, const kiln_custom_call& call) {
  std::vector<const void*> operands;
  std::vector<void*> results;
  for (size_t i = 0; i < call.operand_count; ++i) operands.push_back(call.operands[i]->data);
  for (size_t i = 0; i < call.result_count; ++i) results.push_back(call.results[i]->data);
  void* out = call.result_count == 1 ? results[0] : results.data();
  auto* function = reinterpret_cast<void*>(target.handlers[XLA_FFI_ExecutionStage_EXECUTE]);
  XlaCustomCallStatus_ status;
  switch (call.api_version) {
    case 1:
      reinterpret_cast<void (*)(void*, const void**)>(function)(out, operands.data());
      break;
    case 2:
      reinterpret_cast<void (*)(void*, const void**, XlaCustomCallStatus_*)>(function)(
          out, operands.data(), &status);
      break;
    default:
      reinterpret_cast<void (*)(void*, const void**, const char*, size_t, XlaCustomCallStatus_*)>(
          function)(out, operands.data(), call.backend_config, call.backend_config_length, &status);
  }
  return status.message ? Error(KILN_INTERNAL, *status.message) : nullptr;
}

kiln_error* CheckVersion(const FfiTarget& target, const kiln_custom_call& call) {
  const bool typed = call.api_version == 4;
  if (typed == (target.api_version == 1)) return nullptr;
  return Error(KILN_INVALID_ARGUMENT,
               "is called with custom_call_api_version " + std::to_string(call.api_version) +
                   ", but registered with api_version " + std::to_string(target.api_version));
}

}  // namespace

kiln_error* ExecuteFfiCall(void* user_data, const kiln_custom_call* call) {
  const auto& target = *static_cast<const FfiTarget*>(user_data);
  try {
    return target.api_version == 1 ? ExecuteTyped(target, *call) : ExecuteUntyped(target, *call);
  } catch (const std::bad_alloc&) {
    return Error(KILN_RESOURCE_EXHAUSTED, "there is no memory for it");
  }
}

kiln_error* InstantiateFfiCall(void* user_data, const kiln_custom_call* call, void** state) {
  const auto& target = *static_cast<const FfiTarget*>(user_data);
  if (kiln_error* error = CheckVersion(target, *call)) return error;
  if (target.api_version != 1) return nullptr;
  try {
    auto site = std::make_unique<CallSite>();
    site->attributes = site->storage.Make(call->attributes, call->attribute_count);
    XLA_FFI_InvokeContext context;
    context.states[XLA_FFI_ExecutionStage_INSTANTIATE] = &site->state;
    XLA_FFI_CallFrame frame =
        MakeFrame(XLA_FFI_ExecutionStage_INSTANTIATE, &context, site->attributes);
    if (kiln_error* error = RunStage(target, &frame)) return error;
    *state = site.release();
    return nullptr;
  } catch (const std::bad_alloc&) {
    return Error(KILN_RESOURCE_EXHAUSTED, "there is no memory for it");
  }
}

void DestroyFfiCall(void*, void* state) { delete static_cast<CallSite*>(state); }

XLA_FFI_Error* CheckFfiVersion(const std::string& name, XLA_FFI_Handler* handler) {
  XLA_FFI_Metadata metadata = {};
  metadata.struct_size = sizeof metadata;
  metadata.api_version.struct_size = sizeof metadata.api_version;
  XLA_FFI_Metadata_Extension extension = {};
  extension.extension_base = {sizeof extension, XLA_FFI_Extension_Metadata, nullptr};
  extension.metadata = &metadata;
  XLA_FFI_Attrs none = {};
  none.struct_size = sizeof none;
  XLA_FFI_CallFrame frame = MakeFrame(XLA_FFI_ExecutionStage_EXECUTE, nullptr, none);
  frame.extension_start = &extension.extension_base;
  if (XLA_FFI_Error* error = handler(&frame)) return error;
  if (metadata.api_version.major_version == FfiApi()->api_version.major_version) return nullptr;
  XLA_FFI_Error_Create_Args args = {};
  args.struct_size = sizeof args;
  args.errc = XLA_FFI_Error_Code_INVALID_ARGUMENT;
  const std::string message = "the handler \"" + name + "\" is of version " +
                              std::to_string(metadata.api_version.major_version) +
                              " of XLA's interface; Kiln has version " +
                              std::to_string(FfiApi()->api_version.major_version);
  args.message = message.c_str();
  return FfiApi()->XLA_FFI_Error_Create(&args);
}

}  // namespace kiln_jax
