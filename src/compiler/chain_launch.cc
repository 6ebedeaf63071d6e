#include "compiler/chain_launch.h"

#include <algorithm>

#include "base/strings.h"
#include "compiler/packing.h"
#include "kernel/schedule/cpu/chain.h"
#include "program/program.h"

namespace kiln::compiler {
namespace {

using kernel::Chain;
using kernel::ChainPart;
using kernel::CpuChain;
using kernel::CpuChainSchedule;
using kernel::ScheduledKernel;
using Place = ChainLayout::Place;

int64_t Aligned(int64_t bytes) {
  return (bytes + program::kAlignment - 1) / program::kAlignment * program::kAlignment;
}

// Puts the arguments in their places, and those that are in scratch into pieces.
class Layout {
 public:
  Layout(const Chain& chain, const CpuChainSchedule& schedule, ChainKernels& kernels)
      : chain_(chain), schedule_(schedule), kernels_(kernels), out_(kernels.layout) {}

  void Run() {
    PlaceGemmScratch();
    for (int64_t o : chain_.gemm.operands) {
      out_.gemm_inputs.push_back({Place::Kind::kOperand, o, 0});
    }
    for (size_t r = 0; r < chain_.gemm.results.size(); ++r) {
      out_.gemm_results.push_back(PlaceResult(static_cast<int64_t>(r)));
    }
    auto first_rows = static_cast<int>(out_.gemm_inputs.size() + out_.gemm_results.size());
    if (own_scratch_ > 0) {
      pieces().push_back(
          {first_rows++, own_scratch_, schedule_.gemm_items * schedule_.gemm.slot_bytes});
    }
    schedule_of_chain().parts[1].first_arg = first_rows;
    for (int64_t o : chain_.rows.operands) {
      if (o >= 0) {
        out_.rows_args.push_back({Place::Kind::kOperand, o, 0});
        continue;
      }
      const Place& place = out_.gemm_results[~o];
      if (place.kind == Place::Kind::kScratch) {
        AddPiece(first_rows + static_cast<int>(out_.rows_args.size()), ~o);
      }
      out_.rows_args.push_back(place);
    }
    for (int64_t r : chain_.rows.results) out_.rows_args.push_back({Place::Kind::kResult, r, 0});
  }

 private:
  CpuChain& schedule_of_chain() { return std::get<CpuChain>(kernels_.chain.schedule); }
  std::vector<CpuChain::Piece>& pieces() { return schedule_of_chain().pieces; }

  int64_t BlockBytes(int64_t result) const {
    const kernel::Kernel& k = chain_.gemm.kernel;
    ElementType type = k.params[chain_.GemmParam(result)].type;
    return schedule_.block_elements() * ByteWidth(type);
  }
  // A block need not begin at a multiple of the alignment.
  int64_t ItemBytes(int64_t result) const {
    int64_t bytes = BlockBytes(result);
    return Aligned(bytes) + (bytes % program::kAlignment == 0 ? 0 : program::kAlignment);
  }

  // A call of the gemm uses the slots of the panels that it works on at once.
  void PlaceGemmScratch() {
    const kernel::GemmSchedule& g = schedule_.gemm;
    own_scratch_ = g.slot_bytes * g.block_n;
    out_.gemm_scratch = PackedLhsBytes(kernels_.gemm) + PackedRhsBytes(kernels_.gemm) +
                        own_scratch_ * schedule_.items;
    out_.scratch_bytes = out_.gemm_scratch;
  }

  Place PlaceResult(int64_t result) {
    const auto r = static_cast<size_t>(result);
    if (int64_t outside = chain_.gemm.results[r]; outside >= 0) {
      return {Place::Kind::kResult, outside, 0};
    }
    if (int64_t home = chain_.home[r]; home >= 0) {
      return {Place::Kind::kResult, chain_.rows.results[home], 0};
    }
    AddPiece(chain_.GemmParam(result).value(), result);
    Place place{Place::Kind::kScratch, out_.scratch_bytes, ItemBytes(result) * schedule_.items};
    out_.scratch_bytes += place.bytes;
    return place;
  }

  void AddPiece(int arg, int64_t result) {
    pieces().push_back({arg, ItemBytes(result), BlockBytes(result)});
  }

  const Chain& chain_;
  const CpuChainSchedule& schedule_;
  ChainKernels& kernels_;
  ChainLayout& out_;
  int64_t own_scratch_ = 0;  // of the gemm, in an item
};

}  // namespace

Result<ChainKernels> ScheduleChainKernels(const std::string& name, Chain chain,
                                          const kernel::Scheduler& scheduler,
                                          const std::vector<bool>& constant,
                                          const CpuChainSchedule* known) {
  auto is_constant = [&](kernel::ParamId param) {
    return param.index() < constant.size() && constant[param.index()];
  };
  const std::optional<CpuChainSchedule> schedule =
      known ? std::optional(*known) : scheduler.ScheduleChain(chain, is_constant);
  if (!schedule) {
    return Unimplemented("fusion: '", name, "' of the gemm '", chain.gemm.fusion->name(), "' and '",
                         chain.rows.fusion->name(), "' is no kernel of the target");
  }
  ChainKernels out;
  chain.gemm.kernel.name = Cat(name, "_gemm");
  chain.rows.kernel.name = Cat(name, "_rows");

  ScheduledKernel& gemm = out.gemm;
  gemm.kernel = chain.gemm.kernel;
  gemm.schedule = kernel::CpuGemm{
      .contraction = std::make_shared<const kernel::Contraction>(schedule->contraction),
      .schedule = std::make_shared<const kernel::GemmSchedule>(schedule->gemm)};
  ScheduledKernel& rows = out.rows;
  rows.kernel = chain.rows.kernel;
  rows.schedule = schedule->rows;

  ScheduledKernel& together = out.chain;
  together.kernel.name = name;
  together.schedule = CpuChain{.parts = {{{}, schedule->gemm_items}, {{}, 1}},
                               .blocks = schedule->blocks,
                               .blocks_per_item = schedule->blocks_per_item,
                               .items = schedule->items,
                               .max_tasks = schedule->max_tasks};
  for (const ChainPart* part : {&chain.gemm, &chain.rows}) {
    kernel::Kernel& k = together.kernel;
    k.op_names.insert(k.op_names.end(), part->kernel.op_names.begin(), part->kernel.op_names.end());
    k.flops += part->kernel.flops;
    k.transcendentals += part->kernel.transcendentals;
    k.bytes_read += part->kernel.bytes_read;
    k.bytes_written += part->kernel.bytes_written;
    out.text += Cat("chain ", part->kernel.ToString(), "\n", Join(part->operands, ","), " to ",
                    Join(part->results, ","), "\n");
  }
  // Values between the two are neither read from memory nor written there.
  for (size_t r = 0; r < chain.gemm.results.size(); ++r) {
    const kernel::Param& p = chain.gemm.kernel.params[chain.GemmParam(static_cast<int64_t>(r))];
    const int64_t bytes = p.elements * ByteWidth(p.type);
    together.kernel.bytes_read -= chain.IsLinked(static_cast<int64_t>(r)) ? bytes : 0;
    together.kernel.bytes_written -= chain.gemm.results[r] < 0 ? bytes : 0;
  }
  for (bool c : constant) out.text += c ? '1' : '0';
  Layout(chain, *schedule, out).Run();
  return out;
}

}  // namespace kiln::compiler
