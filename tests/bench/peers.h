// Other libraries that do a part of the job, loaded at run time where they are installed.
#pragma once

#include <cstdint>
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

}  // namespace kiln::bench
