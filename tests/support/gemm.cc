#include "support/gemm.h"

#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <random>
#include <type_traits>

#include "codegen/cpu/gemm.h"
#include "support/kernel_jit.h"
#include "support/tiles.h"

namespace kiln::testing {
namespace {

using codegen::EmitGemm;
using codegen::EmitGemmPackA;
using codegen::EmitGemmPackB;
using codegen::GemmEpilogue;
using codegen::GemmRows;
using codegen::GemmVector;
using kernel::ChooseGemmSchedule;
using kernel::CompleteGemmSchedule;
using kernel::GemmB;
using kernel::GemmBatchDimension;
using kernel::GemmProblem;
using kernel::GemmSchedule;
using llvm::Value;
using Case = GemmCase;
using Epilogue = GemmEpilogueCase;

// Memory that ends where a page without access begins: what reads or writes beyond it is killed.
class Guarded {
 public:
  explicit Guarded(int64_t bytes) {
    const int64_t page = sysconf(_SC_PAGESIZE);
    const int64_t pages = (bytes + page - 1) / page + 1;
    size_ = static_cast<size_t>((pages + 1) * page);
    map_ = static_cast<char*>(
        mmap(nullptr, size_, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
    mprotect(map_ + pages * page, static_cast<size_t>(page), PROT_NONE);
    data_ = map_ + pages * page - bytes;
  }
  ~Guarded() { munmap(map_, size_); }
  Guarded(const Guarded&) = delete;
  void* data() const { return data_; }

 private:
  char* map_;
  char* data_;
  size_t size_;
};

// The least and the greatest offset of an operand's elements.
struct Span {
  int64_t low = 0, high = 0;
  void Add(int64_t extent, int64_t stride) { (stride < 0 ? low : high) += (extent - 1) * stride; }
};

template <typename T>
T Random(std::mt19937& random) {
  if constexpr (std::is_floating_point_v<T>) {
    return static_cast<T>(std::uniform_real_distribution<double>(-1, 1)(random));
  } else {
    return static_cast<T>(random());
  }
}

template <typename T>
class Checker {
 public:
  explicit Checker(const Case& c) : case_(c), p_(c.problem) {}

  void Run() {
    Result<GemmSchedule> chosen = ChooseGemmSchedule(case_.cpu, p_);
    ASSERT_TRUE(chosen.ok()) << chosen.status().ToString();
    s_ = *chosen;
    if (case_.change) {
      case_.change(s_);
      CompleteGemmSchedule(case_.cpu, p_, s_);
    }
    SCOPED_TRACE(Cat(p_.ToString(), " | ", s_.ToString(), " | vector ", case_.cpu.vector_bytes,
                     " epilogue ", static_cast<int>(case_.epilogue)));
    Compile();
    if (::testing::Test::HasFatalFailure()) return;
    Fill();
    // Once as a whole, once in pieces of 1, 2, 3 and so on items, backwards: the same bits.
    std::vector<T> whole = Execute(false);
    std::vector<T> pieces = Execute(true);
    ASSERT_EQ(std::memcmp(whole.data(), pieces.data(), whole.size() * sizeof(T)), 0);
    Compare(whole);
    if (s_.polls) ExpectNothingIfCancelled();
  }

 private:
  void Compile() {
    auto jit = KernelJit::Create(case_.cpu);
    ASSERT_TRUE(jit.ok()) << jit.status().ToString();
    jit_ = *std::move(jit);
    Status added;
    if (case_.other) {
      GemmProblem other = p_;
      GemmSchedule s = s_;
      case_.other(other, s);
      CompleteGemmSchedule(case_.cpu, other, s);
      GemmEpilogue nothing;
      if (!case_.of_any_size || case_.epilogue != Epilogue::kNone)
        nothing.emit = [](llvm::IRBuilder<>&, const GemmVector&) {};
      if (HasResidual()) nothing.reads = {RowsOfC(other)};
      added = jit_->Add(
          "other", [&](llvm::Function* f) { return EmitGemm(f, other, s, Operands(), nothing); });
      ASSERT_TRUE(added.ok()) << added.ToString();
    }
    added = jit_->Add("gemm", [&](llvm::Function* f) {
      Status emitted = EmitGemm(f, p_, s_, Operands(), MakeEpilogue());
      auto begins = [&](const char* name) {
        return std::ranges::count_if(*f->getParent(), [&](const llvm::Function& g) {
          return g.getName().starts_with(name);
        });
      };
      if (case_.other) EXPECT_EQ(begins("gemm of any"), 1);
      EmulateUnits(*f->getParent());
      EXPECT_LE(begins("pack columns") + begins("pack ragged columns"), 1);
      return emitted;
    });
    ASSERT_TRUE(added.ok()) << added.ToString();
    if (s_.pack_a) {
      added =
          jit_->Add("pack_a", [&](llvm::Function* f) { return EmitGemmPackA(f, p_, s_, 0, 1); });
      ASSERT_TRUE(added.ok()) << added.ToString();
    }
    if (s_.b == GemmB::kPrepacked) {
      added = jit_->Add("pack_b", [&](llvm::Function* f) {
        Status emitted = EmitGemmPackB(f, p_, s_, 0, 1);
        EmulateUnits(*f->getParent());
        return emitted;
      });
      ASSERT_TRUE(added.ok()) << added.ToString();
    }
    Status compiled = jit_->Compile();
    ASSERT_TRUE(compiled.ok()) << compiled.ToString();
  }

  codegen::GemmOperands Operands() const {
    return {.a = 0, .b = 1, .c = 2, .scratch = 3, .of_any_size = case_.of_any_size};
  }

  // max(C + bias, 0), or C added to what is in the result already.
  GemmEpilogue MakeEpilogue() {
    if (case_.epilogue == Epilogue::kNone) return {};
    GemmEpilogue epilogue;
    epilogue.emit = [this](llvm::IRBuilder<>& b, const GemmVector& v) {
      llvm::Function* f = b.GetInsertBlock()->getParent();
      auto arg = [&](int i) {
        return b.CreateLoad(b.getPtrTy(), b.CreateConstGEP1_64(b.getPtrTy(), f->getArg(1), i));
      };
      llvm::Type* vector = v.value->getType();
      llvm::Type* element = vector->getScalarType();
      auto load = [&](Value* pointer) -> Value* {
        const llvm::Align align(sizeof(T));
        if (v.mask == nullptr) return b.CreateAlignedLoad(vector, pointer, align);
        return b.CreateMaskedLoad(vector, pointer, align, v.mask);
      };
      auto store = [&](Value* value, Value* pointer) {
        const llvm::Align align(sizeof(T));
        if (v.mask == nullptr) {
          b.CreateAlignedStore(value, pointer, align);
        } else {
          b.CreateMaskedStore(value, pointer, align, v.mask);
        }
      };
      Value* offset = b.CreateAdd(b.CreateMul(v.m, b.getInt64(static_cast<uint64_t>(p_.c_m))), v.n);
      for (size_t i = 0; i < v.batch.size(); ++i) {
        offset = b.CreateAdd(
            offset, b.CreateMul(v.batch[i], b.getInt64(static_cast<uint64_t>(p_.batch[i].c))));
      }
      Value* out = b.CreateGEP(element, arg(2), offset);
      if (HasResidual()) {
        return store(b.CreateFAdd(v.value, load(out)), out);
      }
      Value* sum = b.CreateFAdd(v.value, load(b.CreateGEP(element, arg(4), v.n)));
      Value* zero = llvm::Constant::getNullValue(vector);
      store(b.CreateSelect(b.CreateFCmpOGT(sum, zero), sum, zero), out);
    };
    if (HasResidual()) epilogue.reads = {RowsOfC(p_)};
    if (case_.epilogue == Epilogue::kShortResidual) {
      epilogue.may_have_own_gemm = true;
    }
    return epilogue;
  }

  static GemmRows RowsOfC(const GemmProblem& p) {
    GemmRows rows{.arg = 2, .element_bytes = sizeof(T), .m = p.c_m};
    for (const GemmBatchDimension& d : p.batch) rows.batch.push_back(d.c);
    return rows;
  }

  // The result is added to what is in its place.
  bool HasResidual() const {
    return case_.epilogue == Epilogue::kInPlaceResidual ||
           case_.epilogue == Epilogue::kShortResidual;
  }

  std::vector<T> Array(int64_t count, bool random) {
    // What belongs to no element would show as NaN.
    T blank = std::numeric_limits<T>::has_quiet_NaN ? std::numeric_limits<T>::quiet_NaN() : T(77);
    std::vector<T> array(static_cast<size_t>(count), blank);
    if (random) {
      for (T& x : array) x = Random<T>(random_);
    }
    return array;
  }

  // Calls f(batch offsets' indices) for each batch index.
  template <typename F>
  void ForEachBatch(F f) {
    for (int64_t linear = 0; linear < p_.BatchSize(); ++linear) {
      int64_t rest = linear, a = 0, b = 0, c = 0;
      for (size_t i = p_.batch.size(); i-- > 0;) {
        const GemmBatchDimension& d = p_.batch[i];
        a += rest % d.size * d.a;
        b += rest % d.size * d.b;
        c += rest % d.size * d.c;
        rest /= d.size;
      }
      f(a, b, c);
    }
  }

  void Fill() {
    a_span_.Add(p_.m, p_.a_m), a_span_.Add(std::max<int64_t>(p_.k, 1), p_.a_k);
    b_span_.Add(p_.n, p_.b_n), b_span_.Add(std::max<int64_t>(p_.k, 1), p_.b_k);
    c_span_.Add(p_.m, p_.c_m), c_span_.Add(p_.n, p_.c_n);
    for (const GemmBatchDimension& d : p_.batch) {
      a_span_.Add(d.size, d.a), b_span_.Add(d.size, d.b), c_span_.Add(d.size, d.c);
    }
    a_ = Array(a_span_.high - a_span_.low + 1, false);
    b_ = Array(b_span_.high - b_span_.low + 1, false);
    c_ = Array(c_span_.high - c_span_.low + 1, HasResidual());
    bias_ = Array(p_.n, true);
    ForEachBatch([&](int64_t a, int64_t b, int64_t) {
      for (int64_t k = 0; k < p_.k; ++k) {
        for (int64_t m = 0; m < p_.m; ++m) A(a, m, k) = ValueOf(p_.TypeOfA());
        for (int64_t n = 0; n < p_.n; ++n) B(b, k, n) = ValueOf(p_.TypeOfB());
      }
    });
  }

  T ValueOf(ElementType type) {
    if (!case_.extreme) return Kept(type, Random<T>(random_));
    return VisitKernelType(type, [](auto zero) {
      using Limits = std::numeric_limits<decltype(zero)>;
      return static_cast<T>(Limits::is_signed ? Limits::lowest() : Limits::max());
    });
  }

  // What an array of elements of `type` keeps of a value.
  template <typename To>
  static To Element(T value) {
    if constexpr (std::is_floating_point_v<T> && std::is_integral_v<To>) {
      return std::isnan(value) ? To(77) : static_cast<To>(50 * value);
    } else {
      return static_cast<To>(value);
    }
  }
  static T Kept(ElementType type, T value) {
    return VisitKernelType(
        type, [&](auto zero) { return static_cast<T>(Element<decltype(zero)>(value)); });
  }
  // An array's values as elements of `type`; they have been kept so.
  static std::vector<std::byte> Stored(ElementType type, const std::vector<T>& values) {
    std::vector<std::byte> bytes(values.size() * static_cast<size_t>(ByteWidth(type)));
    VisitKernelType(type, [&](auto zero) {
      using To = decltype(zero);
      auto* to = reinterpret_cast<To*>(bytes.data());
      for (size_t i = 0; i < values.size(); ++i) {
        bool blank = values[i] != values[i];
        to[i] = blank ? Element<To>(values[i]) : static_cast<To>(values[i]);
      }
    });
    return bytes;
  }

  T& A(int64_t batch, int64_t m, int64_t k) {
    return a_[static_cast<size_t>(batch + m * p_.a_m + k * p_.a_k - a_span_.low)];
  }
  T& B(int64_t batch, int64_t k, int64_t n) {
    return b_[static_cast<size_t>(batch + k * p_.b_k + n * p_.b_n - b_span_.low)];
  }
  size_t C(int64_t batch, int64_t m, int64_t n) {
    return static_cast<size_t>(batch + m * p_.c_m + n * p_.c_n - c_span_.low);
  }

  void Call(kiln_kernel_fn f, std::vector<void*> args, int64_t items, bool pieces) {
    if (!pieces) return f(&frame_, args.data(), 0, items);
    int64_t size = 1;
    for (int64_t end = items; end > 0; end -= size, ++size) {
      f(&frame_, args.data(), std::max<int64_t>(end - size, 0), end);
    }
    f(&frame_, args.data(), items, items);  // nothing
  }

  void ExpectNothingIfCancelled() {
    const int32_t cancel = 1;
    int32_t code = 0;
    kiln_frame_table table{};
    table.fail = [](const kiln_frame* frame, int32_t failure, const char*, int64_t) {
      return *static_cast<int32_t*>(frame->host) = failure;
    };
    frame_.table = &table;
    frame_.cancel = &cancel;
    frame_.host = &code;
    const std::vector<T> result = Execute(false);
    frame_ = {};
    EXPECT_EQ(code, static_cast<int32_t>(Code::kCancelled));
    EXPECT_EQ(std::memcmp(result.data(), c_.data(), result.size() * sizeof(T)), 0);
  }

  std::vector<T> Execute(bool pieces) {
    auto guarded = [](const auto& from) {
      const size_t bytes = from.size() * sizeof(from[0]);
      auto memory = std::make_unique<Guarded>(static_cast<int64_t>(bytes));
      std::memcpy(memory->data(), from.data(), bytes);
      return memory;
    };
    auto a = guarded(Stored(p_.TypeOfA(), a_));
    auto b = guarded(Stored(p_.TypeOfB(), b_));
    auto c = guarded(c_);
    auto bias = guarded(bias_);
    Guarded packed_a(s_.packed_a_bytes), packed_b(s_.packed_b_bytes), scratch(s_.scratch_bytes);
    std::memset(scratch.data(), 0xff, static_cast<size_t>(s_.scratch_bytes));
    void* a_at = static_cast<char*>(a->data()) - a_span_.low * ByteWidth(p_.TypeOfA());
    void* b_at = static_cast<char*>(b->data()) - b_span_.low * ByteWidth(p_.TypeOfB());
    void* c_at = static_cast<T*>(c->data()) - c_span_.low;
    if (s_.pack_a) {
      Call(jit_->Find("pack_a"), {a_at, packed_a.data()}, s_.pack_a_items, pieces);
      a_at = packed_a.data();
    }
    if (s_.b == GemmB::kPrepacked) {
      Call(jit_->Find("pack_b"), {b_at, packed_b.data()}, s_.pack_b_items, pieces);
      b_at = packed_b.data();
    }
    Call(jit_->Find("gemm"), {a_at, b_at, c_at, scratch.data(), bias->data()}, s_.items, pieces);
    std::vector<T> result(c_.size());
    std::memcpy(result.data(), c->data(), result.size() * sizeof(T));
    return result;
  }

  void Compare(const std::vector<T>& result) {
    std::vector<bool> written(result.size(), false);
    int failures = 0;
    ForEachBatch([&](int64_t a, int64_t b, int64_t c) {
      for (int64_t m = 0; m < p_.m; ++m) {
        for (int64_t n = 0; n < p_.n; ++n) {
          written[C(c, m, n)] = true;
          if (!Matches(a, b, c, m, n, result[C(c, m, n)]) && ++failures < 5) {
            ADD_FAILURE() << "at " << m << ", " << n << ": " << result[C(c, m, n)];
          }
        }
      }
    });
    for (size_t i = 0; i < result.size(); ++i) {
      if (!written[i]) ASSERT_EQ(std::memcmp(&result[i], &c_[i], sizeof(T)), 0) << i;
    }
  }

  bool Matches(int64_t a, int64_t b, int64_t c, int64_t m, int64_t n, T got) {
    if constexpr (!std::is_floating_point_v<T>) {
      std::make_unsigned_t<T> sum = 0;
      for (int64_t k = 0; k < p_.k; ++k) {
        sum += static_cast<std::make_unsigned_t<T>>(A(a, m, k)) *
               static_cast<std::make_unsigned_t<T>>(B(b, k, n));
      }
      return got == static_cast<T>(sum);
    } else {
      // Any order of summation stays within (k + 1) units of the sum of magnitudes.
      long double sum = 0, magnitude = 0;
      for (int64_t k = 0; k < p_.k; ++k) {
        long double product = static_cast<long double>(A(a, m, k)) * B(b, k, n);
        sum += product;
        magnitude += std::fabs(product);
      }
      if (case_.epilogue == Epilogue::kBiasRelu) {
        sum += bias_[static_cast<size_t>(n)];
        magnitude += std::fabs(bias_[static_cast<size_t>(n)]);
        sum = std::max<long double>(sum, 0);
      } else if (HasResidual()) {
        sum += c_[C(c, m, n)];
        magnitude += std::fabs(c_[C(c, m, n)]);
      }
      const long double unit = std::numeric_limits<T>::epsilon() / 2;
      return std::fabs(static_cast<long double>(got) - sum) <=
             static_cast<long double>(p_.k + 3) * unit * magnitude;
    }
  }

  const Case& case_;
  const GemmProblem& p_;
  kiln_frame frame_{};  // which nobody cancels
  GemmSchedule s_;
  std::unique_ptr<KernelJit> jit_;
  std::mt19937 random_{12345};
  Span a_span_, b_span_, c_span_;
  std::vector<T> a_, b_, c_, bias_;
};

}  // namespace

void CheckGemm(const GemmCase& c) {
  switch (c.problem.type) {
    case ElementType::kF64:
      return Checker<double>(c).Run();
    case ElementType::kS32:
      return Checker<int32_t>(c).Run();
    case ElementType::kU32:
      return Checker<uint32_t>(c).Run();
    case ElementType::kU64:
      return Checker<uint64_t>(c).Run();
    default:
      return Checker<float>(c).Run();
  }
}

std::vector<target::Cpu> GemmCpus() {
  std::vector<target::Cpu> cpus;
  for (int bytes : {64, 32, 16}) {
    target::Cpu cpu = target::HostCpuWithVectors(bytes).cpu;
    if (cpus.empty() || cpus.back().vector_bytes != cpu.vector_bytes) cpus.push_back(cpu);
  }
  return cpus;
}

}  // namespace kiln::testing
