#include "gpu_random_check.h"

#include <algorithm>
#include <cstring>
#include <map>
#include <span>
#include <utility>
#include <vector>

#include "base/strings.h"
#include "codegen/codegen.h"
#include "emulated_run.h"
#include "guarded_memory.h"
#include "interp/interpreter.h"
#include "kernel/build.h"
#include "kernel/bundle.h"
#include "literal_test_util.h"

namespace kiln::testing {
namespace {

int64_t NumberOf(const ir::Instruction& parameter) {
  auto all = parameter.parent()->parameters();
  return std::find(all.begin(), all.end(), &parameter) - all.begin();
}

// Copies of literals, in memory of their own.
class Arguments {
 public:
  ~Arguments() {
    for (size_t i = 0; i < memory_.size(); ++i) {
      Allocator().Deallocate(static_cast<std::byte*>(memory_[i]), bytes_[i]);
    }
  }
  void Add(const Literal& literal) {
    bytes_.push_back(literal.shape().byte_size());
    memory_.push_back(Allocator().Allocate(bytes_.back()).value());
    if (bytes_.back() == 0) return;
    std::memcpy(memory_.back(), literal.data(), static_cast<size_t>(bytes_.back()));
  }
  void AddResult(Literal& literal) {
    bytes_.push_back(literal.shape().byte_size());
    memory_.push_back(Allocator().Allocate(bytes_.back()).value());
    results_.push_back({&literal, memory_.size() - 1});
  }
  // What a kernel leaves of an output as it is.
  void Copy(size_t from, size_t to) {
    if (bytes_[to] > 0) std::memcpy(memory_[to], memory_[from], static_cast<size_t>(bytes_[to]));
  }
  void GetResults() const {
    for (auto [literal, i] : results_) {
      if (bytes_[i] == 0) continue;
      std::memcpy(literal->data(), memory_[i], static_cast<size_t>(bytes_[i]));
    }
  }
  std::span<void* const> addresses() const { return memory_; }

