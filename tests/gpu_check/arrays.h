// Arrays on the host: arguments with random elements, and the comparison of results.
#pragma once

#include <cstdint>
#include <memory>

#include "base/status.h"
#include "library.h"

namespace kiln::gpu_check {

// Memory at a multiple of KILN_ALIGNMENT, with whatever is in it.
class HostArray {
 public:
  static Result<HostArray> Make(const Dims& dims);
  void* data() const { return data_.get(); }
  const Dims& dims() const { return dims_; }
  double At(int64_t i) const;

 private:
  struct Free {
    void operator()(void* memory) const;
  };
  std::unique_ptr<void, Free> data_;
  Dims dims_;
};

// Random numbers between two bounds; the same for the same seed. UNIMPLEMENTED but for f32, f16 and
// bf16.
Status Fill(const HostArray& array, double low, double high, uint64_t seed);

// The largest difference of an element, over the size of the largest that is expected. Of `actual`,
// every stride-th row counts, as many as are expected. NaN where there is one.
double Difference(const HostArray& actual, const HostArray& expected, int64_t stride = 1);

// Every stride-th row of an array, as many as there are in `to`.
void TakeRows(const HostArray& from, int64_t stride, const HostArray& to);

}  // namespace kiln::gpu_check
