// Loads and stores: addresses, masks, guards and strides.
#include <algorithm>
#include <numeric>

#include "codegen/cpu/nest_emitter.h"
#include "llvm/IR/InlineAsm.h"
#include "plan/plan.h"

namespace kiln::codegen {

using kernel::Atom;
using kernel::Index;
using llvm::Value;

int NestEmitter::AddAccess(const Index& index, ElementType type, Value* base, int param,
                           int stage) {
  Access access;
  access.type = type;
  access.base = base;
  access.param = param;
  access.constant = index.constant();
  auto same = [&](const Offset& o) { return o.stage == stage && o.index.terms() == index.terms(); };
  auto known = std::find_if(offsets_.begin(), offsets_.end(), same);
  access.offset = static_cast<int>(known - offsets_.begin());
  if (known == offsets_.end()) {
    offsets_.push_back({index, stage, nullptr, std::vector<bool>(index.terms().size(), false)});
  }
  accesses_.push_back(access);
  return static_cast<int>(accesses_.size()) - 1;
}

void NestEmitter::AdvanceAccess(int id) {
  Offset& offset = offsets_[accesses_[id].offset];
  Value* sum = offset.sum;
  std::vector<bool> done = offset.done;
  for (size_t i = 0; i < done.size(); ++i) {
    const Index::Term& term = offset.index.terms()[i];
    if (done[i] || !TermKnown(offset.stage, term)) continue;
    // The vector variable counts with its first lane.
    bool variable = term.atom.kind == Atom::Kind::kVariable;
    if (!variable && TermIsVector(offset.stage, term)) continue;
    Value* value = EmitAtom(offset.stage, term.atom, 0, false, b_.getInt64Ty());
    if (term.coefficient != 1) value = b_.CreateMul(value, Int(term.coefficient));
    sum = sum ? b_.CreateAdd(sum, value) : value;
    done[i] = true;
  }
  if (sum == offset.sum) return;
  undo_.push_back({accesses_[id].offset, offset.sum, offset.done});
  offset.sum = sum;
  offset.done = std::move(done);
}

Value* NestEmitter::PointerOf(const Access& access, int64_t further) {
  llvm::Type* element = MemoryType(b_.getContext(), access.type);
  Value* pointer = access.base ? access.base : LoadArg(access.param);
  if (Value* sum = offsets_[access.offset].sum) pointer = b_.CreateGEP(element, pointer, sum);
  further += access.constant;
  return further == 0 ? pointer : b_.CreateGEP(element, pointer, Int(further));
}

NestEmitter::Address NestEmitter::AddressOf(const Access& access, int copy) {
  Address address;
  int64_t size = ByteWidth(access.type);
  const Offset& offset = offsets_[access.offset];
  int64_t multiple = access.constant;
  for (const Index::Term& t : offset.index.terms()) {
    bool variable = t.atom.kind == Atom::Kind::kVariable;
    bool lanes = variable && t.atom.id == vector_variable_;
    if (lanes) address.stride += t.coefficient;
    if (variable && t.atom.id == tile_variable_) address.tile_stride += t.coefficient;
    multiple = std::gcd(multiple, t.coefficient * (lanes ? aligned_ : 1));
    if (variable || !TermIsVector(offset.stage, t)) continue;
    llvm::IntegerType* type = IndexType(offset.index, true);
    Value* atom = EmitAtom(offset.stage, t.atom, copy, true, type);
    Value* term = b_.CreateMul(
        atom, llvm::ConstantInt::get(atom->getType(), static_cast<uint64_t>(t.coefficient), true));
    address.offsets = address.offsets ? b_.CreateAdd(address.offsets, term) : term;
  }
  int64_t first = tile_variable_ >= 0 ? address.tile_stride * copy : address.stride * copy * width_;
  multiple = std::gcd(multiple, first);
  // Every allocation and every slice of one begins at a multiple of kAlignment.
  address.alignment =
      multiple == 0 ? plan::kAlignment : std::gcd(multiple * size, plan::kAlignment);
  address.pointer = PointerOf(access, first);
  return address;
}

Value* NestEmitter::GatherPointers(const Address& address, ElementType type) {
  llvm::Type* element = MemoryType(b_.getContext(), type);
  int64_t reach = std::abs(address.stride) * width_;
  llvm::IntegerType* index = reach < INT32_MAX ? b_.getInt32Ty() : b_.getInt64Ty();
  Value* offsets = address.offsets;
  if (offsets) index = llvm::cast<llvm::IntegerType>(offsets->getType()->getScalarType());
  if (!offsets || address.stride != 0) {
    Value* ramp = Ramp(0, address.stride, index);
    offsets = offsets ? b_.CreateAdd(offsets, ramp) : ramp;
  }
  return b_.CreateGEP(element, address.pointer, offsets);
}

// Without mask registers LLVM 19 makes a plain load of a masked one where a half of the mask is
// constant, and takes lanes for set that are not: it loses track of masks of which only the sign
// bits matter. An empty piece of assembly keeps it from looking into the mask.
Value* NestEmitter::MemoryMask(Value* mask) {
  if (!mask || llvm::isa<llvm::Constant>(mask) || cpu_.has_masks || !cpu_.Has("avx")) return mask;
  auto bits = static_cast<unsigned>(std::clamp<int64_t>(8 * cpu_.vector_bytes / width_, 8, 64));
  auto* type = llvm::FixedVectorType::get(b_.getIntNTy(bits), static_cast<unsigned>(width_));
  auto* assembly = llvm::InlineAsm::get(llvm::FunctionType::get(type, {type}, false), "", "=x,0",
                                        /*hasSideEffects=*/false);
  Value* hidden = b_.CreateCall(assembly, {b_.CreateSExt(mask, type)});
  return b_.CreateICmpSLT(hidden, llvm::Constant::getNullValue(type));
}

Value* NestEmitter::VectorLoad(const Address& address, ElementType type, Value* mask) {
  mask = MemoryMask(mask);
  llvm::Type* element = MemoryType(b_.getContext(), type);
  auto* vector = llvm::FixedVectorType::get(element, static_cast<unsigned>(width_));
  int64_t size = ByteWidth(type);
  if (!address.offsets && (address.stride == 1 || address.stride == -1)) {
    Value* pointer = address.pointer;
    llvm::Align align(address.stride == 1 ? address.alignment : size);
    auto reverse = [&](Value* v) { return b_.CreateVectorReverse(v); };
    bool backwards = address.stride == -1;
    if (backwards) pointer = b_.CreateGEP(element, pointer, Int(1 - width_));
    Value* loaded;
    if (mask) {
      loaded = b_.CreateMaskedLoad(vector, pointer, align, backwards ? reverse(mask) : mask,
                                   llvm::Constant::getNullValue(vector));
    } else {
      loaded = b_.CreateAlignedLoad(vector, pointer, align);
    }
    return backwards ? reverse(loaded) : loaded;
  }
  Value* pointers = GatherPointers(address, type);
  if (mask || (cpu_.has_masks && size >= 4)) {
    if (!mask) mask = Splat(b_, b_.getTrue(), width_);
    return b_.CreateMaskedGather(vector, pointers, llvm::Align(size), mask,
                                 llvm::Constant::getNullValue(vector));
  }
  Value* result = llvm::PoisonValue::get(vector);
  for (int64_t l = 0; l < width_; ++l) {
    Value* lane =
        b_.CreateAlignedLoad(element, b_.CreateExtractElement(pointers, l), llvm::Align(size));
    result = b_.CreateInsertElement(result, lane, l);
  }
  return result;
}

void NestEmitter::VectorStore(const Address& address, ElementType type, Value* value, Value* mask,
                              bool nontemporal) {
  mask = MemoryMask(mask);
  int64_t size = ByteWidth(type);
  if (!address.offsets && address.stride == 1) {
    llvm::Align align(address.alignment);
    if (mask) {
      b_.CreateMaskedStore(value, address.pointer, align, mask);
      return;
    }
    llvm::StoreInst* store = b_.CreateAlignedStore(value, address.pointer, align);
    if (nontemporal && address.alignment >= std::min<int64_t>(size * width_, cpu_.vector_bytes) &&
        size * width_ >= 16) {
      store->setMetadata(
          llvm::LLVMContext::MD_nontemporal,
          llvm::MDNode::get(b_.getContext(), llvm::ConstantAsMetadata::get(b_.getInt32(1))));
    }
    return;
  }
  Value* pointers = GatherPointers(address, type);
  if (mask || (cpu_.has_masks && size >= 4)) {
    if (!mask) mask = Splat(b_, b_.getTrue(), width_);
    b_.CreateMaskedScatter(value, pointers, llvm::Align(size), mask);
    return;
  }
  for (int64_t l = 0; l < width_; ++l) {
    b_.CreateAlignedStore(b_.CreateExtractElement(value, l), b_.CreateExtractElement(pointers, l),
                          llvm::Align(size));
  }
}

bool NestEmitter::IsSquare(const Address& address) const {
  return tile_variable_ >= 0 && copies_ == width_ && !address.offsets && address.tile_stride == 1 &&
         std::abs(address.stride) > 1;
}

NestEmitter::Values NestEmitter::LoadSquare(const Address& address, ElementType type) {
  llvm::Type* element = MemoryType(b_.getContext(), type);
  auto* vector = llvm::FixedVectorType::get(element, static_cast<unsigned>(width_));
  Values rows;
  for (int64_t l = 0; l < width_; ++l) {
    Value* offset = Int(l * address.stride);
    if (lanes_left_) {
      // Lanes beyond the end repeat the last one.
      Value* last = b_.CreateSub(lanes_left_, Int(1));
      Value* lane = b_.CreateSelect(b_.CreateICmpSLT(last, Int(l)), last, Int(l));
      offset = b_.CreateMul(lane, Int(address.stride));
    }
    rows.push_back(b_.CreateAlignedLoad(vector, b_.CreateGEP(element, address.pointer, offset),
                                        llvm::Align(ByteWidth(type))));
  }
  // Swaps the blocks off the diagonal, half as large each time. Machines have one instruction for
  // that down to blocks of four bytes, and for smaller elements another: to interleave the halves
  // of 16 bytes.
  int64_t size = ByteWidth(type);
  int64_t group = size < 4 ? std::min(width_, 16 / size) : 1;
  for (int64_t d = width_ / 2; d >= group; d /= 2) {
    std::vector<int> low, high;
    for (int64_t l = 0; l < width_; ++l) {
      low.push_back(static_cast<int>((l & d) ? width_ + l - d : l));
      high.push_back(static_cast<int>((l & d) ? width_ + l : l + d));
    }
    for (int64_t i = 0; i < width_; ++i) {
      if (i & d) continue;
      Value *&a = rows[static_cast<size_t>(i)], *&b = rows[static_cast<size_t>(i + d)];
      Value* upper = b_.CreateShuffleVector(a, b, low);
      b = b_.CreateShuffleVector(a, b, high);
      a = upper;
    }
  }
  // Rows i and i + group/2 become rows 2i and 2i + 1: done once for each bit of a row's number.
  for (int64_t step = 1; step < group; step *= 2) {
    std::vector<int> masks[2];
    for (int64_t l = 0; l < width_; ++l) {
      int64_t of_group = l % group, from = l - of_group + of_group / 2;
      if (l & 1) from += width_;
      masks[0].push_back(static_cast<int>(from));
      masks[1].push_back(static_cast<int>(from + group / 2));
    }
    Values next(rows.size());
    for (int64_t i = 0; i < width_; ++i) {
      int64_t row = i % group, first = i - row;
      Value* a = rows[static_cast<size_t>(first + row / 2)];
      Value* b = rows[static_cast<size_t>(first + row / 2 + group / 2)];
      next[static_cast<size_t>(i)] = b_.CreateShuffleVector(a, b, masks[row & 1]);
    }
    rows = std::move(next);
  }
  return rows;
}

// Memory is touched only where the guard and the mask hold; elsewhere the value is 0.
Lanes NestEmitter::LoadFrom(const Access& access, const Lanes& guard) {
  Lanes result;
  llvm::Type* element = MemoryType(b_.getContext(), access.type);
  bool varies = IsVectorIndex(offsets_[access.offset].stage, offsets_[access.offset].index);
  result.vector = varies || guard.vector;
  if (varies && !guard.known()) {
    if (Address address = AddressOf(access, 0); IsSquare(address)) {
      for (Value* v : LoadSquare(address, access.type)) {
        result.copies.push_back(FromMemory(b_, v, access.type, MathOf(cpu_)));
      }
      return result;
    }
  }
  for (int u = 0; u < (result.vector ? copies_ : 1); ++u) {
    Value* mask = result.vector ? mask_ : nullptr;
    Value* condition = guard.known() && !guard.vector ? guard.copies[0] : nullptr;
    if (guard.vector) {
      mask = mask ? b_.CreateAnd(mask, guard.Copy(u)) : guard.Copy(u);
      if (!varies) condition = b_.CreateOrReduce(mask);
    }
    auto load = [&]() -> Value* {
      if (!varies)
        return b_.CreateAlignedLoad(element, PointerOf(access, 0),
                                    llvm::Align(ByteWidth(access.type)));
      Address address = AddressOf(access, u);
      if (address.stride == 0 && !address.offsets && !guard.vector) {
        Value* scalar =
            b_.CreateAlignedLoad(element, address.pointer, llvm::Align(ByteWidth(access.type)));
        return Splat(b_, scalar, width_);
      }
      return VectorLoad(address, access.type, mask);
    };
    Value* value;
    if (condition && !llvm::isa<llvm::Constant>(condition)) {
      llvm::BasicBlock* before = b_.GetInsertBlock();
      llvm::Function* function = before->getParent();
      auto* inside = llvm::BasicBlock::Create(b_.getContext(), "guarded", function);
      auto* after = llvm::BasicBlock::Create(b_.getContext(), "unguarded", function);
      b_.CreateCondBr(condition, inside, after);
      b_.SetInsertPoint(inside);
      Value* loaded = load();
      llvm::BasicBlock* last = b_.GetInsertBlock();
      b_.CreateBr(after);
      b_.SetInsertPoint(after);
      llvm::PHINode* phi = b_.CreatePHI(loaded->getType(), 2);
      phi->addIncoming(loaded, last);
      phi->addIncoming(llvm::Constant::getNullValue(loaded->getType()), before);
      value = phi;
    } else if (condition && llvm::cast<llvm::Constant>(condition)->isNullValue()) {
      llvm::Type* type =
          varies ? llvm::FixedVectorType::get(element, static_cast<unsigned>(width_)) : element;
      value = llvm::Constant::getNullValue(type);
    } else {
      value = load();
    }
    if (result.vector && !varies) {
      value = Splat(b_, value, width_);
      value = b_.CreateSelect(mask, value, llvm::Constant::getNullValue(value->getType()));
    }
    result.copies.push_back(FromMemory(b_, value, access.type, MathOf(cpu_)));
  }
  return result;
}

void NestEmitter::StoreTo(const Access& access, const Lanes& value) {
  bool vector = width_ > 1;
  for (int u = 0; u < (vector ? copies_ : 1); ++u) {
    Value* v = value.Copy(u);
    if (vector && !value.vector) v = Splat(b_, v, width_);
    v = ToMemory(b_, v, access.type, MathOf(cpu_));
    if (vector) {
      bool nontemporal = nontemporal_ && !(access.base && llvm::isa<llvm::AllocaInst>(access.base));
      VectorStore(AddressOf(access, u), access.type, v, mask_, nontemporal);
    } else {
      b_.CreateAlignedStore(v, PointerOf(access, 0), llvm::Align(ByteWidth(access.type)));
    }
  }
}

void NestEmitter::EmitStore(int stage, int store) {
  const kernel::Store& s = kernel_.stages[stage].stores[store];
  if (!values_[stage][s.value].known()) {
    Use(stage, s.value, 0, false);
    return;
  }
  StoreTo(accesses_[store_access_[stage][store]], values_[stage][s.value]);
}

void NestEmitter::EmitUpdate(int stage, int number) {
  const kernel::Update& update = kernel_.stages[stage].updates[number];
  const std::vector<int>& ids = update_access_[stage][number];
  size_t count = ids.size();
  bool vector = width_ > 1;
  // What is there, where the combiner asks for it: all of it is read before any is written.
  std::vector<bool> wanted(count, false);
  for (const kernel::Node& n : update.combiner.nodes) {
    bool is_old = n.kind == kernel::Node::Kind::kArgument && static_cast<size_t>(n.result) < count;
    if (is_old) wanted[static_cast<size_t>(n.result)] = true;
  }
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
    for (int input : update.inputs) arguments.push_back(Use(stage, input, u, vector));
    Values next = EmitCombiner(update.combiner, arguments);
    if (next.size() != count) return;
    for (size_t k = 0; k < count; ++k) results[k].copies.push_back(next[k]);
  }
  for (size_t k = 0; k < count; ++k) StoreTo(accesses_[ids[k]], results[k]);
}

