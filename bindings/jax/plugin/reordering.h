/** @file
 *  Programs whose arguments and results are in other orders of elements than row-major. */
#ifndef KILN_JAX_PLUGIN_REORDERING_H_
#define KILN_JAX_PLUGIN_REORDERING_H_

#include <string_view>
#include <vector>

#include "kiln/context.h"
#include "kiln/graph.h"
#include "plugin/handles.h"
#include "plugin/layout.h"

namespace kiln_jax {

/** The text of an attribute of an argument or result; empty without it. */
using AttributeGetter = decltype(&kiln_graph_argument_attribute);
std::string_view AttributeOf(AttributeGetter get, const kiln_graph* graph, size_t index,
                             std::string_view name);

/** A program in other orders: a graph of arrays in these orders, around the program's. */
class Reordering {
 public:
  /** The graph must stay. */
  Reordering(kiln_context* context, kiln_graph* graph) : context_(context), graph_(graph) {}

  /** Whether the program asks for other orders. */
  bool IsNeeded() const;

  /** Makes the graph. */
  PJRT_Error* Make();

  kiln_graph* graph() const { return outer_.get(); }
  /** The shapes of arguments and results, as the program has them. */
  const std::vector<kiln_shape>& arguments() const { return arguments_; }
  const std::vector<kiln_shape>& results() const { return results_; }
  /** The arguments that the program lets executions take. */
  const std::vector<size_t>& donors() const { return donors_; }

 private:
  PJRT_Error* AddArgument(size_t index, std::vector<kiln_value>* values);
  PJRT_Error* AddResult(size_t index, kiln_value value, std::vector<kiln_value>* values);

  kiln_context* context_;
  kiln_graph* graph_;
  GraphHandle outer_;
  std::vector<kiln_shape> arguments_, results_;
  std::vector<size_t> donors_;
};

}  // namespace kiln_jax

#endif  // KILN_JAX_PLUGIN_REORDERING_H_
