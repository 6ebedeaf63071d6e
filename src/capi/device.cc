#include "kiln/device.h"

#include <algorithm>

#include "base/strings.h"
#include "capi/error.h"
#include "capi/handle.h"
#include "capi/options.h"
#include "client/device_name.h"

namespace {

using kiln::NotFound;
using kiln::OkStatus;
using kiln::Status;
using kiln::capi::Unwrap;

const char* Text(const std::string* text, size_t* length) {
  if (length) *length = text ? text->size() : 0;
  return text ? text->c_str() : nullptr;
}

}  // namespace

size_t kiln_context_device_count(const kiln_context* context) {
  return context ? Unwrap(context)->devices().size() : 0;
}

kiln_device* kiln_context_device(kiln_context* context, size_t index) {
  if (!context || index >= Unwrap(context)->devices().size()) return nullptr;
  return kiln::capi::Wrap(Unwrap(context)->devices()[index].get());
}

const char* kiln_context_device_notes(const kiln_context* context, size_t* length) {
  return Text(context ? &Unwrap(context)->device_notes() : nullptr, length);
}

kiln_error* kiln_context_find_device(kiln_context* context, const char* name, size_t name_length,
                                     kiln_device** device) {
  return kiln::capi::Guard([&]() -> Status {
    KILN_RETURN_IF_ERROR(kiln::capi::NotNull("kiln_context_find_device",
                                             {{"context", context}, {"device", device}}));
    KILN_ASSIGN_OR_RETURN(std::string_view text, kiln::capi::TextOf("name", name, name_length));
    KILN_ASSIGN_OR_RETURN(kiln::client::DeviceName name_of, kiln::client::ParseDeviceName(text));
    if (!name_of.elsewhere.empty()) {
      return NotFound("device '", text, "': there is no '", name_of.elsewhere,
                      "', only this process");
    }
    const std::string wanted = name_of.ToString();
    std::vector<std::string> names;
    for (const auto& found : Unwrap(context)->devices()) {
      if (found->name() == wanted) {
        *device = kiln::capi::Wrap(found.get());
        return OkStatus();
      }
      names.push_back(found->name());
    }
    std::string notes = Unwrap(context)->device_notes();
    std::replace(notes.begin(), notes.end(), '\n', ';');
    return NotFound("there is no device '", text, "'; there are ", kiln::Join(names, ", "),
                    notes.empty() ? "" : "; of GPUs: ", notes);
  });
}

const char* kiln_device_name(const kiln_device* device, size_t* length) {
  return Text(device ? &Unwrap(device)->name() : nullptr, length);
}

const char* kiln_device_description(const kiln_device* device, size_t* length) {
  return Text(device ? &Unwrap(device)->description() : nullptr, length);
}

int32_t kiln_device_threads(const kiln_device* device) {
  return device ? Unwrap(device)->pool().threads() : 0;
}

kiln_error* kiln_device_memory(const kiln_device* device, kiln_memory_info* info) {
  return kiln::capi::Guard([&]() -> Status {
    KILN_RETURN_IF_ERROR(
        kiln::capi::NotNull("kiln_device_memory", {{"device", device}, {"info", info}}));
    // Memory that waits for the user's functions is not in use any more.
    Unwrap(device)->client().RunDeferred();
    kiln::runtime::DeviceMemory memory = Unwrap(device)->runtime().Memory();
    kiln_memory_info now = KILN_MEMORY_INFO_INIT;
    now.live_bytes = memory.live_bytes;
    // An allocating thread updates the peak last.
    now.peak_bytes = std::max(memory.peak_bytes, memory.live_bytes);
    now.limit_bytes = memory.limit_bytes;
    return kiln::capi::WriteStruct("kiln_memory_info", now, info);
  });
}

void kiln_device_retain(kiln_device* device) {
  if (device) kiln::capi::RetainHandle(&Unwrap(device)->client());
}

void kiln_device_release(kiln_device* device) {
  if (device) kiln::capi::ReleaseHandle(&Unwrap(device)->client());
}
