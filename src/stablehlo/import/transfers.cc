// Infeed, outfeed, send and recv. Several values are a tuple.
#include "stablehlo/import/op.h"

namespace kiln::stablehlo {
namespace {

using ir::Instruction;

// The operands before the token, which is the last.
Values DataOf(const Op& op) { return Values(op.operands.begin(), op.operands.end() - 1); }

// The value that the results before the token are parts of.
Result<Shape> DataShape(const Op& op) {
  std::vector<Shape> shapes;
  for (size_t i = 0; i + 1 < op.result_count(); ++i) {
    KILN_ASSIGN_OR_RETURN(Shape shape, op.ResultShape(i));
    shapes.push_back(std::move(shape));
  }
  return shapes.size() == 1 ? shapes[0] : Shape::Tuple(std::move(shapes));
}

// The parts of a value and a token, as results.
Values Results(Op& op, Instruction* pair) {
  Values values;
  Instruction* data = op.b.Element(pair, 0);
  const size_t count = op.result_count() - 1;
  for (size_t i = 0; i < count; ++i) {
    values.push_back(count == 1 ? data : op.b.Element(data, static_cast<int64_t>(i)));
  }
  values.push_back(op.b.Element(pair, 1));
  return values;
}

Result<Values> Infeed(Op& op) {
  KILN_ASSIGN_OR_RETURN(std::string config, op.Word("infeed_config", ""));
  KILN_ASSIGN_OR_RETURN(Shape data, DataShape(op));
  Attributes attributes;
  if (!config.empty()) attributes.Set(Attr::kInfeedConfig, std::move(config));
  const Shape whole = Shape::Tuple({std::move(data), Shape::Token()});
  return Results(op, op.b.Add(Opcode::kInfeed, op.operands, std::move(attributes), whole));
}

Result<Values> Outfeed(Op& op) {
  KILN_ASSIGN_OR_RETURN(std::string config, op.Word("outfeed_config", ""));
  Attributes attributes;
  if (!config.empty()) attributes.Set(Attr::kOutfeedConfig, std::move(config));
  return op.One(op.b.Add(Opcode::kOutfeed, {op.b.OneOrTuple(DataOf(op)), op.operands.back()},
                         std::move(attributes)));
}

// The attributes at the start of a transfer; the first two are also those of its end.
Result<Attributes> TransferOf(const Op& op) {
  KILN_ASSIGN_OR_RETURN(const mlir::Attribute* channel, op.Record("channel_handle"));
  KILN_ASSIGN_OR_RETURN(int64_t handle, IntField(*channel, "handle"));
  KILN_ASSIGN_OR_RETURN(bool to_host, op.Bool("is_host_transfer"));
  Attributes attributes = {{Attr::kChannelId, handle}};
  if (to_host) attributes.Set(Attr::kIsHostTransfer, true);
  return attributes;
}

Status AddPairs(const Op& op, Attributes& attributes) {
  if (!op.Find("source_target_pairs")) return OkStatus();
  KILN_ASSIGN_OR_RETURN(Groups pairs, op.IntRows("source_target_pairs"));
  if (!pairs.empty()) attributes.Set(Attr::kSourceTargetPairs, std::move(pairs));
  return OkStatus();
}

Result<Values> Send(Op& op) {
  KILN_ASSIGN_OR_RETURN(Attributes attributes, TransferOf(op));
  Attributes begin = attributes;
  KILN_RETURN_IF_ERROR(AddPairs(op, begin));
  Instruction* send =
      op.b.Add(Opcode::kSend, {op.b.OneOrTuple(DataOf(op)), op.operands.back()}, std::move(begin));
  return op.One(op.b.Add(Opcode::kSendDone, {send}, std::move(attributes)));
}

Result<Values> Recv(Op& op) {
  KILN_ASSIGN_OR_RETURN(Attributes attributes, TransferOf(op));
  KILN_ASSIGN_OR_RETURN(Shape data, DataShape(op));
  Attributes begin = attributes;
  KILN_RETURN_IF_ERROR(AddPairs(op, begin));
  const Shape whole =
      Shape::Tuple({std::move(data), Shape::Scalar(ElementType::kU32), Shape::Token()});
  Instruction* recv = op.b.Add(Opcode::kRecv, op.operands, std::move(begin), whole);
  return Results(op, op.b.Add(Opcode::kRecvDone, {recv}, std::move(attributes)));
}

constexpr Quantised kStorage = Quantised::kStorage;

constexpr Row kRows[] = {
    {"stablehlo.infeed", Infeed, 1, kSome, 0, kStorage, false},
    {"stablehlo.outfeed", Outfeed, kSome, 1, 0, kStorage, false},
    {"stablehlo.send", Send, kSome, 1, 0, kStorage, false},
    {"stablehlo.recv", Recv, 1, kSome, 0, kStorage, false},
};

}  // namespace

std::span<const Row> TransferRows() { return kRows; }

}  // namespace kiln::stablehlo
