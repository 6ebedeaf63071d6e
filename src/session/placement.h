// Placement: the device of each op of a graph.
#pragma once

#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "base/status.h"
#include "client/device.h"
#include "ir/ir.h"
#include "session/clustering.h"

namespace kiln::session {

// Whether all ops of the device are compiled: XLA_CPU and XLA_GPU.
bool CompilesAlways(const client::Device& device);

struct PlacementOptions {
  std::span<const std::unique_ptr<client::Device>> devices;
  int default_device = 0;  // of ops without a mark
  // Ops marked with a missing device move: to the first device of the same kind, or else to the
  // default device. If not, such a mark is an error.
  bool soft_placement = false;
  // Gets a line for each moved op; may be empty.
  std::function<void(const std::string& line)> log;
};

// Places the instructions of an entry computation by their marks (ir::kDeviceAttribute). Tuples and
// their elements are on the device of the op to which they belong. A constant or an iota without a
// mark is on the device of its users, if all of them are on one device. Devices have the client's
// numbers. INVALID_ARGUMENT, naming op and device, for devices that do not exist, and for ops with
// different marks that exchange a tuple or a token.
Result<Placement> PlaceOps(const ir::Computation& entry, const PlacementOptions& options);

}  // namespace kiln::session
