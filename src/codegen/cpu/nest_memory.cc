// Loads and stores: addresses, masks, guards and strides.
#include <algorithm>
#include <numeric>

#include "codegen/cpu/nest_emitter.h"
#include "codegen/cpu/transpose.h"
#include "kernel/collapse.h"
#include "kernel/schedule/cpu/alignment.h"
#include "llvm/IR/InlineAsm.h"
#include "program/program.h"

namespace kiln::codegen {

using kernel::Atom;
using kernel::Index;
using llvm::Value;

int NestEmitter::AddAccess(const Index& index, ElementType type, Value* base, kernel::ParamId param,
                           StageId stage) {
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
    // What goes from lane to lane in a known way counts with the first one.
    bool variable = term.atom.kind == Atom::Kind::kVariable;
    if (!variable && TermIsVector(offset.stage, term) && !LanesOf(offset.stage, term.atom, 0)) {
      continue;
    }
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

Value* NestEmitter::PointerOf(Access& access, int64_t further) {
  llvm::Type* element = MemoryType(b_.getContext(), access.type);
  Value* sum = offsets_[access.offset].sum;
  Value* pointer;
  if (access.last && access.last_sum == sum && access.last->getParent() == b_.GetInsertBlock()) {
    pointer = access.last;
  } else {
    pointer = access.base ? access.base : LoadArg(access.param);
    if (sum) pointer = b_.CreateGEP(element, pointer, sum);
    // What is loaded whenever it is wanted takes no register in between.
    access.last = access.base && sum ? llvm::dyn_cast<llvm::Instruction>(pointer) : nullptr;
    access.last_sum = sum;
  }
  further += access.constant;
  return further == 0 ? pointer : b_.CreateGEP(element, pointer, Int(further));
}

NestEmitter::Address NestEmitter::AddressOf(Access& access, int copy) {
  Address address;
  int64_t size = ByteWidth(access.type);
  const Offset& offset = offsets_[access.offset];
  int64_t multiple = access.constant, row_multiple = access.constant;
  for (const Index::Term& t : offset.index.terms()) {
    bool variable = t.atom.kind == Atom::Kind::kVariable;
    bool lanes = variable && t.atom.variable == vector_variable_;
    if (lanes) address.stride += t.coefficient;
    multiple = std::gcd(multiple, t.coefficient * (lanes ? aligned_ : 1));
    bool tile = variable && t.atom.variable == tile_variable_;
    if (tile) address.tile_stride += t.coefficient;
    row_multiple = std::gcd(row_multiple, t.coefficient * (tile ? tile_aligned_ : 1));
    if (variable || !TermIsVector(offset.stage, t)) continue;
    if (std::optional<AtomLanes> further = LanesOf(offset.stage, t.atom, copy)) {
      address.lanes.resize(static_cast<size_t>(width_));
      for (size_t l = 0; l < address.lanes.size(); ++l) {
        address.lanes[l] += t.coefficient * further->further[l];
      }
      continue;
    }
    llvm::IntegerType* type = IndexType(offset.index, true);
    Value* atom = EmitAtom(offset.stage, t.atom, copy, true, type);
    Value* term = b_.CreateMul(
        atom, llvm::ConstantInt::get(atom->getType(), static_cast<uint64_t>(t.coefficient), true));
    address.offsets = address.offsets ? b_.CreateAdd(address.offsets, term) : term;
  }
  int64_t first =
      tile_variable_.valid() ? address.tile_stride * copy : address.stride * copy * width_;
  if (!address.lanes.empty()) first += AddLanes(address, IndexType(offset.index, true));
  multiple = std::gcd(multiple, first);
  // Every allocation and every slice of one begins at a multiple of kAlignment, but for the user's
  // arguments.
  const bool is_input =
      access.param.valid() && kernel_.params[access.param].role == kernel::Param::Role::kInput;
  const int64_t begins = is_input ? kernel::InputAlignment(access.type, cpu_) : program::kAlignment;
  auto alignment = [&](int64_t m) { return m == 0 ? begins : std::gcd(m * size, begins); };
  address.alignment = alignment(multiple);
  address.row_alignment = alignment(row_multiple);
  address.pointer = PointerOf(access, first);
  return address;
}

int64_t NestEmitter::AddLanes(Address& address, llvm::IntegerType* type) {
  std::vector<int64_t>& lanes = address.lanes;
  if (address.offsets) {
    address.offsets = b_.CreateAdd(address.offsets, Numbers(lanes, type));
    lanes.clear();
    return 0;
  }
  const int64_t first = lanes[0], step = lanes[1] - lanes[0];
  bool is_stride = true;
  for (size_t l = 0; l < lanes.size(); ++l) {
    is_stride &= lanes[l] == first + step * static_cast<int64_t>(l);
  }
  if (is_stride) {
    address.stride += step;
    lanes.clear();
    return first;
  }
  for (size_t l = 0; l < lanes.size(); ++l) lanes[l] += address.stride * static_cast<int64_t>(l);
  address.stride = 0;
  address.offsets = Numbers(lanes, type);
  return 0;
}

Value* NestEmitter::LoadLanes(const Address& address, ElementType type) {
  const auto [least, most] = std::ranges::minmax(address.lanes);
  if (most - least >= width_) return nullptr;
  llvm::Type* element = MemoryType(b_.getContext(), type);
  auto* between = llvm::FixedVectorType::get(element, static_cast<unsigned>(most - least + 1));
  Value* loaded = b_.CreateAlignedLoad(between, b_.CreateGEP(element, address.pointer, Int(least)),
                                       llvm::Align(static_cast<uint64_t>(ByteWidth(type))));
  std::vector<int> places;
  for (int64_t lane : address.lanes) places.push_back(static_cast<int>(lane - least));
  return b_.CreateShuffleVector(loaded, places);
}

Value* NestEmitter::GatherOffsets(const Address& address) {
  int64_t reach = std::abs(address.stride) * width_;
  llvm::IntegerType* index = reach < INT32_MAX ? b_.getInt32Ty() : b_.getInt64Ty();
  Value* offsets = address.offsets;
  if (offsets) index = llvm::cast<llvm::IntegerType>(offsets->getType()->getScalarType());
  if (!offsets || address.stride != 0) {
    Value* ramp = Ramp(0, address.stride, index);
    offsets = offsets ? b_.CreateAdd(offsets, ramp) : ramp;
  }
  return offsets;
}

Value* NestEmitter::GatherPointers(const Address& address, ElementType type) {
  llvm::Type* element = MemoryType(b_.getContext(), type);
  return b_.CreateGEP(element, address.pointer, GatherOffsets(address));
}

// Made of the lane's number: a vector of addresses would be twice as wide, and be taken apart all
// the same.
Value* NestEmitter::LanePointer(const Address& address, Value* offsets, ElementType type,
                                int64_t lane) {
  Value* offset = b_.CreateExtractElement(offsets, static_cast<uint64_t>(lane));
  return b_.CreateGEP(MemoryType(b_.getContext(), type), address.pointer,
                      b_.CreateSExt(offset, b_.getInt64Ty()));
}

// Without mask registers LLVM 19 makes a plain load of a masked one where a half of the mask is
// constant, and takes lanes for set that are not: it loses track of masks of which only the sign
// bits matter. An empty piece of assembly, which takes no parser, keeps it from looking into the
// mask.
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
  if (!address.offsets && !mask && address.stride > 1 &&
      address.stride <= kernel::kMostInterleaved) {
    return LoadStrided(address, type);
  }
  if (!mask && !address.lanes.empty()) {
    if (Value* loaded = LoadLanes(address, type)) return loaded;
  }
  if (mask || (cpu_.has_masks && size >= 4)) {
    if (!mask) mask = Splat(b_, b_.getTrue(), width_);
    return b_.CreateMaskedGather(vector, GatherPointers(address, type), llvm::Align(size), mask,
                                 llvm::Constant::getNullValue(vector));
  }
  Value* offsets = GatherOffsets(address);
  Value* result = llvm::PoisonValue::get(vector);
  for (int64_t l = 0; l < width_; ++l) {
    Value* lane =
        b_.CreateAlignedLoad(element, LanePointer(address, offsets, type, l), llvm::Align(size));
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
    return AlignedStore(value, address.pointer, type, address.alignment, nontemporal);
  }
  if (mask || (cpu_.has_masks && size >= 4)) {
    if (!mask) mask = Splat(b_, b_.getTrue(), width_);
    b_.CreateMaskedScatter(value, GatherPointers(address, type), llvm::Align(size), mask);
    return;
  }
  Value* offsets = GatherOffsets(address);
  for (int64_t l = 0; l < width_; ++l) {
    b_.CreateAlignedStore(b_.CreateExtractElement(value, l), LanePointer(address, offsets, type, l),
                          llvm::Align(size));
  }
}

void NestEmitter::AlignedStore(Value* value, Value* pointer, ElementType type, int64_t alignment,
                               bool nontemporal) {
  int64_t bytes = ByteWidth(type) * width_;
  llvm::StoreInst* store =
      b_.CreateAlignedStore(value, pointer, llvm::Align(static_cast<uint64_t>(alignment)));
  if (!nontemporal || bytes < 16 || alignment < std::min<int64_t>(bytes, cpu_.vector_bytes)) return;
  store->setMetadata(
      llvm::LLVMContext::MD_nontemporal,
      llvm::MDNode::get(b_.getContext(), llvm::ConstantAsMetadata::get(b_.getInt32(1))));
}

bool NestEmitter::IsInterleaved(const Address& address) const {
  return tile_variable_.valid() && width_ > 1 && !address.offsets && !mask_ &&
         address.tile_stride == 1 && address.stride == copies_;
}

Value* NestEmitter::Pick(const Values& from, const std::function<int64_t(int64_t lane)>& place) {
  Value* picked = nullptr;
  for (size_t k = 0; k < from.size(); ++k) {
    // What is not of this vector has been picked before, or will be.
    std::vector<int> lanes;
    bool any = false;
    for (int64_t l = 0; l < width_; ++l) {
      const int64_t vector = place(l) / width_, lane = place(l) % width_;
      const bool here = vector == static_cast<int64_t>(k);
      any |= here;
      lanes.push_back(static_cast<int>(here ? lane + (picked ? width_ : 0)
                                       : picked && vector < static_cast<int64_t>(k)
                                           ? l
                                           : llvm::PoisonMaskElem));
    }
    if (!any) continue;
    picked = picked ? b_.CreateShuffleVector(picked, from[k], lanes)
                    : b_.CreateShuffleVector(from[k], lanes);
  }
  return picked;
}

Values NestEmitter::LoadInterleaved(const Address& address, ElementType type) {
  llvm::Type* element = MemoryType(b_.getContext(), type);
  auto* vector = llvm::FixedVectorType::get(element, static_cast<unsigned>(width_));
  Values loaded, values;
  for (int u = 0; u < copies_; ++u) {
    loaded.push_back(b_.CreateAlignedLoad(vector,
                                          b_.CreateGEP(element, address.pointer, Int(u * width_)),
                                          llvm::Align(ByteWidth(type))));
  }
  for (int u = 0; u < copies_; ++u) {
    values.push_back(Pick(loaded, [&](int64_t lane) { return lane * copies_ + u; }));
  }
  return values;
}

void NestEmitter::StoreInterleaved(const Address& address, ElementType type, const Values& values,
                                   bool nontemporal) {
  llvm::Type* element = MemoryType(b_.getContext(), type);
  for (int u = 0; u < copies_; ++u) {
    Value* stored = Pick(values, [&](int64_t lane) {
      const int64_t at = u * width_ + lane;
      return at % copies_ * width_ + at / copies_;
    });
    AlignedStore(stored, b_.CreateGEP(element, address.pointer, Int(u * width_)), type,
                 ByteWidth(type), nontemporal);
  }
}

Value* NestEmitter::LoadStrided(const Address& address, ElementType type) {
  llvm::Type* element = MemoryType(b_.getContext(), type);
  auto* vector = llvm::FixedVectorType::get(element, static_cast<unsigned>(width_));
  const int64_t stride = address.stride;
  // None goes beyond the last element.
  const auto begin = [&](int64_t k) {
    return std::min(k * width_, stride * (width_ - 1) + 1 - width_);
  };
  Values loaded;
  for (int64_t k = 0; k < stride; ++k) {
    Value* pointer = b_.CreateGEP(element, address.pointer, Int(begin(k)));
    loaded.push_back(b_.CreateAlignedLoad(vector, pointer, llvm::Align(ByteWidth(type))));
  }
  return Pick(loaded, [&](int64_t lane) {
    const int64_t at = lane * stride, k = at / width_;
    return k * width_ + at - begin(k);
  });
}

bool NestEmitter::IsSquare(const Address& address) const {
  return tile_variable_.valid() && copies_ == width_ && !address.offsets &&
         address.tile_stride == 1 && std::abs(address.stride) > 1;
}

Values NestEmitter::LoadSquare(const Address& address, ElementType type) {
  llvm::Type* element = MemoryType(b_.getContext(), type);
  auto* vector = llvm::FixedVectorType::get(element, static_cast<unsigned>(width_));
  Values rows;
  for (int64_t l = 0; l < width_; ++l) {
    Value* offset = Int(l * address.stride);
    if (lanes_left_) {
      // Lanes beyond the end repeat the last one.
      Value* last = b_.CreateSub(lanes_left_, Int(1));
      Value* lane = EmitMin(b_, last, Int(l));
      offset = b_.CreateMul(lane, Int(address.stride));
    }
    rows.push_back(b_.CreateAlignedLoad(vector, b_.CreateGEP(element, address.pointer, offset),
                                        llvm::Align(address.row_alignment)));
  }
  Transpose(rows, type);
  return rows;
}

void NestEmitter::StoreSquare(const Address& address, ElementType type, Values values,
                              bool nontemporal) {
  Transpose(values, type);
  llvm::Type* element = MemoryType(b_.getContext(), type);
  llvm::Align align(address.row_alignment);
  for (int64_t l = 0; l < width_; ++l) {
    Value* pointer = b_.CreateGEP(element, address.pointer, Int(l * address.stride));
    Value* value = values[l];
    if (lanes_left_) {
      Value* counts = Splat(b_, b_.CreateICmpSGT(lanes_left_, Int(l)), width_);
      b_.CreateMaskedStore(value, pointer, align, MemoryMask(counts));
    } else {
      AlignedStore(value, pointer, type, address.row_alignment, nontemporal);
    }
  }
}

void NestEmitter::Transpose(Values& rows, ElementType type) {
  // Swaps the blocks off the diagonal, half as large each time. Machines have one instruction for
  // that down to blocks of four bytes, and for smaller elements another: to interleave the halves
  // of 16 bytes.
  int64_t size = ByteWidth(type);
  int64_t group = size < 4 ? std::min(width_, 16 / size) : 1;
  SwapBlocks(b_, rows, group);
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
      Value* a = rows[first + row / 2];
      Value* b = rows[first + row / 2 + group / 2];
      next[i] = b_.CreateShuffleVector(a, b, masks[row & 1]);
    }
    rows = std::move(next);
  }
}

