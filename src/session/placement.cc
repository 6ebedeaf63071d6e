#include "session/placement.h"

#include <algorithm>
#include <numeric>
#include <optional>
#include <unordered_map>
#include <utility>

#include "base/strings.h"
#include "client/device_name.h"
#include "ir/analysis/session_only.h"
#include "ir/frontend_attributes.h"
#include "ir/instruction_map.h"
#include "session/cluster_candidates.h"

namespace kiln::session {
namespace {

using ir::Instruction;

// The devices named by marks; few texts occur, each in many ops.
class DeviceNames {
 public:
  explicit DeviceNames(const PlacementOptions& options) : options_(options) {
    for (const auto& device : options.devices) numbers_.emplace(device->name(), device->number());
  }

  // The device of a mark of an instruction.
  Result<int> Find(const std::string& mark, const Instruction& instruction) {
    if (auto it = by_mark_.find(mark); it != by_mark_.end()) return it->second;
    KILN_ASSIGN_OR_RETURN(client::DeviceName name, client::ParseDeviceName(mark));
    if (name.elsewhere.empty()) {
      if (auto it = numbers_.find(name.ToString()); it != numbers_.end()) {
        return by_mark_.emplace(mark, it->second).first->second;
      }
    }
    const std::string place = Cat("'", instruction.name(), "' (", OpcodeName(instruction.opcode()),
                                  ") is placed on ", mark);
    if (!options_.soft_placement) {
      return InvalidArgument(place, ", and there is no such device; there are ", List());
    }
    const int number = Substitute(name);
    if (options_.log) {
      options_.log(Cat("soft placement: ", place, ", which does not exist: moved to ",
                       options_.devices[static_cast<size_t>(number)]->name()));
    }
    return number;
  }

 private:
  int Substitute(const client::DeviceName& name) const {
    auto it = numbers_.find(client::DeviceName{.kind = name.kind}.ToString());
    return it == numbers_.end() ? options_.default_device : it->second;
  }
  std::string List() const {
    std::vector<std::string> names;
    for (const auto& device : options_.devices) names.push_back(device->name());
    return Join(names, ", ");
  }

  const PlacementOptions& options_;
  std::unordered_map<std::string, int> numbers_, by_mark_;
};

// Sets of instructions that exchange tuples or tokens.
class Ties {
 public:
  explicit Ties(const ir::Computation& entry) : number_of_(entry) {
    int number = 0;
    for (const Instruction* i : entry.instructions()) number_of_[i] = number++;
    parent_.resize(static_cast<size_t>(number));
    std::iota(parent_.begin(), parent_.end(), 0);
    for (const Instruction* i : entry.instructions()) {
      if (i == entry.root()) continue;
      for (const Instruction* operand : i->operands()) {
        if (!operand->shape().is_array()) parent_[Root(i)] = static_cast<int>(Root(operand));
      }
    }
  }

  // The number of the set.
  size_t Root(const Instruction* i) {
    size_t at = static_cast<size_t>(number_of_.at(i));
    while (static_cast<size_t>(parent_[at]) != at) {
      parent_[at] = parent_[static_cast<size_t>(parent_[at])];
      at = static_cast<size_t>(parent_[at]);
    }
    return at;
  }
  size_t size() const { return parent_.size(); }

 private:
  ir::InstructionMap<int> number_of_;
  std::vector<int> parent_;
};

bool IsGenerator(const Instruction& i) { return i.IsConstant() || i.opcode() == Opcode::kIota; }

class Placer {
 public:
  Placer(const ir::Computation& entry, const PlacementOptions& options)
      : entry_(entry), options_(options), names_(options), ties_(entry), sets_(ties_.size()) {}

  Result<Placement> Place() {
    KILN_RETURN_IF_ERROR(ReadMarks());
    Placement placement(entry_);
    for (const auto& device : options_.devices) placement.devices.push_back(Describe(*device));
    for (const Instruction* i : entry_.instructions()) {
      placement.device_of[i] = sets_[ties_.Root(i)].device.value_or(options_.default_device);
    }
    PlaceGenerators(placement);
    return placement;
  }

 private:
  struct Set {
    std::optional<int> device;
    const Instruction* marked = nullptr;  // the first op with a mark
  };

  static PlacedDevice Describe(const client::Device& device) {
    const std::string& name = device.name();
    return {.name = name,
            .compiles_always = CompilesAlways(device),
            .is_gpu = name.find("GPU") != std::string::npos};
  }

  // Marks of tuples and their elements count only where there are no others.
  Status ReadMarks() {
    for (const bool plumbing : {false, true}) {
      for (const Instruction* i : entry_.instructions()) {
        if (i == entry_.root() || IsTuplePlumbing(i->opcode()) != plumbing) continue;
        const std::string* mark = i->FindFrontendAttribute(ir::kDeviceAttribute);
        if (!mark || mark->empty()) continue;
        Set& set = sets_[ties_.Root(i)];
        if (plumbing && set.device) continue;
        KILN_ASSIGN_OR_RETURN(int device, names_.Find(*mark, *i));
        KILN_RETURN_IF_ERROR(CheckRuns(*i, device));
        if (set.device && *set.device != device) {
          return InvalidArgument("'", i->name(), "' is placed on ", *mark, " and '",
                                 set.marked->name(), "' on ",
                                 options_.devices[static_cast<size_t>(*set.device)]->name(),
                                 "; they exchange a tuple or a token, and must be on one device");
        }
        set = {device, i};
      }
    }
    return OkStatus();
  }

  // A device that compiles all its ops has none that only sessions can run.
  Status CheckRuns(const Instruction& i, int number) const {
    const client::Device& device = *options_.devices[static_cast<size_t>(number)];
    const Instruction* blocker = CompilesAlways(device) ? ir::SessionOnlyIn(i) : nullptr;
    if (!blocker) return OkStatus();
    return InvalidArgument("'", i.name(), "' (", OpcodeName(i.opcode()), ") is placed on ",
                           device.name(), ", where all ops are compiled; '", blocker->name(), "' (",
                           OpcodeName(blocker->opcode()),
                           ") cannot be: ", WhyNotCompiled(blocker->opcode()));
  }

  void PlaceGenerators(Placement& placement) {
    for (const Instruction* i : entry_.instructions()) {
      if (!IsGenerator(*i) || i->users().empty() || sets_[ties_.Root(i)].device) continue;
      std::optional<int> common;
      const bool agree = std::ranges::all_of(i->users(), [&](const Instruction* user) {
        if (user == entry_.root()) return false;
        const int device = placement.device_of.at(user);
        return std::exchange(common, device).value_or(device) == device;
      });
      if (agree) placement.device_of[i] = *common;
    }
  }

  const ir::Computation& entry_;
  const PlacementOptions& options_;
  DeviceNames names_;
  Ties ties_;
  std::vector<Set> sets_;
};

}  // namespace

bool CompilesAlways(const client::Device& device) { return StartsWith(device.name(), "XLA_"); }

Result<Placement> PlaceOps(const ir::Computation& entry, const PlacementOptions& options) {
  return Placer(entry, options).Place();
}

}  // namespace kiln::session