void NestEmitter::SetMemory(const kernel::CpuNestSchedule& schedule, const NestEmitter* other) {
  nontemporal_ = schedule.nontemporal;
  for (const kernel::CpuPrefetch& p : schedule.prefetches) {
    int id = AddAccess(p.index, kernel_.params[p.param].type, args_[p.param], p.param, p.stage);
    prefetches_.push_back({p.stage, id, p.write});
  }
  staged_.assign(kernel_.params.size(), nullptr);
  for (int param : schedule.staged) StageRows(param, other);
}

// All accesses to the output but the last stage's store go to an array that has a row's points.
void NestEmitter::StageRows(int param, const NestEmitter* other) {
  ElementType type = kernel_.params[param].type;
  Value*& row = staged_[static_cast<size_t>(param)];
  if (other) row = other->staged_[static_cast<size_t>(param)];
  auto stage_access = [&](int s, int id) {
    if (id < 0) return;
    std::vector<Index> replacements;
    uint64_t points = 1;
    for (size_t v = 0; v < kernel_.variables.size(); ++v) {
      auto variable = static_cast<int>(v);
      int64_t extent = kernel_.variables[v].extent;
      replacements.push_back(variable >= kernel_.outer ? Index::Variable(variable, extent)
                                                       : Index());
    }
    for (int v : kernel_.stages[s].variables) {
      points *= static_cast<uint64_t>(kernel_.variables[v].extent);
    }
    if (!row) {
      llvm::BasicBlock& entry = b_.GetInsertBlock()->getParent()->getEntryBlock();
      llvm::IRBuilder<> b(&entry, entry.getFirstInsertionPt());
      auto* array = llvm::ArrayType::get(MemoryType(b_.getContext(), type), points);
      llvm::AllocaInst* memory = b.CreateAlloca(array);
      memory->setAlignment(llvm::Align(plan::kAlignment));
      row = memory;
    }
    Index place = offsets_[accesses_[id].offset].index.Substitute(replacements);
    place = place - place.constant();
    accesses_[id] = accesses_[AddAccess(place, type, row, param, s)];
  };
  for (size_t s = 0; s < kernel_.stages.size(); ++s) {
    const kernel::Stage& stage = kernel_.stages[s];
    auto number = static_cast<int>(s);
    for (size_t n = 0; n < stage.nodes.size(); ++n) {
      if (stage.nodes[n].param == param) stage_access(number, load_access_[s][n]);
    }
    for (size_t i = 0; i < stage.stores.size() && s + 1 < kernel_.stages.size(); ++i) {
      if (stage.stores[i].param == param) stage_access(number, store_access_[s][i]);
    }
  }
}