// Memory is touched only where the guard and the mask hold; elsewhere the value is 0.
Lanes NestEmitter::LoadFrom(Access& access, const Lanes& guard) {
  Lanes result;
  llvm::Type* element = MemoryType(b_.getContext(), access.type);
  bool varies = IsVectorIndex(offsets_[access.offset].stage, offsets_[access.offset].index);
  result.vector = varies || guard.vector;
  if (varies && tiled() && !guard.known()) {
    if (Address address = AddressOf(access, 0); IsSquare(address)) {
      for (Value* v : LoadSquare(address, access.type)) {
        result.copies.push_back(FromMemory(b_, v, access.type, MathOf(cpu_)));
      }
      return result;
    } else if (IsInterleaved(address)) {
      for (Value* v : LoadInterleaved(address, access.type)) {
        result.copies.push_back(FromMemory(b_, v, access.type, MathOf(cpu_)));
      }
      return result;
    }
  }
  for (int u = 0; u < (result.vector ? copies_ : 1); ++u) {
    Value* mask = result.vector && !access.padded ? mask_ : nullptr;
    Value* condition = guard.known() && !guard.vector ? guard.copies[0] : nullptr;
    // A test that all lanes have in common, of points side by side.
    llvm::Constant* test = guard.vector ? llvm::dyn_cast<llvm::Constant>(guard.Copy(u)) : nullptr;
    if (test && test->isNullValue()) {
      llvm::Constant* zero = llvm::Constant::getNullValue(
          llvm::FixedVectorType::get(element, static_cast<unsigned>(width_)));
      result.copies.push_back(FromMemory(b_, zero, access.type, MathOf(cpu_)));
      continue;
    }
    if (guard.vector && !(test && test->isAllOnesValue())) {
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
      IfEnds ends =
          EmitIf(b_, condition, [&] { value = load(); }, {.then = "guarded", .after = "unguarded"});
      Value* zero = llvm::Constant::getNullValue(value->getType());
      value = EmitPhi(b_, {value, ends.then}, {zero, ends.otherwise});
    } else if (condition && llvm::cast<llvm::Constant>(condition)->isNullValue()) {
      llvm::Type* type =
          varies ? llvm::FixedVectorType::get(element, static_cast<unsigned>(width_)) : element;
      value = llvm::Constant::getNullValue(type);
    } else {
      value = load();
    }
    if (result.vector && !varies) {
      value = Splat(b_, value, width_);
      llvm::Constant* zero = llvm::Constant::getNullValue(value->getType());
      if (mask) value = b_.CreateSelect(mask, value, zero);
    }
    result.copies.push_back(FromMemory(b_, value, access.type, MathOf(cpu_)));
  }
  return result;
}

