// Sorts and top-k on the CPU.
#include <cstring>
#include <random>
#include <vector>

#include "base/strings.h"
#include "compiler/compiler.h"
#include "device/cpu/executable.h"
#include "harness.h"
#include "ir/text.h"

namespace kiln::bench {
namespace {

constexpr int kThreads = 2;

// Random elements of every bit for integers, of a normal distribution for floats.
template <typename T>
void Fill(T* values, int64_t count) {
  std::mt19937_64 random(7);
  std::normal_distribution<double> normal;
  for (int64_t i = 0; i < count; ++i) {
    if constexpr (FloatType<T>) {
      values[i] = T(static_cast<float>(normal(random)));
    } else {
      values[i] = static_cast<T>(random());
    }
  }
}

// Seconds of a run of the module on such arguments, or less than 0 with the error in a note.
double SecondsOf(std::string_view name, const std::string& text, Report& report, int threads) {
  auto failed = [&](const Status& status) {
    report.Note(name, status.ToString());
    return -1.0;
  };
  auto module = ir::ParseHloText(text);
  if (!module.ok()) return failed(module.status());
  auto artefact = compiler::Compile(*std::move(module), target::HostCpu(), {});
  if (!artefact.ok()) return failed(artefact.status());
  auto program = std::make_shared<const program::Artefact>(*std::move(artefact));
  runtime::Allocator allocator;
  runtime::ThreadPool pool(threads);
  auto executable = device::CpuExecutable::Load(*program, allocator, pool);
  if (!executable.ok()) return failed(executable.status());
  std::vector<std::vector<std::byte>> memory;
  auto allocate = [&](const Shape& s) {
    memory.emplace_back(static_cast<size_t>(s.byte_size()) + 64);
    auto address = reinterpret_cast<uintptr_t>(memory.back().data());
    return reinterpret_cast<void*>((address + 63) / 64 * 64);
  };
  std::vector<const void*> arguments;
  std::vector<void*> results;
  for (const Shape& s : program->program.signature.parameters) {
    void* p = allocate(s);
    VisitKernelType(s.type(),
                    [&](auto zero) { Fill(static_cast<decltype(zero)*>(p), s.num_elements()); });
    arguments.push_back(p);
  }
  for (const Shape& s : program->program.signature.results) results.push_back(allocate(s));
  Status status = OkStatus();
  double seconds = Measure([&] { status = (*executable)->Run(arguments, results); }).median;
  return status.ok() ? seconds : failed(status);
}

void AddMilliseconds(const std::string& name, const std::string& text, Report& report,
                     Bound bound = {}, int threads = kThreads) {
  double seconds = SecondsOf(name, text, report, threads);
  if (seconds >= 0) report.Add(name, seconds * 1e3, "ms", bound);
}

std::string Sort(std::string_view type, std::string_view dims, int dimension) {
  std::string shape = Cat(type, "[", dims, "]");
  return Cat("HloModule sort\nless { a = ", type, "[] parameter(0)\n  b = ", type,
             "[] parameter(1)\n  ROOT c = pred[] compare(a, b), direction=LT }\nENTRY e { x = ",
             shape, " parameter(0)\n  ROOT s = ", shape, " sort(x), dimensions={", dimension,
             "}, to_apply=less }");
}

std::string TopK(std::string_view rows, int64_t size, int64_t k) {
  return Cat("HloModule topk\nENTRY e { x = f32[", rows, size, "] parameter(0)\n  ROOT t = (f32[",
             rows, k, "], s32[", rows, k, "]) topk(x), k=", k, ", largest=true }");
}

constexpr char kArgSort[] = R"(HloModule argsort
less { a = f32[] parameter(0)
  b = f32[] parameter(1)
  i = s32[] parameter(2)
  j = s32[] parameter(3)
  ROOT c = pred[] compare(a, b), direction=LT }
ENTRY e { x = f32[1000000] parameter(0)
  y = s32[1000000] iota(), iota_dimension=0
  s = (f32[1000000], s32[1000000]) sort(x, y), dimensions={0}, to_apply=less
  ROOT i = s32[1000000] get-tuple-element(s), index=1 })";

// Two keys, which is what the general path is for.
constexpr char kLexicographic[] = R"(HloModule lexicographic
less { a = f32[] parameter(0)
  b = f32[] parameter(1)
  i = s32[] parameter(2)
  j = s32[] parameter(3)
  e = pred[] compare(a, b), direction=EQ
  f = pred[] compare(i, j), direction=LT
  g = pred[] compare(a, b), direction=LT
  ROOT c = pred[] select(e, f, g) }
ENTRY e { x = f32[1000000] parameter(0)
  y = s32[1000000] parameter(1)
  ROOT s = (f32[1000000], s32[1000000]) sort(x, y), dimensions={0}, to_apply=less })";

}  // namespace

KILN_BENCH(sort) {
  // NumPy with AVX-512 takes 3.5 to 4.8 ms on machines of two such cores.
  AddMilliseconds("sort f32 1M", Sort("f32", "1000000", 0), report, AtMost(7));
  AddMilliseconds("sort f32 1M, 1 thread", Sort("f32", "1000000", 0), report, AtMost(9.6), 1);
  AddMilliseconds("sort s32 1M", Sort("s32", "1000000", 0), report);
  AddMilliseconds("sort s64 1M", Sort("s64", "1000000", 0), report);
  AddMilliseconds("sort s64 1M, 1 thread", Sort("s64", "1000000", 0), report, {}, 1);
  AddMilliseconds("sort f64 1M", Sort("f64", "1000000", 0), report);
  AddMilliseconds("sort bf16 1M", Sort("bf16", "1000000", 0), report);
  AddMilliseconds("argsort f32 1M", kArgSort, report);
  AddMilliseconds("sort by two keys 1M", kLexicographic, report);
  AddMilliseconds("sort f32 4096 rows of 256", Sort("f32", "4096,256", 1), report);
  AddMilliseconds("sort f32 256 columns of 4096", Sort("f32", "4096,256", 0), report);
  AddMilliseconds("sort f32 65536 rows of 16", Sort("f32", "65536,16", 1), report);
  AddMilliseconds("topk 50 of 1M", TopK("", 1000000, 50), report);
  AddMilliseconds("topk 50 of 128 rows of 50257", TopK("128,", 50257, 50), report);
}

}  // namespace kiln::bench
