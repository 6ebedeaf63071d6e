// Horizontal fusion: small independent kernels become one, a bundle, distributed over a CPU's
// threads, or launched once on a GPU. Typical are the updates of hundreds of parameters.
//
// Two instructions at the same distance from the root, along the longest path, cannot depend on
// each other. Nor can bundles of such: a path from one bundle to another leads nearer to the root.
// The rest is tried once more, by the distance from the parameters.

#include <algorithm>
#include <cstdlib>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "ir/analysis/alias.h"
#include "ir/analysis/effects.h"
#include "ir/instruction_map.h"
#include "kernel/fusible.h"
#include "kernel/fusion_analysis.h"
#include "kernel/schedule/scheduler.h"
#include "passes/fusion/merge.h"
#include "passes/passes.h"

namespace kiln::passes {
namespace {

using ir::Computation;
using ir::Instruction;
using kernel::FusionRole;

// Of one bundle: a GPU's kernels take no more than 512 parameters.
constexpr size_t kMaxArrays = 480;
// A kernel that moves more keeps several threads busy alone.
constexpr int64_t kMaxKernelBytes = 1 << 20;
// A bundle's operands and results are all live at once. This is the limit on their bytes in the
// arena.
constexpr int64_t kMaxTemporaryBytes = 4 << 20;
// A kernel with this many bytes there is bundled only with such as are about as far from the
// parameters, and so near in the schedule: as the gradients of several layers would wait for the
// last.
constexpr int64_t kLargeBytes = 64 << 10;
constexpr int64_t kMostDistance = 4;

// How often kernels in conflict with others of their level are dealt again: each time one of those
// that may overwrite the same array goes into a bundle, and there may be thousands.
constexpr int kMostRounds = 64;

// Rough rates of one thread, for kernels in its caches.
constexpr double kBytesPerMicrosecond = 50e3;
constexpr double kFlopsPerMicrosecond = 20e3;
constexpr double kTranscendentalsPerMicrosecond = 1500;

double MicrosecondsOf(const kernel::Cost& cost) {
  return std::max(static_cast<double>(cost.bytes_read + cost.bytes_written) / kBytesPerMicrosecond,
                  static_cast<double>(cost.flops) / kFlopsPerMicrosecond +
                      static_cast<double>(cost.transcendentals) / kTranscendentalsPerMicrosecond);
}

std::vector<const Shape*> ArraysOf(const Shape& shape) {
  std::vector<const Shape*> arrays;
  if (shape.is_array()) arrays = {&shape};
  for (const Shape& element : shape.elements()) arrays.push_back(&element);
  return arrays;
}

bool IsSmallKernel(const Instruction& i) {
  if (i.IsRoot() || i.IsConstant() || ir::IsAlias(i)) return false;
  switch (kernel::RoleOf(i)) {
    case FusionRole::kElemental:
    case FusionRole::kReduce:
    case FusionRole::kRows:
      break;
    case FusionRole::kNone:
    case FusionRole::kDot:
    case FusionRole::kWindow:
    case FusionRole::kScatter:
    case FusionRole::kSort:
    case FusionRole::kBundle:
    case FusionRole::kChain:
      return false;
  }
  // In-place updates should stay free to come last.
  if (kernel::UpdatedOperand(i, 0) >= 0) return false;
  int64_t bytes = 0;
  for (const Shape* array : ArraysOf(i.shape())) {
    if (!array->is_array()) return false;
    bytes += array->byte_size();
  }
  for (const Instruction* operand : i.operands()) {
    if (!operand->shape().is_array()) return false;
    bytes += operand->shape().byte_size();
  }
  return bytes <= kMaxKernelBytes;
}

// A bundle in the making.
class Bundle {
 public:
  // `kept` are arrays that nothing may overwrite.
  explicit Bundle(const std::unordered_set<const Instruction*>& kept) : kept_(&kept) {}

  const std::vector<Instruction*>& kernels() const { return kernels_; }
  double microseconds() const { return microseconds_; }

