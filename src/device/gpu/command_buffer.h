// Steps of a program as one graph of the machine, with addresses updated when memory moves. Its
// loops and conditionals run on the device.
#pragma once

#include <memory>
#include <vector>

#include "device/gpu/machine.h"
#include "device/gpu/steps.h"

namespace kiln::device {

class CommandBuffer {
 public:
  // Makes the graph of steps or of a segment, which must outlive it at the same addresses; or
  // updates an existing graph with these addresses, between launches. After a failure the graph
  // cannot be launched any more.
  template <typename What>
  static Status MakeOrMove(std::unique_ptr<CommandBuffer>& graph, GpuMachine& machine,
                           const What& what, const program::Addresses& addresses) {
    if (graph) return graph->SetAddresses(addresses);
    KILN_ASSIGN_OR_RETURN(graph, Make(machine, what, addresses));
    return OkStatus();
  }
  GpuGraph& graph() { return *graph_; }

 private:
  // The condition of a loop or conditional.
  struct Node {
    int number = 0;
    const GpuCommand* command = nullptr;
    const program::Slice* condition = nullptr;
  };

  CommandBuffer(std::unique_ptr<GpuGraph> graph, const program::Addresses& addresses)
      : graph_(std::move(graph)), addresses_(addresses) {}
  template <typename What>
  static Result<std::unique_ptr<CommandBuffer>> Make(GpuMachine& machine, const What& what,
                                                     const program::Addresses& addresses) {
    KILN_ASSIGN_OR_RETURN(std::unique_ptr<GpuGraph> graph, machine.MakeGraph());
    std::unique_ptr<CommandBuffer> made(new CommandBuffer(std::move(graph), addresses));
    KILN_RETURN_IF_ERROR(made->Add(what));
    KILN_RETURN_IF_ERROR(made->graph_->Finish());
    return made;
  }
  Status SetAddresses(const program::Addresses& addresses);
  Status Add(const GpuSteps& steps);
  Status Add(const GpuSegment& segment);
  Status Add(const GpuLoop& loop);
  Status Add(const GpuBranch& branch);
  Status Set(const Node& node);

  std::unique_ptr<GpuGraph> graph_;
  std::vector<Node> nodes_;
  program::Addresses addresses_;
};

}  // namespace kiln::device