void NestEmitter::StoreTo(Access& access, const Lanes& value) {
  bool vector = width_ > 1;
  // Arrays other than the caller's are read again soon.
  const bool nontemporal = nontemporal_ && access.param.valid();
  Value* mask = access.padded ? nullptr : mask_;
  if (stores_ && vector && access.param.valid()) {
    Value* all = b_.CreateVectorSplat(static_cast<unsigned>(width_), stores_);
    mask = mask ? b_.CreateAnd(mask, all) : all;
  }
  if (vector && tiled()) {
    Address address = AddressOf(access, 0);
    const bool square = IsSquare(address);
    if (square || (IsInterleaved(address) && !mask)) {
      Values rows;
      for (int u = 0; u < copies_; ++u) {
        Value* v = value.vector ? value.Copy(u) : Splat(b_, value.Copy(u), width_);
        rows.push_back(ToMemory(b_, v, access.type, MathOf(cpu_)));
      }
      if (!square) return StoreInterleaved(address, access.type, rows, nontemporal);
      return StoreSquare(address, access.type, std::move(rows), nontemporal);
    }
  }
  for (int u = 0; u < (vector ? copies_ : 1); ++u) {
    Value* v = value.Copy(u);
    if (vector && !value.vector) v = Splat(b_, v, width_);
    v = ToMemory(b_, v, access.type, MathOf(cpu_));
    if (vector) {
      VectorStore(AddressOf(access, u), access.type, v, mask, nontemporal);
    } else {
      b_.CreateAlignedStore(v, PointerOf(access, 0), llvm::Align(ByteWidth(access.type)));
    }
  }
}

