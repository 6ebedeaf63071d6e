// Convolutions of networks for images, each beside the gemm that has as many products of as many
// rows and columns, in turn with it.
#include <algorithm>
#include <string>

#include "base/strings.h"
#include "compiled.h"
#include "harness.h"
#include "machine.h"

namespace kiln::bench {
namespace {

constexpr int kPairs = 21;

struct Convolution {
  const char* name;
  int64_t batch, size, features, window, outputs, stride, groups;
  bool features_first = false;  // in all three arrays' memory
  int64_t padding() const { return (window - 1) / 2; }
  int64_t places() const { return (size + 2 * padding() - window) / stride + 1; }
  int64_t rows() const { return batch * places() * places(); }
  int64_t sum() const { return window * window * features / groups; }
  double flops() const {
    return 2.0 * static_cast<double>(rows()) * static_cast<double>(outputs) *
           static_cast<double>(sum());
  }
};

std::string Text(const Convolution& c) {
  const int64_t in = c.features / c.groups;
  auto image = [&](int64_t size, int64_t features) {
    return c.features_first ? Cat("f32[", c.batch, ",", features, ",", size, ",", size, "]")
                            : Cat("f32[", c.batch, ",", size, ",", size, ",", features, "]");
  };
  std::string kernel = c.features_first
                           ? Cat("f32[", c.outputs, ",", in, ",", c.window, ",", c.window, "]")
                           : Cat("f32[", c.window, ",", c.window, ",", in, ",", c.outputs, "]");
  const int64_t p = c.padding();
  return Cat("HloModule m\nENTRY e {\nx = ", image(c.size, c.features),
             " parameter(0)\nw = ", kernel,
             " parameter(1)\nROOT r = ", image(c.places(), c.outputs),
             " convolution(x, w), window={size=", c.window, "x", c.window, " stride=", c.stride,
             "x", c.stride, " pad=", p, "_", p, "x", p, "_", p,
             "}, dim_labels=", c.features_first ? "bf01_oi01->bf01" : "b01f_01io->b01f",
             c.groups > 1 ? Cat(", feature_group_count=", c.groups) : "", "\n}\n");
}

std::string Gemm(const Convolution& c) {
  return Cat("HloModule m\nENTRY e {\nx = f32[", c.rows(), ",", c.sum(), "] parameter(0)\nw = f32[",
             c.sum(), ",", c.outputs, "] parameter(1)\nROOT d = f32[", c.rows(), ",", c.outputs,
             "] dot(x, w), lhs_contracting_dims={1}, rhs_contracting_dims={0}\n}\n");
}

void Add(Report& report, const Convolution& c) {
  for (int threads : {1, Cpus()}) {
    const std::string name =
        Cat(c.name, c.features_first ? ".features_first" : "", ".threads", threads);
    Compiled one(Text(c), threads);
    if (!one.ok()) return report.Note(name, one.error());
    report.Add(name, c.flops() / one.Seconds() * 1e-9, "GFLOP/s");
    if (c.groups > 1) continue;
    Compiled other(Gemm(c), threads, {}, &one);
    if (!other.ok()) return report.Note(name, other.error());
    report.Add(Cat(name, ".gemm"), c.flops() / other.Seconds() * 1e-9, "GFLOP/s");
    report.Add(Cat(name, ".of_gemm"), PairedRatio([&] { one.Run(); }, [&] { other.Run(); }, kPairs),
               "");
  }
}

}  // namespace

KILN_BENCH(convolutions) {
  for (bool features_first : {false, true}) {
    for (const Convolution& c : {
             Convolution{"convolutions.56x64", 1, 56, 64, 3, 64, 1, 1},
             Convolution{"convolutions.28x128", 1, 28, 128, 3, 128, 1, 1},
             Convolution{"convolutions.14x256", 1, 14, 256, 3, 256, 1, 1},
             Convolution{"convolutions.32of14x256", 32, 14, 256, 3, 256, 1, 1},
             Convolution{"convolutions.7x512", 1, 7, 512, 3, 512, 1, 1},
             Convolution{"convolutions.56x64.stride2", 1, 56, 64, 3, 128, 2, 1},
             Convolution{"convolutions.56x64to256.1x1", 1, 56, 64, 1, 256, 1, 1},
             Convolution{"convolutions.56x256.1x1.stride2", 1, 56, 256, 1, 512, 2, 1},
             Convolution{"convolutions.first", 1, 224, 3, 7, 64, 2, 1},
             Convolution{"convolutions.depthwise", 1, 112, 32, 3, 32, 1, 32},
             Convolution{"convolutions.groups", 1, 28, 256, 3, 256, 1, 32},
         }) {
      Convolution sized = c;
      sized.features_first = features_first;
      Add(report, sized);
    }
  }
}

}  // namespace kiln::bench
