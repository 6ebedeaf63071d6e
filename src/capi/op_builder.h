// What the builder functions that are generated from the op table are written with.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "base/status.h"
#include "kiln/builder.h"
#include "kiln/graph.h"
#include "ops/attributes.h"
#include "ops/op.h"

namespace kiln::capi {

// Collects what an op is made of; the first mistake (a foreign value, a NULL list) is kept for
// AddOp. Nothing here is called with exceptions left uncaught: see AddOp.
class OpBuilder {
 public:
  OpBuilder(kiln_graph& graph, Opcode opcode) : graph_(graph), opcode_(opcode) {}

  void Operand(kiln_value value);
  void Operands(const char* name, const kiln_value* values, size_t count);
  void Int(Attr key, int64_t value);
  // An optional list that is empty counts as absent.
  void IntList(Attr key, bool optional, const int64_t* values, size_t count);
  void Order(Attr key, kiln_direction direction);
  void Slices(Attr key, const int64_t* starts, const int64_t* limits, const int64_t* strides,
              size_t count);
  void Paddings(Attr key, const int64_t* low, const int64_t* high, const int64_t* interior,
                size_t count);
  void Region(const char* name, const kiln_graph* graph);
  void Regions(const char* name, const kiln_graph* const* graphs, size_t count);
  // The parts of the result's shape that operands do not determine.
  void Type(kiln_dtype dtype);
  void Dims(const int64_t* dims, size_t rank);

  // Infers, adds, and returns the new value; 0 with the mistake kept in the graph.
  kiln_value Finish();

 private:
  void Fail(Status status);
  kiln_graph& graph_;
  Opcode opcode_;
  Status status_;
  std::vector<ir::Instruction*> operands_;
  Attributes attributes_;
  std::vector<const kiln_graph*> regions_;
  std::optional<ElementType> type_;
  std::optional<std::vector<Dimension>> dims_;
};

// Runs `fill(OpBuilder&)` and finishes, unless the graph is NULL or has had a mistake; exceptions
// become mistakes of the graph.
template <typename Fill>
kiln_value AddOp(kiln_graph* graph, Opcode opcode, Fill&& fill);

}  // namespace kiln::capi
