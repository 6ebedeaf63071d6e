#include "device/gpu/command_buffer.h"

#include <algorithm>

#include "base/overloaded.h"

namespace kiln::device {

Status CommandBuffer::Add(const GpuSteps& steps) {
  for (const GpuStep& step : steps) {
    KILN_RETURN_IF_ERROR(std::visit(
        Overloaded{
            [&](const GpuSegment& segment) { return Add(segment); },
            [](const GpuHostCall&) { return Unimplemented("a call of the host in a graph"); },
            [&](const std::unique_ptr<GpuLoop>& loop) { return Add(*loop); },
            [&](const std::unique_ptr<GpuBranch>& branch) { return Add(*branch); },
        },
        step));
  }
  return OkStatus();
}

Status CommandBuffer::Add(const GpuSegment& segment) {
  for (const GpuCommand& command : segment.commands) {
    std::vector<GpuSpan> spans = SpansOf(command, addresses_);
    Node node{.command = &command};
    if (command.kernel) {
      KILN_ASSIGN_OR_RETURN(node.number, graph_->AddLaunch(*command.kernel, command.grid, spans));
    } else {
      KILN_ASSIGN_OR_RETURN(node.number,
                            graph_->AddCopy(spans[0].address, spans[1].address, spans[1].bytes));
    }
    nodes_.push_back(node);
  }
  return OkStatus();
}

// The condition is computed before the first time and at the end of each.
Status CommandBuffer::Add(const GpuLoop& loop) {
  KILN_RETURN_IF_ERROR(Add(loop.condition));
  Node node{.condition = &loop.predicate};
  KILN_ASSIGN_OR_RETURN(node.number, graph_->BeginWhile(AddressOf(loop.predicate, addresses_)));
  nodes_.push_back(node);
  KILN_RETURN_IF_ERROR(Add(loop.body));
  KILN_RETURN_IF_ERROR(Add(loop.condition));
  return graph_->End();
}

Status CommandBuffer::Add(const GpuBranch& branch) {
  Node node{.condition = &branch.index};
  KILN_ASSIGN_OR_RETURN(
      node.number, graph_->BeginBranches(AddressOf(branch.index, addresses_), branch.by_predicate,
                                         static_cast<int>(branch.branches.size())));
  nodes_.push_back(node);
  for (size_t i = 0; i < branch.branches.size(); ++i) {
    if (i > 0) KILN_RETURN_IF_ERROR(graph_->NextBranch());
    KILN_RETURN_IF_ERROR(Add(branch.branches[i]));
  }
  return graph_->End();
}

Status CommandBuffer::SetAddresses(const program::Addresses& addresses) {
  if (addresses_ == addresses) return OkStatus();
  const program::Addresses before = std::exchange(addresses_, addresses);
  auto has_moved = [&](const program::Slice& slice) {
    return before[slice.allocation] != addresses[slice.allocation];
  };
  for (const Node& node : nodes_) {
    bool moved = node.command
                     ? std::any_of(node.command->args.begin(), node.command->args.end(), has_moved)
                     : has_moved(*node.condition);
    if (moved) KILN_RETURN_IF_ERROR(Set(node));
  }
  return OkStatus();
}

Status CommandBuffer::Set(const Node& node) {
  if (!node.command) {
    return graph_->SetCondition(node.number, AddressOf(*node.condition, addresses_));
  }
  std::vector<GpuSpan> spans = SpansOf(*node.command, addresses_);
  return node.command->kernel ? graph_->SetLaunch(node.number, spans)
                              : graph_->SetCopy(node.number, spans[0].address, spans[1].address);
}

}  // namespace kiln::device
