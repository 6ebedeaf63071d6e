// Operations of several processes together. With the number of a channel the processes of a group
// are partitions, or with use_global_device_ids all, and without one replicas.
#include "stablehlo/import/folds.h"

namespace kiln::stablehlo {
namespace {

using ir::Instruction;

// In groups that no list tells.
constexpr int64_t kMaxUnlisted = 64;
// The largest group with an unknown root.
constexpr size_t kMaxRoots = 256;

// The number of the channel, or 0 where there is none.
Result<int64_t> ChannelOf(const Op& op) {
  const mlir::Attribute* handle = op.Find("channel_handle");
  if (!handle) return 0;
  KILN_ASSIGN_OR_RETURN(const mlir::Attribute* record, op.Record("channel_handle"));
  return IntField(*record, "handle");
}

Result<Groups> GroupsOf(const Op& op) {
  const mlir::Attribute* attribute = op.Find("replica_groups");
  if (!attribute) return Groups();
  if (!attribute->is(mlir::AttributeKind::kElements)) {
    return Unimplemented("replica_groups that are told by something else than a matrix of numbers");
  }
  KILN_ASSIGN_OR_RETURN(Groups groups, op.IntRows("replica_groups"));
  std::erase_if(groups, [](const Ints& group) { return group.empty(); });
  return groups;
}

// The common attributes: groups and channel, and global ids for ops with these.
Result<Attributes> ProcessesOf(const Op& op, bool global_ids) {
  Attributes attributes;
  KILN_ASSIGN_OR_RETURN(Groups groups, GroupsOf(op));
  KILN_ASSIGN_OR_RETURN(int64_t channel, ChannelOf(op));
  KILN_ASSIGN_OR_RETURN(bool global, op.Bool("use_global_device_ids"));
  if (!groups.empty()) attributes.Set(Attr::kReplicaGroups, std::move(groups));
  if (channel > 0) attributes.Set(Attr::kChannelId, channel);
  if (global_ids && global) attributes.Set(Attr::kUseGlobalDeviceIds, true);
  return attributes;
}

Status RequireResults(const Op& op, size_t count) {
  if (op.result_count() == count) return OkStatus();
  return InvalidArgument("found ", op.result_count(), " results; expected ", count);
}

// The results' shapes, which inference is told: one, or a tuple.
Result<Shape> WholeShape(const Op& op) {
  std::vector<Shape> shapes;
  for (size_t i = 0; i < op.result_count(); ++i) {
    KILN_ASSIGN_OR_RETURN(Shape shape, op.ResultShape(i));
    shapes.push_back(std::move(shape));
  }
  return shapes.size() == 1 ? shapes[0] : Shape::Tuple(std::move(shapes));
}

Result<Values> AllGather(Op& op) {
  KILN_RETURN_IF_ERROR(RequireResults(op, op.operands.size()));
  KILN_ASSIGN_OR_RETURN(Attributes attributes, ProcessesOf(op, true));
  KILN_ASSIGN_OR_RETURN(int64_t dimension, op.Int("all_gather_dim"));
  KILN_ASSIGN_OR_RETURN(Shape whole, WholeShape(op));
  attributes.Set(Attr::kDimensions, Ints{dimension});
  return op.Unpack(op.b.Add(Opcode::kAllGather, op.operands, std::move(attributes), whole));
}

// The operands as the region takes them, and the region.
struct Folded {
  Values operands;
  ir::Computation* computation = nullptr;
};

Result<Folded> FoldedBy(Op& op, std::span<Instruction* const> operands) {
  const mlir::Region& region = *op.operation.regions[0];
  KILN_ASSIGN_OR_RETURN(const mlir::Block* block, op.importer.BlockOf(region, 2));
  Folded folded{Values(operands.begin(), operands.end())};
  std::vector<Shape> scalars;
  for (size_t i = 0; i < folded.operands.size(); ++i) {
    KILN_ASSIGN_OR_RETURN(folded.operands[i], ConvertTo(op, op.operand(i), op.operand_type(i),
                                                        *block->arguments[0]->type));
    KILN_RETURN_IF_ERROR(op.b.status());
    scalars.assign(2, Shape::Scalar(folded.operands[i]->shape().type()));
  }
  KILN_ASSIGN_OR_RETURN(folded.computation,
                        op.importer.ImportRegion(region, op.body, "region", scalars));
  return folded;
}

Result<Instruction*> AllReduceOf(Op& op, std::span<Instruction* const> operands) {
  KILN_RETURN_IF_ERROR(RequireResults(op, operands.size()));
  KILN_ASSIGN_OR_RETURN(Attributes attributes, ProcessesOf(op, true));
  KILN_ASSIGN_OR_RETURN(Folded folded, FoldedBy(op, operands));
  return op.b.Add(Opcode::kAllReduce, std::move(folded.operands), std::move(attributes),
                  std::nullopt, {folded.computation});
}

Result<Values> AllReduce(Op& op) {
  KILN_ASSIGN_OR_RETURN(Instruction * all, AllReduceOf(op, op.operands));
  return op.Unpack(all);
}

Result<Values> CrossReplicaSum(Op& op) {
  KILN_ASSIGN_OR_RETURN(Attributes attributes, ProcessesOf(op, false));
  return op.One(op.b.Add(Opcode::kAllReduce, op.operands, std::move(attributes), std::nullopt,
                         {op.b.Reducer(Opcode::kAdd, op.type(0))}));
}

Result<Values> ReduceScatter(Op& op) {
  KILN_RETURN_IF_ERROR(RequireResults(op, op.operands.size()));
  KILN_ASSIGN_OR_RETURN(Attributes attributes, ProcessesOf(op, true));
  KILN_ASSIGN_OR_RETURN(int64_t dimension, op.Int("scatter_dimension"));
  KILN_ASSIGN_OR_RETURN(Folded folded, FoldedBy(op, op.operands));
  KILN_ASSIGN_OR_RETURN(Shape whole, WholeShape(op));
  attributes.Set(Attr::kDimensions, Ints{dimension});
  return op.Unpack(op.b.Add(Opcode::kReduceScatter, std::move(folded.operands),
                            std::move(attributes), whole, {folded.computation}));
}

// The values before the last operand. Each number in the last operand is the place of one value's
// root in its group.
Result<std::span<Instruction* const>> RootedData(const Op& op, const Groups& groups) {
  const size_t count = op.operands.size() - 1;
  const Shape& roots = op.shape(count);
  if (groups.empty()) return Unimplemented("has_dynamic_root needs replica_groups");
  if (!IsInteger(roots.type()) ||
      !roots.SameDimensions(Shape(roots.type(), {static_cast<int64_t>(count)}))) {
    return InvalidArgument("the roots are ", roots, "; expected ", count, " integers");
  }
  return std::span<Instruction* const>(op.operands).first(count);
}

Instruction* RootOf(Op& op, size_t k) {
  const auto at = static_cast<int64_t>(k);
  return op.b.Reshape(op.b.Slice(op.operands.back(), {{at, at + 1, 1}}), Ints());
}

// The place of this process in its group, by an all-reduce's attributes.
class OwnPlace {
 public:
  OwnPlace(Op& op, const Attributes& attributes)
      : b_(op.b), groups_(attributes.GroupsOf(Attr::kReplicaGroups)) {
    const bool channel = attributes.Int(Attr::kChannelId) > 0;
    if (groups_.empty()) {
      // All processes; the first has the numbers 0.
      groups_ = {{0}};
      own_ = b_.Add(Opcode::kReplicaId, {});
      if (channel) partition_ = b_.Add(Opcode::kPartitionId, {});
    } else if (attributes.Bool(Attr::kUseGlobalDeviceIds)) {
      Number(attributes);
    } else {
      own_ = b_.Add(Opcode::kReplicaId, {});
      // Partition after partition, each with all replicas of the group.
      if (channel) partition_ = b_.Add(Opcode::kPartitionId, {});
    }
  }

