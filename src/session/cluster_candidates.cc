#include "session/cluster_candidates.h"

#include <algorithm>

#include "ir/analysis/effects.h"

namespace kiln::session {
namespace {

using ir::Computation;
using ir::Instruction;

OpSet SetOf(std::initializer_list<Opcode> opcodes) {
  OpSet set;
  for (Opcode opcode : opcodes) set.set(static_cast<size_t>(opcode));
  return set;
}

// TensorFlow's groups, with the HLO ops of their ops.
std::optional<OpSet> OpGroup(std::string_view name) {
  OpSet pointwise = SetOf({Opcode::kBitcast, Opcode::kBitcastConvert, Opcode::kTranspose,
                           Opcode::kMap, Opcode::kOptBarrier});
  for (int k = 0; k < kOpcodeCount; ++k) {
    if (IsElementwise(static_cast<Opcode>(k))) pointwise.set(static_cast<size_t>(k));
  }
  const OpSet reductions = SetOf({Opcode::kReduce});
  const OpSet windows = SetOf({Opcode::kReduceWindow, Opcode::kSelectAndScatter});
  const OpSet norms =
      SetOf({Opcode::kBatchNormTraining, Opcode::kBatchNormInference, Opcode::kBatchNormGrad});
  const OpSet convolutions = SetOf({Opcode::kConvolution});
  const OpSet sorts = SetOf({Opcode::kSort, Opcode::kTopK});
  const OpSet others =
      SetOf({Opcode::kBroadcast, Opcode::kConcatenate, Opcode::kDynamicSlice,
             Opcode::kDynamicUpdateSlice, Opcode::kGetDimensionSize, Opcode::kIota, Opcode::kPad,
             Opcode::kReshape, Opcode::kReverse, Opcode::kSlice, Opcode::kTranspose});
  if (name == "PW") return pointwise;
  if (name == "RED") return reductions;
  if (name == "PWRED") return pointwise | reductions;
  if (name == "REDUCEWINDOW") return windows;
  if (name == "REDUCEWINDOWPW") return windows | pointwise;
  if (name == "BN") return norms;
  if (name == "Conv") return convolutions;
  if (name == "SORT") return sorts;
  if (name == "MISC") return others;
  if (name == "FUSIBLE") {
    return pointwise | reductions | windows | norms | convolutions | sorts | others;
  }
  return std::nullopt;
}

bool IsRandom(Opcode opcode) {
  return opcode == Opcode::kRng || opcode == Opcode::kRngGetAndUpdateState;
}

bool IsOnEveryList(Opcode opcode) { return opcode == Opcode::kConstant || IsTuplePlumbing(opcode); }

}  // namespace

bool IsTuplePlumbing(Opcode opcode) {
  return opcode == Opcode::kTuple || opcode == Opcode::kGetTupleElement ||
         opcode == Opcode::kAfterAll;
}

bool IsIdentityLike(const Instruction& instruction) {
  switch (instruction.opcode()) {
    case Opcode::kBitcast:
    case Opcode::kConstant:
    case Opcode::kCopy:
    case Opcode::kOptBarrier:
      return true;
    default:
      return IsTuplePlumbing(instruction.opcode()) || ir::IsMarker(instruction);
  }
}

bool IsShapeConsumer(Opcode opcode) { return opcode == Opcode::kGetDimensionSize; }

bool IsSmallConstant(const Instruction& instruction) {
  constexpr int64_t kSmallConstantBytes = 4096;
  return instruction.IsConstant() && instruction.shape().is_array() &&
         instruction.literal().byte_size() <= kSmallConstantBytes;
}

Result<OpSet> ParseOpList(std::string_view option, const std::vector<std::string>& names) {
  OpSet set;
  for (const std::string& name : names) {
    if (std::optional<OpSet> group = OpGroup(name)) {
      set |= *group;
    } else if (std::optional<Opcode> opcode = OpcodeByName(name)) {
      set.set(static_cast<size_t>(*opcode));
    } else {
      return InvalidArgument(option, ": there is no op and no group of ops '", name, "'");
    }
  }
  return set;
}

Compilability::Blocker Compilability::Find(const Instruction& i, bool allow_random) {
  if (input_.why_not_compilable && input_.why_not_compilable(i)) {
    return {Outside::kNotCompilable, &i};
  }
  if (!allow_random && IsRandom(i.opcode())) return {Outside::kRandom, &i};
  for (const Computation* callee : i.called()) {
    auto& known = known_[allow_random];
    auto it = known.find(callee);
    if (it == known.end()) {
      Blocker found;
      for (const Instruction* inner : callee->instructions()) {
        found = Find(*inner, allow_random);
        if (found.kind != Outside::kNot) break;
      }
      it = known.emplace(callee, found).first;
    }
    if (it->second.kind != Outside::kNot) return it->second;
  }
  return {};
}

std::string Compilability::Describe(const Blocker& blocker, const Instruction& instruction) const {
  std::string why = "it draws random numbers from a state";
  if (blocker.kind == Outside::kNotCompilable) {
    why = input_.why_not_compilable(*blocker.instruction).value_or("it cannot be compiled");
  }
  if (blocker.instruction == &instruction) return why;
  return Cat("'", blocker.instruction->name(), "' in the computation '",
             blocker.instruction->parent()->name(), "': ", why);
}

Result<CandidateRules> CandidateRules::Create(const ClusterInput& input) {
  CandidateRules rules(input);
  const ClusterOptions& options = input.options;
  if (!options.ops_to_cluster.empty()) {
    KILN_ASSIGN_OR_RETURN(rules.allowed_, ParseOpList("ops_to_cluster", options.ops_to_cluster));
  }
  KILN_ASSIGN_OR_RETURN(rules.excluded_,
                        ParseOpList("cluster_exclude_ops", options.cluster_exclude_ops));
  rules.fuel_ = options.fuel;
  return rules;
}

Outside CandidateRules::JudgePolicy(const JitMark& mark, const PlacedDevice& device) const {
  if (mark.compile == false) return Outside::kMarked;
  if (device.compiles_always) return Outside::kNot;
  const ClusterOptions& options = input_.options;
  if (options.level == JitLevel::kOff) return Outside::kJitOff;
  if (mark.compile == true) return Outside::kNot;
  if (options.level == JitLevel::kExplicit) return Outside::kNotMarked;
  return device.is_gpu || options.cpu_global_jit ? Outside::kNot : Outside::kDevice;
}

Outside CandidateRules::Judge(const Instruction& i, const JitMark& mark,
                              const PlacedDevice& device) {
  if (i.opcode() == Opcode::kParameter) return Outside::kInput;
  if (Outside policy = JudgePolicy(mark, device); policy != Outside::kNot) return policy;
  if (Compilability::Blocker blocker = compilability_.Find(i, device.compiles_always);
      blocker.kind != Outside::kNot) {
    return blocker.kind;
  }
  const size_t opcode = static_cast<size_t>(i.opcode());
  if (!IsOnEveryList(i.opcode())) {
    if (allowed_ && !allowed_->test(opcode)) return Outside::kNotOnList;
    if (excluded_.test(opcode)) return Outside::kExcluded;
  }
  if (IsTuplePlumbing(i.opcode()) || fuel_ < 0) return Outside::kNot;
  if (fuel_ == 0) return Outside::kNoFuel;
  --fuel_;
  return Outside::kNot;
}

}  // namespace kiln::session
