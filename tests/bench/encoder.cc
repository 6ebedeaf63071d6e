// A program in StableHLO of BERT's size in a session, beside the same graph compiled as a whole.
#include <string>
#include <vector>

#include "base/strings.h"
#include "c_abi.h"
#include "encoder_text.h"
#include "harness.h"
#include "kiln/kiln.h"

namespace kiln::bench {
namespace {

// The number of clusters of which an explanation speaks.
int64_t CountClusters(kiln_session* session, const std::vector<kiln_value>& feeds,
                      const kiln_value& fetch) {
  kiln_text* explanation = nullptr;
  Must(kiln_session_explain(session, feeds.data(), feeds.size(), &fetch, 1, nullptr, 0,
                            &explanation));
  const std::string text = kiln_text_data(explanation, nullptr);
  kiln_text_release(explanation);
  int64_t count = 0;
  while (text.find(Cat(" in cluster_", count, " ")) != std::string::npos) ++count;
  return count;
}

KILN_BENCH(session_encoder) {
  const Encoder encoder;
  for (int32_t threads : {1, 2}) {
    Context context(threads);
    kiln_graph* graph = nullptr;
    Must(kiln_graph_from_stablehlo(context.get(), encoder.text().data(), encoder.text().size(),
                                   nullptr, &graph));
    std::vector<kiln_value> feeds;
    const EncoderArguments arguments(encoder, context);
    for (size_t i = 0; i < arguments.buffers().size(); ++i) {
      feeds.push_back(kiln_graph_parameter(graph, i));
    }
    const kiln_value fetch = kiln_graph_result(graph);
    Run run(context, graph, KILN_JIT_ON, feeds, {fetch});
    for (kiln_buffer* array : arguments.buffers()) run.Share(array);
    kiln_executable* whole = nullptr;
    Must(kiln_graph_compile(graph, nullptr, &whole));
    kiln_buffer* result = nullptr;
    auto run_whole = [&] {
      Must(kiln_executable_run(whole, nullptr, arguments.buffers().data(),
                               arguments.buffers().size(), &result, 1));
    };
    const double ratio = PairedRatio([&] { run(); }, run_whole, 21);
    const std::string name = "session.encoder.threads" + std::to_string(threads);
    report.Add(name + ".clusters", static_cast<double>(CountClusters(run.session(), feeds, fetch)),
               "", AtMost(1));
    report.Add(name, Measure([&] { run(); }).median * 1e3, "ms");
    report.Add(name + ".of_the_graph_compiled", ratio, "", AtMost(1.02));
    kiln_buffer_release(result);
    kiln_executable_release(whole);
    kiln_graph_release(graph);
  }
}

}  // namespace
}  // namespace kiln::bench
