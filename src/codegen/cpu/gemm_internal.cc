#include "codegen/cpu/gemm_internal.h"

#include "codegen/elemental.h"
#include "llvm/IR/Intrinsics.h"

namespace kiln::codegen::gemm {

using kernel::GemmBatchDimension;
using llvm::Value;

Emitter::Emitter(llvm::Function* function, const kernel::GemmProblem& problem,
                 const kernel::GemmSchedule& schedule, const GemmPrologue* a_prologue,
                 const GemmPrologue* b_prologue)
    : function(function),
      p(problem),
      s(schedule),
      a_prologue(a_prologue),
      b_prologue(b_prologue),
      b(llvm::BasicBlock::Create(function->getContext(), "entry", function)),
      element_bytes(ByteWidth(problem.type)),
      a_bytes(ByteWidth(problem.TypeOfA())),
      b_bytes(ByteWidth(problem.TypeOfB())),
      element(RegisterType(function->getContext(), problem.type)),
      vector(llvm::FixedVectorType::get(element, static_cast<unsigned>(schedule.lanes))),
      word(schedule.group() > 1 ? b.getInt32Ty() : element),
      words(llvm::FixedVectorType::get(word, static_cast<unsigned>(schedule.lanes))),
      b_word_bytes(kernel::PackedWordBytes(problem, schedule.unit)),
      b_vector_bytes(b_word_bytes * schedule.lanes),
      group(schedule.group()),
      steps(schedule.Steps(problem)),
      i64(b.getInt64Ty()),
      vector_bytes(element_bytes * schedule.lanes),
      n_vectors((problem.n + schedule.lanes - 1) / schedule.lanes),
      ragged(problem.n % schedule.lanes != 0),
      unroll(a_prologue || (b_prologue && schedule.b == kernel::GemmB::kInPlace)
                 ? 1
                 : schedule.unroll) {
  shape.n_panels = Int(schedule.n_panels);
  shape.block_n = Int(schedule.block_n);
  shape.k_blocks = Int(schedule.k_blocks);
  shape.b_step = Int(BytesOfB(problem.b_k));
  shape.b_column = Int(BytesOfB(problem.b_n));
  if (schedule.pack_a && schedule.a_row_bytes == 0) {
    const int64_t step = schedule.mr * element_bytes, tile = schedule.kc * step;
    SetShapeOfA(element_bytes, step, tile, (schedule.row_tiles - 1) * tile,
                schedule.row_tiles * tile);
  } else {
    const int64_t row = schedule.pack_a ? schedule.a_row_bytes : problem.a_m * a_bytes;
    const int64_t step = schedule.pack_a ? element_bytes : problem.a_k * a_bytes * group;
    SetShapeOfA(row, step, schedule.mr * row, (problem.m - schedule.mr) * row, schedule.kc * step);
  }
  shape.slot = Int(schedule.slot_bytes);
  shape.panel_slot = Int(schedule.panel_stride);
  shape.panel_bytes = Int(schedule.panel_bytes);
  shape.m_tiles = Int(schedule.m_tiles);
  shape.m_blocks = Int(schedule.m_blocks);
  shape.block_m = Int(schedule.block_m);
  shape.last_row = Int(problem.m - schedule.mr);
  shape.last_vector = Int(n_vectors - schedule.nv);
  shape.kc = Int(schedule.kc);
  shape.c_row = Int(problem.c_m * element_bytes);
  shape.a_batch = Int(problem.batch.empty() ? 0 : problem.batch[0].a * a_bytes);
  shape.a_level = Int(problem.k_outer.empty() ? 0 : problem.k_outer[0].a * a_bytes);
  for (const GemmPrologue* prologue : {a_prologue, b_prologue}) {
    if (prologue) prologue->begin(b, function->getArg(1));
  }
}

void Emitter::SetShapeOfA(int64_t row, int64_t step, int64_t tile, int64_t last, int64_t block) {
  shape.a_row = Int(row);
  shape.a_step = Int(step);
  shape.a_tile = Int(tile);
  shape.a_last = Int(last);
  shape.a_block = Int(block);
}

Value* Emitter::Arg(int index) {
  Value* slot = Offset(function->getArg(1), int64_t{index} * 8);
  return b.CreateAlignedLoad(b.getPtrTy(), slot, llvm::Align(8));
}

Value* Emitter::Offset(Value* pointer, Value* bytes) {
  if (auto* c = llvm::dyn_cast<llvm::ConstantInt>(bytes); c && c->isZero()) return pointer;
  return b.CreateGEP(b.getInt8Ty(), pointer, bytes);
}

Value* Emitter::Offset(Value* pointer, int64_t bytes) { return Offset(pointer, Int(bytes)); }

// The builder folds constants; identities with a variable are folded here, since no pass will.
Value* Emitter::Scale(Value* value, int64_t factor) {
  if (factor == 0) return Int(0);
  if (factor == 1) return value;
  return b.CreateMul(value, Int(factor));
}

Value* Emitter::Add(Value* x, Value* y) {
  if (auto* c = llvm::dyn_cast<llvm::ConstantInt>(x); c && c->isZero()) return y;
  if (auto* c = llvm::dyn_cast<llvm::ConstantInt>(y); c && c->isZero()) return x;
  return b.CreateAdd(x, y);
}

Value* Emitter::Multiply(Value* x, Value* y) {
  if (auto* c = llvm::dyn_cast<llvm::ConstantInt>(x)) return Scale(y, c->getSExtValue());
  if (auto* c = llvm::dyn_cast<llvm::ConstantInt>(y)) return Scale(x, c->getSExtValue());
  return b.CreateMul(x, y);
}

Value* Emitter::Sum(Value* x, Value* y) {
  return IsFloat(p.type) ? b.CreateFAdd(x, y) : b.CreateAdd(x, y);
}

Value* Emitter::Load(llvm::Type* type, Value* pointer, int64_t align) {
  return b.CreateAlignedLoad(type, pointer, llvm::Align(static_cast<uint64_t>(align)));
}

Value* Emitter::LoadElements(Side side, int lanes, const GemmPlace& place, Value* mask) {
  const ElementType from = TypeOf(side);
  const GemmPrologue* prologue = PrologueOf(side);
  const MathOptions options{s.fma, s.f16};
  if (side == Side::kB && p.HasHalves()) {
    return prologue->compute(b, LoadHalves(lanes, place.pointer), lanes, place, mask);
  }
  const llvm::Align align(static_cast<uint64_t>(ByteWidth(from)));
  llvm::Type* type = MemoryType(b.getContext(), from);
  if (lanes > 1) type = llvm::FixedVectorType::get(type, static_cast<unsigned>(lanes));
  Value* loaded = mask == nullptr
                      ? static_cast<Value*>(b.CreateAlignedLoad(type, place.pointer, align))
                      : b.CreateMaskedLoad(type, place.pointer, align, mask,
                                           llvm::Constant::getNullValue(type));
  loaded = FromMemory(b, loaded, from, options);
  if (!prologue) return EmitConvert(b, loaded, from, p.type, options);
  Value* value = prologue->compute(b, loaded, lanes, place, mask);
  if (mask == nullptr) return value;
  return b.CreateSelect(mask, value, llvm::Constant::getNullValue(value->getType()));
}

// Each lane has the word that its half is in, and shifts it.
Value* Emitter::LoadHalves(int lanes, Value* pointer) {
  const int in_word = std::min(lanes, 8), words = lanes / in_word;
  auto vector_of = [&](llvm::Type* type, int count) {
    return llvm::FixedVectorType::get(type, static_cast<unsigned>(count));
  };
  llvm::Type* word = b.getIntNTy(static_cast<unsigned>(4 * in_word));
  Value* loaded = Load(vector_of(word, words), pointer, 1);
  loaded = b.CreateZExt(loaded, vector_of(b.getInt32Ty(), words));
  std::vector<int> of_lane;
  std::vector<llvm::Constant*> left, right;
  for (int lane = 0; lane < lanes; ++lane) {
    of_lane.push_back(lane / in_word);
    const auto bit = static_cast<uint32_t>(4 * (lane % in_word));
    left.push_back(b.getInt32(28 - bit));
    right.push_back(b.getInt32(bit));
  }
  Value* spread = b.CreateShuffleVector(loaded, of_lane);
  if (IsSigned(p.b_half))
    return b.CreateAShr(b.CreateShl(spread, llvm::ConstantVector::get(left)), 28);
  return b.CreateAnd(b.CreateLShr(spread, llvm::ConstantVector::get(right)), 15);
}

Value* Emitter::LoadVector(Value* pointer, Value* mask, bool aligned) {
  const llvm::Align align(static_cast<uint64_t>(aligned ? vector_bytes : element_bytes));
  if (mask == nullptr) return b.CreateAlignedLoad(vector, pointer, align);
  return b.CreateMaskedLoad(vector, pointer, align, mask, llvm::Constant::getNullValue(vector));
}

void Emitter::StoreVector(Value* value, Value* pointer, Value* mask, bool aligned) {
  const llvm::Align align(static_cast<uint64_t>(aligned ? vector_bytes : element_bytes));
  if (mask == nullptr) {
    b.CreateAlignedStore(value, pointer, align);
  } else {
    b.CreateMaskedStore(value, pointer, align, mask);
  }
}

Value* Emitter::Mask(Value* count) {
  std::vector<llvm::Constant*> lanes;
  for (int i = 0; i < s.lanes; ++i) lanes.push_back(b.getInt32(static_cast<uint32_t>(i)));
  // Counts beyond the vector are whole vectors: the comparison is signed and 32 bits suffice.
  Value* bounded = b.CreateTrunc(Min(count, Int(s.lanes)), b.getInt32Ty());
  Value* splat = b.CreateVectorSplat(static_cast<unsigned>(s.lanes), bounded);
  return b.CreateICmpSLT(llvm::ConstantVector::get(lanes), splat);
}

void Emitter::StorePacked(Value* value, Value* pointer) {
  b.CreateAlignedStore(value, pointer, llvm::Align(static_cast<uint64_t>(b_vector_bytes)));
}

llvm::Constant* Emitter::Mask(int64_t count, int64_t lanes) {
  std::vector<llvm::Constant*> bits;
  for (int64_t i = 0; i < lanes; ++i) bits.push_back(b.getInt1(i < count));
  return llvm::ConstantVector::get(bits);
}

void Emitter::Prefetch(Value* pointer, Level level) {
  // For reading, how near, data.
  b.CreateIntrinsic(
      llvm::Intrinsic::prefetch, {b.getPtrTy()},
      {pointer, b.getInt32(0), b.getInt32(level == Level::kFirst ? 3 : 2), b.getInt32(1)});
}

void Emitter::Fence() {
  b.CreateFence(llvm::AtomicOrdering::AcquireRelease, llvm::SyncScope::SingleThread);
}

void Emitter::Loop(Value* begin, Value* end, int64_t step, const char* name,
                   llvm::function_ref<void(Value*)> body) {
  EmitLoop(b, begin, end, step, body, FormOf(name));
}

Value* Emitter::TileRow(Value* tile) {
  Value* row = Scale(tile, s.mr);
  if (p.m % s.mr != 0) row = Min(row, shape.last_row);
  return row;
}

Value* Emitter::PanelVector(Value* panel) {
  Value* first = Scale(panel, s.nv);
  if (n_vectors % s.nv != 0) first = Min(first, shape.last_vector);
  return first;
}

std::vector<Value*> Emitter::BatchIndices(Value* linear) {
  std::vector<Value*> indices(p.batch.size());
  for (size_t i = p.batch.size(); i-- > 0;) {
    const int64_t size = p.batch[i].size;
    if (size == 1) {
      indices[i] = Int(0);
    } else if (i == 0) {
      indices[i] = linear;
    } else {
      indices[i] = b.CreateURem(linear, Int(size));
      linear = b.CreateUDiv(linear, Int(size));
    }
  }
  return indices;
}

Value* Emitter::BatchOffsetA(const std::vector<Value*>& indices) {
  return BatchOffset(indices, [&](const GemmBatchDimension& d) { return d.a * a_bytes; });
}
Value* Emitter::BatchOffsetB(const std::vector<Value*>& indices) {
  return BatchOffset(indices, [&](const GemmBatchDimension& d) { return BytesOfB(d.b); });
}
Value* Emitter::BatchOffsetC(const std::vector<Value*>& indices) {
  return BatchOffset(indices, [&](const GemmBatchDimension& d) { return d.c * element_bytes; });
}

Value* Emitter::BatchOffset(const std::vector<Value*>& indices,
                            llvm::function_ref<int64_t(const GemmBatchDimension&)> bytes) {
  Value* offset = Int(0);
  for (size_t i = 0; i < indices.size(); ++i) {
    offset = Add(offset, Scale(indices[i], bytes(p.batch[i])));
  }
  return offset;
}

Value* Emitter::KCount(Value* k_block, int64_t total, int64_t in_block) {
  if (any_size) return Scale(shape.kc, in_block / s.kc);
  if (s.k_blocks == 1) return Int(total);
  if (total % in_block == 0) return Int(in_block);
  return Min(Int(in_block), b.CreateSub(Int(total), Scale(k_block, in_block)));
}

Value* Emitter::KOffsetA(Value* k_block) {
  if (any_windows) return Multiply(Scale(k_block, s.kc / s.InnerSteps(p)), shape.a_level);
  const int64_t step = p.k_outer.empty() ? p.a_k * group : p.k_outer[0].a;
  return Scale(k_block, s.kc / s.InnerSteps(p) * step * a_bytes);
}

Value* Emitter::KOffsetB(Value* k_block) {
  if (!p.k_outer.empty()) {
    return Scale(k_block, s.kc / s.InnerSteps(p) * BytesOfB(p.k_outer[0].b));
  }
  Value* elements = Multiply(k_block, Scale(shape.kc, group));
  // Of two numbers in a byte a step has none; blocks have whole bytes.
  if (p.HasHalves() && p.b_k == 1) return b.CreateLShr(elements, 1);
  return Multiply(elements, shape.b_step);
}

Value* Emitter::PackedBOffset(Value* batch, Value* k_block, Value* panel, Value* k_count) {
  const int64_t row_bytes = s.nv * b_vector_bytes;
  const int64_t head = s.head_rows();
  if (s.b_shared) batch = Int(0);
  if (s.b_column_bytes > 0) return Scale(batch, p.n * s.b_column_bytes);
  Value* offset = Add(Scale(batch, (steps + s.k_blocks * head) * s.n_panels * row_bytes),
                      Scale(k_block, (s.kc + head) * s.n_panels * row_bytes));
  return Add(offset, b.CreateMul(panel, Scale(Add(k_count, Int(head)), row_bytes)));
}

Value* Emitter::PackedAOffset(Value* batch, Value* k_block, Value* tile) {
  if (s.a_shared) batch = Int(0);
  if (s.a_row_bytes > 0) {
    return Add(Scale(Add(Scale(batch, p.m), TileRow(tile)), s.a_row_bytes),
               Scale(k_block, s.kc * element_bytes));
  }
  Value* block = Add(Scale(batch, s.k_blocks), k_block);
  return Scale(Add(Scale(block, s.row_tiles), tile), s.kc * s.mr * element_bytes);
}

llvm::Function* NewFunction(const llvm::Function& like, llvm::FunctionType* type,
                            const std::string& name) {
  auto* parent = const_cast<llvm::Module*>(like.getParent());
  auto* f = llvm::Function::Create(type, llvm::Function::InternalLinkage, name, parent);
  f->copyAttributesFrom(&like);
  f->setLinkage(llvm::Function::InternalLinkage);
  return f;
}

Status Check(const kernel::GemmProblem& p, const kernel::GemmSchedule& s) {
  if (!kernel::HasGemm(p.type)) return Unimplemented("gemm of ", TypeName(p.type));
  if (p.m < 1 || p.n < 1 || p.k < 0) return InvalidArgument("gemm of no elements");
  const bool rows = p.b_n == 1 || p.n == 1;
  const bool along_k = (p.a_k == 1 && p.b_k == 1) || p.k <= 1;
  if (s.b == kernel::GemmB::kInPlace &&
      !(s.kind == kernel::GemmKind::kInner ? along_k && !s.pack_a : rows)) {
    return InvalidArgument("gemm in place needs vectors of contiguous elements: ", p);
  }
  if ((s.kind == kernel::GemmKind::kInner && !p.k_outer.empty()) || (s.pack_a && !p.IsLinearA())) {
    return InvalidArgument("a gemm whose sum has several levels cannot have this schedule: ", p);
  }
  if (s.b_column_bytes > 0 && (p.a_k != 1 || p.b_n != 1 || s.n_panels != 1 || p.k < s.lanes ||
                               p.TypeOfB() != p.type || s.unit != kernel::GemmUnit::kElement)) {
    return InvalidArgument("a gemm that packs columns along the sum needs one panel of them: ", p);
  }
  if (s.by_columns && (p.a_m != 1 || s.pack_a || s.b != kernel::GemmB::kInPlace ||
                       s.n_panels != 1 || s.mr % s.lanes != 0)) {
    return InvalidArgument("a gemm by columns needs contiguous rows in place: ", p);
  }
  const bool outer_words =
      s.kind == kernel::GemmKind::kOuter && s.unit != kernel::GemmUnit::kElement;
  if (outer_words &&
      (s.b == kernel::GemmB::kInPlace || !(s.pack_a || kernel::HasWordsOfA(p, s.unit)))) {
    return InvalidArgument("a gemm of words needs packed operands: ", p);
  }
  const bool whole_vectors =
      s.kind == kernel::GemmKind::kOuter && p.b_n == 1 ? p.n % s.lanes == 0 : p.k % s.lanes == 0;
  if (p.HasHalves() && (s.unit != kernel::GemmUnit::kElement || !whole_vectors)) {
    return InvalidArgument("a gemm of halves of bytes needs whole vectors of them: ", p);
  }
  if (s.items < 1 || s.mr < 1 || s.nv < 1) return InvalidArgument("incomplete gemm schedule");
  return OkStatus();
}

}  // namespace kiln::codegen::gemm
