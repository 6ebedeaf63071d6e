#include "arrays.h"

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <limits>
#include <mutex>
#include <thread>
#include <vector>

#include "tensor/small_float.h"

namespace kiln::gpu_check {
namespace {

// Calls f(first, end) for pieces of a range, on all processors.
void InParallel(int64_t count, const std::function<void(int64_t, int64_t)>& f) {
  constexpr int64_t kLeast = 1 << 16;
  int64_t pieces = std::clamp<int64_t>(std::thread::hardware_concurrency(), 1, count / kLeast + 1);
  std::vector<std::thread> threads;
  for (int64_t p = 0; p < pieces; ++p) {
    threads.emplace_back(f, count * p / pieces, count * (p + 1) / pieces);
  }
  for (std::thread& t : threads) t.join();
}

// SplitMix64's numbers, 24 bits of them.
double Random(uint64_t number) {
  uint64_t z = (number + 1) * 0x9e3779b97f4a7c15u;
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
  z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
  return static_cast<double>((z ^ (z >> 31)) >> 40) * 0x1p-24;
}

int64_t RowSize(const Dims& dims) {
  return dims.sizes.empty() || dims.sizes[0] == 0 ? dims.elements : dims.elements / dims.sizes[0];
}

}  // namespace

void HostArray::Free::operator()(void* memory) const { std::free(memory); }

Result<HostArray> HostArray::Make(const Dims& dims) {
  HostArray array;
  size_t bytes = static_cast<size_t>((dims.bytes + KILN_ALIGNMENT - 1) / KILN_ALIGNMENT + 1);
  array.data_.reset(std::aligned_alloc(KILN_ALIGNMENT, bytes * KILN_ALIGNMENT));
  if (!array.data_) return ResourceExhausted(dims.bytes, " bytes of the host's memory");
  array.dims_ = dims;
  return array;
}

double HostArray::At(int64_t i) const {
  switch (dims_.dtype) {
    case KILN_F32:
      return static_cast<const float*>(data())[i];
    case KILN_F64:
      return static_cast<const double*>(data())[i];
    case KILN_F16:
      return static_cast<double>(static_cast<const Float16*>(data())[i]);
    case KILN_BF16:
      return static_cast<double>(static_cast<const BFloat16*>(data())[i]);
    default:
      return std::numeric_limits<double>::quiet_NaN();
  }
}

Status Fill(const HostArray& array, double low, double high, uint64_t seed) {
  auto fill = [&]<typename T>(T* data) {
    InParallel(array.dims().elements, [&](int64_t first, int64_t end) {
      for (int64_t i = first; i < end; ++i) {
        double part = Random(seed << 40 | static_cast<uint64_t>(i));
        data[i] = static_cast<T>(static_cast<float>(low + (high - low) * part));
      }
    });
    return OkStatus();
  };
  switch (array.dims().dtype) {
    case KILN_F32:
      return fill(static_cast<float*>(array.data()));
    case KILN_F16:
      return fill(static_cast<Float16*>(array.data()));
    case KILN_BF16:
      return fill(static_cast<BFloat16*>(array.data()));
    default:
      return Unimplemented("arguments of ", kiln_dtype_name(array.dims().dtype));
  }
}

double Difference(const HostArray& actual, const HostArray& expected, int64_t stride) {
  const int64_t row = RowSize(expected.dims());
  std::mutex mutex;
  double largest = 0, size = 0;
  bool is_number = true;
  InParallel(expected.dims().elements, [&](int64_t first, int64_t end) {
    double difference = 0, magnitude = 0;
    bool numbers = true;
    for (int64_t i = first; i < end; ++i) {
      double e = expected.At(i), a = actual.At(i / row * stride * row + i % row);
      numbers = numbers && std::isfinite(a) && std::isfinite(e);
      difference = std::max(difference, std::abs(a - e));
      magnitude = std::max(magnitude, std::abs(e));
    }
    std::lock_guard lock(mutex);
    largest = std::max(largest, difference);
    size = std::max(size, magnitude);
    is_number = is_number && numbers;
  });
  if (!is_number) return std::numeric_limits<double>::quiet_NaN();
  return size > 0 ? largest / size : largest;
}

void TakeRows(const HostArray& from, int64_t stride, const HostArray& to) {
  const int64_t rows = to.dims().sizes[0], bytes = to.dims().bytes / std::max<int64_t>(rows, 1);
  for (int64_t r = 0; r < rows; ++r) {
    std::memcpy(static_cast<std::byte*>(to.data()) + r * bytes,
                static_cast<const std::byte*>(from.data()) + r * stride * bytes,
                static_cast<size_t>(bytes));
  }
}

}  // namespace kiln::gpu_check
