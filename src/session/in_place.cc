#include "session/in_place.h"

#include <algorithm>
#include <optional>

#include "compiler/backend.h"
#include "compiler/cpu/duration.h"
#include "ir/analysis/alias.h"
#include "ir/analysis/cost.h"
#include "ir/host_call.h"

namespace kiln::session {
namespace {

using ir::Instruction;

// A cancelled run may go on for 50 ms.
constexpr double kBriefNanoseconds = 20e6;
using compiler::duration::kByte, compiler::duration::kElement, compiler::duration::kLaunch,
    compiler::duration::kOperation;
// Some ten other operations.
constexpr double kTranscendental = 10 * kOperation;
// The emulated GPU is that much slower than the host.
constexpr double kEmulated = 100;

std::optional<size_t> Find(const std::vector<ValueId>& values, ValueId value) {
  auto it = std::ranges::find(values, value);
  if (it == values.end()) return std::nullopt;
  return static_cast<size_t>(it - values.begin());
}

bool IsSerial(Opcode opcode) {
  return opcode == Opcode::kSort || opcode == Opcode::kTopK || opcode == Opcode::kScatter ||
         opcode == Opcode::kSelectAndScatter;
}

double BytesOf(const Shape& shape) {
  if (shape.is_array()) return static_cast<double>(shape.byte_size());
  double bytes = 0;
  if (shape.is_tuple()) {
    for (const Shape& element : shape.elements()) bytes += BytesOf(element);
  }
  return bytes;
}

double OperandBytesOf(const Instruction& i) {
  double bytes = 0;
  for (const Instruction* operand : i.operands()) bytes += BytesOf(operand->shape());
  return bytes;
}

// The time that is left for a module, and what its instructions take of it.
class Time {
 public:
  Time(double nanoseconds, bool is_fused) : left_(nanoseconds), is_fused_(is_fused) {}

  // Whether there was enough; stops where it ends.
  bool Spend(const ir::Computation& computation) {
    for (const Instruction* i : computation.instructions()) {
      left_ -= kLaunch;
      if (i->opcode() == Opcode::kCall || i->opcode() == Opcode::kConditional) {
        for (const ir::Computation* callee : i->called()) {
          if (!Spend(*callee)) return false;
        }
      } else {
        left_ -= NanosecondsOf(*i);
      }
      if (left_ < 0) return false;
    }
    return true;
  }

 private:
  double NanosecondsOf(const Instruction& i) const {
    const double result = BytesOf(i.shape()), operands = OperandBytesOf(i);
    if (i.opcode() == Opcode::kParameter || i.IsRoot()) return kByte * result;
    if (i.IsConstant() || ir::IsAlias(i)) return 0;
    const ir::Operations operations = ir::OperationsOf(i);
    double time = kOperation * static_cast<double>(operations.flops) +
                  kTranscendental * static_cast<double>(operations.transcendentals);
    if (i.opcode() == Opcode::kReduceWindow) {
      double operations_of_each = 1;
      for (const WindowDimension& w : i.attributes().Window(Attr::kWindow)) {
        operations_of_each *= static_cast<double>(w.size);
      }
      time += kOperation * operations_of_each * result;
    }
    // Elements have a byte, if not more.
    if (IsSerial(i.opcode())) time += kElement * (operands + result);
    const bool moves_none =
        is_fused_ && (IsElementwise(i.opcode()) || i.opcode() == Opcode::kBroadcast);
    return moves_none ? time : time + kByte * (operands + result);
  }

  double left_;
  const bool is_fused_;
};

bool IsBrief(const ir::Module& module, const client::Device& device, bool is_fused) {
  runtime::Device& runtime = device.runtime();
  // The evaluator is slow, and may be cancelled anywhere.
  if (!compiler::BackendFor(runtime.target())->runs_kernels()) return false;
  for (const auto& computation : module.computations()) {
    for (const Instruction* i : computation->instructions()) {
      if (i->opcode() == Opcode::kWhile || ir::IsHostCall(*i)) return false;
    }
  }
  // A GPU without a driver.
  const bool is_emulated = !runtime.has_host_memory() && !runtime.cuda();
  return Time(kBriefNanoseconds / (is_emulated ? kEmulated : 1), is_fused).Spend(*module.entry());
}

}  // namespace

std::vector<InPlaceUpdate> FindInPlaceUpdates(Units& units, const VariableUses& uses) {
  std::vector<InPlaceUpdate> updates;
  if (units.units.empty() || units.units.back().is_on_host) return updates;
  Unit& last = units.units.back();
  const size_t first_read = units.feeds.size() - uses.reads.size();
  const size_t first_write = units.fetches.size() - uses.writes.size();
  for (size_t w = 0; w < uses.writes.size(); ++w) {
    auto read = std::ranges::find(uses.reads, uses.writes[w]);
    if (read == uses.reads.end()) continue;
    const ValueId before = units.feeds[first_read + static_cast<size_t>(read - uses.reads.begin())];
    const ValueId after = units.fetches[first_write + w];
    const auto argument = Find(last.inputs, before), result = Find(last.outputs, after);
    if (!argument || !result || Find(units.fetches, before)) continue;
    if (std::ranges::count(units.fetches, after) != 1) continue;
    if (!units.values[before].shape.SameTypeAndDimensions(units.values[after].shape)) continue;
    last.module->aliases().push_back({.output_index = {static_cast<int64_t>(*result)},
                                      .parameter = static_cast<int64_t>(*argument)});
    updates.push_back({uses.writes[w], *argument, *result});
  }
  return updates;
}

void RemoveAliasesUnlessBrief(ir::Module& module, const client::Device& device, bool is_fused) {
  if (module.aliases().empty() || IsBrief(module, device, is_fused)) return;
  module.aliases().clear();
}

}  // namespace kiln::session
