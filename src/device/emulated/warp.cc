#include "device/emulated/warp.h"

#include <bit>
#include <cstring>

#include "tensor/small_float.h"

namespace kiln::device {
namespace {

using Lanes = kiln_emulated_thread* const*;

// The value that lane `lane` reads from word 0 of another one.
template <typename Source>
void Shuffle(Lanes lanes, Source source) {
  uint32_t values[kWarpLanes];
  for (uint32_t i = 0; i < kWarpLanes; ++i) values[i] = lanes[i]->words[0];
  for (uint32_t i = 0; i < kWarpLanes; ++i) {
    uint32_t from = source(i, lanes[i]->words[1] % kWarpLanes);
    lanes[i]->words[0] = values[from < kWarpLanes ? from : i];
  }
}

void Ballot(Lanes lanes) {
  uint32_t bits = 0;
  for (uint32_t i = 0; i < kWarpLanes; ++i) bits |= (lanes[i]->words[0] & 1) << i;
  for (uint32_t i = 0; i < kWarpLanes; ++i) lanes[i]->words[0] = bits;
}

// Elements of fragments, as in PTX: in consecutive registers, several per register.
struct Half {
  static constexpr int kPerRegister = 2;
  using Sum = float;
  static float Get(const uint32_t* words, int i) {
    return static_cast<float>(
        Float16::FromBits(static_cast<uint16_t>(words[i / 2] >> (16 * (i % 2)))));
  }
};
struct Bfloat {
  static constexpr int kPerRegister = 2;
  using Sum = float;
  static float Get(const uint32_t* words, int i) {
    return std::bit_cast<float>(i % 2 ? words[i / 2] & 0xffff0000u : words[i / 2] << 16);
  }
};
// Hardware ignores the low bits.
struct Tf32 {
  static constexpr int kPerRegister = 1;
  using Sum = float;
  static float Get(const uint32_t* words, int i) {
    return std::bit_cast<float>(words[i] & 0xffffe000u);
  }
};
// Sums wrap around.
struct Byte {
  static constexpr int kPerRegister = 4;
  using Sum = uint32_t;
  static uint32_t Get(const uint32_t* words, int i) {
    return static_cast<uint32_t>(static_cast<int8_t>(words[i / 4] >> (8 * (i % 4))));
  }
};
struct Double {
  static constexpr int kPerRegister = 1;
  using Sum = double;
  static double Get(const uint32_t* words, int i) {
    double value;
    std::memcpy(&value, words + 2 * i, sizeof(value));
    return value;
  }
};

// d = a b + c of m x n x k. Fragments of a are blocks of `per_lane` adjacent elements of a row, 8
// rows by 4 blocks for the 32 lanes; first the blocks below, then those beside. Fragments of b are
// the same for its columns, and fragments of c for its rows, two elements each.
template <typename Element, int m, int n, int k, int per_lane>
void Product(Lanes lanes) {
  using Sum = typename Element::Sum;
  constexpr int kWords = sizeof(Sum) / sizeof(uint32_t);
  constexpr int kWide = 4 * per_lane;  // columns of a block of a
  constexpr int kA = m * k / 32, kB = k * n / 32, kC = m * n / 32;
  constexpr int kAWords = kA / Element::kPerRegister * kWords;
  constexpr int kBWords = kB / Element::kPerRegister * kWords;
  Sum a[m][k], b[k][n], d[m][n];
  for (uint32_t lane = 0; lane < kWarpLanes; ++lane) {
    const uint32_t* words = lanes[lane]->words;
    auto row = static_cast<int>(lane / 4), column = static_cast<int>(lane % 4);
    for (int i = 0; i < kA; ++i) {
      int block = i / per_lane, below = block % (m / 8), beside = block / (m / 8);
      a[8 * below + row][kWide * beside + column * per_lane + i % per_lane] =
          Element::Get(words, i);
    }
    for (int i = 0; i < kB; ++i) {
      b[kWide * (i / per_lane) + column * per_lane + i % per_lane][row] =
          Element::Get(words + kAWords, i);
    }
    for (int i = 0; i < kC; ++i) {
      std::memcpy(&d[8 * (i / 2) + row][2 * column + i % 2], words + kAWords + kBWords + kWords * i,
                  sizeof(Sum));
    }
  }
  for (int i = 0; i < m; ++i) {
    for (int l = 0; l < k; ++l) {
      for (int j = 0; j < n; ++j) d[i][j] += a[i][l] * b[l][j];
    }
  }
  for (uint32_t lane = 0; lane < kWarpLanes; ++lane) {
    auto row = static_cast<int>(lane / 4), column = static_cast<int>(lane % 4);
    for (int i = 0; i < kC; ++i) {
      std::memcpy(lanes[lane]->words + kWords * i, &d[8 * (i / 2) + row][2 * column + i % 2],
                  sizeof(Sum));
    }
  }
}

void LoadMatrix(Lanes lanes, bool transposed) {
  uint16_t elements[4][8][8];
  for (uint32_t lane = 0; lane < kWarpLanes; ++lane) {
    const void* row;
    std::memcpy(&row, lanes[lane]->words, sizeof(row));
    std::memcpy(elements[lane / 8][lane % 8], row, sizeof(elements[0][0]));
  }
  for (uint32_t lane = 0; lane < kWarpLanes; ++lane) {
    uint32_t row = lane / 4, column = 2 * (lane % 4);
    for (int i = 0; i < 4; ++i) {
      uint32_t low = transposed ? elements[i][column][row] : elements[i][row][column];
      uint32_t high = transposed ? elements[i][column + 1][row] : elements[i][row][column + 1];
      lanes[lane]->words[i] = low | high << 16;
    }
  }
}

}  // namespace

void RunWarpOperation(int operation, Lanes lanes) {
  switch (operation) {
    case KILN_WARP_SHUFFLE_DOWN:
      return Shuffle(lanes, [](uint32_t lane, uint32_t by) { return lane + by; });
    case KILN_WARP_SHUFFLE_UP:
      return Shuffle(lanes, [](uint32_t lane, uint32_t by) { return lane - by; });
    case KILN_WARP_SHUFFLE_XOR:
      return Shuffle(lanes, [](uint32_t lane, uint32_t by) { return lane ^ by; });
    case KILN_WARP_SHUFFLE_INDEX:
      return Shuffle(lanes, [](uint32_t, uint32_t by) { return by; });
    case KILN_WARP_BALLOT:
      return Ballot(lanes);
    case KILN_WARP_MMA_M16N8K8_F16:
      return Product<Half, 16, 8, 8, 2>(lanes);
    case KILN_WARP_MMA_M16N8K16_F16:
      return Product<Half, 16, 8, 16, 2>(lanes);
    case KILN_WARP_MMA_M16N8K16_BF16:
      return Product<Bfloat, 16, 8, 16, 2>(lanes);
    case KILN_WARP_MMA_M16N8K8_TF32:
      return Product<Tf32, 16, 8, 8, 1>(lanes);
    case KILN_WARP_MMA_M16N8K32_S8:
      return Product<Byte, 16, 8, 32, 4>(lanes);
    case KILN_WARP_MMA_M8N8K4_F64:
      return Product<Double, 8, 8, 4, 1>(lanes);
    case KILN_WARP_LOAD_MATRIX_X4:
      return LoadMatrix(lanes, false);
    case KILN_WARP_LOAD_MATRIX_X4_TRANS:
      return LoadMatrix(lanes, true);
    default:
      return;
  }
}

const char* WarpOperationName(int operation) {
  constexpr const char* kNames[] = {"warp_barrier",     "shuffle_down",        "shuffle_up",
                                    "shuffle_xor",      "shuffle_index",       "ballot",
                                    "mma_m16n8k8_f16",  "mma_m16n8k16_f16",    "mma_m16n8k16_bf16",
                                    "mma_m16n8k8_tf32", "mma_m16n8k32_s8",     "mma_m8n8k4_f64",
                                    "load_matrix_x4",   "load_matrix_x4_trans"};
  return kNames[operation];
}

}  // namespace kiln::device
