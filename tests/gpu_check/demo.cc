// The demo: a training step on GPU:0, op by op with the JIT off, and compiled with the JIT on.
// Times of steps are the demo's own, those of kernels are what its timelines tell.
#include <filesystem>
#include <fstream>

#include "benchmarks.h"
#include "process.h"

namespace kiln::gpu_check {
namespace {

// XLA's, of op by op over compiled.
constexpr double kPublishedKernelRatio = 1.757, kPublishedStepRatio = 1.375;
constexpr double kMostLaunches = 6;

Result<Json> ReadJson(const std::string& path) {
  std::ifstream file(path);
  Json json = Json::parse(file, nullptr, /*allow_exceptions=*/false);
  if (json.is_discarded()) return NotFound(path, " is missing, or no JSON");
  return json;
}

struct Step {
  double kernel_us = 0;  // what the kernels and copies of a step take
  double launches = 0;   // how many there are
  double by_events = 0;  // of which events tell the time
};

Result<Step> ReadTimeline(const std::string& path) {
  KILN_ASSIGN_OR_RETURN(Json json, ReadJson(path));
  Step step;
  int steps = 0;
  for (const Json& event : json["traceEvents"]) {
    std::string category = event.value("cat", "");
    if (category == "execute") ++steps;
    // What goes from or to the host is no work of the step's.
    const bool is_work =
        category == "kernel" || (category == "copy" && event.value("name", "") == "copy");
    if (!is_work) continue;
    step.kernel_us += event.value("dur", 0.0);
    step.launches += 1;
    if (event["args"].value("timed_by", "events") == "events") step.by_events += 1;
  }
  if (steps == 0) return DataLoss(path, " holds no step");
  step.kernel_us /= steps;
  step.launches /= steps;
  step.by_events /= steps;
  return step;
}

void Add(std::vector<Figure>& figures, std::string name, double value, std::string unit,
         std::string note = "") {
  Figure& f = figures.emplace_back();
  f.name = std::move(name);
  f.size = "batch 100, 784 x 10";
  f.value = value;
  f.unit = std::move(unit);
  f.note = std::move(note);
}

void AddRatio(std::vector<Figure>& figures, std::string name, double ops, double whole,
              double published, std::string note = "") {
  Add(figures, std::move(name), whole > 0 ? ops / whole : 0, "x", std::move(note));
  Figure& f = figures.back();
  f.peer = "XLA, published";
  f.peer_value = published;
  f.ratio = *f.value / published;
}

Status RunDemo(const Gpu& gpu, std::vector<Figure>& figures) {
  const Settings& settings = *gpu.settings;
  const std::string folder = settings.out + "/demo";
  double idle_us = 0;
  if (gpu.driver) {
    KILN_ASSIGN_OR_RETURN(Times idle, MeasureNothing(*gpu.driver));
    idle_us = 1e6 * idle.median;
  }
  const char* steps = settings.scale == Settings::Scale::kFull ? "1000" : "20";
  std::vector<std::pair<std::string, std::string>> environment;
  if (settings.emulated()) environment.push_back({"KILN_EMULATE_GPU", "1"});
  KILN_ASSIGN_OR_RETURN(Outcome outcome,
                        RunProcess({settings.programs + "/mnist_softmax", "--data", settings.digits,
                                    "--out", folder, "--steps", steps, "--device", "GPU:0"},
                                   environment, 90));
  KILN_ASSIGN_OR_RETURN(Json demo, ReadJson(folder + "/demo.json"));
  KILN_ASSIGN_OR_RETURN(Step ops, ReadTimeline(folder + "/timeline.no_jit.json"));
  KILN_ASSIGN_OR_RETURN(Step whole, ReadTimeline(folder + "/timeline.jit.json"));
  const double ops_step = demo["jit_off"].value("step_us_median", 0.0);
  const double whole_step = demo["jit_on"].value("step_us_median", 0.0);
  Add(figures, "demo, step op by op", ops_step, "us");
  Add(figures, "demo, step compiled", whole_step, "us");
  AddRatio(figures, "demo, step time, op by op over compiled", ops_step, whole_step,
           kPublishedStepRatio);
  // Events take time of their own, which is measured with nothing between them.
  auto net = [&](const Step& s) { return s.kernel_us - idle_us * s.by_events; };
  if (gpu.driver) Add(figures, "demo, between two events with nothing in it", idle_us, "us");
  std::string note = Cat("with the events' own time ", NumberText(ops.kernel_us), " and ",
                         NumberText(whole.kernel_us));
  Add(figures, "demo, kernels of a step op by op", net(ops), "us");
  Add(figures, "demo, kernels of a step compiled", net(whole), "us", note);
  AddRatio(figures, "demo, kernel time, op by op over compiled", net(ops), net(whole),
           kPublishedKernelRatio,
           Cat("with the events' own time ", NumberText(ops.kernel_us / whole.kernel_us)));
  Add(figures, "demo, launches of a step op by op", ops.launches, "");
  Add(figures, "demo, launches of a step compiled", whole.launches, "",
      "from the second step on one launch of a graph of these");
  figures.back().at_most = kMostLaunches;
  // The demo itself holds losses and accuracy against each other.
  Add(figures, "demo, losses differ by", demo.value("max_rel_loss_difference", 1.0), "");
  figures.back().correct = outcome.ok();
  if (!outcome.ok()) {
    return Internal("mnist_softmax: ", outcome.ToString(), ": ", Tail(outcome.output, 300));
  }
  return OkStatus();
}

}  // namespace

void AddDemo(const Settings&, std::vector<Benchmark>& all) { all.push_back({"demo", RunDemo}); }

}  // namespace kiln::gpu_check