  enum class Added : uint8_t { kYes, kFull, kConflict };
  // `depth`: how far from the parameters.
  Added Add(Instruction* kernel, int64_t depth) {
    std::vector<const Shape*> results = ArraysOf(kernel->shape());
    size_t arrays = results.size() + static_cast<size_t>(kernel->operand_count());
    int64_t temporary = 0;
    for (const Shape* result : results) temporary += result->byte_size();
    for (const Instruction* operand : kernel->operands()) {
      bool is_there = operand->opcode() == Opcode::kParameter || operand->IsConstant();
      if (!is_there) temporary += operand->shape().byte_size();
    }
    if (kernels_.empty()) {
      arrays_ = arrays;
    } else if (arrays_ + arrays > kMaxArrays || temporary_ + temporary > kMaxTemporaryBytes) {
      return Added::kFull;
    } else if (TakesMemoryFromOthers(*kernel) || IsFar(temporary, depth)) {
      return Added::kConflict;
    } else {
      arrays_ += arrays;
    }
    temporary_ += temporary;
    if (temporary >= kLargeBytes && depth_ < 0) depth_ = depth;
    for (const Instruction* operand : kernel->operands()) {
      bool& written = over_[operand];
      written = written || MayBecomeResult(*operand, *kernel);
    }
    kernels_.push_back(kernel);
    microseconds_ += MicrosecondsOf(kernel::CostOf(*kernel));
    return Added::kYes;
  }

 private:
  bool IsFar(int64_t temporary_bytes, int64_t depth) const {
    return temporary_bytes >= kLargeBytes && depth_ >= 0 &&
           std::abs(depth - depth_) > kMostDistance;
  }
  // Whether the kernel might make a result in the operand's memory.
  bool MayBecomeResult(const Instruction& operand, const Instruction& kernel) const {
    return !kept_->contains(&operand) &&
           std::ranges::any_of(ArraysOf(kernel.shape()), [&](const Shape* result) {
             return result->byte_size() == operand.shape().byte_size();
           });
  }
  // A kernel must not overwrite the input of another one in the same bundle.
  bool TakesMemoryFromOthers(const Instruction& kernel) const {
    return std::ranges::any_of(kernel.operands(), [&](const Instruction* operand) {
      auto at = over_.find(operand);
      return at != over_.end() && (at->second || MayBecomeResult(*operand, kernel));
    });
  }

  const std::unordered_set<const Instruction*>* kept_;
  std::vector<Instruction*> kernels_;
  std::unordered_map<const Instruction*, bool> over_;  // operands, and whether one may overwrite it
  size_t arrays_ = 0;
  int64_t temporary_ = 0;
  int64_t depth_ = -1;  // of its first large kernel
  double microseconds_ = 0;
};

class Bundler {
 public:
  Bundler(Computation& c, const kernel::Scheduler& scheduler, kernel::FusionAnalysis& analysis)
      : c_(c), scheduler_(scheduler), analysis_(analysis) {
    const ir::Module& module = *c.parent();
    for (Instruction* i : c.instructions()) {
      if (i->IsConstant()) kept_.insert(i);
    }
    if (&c != module.entry()) return;
    kept_.insert(c.parameters().begin(), c.parameters().end());
    for (const ir::InputOutputAlias& alias : module.aliases()) {
      kept_.erase(c.parameter(alias.parameter));
    }
  }

  bool Run() {
    bool changed = BundleLevels(/*from_root=*/true);
    changed |= BundleLevels(/*from_root=*/false);
    if (changed) c_.Reorder(c_.PostOrder());
    return changed;
  }

