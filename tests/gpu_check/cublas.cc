#include "cublas.h"

#include <dlfcn.h>

#include <vector>

namespace kiln::gpu_check {
namespace {

template <typename F>
Status Find(void* library, const char* symbol, F* function) {
  *function = reinterpret_cast<F>(dlsym(library, symbol));
  return *function ? OkStatus() : NotFound("cuBLAS has no ", symbol);
}

Result<void*> OpenLibrary(const std::string& file) {
  std::vector<std::string> names = {file};
  if (file.empty()) names = {"libcublas.so.13", "libcublas.so.12", "libcublas.so.11"};
  // In the folder of a Python package the loader does not look for what it needs.
  const std::string plain = "libcublas.so";
  if (size_t at = file.rfind(plain); at != std::string::npos) {
    std::string beside = file;
    dlopen(beside.replace(at, plain.size(), "libcublasLt.so").c_str(), RTLD_NOW | RTLD_GLOBAL);
  }
  std::string said;
  for (const std::string& name : names) {
    if (void* library = dlopen(name.c_str(), RTLD_NOW | RTLD_LOCAL)) return library;
    if (said.empty()) said = dlerror();
  }
  return NotFound("no cuBLAS: ", said);
}

}  // namespace

Result<std::unique_ptr<Cublas>> Cublas::Open(const std::string& file, const Driver& driver) {
  KILN_ASSIGN_OR_RETURN(void* library, OpenLibrary(file));
  std::unique_ptr<Cublas> blas(new Cublas);
  CublasCreate create = nullptr;
  CublasSetStream set_stream = nullptr;
  CublasGetVersion get_version = nullptr;
  KILN_RETURN_IF_ERROR(Find(library, "cublasCreate_v2", &create));
  KILN_RETURN_IF_ERROR(Find(library, "cublasSetStream_v2", &set_stream));
  KILN_RETURN_IF_ERROR(Find(library, "cublasGetVersion_v2", &get_version));
  KILN_RETURN_IF_ERROR(Find(library, "cublasDestroy_v2", &blas->destroy_));
  KILN_RETURN_IF_ERROR(Find(library, "cublasGemmEx", &blas->gemm_));
  void* handle = nullptr;
  if (int status = create(&handle); status != 0) return Internal("cublasCreate: status ", status);
  blas->handle_ = handle;
  if (int status = set_stream(handle, driver.stream()); status != 0) {
    return Internal("cublasSetStream: status ", status);
  }
  int version = 0;
  get_version(handle, &version);
  // 120804, and from 13 on as long.
  blas->name_ = Cat("cuBLAS ", version / 10000, ".", version / 100 % 100, ".", version % 100);
  return blas;
}

Cublas::~Cublas() {
  if (handle_) destroy_(handle_);
}

Status Cublas::Multiply(GemmType type, const GemmSize& size, uint64_t x, uint64_t y, uint64_t out) {
  const int data = type == GemmType::kF16 ? kR16F : type == GemmType::kBF16 ? kR16BF : kR32F;
  const int compute = type == GemmType::kTF32 ? kCompute32FFastTF32 : kCompute32F;
  const float one = 1, zero = 0;
  // Its arrays are column-major: the transposed gemm is that of the factors the other way round.
  const int m = static_cast<int>(size.n), n = static_cast<int>(size.m),
            k = static_cast<int>(size.k);
  int status =
      gemm_(handle_, kNotTransposed, kNotTransposed, m, n, k, &one,
            reinterpret_cast<const void*>(y), data, m, reinterpret_cast<const void*>(x), data, k,
            &zero, reinterpret_cast<void*>(out), data, m, compute, kAlgorithmDefault);
  return status == 0 ? OkStatus() : Internal("cublasGemmEx: status ", status);
}

}  // namespace kiln::gpu_check
