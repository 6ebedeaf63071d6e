// Buffers and events that the caller makes ready, parts of buffers, and tokens, by the table of the
// plugin.
//   async_table_test libkiln_pjrt.so
#include <atomic>
#include <chrono>
#include <cstring>
#include <functional>
#include <thread>

#include "tests/table_calls.h"

namespace kiln_jax_test {
namespace {

bool IsReady(PJRT_Event* event) {
  auto args = New<PJRT_Event_IsReady_Args>();
  args.event = event;
  CHECK(Ok(api->PJRT_Event_IsReady(&args)));
  return args.is_ready;
}

PJRT_Event* ReadyEvent(PJRT_Buffer* buffer) {
  auto args = New<PJRT_Buffer_ReadyEvent_Args>();
  args.buffer = buffer;
  CHECK(Ok(api->PJRT_Buffer_ReadyEvent(&args)));
  return args.event;
}

bool IsPending(PJRT_Buffer* buffer) {
  PJRT_Event* event = ReadyEvent(buffer);
  const bool is_pending = !IsReady(event);
  DestroyEvent(event);
  return is_pending;
}

PJRT_Error* SetEvent(PJRT_Event* event, PJRT_Error_Code code, const char* message) {
  auto args = New<PJRT_Event_Set_Args>();
  args.event = event;
  args.error_code = code;
  args.error_message = message;
  args.error_message_size = std::strlen(message);
  return api->PJRT_Event_Set(&args);
}

void TestPromises() {
  for (const bool fails : {false, true}) {
    auto create = New<PJRT_Event_Create_Args>();
    CHECK(Ok(api->PJRT_Event_Create(&create)));
    struct State {
      std::atomic<int> calls = 0;
      bool fails;
    } state;
    state.fails = fails;
    auto on_ready = New<PJRT_Event_OnReady_Args>();
    on_ready.event = create.event;
    on_ready.user_arg = &state;
    on_ready.callback = [](PJRT_Error* error, void* user_arg) {
      State* s = static_cast<State*>(user_arg);
      CHECK(s->fails ? Fails(error, PJRT_Error_Code_INTERNAL, "lost") : Ok(error));
      ++s->calls;
    };
    CHECK(Ok(api->PJRT_Event_OnReady(&on_ready)));
    CHECK(!IsReady(create.event) && state.calls == 0);
    auto early = New<PJRT_Event_Error_Args>();
    early.event = create.event;
    CHECK(Fails(api->PJRT_Event_Error(&early), PJRT_Error_Code_FAILED_PRECONDITION, "not ready"));
    std::thread setter([&] {
      std::this_thread::sleep_for(std::chrono::milliseconds(20));
      CHECK(Ok(SetEvent(create.event, fails ? PJRT_Error_Code_INTERNAL : PJRT_Error_Code_OK,
                        fails ? "lost" : "")));
    });
    auto await = New<PJRT_Event_Await_Args>();
    await.event = create.event;
    PJRT_Error* error = api->PJRT_Event_Await(&await);
    CHECK(fails ? Fails(error, PJRT_Error_Code_INTERNAL, "lost") : Ok(error));
    setter.join();
    CHECK(state.calls == 1 && IsReady(create.event));
    CHECK(Fails(SetEvent(create.event, PJRT_Error_Code_OK, ""), PJRT_Error_Code_FAILED_PRECONDITION,
                "already"));
    CHECK(Ok(api->PJRT_Event_OnReady(&on_ready)) && state.calls == 2);
    DestroyEvent(create.event);
  }
}

constexpr std::string_view kDouble = R"(
func.func public @main(%a: tensor<4xf32> {tf.aliasing_output = 0 : i32}) -> tensor<4xf32> {
  %0 = stablehlo.add %a, %a : tensor<4xf32>
  return %0 : tensor<4xf32>
})";

/** Twice the value, by a program that may be started before the value is there. */
std::vector<float> Doubled(PJRT_LoadedExecutable* twice, PJRT_Buffer* x,
                           const std::function<void()>& then, bool donate) {
  PJRT_Buffer* y = nullptr;
  PJRT_Event* event = nullptr;
  CHECK(Ok(
      Execute(twice, {x}, &y, &event, donate ? std::vector<int64_t>{} : std::vector<int64_t>{0})));
  CHECK(!IsReady(event) && IsPending(y));
  CHECK(IsDeleted(x) == donate);
  then();
  CHECK(Ok(Await(event)));
  std::vector<float> values = Read(y);
  DestroyBuffer(y);
  return values;
}

void TestAlias(PJRT_Client* client, PJRT_Device* device, PJRT_LoadedExecutable* twice) {
  const float data[] = {1, 2, 3, 4};
  const int64_t dims[] = {4}, other[] = {2};
  auto create = New<PJRT_Client_CreateAliasBuffer_Args>();
  create.client = client;
  create.shape_dims = dims;
  create.shape_num_dims = 1;
  create.shape_element_type = PJRT_Buffer_Type_F32;
  auto fulfill = New<PJRT_Client_FulfillAliasBuffer_Args>();
  fulfill.client = client;
  for (const bool donate : {false, true}) {
    CHECK(Ok(api->PJRT_Client_CreateAliasBuffer(&create)));
    CHECK(IsPending(create.alias_buffer));
    PJRT_Buffer* source = MakeBuffer(client, device, data, {4});
    fulfill.buffer = source;
    fulfill.fulfill_alias_buffer_cb = create.fulfill_alias_buffer_cb;
    auto then = [&] { CHECK(Ok(api->PJRT_Client_FulfillAliasBuffer(&fulfill))); };
    CHECK((Doubled(twice, create.alias_buffer, then, donate) == std::vector<float>{2, 4, 6, 8}));
    CHECK((Read(source) == std::vector<float>{1, 2, 3, 4}));
    DestroyBuffer(source);
    DestroyBuffer(create.alias_buffer);
  }
  CHECK(Ok(api->PJRT_Client_CreateAliasBuffer(&create)));
  fulfill.fulfill_alias_buffer_cb = create.fulfill_alias_buffer_cb;
  fulfill.status_code = PJRT_Error_Code_NOT_FOUND;
  fulfill.error_message = "no value";
  fulfill.error_message_size = 8;
  CHECK(Ok(api->PJRT_Client_FulfillAliasBuffer(&fulfill)));
  CHECK(Fails(Await(ReadyEvent(create.alias_buffer)), PJRT_Error_Code_NOT_FOUND, "no value"));
  DestroyBuffer(create.alias_buffer);
  // A buffer of another shape: the call fails, and the alias too.
  CHECK(Ok(api->PJRT_Client_CreateAliasBuffer(&create)));
  fulfill.fulfill_alias_buffer_cb = create.fulfill_alias_buffer_cb;
  fulfill.status_code = PJRT_Error_Code_OK;
  fulfill.buffer = MakeBuffer(client, device, data, {other[0]});
  CHECK(Fails(api->PJRT_Client_FulfillAliasBuffer(&fulfill), PJRT_Error_Code_INVALID_ARGUMENT,
              "another shape"));
  CHECK(Fails(Await(ReadyEvent(create.alias_buffer)), PJRT_Error_Code_INVALID_ARGUMENT, "shape"));
  DestroyBuffer(fulfill.buffer);
  DestroyBuffer(create.alias_buffer);
}

void TestErrorBuffer(PJRT_Client* client, PJRT_LoadedExecutable* twice) {
  const int64_t dims[] = {4};
  auto create = New<PJRT_Client_CreateErrorBuffer_Args>();
  create.client = client;
  create.error_code = PJRT_Error_Code_INTERNAL;
  create.error_message = "no such array";
  create.error_message_size = 13;
  create.shape_dims = dims;
  create.shape_num_dims = 1;
  create.shape_element_type = PJRT_Buffer_Type_F32;
  CHECK(Ok(api->PJRT_Client_CreateErrorBuffer(&create)));
  PJRT_Buffer* y = nullptr;
  PJRT_Event* event = nullptr;
  CHECK(Ok(Execute(twice, {create.buffer}, &y, &event)));
  CHECK(Fails(Await(event), PJRT_Error_Code_INTERNAL, "no such array"));
  CHECK(Fails(Await(ReadyEvent(y)), PJRT_Error_Code_INTERNAL, "no such array"));
  DestroyBuffer(y);
  DestroyBuffer(create.buffer);
  auto uninitialized = New<PJRT_Client_CreateUninitializedBuffer_Args>();
  uninitialized.client = client;
  uninitialized.shape_dims = dims;
  uninitialized.shape_num_dims = 1;
  uninitialized.shape_element_type = PJRT_Buffer_Type_F32;
  CHECK(Ok(api->PJRT_Client_CreateUninitializedBuffer(&uninitialized)));
  CHECK(Read(uninitialized.buffer).size() == 4);
  DestroyBuffer(uninitialized.buffer);
}

void TestDependency(PJRT_Client* client, PJRT_Device* device, PJRT_LoadedExecutable* twice) {
  const float data[] = {1, 2, 3, 4};
  for (const bool fails : {false, true}) {
    PJRT_Buffer* x = MakeBuffer(client, device, data, {4});
    auto donate = New<PJRT_Buffer_DonateWithControlDependency_Args>();
    donate.buffer = x;
    CHECK(Ok(api->PJRT_Buffer_DonateWithControlDependency(&donate)));
    CHECK(IsDeleted(x) && IsPending(donate.out_buffer));
    auto ready = New<PJRT_Buffer_DonateWithControlDependency_Callback_Args>();
    ready.callback_data = donate.callback_data;
    ready.error_code = fails ? PJRT_Error_Code_INTERNAL : PJRT_Error_Code_OK;
    ready.error_message = "not before";
    ready.error_message_size = 10;
    if (fails) {
      donate.dependency_ready_callback(&ready);
      CHECK(Fails(Await(ReadyEvent(donate.out_buffer)), PJRT_Error_Code_INTERNAL, "not before"));
    } else {
      auto then = [&] { donate.dependency_ready_callback(&ready); };
      CHECK((Doubled(twice, donate.out_buffer, then, true) == std::vector<float>{2, 4, 6, 8}));
    }
    CHECK(Fails(api->PJRT_Buffer_DonateWithControlDependency(&donate),
                PJRT_Error_Code_INVALID_ARGUMENT, "deleted"));
    DestroyBuffer(x);
    DestroyBuffer(donate.out_buffer);
  }
}

void TestRawCopies(PJRT_Client* client, PJRT_Device* device) {
  const float data[] = {1, 2, 3, 4};
  PJRT_Buffer* x = MakeBuffer(client, device, data, {4});
  float out[2] = {0, 0};
  auto copy = New<PJRT_Buffer_CopyRawToHost_Args>();
  copy.buffer = x;
  copy.dst = out;
  copy.offset = 4;
  copy.transfer_size = 8;
  CHECK(Ok(api->PJRT_Buffer_CopyRawToHost(&copy)) && Ok(Await(copy.event)));
  CHECK(out[0] == 2 && out[1] == 3);
  copy.offset = 12;
  CHECK(Fails(api->PJRT_Buffer_CopyRawToHost(&copy), PJRT_Error_Code_OUT_OF_RANGE, "16"));
  copy.offset = -1;
  CHECK(Fails(api->PJRT_Buffer_CopyRawToHost(&copy), PJRT_Error_Code_INVALID_ARGUMENT, "-1"));
  for (const bool fails : {false, true}) {
    auto later = New<PJRT_Buffer_CopyRawToHostFuture_Args>();
    later.buffer = x;
    later.offset = 8;
    later.transfer_size = 8;
    CHECK(Ok(api->PJRT_Buffer_CopyRawToHostFuture(&later)));
    CHECK(!IsReady(later.event));
    auto ready = New<PJRT_Buffer_CopyRawToHostFuture_Callback_Args>();
    ready.callback_data = later.callback_data;
    ready.error_code = fails ? PJRT_Error_Code_INTERNAL : PJRT_Error_Code_OK;
    ready.error_message = "no place";
    ready.error_message_size = 8;
    ready.dst = out;
    later.future_ready_callback(&ready);
    PJRT_Error* error = Await(later.event);
    CHECK(fails ? Fails(error, PJRT_Error_Code_INTERNAL, "no place") : Ok(error));
    CHECK(out[0] == 3 && out[1] == 4);
  }
  DestroyBuffer(x);
}

void TestTransferManager(PJRT_Client* client, PJRT_LoadedExecutable* twice) {
  const float data[] = {1, 2, 3, 4};
  const int64_t four[] = {4};
  PJRT_ShapeSpec shapes[3];
  for (PJRT_ShapeSpec& shape : shapes) {
    shape = New<PJRT_ShapeSpec>();
    shape.dims = four;
    shape.num_dims = 1;
    shape.element_type = PJRT_Buffer_Type_F32;
  }
  auto create = New<PJRT_Client_CreateBuffersForAsyncHostToDevice_Args>();
  create.client = client;
  create.shape_specs = shapes;
  create.num_shape_specs = 3;
  CHECK(Ok(api->PJRT_Client_CreateBuffersForAsyncHostToDevice(&create)));
  auto count = New<PJRT_AsyncHostToDeviceTransferManager_BufferCount_Args>();
  count.transfer_manager = create.transfer_manager;
  CHECK(Ok(api->PJRT_AsyncHostToDeviceTransferManager_BufferCount(&count)));
  CHECK(count.buffer_count == 3);
  auto size = New<PJRT_AsyncHostToDeviceTransferManager_BufferSize_Args>();
  size.transfer_manager = create.transfer_manager;
  CHECK(Ok(api->PJRT_AsyncHostToDeviceTransferManager_BufferSize(&size)));
  CHECK(size.buffer_size == 16);
  PJRT_Buffer* buffers[3];
  for (int i = 0; i < 3; ++i) {
    auto retrieve = New<PJRT_AsyncHostToDeviceTransferManager_RetrieveBuffer_Args>();
    retrieve.transfer_manager = create.transfer_manager;
    retrieve.buffer_index = i;
    CHECK(Ok(api->PJRT_AsyncHostToDeviceTransferManager_RetrieveBuffer(&retrieve)));
    buffers[i] = retrieve.buffer_out;
    CHECK(IsPending(buffers[i]));
    CHECK(Fails(api->PJRT_AsyncHostToDeviceTransferManager_RetrieveBuffer(&retrieve),
                PJRT_Error_Code_INVALID_ARGUMENT, "before"));
  }
  // In parts, the last one of the array first, while a program that takes its memory waits.
  auto transfer = New<PJRT_AsyncHostToDeviceTransferManager_TransferData_Args>();
  transfer.transfer_manager = create.transfer_manager;
  auto then = [&] {
    for (int part = 3; part >= 0; --part) {
      transfer.data = data + part;
      transfer.offset = 4 * part;
      transfer.transfer_size = 4;
      transfer.is_last_transfer = part == 0;
      CHECK(Ok(api->PJRT_AsyncHostToDeviceTransferManager_TransferData(&transfer)));
      CHECK(Ok(Await(transfer.done_with_h2d_transfer)));
    }
  };
  CHECK((Doubled(twice, buffers[0], then, true) == std::vector<float>{2, 4, 6, 8}));
  CHECK(Fails(api->PJRT_AsyncHostToDeviceTransferManager_TransferData(&transfer),
              PJRT_Error_Code_FAILED_PRECONDITION, "last transfer"));
  auto literal = New<PJRT_AsyncHostToDeviceTransferManager_TransferLiteral_Args>();
  literal.transfer_manager = create.transfer_manager;
  literal.buffer_index = 1;
  literal.data = data;
  literal.shape_dims = four;
  literal.shape_num_dims = 1;
  literal.shape_element_type = PJRT_Buffer_Type_S32;
  CHECK(Fails(api->PJRT_AsyncHostToDeviceTransferManager_TransferLiteral(&literal),
              PJRT_Error_Code_INVALID_ARGUMENT, "another shape"));
  literal.shape_element_type = PJRT_Buffer_Type_F32;
  CHECK(Ok(api->PJRT_AsyncHostToDeviceTransferManager_TransferLiteral(&literal)));
  CHECK(Ok(Await(literal.done_with_h2d_transfer)));
  CHECK((Read(buffers[1]) == std::vector<float>{1, 2, 3, 4}));
  transfer.buffer_index = 3;
  CHECK(Fails(api->PJRT_AsyncHostToDeviceTransferManager_TransferData(&transfer),
              PJRT_Error_Code_INVALID_ARGUMENT, "no buffer 3"));
  // The third is given up.
  auto destroy = New<PJRT_AsyncHostToDeviceTransferManager_Destroy_Args>();
  destroy.transfer_manager = create.transfer_manager;
  CHECK(Ok(api->PJRT_AsyncHostToDeviceTransferManager_Destroy(&destroy)));
  CHECK(Fails(Await(ReadyEvent(buffers[2])), PJRT_Error_Code_CANCELLED, "given up"));
  for (PJRT_Buffer* buffer : buffers) DestroyBuffer(buffer);
}

constexpr std::string_view kTokens = R"(
func.func public @main(%t: !stablehlo.token, %a: tensor<4xf32>)
    -> (!stablehlo.token, tensor<4xf32>) {
  %0 = stablehlo.after_all %t : !stablehlo.token
  %1 = stablehlo.add %a, %a : tensor<4xf32>
  return %0, %1 : !stablehlo.token, tensor<4xf32>
})";

