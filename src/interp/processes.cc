#include "interp/processes.h"

#include <algorithm>
#include <cstring>
#include <limits>

#include "base/strings.h"
#include "interp/bounded.h"
#include "interp/reducer.h"
#include "tensor/tolerance.h"

namespace kiln::interp {
namespace {

using ir::Instruction;
using Members = std::vector<int64_t>;

template <typename... Args>
Status Fail(const Instruction& i, const Args&... args) {
  return InvalidArgument(OpcodeName(i.opcode()), " '", i.name(), "'", args...);
}

Status NeedsGrid(const Instruction& i, std::string_view what) {
  return Unimplemented(OpcodeName(i.opcode()), ": '", i.name(), "' needs ", what,
                       "; one process alone has none");
}

// --- Groups

enum class Mode : uint8_t { kReplicas, kPartitions, kReplicasAndPartitions, kGlobal };

Result<Mode> ModeOf(const Instruction& i) {
  const bool channel = i.attributes().Int(Attr::kChannelId) > 0;
  const bool global = i.attributes().Bool(Attr::kUseGlobalDeviceIds);
  switch (i.opcode()) {
    case Opcode::kAllGather:
    case Opcode::kAllReduce:
    case Opcode::kReduceScatter:
      if (global && !channel) return Fail(i, ": use_global_device_ids needs a channel_id");
      if (global) return Mode::kGlobal;
      return channel ? Mode::kReplicasAndPartitions : Mode::kReplicas;
    default:
      return channel ? Mode::kPartitions : Mode::kReplicas;
  }
}

// The group of a process from a list of numbers, if it is in it. Numbers may exceed the grid.
std::optional<Members> Expand(Mode mode, const Ints& list, const Process& p) {
  const int64_t own = mode == Mode::kPartitions ? p.partition()
                      : mode == Mode::kGlobal   ? p.number
                                                : p.replica();
  if (std::ranges::find(list, own) == list.end()) return std::nullopt;
  const int64_t all = p.replicas() * p.partitions();
  const int64_t most = mode == Mode::kPartitions ? p.partitions()
                       : mode == Mode::kGlobal   ? all
                                                 : p.replicas();
  Members members;
  auto add = [&](int64_t id, int64_t partition) {
    // A missing process has a number behind all others.
    constexpr int64_t kLast = std::numeric_limits<int64_t>::max();
    int64_t number = id >= most                  ? all + std::min(id, kLast - all)
                     : mode == Mode::kGlobal     ? id
                     : mode == Mode::kPartitions ? p.At(p.replica(), id)
                                                 : p.At(id, partition);
    members.push_back(number);
  };
  const bool each = mode == Mode::kReplicasAndPartitions;
  for (int64_t q = each ? 0 : p.partition(); q < (each ? p.partitions() : p.partition() + 1); ++q) {
    for (int64_t id : list) {
      if (id >= 0) add(id, q);
    }
  }
  return members;
}

Status RequireThere(const Instruction& i, const Members& members, const Process& p) {
  const int64_t all = p.replicas() * p.partitions();
  auto missing = std::ranges::find_if(members, [&](int64_t m) { return m >= all; });
  if (missing == members.end()) return OkStatus();
  if (!p.grid) return NeedsGrid(i, "other processes");
  return Fail(i, ": ", *missing - all, " is no number of one of the ", p.replicas(),
              " replicas or ", p.partitions(), " partitions");
}

// The group of the process, if any.
Result<std::optional<Members>> GroupOf(const Instruction& i, const Process& p) {
  KILN_ASSIGN_OR_RETURN(Mode mode, ModeOf(i));
  const Groups& lists = i.attributes().GroupsOf(Attr::kReplicaGroups);
  if (lists.empty()) {
    Ints all(static_cast<size_t>(mode == Mode::kPartitions ? p.partitions()
                                 : mode == Mode::kGlobal   ? p.replicas() * p.partitions()
                                                           : p.replicas()));
    for (size_t k = 0; k < all.size(); ++k) all[k] = static_cast<int64_t>(k);
    return Expand(mode, all, p);
  }
  for (const Ints& list : lists) {
    if (std::optional<Members> members = Expand(mode, list, p)) return members;
  }
  return std::optional<Members>();
}

using Brought = std::shared_ptr<const Grid::Brought>;

// A single process need not wait for itself.
Result<Brought> Meet(const Instruction& i, const Process& p, const Members& members,
                     std::vector<Value> values) {
  KILN_RETURN_IF_ERROR(RequireThere(i, members, p));
  if (members.size() == 1) return std::make_shared<const Grid::Brought>(1, std::move(values));
  return p.grid->Meet(p, i, members, std::move(values));
}

struct Met {
  Members members;
  Brought brought;
  size_t own = 0;  // the place of the process