void NestEmitter::EmitStore(StageId stage, int store) {
  const kernel::Store& s = kernel_.stages[stage].stores[store];
  if (!values_[stage][s.value].known()) {
    Use(stage, s.value, 0, false);
    return;
  }
  StoreTo(accesses_[store_access_[stage][store]], values_[stage][s.value]);
}

void NestEmitter::SetMemory(const kernel::CpuNestSchedule& schedule, const NestEmitter* other) {
  nontemporal_ = schedule.nontemporal;
  for (const kernel::CpuCases& cases : schedule.cases) cases_.push_back({cases.variable, {}});
  for (const kernel::CpuPrefetch& p : schedule.prefetches) {
    int id = AddAccess(p.index, kernel_.params[p.param].type, args_[p.param], p.param, p.stage);
    prefetches_.push_back({p.stage, id, p.write});
  }
  staged_.assign(kernel_.params.size(), nullptr);
  for (kernel::ParamId param : schedule.staged) StageRows(param, other);
  KeepValues(schedule, other);
  KeepStrips(schedule);
}

// The first stage that reads an input keeps its values; all stores of an output except the last are
// kept.
void NestEmitter::KeepStrips(const kernel::CpuNestSchedule& schedule) {
  const VariableId vector = schedule.stages.front().vector_variable;
  for (const kernel::CpuStrips::Kept& kept : schedule.strips.kept) {
    ElementType type = kernel_.params[kept.param].type;
    const bool is_output = kernel_.params[kept.param].role == kernel::Param::Role::kOutput;
    bool is_kept = is_output;
    for (StageId s : kernel_.stages.ids()) {
      const kernel::Stage& stage = kernel_.stages[s];
      Index place = Index::Variable(vector, kernel_.variables[vector].extent);
      int64_t pitch = schedule.strips.width;
      for (size_t i = stage.variables.size(); i-- > 0;) {
        int64_t extent = kernel_.variables[stage.variables[i]].extent;
        place = place + Index::Variable(stage.variables[i], extent) * pitch;
        pitch *= extent;
      }
      auto keep = [&](int& id) {
        id = AddAccess(place, type, nullptr, {}, s);
        accesses_[id].padded = true;
        in_strip_.push_back({id, type, kept.offset});
      };
      bool read = false;
      for (NodeId n : stage.nodes.ids()) {
        if (load_access_[s][n] < 0 || stage.nodes[n].param != kept.param) continue;
        if (is_kept) {
          keep(load_access_[s][n]);
        } else if (!read) {
          keep(keep_access_[s][n]);
        }
        read = true;
      }
      is_kept |= read;
      for (size_t i = 0; i < stage.stores.size() && s != kernel_.stages.last(); ++i) {
        if (stage.stores[i].param == kept.param && store_access_[s][i] >= 0) {
          keep(store_access_[s][i]);
        }
      }
    }
  }
}

