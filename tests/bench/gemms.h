// Gemms of ours and arrays for them, to be measured beside those of other libraries.
#pragma once

#include <cstdint>
#include <cstdlib>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "kernel/schedule/cpu/gemm.h"
#include "runtime/thread_pool.h"
#include "support/kernel_jit.h"
#include "tensor/element_type.h"

namespace kiln::bench {

struct FreeDeleter {
  void operator()(void* p) const { std::free(p); }
};
using Memory = std::unique_ptr<void, FreeDeleter>;

// Zeros, from a page's beginning on.
Memory Allocate(int64_t bytes);

struct Shape3 {
  int64_t m, n, k;
  std::string ToString() const;
  double flops() const;
};

// The types of A, B, and of sums and C.
struct GemmTypes {
  ElementType a, b, c;
};
inline constexpr GemmTypes kSingle = {ElementType::kF32, ElementType::kF32, ElementType::kF32};

// Row-major matrices, A and B with random numbers.
struct GemmArrays {
  GemmArrays(const Shape3& shape, const GemmTypes& types);
  Shape3 shape;
  GemmTypes types;
  Memory a, b, c, bias;
};

struct GemmForm {
  bool constant = false;   // B is packed once
  bool bias_relu = false;  // as an epilogue
};

// One of our kernels with its operands. It aborts if there is none.
class GemmRun {
 public:
  GemmRun(const GemmArrays& arrays, const GemmForm& form);

  void Run();
  void Run(runtime::ThreadPool& pool);
  double compile_milliseconds() const { return jit_->compile_milliseconds(); }

 private:
  kernel::GemmSchedule schedule_;
  std::unique_ptr<testing::KernelJit> jit_;
  Memory scratch_, packed_a_, packed_b_;
  // Of the kernel that packs A, if there is one, and of the gemm.
  std::vector<void*> pack_args_, args_;
  kiln_kernel_fn pack_ = nullptr, kernel_ = nullptr;
  int64_t pieces_ = 1;
};

// Those who take turns at one gemm.
struct Contender {
  std::string name;
  std::function<void()> run;
  std::vector<double> seconds = {};

  double Rate(const Shape3& s);
};

void TakeTurns(std::vector<Contender>& contenders, int threads);

}  // namespace kiln::bench
