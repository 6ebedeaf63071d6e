#include "tools/kiln_run/handles.h"

namespace kiln::run {

Status OpenContext(const std::string& device_name, int threads, Context* context,
                   kiln_device** device) {
  Status status;
  for (kiln_gpu_mode mode : {KILN_GPU_AUTO, KILN_GPU_EMULATED}) {
    kiln_context_options o = KILN_CONTEXT_OPTIONS_INIT;
    o.threads = threads;
    o.gpu = mode;
    kiln_context* made = nullptr;
    KILN_RETURN_IF_ERROR(StatusOf(kiln_context_create(&o, &made)));
    context->reset(made);
    status =
        StatusOf(kiln_context_find_device(made, device_name.data(), device_name.size(), device));
    if (status.ok()) break;
  }
  return status;
}

}  // namespace kiln::run