/** An array of no elements stands for the first token; the others come from the program. */
void TestTokens(PJRT_Client* client, PJRT_Device* device) {
  PJRT_LoadedExecutable* program = nullptr;
  CHECK(Ok(Compile(client, kTokens, "mlir", &program)));
  const float data[] = {1, 2, 3, 4};
  PJRT_Buffer* token = MakeBuffer(client, device, nullptr, {0});
  PJRT_Buffer* x = MakeBuffer(client, device, data, {4});
  for (int i = 0; i < 3; ++i) {
    PJRT_Buffer* results[2] = {nullptr, nullptr};
    PJRT_Event* event = nullptr;
    CHECK(Ok(Execute(program, {token, x}, results, &event)) && Ok(Await(event)));
    DestroyBuffer(token);
    DestroyBuffer(x);
    token = results[0];
    x = results[1];
  }
  CHECK((Read(x) == std::vector<float>{8, 16, 24, 32}));
  auto type = New<PJRT_Buffer_ElementType_Args>();
  type.buffer = token;
  CHECK(Ok(api->PJRT_Buffer_ElementType(&type)) && type.type == PJRT_Buffer_Type_TOKEN);
  CHECK(Ok(Await(ReadyEvent(token))));
  CHECK(Read(token).empty());
  PJRT_Buffer* none = nullptr;
  PJRT_Event* event = nullptr;
  CHECK(Fails(Execute(program, {token, token}, &none, &event), PJRT_Error_Code_INVALID_ARGUMENT,
              "token"));
  DestroyBuffer(token);
  DestroyBuffer(x);
  DestroyLoaded(program);
}

