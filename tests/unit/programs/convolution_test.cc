// Compiled convolutions and select-and-scatters against the evaluator, on a CPU and on the emulated
// GPU: random windows, layouts, groups and types.
#include <gtest/gtest.h>

#include <algorithm>
#include <cctype>
#include <cmath>
#include <numeric>
#include <random>
#include <span>

#include "base/strings.h"
#include "interp/interpreter.h"
#include "ops/attributes.h"
#include "ops/window.h"
#include "support/compiled.h"
#include "support/gpu.h"
#include "support/hlo.h"
#include "support/labels.h"
#include "support/literal.h"

namespace kiln {
namespace {

using testing::Check;
using testing::Difference;
using testing::Loaded;

using Window = std::vector<WindowDimension>;

// Modules of several ops, each of parameters of its own.
class RandomOps {
 public:
  explicit RandomOps(uint64_t seed) : random_(seed) {}

  std::string Text() const {
    std::string types, names;
    for (size_t k = 0; k < results_.size(); ++k) {
      types += Cat(k > 0 ? ", " : "", results_[k]);
      names += Cat(k > 0 ? ", " : "", "r", k);
    }
    return Cat("HloModule m\n", functions_, "ENTRY e {\n", lines_, "  ROOT o = (", types,
               ") tuple(", names, ")\n}\n");
  }

  // The most products that any element is a sum of.
  int64_t terms() const { return terms_; }

  // Where `blocks`, of so many features and places that products go by tiles.
  void AddConvolution(ElementType type, ElementType result, bool blocks) {
    const int64_t spatial = blocks ? Range(1, 2) : Choice({0, 1, 1, 2, 2, 2, 3, 4, 5});
    const int64_t large = blocks ? 15 : spatial < 3 ? 8 : spatial < 5 ? 5 : 3;
    Window window;
    std::vector<int64_t> sizes;
    int64_t window_elements = 1;
    for (int64_t d = 0; d < spatial; ++d) {
      WindowDimension w = RandomWindow(spatial < 3 ? 4 : 2);
      int64_t size = 0, places = 0;
      do {
        size = Chance(3) && !blocks ? 0 : Range(1, large);
        w.low = Range(-2, 3);
        w.high = Range(-2, 3);
        if (Chance(40)) w.low = w.high = 0;
        places = *WindowPlaces(w, size);
      } while (places > 20 || (places == 0 && (blocks || Chance(95))));
      window_elements *= w.size;
      window.push_back(w);
      sizes.push_back(size);
    }
    int64_t groups = Chance(50) ? 1 : Range(2, 4);
    if (groups > 1 && Chance(20)) groups = 19;
    const bool by_batch = groups > 1 && Chance(30);
    int64_t features = Chance(3) ? 0 : Range(1, 5), outputs = Range(1, 3), batch = Range(1, 3);
    if (blocks) {
      features = Choice({1, 3, 16, 33});
      outputs = groups > 4 ? 1 : Choice({5, 16, 17, 40});
    }
    terms_ = std::max(terms_, window_elements * features);
    std::vector<int64_t> x = sizes, w, out;
    for (size_t d = 0; d < window.size(); ++d) {
      w.push_back(window[d].size);
      out.push_back(*WindowPlaces(window[d], sizes[d]));
    }
    x.insert(x.end(), {batch * (by_batch ? groups : 1), features * (by_batch ? 1 : groups)});
    w.insert(w.end(), {features, outputs * groups});
    out.insert(out.end(), {batch, outputs * groups});
    std::string numbers = "0123456789";
    numbers.resize(window.size());
    const std::string lhs = Labels(numbers + "bf", x), rhs = Labels(numbers + "io", w),
                      to = Labels(numbers + "bf", out);
    std::string more =
        groups == 1 ? "" : Cat(", ", by_batch ? "batch" : "feature", "_group_count=", groups);
    std::string a = Parameter(type, x), b = Parameter(type, w);
    Result(RandomLayout(result, out),
           Cat("convolution(", a, ", ", b, "), window=", AttrValueText(window),
               ", dim_labels=", lhs, "_", rhs, "->", to, more));
  }

