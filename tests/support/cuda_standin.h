// The stand-in for the CUDA driver's library, from the side of tests.
#pragma once

#include <gtest/gtest.h>

#include <memory>
#include <string>

#include "device/cuda/machine.h"

namespace kiln::device::cuda {

// Functions of tests/support/cuda/control.h.
struct Standin {
  int (*configure)(const char*);
  void (*reset)();
  void (*fail)(const char*, long long, long long, int);
  void (*fail_work)(int);
  void (*forget)();
  long long (*count)(const char*);
  void* (*make_context)(int);
  void (*destroy_context)(void*);
  void* (*make_stream)(void*, int);
  void (*destroy_stream)(void*);

  std::string path;
};
const Standin& TheStandin();

// Code with the kernels `copy`, of two parameters, and `fill`, of one.
extern const char kPtx[];

// The driver's library is the stand-in, of which nothing is left at the end of a test, and which
// nobody has asked for what cannot be.
class CudaTest : public ::testing::Test {
 protected:
  void SetUp() override;
  void TearDown() override;

  CudaOptions Options() const;
  // The only one; a failure of the test where there is none.
  std::unique_ptr<CudaMachine> Machine() { return Machine(Options()); }
  std::unique_ptr<CudaMachine> Machine(const CudaOptions& options);

  void Configure(const std::string& settings);
  int64_t Count(const std::string& what);
  void Fail(const char* symbol, int64_t first, int64_t times, Error error) {
    standin_.fail(symbol, first, times, static_cast<int>(error));
  }
  void FailNothing() { Fail(nullptr, 0, 0, Error::kSuccess); }

  const Standin& standin_ = TheStandin();
};

}  // namespace kiln::device::cuda
