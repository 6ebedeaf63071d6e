// The stand-in's modules, kernels and assembler.
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <utility>

#include "state.h"

namespace kiln::device::cuda {
namespace {

constexpr char kCubinBegin[] =
    "\x7f"
    "ELF stand-in sm_";
constexpr int kMostSharedBytes = 99 << 10;

void Say(unsigned count, JitOption* options, void** values, JitOption buffer, JitOption bytes,
         const std::string& text) {
  void* target = nullptr;
  size_t room = 0;
  for (unsigned i = 0; i < count; ++i) {
    if (options[i] == buffer) target = values[i];
    if (options[i] == bytes) room = reinterpret_cast<size_t>(values[i]);
  }
  if (target != nullptr && room > 0)
    std::snprintf(static_cast<char*>(target), room, "%s", text.c_str());
}

// What an assembler would find wrong that reads PTX no further than its first lines.
Error CheckPtx(const State& state, const std::string& ptx, std::string* said) {
  const size_t version = ptx.find(".version ");
  const size_t target = ptx.find(".target sm_");
  if (version == std::string::npos || target == std::string::npos) {
    *said = "ptxas application ptx input, line 1; fatal   : Missing .version directive";
    return Error::kInvalidPtx;
  }
  if (std::atoi(ptx.c_str() + version + 9) * 1000 + 4000 > state.settings.driver_version) {
    *said = "ptxas fatal   : Unsupported .version";
    return Error::kUnsupportedPtxVersion;
  }
  if (std::atoi(ptx.c_str() + target + 11) > state.settings.sm) {
    *said = "ptxas fatal   : the target is newer than the device";
    return Error::kNoBinaryForGpu;
  }
  return Error::kSuccess;
}

// Kernels, the names and sizes of their parameters, and the text of those that set conditions.
void ReadKernels(ModuleObject* module, const std::string& ptx) {
  const bool sets_conditions = ptx.find(".extern .func cudaGraphSetConditional") != ptx.npos;
  for (size_t at = ptx.find(".entry "); at != std::string::npos; at = ptx.find(".entry ", at + 1)) {
    const size_t name = at + 7;
    const size_t open = ptx.find('(', name), close = ptx.find(')', name);
    if (open == std::string::npos || close == std::string::npos) return;
    FunctionObject function;
    function.module = module;
    function.name = ptx.substr(name, open - name);
    for (size_t p = ptx.find(".param .u", open); p < close; p = ptx.find(".param .u", p + 1)) {
      const size_t begin = ptx.find(' ', p + 9) + 1;
      const size_t end = ptx.find_first_of(",) \n", begin);
      function.parameters.emplace_back(ptx.substr(begin, end - begin),
                                       std::atoi(ptx.c_str() + p + 9) / 8);
    }
    if (sets_conditions) function.body = ptx.substr(close + 1);
    module->functions[function.name] = function;
  }
}

}  // namespace

Error cuModuleLoadDataEx(ModuleHandle* module, const void* image, unsigned count,
                         JitOption* options, void** values) {
  KILN_STANDIN_CALL(cuModuleLoadDataEx, kContext);
  State& state = call.state;
  std::string text = static_cast<const char*>(image);
  if (text.rfind("\x7f"
                 "ELF",
                 0) == 0) {
    if (text.rfind(kCubinBegin, 0) != 0) return Error::kInvalidImage;
    const size_t begin = sizeof(kCubinBegin) - 1;
    if (std::atoi(text.c_str() + begin) != state.settings.sm) return Error::kNoBinaryForGpu;
    text = text.substr(text.find('\n') + 1);
  }
  std::string said;
  if (Error error = CheckPtx(state, text, &said); error != Error::kSuccess) {
    Say(count, options, values, JitOption::kErrorLogBuffer, JitOption::kErrorLogBufferBytes, said);
    Say(count, options, values, JitOption::kInfoLogBuffer, JitOption::kInfoLogBufferBytes,
        "ptxas info    : gave up");
    return error;
  }
  *module = state.Make<ModuleObject>(call.context);
  ReadKernels(*module, text);
  return Error::kSuccess;
}

Error cuModuleUnload(ModuleHandle module) {
  KILN_STANDIN_CALL(cuModuleUnload, kContext);
  if (call.state.Check(module) == nullptr) return Error::kInvalidHandle;
  // Kernels that have been launched run to their end first.
  call.state.RunAll();
  call.state.Delete(module);
  return Error::kSuccess;
}

namespace {

FunctionObject* CheckFunction(State& state, FunctionHandle function) {
  for (Object* object : state.live) {
    if (std::string(object->kind) != "modules") continue;
    for (auto& [name, known] : static_cast<ModuleObject*>(object)->functions) {
      if (&known == function) return function;
    }
  }
  ++state.misuses;
  return nullptr;
}

}  // namespace

Error cuModuleGetFunction(FunctionHandle* function, ModuleHandle module, const char* name) {
  KILN_STANDIN_CALL(cuModuleGetFunction, kContext);
  if (call.state.Check(module) == nullptr) return Error::kInvalidHandle;
  auto found = module->functions.find(name);
  if (found == module->functions.end()) return Error::kNotFound;
  *function = &found->second;
  return Error::kSuccess;
}

Error cuFuncGetAttribute(int* value, FunctionAttribute attribute, FunctionHandle function) {
  KILN_STANDIN_CALL(cuFuncGetAttribute, kContext);
  if (CheckFunction(call.state, function) == nullptr) return Error::kInvalidHandle;
  switch (attribute) {
    case FunctionAttribute::kMaxThreadsPerBlock:
      *value = 1024;
      break;
    case FunctionAttribute::kSharedBytes:
      *value = 256;
      break;
    case FunctionAttribute::kLocalBytes:
      *value = 16;
      break;
    case FunctionAttribute::kRegisters:
      *value = 40;
      break;
    case FunctionAttribute::kMaxDynamicSharedBytes:
      *value = static_cast<int>(function->most_shared_bytes);
      break;
  }
  return Error::kSuccess;
}

Error cuFuncSetAttribute(FunctionHandle function, FunctionAttribute attribute, int value) {
  KILN_STANDIN_CALL(cuFuncSetAttribute, kContext);
  if (CheckFunction(call.state, function) == nullptr) return Error::kInvalidHandle;
  if (attribute != FunctionAttribute::kMaxDynamicSharedBytes || value < 0 ||
      value > kMostSharedBytes) {
    return Error::kInvalidValue;
  }
  function->most_shared_bytes = value;
  return Error::kSuccess;
}

Error ReadLaunch(State& state, FunctionHandle function, const unsigned* grid, const unsigned* block,
                 unsigned shared, void** parameters, GraphNodeObject* node) {
  if (CheckFunction(state, function) == nullptr) return Error::kInvalidHandle;
  if (grid[0] < 1 || grid[0] > 0x7fffffffu || grid[1] != 1 || grid[2] != 1 || block[0] < 1 ||
      block[0] > 1024 || block[1] != 1 || block[2] != 1 || shared > function->most_shared_bytes ||
      (!function->parameters.empty() && parameters == nullptr)) {
    return Error::kInvalidValue;
  }
  node->kind = GraphNodeObject::Kind::kLaunch;
  node->function = function;
  node->args.clear();
  for (size_t i = 0; i < function->parameters.size(); ++i) {
    if (parameters[i] == nullptr) return Error::kInvalidValue;
    DevicePointer arg = 0;
    std::memcpy(&arg, parameters[i], function->parameters[i].second);
    node->args.push_back(arg);
  }
  return Error::kSuccess;
}

Activity LaunchActivity(const GraphNodeObject& node, uint32_t graph) {
  return {ActivityKind::kConcurrentKernel, node.function->name, 1, graph, 0};
}

Error RunLaunch(State& state, const GraphNodeObject& node) {
  if (!node.function->body.empty()) return InterpretKernel(state, node);
  ++state.launches;
  state.time += state.settings.launch_time - 1;
  if (state.fail_work != Error::kSuccess) return std::exchange(state.fail_work, Error::kSuccess);
  for (DevicePointer arg : node.args) {
    if (state.Holder(arg, 1) == nullptr) return Error::kIllegalAddress;
  }
  return Error::kSuccess;
}

Error cuLaunchKernel(FunctionHandle function, unsigned grid_x, unsigned grid_y, unsigned grid_z,
                     unsigned block_x, unsigned block_y, unsigned block_z, unsigned shared,
                     StreamHandle stream, void** parameters, void** extra) {
  KILN_STANDIN_CALL(cuLaunchKernel, kContext);
  if (!CheckStream(call.state, stream)) return Error::kInvalidHandle;
  if (extra != nullptr) return Error::kInvalidValue;
  const unsigned grid[] = {grid_x, grid_y, grid_z}, block[] = {block_x, block_y, block_z};
  GraphNodeObject node;
  const Error error = ReadLaunch(call.state, function, grid, block, shared, parameters, &node);
  if (error != Error::kSuccess) return error;
  State& state = call.state;
  state.Enqueue(
      stream, [&state, node] { return RunLaunch(state, node); }, LaunchActivity(node));
  return Error::kSuccess;
}

Error cuLinkCreate_v2(unsigned count, JitOption* options, void** values, LinkHandle* link) {
  KILN_STANDIN_CALL(cuLinkCreate_v2, kContext);
  *link = call.state.Make<LinkObject>(call.context);
  (*link)->options.assign(options, options + count);
  (*link)->values.assign(values, values + count);
  return Error::kSuccess;
}

Error cuLinkAddData_v2(LinkHandle link, JitInput type, void* data, size_t bytes, const char*,
                       unsigned, JitOption*, void**) {
  KILN_STANDIN_CALL(cuLinkAddData_v2, kContext);
  if (call.state.Check(link) == nullptr) return Error::kInvalidHandle;
  const auto* text = static_cast<const char*>(data);
  if (type != JitInput::kPtx || bytes == 0 || text[bytes - 1] != '\0') return Error::kInvalidValue;
  link->ptx = text;
  std::string said;
  const Error error = CheckPtx(call.state, link->ptx, &said);
  if (error != Error::kSuccess) {
    Say(static_cast<unsigned>(link->options.size()), link->options.data(), link->values.data(),
        JitOption::kErrorLogBuffer, JitOption::kErrorLogBufferBytes, said);
  }
  return error;
}

Error cuLinkComplete(LinkHandle link, void** cubin, size_t* bytes) {
  KILN_STANDIN_CALL(cuLinkComplete, kContext);
  if (call.state.Check(link) == nullptr) return Error::kInvalidHandle;
  link->cubin = kCubinBegin + std::to_string(call.state.settings.sm) + "\n" + link->ptx;
  *cubin = link->cubin.data();
  *bytes = link->cubin.size();
  return Error::kSuccess;
}

Error cuLinkDestroy(LinkHandle link) {
  KILN_STANDIN_CALL(cuLinkDestroy, kContext);
  if (call.state.Check(link) == nullptr) return Error::kInvalidHandle;
  call.state.Delete(link);
  return Error::kSuccess;
}

}  // namespace kiln::device::cuda
