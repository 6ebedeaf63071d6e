#include "program/library_gemm.h"

#include "base/strings.h"
#include "program/program.h"

namespace kiln::program {
namespace {

std::string TextOf(const LibraryMatrix& matrix, bool is_factor, int64_t batch) {
  std::string text = is_factor ? matrix.along_k ? " along k by " : " across k by " : " by ";
  text += Cat(matrix.stride);
  if (batch > 1) text += Cat(" and ", matrix.batch_stride);
  if (matrix.alignment < kAlignment) text += Cat(" at ", matrix.alignment, " bytes");
  return text;
}

}  // namespace

std::string LibraryGemm::ToString() const {
  std::string text =
      Cat(batch > 1 ? Cat(batch, " x ") : "", m, " x ", n, " x ", k, ", ", TypeName(factor), " in ",
          tf32 ? "tf32" : TypeName(sum), " to ", TypeName(out));
  text += Cat(", x", TextOf(x, true, batch), ", y", TextOf(y, true, batch), ", out",
              TextOf(out_matrix, false, batch));
  return text;
}

}  // namespace kiln::program
