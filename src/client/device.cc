#include "client/device.h"

#include <utility>

namespace kiln::client {

Device::Device(Client& client, int number, std::unique_ptr<runtime::Device> device,
               std::string description, bool shares_host_memory, runtime::ThreadPool& pool,
               std::string queue_name)
    : client_(client),
      number_(number),
      runtime_(std::move(device)),
      description_(std::move(description)),
      shares_host_memory_(shares_host_memory),
      pool_(pool),
      queue_(number, std::move(queue_name)) {}

}  // namespace kiln::client
