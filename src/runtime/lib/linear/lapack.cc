#include "runtime/lib/linear/lapack.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <charconv>
#include <new>
#include <string>
#include <string_view>
#include <vector>

#include "base/stack.h"
#include "base/strings.h"
#include "runtime/lib/attributes.h"
#include "runtime/lib/linear/factors.h"
#include "runtime/lib/linear/lanes.h"
#include "runtime/lib/linear/lapack_call.h"
#include "runtime/lib/parallel.h"

namespace kiln::runtime::lib {
namespace {

using linear::Array;
using linear::Kernel;
using linear::Kernels;
using linear::LaneKernel;
using linear::Letters;

// Matrices of a piece of a batch have together about this much work, n^3, where there are so many.
constexpr double kWorkOfPiece = 1 << 15;
constexpr int64_t kMostPieces = 16;
// Small matrices between two polls for cancellation, a multiple of those of a block of lanes.
constexpr int64_t kSmallBetweenPolls = 64;

// Words for arrays: the element type (T that of the first operand, R its real one, C its complex
// one, I s32), and a letter for each dimension behind the batch. Letters get values from operands;
// k is min(m, n), p is n - 1; u and w are m and n for all vectors, k for some, and any without
// them.
struct Form {
  std::string_view name;
  std::string_view operands, results;
  std::string_view complex_results;  // where these differ
  Kernels kernels;
};

std::span<const Form> Forms() {
  static const Form kForms[] = {
      {"geev", "Tnn", "Tn Tn Cnn Cnn I", "Tn Tnn Tnn I", linear::EigenKernels()},
      {"gees", "Tnn", "Tnn Tnn Tn Tn I I", "Tnn Tnn Tn I I", linear::SchurKernels()},
      {"gehrd", "Tnn", "Tnn Tp I", "", linear::HessenbergKernels()},
      {"geqp3", "Tmn In", "Tmn In Tk", "", linear::PivotedQrKernels()},
      {"geqrf", "Tmn", "Tmn Tk", "", linear::RealQr()},
      {"gesdd", "Tmn", "Tmn Rk Tmu Twn I", "", linear::SingularKernels(true)},
      {"gesvd", "Tmn", "Tmn Rk Tmu Twn I", "", linear::SingularKernels(false)},
      {"getrf", "Tmn", "Tmn Ik Im I", "", linear::RealLu()},
      {"gtsv", "Tn Tn Tn Tnr", "Tn Tn Tn Tnr I", "", linear::TridiagonalKernels()},
      {"orgqr", "Tmn Tt", "Tmn", "", linear::RealProductOfReflections()},
      {"ormqr",
       "Tqs Tt Tmn",
       "Tmn",
       "",
       {linear::RealByReflections(), linear::ReflectionsKernels().complex}},
      {"syevd", "Tnn", "Tnn Rn I", "", linear::SelfAdjointKernels()},
      {"sytrd", "Tnn", "Tnn Rn Rp Tp I", "", linear::ToTridiagonalKernels()},
  };
  return kForms;
}

// The values of letters for dimensions, -1 where there are none.
class Sizes {
 public:
  Sizes() { values_.fill(-1); }
  int64_t& operator[](char letter) { return values_[static_cast<size_t>(letter - 'a')]; }

  void Derive(const Letters& letters) {
    Sizes& at = *this;
    at['k'] = std::min(at['m'], at['n']);
    at['p'] = std::max<int64_t>(at['n'] - 1, 0);
    if (!letters.vectors) return;
    const bool all = letters.all;
    at['u'] = all ? at['m'] : at['k'];
    at['w'] = all ? at['n'] : at['k'];
  }