void NestEmitter::OpenStrip(Value* scratch, Value* begin) {
  for (const InStrip& i : in_strip_) {
    Value* base =
        b_.CreateConstInBoundsGEP1_64(b_.getInt8Ty(), scratch, static_cast<uint64_t>(i.offset));
    accesses_[i.access].base =
        b_.CreateGEP(MemoryType(b_.getContext(), i.type), base, b_.CreateNeg(begin));
  }
}

// All accesses to the output but the last stage's store go to an array that has a row's points.
void NestEmitter::StageRows(kernel::ParamId param, const NestEmitter* other) {
  ElementType type = kernel_.params[param].type;
  Value*& row = staged_[param];
  if (other) row = other->staged_[param];
  auto stage_access = [&](StageId s, int id) {
    if (id < 0) return;
    IdVector<VariableId, Index> replacements;
    int64_t points = 1;
    for (VariableId v : kernel_.variables.ids()) {
      int64_t extent = kernel_.variables[v].extent;
      replacements.push_back(kernel_.IsInner(v) ? Index::Variable(v, extent) : Index());
    }
    for (VariableId v : kernel_.stages[s].variables) {
      points *= kernel_.variables[v].extent;
    }
    if (!row) row = NewRow(type, points);
    Index place = offsets_[accesses_[id].offset].index.Substitute(replacements);
    place = place - place.constant();
    accesses_[id] = accesses_[AddAccess(place, type, row, {}, s)];
  };
  for (StageId s : kernel_.stages.ids()) {
    const kernel::Stage& stage = kernel_.stages[s];
    for (NodeId n : stage.nodes.ids()) {
      if (stage.nodes[n].param == param) stage_access(s, load_access_[s][n]);
    }
    for (size_t i = 0; i < stage.stores.size() && s != kernel_.stages.last(); ++i) {
      if (stage.stores[i].param == param) stage_access(s, store_access_[s][i]);
    }
  }
}