void NestEmitter::EmitPrefetches(int stage) {
  constexpr int64_t kLine = 64;
  // What is left over behind whole vectors is little.
  if (width_ == 1 || mask_) return;
  for (const Prefetch& p : prefetches_) {
    if (p.stage != stage) continue;
    const Access& access = accesses_[p.access];
    AdvanceAccess(p.access);
    int64_t step = width_ * ByteWidth(access.type), asked = -kLine;
    for (int u = 0; u < copies_; ++u) {
      Value* pointer = AddressOf(access, u).pointer;
      for (int64_t byte = u * step; byte < (u + 1) * step; byte += std::min(step, kLine)) {
        if (byte - asked < kLine) continue;
        asked = byte;
        Value* line = b_.CreateGEP(b_.getInt8Ty(), pointer, Int(byte - u * step));
        b_.CreateIntrinsic(llvm::Intrinsic::prefetch, {b_.getPtrTy()},
                           {line, b_.getInt32(p.write), b_.getInt32(3), b_.getInt32(1)});
      }
    }
  }
}

void NestEmitter::LoadAccess(int id, Lanes& value) {
  Mark mark = GetMark();
  AdvanceAccess(id);
  value = LoadFrom(accesses_[id], Lanes());
  Rewind(mark);
}

void NestEmitter::StoreAccess(int id, const Lanes& value) {
  Mark mark = GetMark();
  AdvanceAccess(id);
  StoreTo(accesses_[id], value);
  Rewind(mark);
}

}  // namespace kiln::codegen
