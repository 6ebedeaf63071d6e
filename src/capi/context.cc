// Contexts: the options checked and converted, and their client.
#include "kiln/context.h"

#include <sched.h>

#include <algorithm>
#include <filesystem>
#include <memory>
#include <system_error>
#include <thread>

#include "capi/error.h"
#include "capi/handle.h"
#include "capi/options.h"
#include "client/devices.h"
#include "flags/parse.h"
#include "passes/pass.h"
#include "target/target.h"

using kiln::InvalidArgument;
using kiln::OkStatus;
using kiln::Result;
using kiln::Status;
using kiln::capi::Guard;
using kiln::capi::NotNull;
using kiln::capi::Unwrap;
using kiln::client::Client;
using kiln::client::ClientOptions;
using kiln::client::DeleterCall;
using kiln::client::GpuLibraryMode;
using kiln::client::GpuMode;
using kiln::client::GpuOptions;
using kiln::client::LogLevel;

namespace {

static_assert(KILN_LOG_INFO == static_cast<int>(LogLevel::kInfo));
static_assert(KILN_LOG_WARNING == static_cast<int>(LogLevel::kWarning));
static_assert(KILN_LOG_ERROR == static_cast<int>(LogLevel::kError));
static_assert(KILN_LOG_OFF == static_cast<int>(LogLevel::kOff));
static_assert(KILN_LOG_INFO == static_cast<int>(kiln::flags::Level::kInfo));
static_assert(KILN_LOG_OFF == static_cast<int>(kiln::flags::Level::kOff));
static_assert(KILN_GPU_AUTO == static_cast<int>(GpuMode::kAuto));
static_assert(KILN_GPU_EMULATED == static_cast<int>(GpuMode::kEmulated));
static_assert(KILN_GPU_OFF == static_cast<int>(GpuMode::kOff));
static_assert(KILN_GPU_LIBRARY_DEFAULT == static_cast<int>(GpuLibraryMode::kDefault));
static_assert(KILN_GPU_LIBRARY_AUTO == static_cast<int>(GpuLibraryMode::kAuto));
static_assert(KILN_GPU_LIBRARY_NEVER == static_cast<int>(GpuLibraryMode::kNever));
static_assert(KILN_GPU_LIBRARY_ALWAYS == static_cast<int>(GpuLibraryMode::kAlways));

constexpr int kMaxThreads = 1024;

int AvailableProcessors() {
  cpu_set_t set;
  if (sched_getaffinity(0, sizeof(set), &set) == 0) return CPU_COUNT(&set);
  return std::max(1, static_cast<int>(std::thread::hardware_concurrency()));
}

Result<int> ThreadsOf(const kiln_context_options& options) {
  if (options.threads < 0 || options.threads > kMaxThreads) {
    return InvalidArgument("kiln_context_options.threads is ", options.threads,
                           "; expected 0 (for all) to ", kMaxThreads);
  }
  return options.threads == 0 ? std::min(AvailableProcessors(), kMaxThreads) : options.threads;
}

Status Check(const kiln_context_options& options) {
  if (!options.allocate != !options.deallocate) {
    return InvalidArgument(
        "kiln_context_options has one of allocate and deallocate; both or neither must be set");
  }
  if (options.log_level < KILN_LOG_DEFAULT || options.log_level > KILN_LOG_OFF) {
    return InvalidArgument("kiln_context_options.log_level is ", options.log_level,
                           ", which is none");
  }
  if (options.gpu < KILN_GPU_AUTO || options.gpu > KILN_GPU_OFF) {
    return InvalidArgument("kiln_context_options.gpu is ", options.gpu, ", which is none");
  }
  if (options.gpu_library < KILN_GPU_LIBRARY_DEFAULT ||
      options.gpu_library > KILN_GPU_LIBRARY_ALWAYS) {
    return InvalidArgument("kiln_context_options.gpu_library is ", options.gpu_library,
                           ", which is none");
  }
  if (options.gpu_memory_bytes < 0) {
    return InvalidArgument("kiln_context_options.gpu_memory_bytes is ", options.gpu_memory_bytes);
  }
  if (options.cache_bytes < KILN_CACHE_OFF) {
    return InvalidArgument("kiln_context_options.cache_bytes is ", options.cache_bytes);
  }
  return OkStatus();
}

// What the table of flags cannot check.
Status CheckFlags(const kiln::flags::CompileFlags& flags) {
  for (const std::string& pass : flags.disabled_passes) {
    if (!kiln::passes::FindPass(pass)) {
      return InvalidArgument("KILN_FLAGS: --disabled_passes: there is no pass '", pass, "'");
    }
  }
  if (flags.dump_ptx_sm == 0) return OkStatus();
  return kiln::target::NvidiaGpu(static_cast<int>(flags.dump_ptx_sm))
      .status()
      .WithContext("KILN_FLAGS: --dump_ptx_sm");
}

// The options, or else the flags, say what the disk cache is.
Status SetCache(const kiln_context_options& options, const kiln::flags::ContextFlags& flags,
                ClientOptions& made) {
  KILN_ASSIGN_OR_RETURN(const std::string_view folder,
                        kiln::capi::TextOf("kiln_context_options.cache_folder",
                                           options.cache_folder, options.cache_folder_length));
  if (options.cache_bytes == KILN_CACHE_OFF) return OkStatus();
  made.cache_folder = folder.empty() ? std::string_view(flags.cache_folder) : folder;
  if (made.cache_folder.find('\0') != std::string::npos) {
    return InvalidArgument("kiln_context_options.cache_folder has a NUL");
  }
  // It stays where it is if the process goes to another folder.
  std::error_code error;
  const auto absolute = std::filesystem::absolute(made.cache_folder, error);
  if (!made.cache_folder.empty() && !error) made.cache_folder = absolute.string();
  for (const int64_t bytes : {flags.cache_bytes, options.cache_bytes}) {
    if (bytes != 0) made.cache_bytes = bytes;
  }
  return OkStatus();
}

Result<ClientOptions> ClientOptionsOf(const kiln_context_options& options,
                                      const kiln::flags::Flags& flags) {
  ClientOptions made;
  KILN_ASSIGN_OR_RETURN(made.threads, ThreadsOf(options));
  KILN_ASSIGN_OR_RETURN(made.cpu_devices, kiln::client::CpuDevicesOf(options.cpu_devices));
  made.callbacks_from_any_thread = options.callbacks_from_any_thread != 0;
  made.allocator = {options.allocate, options.deallocate, options.allocator_user_data};
  made.pool = {options.run_tasks, options.pool_user_data};
  made.log = options.log;
  made.log_user_data = options.log_user_data;
  if (options.log_level != KILN_LOG_DEFAULT) {
    made.log_level = static_cast<LogLevel>(options.log_level);
  } else if (flags.context.log_level != kiln::flags::Level::kDefault) {
    made.log_level = static_cast<LogLevel>(flags.context.log_level);
  }
  KILN_RETURN_IF_ERROR(SetCache(options, flags.context, made));
  made.flags = flags;
  return made;
}

GpuOptions GpuOptionsOf(const kiln_context_options& options) {
  return {.mode = static_cast<GpuMode>(options.gpu),
          .library = static_cast<GpuLibraryMode>(options.gpu_library),
          .memory_bytes = options.gpu_memory_bytes};
}

}  // namespace

