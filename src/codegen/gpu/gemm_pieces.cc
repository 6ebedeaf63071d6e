#include <algorithm>

#include "codegen/gpu/gemm.h"

namespace kiln::codegen {

using kernel::Node;
using kernel::StageId;
using kernel::VariableId;
using llvm::Value;

// The stage whose factors come in pieces.
constexpr StageId kSums(0);

GemmPieces::GemmPieces(GpuEmitter& e, const kernel::GpuPiece& piece,
                       const std::vector<VariableId>& points, const std::vector<VariableId>& inner,
                       int width)
    : e_(e),
      b_(e.b()),
      piece_(piece),
      node_(e.kernel().stages.front().nodes[piece.node]),
      points_(points),
      inner_(inner),
      width_(width),
      depth_(e.schedule().gemm.k),
      side_(piece.along_k != piece.reads_along_k && ByteWidth(piece.type) == 1 && piece.lanes == 4
                ? 4
                : 1),
      extent_(e.kernel().PointsOf(points)),
      k_(e.kernel().PointsOf(inner)),
      steps_((width * depth_ / (piece.lanes * side_) + e.launch().threads - 1) /
             e.launch().threads) {
  // Elements loaded through registers must not be read beyond the ends.
  const bool is_plain =
      node_.kind == Node::Kind::kLoad && !node_.guard.valid() && node_.type == piece_.type;
  const bool has_edges = extent_ % width_ != 0 || k_ % depth_ != 0;
  if (piece_.copied || (is_plain && !has_edges)) {
    point_stride_ = kernel::GpuStrideOf(e.kernel(), node_.index, points_);
    k_stride_ = kernel::GpuStrideOf(e.kernel(), node_.index, inner_);
    if (!point_stride_ || !k_stride_) point_stride_ = k_stride_ = std::nullopt;
  }
}

// Neighbouring threads are along the contiguous dimension.
GemmPieces::Place GemmPieces::PlaceOf(int step) {
  const int threads = e_.launch().threads;
  const int fast = piece_.reads_along_k ? depth_ : width_, row = fast / piece_.lanes;
  const int count = width_ * depth_ / (piece_.lanes * side_);
  Value* i = e_.thread();
  Value *in_row = nullptr, *slow = nullptr;
  if (threads % row == 0) {
    // The same place in other rows.
    in_row = b_.CreateURem(i, e_.Int(row));
    slow = b_.CreateAdd(b_.CreateUDiv(i, e_.Int(row)), e_.Int(int64_t{step} * (threads / row)));
  } else {
    i = b_.CreateAdd(i, e_.Int(int64_t{step} * threads));
    in_row = b_.CreateURem(i, e_.Int(row));
    slow = b_.CreateUDiv(i, e_.Int(row));
  }
  in_row = b_.CreateMul(in_row, e_.Int(piece_.lanes));
  slow = b_.CreateMul(slow, e_.Int(side_));
  Value* active = nullptr;
  if ((step + 1) * threads > count) {
    active = b_.CreateICmpSLT(e_.thread(), e_.Int(count - int64_t{step} * threads));
  }
  return piece_.reads_along_k ? Place{slow, in_row, active} : Place{in_row, slow, active};
}

void GemmPieces::WhereActive(const Place& place, const std::function<void()>& body) {
  if (place.active) {
    e_.If(place.active, body);
  } else {
    body();
  }
}

void GemmPieces::Begin(Value* first_point, Value* first_k) {
  first_point_ = first_point;
  places_.clear();
  inside_.clear();
  for (int s = 0; s < steps_; ++s) {
    places_.push_back(PlaceOf(s));
    Value* point = b_.CreateAdd(first_point, places_[s].point);
    inside_.push_back(extent_ % width_ == 0 ? nullptr : b_.CreateICmpSLT(point, e_.Int(extent_)));
  }
  if (!point_stride_) return;
  // Addresses are computed once, and advanced from piece to piece. Those beyond the ends are
  // computed, but not read.
  e_.Forget(kSums);
  for (VariableId v : points_) e_.SetVariable(v, e_.Int(0));
  for (VariableId v : inner_) e_.SetVariable(v, e_.Int(0));
  Value* base = e_.Address(kSums, node_.param, node_.index);
  Value* at = b_.CreateAdd(
      b_.CreateMul(b_.CreateAdd(first_point, places_[0].point), e_.Int(*point_stride_)),
      b_.CreateMul(b_.CreateAdd(first_k, places_[0].k), e_.Int(*k_stride_)));
  base = b_.CreateGEP(MemoryType(e_.context(), node_.type), base, at);
  if (!from_) from_ = e_.NewSlot(base->getType());
  b_.CreateStore(base, from_);
}

Value* GemmPieces::InShared(const Place& place, Value* base) {
  Value* row = piece_.along_k ? place.point : place.k;
  Value* column = piece_.along_k ? place.k : place.point;
  Value* at = b_.CreateAdd(b_.CreateMul(row, e_.Int(piece_.pitch)), column);
  return b_.CreateGEP(MemoryType(e_.context(), piece_.type), base, at);
}

void GemmPieces::Fetch(Value* k, Value* to) {
  for (int s = 0; s < steps_; ++s) {
    WhereActive(places_[s], [&] {
      if (piece_.copied) return Copy(s, k, to);
      for (int d = 0; d < side_; ++d) {
        Value* packed = Load(s, d, k);
        const auto slot = static_cast<size_t>(s * side_ + d);
        if (held_.size() <= slot) held_.push_back(e_.NewSlot(packed->getType()));
        b_.CreateStore(packed, held_[slot]);
      }
    });
  }
  if (!from_) return;
  Value* next = b_.CreateGEP(MemoryType(e_.context(), node_.type),
                             b_.CreateLoad(from_->getAllocatedType(), from_),
                             b_.getInt64(static_cast<uint64_t>(*k_stride_ * depth_)));
  b_.CreateStore(next, from_);
}

// Where the access begins that is d steps of k behind a place, by the address that goes along.
Value* GemmPieces::From(int step, int d) {
  const Place& place = places_[step];
  llvm::Type* type = MemoryType(e_.context(), node_.type);
  Value* from = b_.CreateLoad(from_->getAllocatedType(), from_);
  const int64_t row = (piece_.reads_along_k ? depth_ : width_) / piece_.lanes;
  const int64_t threads = e_.launch().threads;
  const int64_t slow = piece_.reads_along_k ? *point_stride_ : *k_stride_ * side_;
  int64_t offset = d * *k_stride_;
  if (threads % row == 0) {
    offset += step * (threads / row) * slow;
  } else if (step > 0) {
    Value* at = b_.CreateAdd(
        b_.CreateMul(b_.CreateSub(place.point, places_[0].point), e_.Int(*point_stride_)),
        b_.CreateMul(b_.CreateSub(place.k, places_[0].k), e_.Int(*k_stride_)));
    from = b_.CreateGEP(type, from, at);
  }
  return b_.CreateConstGEP1_64(type, from, static_cast<uint64_t>(offset));
}

void GemmPieces::Copy(int step, Value* k, Value* to) {
  const Place& place = places_[step];
  const int size = piece_.lanes * static_cast<int>(ByteWidth(piece_.type));
  Value* inside = inside_[step];
  if (k_ % depth_ != 0) {
    Value* before = b_.CreateICmpSLT(b_.CreateAdd(k, place.k), e_.Int(k_));
    inside = inside ? b_.CreateAnd(inside, before) : before;
  }
  Value* from = nullptr;
  if (from_) {
    from = From(step, 0);
  } else {
    GpuEmitter::Scope scope(e_);
    e_.Forget(kSums);
    e_.Delinearise(b_.CreateAdd(first_point_, place.point), points_);
    e_.Delinearise(b_.CreateAdd(k, place.k), inner_);
    from = e_.Address(kSums, node_.param, node_.index);
  }
  Value* bytes = b_.getInt32(static_cast<uint32_t>(size));
  if (inside) bytes = b_.CreateSelect(inside, bytes, b_.getInt32(0));
  e_.gpu().CopyAsync(InShared(place, to), from, size, bytes);
}

// The elements as they will be in shared memory: zeros beyond the end of k, and anything beyond the
// last point.
Value* GemmPieces::Load(int step, int d, Value* k) {
  const Place& place = places_[step];
  const int lanes = piece_.lanes;
  if (from_) return e_.LoadPacked(From(step, d), node_.type, lanes);
  GpuEmitter::Scope scope(e_);
  e_.Forget(kSums);
  Value* point = b_.CreateAdd(first_point_, place.point);
  const int point_lanes = piece_.reads_along_k ? 1 : lanes;
  if (Value* inside = inside_[step]) {
    point = b_.CreateSelect(inside, point, e_.Int(extent_ - point_lanes));
  }
  Value* inner = b_.CreateAdd(k, b_.CreateAdd(place.k, e_.Int(d)));
  Value* before = nullptr;
  if (k_ % depth_ != 0) {
    before = b_.CreateICmpSLT(inner, e_.Int(k_));
    inner = b_.CreateSelect(before, inner, e_.Int(k_ - (piece_.reads_along_k ? lanes : 1)));
  }
  e_.Delinearise(point, points_);
  e_.Delinearise(inner, inner_);
  Value* packed = nullptr;
  const bool plain =
      node_.kind == Node::Kind::kLoad && !node_.guard.valid() && node_.type == piece_.type;
  if (plain) {
    // Lanes of a plain load are a vector, or one.
    packed = e_.LoadPacked(e_.Address(kSums, node_.param, node_.index), node_.type, lanes);
  } else {
    std::vector<Value*> values;
    const std::vector<VariableId>& along = piece_.reads_along_k ? inner_ : points_;
    e_.ForLanes(
        kSums, along.back(), lanes, [&](int) { values.push_back(e_.At(kSums, piece_.node)); },
        piece_.node);
    packed = e_.Pack(values, piece_.type);
  }
  if (before) {
    packed = b_.CreateSelect(before, packed, llvm::Constant::getNullValue(packed->getType()));
  }
  return packed;
}

// Four words of four bytes, turned.
static std::vector<Value*> Turned(Builder& b, const std::vector<Value*>& words) {
  auto mask = [&](Value* v, uint32_t bits) { return b.CreateAnd(v, b.getInt32(bits)); };
  std::vector<Value*> turned(4);
  std::vector<Value*> even, odd;  // pairs of bytes 0 and 2, of 1 and 3
  for (size_t i = 0; i < 4; i += 2) {
    Value *first = words[i], *second = words[i + 1];
    even.push_back(b.CreateOr(mask(first, 0x00ff00ff), b.CreateShl(mask(second, 0x00ff00ff), 8)));
    odd.push_back(b.CreateOr(mask(b.CreateLShr(first, 8), 0x00ff00ff), mask(second, 0xff00ff00)));
  }
  for (size_t i = 0; i < 2; ++i) {
    const std::vector<Value*>& pairs = i == 0 ? even : odd;
    turned[i] = b.CreateOr(mask(pairs[0], 0xffff), b.CreateShl(pairs[1], 16));
    turned[i + 2] = b.CreateOr(b.CreateLShr(pairs[0], 16), mask(pairs[1], 0xffff0000));
  }
  return turned;
}

void GemmPieces::Put(Value* to) {
  if (piece_.copied) return;
  for (int s = 0; s < steps_; ++s) {
    const Place& place = places_[s];
    WhereActive(place, [&] {
      std::vector<Value*> packed;
      for (int d = 0; d < side_; ++d) {
        llvm::AllocaInst* slot = held_[s * side_ + d];
        packed.push_back(b_.CreateLoad(slot->getAllocatedType(), slot));
      }
      Value* address = InShared(place, to);
      auto row = [&](size_t i) {
        return b_.CreateConstGEP1_64(MemoryType(e_.context(), piece_.type), address,
                                     i * static_cast<uint64_t>(piece_.pitch));
      };
      if (side_ > 1) {
        std::vector<Value*> turned = Turned(b_, packed);
        for (size_t i = 0; i < turned.size(); ++i) e_.StorePacked(turned[i], row(i));
      } else if (piece_.along_k == piece_.reads_along_k || piece_.lanes == 1) {
        e_.StorePacked(packed[0], address);
      } else {
        // Neighbours go to neighbouring rows.
        std::vector<Value*> values = e_.Unpack(packed[0], piece_.type, piece_.lanes);
        for (size_t i = 0; i < values.size(); ++i) e_.Store(values[i], row(i), piece_.type);
      }
    });
  }
}

}  // namespace kiln::codegen
