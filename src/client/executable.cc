#include "client/executable.h"

#include <utility>

#include "program/steps.h"

namespace kiln::client {
namespace {

// About half of the time it takes another thread to begin.
constexpr double kSmallNanoseconds = 5000;

std::vector<std::vector<int64_t>> DimsOf(const std::vector<Shape>& shapes) {
  std::vector<std::vector<int64_t>> dims;
  for (const Shape& shape : shapes) dims.push_back(shape.dims());
  return dims;
}

}  // namespace

Executable::Executable(std::string name, Device& device)
    : client_(Ref<Client>::Share(&device.client())), device_(device), name_(std::move(name)) {}
Executable::~Executable() = default;

CompiledExecutable::CompiledExecutable(Device& device,
                                       std::unique_ptr<runtime::LoadedExecutable> loaded,
                                       int64_t compile_microseconds)
    : Executable(loaded->program().name, device),
      loaded_(std::move(loaded)),
      frozen_(program().frozen.empty() ? nullptr
                                       : std::make_unique<FrozenArguments>(device, *loaded_)),
      compile_microseconds_(compile_microseconds),
      is_small_(loaded_->program().nanoseconds <= kSmallNanoseconds),
      is_straight_(program::IsStraight(loaded_->program().steps)),
      argument_dims_(DimsOf(signature().parameters)),
      result_dims_(DimsOf(signature().results)) {}

bool CompiledExecutable::takes_streams() const { return device().runtime().cuda() != nullptr; }

}  // namespace kiln::client
