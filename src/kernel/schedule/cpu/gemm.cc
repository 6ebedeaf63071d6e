#include "kernel/schedule/cpu/gemm.h"

#include <algorithm>
#include <cmath>

namespace kiln::kernel {
namespace {

int64_t CeilDiv(int64_t a, int64_t b) { return (a + b - 1) / b; }
int64_t RoundUp(int64_t a, int64_t b) { return CeilDiv(a, b) * b; }

// Whether a tile's accumulators, vectors of B and a splat of A fit the registers.
bool Fits(const target::Cpu& cpu, bool fma, int mr, int nv) {
  int registers = mr * nv;
  if (mr == 1) {
    registers += 1;  // vectors of B are read from memory by the one instruction that uses them
  } else if (nv == 1) {
    registers += cpu.vector_bytes == 64 ? 1 : 2;  // AVX-512 splats as it reads
  } else {
    registers += nv + 1;
  }
  if (!fma) registers += 1;
  return registers <= cpu.vector_registers;
}

// The most rows that fit beside nv vectors, 0 when not even one does.
int MostRows(const target::Cpu& cpu, bool fma, int nv) {
  int mr = 0;
  while (mr < 30 && Fits(cpu, fma, mr + 1, nv)) ++mr;
  return mr;
}

}  // namespace

bool HasGemm(ElementType type) {
  switch (type) {
    case ElementType::kF32:
    case ElementType::kF64:
    case ElementType::kS32:
    case ElementType::kU32:
    case ElementType::kS64:
    case ElementType::kU64:
      return true;
    default:
      return false;
  }
}

GemmProblem GemmProblem::RowMajor(ElementType type, int64_t m, int64_t n, int64_t k,
                                  int64_t batch) {
  GemmProblem p;
  p.type = type;
  p.m = m;
  p.n = n;
  p.k = k;
  p.a_m = k;
  p.b_k = n;
  p.c_m = n;
  if (batch != 1) p.batch.push_back({.size = batch, .a = m * k, .b = k * n, .c = m * n});
  return p;
}

GemmProblem GemmProblem::Transposed() const {
  GemmProblem t = *this;
  std::swap(t.m, t.n);
  t.a_m = b_n;
  t.a_k = b_k;
  t.b_k = a_k;
  t.b_n = a_m;
  std::swap(t.c_m, t.c_n);
  for (GemmBatchDimension& d : t.batch) std::swap(d.a, d.b);
  t.b_constant = false;
  return t;
}

int64_t GemmProblem::BatchSize() const {
  int64_t size = 1;
  for (const GemmBatchDimension& d : batch) size *= d.size;
  return size;
}

std::string GemmProblem::ToString() const {
  std::string out = Cat(TypeName(type), " ", m, "x", n, "x", k, " a[", a_m, ",", a_k, "] b[", b_k,
                        ",", b_n, "] c[", c_m, ",", c_n, "]");
  for (const GemmBatchDimension& d : batch) {
    out += Cat(" batch ", d.size, " [", d.a, ",", d.b, ",", d.c, "]");
  }
  if (b_constant) out += " b constant";
  return out;
}

std::string GemmSchedule::ToString() const {
  std::string out = kind == GemmKind::kOuter ? Cat("outer ", mr, "x", nv, "v", lanes)
                                             : Cat("inner ", mr, "x", nr, " over ", nv, "v", lanes);
  switch (b) {
    case GemmB::kInPlace:
      break;
    case GemmB::kPackPanel:
      out += " pack-panel";
      break;
    case GemmB::kPrepacked:
      out += " prepacked";
      break;
  }
  if (pack_a) out += " pack-a";
  out += Cat(" tiles ", m_tiles, "/", block_m, " panels ", n_panels, "/", block_n, " k ", k_blocks,
             "*", kc, panels_inner ? " panels-inner" : "", items_along_m ? " items-along-m" : "",
             " items ", items, " scratch ", scratch_bytes);
  return out;
}

void CompleteGemmSchedule(const target::Cpu& cpu, const GemmProblem& p, GemmSchedule& s) {
  const int64_t bytes = ByteWidth(p.type);
  const int64_t vectors = CeilDiv(p.n, s.lanes);
  s.mr = static_cast<int>(std::min<int64_t>(s.mr, p.m));
  s.nv = static_cast<int>(std::min<int64_t>(s.nv, vectors));
  s.m_tiles = CeilDiv(p.m, s.mr);
  s.n_panels = CeilDiv(vectors, s.nv);
  s.block_m = std::clamp<int64_t>(s.block_m, 1, s.m_tiles);
  s.block_n = std::clamp<int64_t>(s.block_n, 1, s.n_panels);
  s.kc = std::clamp<int64_t>(s.kc, 1, std::max<int64_t>(p.k, 1));
  if (s.kind == GemmKind::kInner) s.kc = std::max<int64_t>(p.k, 1);
  s.k_blocks = std::max<int64_t>(1, CeilDiv(p.k, s.kc));
  // A shorter last block runs the same loop: its count of steps must divide evenly too.
  if (s.k_blocks > 1 && (s.kc % s.unroll != 0 || p.k % s.unroll != 0)) s.unroll = 1;
  s.m_blocks = CeilDiv(s.m_tiles, s.block_m);
  s.n_blocks = CeilDiv(s.n_panels, s.block_n);
  s.items = p.BatchSize() * s.m_blocks * s.n_blocks;
  s.a_shared = std::all_of(p.batch.begin(), p.batch.end(), [](auto& d) { return d.a == 0; });
  s.b_shared = std::all_of(p.batch.begin(), p.batch.end(), [](auto& d) { return d.b == 0; });

  const int64_t row_bytes = s.nv * s.lanes * bytes;
  s.pack_a_items = s.pack_a ? s.m_tiles * (s.a_shared ? 1 : p.BatchSize()) : 0;
  s.packed_a_bytes = RoundUp(s.pack_a_items * s.mr * p.k * bytes, 64);
  const int64_t b_batches = s.b_shared ? 1 : p.BatchSize();
  s.pack_b_items = s.b == GemmB::kPrepacked ? b_batches * s.k_blocks * s.n_panels : 0;
  s.packed_b_bytes =
      s.b == GemmB::kPrepacked ? RoundUp(b_batches * s.n_panels * p.k * row_bytes, 64) : 0;
  s.panel_bytes = s.b == GemmB::kPackPanel ? RoundUp(s.kc * row_bytes, 64) : 0;
  s.slot_bytes = s.panel_bytes * (s.panels_inner ? s.block_n : 1);
  if (s.k_blocks > 1) s.slot_bytes += RoundUp(s.block_m * s.block_n * s.mr * row_bytes, 64);
  s.scratch_bytes = s.slot_bytes * s.items;
  const double flops = 2.0 * static_cast<double>(p.BatchSize()) * static_cast<double>(p.m) *
                       static_cast<double>(p.n) * static_cast<double>(p.k);
  // Below some ten microseconds of work a second thread costs more than it brings.
  s.max_tasks = std::clamp<int64_t>(static_cast<int64_t>(flops / 1e5), 1, s.items);
}

Result<GemmSchedule> ChooseGemmSchedule(const target::Cpu& cpu, const GemmProblem& p) {
  if (!HasGemm(p.type)) return Unimplemented("gemm of ", TypeName(p.type));
  if (p.m < 1 || p.n < 1 || p.k < 0 || p.BatchSize() < 1) {
    return InvalidArgument("gemm of no elements: ", p);
  }
  GemmSchedule s;
  s.lanes = static_cast<int>(cpu.vector_bytes / ByteWidth(p.type));
  s.fma = cpu.has_fma;
  const int64_t vectors = CeilDiv(p.n, s.lanes);
  s.nv = static_cast<int>(std::min<int64_t>(vectors, 2));
  s.mr = MostRows(cpu, s.fma, s.nv);
  s.mr = static_cast<int>(CeilDiv(p.m, CeilDiv(p.m, s.mr)));
  s.kc = p.k;
  s.block_m = 24;
  s.block_n = 1;
  if (p.b_constant) {
    s.b = GemmB::kPrepacked;
  } else if (p.b_n != 1 && p.n != 1) {
    s.b = GemmB::kPackPanel;
  }
  s.unroll = 2;
  CompleteGemmSchedule(cpu, p, s);
  return s;
}

bool PrefersTransposedGemm(const target::Cpu& cpu, const GemmProblem& problem) { return false; }

}  // namespace kiln::kernel