 private:
  std::array<int64_t, 26> values_;
};

ElementType TypeOf(char letter, ElementType type) {
  if (letter == 'I') return ElementType::kS32;
  if (letter == 'R') return PartOf(type);
  return letter == 'C' && !IsComplex(type) ? ComplexOf(type) : type;
}

// Whether shapes are of such words, for one batch; letters without values get these.
bool Match(std::string_view words, std::span<const Shape> shapes, ElementType type,
           std::span<const int64_t> batch, Sizes& sizes) {
  for (const Shape& shape : shapes) {
    const std::string_view word = words.substr(0, words.find(' '));
    words.remove_prefix(std::min(word.size() + 1, words.size()));
    const std::vector<int64_t> dims = shape.dims();
    if (word.empty() || shape.type() != TypeOf(word[0], type) ||
        dims.size() != batch.size() + word.size() - 1 ||
        !std::equal(batch.begin(), batch.end(), dims.begin())) {
      return false;
    }
    for (size_t d = 1; d < word.size(); ++d) {
      const int64_t size = dims[batch.size() + d - 1];
      int64_t& expected = sizes[word[d]];
      if (expected < 0) expected = size;
      if (expected != size) return false;
    }
  }
  return words.empty();
}

int64_t NumberOf(std::string_view attributes, std::string_view name, int64_t otherwise) {
  const std::string_view text = AttributeOf(attributes, name);
  int64_t number = otherwise;
  std::from_chars(text.data(), text.data() + text.size(), number);
  return number;
}

Letters LettersOf(std::string_view attributes, int64_t n) {
  Letters letters;
  auto is = [&](std::string_view name, std::string_view letter) {
    return AttributeOf(attributes, name) == letter;
  };
  letters.lower = !is("uplo", "U");
  letters.left = !is("left", "0");
  letters.transposed = is("transpose", "1");
  letters.all = is("mode", "A");
  letters.vectors = letters.all || is("mode", "S") || is("mode", "V");
  letters.left_vectors = is("compute_left", "V");
  letters.right_vectors = is("compute_right", "V");
  letters.low = NumberOf(attributes, "low", 1);
  letters.high = NumberOf(attributes, "high", n);
  return letters;
}

class Lapack : public Function {
 public:
  Lapack(Kernel kernel, LaneKernel lanes, const Letters& letters, const CallSignature& signature,
         size_t batch_rank)
      : kernel_(kernel), letters_(letters), operands_(signature.operands.size()) {
    double size = 1;
    for (const std::vector<Shape>* shapes : {&signature.operands, &signature.results}) {
      for (const Shape& shape : *shapes) {
        const std::vector<int64_t> dims = shape.dims();
        Array array{.type = shape.type(), .rows = 1, .columns = 1};
        if (dims.size() > batch_rank) array.rows = dims[batch_rank];
        if (dims.size() > batch_rank + 1) array.columns = dims[batch_rank + 1];
        size =
            std::max({size, static_cast<double>(array.rows), static_cast<double>(array.columns)});
        items_.push_back(array);
      }
    }
    const std::vector<int64_t> dims = signature.operands[0].dims();
    for (size_t d = 0; d < batch_rank; ++d) count_ *= dims[d];
    const double work = static_cast<double>(count_) * size * size * size / kWorkOfPiece;
    pieces_ = static_cast<int64_t>(std::clamp(work, 1.0, static_cast<double>(kMostPieces)));
    pieces_ = std::max<int64_t>(std::min(pieces_, count_), 1);
    if (size < linear::kSmall && count_ >= linear::kFewestInLanes) lanes_ = lanes;
  }

  Status Run(const kiln_frame* frame, void* const* args) const override {
    std::atomic<bool> failed{false};
    Letters letters = letters_;
    letters.frame = frame;
    ForEach(frame, pieces_, [&](int64_t piece) {
      const int64_t end = count_ * (piece + 1) / pieces_;
      auto run = [&] {
        const int64_t step = lanes_ ? kSmallBetweenPolls : 1;
        for (int64_t i = count_ * piece / pieces_; i < end && !IsCancelled(frame); i += step) {
          RunSome(letters, args, i, std::min(step, end - i));
        }
      };
      try {
        // Eigen has arrays in its frames.
        if (!OnOwnStack(run).ok()) failed.store(true, std::memory_order_relaxed);
      } catch (const std::bad_alloc&) {
        failed.store(true, std::memory_order_relaxed);
      }
    });
    if (failed.load()) return ResourceExhausted("there is no memory for it");
    return OkStatus();
  }

 private:
  // `count` items, one or several in lanes.
  void RunSome(const Letters& letters, void* const* args, int64_t item, int64_t count) const {
    std::vector<Array> arrays = items_;
    for (size_t i = 0; i < arrays.size(); ++i) {
      Array& array = arrays[i];
      const int64_t bytes = array.rows * array.columns * BitWidth(array.type) / 8;
      array.data = static_cast<std::byte*>(args[i]) + item * bytes;
    }
    const std::span<const Array> all(arrays), operands = all.first(operands_);
    if (lanes_) return lanes_(operands, all.subspan(operands_), count);
    kernel_(letters, operands, all.subspan(operands_));
  }