 private:
  // Small kernels by their distance from the root, or from the parameters. One effect is at some
  // distance from the next one.
  std::vector<std::vector<Instruction*>> Levels(bool from_root) const {
    std::vector<Instruction*> order = c_.PostOrder();
    if (from_root) std::ranges::reverse(order);
    const auto previous = ir::PreviousEffects(c_);
    std::unordered_map<const Instruction*, const Instruction*> next;
    for (const auto& [effect, before] : previous) next[before] = effect;
    ir::InstructionMap<size_t> level(c_);
    std::vector<std::vector<Instruction*>> levels;
    for (Instruction* i : order) {
      size_t at = 0;
      if (from_root) {
        for (const Instruction* user : i->users()) at = std::max(at, level.at(user) + 1);
        if (auto it = next.find(i); it != next.end()) at = std::max(at, level.at(it->second) + 1);
      } else {
        for (const Instruction* operand : i->operands()) at = std::max(at, level.at(operand) + 1);
        auto it = previous.find(i);
        if (it != previous.end()) at = std::max(at, level.at(it->second) + 1);
      }
      level[i] = at;
      if (levels.size() <= at) levels.resize(at + 1);
      if (IsSmallKernel(*i)) levels[at].push_back(i);
    }
    if (from_root) {
      for (auto& kernels : levels) std::ranges::reverse(kernels);
    }
    return levels;
  }

  bool BundleLevels(bool from_root) {
    bool changed = false;
    depths_ = ir::InstructionMap<int64_t>(c_);
    for (Instruction* i : c_.PostOrder()) {
      int64_t depth = 0;
      for (const Instruction* operand : i->operands()) {
        depth = std::max(depth, depths_.at(operand) + 1);
      }
      depths_[i] = depth;
    }
    for (std::vector<Instruction*>& kernels : Levels(from_root)) {
      // Kernels in conflict with others of the first bundles form more bundles.
      for (int round = 0; round < kMostRounds && kernels.size() > 1; ++round) {
        std::vector<Instruction*> apart;
        changed |= Deal(kernels, apart);
        kernels = std::move(apart);
      }
    }
    return changed;
  }

  bool Deal(const std::vector<Instruction*>& kernels, std::vector<Instruction*>& apart) {
    bool changed = false;
    Bundle bundle(kept_);
    for (Instruction* k : kernels) {
      switch (bundle.Add(k, depths_.at(k))) {
        case Bundle::Added::kYes:
          break;
        case Bundle::Added::kConflict:
          apart.push_back(k);
          break;
        case Bundle::Added::kFull:
          changed |= Finish(bundle);
          bundle = Bundle(kept_);
          bundle.Add(k, depths_.at(k));
          break;
      }
    }
    return Finish(bundle) || changed;
  }

  bool Finish(const Bundle& bundle) {
    // By traffic and operations first: most bundles are too small, and need no kernels to see it.
    if (bundle.kernels().size() < 2) return false;
    if (!scheduler_.BundlePays(bundle.microseconds())) return false;
    std::vector<Instruction*> parts;
    double microseconds = 0;
    for (Instruction* k : bundle.kernels()) {
      const Result<kernel::Kernel>& kernel = analysis_.KernelOf(*k);
      if (!kernel.ok()) continue;
      // Only gemms have operands that are packed where they are constants.
      auto scheduled = scheduler_.Schedule(*kernel, [](kernel::ParamId) { return false; });
      if (!scheduled.ok()) continue;
      const std::optional<double> time = scheduler_.PartMicroseconds(*scheduled);
      if (!time) continue;
      microseconds += *time;
      parts.push_back(k);
    }
    if (parts.size() < 2 || !scheduler_.BundlePays(microseconds)) return false;
    MergeBundle(parts);
    return true;
  }

  Computation& c_;
  const kernel::Scheduler& scheduler_;
  kernel::FusionAnalysis& analysis_;
  std::unordered_set<const Instruction*> kept_;
  ir::InstructionMap<int64_t> depths_;  // the longest ways from the parameters
};

}  // namespace

Result<bool> BundleKernels(ir::Module& module, const PassContext& context) {
  bool changed = false;
  const auto scheduler = kernel::SchedulerFor(TargetOf(context));
  for (Computation* c : ProgramComputations(module)) {
    changed |= Bundler(*c, *scheduler, *context.fusions).Run();
  }
  if (changed) module.RemoveUnusedComputations();
  return changed;
}

}  // namespace kiln::passes
