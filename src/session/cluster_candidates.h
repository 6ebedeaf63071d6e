// The rules for single ops of auto-clustering.
#pragma once

#include <bitset>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "session/clustering.h"

namespace kiln::session {

// Tuples, their elements and joined tokens: no work, only names for values of other ops.
bool IsTuplePlumbing(Opcode opcode);
// Ops that do not count as effective: plumbing, and identities.
bool IsIdentityLike(const ir::Instruction& instruction);
// TensorFlow's Shape, Rank and Size: an op that reads nothing but the shape of its operand.
bool IsShapeConsumer(Opcode opcode);

using OpSet = std::bitset<kOpcodeCount>;
// The ops of a list of names; INVALID_ARGUMENT for an unknown name, with the option's.
Result<OpSet> ParseOpList(std::string_view option, const std::vector<std::string>& names);

// Finds what cannot be compiled, in ops and in the computations that they call.
class Compilability {
 public:
  explicit Compilability(const ClusterInput& input) : input_(input) {}

  struct Blocker {
    Outside kind = Outside::kNot;  // kNot, kNotCompilable or kRandom
    const ir::Instruction* instruction = nullptr;
  };
  Blocker Find(const ir::Instruction& instruction, bool allow_random);
  // "reason", or "'x' in the computation 'f': reason".
  std::string Describe(const Blocker& blocker, const ir::Instruction& instruction) const;

 private:
  const ClusterInput& input_;
  std::unordered_map<const ir::Computation*, Blocker> known_[2];  // by allow_random
};

// Judges ops one by one, in the order of the computation.
class CandidateRules {
 public:
  static Result<CandidateRules> Create(const ClusterInput& input);

  // Why the op is no candidate for itself, whatever it is tied to. Takes fuel.
  Outside Judge(const ir::Instruction& instruction, const JitMark& mark,
                const PlacedDevice& device);
  Compilability& compilability() { return compilability_; }

 private:
  explicit CandidateRules(const ClusterInput& input) : input_(input), compilability_(input) {}
  Outside JudgePolicy(const JitMark& mark, const PlacedDevice& device) const;

  const ClusterInput& input_;
  Compilability compilability_;
  std::optional<OpSet> allowed_;
  OpSet excluded_;
  int64_t fuel_ = -1;
};

}  // namespace kiln::session
