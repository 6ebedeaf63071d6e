#include "passes/transfers.h"

#include <algorithm>
#include <map>

#include "base/strings.h"
#include "interp/harness.h"
#include "ir/builder.h"

namespace kiln::passes {
namespace {

using ir::Computation;
using ir::Instruction;

bool IsTransfer(Opcode opcode) {
  return opcode == Opcode::kSend || opcode == Opcode::kSendDone || opcode == Opcode::kRecv ||
         opcode == Opcode::kRecvDone || opcode == Opcode::kInfeed || opcode == Opcode::kOutfeed;
}

// Pairs of an attribute, or of the frontend attribute in which XLA's passes keep them.
Groups PairsOf(const Instruction& i) {
  const Groups& pairs = i.attributes().GroupsOf(Attr::kSourceTargetPairs);
  const std::string* text = i.FindFrontendAttribute("_xla_send_recv_source_target_pairs");
  if (!pairs.empty() || !text) return pairs;
  Groups found;
  Ints numbers;
  for (size_t at = 0; at < text->size();) {
    const size_t end = std::min(text->find_first_not_of("0123456789", at), text->size());
    if (end == at) {
      ++at;
      continue;
    }
    numbers.push_back(ParseInt(std::string_view(*text).substr(at, end - at)).value_or(-1));
    at = end;
  }
  for (size_t k = 0; k + 1 < numbers.size(); k += 2) found.push_back({numbers[k], numbers[k + 1]});
  return found;
}

class Transfers {
 public:
  explicit Transfers(Computation& c) : c_(c) {}

  void Resolve() {
    for (Instruction* i : c_.instructions()) {
      if (IsTransfer(i->opcode())) all_.push_back(i);
    }
    std::erase_if(all_,
                  [](const Instruction* i) { return i->attributes().Bool(Attr::kIsHostTransfer); });
    Match();
    // A pair's second part gets what is in the first one's result.
    for (Instruction* i : all_) {
      if (!from_.contains(i)) continue;
      ir::Builder b(i);
      if (Instruction* value = ValueOf(b, i)) {
        c_.ReplaceAllUses(i, value);
        c_.Remove(i);
      }
    }
  }

 private:
  // The value of each transfer that no other process takes part in: an instruction, or null for
  // zeros or for one that has no value.
  void Match() {
    std::map<int64_t, std::vector<Instruction*>> sends, recvs;
    std::vector<Instruction*> infeeds, outfeeds;
    for (Instruction* i : all_) {
      const int64_t channel = i->attributes().Int(Attr::kChannelId);
      switch (i->opcode()) {
        case Opcode::kInfeed:
          infeeds.push_back(i);
          break;
        case Opcode::kOutfeed:
          outfeeds.push_back(i);
          from_[i] = nullptr;
          break;
        case Opcode::kSend:
        case Opcode::kRecv: {
          const bool is_send = i->opcode() == Opcode::kSend;
          if (std::optional<bool> own = TakesPart(i, is_send ? 0 : 1); own == true) {
            (is_send ? sends : recvs)[channel].push_back(i);
          } else if (own) {
            from_[i] = nullptr;
          }
          break;
        }
        default:
          break;
      }
    }
    for (size_t k = 0; k < std::min(infeeds.size(), outfeeds.size()); ++k) {
      Connect(outfeeds[k], infeeds[k]);
    }
    for (const auto& [channel, from] : sends) {
      const std::vector<Instruction*>& to = recvs[channel];
      for (size_t k = 0; k < std::min(from.size(), to.size()); ++k) {
        if (Connect(from[k], to[k])) from_[from[k]] = nullptr;
      }
    }
    // Second parts, of whatever comes here from a first one.
    for (Instruction* i : all_) {
      if (i->opcode() != Opcode::kSendDone && i->opcode() != Opcode::kRecvDone) continue;
      const Instruction* start = i->operand(0);
      if (!IsTransfer(start->opcode()) || from_.contains(start)) from_[i] = nullptr;
    }
  }

  // Whether process 0 does, as the source (end 0) or the target (1); nothing if another process is
  // at the other end.
  static std::optional<bool> TakesPart(const Instruction* i, size_t end) {
    const Groups pairs = PairsOf(*i);
    if (pairs.empty()) return true;
    bool takes_part = false;
    for (const Ints& pair : pairs) {
      if (pair.size() != 2 || pair[end] != 0) continue;
      if (pair[1 - end] != 0) return std::nullopt;
      takes_part = true;
    }
    return takes_part;
  }

  bool Connect(Instruction* out, Instruction* in) {
    Instruction* value = out->operand(0);
    const bool fits = value->shape().SameTypeAndDimensions(in->shape().elements()[0]) &&
                      c_.AddControlDependency(value, in).ok();
    if (fits) from_[in] = value;
    return fits;
  }

  Instruction* ValueOf(ir::Builder& b, Instruction* i) {
    Instruction* from = from_.at(i);
    switch (i->opcode()) {
      case Opcode::kInfeed:
        return b.Tuple({from, i->operand(0)});
      case Opcode::kOutfeed:
        return i->operand(1);
      case Opcode::kSend:
        return b.Tuple({i->operand(0), b.Scalar(ElementType::kU32, 0), i->operand(1)});
      case Opcode::kRecv:
        if (!from) from = b.Zeros(i->shape().elements()[0]);
        return b.Tuple({from, b.Scalar(ElementType::kU32, 0), i->operand(0)});
      case Opcode::kSendDone:
        return b.Element(i->operand(0), 2);
      default:
        return b.Tuple({b.Element(i->operand(0), 0), b.Element(i->operand(0), 2)});
    }
  }

  Computation& c_;
  std::vector<Instruction*> all_;
  std::map<const Instruction*, Instruction*> from_;
};

bool IsGrid(const Instruction& i) {
  return i.opcode() == Opcode::kCustomCall &&
         i.attributes().Text(Attr::kCustomCallTarget) == interp::kRunParallel;
}

}  // namespace

void ResolveTransfers(ir::Module& module) {
  constexpr Opcode kTransfers[] = {Opcode::kSend,     Opcode::kSendDone, Opcode::kRecv,
                                   Opcode::kRecvDone, Opcode::kInfeed,   Opcode::kOutfeed};
  auto may_transfer = [&](const Computation& c) {
    return std::ranges::any_of(kTransfers, [&](Opcode o) { return c.MayHold(o); });
  };
  const auto& all = module.computations();
  if (std::ranges::none_of(all, [&](const auto& c) { return may_transfer(*c); })) return;
  // A state that loops carry from one part of a pair to the other has all of the first part.
  for (const auto& c : all) {
    if (std::ranges::any_of(c->instructions(), [](Instruction* i) { return IsGrid(*i); })) return;
  }
  for (const auto& c : all) Transfers(*c).Resolve();
}

}  // namespace kiln::passes
