#include "gpu_test_util.h"

#include <cstring>
#include <map>

#include "base/strings.h"
#include "compiled_test_util.h"
#include "device/emulated/machine.h"
#include "guarded_memory.h"
#include "ptxas.h"
#include "target/target.h"

namespace kiln::testing {
namespace {

// Literals are row-major, memory is in the order of the shape's layout.
std::vector<std::byte> InMemoryOrder(const Shape& shape, const std::byte* literal, bool to_memory,
                                     const std::byte* memory = nullptr) {
  std::vector<std::byte> out(static_cast<size_t>(shape.byte_size()));
  if (shape.num_elements() == 0) return out;
  std::vector<int64_t> dims = shape.dims(), strides = shape.strides(), index(dims.size());
  size_t width = static_cast<size_t>(ByteWidth(shape.type())), k = 0;
  do {
    int64_t offset = 0;
    for (size_t d = 0; d < dims.size(); ++d) offset += index[d] * strides[d];
    size_t at = static_cast<size_t>(offset) * width;
    if (to_memory) {
      std::memcpy(out.data() + at, literal + k, width);
    } else {
      std::memcpy(out.data() + k, memory + at, width);
    }
    k += width;
  } while (NextIndex(dims, index));
  return out;
}

// Arguments and results of a run in the device's memory.
class DeviceArrays {
 public:
  explicit DeviceArrays(device::GpuDevice& device) : device_(device) {}
  ~DeviceArrays() {
    for (auto [memory, bytes] : memory_) device_.Deallocate(memory, bytes);
  }
  DeviceArrays(const DeviceArrays&) = delete;
  DeviceArrays& operator=(const DeviceArrays&) = delete;

  Result<std::byte*> New(int64_t bytes) {
    KILN_ASSIGN_OR_RETURN(std::byte * memory, device_.Allocate(bytes));
    memory_.push_back({memory, bytes});
    return memory;
  }

 private:
  device::GpuDevice& device_;
  std::vector<std::pair<std::byte*, int64_t>> memory_;
};

void Leaves(const Literal& literal, std::vector<const Literal*>& leaves) {
  if (!literal.shape().is_tuple()) {
    leaves.push_back(&literal);
    return;
  }
  for (const Literal& e : literal.elements()) Leaves(e, leaves);
}

// The values of a shape from its leaves, one after the other.
Literal FromLeaves(const Shape& shape, std::vector<Literal>& leaves, size_t& next) {
  if (!shape.is_tuple()) return std::move(leaves[next++]);
  Literal literal(shape);
  for (size_t i = 0; i < shape.elements().size(); ++i) {
    literal.elements()[i] = FromLeaves(shape.elements()[i], leaves, next);
  }
  return literal;
}

}  // namespace

device::GpuDevice& EmulatedGpu(int sm) {
  static auto& allocator = *new runtime::Allocator(GuardedMemory());
  static auto& devices = *new std::map<int, std::unique_ptr<device::GpuDevice>>;
  auto& device = devices[sm];
  if (!device) {
    device::EmulatedMachine::Options options;
    options.emulator.watch_global_memory = true;
    auto machine = device::EmulatedMachine::Create(target::EmulatedGpu(sm).value(), Pool(),
                                                   allocator, options);
    std::shared_ptr<device::GpuMachine> shared = std::move(machine).value();
    device = std::make_unique<device::GpuDevice>("GPU:0", shared, 0);
  }
  return *device;
}

Result<LoadedOnGpu> LoadOnGpu(const ir::Module& module, bool fuse, int sm) {
  compiler::Options options;
  options.verify = true;
  options.fuse = fuse;
  device::GpuDevice& device = EmulatedGpu(sm);
  KILN_ASSIGN_OR_RETURN(plan::Artefact artefact,
                        compiler::Compile(module.Clone(), device.target(), options));
  LoadedOnGpu loaded;
  loaded.artefact = std::make_shared<const plan::Artefact>(std::move(artefact));
  KILN_ASSIGN_OR_RETURN(loaded.executable, device.Load(loaded.artefact));
  return loaded;
}

Result<Literal> RunOnGpu(const LoadedOnGpu& loaded, const std::vector<Literal>& arguments, int sm) {
  device::GpuDevice& device = EmulatedGpu(sm);
  DeviceArrays arrays(device);
  const plan::Signature& signature = loaded.artefact->program.signature;
  std::vector<const Literal*> leaves;
  for (const Literal& a : arguments) Leaves(a, leaves);
  std::vector<const void*> in;
  std::vector<void*> out;
  for (size_t i = 0; i < signature.parameters.size(); ++i) {
    const Shape& shape = signature.parameters[i];
    KILN_ASSIGN_OR_RETURN(std::byte * memory, arrays.New(shape.byte_size()));
    std::vector<std::byte> bytes = InMemoryOrder(shape, leaves[i]->data(), true);
    KILN_RETURN_IF_ERROR(device.CopyFromHost(memory, bytes.data(), shape.byte_size()));
    in.push_back(memory);
  }
  for (const Shape& shape : signature.results) {
    KILN_ASSIGN_OR_RETURN(std::byte * memory, arrays.New(shape.byte_size()));
    out.push_back(memory);
  }
  KILN_RETURN_IF_ERROR(loaded.executable->Run(in, out, {}));
  std::vector<Literal> results;
  for (size_t i = 0; i < out.size(); ++i) {
    const Shape& shape = signature.results[i];
    std::vector<std::byte> memory(static_cast<size_t>(shape.byte_size()));
    KILN_RETURN_IF_ERROR(
        device.CopyToHost(memory.data(), static_cast<std::byte*>(out[i]), shape.byte_size()));
    std::vector<std::byte> bytes = InMemoryOrder(shape, nullptr, false, memory.data());
    Literal& leaf = results.emplace_back(shape);
    if (!bytes.empty()) std::memcpy(leaf.data(), bytes.data(), bytes.size());
  }
  size_t next = 0;
  return FromLeaves(signature.result_shape, results, next);
}

Result<Literal> RunOnGpu(const ir::Module& module, const std::vector<Literal>& arguments, bool fuse,
                         int sm) {
  KILN_ASSIGN_OR_RETURN(LoadedOnGpu loaded, LoadOnGpu(module, fuse, sm));
  KILN_RETURN_IF_ERROR(RunOnGpu(loaded, arguments, sm).status());
  return RunOnGpu(loaded, arguments, sm);
}

std::string AssembleProgram(const ir::Module& module, bool fuse) {
  compiler::Options options;
  options.verify = true;
  options.fuse = fuse;
  for (int sm : {75, 80, 90}) {
    auto artefact = compiler::Compile(module.Clone(), target::NvidiaGpu(sm).value(), options);
    if (!artefact.ok()) return artefact.status().ToString();
    for (const std::string& ptx : artefact->objects) {
      if (ptx.find(Cat(".target sm_", sm)) == std::string::npos) return Cat("no sm_", sm, " in it");
      std::string problem = Assemble(sm, ptx);
      if (!problem.empty()) return problem;
    }
  }
  return "";
}

}  // namespace kiln::testing
