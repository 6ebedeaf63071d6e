#include "client/executable.h"

#include <utility>

#include "program/steps.h"

namespace kiln::client {
namespace {

// About half of the time it takes another thread to begin.
constexpr double kSmallNanoseconds = 5000;

std::vector<size_t> PlacesOfArrays(const std::vector<Shape>& shapes) {
  std::vector<size_t> places;
  for (size_t i = 0; i < shapes.size(); ++i) {
    if (shapes[i].is_array()) places.push_back(i);
  }
  return places;
}

// Tokens have no bytes, and all are at one address.
template <typename T>
std::vector<T*> WithTokens(const std::vector<size_t>& places, std::span<T* const> arrays,
                           size_t count) {
  alignas(program::kAlignment) static std::byte nothing[program::kAlignment];
  std::vector<T*> all(count, nothing);
  for (size_t i = 0; i < arrays.size(); ++i) all[places[i]] = arrays[i];
  return all;
}

std::vector<std::vector<int64_t>> DimsOf(const std::vector<Shape>& shapes) {
  std::vector<std::vector<int64_t>> dims;
  for (const Shape& shape : shapes) dims.push_back(shape.dims());
  return dims;
}

}  // namespace

ArraySignature::ArraySignature(const program::Signature& all)
    : arguments_(PlacesOfArrays(all.parameters)), results_(PlacesOfArrays(all.results)) {
  if (arguments_.size() == all.parameters.size() && results_.size() == all.results.size()) return;
  auto signature = std::make_unique<program::Signature>();
  std::vector<int> numbers(all.parameters.size(), -1);
  for (size_t i : arguments_) {
    numbers[i] = static_cast<int>(signature->parameters.size());
    signature->parameters.push_back(all.parameters[i]);
    signature->parameter_names.push_back(all.parameter_names[i]);
  }
  for (size_t i : results_) {
    const int alias = all.aliases[i];
    signature->results.push_back(all.results[i]);
    signature->aliases.push_back(alias < 0 ? -1 : numbers[static_cast<size_t>(alias)]);
    signature->must_alias.push_back(all.must_alias[i]);
  }
  signature->result_shape = all.result_shape;
  signature_ = std::move(signature);
}

std::vector<const void*> ArraySignature::AllArguments(std::span<const void* const> arrays,
                                                      size_t count) const {
  return WithTokens(arguments_, arrays, count);
}

std::vector<void*> ArraySignature::AllResults(std::span<void* const> arrays, size_t count) const {
  return WithTokens(results_, arrays, count);
}

CompiledExecutable::CompiledExecutable(Device& device,
                                       std::unique_ptr<runtime::LoadedExecutable> loaded,
                                       int64_t compile_microseconds, bool has_partial_cost,
                                       std::vector<bool> donatable)
    : Executable(loaded->program().name, device),
      loaded_(std::move(loaded)),
      arrays_(loaded_->program().signature),
      compile_microseconds_(compile_microseconds),
      is_small_(loaded_->program().nanoseconds <= kSmallNanoseconds),
      is_straight_(program::IsStraight(loaded_->program().steps)),
      has_partial_cost_(has_partial_cost),
      donatable_(std::move(donatable)),
      argument_dims_(DimsOf(signature().parameters)),
      result_dims_(DimsOf(signature().results)) {}

bool CompiledExecutable::takes_streams() const { return device().runtime().cuda() != nullptr; }

Result<std::unique_ptr<runtime::Completion>> CompiledExecutable::Start(
    std::span<const void* const> arguments, std::span<void* const> results,
    const runtime::RunOptions& options) const {
  if (!arrays_.get()) return loaded_->Start(arguments, results, options);
  const program::Signature& all = program().signature;
  return loaded_->Start(arrays_.AllArguments(arguments, all.parameters.size()),
                        arrays_.AllResults(results, all.results.size()), options);
}

}  // namespace kiln::client
