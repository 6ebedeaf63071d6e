// Other libraries that do a part of the job, loaded at run time where they are installed.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

namespace kiln::bench {

struct Sgemm {
  int64_t m, n, k;
  // Row-major, dense: a[m, k], b[k, n], c[m, n] = a * b.
  const float* a;
  const float* b;
  float* c;
};

class GemmPeer {
 public:
  const std::string& name() const { return name_; }
  // How many threads later calls use.
  void SetThreads(int threads) const { set_threads_(threads); }
  void Run(const Sgemm& gemm) const { run_(function_, gemm); }

 private:
  friend const std::vector<GemmPeer>& GemmPeers();
  std::string name_;
  void (*set_threads_)(int) = nullptr;
  void (*run_)(void* function, const Sgemm& gemm) = nullptr;
  void* function_ = nullptr;
};

// oneDNN and OpenBLAS, those of them that are installed.
const std::vector<GemmPeer>& GemmPeers();

// A product of the distribution's oneDNN 2 with its threads: c[m, n] = a[m, k] * b[k, n], row-major
// and dense, in its best kernel for the types.
class OneDnnProduct {
 public:
  enum class Type { kBf16 = 2, kF32 = 3, kS32 = 4, kS8 = 5, kU8 = 6 };  // as oneDNN has them
  struct Problem {
    int64_t m, n, k;
    Type a_type, b_type, c_type;
    void *a, *b, *c;
    bool constant = false;  // B is brought into the library's own order once
  };

  // None where the library or its kernel is missing.
  static std::unique_ptr<OneDnnProduct> Make(const Problem& problem, int threads);
  ~OneDnnProduct();
  void Run();

 private:
  OneDnnProduct();
  struct Parts;
  std::unique_ptr<Parts> parts_;
};

}  // namespace kiln::bench