  void AddSelectAndScatter(ElementType type) {
    const int64_t rank = Choice({1, 1, 2, 2, 2, 3, 4});
    Window window;
    std::vector<int64_t> x, source;
    for (int64_t d = 0; d < rank; ++d) {
      WindowDimension w = RandomWindow(rank < 3 ? 5 : 3);
      w.base_dilation = w.window_dilation = 1;
      w.reversed = false;
      if (Chance(3)) w.stride = 40;
      int64_t size = 0, places = 0;
      do {
        size = Range(1, rank < 3 ? 13 : 5);
        w.low = Range(-3, 3);
        w.high = Range(-3, 3);
        if (Chance(40)) w.low = w.high = 0;
        places = *WindowPlaces(w, size);
      } while (places == 0 && Chance(95));
      window.push_back(w);
      x.push_back(size);
      source.push_back(places);
    }
    std::string scalar = ShapeText(type, {});
    const size_t number = results_.size();
    auto function = [&](std::string_view name, std::string_view root) {
      functions_ += Cat(name, number, " { a = ", scalar, " parameter(0)\n  b = ", scalar,
                        " parameter(1)\n", root, " }\n");
    };
    std::string select = "  ROOT c = pred[] compare(a, b), direction=";
    switch (Range(0, 4)) {
      case 0:
        function("select", select + "GT");
        break;
      case 1:
        function("select", select + "LE");
        break;
      case 2:  // in which the order counts
        function("select", Cat("  d = ", scalar, " add(b, b)\n", select, "NE\n  f = pred[] ",
                               "compare(a, d), direction=LT\n  ROOT g = pred[] and(c, f)"));
        functions_.replace(functions_.rfind("ROOT c"), 6, "c");
        break;
      default:
        function("select", select + "GE");
    }
    std::string_view scatters[] = {"add", "add", "add", "maximum", "subtract"};
    function("scatter", Cat("  ROOT c = ", scalar, " ", scatters[Range(0, 4)], "(a, b)"));
    std::string a = Parameter(type, x), b = Parameter(type, source), c = Parameter(type, {});
    Result(RandomLayout(type, x),
           Cat("select-and-scatter(", a, ", ", b, ", ", c, "), window=", AttrValueText(window),
               ", select=select", number, ", scatter=scatter", number));
  }

 private:
  int64_t Range(int64_t low, int64_t high) {
    return std::uniform_int_distribution<int64_t>(low, high)(random_);
  }
  bool Chance(int64_t percent) { return Range(0, 99) < percent; }
  int64_t Choice(std::initializer_list<int64_t> of) {
    return of.begin()[Range(0, static_cast<int64_t>(of.size()) - 1)];
  }

  WindowDimension RandomWindow(int64_t largest) {
    WindowDimension w;
    w.size = Range(1, largest);
    if (Chance(40)) w.stride = Range(1, 4);
    if (Chance(25)) w.base_dilation = Range(1, 3);
    if (Chance(25)) w.window_dilation = Range(1, 3);
    w.reversed = Chance(25);
    return w;
  }

  // The labels of the sizes, both put into one random order.
  std::string Labels(std::string labels, std::vector<int64_t>& sizes) {
    for (size_t k = labels.size(); k-- > 1;) {
      auto other = static_cast<size_t>(Range(0, static_cast<int64_t>(k)));
      std::swap(labels[k], labels[other]);
      std::swap(sizes[k], sizes[other]);
    }
    return labels;
  }

  static std::string ShapeText(ElementType type, const std::vector<int64_t>& dims) {
    return Shape(type, dims).ToString();
  }
  // In any layout.
  std::string RandomLayout(ElementType type, const std::vector<int64_t>& dims) {
    Shape shape(type, dims);
    if (Chance(30)) {
      std::vector<int64_t> order(dims.size());
      std::iota(order.begin(), order.end(), 0);
      std::shuffle(order.begin(), order.end(), random_);
      shape.set_minor_to_major(std::move(order));
    }
    return shape.ToString();
  }

  std::string Parameter(ElementType type, const std::vector<int64_t>& dims) {
    std::string name = Cat("p", parameters_);
    lines_ += Cat("  ", name, " = ", RandomLayout(type, dims), " parameter(", parameters_++, ")\n");
    return name;
  }
  void Result(std::string shape, std::string op) {
    lines_ += Cat("  r", results_.size(), " = ", shape, " ", op, "\n");
    results_.push_back(std::move(shape));
  }

