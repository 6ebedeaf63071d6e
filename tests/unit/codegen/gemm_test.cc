#include "codegen/cpu/gemm.h"

#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <random>
#include <type_traits>

#include "support/kernel_jit.h"

namespace kiln::codegen {
namespace {

using kernel::ChooseGemmSchedule;
using kernel::CompleteGemmSchedule;
using kernel::GemmB;
using kernel::GemmBatchDimension;
using kernel::GemmKind;
using kernel::GemmProblem;
using kernel::GemmSchedule;
using llvm::Value;
using testing::KernelJit;

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

enum class Epilogue { kNone, kBiasRelu, kInPlaceResidual, kShortResidual };

struct Case {
  target::Cpu cpu;
  GemmProblem problem;
  Epilogue epilogue = Epilogue::kNone;
  // Changes the schedule that was chosen.
  std::function<void(GemmSchedule&)> change;
  // Unless null, the module has another gemm already, this one with a change, and with an epilogue:
  // the two are expected to share their code.
  std::function<void(GemmProblem&, GemmSchedule&)> other;
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
      GemmEpilogue nothing{.emit = [](llvm::IRBuilder<>&, const GemmVector&) {}};
      if (HasResidual()) nothing.reads = {RowsOfC(other)};
      added = jit_->Add("other", [&](llvm::Function* f) {
        return EmitGemm(f, other, s, {.a = 0, .b = 1, .c = 2, .scratch = 3}, nothing);
      });
      ASSERT_TRUE(added.ok()) << added.ToString();
    }
    added = jit_->Add("gemm", [&](llvm::Function* f) {
      Status emitted = EmitGemm(f, p_, s_, {.a = 0, .b = 1, .c = 2, .scratch = 3}, MakeEpilogue());
      auto begins = [&](const char* name) {
        return std::ranges::count_if(*f->getParent(), [&](const llvm::Function& g) {
          return g.getName().starts_with(name);
        });
      };
      if (case_.other) EXPECT_EQ(begins("gemm of any"), 1);
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
      added =
          jit_->Add("pack_b", [&](llvm::Function* f) { return EmitGemmPackB(f, p_, s_, 0, 1); });
      ASSERT_TRUE(added.ok()) << added.ToString();
    }
    Status compiled = jit_->Compile();
    ASSERT_TRUE(compiled.ok()) << compiled.ToString();
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
        for (int64_t m = 0; m < p_.m; ++m) A(a, m, k) = Kept(p_.TypeOfA(), Random<T>(random_));
        for (int64_t n = 0; n < p_.n; ++n) B(b, k, n) = Kept(p_.TypeOfB(), Random<T>(random_));
      }
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

