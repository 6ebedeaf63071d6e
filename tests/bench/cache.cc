// The disk cache: a program of BERT's size found in place of its compilation, and what its key
// costs.
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "base/strings.h"
#include "c_abi.h"
#include "compiler/cache_key.h"
#include "encoder_text.h"
#include "harness.h"
#include "ir/text.h"
#include "kiln/kiln.h"

namespace kiln::bench {
namespace {

namespace fs = std::filesystem;

constexpr int kThreads = 2;

// A folder for the time of a benchmark, and contexts that have their cache there.
class CacheFolder {
 public:
  CacheFolder() : path_(fs::temp_directory_path() / Cat("kiln-bench-cache-", getpid())) {}
  ~CacheFolder() {
    std::error_code error;
    fs::remove_all(path_, error);
  }
  CacheFolder(const CacheFolder&) = delete;
  CacheFolder& operator=(const CacheFolder&) = delete;

  kiln_context* NewContext(int64_t bytes) const {
    kiln_context_options options = KILN_CONTEXT_OPTIONS_INIT;
    kiln_context* context = nullptr;
    options.threads = kThreads;
    options.cache_folder = path_.c_str();
    options.cache_folder_length = path_.native().size();
    options.cache_bytes = bytes;
    Must(kiln_context_create(&options, &context));
    return context;
  }

 private:
  const fs::path path_;
};

// Of compiling the encoder in a context of its own, which it makes and reads before.
struct Compilation {
  double seconds = 0;
  kiln_cache_info uses = KILN_CACHE_INFO_INIT;
};
Compilation Compile(const CacheFolder& folder, const Encoder& encoder, int64_t bytes) {
  Compilation compilation;
  kiln_context* context = folder.NewContext(bytes);
  kiln_graph* graph = nullptr;
  kiln_executable* executable = nullptr;
  Must(kiln_graph_from_stablehlo(context, encoder.text().data(), encoder.text().size(), nullptr,
                                 &graph));
  const double start = Now();
  Must(kiln_graph_compile(graph, nullptr, &executable));
  compilation.seconds = Now() - start;
  Must(kiln_context_cache(context, &compilation.uses));
  kiln_executable_release(executable);
  kiln_graph_release(graph);
  kiln_context_release(context);
  return compilation;
}

// Of loading the same program from its bytes: a hit less the key and the file.
double LoadSeconds(const Encoder& encoder) {
  Context context(kThreads);
  kiln_graph* graph = nullptr;
  kiln_executable* executable = nullptr;
  kiln_text* saved = nullptr;
  size_t size = 0;
  Must(kiln_graph_from_stablehlo(context.get(), encoder.text().data(), encoder.text().size(),
                                 nullptr, &graph));
  Must(kiln_graph_compile(graph, nullptr, &executable));
  Must(kiln_executable_serialize(executable, &saved));
  kiln_executable_release(executable);
  kiln_graph_release(graph);
  const char* bytes = kiln_text_data(saved, &size);
  const double seconds = Measure([&] {
                           Must(kiln_executable_load(context.cpu(), bytes, size, &executable));
                           kiln_executable_release(executable);
                         }).median;
  kiln_text_release(saved);
  return seconds;
}

std::unique_ptr<ir::Module> EncoderModule(const Encoder& encoder) {
  Context context(1);
  kiln_graph* graph = nullptr;
  kiln_text* text = nullptr;
  size_t size = 0;
  Must(kiln_graph_from_stablehlo(context.get(), encoder.text().data(), encoder.text().size(),
                                 nullptr, &graph));
  Must(kiln_graph_to_hlo_text(graph, &text));
  const char* data = kiln_text_data(text, &size);
  auto module = ir::ParseHloText({data, size});
  kiln_text_release(text);
  kiln_graph_release(graph);
  return module.ok() ? *std::move(module) : nullptr;
}

std::unique_ptr<ir::Module> Chain(int64_t ops) {
  std::string text =
      "HloModule chain\nENTRY e {\nv0 = f32[64,64] parameter(0)\n"
      "v1 = f32[64,64] parameter(1)\n";
  for (int64_t i = 2; i < ops; ++i) {
    text += Cat(i + 1 == ops ? "ROOT v" : "v", i, " = f32[64,64] add(v", i - 1, ", v", i - 2,
                "), metadata={op_name=\"layer", i / 100, "/add\"}\n");
  }
  auto module = ir::ParseHloText(text + "}\n");
  return module.ok() ? *std::move(module) : nullptr;
}

std::unique_ptr<ir::Module> WithConstant(int64_t bytes) {
  auto module = std::make_unique<ir::Module>("constant");
  ir::Computation* entry = module->AddComputation("e");
  const Shape shape(ElementType::kF32, {bytes / 4});
  ir::InstructionSpec spec{.opcode = Opcode::kConstant};
  spec.shape = shape;
  spec.literal = std::make_shared<const Literal>(shape);
  entry->set_root(entry->Create(std::move(spec)));
  module->set_entry(entry);
  return module;
}

double KeySeconds(const std::unique_ptr<ir::Module>& module) {
  const target::Target target = target::HostCpu();
  return Measure([&] { Keep(compiler::CacheKey(*module, target, {})); }).median;
}

}  // namespace

KILN_BENCH(cache) {
  const Encoder encoder;
  const CacheFolder folder;
  const Compilation without = Compile(folder, encoder, KILN_CACHE_OFF);
  const Compilation first = Compile(folder, encoder, 0);
  std::vector<double> hits;
  bool is_hit = first.uses.written == 1;
  for (int i = 0; i < 21; ++i) {
    const Compilation hit = Compile(folder, encoder, 0);
    is_hit &= hit.uses.hits == 1;
    hits.push_back(hit.seconds);
  }
  std::sort(hits.begin(), hits.end());
  if (!is_hit) report.Note("cache.encoder", "the program is not found");
  report.Add("cache.encoder.compile", without.seconds * 1e3, "ms");
  report.Add("cache.encoder.compile_and_keep", first.seconds * 1e3, "ms");
  report.Add("cache.encoder.entry", static_cast<double>(first.uses.written_bytes) * 1e-6, "MB");
  report.Add("cache.encoder.hit", is_hit ? hits[hits.size() / 2] * 1e3 : 1e9, "ms", AtMost(15));
  report.Add("cache.encoder.hit.key", KeySeconds(EncoderModule(encoder)) * 1e3, "ms", AtMost(1.5));
  report.Add("cache.encoder.hit.load", LoadSeconds(encoder) * 1e3, "ms");
  report.Add("cache.key.100000_ops", KeySeconds(Chain(100000)) * 1e3, "ms");
  constexpr int64_t kBytes = 256 << 20;
  report.Add("cache.key.constants", kBytes / KeySeconds(WithConstant(kBytes)) * 1e-9, "GB/s");
}

}  // namespace kiln::bench
