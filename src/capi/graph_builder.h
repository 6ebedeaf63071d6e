// The builder of a graph's instructions: each is registered as a value of the graph, and failures
// name operands. The graph's own failure is not set: whoever builds tells it at the end.
#pragma once

#include "capi/graph.h"
#include "ir/builder.h"

namespace kiln::capi {

class GraphBuilder : public ir::Builder {
 public:
  explicit GraphBuilder(kiln_graph& graph) : ir::Builder(&graph.entry()), graph_(graph) {}

  kiln_graph& graph() const { return graph_; }

 protected:
  Result<ir::Instruction*> Insert(ir::InstructionSpec& spec, bool) override {
    return graph_.Add(std::move(spec));
  }

 private:
  kiln_graph& graph_;
};

}  // namespace kiln::capi