  static void Call(kiln_kernel_fn f, std::vector<void*> args, int64_t items, bool pieces) {
    if (!pieces) return f(nullptr, args.data(), 0, items);
    int64_t size = 1;
    for (int64_t end = items; end > 0; end -= size, ++size) {
      f(nullptr, args.data(), std::max<int64_t>(end - size, 0), end);
    }
    f(nullptr, args.data(), items, items);  // nothing
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
  GemmSchedule s_;
  std::unique_ptr<KernelJit> jit_;
  std::mt19937 random_{12345};
  Span a_span_, b_span_, c_span_;
  std::vector<T> a_, b_, c_, bias_;
};

void Check(const Case& c) {
  switch (c.problem.type) {
    case ElementType::kF64:
      return Checker<double>(c).Run();
    case ElementType::kS32:
      return Checker<int32_t>(c).Run();
    case ElementType::kU64:
      return Checker<uint64_t>(c).Run();
    default:
      return Checker<float>(c).Run();
  }
}

std::vector<target::Cpu> Cpus() {
  std::vector<target::Cpu> cpus;
  for (int bytes : {64, 32, 16}) {
    target::Cpu cpu = target::HostCpuWithVectors(bytes).cpu;
    if (cpus.empty() || cpus.back().vector_bytes != cpu.vector_bytes) cpus.push_back(cpu);
  }
  return cpus;
}

constexpr ElementType kF32 = ElementType::kF32;

TEST(CodegenGemm, Shapes) {
  const int64_t shapes[][3] = {
      {1, 1, 1},    {1, 1, 7},    {1, 17, 5},    {17, 1, 5},   {3, 10, 33},   {16, 16, 16},
      {32, 32, 32}, {33, 47, 65}, {100, 10, 84}, {64, 64, 64}, {13, 130, 3},  {128, 96, 64},
      {5, 5, 300},  {29, 200, 1}, {2, 3, 0},     {40, 100, 2}, {1, 300, 129}, {300, 1, 129}};
  for (const target::Cpu& cpu : Cpus()) {
    for (auto [m, n, k] : shapes) {
      for (bool constant : {false, true}) {
        GemmProblem p = GemmProblem::RowMajor(kF32, m, n, k);
        p.b_constant = constant;
        Check({.cpu = cpu, .problem = p});
        Check({.cpu = cpu, .problem = p, .epilogue = Epilogue::kInPlaceResidual});
        Check({.cpu = cpu, .problem = p, .epilogue = Epilogue::kShortResidual});
      }
    }
  }
}

TEST(CodegenGemm, Strides) {
  for (const target::Cpu& cpu : Cpus()) {
    for (auto [m, n, k] : {std::tuple(31, 45, 37), {7, 64, 16}, {3, 50, 40}, {64, 5, 9}}) {
      const int64_t layouts_a[][2] = {{k, 1}, {1, m}, {2 * k + 3, 2}, {-k, 1}, {0, 1}};
      const int64_t layouts_b[][2] = {{n, 1}, {1, k}, {3, 3 * k + 1}, {n + 5, 1}, {1, 0}};
      for (auto [a_m, a_k] : layouts_a) {
        for (auto [b_k, b_n] : layouts_b) {
          GemmProblem p = GemmProblem::RowMajor(kF32, m, n, k);
          p.a_m = a_m;
          p.a_k = a_k;
          p.b_k = b_k;
          p.b_n = b_n;
          p.c_m = n + 3;
          p.b_constant = a_m == k && b_n != 1;
          Check({.cpu = cpu, .problem = p});
        }
      }
      GemmProblem p = GemmProblem::RowMajor(kF32, m, n, k);
      p.c_m = 1;
      p.c_n = m;
      Check({.cpu = cpu, .problem = p});
      GemmProblem t = p.Transposed();
      EXPECT_EQ(t.c_n, 1);
      Check({.cpu = cpu, .problem = t});
      p.c_m = 2;
      p.c_n = 2 * m + 1;
      Check({.cpu = cpu, .problem = p});
    }
  }
}

TEST(CodegenGemm, RegisterTiles) {
  for (const target::Cpu& cpu : Cpus()) {
    const int lanes = cpu.vector_bytes / 4;
    for (int nv = 1; nv <= 8; ++nv) {
      for (int mr : {1, 2, 3, 4, 5, 6, 8, 9, 14, 30}) {
        if (mr * nv > 30) continue;
        GemmProblem p = GemmProblem::RowMajor(kF32, 2 * mr + 1, (2 * nv + 1) * lanes - 3, 11);
        for (int unroll : {1, 2, 4}) {
          Check({.cpu = cpu, .problem = p, .change = [=](GemmSchedule& s) {
                   s.mr = mr;
                   s.nv = nv;
                   s.unroll = unroll;
                 }});
        }
      }
    }
  }
}

// Few columns beside contiguous rows of A, as in the gradient of a small layer's weights.
TEST(CodegenGemm, NarrowOnesGoByColumns) {
  for (const target::Cpu& cpu : Cpus()) {
    for (ElementType type : {kF32, ElementType::kF64, ElementType::kS32}) {
      for (auto [m, n, k] : {std::tuple(784, 10, 100), {65, 3, 40}, {97, 5, 2}, {130, 13, 31}}) {
        GemmProblem p = GemmProblem::RowMajor(type, m, n, k);
        p.a_m = 1;
        p.a_k = m + 3;
        const int64_t lanes = cpu.vector_bytes / ByteWidth(type);
        if (n == 5 && lanes > 8) {
          EXPECT_TRUE(ChooseGemmSchedule(cpu, p)->by_columns) << p.ToString();
        }
        for (Epilogue epilogue : {Epilogue::kNone, Epilogue::kBiasRelu, Epilogue::kShortResidual}) {
          if (!IsFloat(type) && epilogue != Epilogue::kNone) continue;
          Check({.cpu = cpu, .problem = p, .epilogue = epilogue});
        }
        for (int64_t vectors : {1, 2}) {
          if (vectors * lanes > m) continue;
          Check({.cpu = cpu, .problem = p, .change = [&](GemmSchedule& s) {
                   s.by_columns = true;
                   s.mr = static_cast<int>(vectors * lanes);
                   s.nv = static_cast<int>((n + lanes - 1) / lanes);
                   s.b = GemmB::kInPlace;
                   s.pack_a = false;
                   s.unroll = 2;
                   s.kc = k > 30 ? (k + 1) / 2 : k;
                 }});
        }
      }
    }
  }
}

TEST(CodegenGemm, Blocks) {
  for (const target::Cpu& cpu : Cpus()) {
    for (GemmB b : {GemmB::kInPlace, GemmB::kPackPanel, GemmB::kPrepacked}) {
      for (bool pack_a : {false, true}) {
        for (int variant = 0; variant < 4; ++variant) {
          for (Epilogue epilogue :
               {Epilogue::kNone, Epilogue::kInPlaceResidual, Epilogue::kShortResidual}) {
            GemmProblem p = GemmProblem::RowMajor(kF32, 53, 151, 90, 2);
            if (variant == 3) std::swap(p.a_m, p.a_k), p.a_k = 53;
            Check({.cpu = cpu, .problem = p, .epilogue = epilogue, .change = [=](GemmSchedule& s) {
                     s.b = b;
                     s.pack_a = pack_a;
                     s.mr = 5;
                     s.nv = 2;
                     s.block_m = 3;
                     s.block_n = 2;
                     s.kc = variant == 0 ? 90 : variant == 1 ? 30 : 32;
                     s.panels_inner = variant >= 2;
                     s.items_along_m = variant % 2 == 0;
                   }});
          }
        }
      }
    }
  }
}

// Gemms that differ in their widths only, and in what they do with their results.
TEST(CodegenGemm, ShareTheirCode) {
  for (const target::Cpu& cpu : Cpus()) {
    const int lanes = cpu.vector_bytes / 4;
    for (GemmB b : {GemmB::kInPlace, GemmB::kPackPanel}) {
      for (int variant = 0; variant < 4; ++variant) {
        for (Epilogue epilogue :
             {Epilogue::kNone, Epilogue::kBiasRelu, Epilogue::kInPlaceResidual}) {
          // Alone, what goes straight to C is less code.
          const bool blocks = variant > 0;
          if (!blocks && epilogue == Epilogue::kNone) continue;
          Check({.cpu = cpu,
                 .problem = GemmProblem::RowMajor(kF32, 23, 5 * 2 * lanes, 90),
                 .epilogue = epilogue,
                 .change =
                     [=](GemmSchedule& s) {
                       s.b = b;
                       s.mr = 5;
                       s.nv = 2;
                       s.block_m = 2;
                       s.block_n = 3;
                       s.kc = blocks ? 32 : 90;
                       s.panels_inner = variant >= 2;
                       s.items_along_m = variant % 2 == 0;
                       s.prefetch_b = b == GemmB::kInPlace;
                     },
                 .other =
                     [=](GemmProblem& p, GemmSchedule&) {
                       p.n = p.b_k = p.c_m = (variant == 3 ? 2 : 7) * 2 * lanes;
                     }});
        }
      }
    }
  }
}

// Gemms that differ in the strides of A, in whether it is packed, in blocks of k and in columns of
// B.
TEST(CodegenGemm, ShareTheirCodeForAnyA) {
  enum class A { kRows, kColumns, kPacked, kBackwards };
  for (const target::Cpu& cpu : Cpus()) {
    const int lanes = cpu.vector_bytes / 4;
    for (A a : {A::kRows, A::kColumns, A::kPacked, A::kBackwards}) {
      for (int variant = 0; variant < 24; ++variant) {
        const bool blocks = variant & 1, even = variant & 2, columns = variant & 4;
        const Epilogue epilogue = variant & 8    ? Epilogue::kBiasRelu
                                  : variant & 16 ? Epilogue::kInPlaceResidual
                                                 : Epilogue::kNone;
        if (!blocks && epilogue == Epilogue::kNone) continue;
        GemmProblem problem = GemmProblem::RowMajor(kF32, even ? 28 : 33, 6 * lanes, 96);
        if (a == A::kRows) problem.a_m = 103;
        if (a == A::kBackwards) problem.a_m = -97;
        if (a == A::kColumns) {
          problem.a_m = 1;
          problem.a_k = 40;
        }
        if (columns) {
          problem.b_k = 1;
          problem.b_n = 99;
        }
        Check({.cpu = cpu,
               .problem = problem,
               .epilogue = epilogue,
               .change =
                   [=](GemmSchedule& s) {
                     s.kind = GemmKind::kOuter;
                     s.b = columns ? GemmB::kPackPanel : GemmB::kInPlace;
                     s.pack_a = a == A::kPacked;
                     s.mr = 14;
                     s.nv = 2;
                     s.block_m = 2;
                     s.block_n = 2;
                     s.kc = blocks ? 32 : 96;
                     s.unroll = 1;
                     s.panels_inner = true;
                     s.prefetch_b = !columns;
                   },
               .other =
                   [=](GemmProblem& p, GemmSchedule& s) {
                     s.pack_a = false;
                     p.a_m = 200;
                     p.a_k = 1;
                     if (blocks) p.k = 160;
                     if (columns) p.b_n = 161;
                   }});
      }
    }
  }
}

// A gemm of one long block of k takes the code of one of several, whose slots are larger.
TEST(CodegenGemm, ShareTheirCodeWithThoseOfSeveralBlocks) {
  constexpr int64_t kBlock = 512;
  for (const target::Cpu& cpu : Cpus()) {
    const int lanes = cpu.vector_bytes / 4;
    for (int variant = 0; variant < 16; ++variant) {
      const bool even = variant & 1, columns = variant & 2, along_m = variant & 4;
      GemmProblem problem = GemmProblem::RowMajor(kF32, even ? 28 : 33, 10 * lanes, kBlock);
      if (columns) {
        problem.b_k = 1;
        problem.b_n = kBlock + 3;
      }
      Check({.cpu = cpu,
             .problem = problem,
             .epilogue = variant & 8 ? Epilogue::kBiasRelu : Epilogue::kInPlaceResidual,
             .change =
                 [=](GemmSchedule& s) {
                   s.kind = GemmKind::kOuter;
                   s.b = GemmB::kPackPanel;
                   s.mr = 14;
                   s.nv = 2;
                   s.block_m = 2;
                   s.block_n = 3;
                   s.kc = kBlock;
                   s.unroll = 1;
                   s.panels_inner = !along_m || even;
                   s.items_along_m = along_m;
                   s.prefetch_b = false;
                 },
             .other = [=](GemmProblem& p, GemmSchedule&) { p.k = 3 * kBlock; }});
    }
  }
}

TEST(CodegenGemm, InnerProducts) {
  for (const target::Cpu& cpu : Cpus()) {
    const int lanes = cpu.vector_bytes / 4;
    for (auto [m, n, k] : {std::tuple(1, 37, 100), {3, 64, 64}, {7, 33, 5}, {4, 1, 1000}}) {
      for (auto [mr, nr, nv] : {std::tuple(1, 1, 1), {1, 8, 2}, {3, 4, 1}, {2, 2, 3}}) {
        if (nr > lanes) continue;
        GemmProblem p = GemmProblem::RowMajor(kF32, m, n, k);
        p.b_k = 1;
        p.b_n = k;
        for (Epilogue epilogue : {Epilogue::kNone, Epilogue::kInPlaceResidual}) {
          Check({.cpu = cpu, .problem = p, .epilogue = epilogue, .change = [=](GemmSchedule& s) {
                   s.kind = GemmKind::kInner;
                   s.b = GemmB::kInPlace;
                   s.mr = mr;
                   s.nr = nr;
                   s.nv = nv;
                 }});
        }
      }
    }
  }
}

TEST(CodegenGemm, BatchesAndTypes) {
  for (const target::Cpu& cpu : Cpus()) {
    for (ElementType type : {kF32, ElementType::kF64, ElementType::kS32, ElementType::kU64}) {
      for (bool transposed_b : {false, true}) {
        // Heads of attention: two batch dimensions that do not collapse.
        GemmProblem p;
        p.type = type;
        p.m = 19;
        p.n = 23;
        p.k = 24;
        p.batch = {{.size = 2, .a = 19 * 3 * 24, .b = 24 * 3 * 24, .c = 3 * 19 * 23},
                   {.size = 3, .a = 24, .b = 24, .c = 19 * 23}};
        p.a_m = 3 * 24;
        p.a_k = 1;
        p.b_k = transposed_b ? 1 : 3 * 24;
        p.b_n = transposed_b ? 3 * 24 : 1;
        p.c_m = 23;
        Check({.cpu = cpu, .problem = p});
        p.batch[0].b = p.batch[1].b = 0;
        p.b_constant = true;
        Check({.cpu = cpu, .problem = p});
        if (IsFloat(type)) {
          Check({.cpu = cpu, .problem = p, .epilogue = Epilogue::kBiasRelu});
          Check({.cpu = cpu, .problem = p, .epilogue = Epilogue::kShortResidual});
        }
      }
    }
  }
}

// Operands that are converted as they are read or packed.
TEST(CodegenGemm, OperandsOfOtherTypes) {
  struct Types {
    ElementType type, a, b;
  };
  const Types all[] = {{kF32, ElementType::kF16, ElementType::kF16},
                       {kF32, ElementType::kBF16, ElementType::kBF16},
                       {kF32, kF32, ElementType::kBF16},
                       {kF32, ElementType::kF16, ElementType::kS8},
                       {ElementType::kF64, kF32, ElementType::kF64},
                       {ElementType::kS32, ElementType::kS8, ElementType::kU8},
                       {ElementType::kS32, ElementType::kS16, ElementType::kS32}};
  for (const target::Cpu& cpu : Cpus()) {
    for (const Types& types : all) {
      for (auto [m, n, k] : {std::tuple(1, 40, 33), {3, 130, 70}, {53, 151, 90}, {40, 1, 19}}) {
        for (int variant = 0; variant < 9; ++variant) {
          GemmProblem p = GemmProblem::RowMajor(types.type, m, n, k, variant == 7 ? 2 : 1);
          p.a_type = types.a;
          p.b_type = types.b;
          p.b_constant = variant == 1 || variant == 7;
          if (variant == 2 || variant == 8) p.b_k = 1, p.b_n = k;
          if (variant == 3) p.a_m = 1, p.a_k = m;
          if (variant == 4) p = p.Transposed();
          if (variant < 5) {
            Check({.cpu = cpu, .problem = p});
            continue;
          }
          Check({.cpu = cpu, .problem = p, .change = [=](GemmSchedule& s) {
                   s.prefetch_b = true;
                   if (s.kind == GemmKind::kInner || variant == 8) return;
                   s.b = variant == 5   ? GemmB::kInPlace
                         : variant == 6 ? GemmB::kPackPanel
                                        : GemmB::kPrepacked;
                   s.pack_a = variant != 6;
                   s.kc = 32;
                 }});
        }
      }
    }
  }
}

// One row by a matrix beyond the second cache, which is read once, with its rows or its columns
// along the sum.
TEST(CodegenGemm, OneRowByLargeMatrices) {
  for (const target::Cpu& cpu : Cpus()) {
    for (ElementType type : {kF32, ElementType::kBF16, ElementType::kS8}) {
      for (bool columns_in_order : {false, true}) {
        GemmProblem p = GemmProblem::RowMajor(kF32, 1, 1040, cpu.l2_bytes / 1024 + 7);
        p.b_type = type;
        if (columns_in_order) p.b_k = 1, p.b_n = p.k;
        Result<GemmSchedule> s = ChooseGemmSchedule(cpu, p);
        ASSERT_TRUE(s.ok());
        EXPECT_EQ(s->kind == GemmKind::kInner, columns_in_order) << s->ToString();
        EXPECT_EQ(s->prefetch_b, !columns_in_order || type != kF32) << s->ToString();
        Check({.cpu = cpu, .problem = p});
      }
    }
  }
}

// Beside a left operand in the third cache a thread waits for one panel of a constant only, and
// finds the others in the second cache. Long sums are in blocks, so that there is room for the next
// panel.
TEST(CodegenGemm, PackedConstantsPassByPanels) {
  for (target::Cpu cpu : Cpus()) {
    cpu.l2_bytes = 1 << 20;
    cpu.l3_bytes = 32 << 20;
    for (int64_t k : {500, 2060}) {
      GemmProblem p = GemmProblem::RowMajor(kF32, 200, cpu.l2_bytes / 2 / 4 / k + 131, k);
      p.b_constant = true;
      Result<GemmSchedule> s = ChooseGemmSchedule(cpu, p);
      ASSERT_TRUE(s.ok());
      EXPECT_EQ(s->b, GemmB::kPrepacked) << s->ToString();
      EXPECT_EQ(s->block_n, 1) << s->ToString();
      EXPECT_TRUE(s->prefetch_b) << s->ToString();
      EXPECT_EQ(s->k_blocks > 1, k > 2048) << s->ToString();
      for (Epilogue epilogue : {Epilogue::kNone, Epilogue::kBiasRelu}) {
        Check({.cpu = cpu, .problem = p, .epilogue = epilogue});
      }
    }
  }
}

TEST(CodegenGemm, RefusesWhatItCannotDo) {
  target::Cpu cpu = Cpus()[0];
  EXPECT_EQ(ChooseGemmSchedule(cpu, GemmProblem::RowMajor(kF32, 0, 1, 1)).status().code(),
            Code::kInvalidArgument);
  EXPECT_EQ(
      ChooseGemmSchedule(cpu, GemmProblem::RowMajor(ElementType::kF16, 2, 2, 2)).status().code(),
      Code::kUnimplemented);
}

}  // namespace
}  // namespace kiln::codegen
