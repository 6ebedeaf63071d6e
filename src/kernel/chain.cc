#include "kernel/chain.h"

#include <algorithm>

#include "base/strings.h"
#include "kernel/build.h"
#include "kernel/fusible.h"
#include "kernel/fusion_analysis.h"

namespace kiln::kernel {
namespace {

using ir::Instruction;

// What a value is taken from, and which result of it.
struct Taken {
  const Instruction* from;
  int64_t result;
};

Taken TakenFrom(const Instruction* value) {
  if (value->opcode() != Opcode::kGetTupleElement) return {value, 0};
  return {value->operand(0), value->attributes().Int(Attr::kIndex)};
}

int64_t InputCount(const Kernel& kernel) {
  return std::ranges::count_if(kernel.params,
                               [](const Param& p) { return p.role == Param::Role::kInput; });
}

Status BuildParts(Chain& chain, FusionAnalysis& analysis) {
  for (ChainPart* part : {&chain.gemm, &chain.rows}) {
    const Result<Kernel>& kernel = analysis.KernelOf(*part->fusion);
    KILN_RETURN_IF_ERROR(kernel.status());
    part->kernel = *kernel;
  }
  // A result is made in one that takes its place, where that is read by nobody else.
  chain.home.assign(chain.gemm.results.size(), -1);
  std::vector<bool> taken(chain.rows.results.size());
  for (size_t r = 0; r < chain.home.size(); ++r) {
    std::vector<ParamId> params = chain.RowsParams(static_cast<int64_t>(r));
    if (chain.gemm.results[r] >= 0 || params.size() != 1) continue;
    for (size_t to = 0; to < taken.size(); ++to) {
      const Param& made = chain.gemm.kernel.params[chain.GemmParam(static_cast<int64_t>(r))];
      const Param& output =
          chain.rows.kernel
              .params[ParamId(InputCount(chain.rows.kernel) + static_cast<int64_t>(to))];
      if (taken[to] || made.elements != output.elements || output.in_place_of.valid() ||
          !KernelMayShare(*chain.rows.fusion, chain.rows.kernel, params[0],
                          static_cast<int64_t>(to))) {
        continue;
      }
      taken[to] = true;
      chain.home[r] = static_cast<int64_t>(to);
      break;
    }
  }
  return OkStatus();
}

}  // namespace

ParamId Chain::GemmParam(int64_t result) const { return ParamId(InputCount(gemm.kernel) + result); }

std::vector<ParamId> Chain::RowsParams(int64_t result) const {
  std::vector<ParamId> params;
  for (size_t o = 0; o < rows.operands.size(); ++o) {
    if (rows.operands[o] == ~result) params.emplace_back(o);
  }
  return params;
}

bool IsChain(const Instruction& instruction) {
  if (instruction.opcode() != Opcode::kFusion) return false;
  if (!instruction.called(0)->MayHold(Opcode::kFusion)) return false;
  const auto& members = instruction.called(0)->instructions();
  return std::ranges::any_of(members, [](const auto& m) {
    return m->opcode() == Opcode::kFusion &&
           std::ranges::any_of(m->operands(), [](const Instruction* operand) {
             return TakenFrom(operand).from->opcode() == Opcode::kFusion;
           });
  });
}

Result<Chain> BuildChain(const Instruction& instruction, FusionAnalysis& analysis) {
  auto other = [&](const Instruction& i, std::string_view why) {
    return Unimplemented("fusion: in '", instruction.name(), "', which holds fusions, '", i.name(),
                         "' ", why);
  };
  Chain chain;
  for (Instruction* i : instruction.called(0)->instructions()) {
    switch (i->opcode()) {
      case Opcode::kParameter:
        continue;
      case Opcode::kGetTupleElement:
        if (i->operand(0)->opcode() == Opcode::kFusion) continue;
        return other(*i, "takes apart what no fusion made");
      case Opcode::kTuple:
        if (i == instruction.called(0)->root()) continue;
        return other(*i, "is a tuple inside");
      case Opcode::kFusion: {
        ChainPart& part = chain.gemm.fusion ? chain.rows : chain.gemm;
        if (part.fusion) return other(*i, "is the third of them");
        part.fusion = i;
        part.results.assign(static_cast<size_t>(i->shape().result_count()), -1);
        for (const Instruction* operand : i->operands()) {
          Taken taken = TakenFrom(operand);
          if (operand->opcode() == Opcode::kParameter) {
            part.operands.push_back(operand->attributes().Int(Attr::kParameterNumber));
          } else if (taken.from == chain.gemm.fusion && operand->shape().is_array()) {
            part.operands.push_back(~taken.result);
          } else {
            return other(*i, "reads what is neither a parameter nor an array of the gemm's");
          }
        }
        continue;
      }
      default:
        return other(*i, "is none");
    }
  }
  if (!chain.rows.fusion) return other(instruction, "is alone");
  const Instruction& root = *instruction.called(0)->root();
  std::vector<const Instruction*> results = {&root};
  if (root.opcode() == Opcode::kTuple)
    results.assign(root.operands().begin(), root.operands().end());
  for (size_t r = 0; r < results.size(); ++r) {
    Taken taken = TakenFrom(results[r]);
    ChainPart& part = taken.from == chain.rows.fusion ? chain.rows : chain.gemm;
    if (taken.from != part.fusion || !results[r]->shape().is_array()) {
      return other(root, "has other elements than arrays that fusions make");
    }
    int64_t& result = part.results[taken.result];
    if (result >= 0) return other(root, "has an element twice");
    result = static_cast<int64_t>(r);
  }
  if (std::ranges::count(chain.rows.results, -1) > 0) return other(root, "loses a result");
  KILN_RETURN_IF_ERROR(BuildParts(chain, analysis));
  for (size_t r = 0; r < chain.gemm.results.size(); ++r) {
    if (chain.gemm.results[r] < 0 && !chain.IsLinked(static_cast<int64_t>(r))) {
      return other(*chain.gemm.fusion, "makes what is lost");
    }
  }
  return chain;
}

Result<Chain> BuildChain(const Instruction& gemm, const Instruction& rows,
                         const std::function<bool(int64_t)>& is_used, FusionAnalysis& analysis) {
  Chain chain;
  chain.gemm.fusion = &gemm;
  chain.rows.fusion = &rows;
  int64_t next = 0;
  size_t inputs = GroupOf(gemm).inputs.size();
  for (size_t o = 0; o < inputs; ++o) chain.gemm.operands.push_back(next++);
  // Of an op alone each operand is one input, however often it has it.
  std::vector<const Instruction*> read;
  for (const Instruction* operand : rows.operands()) {
    bool again = rows.opcode() != Opcode::kFusion && std::ranges::count(read, operand) > 0;
    if (!again) read.push_back(operand);
  }
  for (const Instruction* operand : read) {
    Taken taken = TakenFrom(operand);
    chain.rows.operands.push_back(taken.from == &gemm ? ~taken.result : next++);
  }
  next = 0;
  for (int64_t r = 0; r < gemm.shape().result_count(); ++r) {
    chain.gemm.results.push_back(is_used(r) ? next++ : -1);
  }
  for (int64_t r = 0; r < rows.shape().result_count(); ++r) chain.rows.results.push_back(next++);
  KILN_RETURN_IF_ERROR(BuildParts(chain, analysis));
  return chain;
}

// The part that makes the output may, if the other part, which is at other rows by then, does not
// read the operand.
bool MayShareInChain(const Instruction& instruction, int64_t operand, int64_t output,
                     FusionAnalysis& analysis) {
  auto chain = BuildChain(instruction, analysis);
  if (!chain.ok()) return false;
  auto made = std::ranges::find(chain->rows.results, output);
  bool by_rows = made != chain->rows.results.end();
  if (!by_rows) made = std::ranges::find(chain->gemm.results, output);
  const ChainPart& part = by_rows ? chain->rows : chain->gemm;
  const ChainPart& other = by_rows ? chain->gemm : chain->rows;
  if (made == part.results.end() || std::ranges::count(other.operands, operand) > 0) return false;
  if (std::ranges::count(part.operands, operand) != 1) return false;
  int64_t result = made - part.results.begin();
  // What the gemm puts there first would be read for the operand.
  if (by_rows && std::ranges::count(chain->home, result) > 0) return false;
  auto input = std::ranges::find(part.operands, operand) - part.operands.begin();
  return KernelMayShare(*part.fusion, part.kernel, ParamId(input), result);
}

}  // namespace kiln::kernel