 private:
  static runtime::Allocator& Allocator() {
    static runtime::Allocator allocator(GuardedMemory());
    return allocator;
  }
  std::vector<void*> memory_;
  std::vector<int64_t> bytes_;
  std::vector<std::pair<Literal*, size_t>> results_;
};

double BoundOf(const kernel::Kernel& kernel) {
  double bound = 1e-3;
  for (const kernel::Stage& stage : kernel.stages) {
    for (const kernel::Node& n : stage.nodes) {
      if (n.type == ElementType::kF16) bound = std::max(bound, 0x1p-7);
      if (n.type == ElementType::kBF16) bound = std::max(bound, 0x1p-4);
    }
  }
  return bound;
}

}  // namespace

std::string RandomGpuKernels::Check(ir::Module& module, const passes::Pipeline& pipeline,
                                    uint64_t seed) {
  passes::PassContext context;
  context.verify = true;
  context.disabled = {"chain-fusion"};
  if (seed % 4 != 0) context.disabled.insert("horizontal-fusion");
  Status status = passes::RunPipeline("test", pipeline, module, context);
  if (!status.ok()) return status.ToString();
  std::vector<Literal> arguments = RandomArguments(module, seed);
  std::map<const ir::Instruction*, Literal> values;
  for (ir::Instruction* i : module.entry()->instructions()) {
    if (i->opcode() == Opcode::kParameter) {
      values.emplace(i, arguments[static_cast<size_t>(NumberOf(*i))]);
      continue;
    }
    std::vector<Literal> operands;
    std::vector<const Literal*> pointers;
    for (const ir::Instruction* o : i->operands()) pointers.push_back(&values.at(o));
    for (const Literal* o : pointers) operands.push_back(*o);
    auto value = i->opcode() == Opcode::kFusion ? interp::Evaluate(*i->called(0), operands)
                                                : interp::EvaluateInstruction(*i, pointers);
    if (!value.ok()) return value.status().ToString();
    std::string difference = CheckKernel(*i, values, *value);
    if (!difference.empty()) return Cat(i->name(), ": ", difference);
    values.emplace(i, *std::move(value));
  }
  return "";
}

std::string RandomGpuKernels::CheckKernel(const ir::Instruction& i,
                                          const std::map<const ir::Instruction*, Literal>& values,
                                          const Literal& expected) {
  switch (i.opcode()) {
    case Opcode::kConstant:
    case Opcode::kTuple:
    case Opcode::kGetTupleElement:
    case Opcode::kOptBarrier:
    case Opcode::kWhile:
    case Opcode::kConditional:
    case Opcode::kCall:
      return "";
    default:
      break;
  }
  if (kernel::IsBundle(i)) return CheckBundle(i, values, expected);
  kernel::Group group = kernel::GroupOf(i);
  auto built = kernel::BuildKernel(group, "k");
  if (!built.ok()) return built.status().ToString();
  plan::ScheduledKernel scheduled;
  scheduled.kernel = *std::move(built);
  target::Gpu gpu = target::NvidiaGpu(80).value().gpu;
  scheduled.gpu = kernel::ScheduleNest(scheduled.kernel, gpu);
  auto object = codegen::GenerateEmulated(scheduled, gpu, target::HostCpu().cpu, {});
  if (!object.ok()) return object.status().ToString();
  Arguments args;
  for (const ir::Instruction* input : group.inputs) {
    // A fusion's inputs are its computation's parameters.
    const ir::Instruction* from = input;
    if (i.opcode() == Opcode::kFusion) from = i.operand(NumberOf(*input));
    args.Add(values.at(from));
  }
  Literal actual(i.shape());
  if (actual.shape().is_tuple()) {
    for (Literal& element : actual.elements()) args.AddResult(element);
  } else {
    args.AddResult(actual);
  }
  for (size_t p = 0; p < scheduled.kernel.params.size(); ++p) {
    int from = scheduled.kernel.params[p].in_place_of;
    if (from >= 0) args.Copy(static_cast<size_t>(from), p);
  }
  Status status = RunEmulated(scheduled, *object, args.addresses());
  if (!status.ok()) return status.ToString();
  args.GetResults();
  ++kernels;
  ++forms[static_cast<int>(scheduled.gpu.form)];
  double bound = BoundOf(scheduled.kernel);
  std::string difference = Difference(expected, actual, bound, bound);
  if (difference.empty()) return "";
  return Cat(difference, "\n", scheduled.gpu.ToString(), "\n", scheduled.kernel.ToString());
}

// One grid, whose blocks are dealt out to the parts.
std::string RandomGpuKernels::CheckBundle(const ir::Instruction& i,
                                          const std::map<const ir::Instruction*, Literal>& values,
                                          const Literal& expected) {
  auto parts = kernel::PartsOf(i);
  if (!parts.ok()) return parts.status().ToString();
  std::vector<plan::ScheduledKernel> scheduled;
  std::vector<const kernel::Kernel*> kernels;
  plan::ScheduledKernel bundle;
  bundle.form = plan::ScheduledKernel::Form::kBundle;
  bundle.kernel.name = "bundle";
  double bound = 0;
  for (const kernel::BundlePart& part : *parts) {
    auto built = kernel::BuildKernel(kernel::GroupOf(*part.kernel), "k");
    if (!built.ok()) return built.status().ToString();
    bound = std::max(bound, BoundOf(*built));
    scheduled.emplace_back().kernel = *std::move(built);
  }
  for (const plan::ScheduledKernel& part : scheduled) {
    kernels.push_back(&part.kernel);
    const auto& params = part.kernel.params;
    bundle.kernel.params.insert(bundle.kernel.params.end(), params.begin(), params.end());
  }
  target::Gpu gpu = target::NvidiaGpu(80).value().gpu;
  std::vector<kernel::GpuNestSchedule> schedules;
  bundle.gpu = kernel::ScheduleSideBySide(kernels, gpu, schedules);
  for (size_t p = 0; p < schedules.size(); ++p) scheduled[p].gpu = schedules[p];
  auto object = codegen::GenerateEmulated(bundle, gpu, target::HostCpu().cpu, {}, scheduled);
  if (!object.ok()) return object.status().ToString();
  Arguments args;
  Literal actual(i.shape());
  for (const kernel::BundlePart& part : *parts) {
    for (int64_t o : part.operands) args.Add(values.at(i.operand(o)));
    for (int64_t r : part.results) args.AddResult(actual.elements()[static_cast<size_t>(r)]);
  }
  Status status = RunEmulated(bundle, *object, args.addresses());
  if (!status.ok()) return status.ToString();
  args.GetResults();
  ++bundles;
  return Difference(expected, actual, bound, bound);
}

}  // namespace kiln::testing
