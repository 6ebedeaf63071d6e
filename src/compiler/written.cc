#include "compiler/written.h"

#include <algorithm>
#include <map>
#include <unordered_map>

#include "base/strings.h"
#include "tensor/call_signature.h"

namespace kiln::compiler {
namespace {

using kernel::Param;
using kernel::ParamId;
using kernel::ScheduledKernel;
using program::Allocation;
using program::AllocationId;
using program::KernelId;
using program::LaunchInfo;
using program::Slice;
using program::Steps;

// Bytes of a program's allocations: per allocation pieces without a gap, from begin to end.
class Bytes {
 public:
  void Add(AllocationId allocation, int64_t begin, int64_t end) {
    if (begin >= end) return;
    Pieces& pieces = of_[allocation];
    auto next = pieces.upper_bound(begin);
    if (next != pieces.begin() && std::prev(next)->second >= begin) --next;
    while (next != pieces.end() && next->first <= end) {
      begin = std::min(begin, next->first);
      end = std::max(end, next->second);
      next = pieces.erase(next);
    }
    pieces.emplace_hint(next, begin, end);
  }
  void Add(const Bytes& other) {
    for (const auto& [allocation, pieces] : other.of_) {
      for (auto [begin, end] : pieces) Add(allocation, begin, end);
    }
  }

  // The first byte from `begin` on that is not here, or `end`.
  int64_t FirstGap(AllocationId allocation, int64_t begin, int64_t end) const {
    auto at = of_.find(allocation);
    if (at == of_.end()) return begin;
    // Pieces do not touch: behind one is a gap.
    auto next = at->second.upper_bound(begin);
    if (next != at->second.begin()) begin = std::max(begin, std::prev(next)->second);
    return std::min(begin, end);
  }

  // The intersection.
  static Bytes Common(const Bytes& a, const Bytes& b) {
    Bytes common;
    for (const auto& [allocation, pieces] : a.of_) {
      auto other = b.of_.find(allocation);
      if (other == b.of_.end()) continue;
      auto x = pieces.begin(), y = other->second.begin();
      while (x != pieces.end() && y != other->second.end()) {
        common.Add(allocation, std::max(x->first, y->first), std::min(x->second, y->second));
        x->second < y->second ? ++x : ++y;
      }
    }
    return common;
  }

 private:
  using Pieces = std::map<int64_t, int64_t>;
  std::unordered_map<AllocationId, Pieces> of_;
};

// Of each output of a kernel whether it is written; of other parameters false.
IdVector<ParamId, bool> WrittenBy(const ScheduledKernel& scheduled) {
  const kernel::Kernel& k = scheduled.kernel;
  IdVector<ParamId, bool> written(k.params.size());
  const auto* gemm = std::get_if<kernel::CpuGemm>(&scheduled.schedule);
  if (gemm && gemm->role != kernel::CpuGemm::Role::kGemm) {
    // Its stages are the gemm's, of which it makes an operand.
    for (ParamId p : k.params.ids()) written[p] = k.params[p].role != Param::Role::kInput;
    return written;
  }
  IdVector<ParamId, int64_t> stored(k.params.size());
  for (const kernel::Stage& stage : k.stages) {
    const int64_t points = k.OuterPoints() * k.PointsOf(stage.variables);
    for (const kernel::Store& s : stage.stores) stored[s.param] += points;
    if (!stage.sort) continue;
    for (ParamId p : stage.sort->params) stored[p] += k.OuterPoints() * stage.sort->keep;
  }
  for (ParamId p : k.params.ids()) {
    const Param& param = k.params[p];
    if (param.role == Param::Role::kInput) continue;
    written[p] = param.in_place_of.valid() || stored[p] >= param.elements;
  }
  return written;
}

class Checker {
 public:
  explicit Checker(const codegen::LoweredProgram& lowered)
      : program_(lowered.program), kernels_(lowered.kernels) {
    for (const ScheduledKernel& k : kernels_) written_by_.push_back(WrittenBy(k));
  }

  Status Run() {
    layers_.resize(1);
    for (AllocationId a : program_.allocations.ids()) {
      if (IsThereFromTheStart(program_.allocations[a])) {
        layers_[0].Add(a, 0, program_.allocations[a].bytes);
      }
    }
    KILN_RETURN_IF_ERROR(Walk(program_.prologue));
    KILN_RETURN_IF_ERROR(Walk(program_.binding));
    KILN_RETURN_IF_ERROR(Walk(program_.steps));
    for (AllocationId a : program_.allocations.ids()) {
      const Allocation& allocation = program_.allocations[a];
      if (allocation.kind != Allocation::Kind::kResult) continue;
      if (!IsWritten({a, 0, allocation.bytes})) {
        return Internal("program '", program_.name, "': nothing writes result ", allocation.number,
                        " of shape ", program_.signature.results[allocation.number]);
      }
    }
    return OkStatus();
  }

 private:
  bool IsThereFromTheStart(const Allocation& a) const {
    switch (a.kind) {
      case Allocation::Kind::kParameter:
        return true;
      case Allocation::Kind::kResult:
        return program_.signature.aliases[a.number] >= 0;
      case Allocation::Kind::kConstant:
        return program_.constants[a.number] != nullptr;
      case Allocation::Kind::kBound:
      case Allocation::Kind::kArena:
        return false;
    }
    return false;
  }