constexpr std::string_view kLong = R"(
func.func public @main(%n: tensor<4xf32>) -> tensor<4xf32> {
  %zero = stablehlo.constant dense<0.0> : tensor<4xf32>
  %end = stablehlo.constant dense<1.0e30> : tensor<f32>
  %r = stablehlo.while(%x = %zero) : tensor<4xf32>
    cond {
      %s = stablehlo.slice %x [0:1] : (tensor<4xf32>) -> tensor<1xf32>
      %0 = stablehlo.reshape %s : (tensor<1xf32>) -> tensor<f32>
      %1 = stablehlo.compare LT, %0, %end : (tensor<f32>, tensor<f32>) -> tensor<i1>
      stablehlo.return %1 : tensor<i1>
    } do {
      %2 = stablehlo.add %x, %n : tensor<4xf32>
      stablehlo.return %2 : tensor<4xf32>
    }
  return %r : tensor<4xf32>
})";

/** Executions beyond the client's time limit fail, and the next one does not. */
void TestTimeLimit() {
  PJRT_NamedValue option = New<PJRT_NamedValue>();
  option.name = "kiln_timeout_ms";
  option.name_size = std::strlen(option.name);
  option.type = PJRT_NamedValue_kInt64;
  option.int64_value = 300;
  auto create = New<PJRT_Client_Create_Args>();
  create.create_options = &option;
  create.num_options = 1;
  CHECK(Ok(api->PJRT_Client_Create(&create)));
  auto devices = New<PJRT_Client_Devices_Args>();
  devices.client = create.client;
  CHECK(Ok(api->PJRT_Client_Devices(&devices)));
  PJRT_LoadedExecutable* program = nullptr;
  CHECK(Ok(Compile(create.client, kLong, "mlir", &program)));
  const float endless[] = {0, 0, 0, 0}, fast[] = {1e30f, 1, 2, 3};
  PJRT_Buffer* x = MakeBuffer(create.client, devices.devices[0], endless, {4});
  PJRT_Buffer* y = MakeBuffer(create.client, devices.devices[0], fast, {4});
  PJRT_Buffer* result = nullptr;
  PJRT_Event* event = nullptr;
  CHECK(Ok(Execute(program, {x}, &result, &event)));
  CHECK(Fails(Await(event), static_cast<PJRT_Error_Code>(4), ""));  // DEADLINE_EXCEEDED
  DestroyBuffer(result);
  CHECK(Ok(Execute(program, {y}, &result, &event)) && Ok(Await(event)));
  CHECK((Read(result) == std::vector<float>{1e30f, 1, 2, 3}));
  for (PJRT_Buffer* buffer : {x, y, result}) DestroyBuffer(buffer);
  DestroyLoaded(program);
  auto destroy = New<PJRT_Client_Destroy_Args>();
  destroy.client = create.client;
  CHECK(Ok(api->PJRT_Client_Destroy(&destroy)));
}