  // Whether it is the first of its group.
  Instruction* IsFirst() {
    Instruction* is_first = nullptr;
    for (const Ints& group : groups_) {
      Instruction* this_one = Is(group[0]);
      is_first = is_first ? b_.Add(Opcode::kOr, {is_first, this_one}) : this_one;
    }
    if (!partition_) return is_first;
    Instruction* zero = b_.Scalar(ElementType::kU32, 0);
    return b_.Add(Opcode::kAnd, {is_first, b_.Compare(Direction::kEq, partition_, zero)});
  }

  // Its place in its group.
  Instruction* Place(ElementType type) {
    Instruction *place = b_.Scalar(type, 0), *size = nullptr;
    for (const Ints& group : groups_) {
      for (size_t k = 0; k < group.size(); ++k) {
        if (k > 0) place = Where(group[k], type, k, place);
        if (partition_)
          size = size ? Where(group[k], type, group.size(), size)
                      : b_.Scalar(type, static_cast<double>(group.size()));
      }
    }
    if (!partition_) return place;
    Instruction* before = b_.Add(Opcode::kMultiply, {b_.Convert(partition_, type), size});
    return b_.Add(Opcode::kAdd, {before, place});
  }

 private:
  Instruction* Is(int64_t number) {
    return b_.Compare(Direction::kEq, own_,
                      b_.Scalar(ElementType::kU32, static_cast<double>(number)));
  }
  Instruction* Where(int64_t number, ElementType type, size_t value, Instruction* otherwise) {
    return b_.Select(Is(number), b_.Scalar(type, static_cast<double>(value)), otherwise);
  }