Value* NestEmitter::NewRow(ElementType type, int64_t points) {
  llvm::BasicBlock& entry = b_.GetInsertBlock()->getParent()->getEntryBlock();
  llvm::IRBuilder<> b(&entry, entry.getFirstInsertionPt());
  llvm::AllocaInst* memory = b.CreateAlloca(
      llvm::ArrayType::get(MemoryType(b_.getContext(), type), static_cast<uint64_t>(points)));
  memory->setAlignment(llvm::Align(program::kAlignment));
  return memory;
}

void NestEmitter::KeepValues(const kernel::CpuNestSchedule& schedule, const NestEmitter* other) {
  // Whole vectors are stored.
  constexpr int64_t kMostLanes = 64;
  for (const kernel::CpuKeptValue& k : schedule.kept) {
    if (!live_[k.stage][k.node] || !live_[k.again_stage][k.again]) {
      kept_.push_back(nullptr);
      continue;
    }
    const ElementType type = kernel_.stages[k.stage].nodes[k.node].type;
    const ElementType kept = IsHalf(type) ? ElementType::kF32 : type;
    const auto variable = [&](StageId s) { return schedule.stages[s].vector_variable; };
    const int64_t extent = kernel_.variables[variable(k.stage)].extent;
    kept_.push_back(other ? other->kept_[kept_.size()] : NewRow(kept, extent + kMostLanes));
    const auto access = [&](StageId s) {
      return AddAccess(Index::Variable(variable(s), extent), kept, kept_.back(), {}, s);
    };
    keep_access_[k.stage][k.node] = access(k.stage);
    made_access_[k.again_stage][k.again] = access(k.again_stage);
    for (int id : {keep_access_[k.stage][k.node], made_access_[k.again_stage][k.again]}) {
      accesses_[id].padded = true;
    }
  }
  if (!schedule.kept.empty()) FindLive();
}