  // Layers hold the writes of the enclosing bodies and branches, the innermost last.
  bool IsWritten(const Slice& slice) const {
    int64_t begin = slice.offset;
    const int64_t end = slice.offset + slice.bytes;
    while (begin < end) {
      const int64_t before = begin;
      for (auto layer = layers_.rbegin(); layer != layers_.rend() && begin < end; ++layer) {
        begin = layer->FirstGap(slice.allocation, begin, end);
      }
      if (begin == before) return false;
    }
    return true;
  }
  void Write(const Slice& slice) {
    layers_.back().Add(slice.allocation, slice.offset, slice.offset + slice.bytes);
  }
  Status Read(const Slice& slice, program::LaunchId launch) const {
    if (IsWritten(slice)) return OkStatus();
    const LaunchInfo& info = program_.launches[launch];
    return Internal("program '", program_.name, "': '", info.kernel_name, "' (",
                    Join(info.op_names, ", "),
                    ") reads memory that nothing has written: ", slice.bytes, " bytes at ",
                    slice.offset, " of allocation ", slice.allocation);
  }

  Status Walk(const Steps& steps) {
    for (const program::Step& step : steps) {
      KILN_RETURN_IF_ERROR(std::visit([this](const auto& s) { return Walk(s); }, step.what));
    }
    return OkStatus();
  }

  Status Walk(const program::Copy& copy) {
    if (!IsWritten(copy.from)) {
      return Internal("program '", program_.name, "': ", copy.from.bytes, " bytes at ",
                      copy.from.offset, " of allocation ", copy.from.allocation,
                      " are copied before anything has written them");
    }
    Write(copy.to);
    return OkStatus();
  }

  Status Walk(const program::While& loop) {
    KILN_RETURN_IF_ERROR(Walk(loop.condition));
    KILN_RETURN_IF_ERROR(Read(loop.predicate, loop.id));
    layers_.emplace_back();
    KILN_RETURN_IF_ERROR(Walk(loop.body));
    layers_.pop_back();
    return OkStatus();
  }

  Status Walk(const program::Launch& launch) {
    const ScheduledKernel& k = kernels_[launch.kernel];
    const std::vector<kernel::KernelPart> parts = kernel::PartsOf(k.schedule);
    if (parts.empty()) return RunKernel(launch, launch.kernel, 0);
    for (const kernel::KernelPart& part : parts) {
      KILN_RETURN_IF_ERROR(RunKernel(launch, part.kernel, static_cast<size_t>(part.first_arg)));
    }
    return OkStatus();
  }

  Status RunKernel(const program::Launch& launch, KernelId id, size_t first_arg) {
    const kernel::Kernel& k = kernels_[id].kernel;
    for (ParamId p : k.params.ids()) {
      const Param& param = k.params[p];
      const bool is_read = param.role == Param::Role::kInput || param.in_place_of.valid();
      if (is_read) KILN_RETURN_IF_ERROR(Read(launch.args[first_arg + p.index()], launch.id));
    }
    for (ParamId p : k.params.ids()) {
      if (k.params[p].role == Param::Role::kInput) continue;
      if (!written_by_[id][p]) {
        const LaunchInfo& info = program_.launches[launch.id];
        return Internal("kernel '", k.name, "' (", Join(info.op_names, ", "),
                        ") does not write all ", k.params[p].elements,
                        " elements of its parameter ", p, ", an output");
      }
      Write(launch.args[first_arg + p.index()]);
    }
    return OkStatus();
  }

  Status Walk(const program::HostCall& call) {
    KILN_ASSIGN_OR_RETURN(CallSignature signature, CallSignature::Decode(call.config));
    const size_t results = signature.operands.size();
    for (size_t a = 0; a < results; ++a) KILN_RETURN_IF_ERROR(Read(call.args[a], call.id));
    for (size_t a = 0; a < signature.results.size(); ++a) Write(call.args[results + a]);
    return OkStatus();
  }

  Status Walk(const program::Conditional& conditional) {
    if (!IsWritten(conditional.index)) {
      return Internal("program '", program_.name,
                      "': nothing has written what a conditional goes by");
    }
    Bytes common;
    for (size_t branch = 0; branch < conditional.branches.size(); ++branch) {
      layers_.emplace_back();
      KILN_RETURN_IF_ERROR(Walk(conditional.branches[branch]));
      common = branch == 0 ? std::move(layers_.back()) : Bytes::Common(common, layers_.back());
      layers_.pop_back();
    }
    layers_.back().Add(common);
    return OkStatus();
  }

  const program::Program& program_;
  const codegen::ScheduledKernels& kernels_;
  IdVector<KernelId, IdVector<ParamId, bool>> written_by_;
  std::vector<Bytes> layers_;
};

}  // namespace

Status CheckWritten(const codegen::LoweredProgram& lowered) { return Checker(lowered).Run(); }

}  // namespace kiln::compiler
