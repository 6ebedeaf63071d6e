// Decode of the example's language model: GPT-2's size, random weights in three types.
#include <cstdlib>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "base/strings.h"
#include "c_abi.h"
#include "harness.h"
#include "language_model/model.h"
#include "machine.h"

namespace kiln::bench {
namespace {

constexpr int64_t kTokens = 128;   // room in the caches
constexpr int64_t kPosition = 64;  // of the token whose step is timed

model_config Gpt2() {
  model_config c = {};
  c.architecture = GPT2;
  c.vocabulary = 50257;
  c.width = 768;
  c.layers = 12;
  c.heads = c.key_heads = 12;
  c.head_size = 64;
  c.inner = 3072;
  c.positions = 1024;
  c.epsilon = 1e-5;
  c.tied = 1;
  c.begin = -1;
  return c;
}

// A model whose weights have the type. The values do not matter for the time, if they are finite.
class Model {
 public:
  Model(const Context& context, kiln_dtype dtype) {
    const model_config config = Gpt2();
    weight_list list = list_weights(&config);
    auto* weights = static_cast<model_weight*>(std::calloc(list.count, sizeof(model_weight)));
    for (size_t i = 0; i < list.count; ++i) {
      const weight_spec& spec = list.specs[i];
      std::vector<float> numbers(weight_elements(&spec));
      for (size_t j = 0; j < numbers.size(); ++j) {
        numbers[j] = static_cast<float>(static_cast<int>(j * 40503 % 255) - 127) / 6350;
      }
      weights[i] = make_weight(&spec, numbers.data(), dtype, context.cpu());
    }
    std::free(list.specs);
    model_ = make_model(&config, weights, dtype, kTokens, context.get(), context.cpu(), nullptr);
  }
  ~Model() { release_model(&model_); }
  Model(const Model&) = delete;
  Model& operator=(const Model&) = delete;

  // The step of a token in the middle of a text.
  void Decode() {
    model_.length = kPosition;
    decode(&model_, 17);
  }
  void Prefill() {
    static constexpr int32_t kPrompt[PREFILL_TOKENS] = {};
    reset_model(&model_);
    prefill(&model_, kPrompt, PREFILL_TOKENS);
  }
  double bytes() const { return bytes_per_token(&model_); }

 private:
  language_model model_;
};

KILN_BENCH(language_model) {
  constexpr int kRounds = 40;
  constexpr double kPrefill = PREFILL_TOKENS;
  constexpr int64_t kElements = 16 << 20;
  const std::vector<std::vector<float>> storage(3, std::vector<float>(kElements, 1.0f));
  const std::vector<std::span<const float>> arrays(storage.begin(), storage.end());
  for (int threads : {1, 2}) {
    if (threads > Cpus()) continue;
    const Context context(threads);
    Model f32(context, KILN_F32), bf16(context, KILN_BF16), s8(context, KILN_S8);
    const std::function<void()> calls[] = {[&] { Read(arrays, threads); }, [&] { f32.Decode(); },
                                           [&] { bf16.Decode(); },         [&] { s8.Decode(); },
                                           [&] { f32.Prefill(); },         [&] { s8.Prefill(); }};
    const std::vector<double> seconds = MediansInTurn(calls, kRounds);
    const double read = 3.0 * kElements * sizeof(float) / seconds[0] / 1e9;
    auto name = [&](const char* what) { return Cat("language_model/", what, "/", threads); };
    report.Add(name("read"), read, "GB/s");
    report.Add(name("decode_f32"), 1 / seconds[1], "tokens/s");
    report.Add(name("decode_f32_read"), f32.bytes() / seconds[1] / 1e9, "GB/s",
               AtLeast(0.85 * read));
    report.Add(name("decode_bf16"), 1 / seconds[2], "tokens/s");
    report.Add(name("decode_bf16_read"), bf16.bytes() / seconds[2] / 1e9, "GB/s");
    report.Add(name("decode_int8"), 1 / seconds[3], "tokens/s");
    report.Add(name("decode_int8_read"), s8.bytes() / seconds[3] / 1e9, "GB/s");
    report.Add(name("decode_int8_over_f32"), seconds[1] / seconds[3], "x", AtLeast(3));
    report.Add(name("prefill_f32"), kPrefill / seconds[4], "tokens/s");
    report.Add(name("prefill_int8"), kPrefill / seconds[5], "tokens/s");
  }
}

}  // namespace
}  // namespace kiln::bench