  // All members' values of one operand.
  std::vector<const Literal*> Of(size_t operand) const {
    std::vector<const Literal*> all;
    for (const std::vector<Value>& one : *brought) all.push_back(&one[operand].array());
    return all;
  }
};

// The rendezvous of the process's group.
Result<Met> MeetGroup(const Instruction& i, const Process& p, std::vector<Value> values) {
  KILN_ASSIGN_OR_RETURN(std::optional<Members> members, GroupOf(i, p));
  if (!members) {
    if (!p.grid) return NeedsGrid(i, "other processes");
    return Fail(i, ": ", p.Name(), " is in no group");
  }
  Met met{*std::move(members), nullptr};
  KILN_ASSIGN_OR_RETURN(met.brought, Meet(i, p, met.members, std::move(values)));
  met.own = static_cast<size_t>(std::ranges::find(met.members, p.number) - met.members.begin());
  return met;
}

// --- Parts of arrays

// An array as blocks, one per index of the dimensions before d.
struct Blocks {
  size_t count = 1, bytes = 0;
};
Blocks BlocksOf(const Literal& x, int64_t d) {
  Blocks blocks;
  for (int64_t k = 0; k < d; ++k) blocks.count *= static_cast<size_t>(x.shape().dim(k));
  if (blocks.count > 0) blocks.bytes = static_cast<size_t>(x.byte_size()) / blocks.count;
  return blocks;
}

void Concatenate(const std::vector<const Literal*>& parts, int64_t d, Literal& whole) {
  const Blocks to = BlocksOf(whole, d);
  size_t offset = 0;
  for (const Literal* part : parts) {
    const Blocks from = BlocksOf(*part, d);
    for (size_t b = 0; b < from.count && from.bytes > 0; ++b) {
      std::memcpy(whole.data() + b * to.bytes + offset, part->data() + b * from.bytes, from.bytes);
    }
    offset += from.bytes;
  }
}

// Piece k along a dimension.
void Cut(const Literal& whole, int64_t d, size_t k, Literal& piece) {
  const Blocks from = BlocksOf(whole, d), to = BlocksOf(piece, d);
  for (size_t b = 0; b < to.count && to.bytes > 0; ++b) {
    std::memcpy(piece.data() + b * to.bytes, whole.data() + b * from.bytes + k * to.bytes,
                to.bytes);
  }
}

// The terms element by element, from the first to the last.
Result<Literal> Fold(const ir::Computation& computation, const std::vector<const Literal*>& terms,
                     const RegionContext& context) {
  Literal sum = *terms[0];
  const int64_t count = sum.shape().num_elements();
  const auto width = static_cast<size_t>(ByteWidth(sum.shape().type()));
  std::optional<Reducer> fast = Reducer::Make(computation);
  for (size_t t = 1; t < terms.size(); ++t) {
    if (fast) KILN_RETURN_IF_ERROR(context.charge(fast->instruction_count() * count));
    for (int64_t k = 0; k < count; ++k) {
      std::byte* at = sum.data() + static_cast<size_t>(k) * width;
      const std::byte* term = terms[t]->data() + static_cast<size_t>(k) * width;
      if (fast) {
        std::memcpy(fast->parameter(0), at, width);
        std::memcpy(fast->parameter(1), term, width);
        KILN_RETURN_IF_ERROR(fast->Apply());
        std::memcpy(at, fast->result(0), width);
        continue;
      }
      std::vector<Literal> arguments(2, Literal(Shape::Scalar(sum.shape().type())));
      std::memcpy(arguments[0].data(), at, width);
      std::memcpy(arguments[1].data(), term, width);
      KILN_ASSIGN_OR_RETURN(std::vector<Literal> results,
                            context.call(computation, std::move(arguments)));
      std::memcpy(at, results[0].data(), width);
    }
  }
  return sum;
}

// --- Collectives

const Shape& PartOf(const Instruction& i, size_t k) {
  return i.shape().is_tuple() ? i.shape().elements()[k] : i.shape();
}

Value OneOrTuple(const Instruction& i, std::vector<Value> values) {
  return i.shape().is_tuple() ? Value(std::move(values)) : std::move(values[0]);
}

Status WrongSize(const Instruction& i, const Shape& result, const Met& met) {
  return Fail(i, ": the result ", result, " is not what a group of ", met.members.size(),
              " processes gives");
}

Result<Value> AllGather(const Instruction& i, std::vector<Value> operands, const Process& p) {
  const int64_t d = i.attributes().IntsOf(Attr::kDimensions)[0];
  const size_t count = operands.size();
  KILN_ASSIGN_OR_RETURN(Met met, MeetGroup(i, p, std::move(operands)));
  std::vector<Value> results;
  for (size_t k = 0; k < count; ++k) {
    const std::vector<const Literal*> parts = met.Of(k);
    const Shape& shape = PartOf(i, k);
    if (shape.dim(d) != parts[0]->shape().dim(d) * std::ssize(parts)) {
      return WrongSize(i, shape, met);
    }
    Literal whole(shape);
    Concatenate(parts, d, whole);
    results.emplace_back(std::move(whole));
  }
  return OneOrTuple(i, std::move(results));
}

Result<Value> AllReduce(const Instruction& i, std::vector<Value> operands, const Process& p,
                        const RegionContext& context) {
  const size_t count = operands.size();
  KILN_ASSIGN_OR_RETURN(Met met, MeetGroup(i, p, std::move(operands)));
  std::vector<Value> results;
  for (size_t k = 0; k < count; ++k) {
    KILN_ASSIGN_OR_RETURN(Literal sum, Fold(*i.called(0), met.Of(k), context));
    if (i.opcode() == Opcode::kAllReduce) {
      results.emplace_back(std::move(sum));
      continue;
    }
    const int64_t d = i.attributes().IntsOf(Attr::kDimensions)[0];
    const Shape& shape = PartOf(i, k);
    if (shape.dim(d) * std::ssize(met.members) != sum.shape().dim(d)) {
      return WrongSize(i, shape, met);
    }
    Literal piece(shape);
    Cut(sum, d, met.own, piece);
    results.emplace_back(std::move(piece));
  }
  return OneOrTuple(i, std::move(results));
}

Result<Value> AllToAll(const Instruction& i, std::vector<Value> operands, const Process& p) {
  const size_t count = operands.size();
  KILN_ASSIGN_OR_RETURN(Met met, MeetGroup(i, p, std::move(operands)));
  if (met.members.size() != count) {
    return Fail(i, ": has ", count, " operands for a group of ", met.members.size(), " processes");
  }
  std::vector<Value> results;
  for (const std::vector<Value>& one : *met.brought) results.push_back(one[met.own]);
  return Value(std::move(results));
}

Result<Value> Broadcast(const Instruction& i, std::vector<Value> operands, const Process& p) {
  KILN_ASSIGN_OR_RETURN(std::optional<Members> members, GroupOf(i, p));
  if (!members) return Value(Literal(i.shape()));
  // Alone it is its own source if it is the first member.
  if (!p.grid && (*members)[0] == p.number) return std::move(operands[0]);
  KILN_ASSIGN_OR_RETURN(Brought all, Meet(i, p, *members, std::move(operands)));
  return (*all)[0][0];
}

Result<Value> Permute(const Instruction& i, std::vector<Value> operands, const Process& p) {
  KILN_ASSIGN_OR_RETURN(Mode mode, ModeOf(i));
  std::optional<Value> result;
  for (const Ints& pair : i.attributes().GroupsOf(Attr::kSourceTargetPairs)) {
    std::optional<Members> ends = Expand(mode, pair, p);
    if (!ends) continue;
    const bool comes = (*ends)[1] == p.number;
    if ((*ends)[0] == (*ends)[1]) ends->pop_back();
    if (!p.grid && !comes) continue;  // to nobody
    KILN_ASSIGN_OR_RETURN(Brought both, Meet(i, p, *ends, operands));
    if (comes) result = (*both)[0][0];
  }
  return result ? *std::move(result) : Value(Literal(i.shape()));
}

// --- Queues and channels

Value Token() { return Value(Literal(Shape::Token())); }

Result<Value> Infeed(const Instruction& i, const Process& p, const RegionContext& context) {
  if (!p.grid) return NeedsGrid(i, "a queue");
  const Shape& shape = i.shape().elements()[0];
  const ir::Computation* next = p.grid->NextOfInfeed();
  if (!next) {
    return FailedPrecondition(OpcodeName(i.opcode()), " '", i.name(), "': the queue is empty");
  }
  KILN_ASSIGN_OR_RETURN(std::vector<Literal> value, context.call(*next, {}));
  if (value.size() != 1 || !value[0].shape().SameTypeAndDimensions(shape)) {
    return Fail(i, ": the queue has ", next->root()->shape(), "; expected ", shape);
  }
  return Value({Value(std::move(value[0])), Token()});
}

Value Context(uint32_t request) { return Value(Literal::Scalar(ElementType::kU32, request)); }

Result<Value> Send(const Instruction& i, std::vector<Value> operands, const Process& p) {
  if (!p.grid) return NeedsGrid(i, "a channel");
  Message message{i.attributes().Int(Attr::kChannelId), p.number, std::nullopt,
                  i.operand(0)->shape(), operands[0]};
  const Groups& pairs = i.attributes().GroupsOf(Attr::kSourceTargetPairs);
  if (pairs.empty()) KILN_RETURN_IF_ERROR(p.grid->Send(p, i, message));
  for (const Ints& pair : pairs) {
    if (pair[0] != p.number) continue;
    message.to = pair[1];
    KILN_RETURN_IF_ERROR(p.grid->Send(p, i, message));
  }
  return Value({std::move(operands[0]), Context(0), Token()});
}

Result<Value> Recv(const Instruction& i, const Process& p) {
  if (!p.grid) return NeedsGrid(i, "a channel");
  const Shape& shape = i.shape().elements()[0];
  Request request{i.attributes().Int(Attr::kChannelId), p.number};
  const Groups& pairs = i.attributes().GroupsOf(Attr::kSourceTargetPairs);
  auto own = std::ranges::find_if(pairs, [&](const Ints& pair) { return pair[1] == p.number; });
  if (own != pairs.end()) {
    request.from = (*own)[0];
  } else if (!pairs.empty()) {
    // It has no source.
    request.is_filled = true;
    request.shape = shape;
    request.value = Value(Literal(shape));
  }
  KILN_ASSIGN_OR_RETURN(uint32_t number, p.grid->Ask(i, std::move(request)));
  return Value({Value(Literal(shape)), Context(number), Token()});
}

Result<Value> RecvDone(const Instruction& i, const std::vector<Value>& operands, const Process& p) {
  if (!p.grid) return NeedsGrid(i, "a channel");
  const uint32_t number = operands[0].element(1).array().values<uint32_t>()[0];
  KILN_ASSIGN_OR_RETURN(Request request, p.grid->Receive(p, i, number));
  const Shape& shape = i.shape().elements()[0];
  if (!request.shape.SameTypeAndDimensions(shape)) {
    return Fail(i, ": ", request.shape, " was sent; expected ", shape);
  }
  return Value({std::move(request.value), Token()});
}

// --- Grids

// "replicas=2 partitions=1 infeed=0".
struct GridConfig {
  int64_t replicas = 0, partitions = 0, infeed = 0;
};

Result<GridConfig> ConfigOf(const Instruction& i) {
  const std::string& config = i.attributes().Text(Attr::kBackendConfig);
  GridConfig c;
  for (auto [name, least, field] :
       {std::tuple("replicas", 1, &c.replicas), std::tuple("partitions", 1, &c.partitions),
        std::tuple("infeed", 0, &c.infeed)}) {
    const std::optional<int64_t> value = ParseInt(ConfigWord(config, name));
    if (!value || *value < least) {
      return Fail(i, ": the config must say ", name, ", at least ", least);
    }
    *field = *value;
  }
  if (c.replicas > kMostProcesses || c.partitions > kMostProcesses / c.replicas) {
    return ResourceExhausted("custom-call '", i.name(), "': ", c.replicas, " times ", c.partitions,
                             " processes are more than ", kMostProcesses);
  }
  const int64_t programs = c.replicas * c.partitions;
  if (c.infeed > std::ssize(i.called()) || std::ssize(i.called()) - c.infeed != programs) {
    return Fail(i, ": calls ", i.called().size(), " computations; expected ", programs,
                " programs and ", c.infeed, " of the queue");
  }
  return c;
}

Status CheckPrograms(const Instruction& i, std::span<ir::Computation* const> programs) {
  int64_t next = 0;
  for (const ir::Computation* program : programs) {
    for (const Instruction* parameter : program->parameters()) {
      if (next >= i.operand_count()) {
        return Fail(i, ": has ", i.operand_count(), " operands, too few for all programs");
      }
      const Shape& given = i.operand(next++)->shape();
      if (given.SameTypeAndDimensions(parameter->shape())) continue;
      return Fail(i, ": operand ", next - 1, " is ", given, "; '", program->name(), "' takes ",
                  parameter->shape());
    }
  }
  if (next != i.operand_count()) {
    return Fail(i, ": has ", i.operand_count(), " operands; the programs take ", next);
  }
  // Parts of tuples are parts of the result.
  std::vector<Shape> shapes;
  for (const ir::Computation* program : programs) {
    const Shape& shape = program->root()->shape();
    if (!shape.is_tuple()) shapes.push_back(shape);
    shapes.insert(shapes.end(), shape.elements().begin(), shape.elements().end());
  }
  const Shape whole = shapes.size() == 1 ? shapes[0] : Shape::Tuple(std::move(shapes));
  if (whole.SameTypeAndDimensions(i.shape())) return OkStatus();
  return Fail(i, ": the programs give ", whole, "; expected ", i.shape());
}

}  // namespace

Result<Value> EvaluateProcessOp(const Instruction& i, std::vector<Value> operands, const Process& p,
                                const RegionContext& context) {
  if (HasUnknownSizes(i)) {
    return Unimplemented(OpcodeName(i.opcode()), ": the evaluator has no code for shape ",
                         i.shape());
  }
  auto id = [](int64_t n) { return Value(Literal::Scalar(ElementType::kU32, uint32_t(n))); };
  switch (i.opcode()) {
    case Opcode::kPartitionId:
      return id(p.partition());
    case Opcode::kReplicaId:
      return id(p.replica());
    case Opcode::kAllGather:
      return AllGather(i, std::move(operands), p);
    case Opcode::kAllReduce:
    case Opcode::kReduceScatter:
      return AllReduce(i, std::move(operands), p, context);
    case Opcode::kAllToAll:
      return AllToAll(i, std::move(operands), p);
    case Opcode::kCollectiveBroadcast:
      return Broadcast(i, std::move(operands), p);
    case Opcode::kCollectivePermute:
      return Permute(i, std::move(operands), p);
    case Opcode::kInfeed:
      return Infeed(i, p, context);
    case Opcode::kOutfeed:
      // The out-queue of a grid has no reader.
      if (!p.grid) return NeedsGrid(i, "a queue");
      return Token();
    case Opcode::kSend:
      return Send(i, std::move(operands), p);
    case Opcode::kSendDone:
      if (!p.grid) return NeedsGrid(i, "a channel");
      return Token();
    case Opcode::kRecv:
      return Recv(i, p);
    case Opcode::kRecvDone:
      return RecvDone(i, operands, p);
    default:
      return Internal(OpcodeName(i.opcode()), " '", i.name(), "' is no op of processes");
  }
}

Result<Value> RunParallel(const Instruction& i, std::vector<Value> operands, int64_t& live,
                          const CallIn& call) {
  KILN_ASSIGN_OR_RETURN(const GridConfig config, ConfigOf(i));
  const int64_t count = config.replicas * config.partitions;
  const std::span<ir::Computation* const> called = i.called();
  const std::span<ir::Computation* const> programs = called.first(static_cast<size_t>(count));
  const std::vector<const ir::Computation*> infeed(called.begin() + count, called.end());
  KILN_RETURN_IF_ERROR(CheckPrograms(i, programs));
  for (const ir::Computation* c : infeed) {
    if (!c->parameters().empty()) {
      return Fail(i, ": '", c->name(), "' is of the queue, and takes parameters");
    }
  }
  if (count > kMostProcesses - live) {
    return ResourceExhausted("custom-call '", i.name(), "': grids inside of others have more than ",
                             kMostProcesses, " processes");
  }
  std::vector<std::vector<Value>> arguments, results(static_cast<size_t>(count));
  auto next = operands.begin();
  for (const ir::Computation* program : programs) {
    auto end = next + std::ssize(program->parameters());
    arguments.emplace_back(std::move_iterator(next), std::move_iterator(end));
    next = end;
  }
  operands.clear();
  live += count;
  Grid grid(config.replicas, config.partitions, infeed);
  const Status status = grid.Run([&](const Process& process) -> Status {
    const auto k = static_cast<size_t>(process.number);
    KILN_ASSIGN_OR_RETURN(Value value, call(*programs[k], std::move(arguments[k]), process));
    const Shape& shape = programs[k]->root()->shape();
    if (!shape.is_tuple()) {
      results[k].push_back(std::move(value));
      return OkStatus();
    }
    for (int64_t e = 0; e < std::ssize(shape.elements()); ++e) {
      results[k].push_back(value.element(e));
    }
    return OkStatus();
  });
  live -= count;
  if (!status.ok()) return status.WithContext(Cat("custom-call '", i.name(), "'"));
  std::vector<Value> parts;
  for (std::vector<Value>& of_one : results) {
    for (Value& value : of_one) parts.push_back(std::move(value));
  }
  return parts.size() == 1 ? std::move(parts[0]) : Value(std::move(parts));
}

}  // namespace kiln::interp
