#include "session/placement.h"

#include <algorithm>
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
    if (&mark == last_mark_) return last_number_;
    if (auto it = by_mark_.find(mark); it != by_mark_.end()) {
      last_mark_ = &mark;
      return last_number_ = it->second;
    }
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
  // Ops of a scope share their mark.
  const std::string* last_mark_ = nullptr;
  int last_number_ = 0;
};

// Sets of instructions that exchange tuples or tokens. Most instructions exchange none.
class Ties {
 public:
  explicit Ties(const ir::Computation& entry) {
    for (const Instruction* i : entry.instructions()) {
      if (i->shape().is_array() || i == entry.root()) continue;
      for (const Instruction* user : i->users()) {
        if (user == entry.root()) continue;
        const Instruction *a = Root(user), *b = Root(i);
        parent_[a] = b;
        parent_[b] = b;
      }
    }
  }

  bool Has(const Instruction* i) const { return !parent_.empty() && parent_.contains(i); }
  // The instruction that stands for the set.
  const Instruction* Root(const Instruction* i) {
    for (auto it = parent_.find(i); it != parent_.end() && it->second != i;) {
      auto next = parent_.find(it->second);
      it->second = next->second;
      i = next->first;
      it = next;
    }
    return i;
  }

 private:
  std::unordered_map<const Instruction*, const Instruction*> parent_;
};

bool IsGenerator(const Instruction& i) { return i.IsConstant() || i.opcode() == Opcode::kIota; }

class Placer {
 public:
  Placer(const ir::Computation& entry, const PlacementOptions& options)
      : entry_(entry), options_(options), names_(options), ties_(entry), placement_(entry) {}

  Result<Placement> Place() {
    for (const auto& device : options_.devices) placement_.devices.push_back(Describe(*device));
    for (const Instruction* i : entry_.instructions()) {
      if (ties_.Has(i)) tied_.push_back(i);
      if (IsTuplePlumbing(i->opcode()) && i != entry_.root()) {
        plumbing_.push_back(i);
      } else {
        KILN_RETURN_IF_ERROR(ReadMark(i));
      }
    }
    // Marks of tuples and their elements count only where there are no others.
    for (const Instruction* i : plumbing_) {
      if (!sets_.contains(ties_.Root(i))) KILN_RETURN_IF_ERROR(ReadMark(i));
    }
    for (const Instruction* i : tied_) {
      auto set = sets_.find(ties_.Root(i));
      placement_.device_of[i] = set != sets_.end() ? set->second.device : options_.default_device;
    }
    PlaceGenerators();
    return std::move(placement_);
  }

 private:
  struct Set {
    int device;
    const Instruction* marked;  // the first op with a mark
  };

  static PlacedDevice Describe(const client::Device& device) {
    const std::string& name = device.name();
    return {.name = name,
            .compiles_always = CompilesAlways(device),
            .is_gpu = name.find("GPU") != std::string::npos};
  }

  // Places an instruction by its mark, or the set that it is in.
  Status ReadMark(const Instruction* i) {
    const std::string* mark =
        i != entry_.root() ? i->FindFrontendAttribute(ir::kDeviceAttribute) : nullptr;
    const bool is_marked = mark && !mark->empty();
    int device = options_.default_device;
    if (is_marked) {
      KILN_ASSIGN_OR_RETURN(device, names_.Find(*mark, *i));
      KILN_RETURN_IF_ERROR(CheckRuns(*i, device));
    }
    placement_.device_of[i] = device;
    if (!is_marked && IsGenerator(*i)) generators_.push_back(i);
    if (!is_marked || !ties_.Has(i)) return OkStatus();
    const Set& set = sets_.try_emplace(ties_.Root(i), device, i).first->second;
    if (set.device == device) return OkStatus();
    return InvalidArgument("'", i->name(), "' is placed on ", *mark, " and '", set.marked->name(),
                           "' on ", options_.devices[static_cast<size_t>(set.device)]->name(),
                           "; they exchange a tuple or a token, and must be on one device");
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

  void PlaceGenerators() {
    for (const Instruction* i : generators_) {
      if (i->users().empty() || sets_.contains(ties_.Root(i))) continue;
      std::optional<int> common;
      const bool agree = std::ranges::all_of(i->users(), [&](const Instruction* user) {
        if (user == entry_.root()) return false;
        const int device = placement_.device_of.at(user);
        return std::exchange(common, device).value_or(device) == device;
      });
      if (agree) placement_.device_of[i] = *common;
    }
  }

  const ir::Computation& entry_;
  const PlacementOptions& options_;
  DeviceNames names_;
  Ties ties_;
  Placement placement_;
  std::unordered_map<const Instruction*, Set> sets_;  // tied ones with a mark, by Ties::Root
  // In the order of the computation.
  std::vector<const Instruction*> tied_, plumbing_;
  std::vector<const Instruction*> generators_;  // without a mark
};

}  // namespace

bool CompilesAlways(const client::Device& device) { return StartsWith(device.name(), "XLA_"); }

Result<Placement> PlaceOps(const ir::Computation& entry, const PlacementOptions& options) {
  return Placer(entry, options).Place();
}

}  // namespace kiln::session