void NestEmitter::AskFor(Value* pointer, int64_t byte, bool write) {
  Value* line = byte == 0 ? pointer : b_.CreateGEP(b_.getInt8Ty(), pointer, Int(byte));
  b_.CreateIntrinsic(llvm::Intrinsic::prefetch, {b_.getPtrTy()},
                     {line, b_.getInt32(write), b_.getInt32(3), b_.getInt32(1)});
}

void NestEmitter::EmitPrefetches(StageId stage) {
  constexpr int64_t kLine = 64;
  // The remainder behind whole vectors is small.
  if (width_ == 1 || mask_) return;
  for (const Prefetch& p : prefetches_) {
    if (p.stage != stage) continue;
    Access& access = accesses_[p.access];
    AdvanceAccess(p.access);
    int64_t step = width_ * ByteWidth(access.type), asked = -kLine;
    if (tiled()) {
      // The copies are far from each other, or the lanes are.
      Address address = AddressOf(access, 0);
      const bool square = IsSquare(address);
      for (int64_t r = 0; r < (square ? width_ : copies_); ++r) {
        int64_t stride = square ? address.stride : address.tile_stride;
        Value* row = PointerOf(access, r * stride);
        for (int64_t byte = 0; byte < step; byte += kLine) AskFor(row, byte, p.write);
      }
      continue;
    }
    for (int u = 0; u < copies_; ++u) {
      Value* pointer = AddressOf(access, u).pointer;
      for (int64_t byte = u * step; byte < (u + 1) * step; byte += std::min(step, kLine)) {
        if (byte - asked < kLine) continue;
        asked = byte;
        AskFor(pointer, byte - u * step, p.write);
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