int Run(const char* library) {
  if (!Load(library)) return 1;
  auto create = New<PJRT_Client_Create_Args>();
  CHECK(Ok(api->PJRT_Client_Create(&create)));
  PJRT_Client* client = create.client;
  auto devices = New<PJRT_Client_Devices_Args>();
  devices.client = client;
  CHECK(Ok(api->PJRT_Client_Devices(&devices)));
  PJRT_Device* device = devices.devices[0];
  PJRT_LoadedExecutable* twice = nullptr;
  CHECK(Ok(Compile(client, kDouble, "mlir", &twice)));
  TestPromises();
  TestAlias(client, device, twice);
  TestErrorBuffer(client, twice);
  TestDependency(client, device, twice);
  TestRawCopies(client, device);
  TestTransferManager(client, twice);
  TestTokens(client, device);
  TestTimeLimit();
  DestroyLoaded(twice);
  auto destroy = New<PJRT_Client_Destroy_Args>();
  destroy.client = client;
  CHECK(Ok(api->PJRT_Client_Destroy(&destroy)));
  if (failed != 0) std::printf("%d checks failed\n", failed);
  return failed == 0 ? 0 : 1;
}

}  // namespace
}  // namespace kiln_jax_test

int main(int argc, char** argv) { return argc == 2 ? kiln_jax_test::Run(argv[1]) : 2; }
