#include "support/library_calls.h"

#include <cmath>
#include <complex>
#include <cstring>
#include <limits>
#include <random>

#include "runtime/custom_calls.h"
#include "runtime/lib/function.h"
#include "support/guarded_memory.h"

namespace kiln::testing {
namespace {

using Wide = std::complex<long double>;

class Memory {
 public:
  ~Memory() {
    for (auto [memory, bytes] : memory_) allocator_.Deallocate(memory, bytes);
  }
  std::byte* New(int64_t bytes) {
    memory_.push_back({allocator_.Allocate(bytes).value(), bytes});
    return memory_.back().first;
  }

 private:
  runtime::Allocator allocator_{GuardedMemory()};
  std::vector<std::pair<std::byte*, int64_t>> memory_;
};

Result<Literal> Run(const ir::Instruction& call, const std::vector<Literal>& operands,
                    int64_t in_place, runtime::ThreadPool& pool) {
  CallSignature signature = ir::CallSignatureOf(call);
  const runtime::lib::Entry* entry = runtime::lib::FindInLibrary(ir::HostCallTarget(call));
  if (!entry) return NotFound(ir::HostCallTarget(call));
  if (entry->scratch_bytes) {
    KILN_ASSIGN_OR_RETURN(signature.scratch_bytes, entry->scratch_bytes(signature));
  }
  // What a program keeps is the signature's bytes.
  KILN_ASSIGN_OR_RETURN(signature, CallSignature::Decode(signature.Encode()));
  KILN_ASSIGN_OR_RETURN(auto function, entry->make(signature));
  Memory memory;
  std::vector<void*> args;
  for (const Literal& operand : operands) {
    args.push_back(memory.New(operand.byte_size()));
    std::memcpy(args.back(), operand.data(), static_cast<size_t>(operand.byte_size()));
  }
  Literal result(signature.results[0]);
  args.push_back(in_place >= 0 ? args[static_cast<size_t>(in_place)]
                               : memory.New(result.byte_size()));
  void* const to = args.back();
  if (signature.scratch_bytes > 0) args.push_back(memory.New(signature.scratch_bytes));
  KILN_RETURN_IF_ERROR(runtime::RunFunction(*function, args.data(), &pool));
  std::memcpy(result.data(), to, static_cast<size_t>(result.byte_size()));
  return result;
}

Wide At(const Literal& literal, int64_t k) {
  auto at = static_cast<size_t>(k);
  switch (literal.shape().type()) {
    case ElementType::kC64:
      return Wide(literal.values<std::complex<float>>()[at]);
    case ElementType::kC128:
      return Wide(literal.values<std::complex<double>>()[at]);
    default:
      return literal.AsDouble(k);
  }
}

bool IsFinite(Wide x) { return std::isfinite(x.real()) && std::isfinite(x.imag()); }

}  // namespace

Result<Literal> CallLibrary(const ir::Instruction& call, const std::vector<Literal>& operands,
                            runtime::ThreadPool& pool) {
  return Run(call, operands, -1, pool);
}

Result<Literal> CallLibraryInPlace(const ir::Instruction& call,
                                   const std::vector<Literal>& operands, size_t in_place,
                                   runtime::ThreadPool& pool) {
  return Run(call, operands, static_cast<int64_t>(in_place), pool);
}

Literal NormalLiteral(const Shape& shape, uint64_t seed) {
  std::mt19937_64 random(seed);
  std::normal_distribution<double> normal;
  Literal literal(shape);
  auto fill = [&](auto zero) {
    using T = decltype(zero);
    for (T& x : literal.values<T>()) x = static_cast<T>(normal(random));
  };
  switch (shape.type()) {
    case ElementType::kC64:
      fill(float{});
      break;
    case ElementType::kC128:
      fill(double{});
      break;
    default:
      VisitType(shape.type(), fill);
  }
  return literal;
}

double RelativeError(const Literal& expected, const Literal& actual) {
  long double error = 0, size = 0;
  for (int64_t k = 0; k < expected.shape().num_elements(); ++k) {
    const Wide x = At(expected, k), y = At(actual, k);
    if (!IsFinite(x) || !IsFinite(y)) {
      // The same infinities and NaNs, part by part.
      auto same = [](long double a, long double b) {
        return std::isnan(a) ? std::isnan(b) : a == b;
      };
      if (same(x.real(), y.real()) && same(x.imag(), y.imag())) continue;
      return std::numeric_limits<double>::infinity();
    }
    error += std::norm(x - y);
    size += std::norm(x);
  }
  return size > 0 ? static_cast<double>(std::sqrt(error / size))
                  : static_cast<double>(std::sqrt(error));
}

}  // namespace kiln::testing
