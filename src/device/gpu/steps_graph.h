// Steps of a program as one graph of the machine's, which is given other addresses when memory is
// elsewhere. Its loops and choices are the device's.
#pragma once

#include <memory>
#include <vector>

#include "device/gpu/machine.h"
#include "device/gpu/steps.h"

namespace kiln::device {

class StepsGraph {
 public:
  // The steps must stay, where they are, for as long as the graph.
  static Result<std::unique_ptr<StepsGraph>> Make(GpuMachine& machine, const GpuSteps& steps,
                                                  const GpuAddresses& addresses);
  static Result<std::unique_ptr<StepsGraph>> Make(GpuMachine& machine, const GpuSegment& segment,
                                                  const GpuAddresses& addresses);

  // Between launches. Where this fails the graph cannot be launched any more.
  Status SetAddresses(const GpuAddresses& addresses);
  GpuGraph& graph() { return *graph_; }

 private:
  // Of a loop or choice the condition.
  struct Node {
    int number = 0;
    const GpuCommand* command = nullptr;
    const plan::Slice* condition = nullptr;
  };

  StepsGraph(std::unique_ptr<GpuGraph> graph, const GpuAddresses& addresses)
      : graph_(std::move(graph)), addresses_(addresses) {}
  Status Add(const GpuSteps& steps);
  Status Add(const GpuSegment& segment);
  Status Add(const GpuLoop& loop);
  Status Add(const GpuBranch& branch);
  Status Set(const Node& node);

  std::unique_ptr<GpuGraph> graph_;
  std::vector<Node> nodes_;
  GpuAddresses addresses_;
};

}  // namespace kiln::device
