// Sums by the tiles of AMX: two of rows of A by two of columns of B at most, which four tiles of
// sums meet. Tiles are numbered by the instructions, as LLVM's allocation of registers does not
// know them.
#include <array>

#include "codegen/cpu/gemm_internal.h"
#include "llvm/IR/IntrinsicsX86.h"

namespace kiln::codegen::gemm {

using kernel::kTileRows;
using llvm::Value;

namespace {

constexpr int kLine = 64;  // bytes of a row of any tile
constexpr int kFirstOfA = 4, kFirstOfB = 6;

int NumberOfSums(int row, int column) { return 2 * row + column; }

// Tiles of rows, and the first row and the rows of one of them.
int TilesOfRows(const Emitter& e) { return (e.s.mr + kTileRows - 1) / kTileRows; }
int FirstRow(const Emitter& e, int tile) { return tile == 0 ? 0 : (e.s.mr + 1) / 2; }
int Rows(const Emitter& e, int tile) {
  if (TilesOfRows(e) == 1) return e.s.mr;
  return tile == 0 ? (e.s.mr + 1) / 2 : e.s.mr / 2;
}

Value* Tile(Emitter& e, int number) { return e.b.getInt8(static_cast<uint8_t>(number)); }

void Load(Emitter& e, int number, Value* at, Value* stride) {
  e.b.CreateIntrinsic(llvm::Intrinsic::x86_tileloadd64, {}, {Tile(e, number), at, stride});
}

// Where the sums of two tiles are in memory, and from row to row.
Value* PlaceOfSums(Emitter& e, Value* sums, int row, int column) {
  return e.Offset(sums, int64_t{FirstRow(e, row)} * e.s.nv * kLine + column * kLine);
}
Value* StrideOfColumns(Emitter& e) { return e.Int(int64_t{e.s.nv} * kLine); }

llvm::Intrinsic::ID ProductOf(const Emitter& e) {
  if (e.s.unit == kernel::GemmUnit::kBf16Tile) return llvm::Intrinsic::x86_tdpbf16ps;
  if (e.s.unit == kernel::GemmUnit::kF16Tile) return llvm::Intrinsic::x86_tdpfp16ps;
  const bool a = IsSigned(e.p.FactorOfA()), b = IsSigned(e.p.FactorOfB());
  if (a) return b ? llvm::Intrinsic::x86_tdpbssd : llvm::Intrinsic::x86_tdpbsud;
  return b ? llvm::Intrinsic::x86_tdpbusd : llvm::Intrinsic::x86_tdpbuud;
}

}  // namespace

void EmitTileSizes(Emitter& e) {
  // The palette, at 16 the bytes of a row of each tile (of 16 bits), at 48 its rows.
  std::array<uint8_t, 64> sizes = {1};
  auto set = [&](int number, int rows) {
    sizes[static_cast<size_t>(16 + 2 * number)] = kLine;
    sizes[static_cast<size_t>(48 + number)] = static_cast<uint8_t>(rows);
  };
  for (int row = 0; row < TilesOfRows(e); ++row) {
    set(kFirstOfA + row, Rows(e, row));
    for (int column = 0; column < e.s.nv; ++column) {
      set(NumberOfSums(row, column), Rows(e, row));
      set(kFirstOfB + column, kernel::kTileSteps);
    }
  }
  llvm::Constant* bytes = llvm::ConstantDataVector::get(e.b.getContext(), sizes);
  llvm::AllocaInst* memory = e.b.CreateAlloca(bytes->getType());
  memory->setAlignment(llvm::Align(kLine));
  e.b.CreateAlignedStore(bytes, memory, llvm::Align(kLine));
  e.b.CreateIntrinsic(llvm::Intrinsic::x86_ldtilecfg, {}, {memory});
}

void EmitTileRelease(Emitter& e) { e.b.CreateIntrinsic(llvm::Intrinsic::x86_tilerelease, {}, {}); }

void EmitTileBegin(Emitter& e, Value* sums, bool add) {
  for (int row = 0; row < TilesOfRows(e); ++row) {
    for (int column = 0; column < e.s.nv; ++column) {
      const int number = NumberOfSums(row, column);
      if (add) {
        Load(e, number, PlaceOfSums(e, sums, row, column), StrideOfColumns(e));
      } else {
        e.b.CreateIntrinsic(llvm::Intrinsic::x86_tilezero, {}, {Tile(e, number)});
      }
    }
  }
}

void EmitTileStep(Emitter& e, const TileOperands& o, Value* a, Value* b) {
  for (int column = 0; column < e.s.nv; ++column) {
    Load(e, kFirstOfB + column, e.Offset(b, column * kLine), StrideOfColumns(e));
  }
  for (int row = 0; row < TilesOfRows(e); ++row) {
    Load(e, kFirstOfA + row, e.Offset(a, e.Scale(o.a_m, FirstRow(e, row))), o.a_m);
    for (int column = 0; column < e.s.nv; ++column) {
      e.b.CreateIntrinsic(ProductOf(e), {},
                          {Tile(e, NumberOfSums(row, column)), Tile(e, kFirstOfA + row),
                           Tile(e, kFirstOfB + column)});
    }
  }
}

void EmitTileEnd(Emitter& e, Value* sums) {
  for (int row = 0; row < TilesOfRows(e); ++row) {
    for (int column = 0; column < e.s.nv; ++column) {
      e.b.CreateIntrinsic(llvm::Intrinsic::x86_tilestored64, {},
                          {Tile(e, NumberOfSums(row, column)), PlaceOfSums(e, sums, row, column),
                           StrideOfColumns(e)});
    }
  }
}

}  // namespace kiln::codegen::gemm