  const Kernel kernel_;
  LaneKernel lanes_ = nullptr;  // null for matrices one by one
  const Letters letters_;
  const size_t operands_;
  std::vector<Array> items_;  // without addresses
  int64_t count_ = 1, pieces_ = 1;
};

using Made = Result<std::shared_ptr<const Function>>;

// What the words do not say.
Status CheckSizes(std::string_view name, const Letters& letters, Sizes& at) {
  if (name == "ormqr") {
    const int64_t size = letters.left ? at['m'] : at['n'];
    if (at['q'] != size || at['t'] > at['s'] || at['t'] > size) {
      return InvalidArgument("ormqr: the reflections do not fit the matrix");
    }
  }
  if (name == "orgqr" && (at['m'] < at['n'] || at['n'] < at['t'])) {
    return InvalidArgument("orgqr: the reflections do not fit the matrix");
  }
  if (name == "gehrd") {
    const int64_t n = at['n'];
    if (letters.low < 1 || letters.high > n || (n > 0 && letters.low > letters.high)) {
      return InvalidArgument("gehrd: low and high are ", letters.low, " and ", letters.high,
                             "; expected 1 <= low <= high <= ", n);
    }
  }
  return OkStatus();
}

Made MakeLapack(const Form& form, const CallSignature& signature) {
  auto refuse = [&] {
    return InvalidArgument(form.name, ": the library has none of ", signature.ToString());
  };
  if (signature.operands.empty()) return refuse();
  const Shape& first = signature.operands[0];
  const ElementType type = first.type();
  const bool is_complex = IsComplex(type);
  const auto own = static_cast<int64_t>(form.operands.find(' ') == std::string_view::npos
                                            ? form.operands.size() - 1
                                            : form.operands.find(' ') - 1);
  if (first.rank() < own || (BitWidth(PartOf(type)) != 32 && BitWidth(PartOf(type)) != 64) ||
      !(IsFloat(type) || is_complex)) {
    return refuse();
  }
  std::vector<int64_t> batch = first.dims();
  batch.resize(static_cast<size_t>(first.rank() - own));
  Sizes sizes;
  if (!Match(form.operands, signature.operands, type, batch, sizes)) return refuse();
  const Letters letters = LettersOf(signature.attributes, sizes['n']);
  sizes.Derive(letters);
  const bool differs = is_complex && !form.complex_results.empty();
  const std::string_view results = differs ? form.complex_results : form.results;
  if (!Match(results, signature.results, type, batch, sizes)) return refuse();
  KILN_RETURN_IF_ERROR(CheckSizes(form.name, letters, sizes));
  const Kernel kernel = is_complex ? form.kernels.complex : form.kernels.real;
  if (!kernel) return refuse();
  return std::shared_ptr<const Function>(std::make_shared<Lapack>(
      kernel, is_complex ? nullptr : form.kernels.lanes, letters, signature, batch.size()));
}

template <size_t kIndex>
Made MakeNumber(const CallSignature& signature) {
  return MakeLapack(Forms()[kIndex], signature);
}

}  // namespace

std::span<const Entry> LapackFunctions() {
  // In the order of Forms.
  static constexpr Entry kEntries[] = {
      {"lapack.geev", MakeNumber<0>, nullptr},   {"lapack.gees", MakeNumber<1>, nullptr},
      {"lapack.gehrd", MakeNumber<2>, nullptr},  {"lapack.geqp3", MakeNumber<3>, nullptr},
      {"lapack.geqrf", MakeNumber<4>, nullptr},  {"lapack.gesdd", MakeNumber<5>, nullptr},
      {"lapack.gesvd", MakeNumber<6>, nullptr},  {"lapack.getrf", MakeNumber<7>, nullptr},
      {"lapack.gtsv", MakeNumber<8>, nullptr},   {"lapack.orgqr", MakeNumber<9>, nullptr},
      {"lapack.ormqr", MakeNumber<10>, nullptr}, {"lapack.syevd", MakeNumber<11>, nullptr},
      {"lapack.sytrd", MakeNumber<12>, nullptr},
  };
  return kEntries;
}

}  // namespace kiln::runtime::lib
