#include "peers.h"

#include <dlfcn.h>

#include <initializer_list>

#include "harness.h"

namespace kiln::bench {
namespace {

using SetThreadsFn = void (*)(int);
using CblasSgemmFn = void (*)(int order, int trans_a, int trans_b, int m, int n, int k, float alpha,
                              const float* a, int lda, const float* b, int ldb, float beta,
                              float* c, int ldc);
using DnnlSgemmFn = int (*)(char trans_a, char trans_b, int64_t m, int64_t n, int64_t k,
                            float alpha, const float* a, int64_t lda, const float* b, int64_t ldb,
                            float beta, float* c, int64_t ldc);

void* Open(std::initializer_list<const char*> names) {
  for (const char* name : names) {
    if (void* handle = dlopen(name, RTLD_NOW | RTLD_LOCAL)) return handle;
  }
  return nullptr;
}

void RunOpenBlas(void* function, const Sgemm& p) {
  constexpr int kRowMajor = 101, kNoTrans = 111;
  int m = static_cast<int>(p.m), n = static_cast<int>(p.n), k = static_cast<int>(p.k);
  reinterpret_cast<CblasSgemmFn>(function)(kRowMajor, kNoTrans, kNoTrans, m, n, k, 1.0f, p.a, k,
                                           p.b, n, 0.0f, p.c, n);
}

void RunOneDnn(void* function, const Sgemm& p) {
  reinterpret_cast<DnnlSgemmFn>(function)('N', 'N', p.m, p.n, p.k, 1.0f, p.a, p.k, p.b, p.n, 0.0f,
                                          p.c, p.n);
}

}  // namespace

const std::vector<GemmPeer>& GemmPeers() {
  static const std::vector<GemmPeer> peers = [] {
    std::vector<GemmPeer> found;
    auto add = [&](const char* name, void* set_threads, void (*run)(void*, const Sgemm&),
                   void* function) {
      if (!set_threads || !function) return;
      GemmPeer peer;
      peer.name_ = name;
      peer.set_threads_ = reinterpret_cast<SetThreadsFn>(set_threads);
      peer.run_ = run;
      peer.function_ = function;
      found.push_back(peer);
    };
    // The distribution's oneDNN takes its threads from OpenMP.
    void* dnnl = Open({"libdnnl.so.3", "libdnnl.so.2", "libdnnl.so"});
    void* openmp = dnnl ? Open({"libgomp.so.1"}) : nullptr;
    if (openmp) {
      add("oneDNN", dlsym(openmp, "omp_set_num_threads"), RunOneDnn, dlsym(dnnl, "dnnl_sgemm"));
    }
    if (void* blas = Open({"libopenblas.so.0", "libopenblas.so"})) {
      add("OpenBLAS", dlsym(blas, "openblas_set_num_threads"), RunOpenBlas,
          dlsym(blas, "cblas_sgemm"));
    }
    return found;
  }();
  return peers;
}

KILN_BENCH(peers) {
  if (GemmPeers().empty()) report.Note("peers", "neither oneDNN nor OpenBLAS is installed");
  for (const GemmPeer& peer : GemmPeers()) {
    peer.SetThreads(1);
    for (int64_t size : {64, 256, 1024}) {
      std::vector<float> a(size * size, 0.5f), b(size * size, 0.25f), c(size * size);
      Sgemm gemm{size, size, size, a.data(), b.data(), c.data()};
      double seconds = Measure([&] { peer.Run(gemm); }).median;
      double flops = 2.0 * static_cast<double>(size) * static_cast<double>(size * size);
      report.Add(peer.name() + "/sgemm/" + std::to_string(size), flops / seconds / 1e9, "GFLOP/s");
    }
  }
}

}  // namespace kiln::bench
