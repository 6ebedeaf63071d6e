#include "support/compiled.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <cstring>
#include <string_view>

#include "compiler/compiler.h"
#include "interp/interpreter.h"
#include "program/saved.h"
#include "support/gpu.h"
#include "support/guarded_memory.h"
#include "support/hlo.h"
#include "support/literal.h"

namespace kiln::testing {
namespace {

// Calls f(element in memory, byte offset in row-major order, width): memory is in the order of
// the shape's layout, literals are row-major.
template <typename F>
void Transfer(const Shape& shape, std::byte* memory, F&& f) {
  if (shape.num_elements() == 0) return;
  std::vector<int64_t> dims = shape.dims(), strides = shape.strides(), index(dims.size());
  size_t width = static_cast<size_t>(ByteWidth(shape.type())), k = 0;
  do {
    int64_t offset = 0;
    for (size_t d = 0; d < dims.size(); ++d) offset += index[d] * strides[d];
    f(memory + static_cast<size_t>(offset) * width, k, width);
    k += width;
  } while (NextIndex(dims, index));
}

bool IsTestOf(std::string_view device) {
  const char* wanted = std::getenv("KILN_TEST_DEVICE");
  return wanted && wanted == device;
}

}  // namespace

runtime::Allocator Execution::allocator(GuardedMemory());

Execution::Execution(const program::Artefact& artefact) : signature_(artefact.program.signature) {
  for (const Shape& s : signature_.parameters) arguments_.push_back(New(s));
  for (const Shape& s : signature_.results) results_.push_back(New(s));
}

Execution::~Execution() {
  for (auto [memory, bytes] : memory_) allocator.Deallocate(memory, bytes);
}

void Execution::SetArguments(const std::vector<Literal>& literals) {
  size_t next = 0;
  for (const Literal& l : literals) Put(l, next);
}

Literal Execution::Result() const {
  size_t next = 0;
  return Get(signature_.result_shape, next);
}

bool Execution::SameBits(const Execution& other) const {
  for (size_t i = 0; i < results_.size(); ++i) {
    auto bytes = static_cast<size_t>(signature_.results[i].byte_size());
    if (std::memcmp(results_[i], other.results_[i], bytes) != 0) return false;
  }
  return true;
}

void* Execution::New(const Shape& s) {
  memory_.push_back({allocator.Allocate(s.byte_size()).value(), s.byte_size()});
  return memory_.back().first;
}

void Execution::Put(const Literal& l, size_t& next) {
  if (l.shape().is_tuple()) {
    for (const Literal& e : l.elements()) Put(e, next);
    return;
  }
  auto* to = static_cast<std::byte*>(const_cast<void*>(arguments_[next]));
  Transfer(signature_.parameters[next++], to, [&](std::byte* memory, size_t k, size_t width) {
    std::memcpy(memory, l.data() + k, width);
  });
}

Literal Execution::Get(const Shape& shape, size_t& next) const {
  Literal l(shape);
  if (shape.is_tuple()) {
    for (size_t i = 0; i < shape.elements().size(); ++i) {
      l.elements()[i] = Get(shape.elements()[i], next);
    }
    return l;
  }
  auto* from = static_cast<std::byte*>(results_[next]);
  Transfer(signature_.results[next++], from, [&](std::byte* memory, size_t k, size_t width) {
    std::memcpy(l.data() + k, memory, width);
  });
  return l;
}

runtime::ThreadPool& Pool() {
  static runtime::ThreadPool pool(2);
  return pool;
}

bool IsTestOfGpu() { return IsTestOf("GPU") || IsTestOfCuda(); }

bool IsTestOfCuda() {
  static const bool is = IsTestOf("CUDA");
  return is;
}

Result<std::unique_ptr<runtime::LoadedExecutable>> LoadOnPool(
    const std::shared_ptr<const program::Artefact>& artefact, runtime::ThreadPool& pool) {
  if (IsTestOfGpu()) return LoadOnGpu(artefact);
  KILN_ASSIGN_OR_RETURN(std::unique_ptr<device::CpuExecutable> executable,
                        device::CpuExecutable::Load(*artefact, Execution::allocator, pool));
  return std::unique_ptr<runtime::LoadedExecutable>(std::move(executable));
}

Result<std::shared_ptr<const program::Artefact>> SavedAndRestored(
    const program::Artefact& artefact) {
  KILN_ASSIGN_OR_RETURN(const std::string bytes, program::Save(artefact));
  KILN_ASSIGN_OR_RETURN(program::Artefact restored, program::Restore(bytes));
  if (restored.program.ToString() != artefact.program.ToString()) {
    return Internal("a restored program is another: ", restored.program.ToString());
  }
  return std::make_shared<const program::Artefact>(std::move(restored));
}

Result<CompiledProgram> CompileWithKernels(std::unique_ptr<ir::Module> module,
                                           const target::Target& target,
                                           compiler::Options options) {
  CompiledProgram compiled;
  options.lowered = [&](const codegen::LoweredProgram& lowered) { compiled.lowered = lowered; };
  KILN_ASSIGN_OR_RETURN(compiled.artefact, compiler::Compile(std::move(module), target, options));
  return compiled;
}

Result<Loaded> Load(const ir::Module& module, bool fuse, int vector_bytes,
                    codegen::Optimization optimization, double task_microseconds,
                    std::vector<size_t> frozen) {
  if (IsTestOfGpu()) {
    static const bool assembles = std::getenv("KILN_TEST_PTXAS") != nullptr;
    const int sm = vector_bytes == 64 ? 80 : vector_bytes == 32 ? 75 : 90;
    KILN_ASSIGN_OR_RETURN(Loaded loaded, LoadOnGpu(module, fuse, SharedGpu(sm), std::move(frozen)));
    if (assembles) {
      if (std::string problem = AssembleProgram(module, fuse); !problem.empty()) {
        return Internal(problem);
      }
    }
    return loaded;
  }
  compiler::Options options;
  options.verify = true;
  options.fuse = fuse;
  options.optimization = optimization;
  options.frozen = std::move(frozen);
  target::Target target = target::HostCpuWithVectors(vector_bytes);
  target.cpu.task_microseconds = task_microseconds;
  KILN_ASSIGN_OR_RETURN(CompiledProgram compiled,
                        CompileWithKernels(module.Clone(), target, options));
  Loaded loaded;
  KILN_ASSIGN_OR_RETURN(loaded.artefact, SavedAndRestored(compiled.artefact));
  loaded.lowered = std::make_shared<const codegen::LoweredProgram>(std::move(compiled.lowered));
  KILN_ASSIGN_OR_RETURN(loaded.executable, device::CpuExecutable::Load(
                                               *loaded.artefact, Execution::allocator, Pool()));
  return loaded;
}

Result<Literal> RunCompiled(const ir::Module& module, const std::vector<Literal>& arguments,
                            bool fuse, int vector_bytes) {
  KILN_ASSIGN_OR_RETURN(Loaded loaded, Load(module, fuse, vector_bytes));
  Execution run(*loaded.artefact);
  run.SetArguments(arguments);
  KILN_RETURN_IF_ERROR(loaded.executable->Run(run.arguments(), run.results()));
  return run.Result();
}

void Check(const std::string& text, double relative, double absolute) {
  auto module = ir::ParseOrDie(text);
  std::vector<Literal> arguments = RandomArguments(*module, 7);
  auto expected = interp::Evaluate(*module, arguments);
  ASSERT_TRUE(expected.ok()) << expected.status().ToString();
  for (bool fuse : {true, false}) {
    for (int bytes : {64, 32, 16}) {
      auto loaded = Load(*module, fuse, bytes);
      ASSERT_TRUE(loaded.ok()) << loaded.status().ToString();
      Execution run(*loaded->artefact);
      run.SetArguments(arguments);
      Status status = loaded->executable->Run(run.arguments(), run.results());
      ASSERT_TRUE(status.ok()) << status.ToString();
      EXPECT_EQ(Difference(*expected, run.Result(), relative, absolute), "")
          << (fuse ? "fused, " : "op by op, ") << bytes << "-byte vectors\n"
          << loaded->artefact->program.ToString();
    }
  }
}

}  // namespace kiln::testing
