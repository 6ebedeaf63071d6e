// Graphs and values for calls that are about them: mostly right ones.
#pragma once

#include <memory>

#include "calls/world.h"

namespace kiln::fuzz {

inline std::shared_ptr<GraphState> AnyGraph(World& w) {
  if (w.Chance(2)) return nullptr;
  return w.Chance(50) || w.graphs.empty() ? w.Graph() : w.Pick(w.graphs);
}

inline kiln_value AnyValue(World& w, const GraphState* graph) {
  if (w.Chance(10)) return static_cast<kiln_value>(w.WildNumber());
  if (graph && w.Chance(95)) return graph->values.empty() ? 0 : w.Pick(graph->values).id;
  const auto& other = *w.Graph();
  return other.values.empty() ? 0 : w.Pick(other.values).id;
}

inline bool IsOf(const GraphState* graph, kiln_value value) {
  if (!graph) return false;
  for (const Value& v : graph->values) {
    if (v.id == value) return true;
  }
  return false;
}

inline kiln_graph* HandleOf(const std::shared_ptr<GraphState>& graph) {
  return graph ? graph->handle : nullptr;
}

}  // namespace kiln::fuzz