  // Global ids count partitions, of an unknown number. So all processes of all groups are numbered,
  // in their order, and each gets its number as its piece of the same array.
  void Number(const Attributes& attributes) {
    Attributes scatter = attributes;
    Ints all;
    for (Ints& group : groups_) {
      for (int64_t& id : group) {
        all.push_back(id);
        id = std::ssize(all) - 1;
      }
    }
    const Shape numbers(ElementType::kU32, {std::ssize(all)}), one(ElementType::kU32, {1});
    scatter.Set(Attr::kReplicaGroups, Groups{std::move(all)});
    scatter.Set(Attr::kDimensions, Ints{0});
    Instruction* iota = b_.Add(Opcode::kIota, {}, {{Attr::kIotaDimension, int64_t{0}}}, numbers);
    own_ = b_.Reshape(b_.Add(Opcode::kReduceScatter, {iota}, std::move(scatter), one,
                             {b_.Reducer(Opcode::kMinimum, ElementType::kU32)}),
                      Ints());
  }

  Builder& b_;
  Groups groups_;
  Instruction *own_ = nullptr, *partition_ = nullptr;
};

// The process that a group's sum is for has it, all others have zeros.
Result<Values> CollectiveReduce(Op& op) {
  KILN_ASSIGN_OR_RETURN(bool dynamic, op.Bool("has_dynamic_root"));
  KILN_ASSIGN_OR_RETURN(Attributes attributes, ProcessesOf(op, true));
  std::span<Instruction* const> data = op.operands;
  if (dynamic) {
    KILN_ASSIGN_OR_RETURN(data, RootedData(op, attributes.GroupsOf(Attr::kReplicaGroups)));
    if (data.empty()) return InvalidArgument("found no operand beside the roots");
  }
  KILN_ASSIGN_OR_RETURN(Instruction * all, AllReduceOf(op, data));
  Builder& b = op.b;
  KILN_RETURN_IF_ERROR(b.status());
  OwnPlace own(op, attributes);
  Instruction* place = dynamic ? own.Place(op.shape(data.size()).type()) : nullptr;
  Instruction* is_root = dynamic ? nullptr : own.IsFirst();
  Values values;
  for (Instruction* sum : op.Unpack(all)) {
    if (dynamic) is_root = b.Compare(Direction::kEq, place, RootOf(op, values.size()));
    KILN_RETURN_IF_ERROR(b.status());
    values.push_back(b.Select(is_root, sum, b.Number(sum->shape(), 0)));
  }
  return values;
}

// Cuts the operand into a piece per process. Piece k goes to process k; received pieces are
// concatenated.
Result<Values> AllToAll(Op& op) {
  KILN_RETURN_IF_ERROR(RequireResults(op, op.operands.size()));
  KILN_ASSIGN_OR_RETURN(int64_t split, op.Int("split_dimension"));
  KILN_ASSIGN_OR_RETURN(int64_t concatenate, op.Int("concat_dimension"));
  KILN_ASSIGN_OR_RETURN(int64_t count, op.Int("split_count"));
  KILN_ASSIGN_OR_RETURN(Attributes attributes, ProcessesOf(op, false));
  const Groups& groups = attributes.GroupsOf(Attr::kReplicaGroups);
  if (groups.empty() ? count < 1 || count > kMaxUnlisted : count != std::ssize(groups[0])) {
    return InvalidArgument("split_count is ", count, "; expected ",
                           groups.empty() ? Cat("1 to ", kMaxUnlisted)
                                          : Cat(groups[0].size(), ", as a group has processes"));
  }
  Values values;
  for (Instruction* x : op.operands) {
    const Shape& shape = x->shape();
    if (!shape.is_static() || split < 0 || split >= shape.rank() || shape.dim(split) % count != 0) {
      return InvalidArgument("split_dimension is ", split, " for ", shape,
                             "; its size must be a multiple of ", count);
    }
    const int64_t size = shape.dim(split) / count;
    Values pieces, come;
    for (int64_t k = 0; k < count; ++k) {
      std::vector<SliceDimension> slices;
      for (int64_t d = 0; d < shape.rank(); ++d) {
        slices.push_back(d == split ? SliceDimension{k * size, (k + 1) * size, 1}
                                    : SliceDimension{0, shape.dim(d), 1});
      }
      pieces.push_back(op.b.Slice(x, std::move(slices)));
    }
    Instruction* all = op.b.Add(Opcode::kAllToAll, std::move(pieces), attributes);
    for (int64_t k = 0; k < count; ++k) come.push_back(op.b.Element(all, k));
    values.push_back(op.b.Concatenate(std::move(come), concatenate));
  }
  return values;
}

// The root of each value is an operand: whoever may be one sends, and one is taken.
Result<Values> BroadcastFrom(Op& op, const Attributes& attributes) {
  const Groups& groups = attributes.GroupsOf(Attr::kReplicaGroups);
  KILN_ASSIGN_OR_RETURN(std::span<Instruction* const> data, RootedData(op, groups));
  KILN_RETURN_IF_ERROR(RequireResults(op, data.size()));
  size_t places = 0;
  for (const Ints& group : groups) places = std::max(places, group.size());
  if (places > kMaxRoots) {
    return Unimplemented("has_dynamic_root in a group of ", places, " processes; at most ",
                         kMaxRoots, " can be chosen from");
  }
  Builder& b = op.b;
  Values values;
  for (size_t i = 0; i < data.size(); ++i) {
    Instruction *root = RootOf(op, i), *value = nullptr;
    for (size_t k = 0; k < places; ++k) {
      // The groups with their process k for the first.
      Groups turned = groups;
      for (Ints& group : turned) {
        if (k < group.size()) std::swap(group[0], group[k]);
      }
      Attributes from = attributes;
      from.Set(Attr::kReplicaGroups, std::move(turned));
      Instruction* one = b.Add(Opcode::kCollectiveBroadcast, {data[i]}, std::move(from));
      if (!one) return b.status();
      Instruction* number = b.Scalar(root->shape().type(), static_cast<double>(k));
      value = value ? b.Select(b.Compare(Direction::kEq, root, number), one, value) : one;
    }
    values.push_back(value);
  }
  return values;
}

Result<Values> CollectiveBroadcast(Op& op) {
  KILN_ASSIGN_OR_RETURN(Attributes attributes, ProcessesOf(op, false));
  KILN_ASSIGN_OR_RETURN(bool dynamic, op.Bool("has_dynamic_root"));
  if (dynamic) return BroadcastFrom(op, attributes);
  KILN_RETURN_IF_ERROR(RequireResults(op, op.operands.size()));
  Values values;
  for (Instruction* x : op.operands) {
    values.push_back(op.b.Add(Opcode::kCollectiveBroadcast, {x}, attributes));
  }
  return values;
}

Result<Values> CollectivePermute(Op& op) {
  KILN_RETURN_IF_ERROR(RequireResults(op, op.operands.size()));
  KILN_ASSIGN_OR_RETURN(Groups pairs, op.IntRows("source_target_pairs"));
  KILN_ASSIGN_OR_RETURN(int64_t channel, ChannelOf(op));
  Attributes attributes = {{Attr::kSourceTargetPairs, std::move(pairs)}};
  if (channel > 0) attributes.Set(Attr::kChannelId, channel);
  Values values;
  for (Instruction* x : op.operands) {
    values.push_back(op.b.Add(Opcode::kCollectivePermute, {x}, attributes));
  }
  return values;
}

constexpr Quantised kStorage = Quantised::kStorage;

constexpr Row kRows[] = {
    {"stablehlo.all_gather", AllGather, kSome, kSome, 0, kStorage},
    {"stablehlo.all_reduce", AllReduce, kSome, kSome, 1, kStorage},
    {"stablehlo.all_to_all", AllToAll, kSome, kSome, 0, kStorage},
    {"stablehlo.collective_broadcast", CollectiveBroadcast, kSome, kSome, 0, kStorage},
    {"stablehlo.collective_permute", CollectivePermute, kSome, kSome, 0, kStorage},
    {"stablehlo.collective_reduce", CollectiveReduce, kSome, kSome, 1, kStorage},
    {"stablehlo.cross-replica-sum", CrossReplicaSum},
    {"stablehlo.reduce_scatter", ReduceScatter, kSome, kSome, 1, kStorage},
};

}  // namespace

std::span<const Row> CollectiveRows() { return kRows; }

}  // namespace kiln::stablehlo
