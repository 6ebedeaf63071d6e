#include "device/cuda/module.h"

#include <limits>

namespace kiln::device::cuda {
namespace {

// Buffers for the assembler's messages, and the options that pass them.
class AssemblerLog {
 public:
  AssemblerLog() : info_(kBytes, '\0'), errors_(kBytes, '\0') {}

  static constexpr unsigned kOptions = 4;
  JitOption* options() { return options_.data(); }
  void** values() { return values_.data(); }

  Status AddTo(const Status& status) const {
    std::string text;
    for (const std::string* log : {&errors_, &info_}) {
      const std::string_view said = Trim(std::string_view(log->c_str()));
      if (!said.empty()) text += Cat(text.empty() ? "; the driver's assembler says: " : "\n", said);
    }
    if (text.empty()) return status;
    return Status(status.code(), Cat(status.message(), text));
  }

 private:
  static constexpr size_t kBytes = 8192;

  std::string info_, errors_;
  std::array<JitOption, kOptions> options_ = {
      JitOption::kInfoLogBuffer, JitOption::kInfoLogBufferBytes, JitOption::kErrorLogBuffer,
      JitOption::kErrorLogBufferBytes};
  // Sizes are passed as pointers. One byte less, so that the texts are always terminated.
  std::array<void*, kOptions> values_ = {info_.data(), reinterpret_cast<void*>(kBytes - 1),
                                         errors_.data(), reinterpret_cast<void*>(kBytes - 1)};
};

Status InvalidGrid(const std::string& what) {
  return InvalidArgument("no GPU launches a grid of ", what);
}

}  // namespace

Status CudaKernel::AllowShared(int64_t bytes) {
  if (bytes <= kAllowedAtFirst) return OkStatus();
  std::lock_guard lock(mutex_);
  if (bytes <= allowed_bytes_) return OkStatus();
  KILN_RETURN_IF_ERROR(context_.Call(context_.api().FuncSetAttribute, handle_,
                                     FunctionAttribute::kMaxDynamicSharedBytes,
                                     static_cast<int>(bytes)));
  allowed_bytes_ = bytes;
  return OkStatus();
}

Result<LaunchParameters> LaunchParameters::Make(CudaKernel& kernel, const GpuGrid& grid,
                                                std::span<const GpuSpan> args) {
  constexpr int64_t kMost = std::numeric_limits<int32_t>::max();
  if (grid.blocks < 1 || grid.blocks > kMost) return InvalidGrid(Cat(grid.blocks, " blocks"));
  if (grid.threads < 1 || grid.threads > 1024) {
    return InvalidGrid(Cat("blocks of ", grid.threads, " threads"));
  }
  if (grid.shared_bytes < 0 || grid.shared_bytes > kMost) {
    return InvalidGrid(Cat("blocks with ", grid.shared_bytes, " bytes of shared memory"));
  }
  KILN_RETURN_IF_ERROR(kernel.AllowShared(grid.shared_bytes));
  LaunchParameters launch;
  launch.blocks_ = static_cast<unsigned>(grid.blocks);
  launch.threads_ = static_cast<unsigned>(grid.threads);
  launch.shared_bytes_ = static_cast<unsigned>(grid.shared_bytes);
  if (args.size() > launch.few_.size()) launch.more_.resize(args.size());
  void** pointers = launch.pointers();
  for (size_t i = 0; i < args.size(); ++i) {
    pointers[i] = const_cast<void*>(static_cast<const void*>(&args[i].address));
  }
  return launch;
}

Result<std::shared_ptr<LoadedCode>> LoadedCode::Load(std::shared_ptr<Context> context,
                                                     const std::string& image) {
  AssemblerLog log;
  ModuleHandle handle = nullptr;
  const Status status = context->Call(context->api().ModuleLoadDataEx, &handle,
                                      static_cast<const void*>(image.c_str()),
                                      AssemblerLog::kOptions, log.options(), log.values());
  if (!status.ok()) return log.AddTo(status);
  return std::make_shared<LoadedCode>(std::move(context), handle,
                                      static_cast<int64_t>(image.size()));
}

LoadedCode::~LoadedCode() { context_->GiveBack(context_->api().ModuleUnload, handle_); }

Result<GpuKernel*> LoadedCode::Find(const std::string& symbol) {
  std::lock_guard lock(mutex_);
  if (auto found = kernels_.find(symbol); found != kernels_.end()) return found->second.get();
  const Functions& api = context_->api();
  FunctionHandle handle = nullptr;
  if (Status status = context_->Call(api.ModuleGetFunction, &handle, handle_, symbol.c_str());
      !status.ok()) {
    return status.WithContext(Cat("kernel ", symbol));
  }
  auto attribute = [&](FunctionAttribute which) -> Result<int> {
    int value = 0;
    KILN_RETURN_IF_ERROR(context_->Call(api.FuncGetAttribute, &value, which, handle));
    return value;
  };
  GpuResources resources;
  KILN_ASSIGN_OR_RETURN(resources.registers, attribute(FunctionAttribute::kRegisters));
  KILN_ASSIGN_OR_RETURN(resources.local_bytes, attribute(FunctionAttribute::kLocalBytes));
  KILN_ASSIGN_OR_RETURN(resources.shared_bytes, attribute(FunctionAttribute::kSharedBytes));
  auto kernel = std::make_unique<CudaKernel>(*context_, handle, symbol, resources);
  return kernels_.emplace(symbol, std::move(kernel)).first->second.get();
}

Result<std::string> Assemble(Context& context, const std::string& ptx) {
  const Functions& api = context.api();
  // Outlives the link, because the driver writes to it.
  AssemblerLog log;
  LinkHandle link = nullptr;
  KILN_RETURN_IF_ERROR(
      context.Call(api.LinkCreate, AssemblerLog::kOptions, log.options(), log.values(), &link));
  std::string cubin;
  auto assemble = [&]() -> Status {
    void* text = const_cast<char*>(ptx.c_str());
    KILN_RETURN_IF_ERROR(context.Call(api.LinkAddData, link, JitInput::kPtx, text, ptx.size() + 1,
                                      "kernels", 0u, nullptr, nullptr));
    void* made = nullptr;
    size_t bytes = 0;
    KILN_RETURN_IF_ERROR(context.Call(api.LinkComplete, link, &made, &bytes));
    // The link's own memory.
    cubin.assign(static_cast<const char*>(made), bytes);
    return OkStatus();
  };
  const Status status = assemble();
  context.GiveBack(api.LinkDestroy, link);
  if (!status.ok()) return log.AddTo(status);
  return cubin;
}

}  // namespace kiln::device::cuda
