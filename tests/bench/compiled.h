// A module compiled for this machine, with arguments and results of its own.
#pragma once

#include <cstdlib>
#include <memory>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "compiler/compiler.h"
#include "device/cpu/executable.h"
#include "harness.h"
#include "ir/text.h"

namespace kiln::bench {

class Compiled {
 public:
  // On threads of its own, or on those of another one that it is measured beside.
  Compiled(std::string_view text, int threads, std::set<std::string> disabled_passes = {},
           Compiled* beside = nullptr)
      : own_pool_(beside ? nullptr : std::make_unique<runtime::ThreadPool>(threads)),
        pool_(beside ? beside->pool_ : *own_pool_) {
    auto artefact = Compile(text, 1, std::move(disabled_passes));
    if (!artefact.ok()) {
      error_ = artefact.status().ToString();
      return;
    }
    artefact_ = std::make_shared<const program::Artefact>(*std::move(artefact));
    auto loaded = device::CpuExecutable::Load(*artefact_, allocator_, pool_);
    if (!loaded.ok()) {
      error_ = loaded.status().ToString();
      return;
    }
    executable_ = *std::move(loaded);
    for (const Shape& s : artefact_->program.signature.parameters) {
      float* p = Allocate(s.byte_size());
      VisitKernelType(s.type(), [&](auto zero) {
        using T = decltype(zero);
        for (int64_t i = 0; i < s.num_elements(); ++i) {
          reinterpret_cast<T*>(p)[i] =
              FloatType<T> ? T(static_cast<float>(i % 1000) * 1e-3f) : T(i % 100);
        }
      });
      arguments_.push_back(p);
    }
    for (const Shape& s : artefact_->program.signature.results) {
      results_.push_back(Allocate(s.byte_size()));
    }
  }

  static Result<program::Artefact> Compile(std::string_view text, int threads = 1,
                                           std::set<std::string> disabled_passes = {}) {
    KILN_ASSIGN_OR_RETURN(std::unique_ptr<ir::Module> module, ir::ParseHloText(text));
    compiler::Options options;
    options.threads = threads;
    options.disabled_passes = std::move(disabled_passes);
    return compiler::Compile(std::move(module), target::HostCpu(), options);
  }

  void Run() {
    if (executable_ && !executable_->Run(arguments_, results_).ok()) failed_ = true;
  }
  double Seconds() {
    return Measure([this] { Run(); }).median;
  }
  bool ok() const { return executable_ != nullptr && !failed_; }
  const program::Program& program() const { return artefact_->program; }
  // Numbers of every size between two bounds into an argument of f32.
  void Fill(size_t i, float low, float high) {
    int64_t n = artefact_->program.signature.parameters[i].num_elements();
    auto* p = static_cast<float*>(const_cast<void*>(arguments_[i]));
    for (int64_t k = 0; k < n; ++k) {
      p[k] = low + (high - low) * static_cast<float>(k * 40503 % 65536) / 65536;
    }
  }
  // The threads that it runs on: two pools beside each other would be in each other's way.
  runtime::ThreadPool& pool() { return pool_; }
  const float* argument(size_t i) const { return static_cast<const float*>(arguments_[i]); }
  float* result(size_t i) const { return static_cast<float*>(results_[i]); }
  const std::string& error() const { return error_; }

 private:
  float* Allocate(int64_t bytes) {
    memory_.push_back(std::unique_ptr<void, void (*)(void*)>(
        std::aligned_alloc(64, static_cast<size_t>((bytes + 63) / 64 * 64 + 64)), &std::free));
    return static_cast<float*>(memory_.back().get());
  }

  runtime::Allocator allocator_;
  std::unique_ptr<runtime::ThreadPool> own_pool_;
  runtime::ThreadPool& pool_;
  std::shared_ptr<const program::Artefact> artefact_;
  std::unique_ptr<device::CpuExecutable> executable_;
  std::vector<std::unique_ptr<void, void (*)(void*)>> memory_;
  std::vector<const void*> arguments_;
  std::vector<void*> results_;
  std::string error_;
  bool failed_ = false;
};

}  // namespace kiln::bench