void kiln_context_options_init(kiln_context_options* options, size_t size) {
  kiln::capi::InitOptions(options, size);
}

kiln_error* kiln_context_create(const kiln_context_options* options, kiln_context** context) {
  return Guard([&]() -> Status {
    KILN_RETURN_IF_ERROR(NotNull("kiln_context_create", {{"context", context}}));
    KILN_ASSIGN_OR_RETURN(kiln_context_options read,
                          kiln::capi::ReadOptions("kiln_context_options", options));
    KILN_RETURN_IF_ERROR(Check(read));
    KILN_ASSIGN_OR_RETURN(kiln::flags::Parsed parsed, kiln::flags::FromEnvironment());
    KILN_RETURN_IF_ERROR(CheckFlags(parsed.flags.compile));
    KILN_ASSIGN_OR_RETURN(ClientOptions client_options, ClientOptionsOf(read, parsed.flags));
    auto client = kiln::MakeRef<Client>(client_options);
    KILN_RETURN_IF_ERROR(AddDevices(*client, GpuOptionsOf(read)));
    // Created before the callbacks are handed over: a failed client calls none at its end.
    auto at_end = [](void (*destroy)(void*), void* user_data) {
      return destroy ? std::make_unique<DeleterCall>(destroy, user_data) : nullptr;
    };
    auto allocator_end = at_end(read.allocator_destroy, read.allocator_user_data);
    auto log_end = at_end(read.log_destroy, read.log_user_data);
    auto pool_end = at_end(read.pool_destroy, read.pool_user_data);
    if (allocator_end) client->AtEnd(std::move(allocator_end));
    if (pool_end) client->AtEnd(std::move(pool_end));
    if (log_end) client->AtEnd(std::move(log_end));
    for (const kiln::flags::Message& message : parsed.messages) {
      client->Log(message.is_warning ? LogLevel::kWarning : LogLevel::kInfo, message.text);
    }
    *context = kiln::capi::HandOver(std::move(client));
    return OkStatus();
  });
}

void kiln_context_retain(kiln_context* context) { kiln::capi::RetainHandle(context); }

void kiln_context_release(kiln_context* context) { kiln::capi::ReleaseHandle(context); }

int32_t kiln_context_threads(const kiln_context* context) {
  return context ? Unwrap(context)->threads() : 0;
}

kiln_error* kiln_context_memory(const kiln_context* context, kiln_memory_info* info) {
  return Guard([&]() -> Status {
    KILN_RETURN_IF_ERROR(NotNull("kiln_context_memory", {{"context", context}, {"info", info}}));
    // Memory that waits for the user's functions is not in use any more.
    Unwrap(const_cast<kiln_context*>(context))->RunDeferred();
    kiln_memory_info now = KILN_MEMORY_INFO_INIT;
    const kiln::runtime::Allocator& allocator = Unwrap(context)->allocator();
    now.live_bytes = allocator.live_bytes();
    // An allocating thread updates the peak last.
    now.peak_bytes = std::max(allocator.peak_bytes(), now.live_bytes);
    return kiln::capi::WriteStruct("kiln_memory_info", now, info);
  });
}

kiln_error* kiln_context_cache(const kiln_context* context, kiln_cache_info* info) {
  return Guard([&]() -> Status {
    KILN_RETURN_IF_ERROR(NotNull("kiln_context_cache", {{"context", context}, {"info", info}}));
    kiln_cache_info now = KILN_CACHE_INFO_INIT;
    if (const kiln::DiskCache* cache = Unwrap(context)->cache()) {
      const kiln::DiskCache::Counts counts = cache->counts();
      now.hits = counts.hits;
      now.misses = counts.misses;
      now.written = counts.written;
      now.evicted = counts.evicted;
      now.failed = counts.failed;
      now.read_bytes = counts.read_bytes;
      now.written_bytes = counts.written_bytes;
      now.folder_bytes = counts.folder_bytes;
      now.limit_bytes = cache->limit_bytes();
    }
    return kiln::capi::WriteStruct("kiln_cache_info", now, info);
  });
}
