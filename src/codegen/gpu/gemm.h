// The parts of which a gemm's code is made.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <vector>

#include "codegen/gpu/emitter.h"
#include "kernel/schedule/gpu/gemm.h"

namespace kiln::codegen {

// Brings the pieces of one factor into shared memory: by asynchronous copies, or by way of
// registers, in two steps between which the block multiplies.
class GemmPieces {
 public:
  using Value = llvm::Value;

  // `points` are the factor's own variables, of which the tile has `width` points.
  GemmPieces(GpuEmitter& e, const kernel::GpuPiece& piece,
             const std::vector<kernel::VariableId>& points,
             const std::vector<kernel::VariableId>& inner, int width);

  bool copied() const { return piece_.copied; }
  // Outside of the loop: the tile's first point, and where on k the pieces begin.
  void Begin(Value* first_point, Value* first_k);
  // The piece that begins at `k`, which is the next one: copied to `to`, or into registers.
  void Fetch(Value* k, Value* to);
  // From registers to `to`; nothing where it is copied.
  void Put(Value* to);

 private:
  struct Place {
    Value *point, *k;  // within the tile
    Value* active;     // whether there is such a place; null for always
  };
  Place PlaceOf(int step);
  void Copy(int step, Value* k, Value* to);
  Value* From(int step, int d);
  Value* Load(int step, int d, Value* k);
  Value* InShared(const Place& place, Value* base);
  void WhereActive(const Place& place, const std::function<void()>& body);

  GpuEmitter& e_;
  Builder& b_;
  const kernel::GpuPiece& piece_;
  const kernel::Node& node_;
  const std::vector<kernel::VariableId>&points_, &inner_;
  const int width_, depth_;  // of the tile
  // Bytes that lie across k are turned by squares: a thread brings so many steps of k at once.
  const int side_;
  const int64_t extent_, k_;  // of the gemm
  const int steps_;           // accesses of a thread
  std::optional<int64_t> point_stride_, k_stride_;
  Value* first_point_ = nullptr;
  std::vector<Place> places_;
  std::vector<Value*> inside_;           // by step: whether its point is one of the gemm's
  llvm::AllocaInst* from_ = nullptr;     // where the next access of step 0 begins
  std::vector<llvm::AllocaInst*> held_;  // by step: what is on its way
};

// Multiplies pieces in shared memory, and keeps the sums.
class GemmSums {
 public:
  using Value = llvm::Value;

  virtual ~GemmSums() = default;
  // Sets the sums to nothing. The first pieces of both factors are there.
  virtual void Begin(Value* x, Value* y) = 0;
  // Adds the products of two pieces. `turn` sees to it that the next ones, `next_x` and `next_y`,
  // are there; after it the pieces are not read any more, but for those that are next as well.
  virtual void Multiply(Value* x, Value* y, Value* next_x, Value* next_y,
                        const std::function<void()>& turn) = 0;
  // Writes the sums of one pass to shared memory, rows of one pass together.
  virtual void Write(int pass, Value* to) = 0;
  // The tile's rows come in segments, each of which has the same share in every pass.
  virtual int segment() const = 0;
};

std::unique_ptr<GemmSums> MakeFmaSums(GpuEmitter& e);
std::unique_ptr<GemmSums> MakeMmaSums(GpuEmitter& e);

}  // namespace kiln::codegen
