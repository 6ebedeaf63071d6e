// Updates: of vectors that lie side by side, or one by one.
#include "codegen/cpu/nest_emitter.h"

namespace kiln::codegen {

using llvm::Value;

namespace {

// The present contents that a combiner needs.
std::vector<bool> WantedContents(const kernel::Update& update) {
  const size_t count = update.indices.size();
  std::vector<bool> wanted(count, false);
  for (const kernel::Node& n : update.combiner.nodes) {
    bool is_old = n.kind == kernel::Node::Kind::kArgument && static_cast<size_t>(n.result) < count;
    if (is_old) wanted[n.result] = true;
  }
  return wanted;
}

}  // namespace

void NestEmitter::EmitUpdate(StageId stage, int number) {
  const kernel::Update& update = kernel_.stages[stage].updates[number];
  const std::vector<int>& ids = update_access_[stage][number];
  size_t count = ids.size();
  bool vector = width_ > 1;
  // All of them are read before any write.
  const std::vector<bool> wanted = WantedContents(update);
  std::vector<Lanes> old(count), results(count);
  for (size_t k = 0; k < count; ++k) {
    results[k].vector = vector;
    if (wanted[k]) old[k] = LoadFrom(accesses_[ids[k]], Lanes());
  }
  for (int u = 0; u < (vector ? copies_ : 1); ++u) {
    Values arguments;
    for (size_t k = 0; k < count; ++k) {
      Value* value = wanted[k] ? old[k].Copy(u) : nullptr;
      if (value && vector && !old[k].vector) value = Splat(b_, value, width_);
      arguments.push_back(value);
    }
    for (NodeId input : update.inputs) arguments.push_back(Use(stage, input, u, vector));
    Values next = EmitCombiner(update.combiner, arguments);
    if (next.size() != count) return;
    for (size_t k = 0; k < count; ++k) results[k].copies.push_back(next[k]);
  }
  for (size_t k = 0; k < count; ++k) StoreTo(accesses_[ids[k]], results[k]);
}

void NestEmitter::EmitUpdateByLanes(StageId stage, int number) {
  const kernel::Update& update = kernel_.stages[stage].updates[number];
  const std::vector<bool> wanted = WantedContents(update);
  std::vector<Address> addresses;
  Values offsets, inputs;
  for (int id : update_access_[stage][number]) {
    addresses.push_back(AddressOf(accesses_[id], 0));
    offsets.push_back(GatherOffsets(addresses.back()));
  }
  for (NodeId input : update.inputs) inputs.push_back(Use(stage, input, 0, true));
  Value* mask = update.guard.valid() ? Use(stage, update.guard, 0, true) : nullptr;
  if (mask_) mask = mask ? b_.CreateAnd(mask, mask_) : mask_;
  auto lane_of = [&](Value* vector, int64_t lane) {
    return b_.CreateExtractElement(vector, static_cast<uint64_t>(lane));
  };
  auto update_lane = [&](int64_t lane) {
    Values at, arguments;
    for (size_t k = 0; k < addresses.size(); ++k) {
      const ElementType type = accesses_[update_access_[stage][number][k]].type;
      at.push_back(LanePointer(addresses[k], offsets[k], type, lane));
      arguments.push_back(nullptr);
      if (!wanted[k]) continue;
      Value* old = b_.CreateAlignedLoad(MemoryType(b_.getContext(), type), at[k],
                                        llvm::Align(static_cast<uint64_t>(ByteWidth(type))));
      arguments.back() = FromMemory(b_, old, type, MathOf(cpu_));
    }
    for (Value* input : inputs) arguments.push_back(lane_of(input, lane));
    const Values next = EmitCombiner(update.combiner, arguments);
    for (size_t k = 0; k < next.size(); ++k) {
      const ElementType type = accesses_[update_access_[stage][number][k]].type;
      b_.CreateAlignedStore(ToMemory(b_, next[k], type, MathOf(cpu_)), at[k],
                            llvm::Align(static_cast<uint64_t>(ByteWidth(type))));
    }
  };
  for (int64_t lane = 0; lane < width_; ++lane) {
    if (!mask) {
      update_lane(lane);
    } else {
      EmitIf(b_, lane_of(mask, lane), [&] { update_lane(lane); },
             {.then = "inside", .after = "outside"});
    }
  }
}

}  // namespace kiln::codegen