  std::mt19937_64 random_;
  std::string functions_, lines_;
  int parameters_ = 0;
  int64_t terms_ = 0;
  std::vector<std::string> results_;
};

// Half of a convolution's are f32.
constexpr ElementType kTypes[] = {ElementType::kF64,
                                  ElementType::kF16,
                                  ElementType::kBF16,
                                  ElementType::kS8,
                                  ElementType::kS16,
                                  ElementType::kS32,
                                  ElementType::kS64,
                                  ElementType::kU8,
                                  ElementType::kU16,
                                  ElementType::kU32,
                                  ElementType::kU64,
                                  ElementType::kC64,
                                  ElementType::kC128,
                                  ElementType::kS4,
                                  ElementType::kU4,
                                  ElementType::kS2,
                                  ElementType::kF8E4M3FN,
                                  ElementType::kF8E5M2,
                                  ElementType::kF8E4M3B11FNUZ,
                                  ElementType::kPred};
constexpr size_t kTypeCount = std::size(kTypes);

// Another type that the sums may be asked for in.
ElementType WiderResult(ElementType type) {
  switch (type) {
    case ElementType::kBF16:
    case ElementType::kF16:
    case ElementType::kF8E4M3FN:
      return ElementType::kF32;
    case ElementType::kF32:
      return ElementType::kF64;
    case ElementType::kS4:
    case ElementType::kS8:
      return ElementType::kS32;
    case ElementType::kU16:
      return ElementType::kU64;
    case ElementType::kC64:
      return ElementType::kC128;
    default:
      return type;
  }
}

struct Program {
  std::string text;
  // How many products the sums of convolutions have at most; 0 where there are none.
  int64_t terms = 0;
};

Program Convolutions(uint64_t seed, bool blocks) {
  RandomOps ops(seed);
  for (size_t k = 0; k < (blocks ? 4 : 12); ++k) {
    ElementType type = k % 2 == 0 ? ElementType::kF32 : kTypes[(seed * 6 + k / 2) % kTypeCount];
    ops.AddConvolution(type, (seed + k / 2) % 4 == 0 ? WiderResult(type) : type, blocks);
  }
  return {ops.Text(), ops.terms()};
}

Program SelectAndScatters(uint64_t seed) {
  RandomOps ops(seed);
  for (size_t k = 0; k < 10; ++k) {
    ElementType type = k % 2 == 0 ? ElementType::kF32 : kTypes[(seed * 5 + k / 2) % kTypeCount];
    // What is complex is in no order; of small floats compiled code rounds sums once; preds cannot
    // be subtracted.
    const bool is_other =
        IsComplex(type) || IsPred(type) || (IsFloat(type) && WideOf(type) != type);
    ops.AddSelectAndScatter(is_other ? ElementType::kF32 : type);
  }
  return {ops.Text()};
}

// What an element is off by where a sum of so many products is taken in any order, each step is
// rounded, and the magnitudes of the products add up to `magnitude`.
double ErrorOf(ElementType type, int64_t terms, double magnitude, double value) {
  const double unit =
      std::ldexp(1, type == ElementType::kF64 || type == ElementType::kC128 ? -53 : -24);
  double bound = static_cast<double>(terms + 40) * unit * magnitude;
  // Rounded to a short type on both sides.
  const FloatFormat format = *FormatOf(PartOf(type));
  if (format.mantissa < 23) {
    bound += std::ldexp(std::abs(value) + bound, -format.mantissa) +
             std::ldexp(1, 2 - format.bias - format.mantissa);
  }
  return bound;
}

// The numbers of an array, of complex ones both parts one after the other.
std::vector<double> NumbersOf(const Literal& l) {
  std::vector<double> numbers;
  auto add = [&](const auto& values) { numbers.assign(values.begin(), values.end()); };
  const size_t parts = 2 * static_cast<size_t>(l.shape().num_elements());
  if (l.shape().type() == ElementType::kC64) {
    add(std::span(reinterpret_cast<const float*>(l.data()), parts));
  } else if (l.shape().type() == ElementType::kC128) {
    add(std::span(reinterpret_cast<const double*>(l.data()), parts));
  } else {
    for (int64_t k = 0; k < l.shape().num_elements(); ++k) numbers.push_back(l.AsDouble(k));
  }
  return numbers;
}

// The program on magnitudes, which are f64 whatever types it has.
Result<Literal> Magnitudes(std::string text, const std::vector<Literal>& arguments) {
  auto replace = [&](ElementType type) {
    const std::string name = Cat(TypeName(type), "[");
    for (size_t at = 0; (at = text.find(name, at)) != std::string::npos; at += 4) {
      if (std::isalnum(static_cast<unsigned char>(text[at - 1])) == 0) {
        text.replace(at, name.size(), "f64[");
      }
    }
  };
  for (ElementType type : kTypes) replace(type);
  for (ElementType type : kTypes) replace(WiderResult(type));
  std::vector<Literal> magnitudes;
  for (const Literal& argument : arguments) {
    Shape shape = argument.shape();
    const size_t parts = IsComplex(shape.type()) ? 2 : 1;
    shape.set_type(ElementType::kF64);
    Literal& m = magnitudes.emplace_back(shape);
    const std::vector<double> numbers = NumbersOf(argument);
    for (size_t k = 0; k < numbers.size(); ++k)
      m.values<double>()[k / parts] += std::abs(numbers[k]);
  }
  return interp::Evaluate(*ir::ParseOrDie(text), magnitudes);
}

// "" where an array is as near to the evaluator's as any order of its sums is; else what differs.
std::string SumsDiffer(const Literal& expected, const Literal& actual, const Literal& magnitudes,
                       int64_t terms) {
  const ElementType type = expected.shape().type();
  if (!IsFloat(PartOf(type))) return testing::Difference(expected, actual, 0, 0);
  const size_t parts = IsComplex(type) ? 2 : 1;
  const std::vector<double> e = NumbersOf(expected), a = NumbersOf(actual);
  for (size_t k = 0; k < e.size(); ++k) {
    if (e[k] == a[k] || (std::isnan(e[k]) && std::isnan(a[k]))) continue;
    const double magnitude = magnitudes.values<double>()[k / parts];
    const double bound = ErrorOf(type, static_cast<int64_t>(parts) * terms, magnitude, e[k]);
    if (std::abs(e[k] - a[k]) <= bound) continue;
    return Cat("number ", k, " of ", expected.shape(), ": ", a[k], ", expected ", e[k], " within ",
               bound);
  }
  return "";
}

// Runs the program on the CPU and the emulated GPU, fused and op by op, with arguments by the seed.
void Compare(const Program& program, uint64_t seed, bool gpu) {
  SCOPED_TRACE(Cat("seed ", seed, "\n", program.text));
  auto module = ir::ParseOrDie(program.text);
  std::vector<Literal> arguments = testing::RandomArguments(*module, seed);
  auto expected = interp::Evaluate(*module, arguments);
  ASSERT_TRUE(expected.ok()) << expected.status().ToString();
  Result<Literal> magnitudes = Literal();
  if (program.terms > 0) magnitudes = Magnitudes(program.text, arguments);
  ASSERT_TRUE(magnitudes.ok()) << magnitudes.status().ToString();
  for (bool fuse : {true, false}) {
    constexpr int kBytes[] = {64, 32, 16};
    Result<Loaded> loaded = gpu ? testing::LoadOnGpu(*module, fuse, seed % 2 == 0 ? 80 : 75)
                                : testing::Load(*module, fuse, kBytes[(seed + fuse) % 3]);
    ASSERT_TRUE(loaded.ok()) << loaded.status().ToString();
    testing::Execution run(*loaded->artefact);
    run.SetArguments(arguments);
    Status status = loaded->executable->Run(run.arguments(), run.results());
    ASSERT_TRUE(status.ok()) << status.ToString();
    const Literal actual = run.Result();
    const std::string how =
        (fuse ? "fused\n" : "op by op\n") + loaded->artefact->program.ToString();
    if (program.terms == 0) {
      EXPECT_EQ(testing::DifferenceOf(*module, *expected, actual, 1e-6), "") << how;
      continue;
    }
    for (size_t k = 0; k < expected->elements().size(); ++k) {
      EXPECT_EQ(SumsDiffer(expected->elements()[k], actual.elements()[k], magnitudes->elements()[k],
                           program.terms),
                "")
          << "result " << k << ", " << how;
    }
  }
}

TEST(Convolutions, Random) {
  for (uint64_t seed = 0; seed < 24; ++seed) Compare(Convolutions(seed, false), seed, false);
}

TEST(Convolutions, RandomByTiles) {
  for (uint64_t seed = 100; seed < 116; ++seed) Compare(Convolutions(seed, true), seed, false);
}

TEST(SlowConvolutions, Random) {
  for (uint64_t seed = 200; seed < 400; ++seed) {
    Compare(Convolutions(seed, false), seed, false);
    Compare(Convolutions(seed, true), seed, false);
    Compare(SelectAndScatters(seed), seed, false);
  }
}

TEST(GpuConvolutions, Random) {
  for (uint64_t seed = 500; seed < 510; ++seed) Compare(Convolutions(seed, false), seed, true);
  for (uint64_t seed = 510; seed < 516; ++seed) Compare(Convolutions(seed, true), seed, true);
}

TEST(SlowGpuConvolutions, Random) {
  for (uint64_t seed = 600; seed < 660; ++seed) {
    Compare(Convolutions(seed, false), seed, true);
    Compare(Convolutions(seed, true), seed, true);
    Compare(SelectAndScatters(seed), seed, true);
  }
}

TEST(SelectAndScatters, Random) {
  for (uint64_t seed = 0; seed < 20; ++seed) Compare(SelectAndScatters(seed), seed, false);
}

TEST(GpuSelectAndScatters, Random) {
  for (uint64_t seed = 20; seed < 26; ++seed) Compare(SelectAndScatters(seed), seed, true);
}

// Padding and holes that would take more memory than there is.
TEST(Convolutions, PaddingIsNotMade) {
  Check(R"(HloModule m
ENTRY e { x = f32[1,3,2] parameter(0)
  w = f32[2,2,5] parameter(1)
  a = f32[1,3,5] convolution(x, w), window={size=2 stride=1000000000000 pad=1000000000000_1000000000000}, dim_labels=b0f_0io->b0f
  b = f32[1,3,5] convolution(x, w), window={size=2 stride=1000000000000 lhs_dilate=1000000000000 pad=0_1}, dim_labels=b0f_0io->b0f
  c = f32[1,2,5] convolution(x, w), window={size=2 rhs_dilate=3000000000 pad=1_2999999998}, dim_labels=b0f_0io->b0f
  ROOT o = (f32[1,3,5], f32[1,3,5], f32[1,2,5]) tuple(a, b, c) })");
}

// Holes: phases of each kind of window, one alone, and short lines of images that would be a
// multiple of 4 KB apart.
TEST(Convolutions, ByPhases) {
  Check(R"(HloModule m
ENTRY e { x = f32[9,7,7,32] parameter(0)
  w = f32[3,3,16,32] parameter(1)
  v = f32[5,2,32,16] parameter(2)
  u = f32[1,1,32,40] parameter(3)
  a = f32[9,14,14,16] convolution(x, w), window={size=3x3 pad=1_2x1_2 lhs_dilate=2x2 rhs_reversal=1x1}, dim_labels=b01f_01oi->b01f
  b = f32[9,18,14,16] convolution(x, v), window={size=5x2 pad=2_1x0_2 lhs_dilate=3x2}, dim_labels=b01f_01io->b01f
  c = f32[9,14,13,40] convolution(x, u), window={size=1x1 pad=0_1x0_0 lhs_dilate=2x2}, dim_labels=b01f_01io->b01f
  ROOT o = (f32[9,14,14,16], f32[9,18,14,16], f32[9,14,13,40]) tuple(a, b, c) })",
        1e-5, 1e-5);
}

// Bias, activation and a second convolution; layouts that are not row-major.
TEST(Convolutions, WithWhatIsAroundThem) {
  Check(R"(HloModule m
ENTRY e { x = f32[2,9,8,3]{1,2,0,3} parameter(0)
  w = f32[3,3,3,20] parameter(1)
  bias = f32[20] parameter(2)
  v = f32[20,1,3,3]{0,1,2,3} parameter(3)
  zero = f32[] constant(0)
  zeros = f32[2,9,8,20] broadcast(zero), dimensions={}
  t = f32[2,9,8,3]{1,2,0,3} tanh(x)
  a = f32[2,9,8,20] convolution(t, w), window={size=3x3 pad=1_1x1_1}, dim_labels=b01f_01io->b01f
  b = f32[2,9,8,20] broadcast(bias), dimensions={3}
  c = f32[2,9,8,20] add(a, b)
  d = f32[2,9,8,20] maximum(c, zeros)
  ROOT r = f32[2,20,4,3]{0,1,2,3} convolution(d, v), window={size=3x3 stride=2x2}, dim_labels=b01f_oi01->bf01, feature_group_count=20 })");
}

TEST(Convolutions, InLoops) {
  Check(R"(HloModule m
condition { s = (s32[], f32[1,6,16]) parameter(0)
  i = s32[] get-tuple-element(s), index=0
  n = s32[] constant(5)
  ROOT p = pred[] compare(i, n), direction=LT }
body { s = (s32[], f32[1,6,16]) parameter(0)
  i = s32[] get-tuple-element(s), index=0
  x = f32[1,6,16] get-tuple-element(s), index=1
  one = s32[] constant(1)
  next = s32[] add(i, one)
  k = s32[3,16,16] iota(), iota_dimension=1
  l = f32[3,16,16] convert(k)
  y = f32[1,6,16] convolution(x, l), window={size=3 pad=1_1}, dim_labels=b0f_0io->b0f
  t = f32[1,6,16] tanh(y)
  ROOT r = (s32[], f32[1,6,16]) tuple(next, t) }
ENTRY e { x = f32[1,6,16] parameter(0)
  zero = s32[] constant(0)
  t = (s32[], f32[1,6,16]) tuple(zero, x)
  ROOT w = (s32[], f32[1,6,16]) while(t), condition=condition, body=body })");
}

KILN_LABEL(slow, "SlowConvolutions", "SlowGpuConvolutions");

}  // namespace
}  // namespace kiln
