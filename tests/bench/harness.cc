#include "harness.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <regex>
#include <vector>

#include "base/strings.h"

namespace kiln::bench {
namespace {

struct Entry {
  const char* name;
  BenchFn fn;
};

std::vector<Entry>& Entries() {
  static std::vector<Entry> entries;
  return entries;
}

double Median(std::vector<double>& values) {
  std::sort(values.begin(), values.end());
  size_t middle = values.size() / 2;
  return values.size() % 2 ? values[middle] : 0.5 * (values[middle - 1] + values[middle]);
}

double Time(const std::function<void()>& call, int64_t times) {
  double start = Now();
  for (int64_t i = 0; i < times; ++i) call();
  return (Now() - start) / static_cast<double>(times);
}

// So many calls in a row that they take about 20 microseconds: the clock itself takes 30 ns.
int64_t BatchFor(const std::function<void()>& call) {
  int64_t batch = 1;
  while (batch < (1 << 20) && Time(call, batch) * static_cast<double>(batch) < 20e-6) batch *= 2;
  return batch;
}

std::string Json(double value) { return std::isfinite(value) ? Cat(value) : "null"; }

}  // namespace

double Now() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

Timing Measure(const std::function<void()>& call, const MeasureOptions& options) {
  if (options.warm_up) call();
  Timing timing;
  int64_t batch = BatchFor(call);
  std::vector<double> samples;
  double start = Now();
  while (static_cast<int64_t>(samples.size()) < options.samples ||
         (Now() - start < options.seconds && samples.size() < 100000)) {
    samples.push_back(Time(call, batch));
    timing.calls += batch;
  }
  timing.minimum = *std::min_element(samples.begin(), samples.end());
  timing.median = Median(samples);
  return timing;
}

double PairedRatio(const std::function<void()>& a, const std::function<void()>& b, int pairs) {
  a();
  b();
  int64_t batch = std::max(BatchFor(a), BatchFor(b));
  std::vector<double> ratios;
  for (int i = 0; i < pairs; ++i) {
    // Which of the two goes first changes from pair to pair.
    bool a_first = i % 2 == 0;
    double first = Time(a_first ? a : b, batch);
    double second = Time(a_first ? b : a, batch);
    ratios.push_back(a_first ? first / second : second / first);
  }
  return Median(ratios);
}

Report::Report(const std::string& json) {
  if (!json.empty()) json_ = std::fopen(json.c_str(), "w");
  std::printf("%-44s %12s %-10s %s\n", "benchmark", "value", "unit", "bound");
}

Report::~Report() {
  if (json_) std::fclose(static_cast<FILE*>(json_));
}

void Report::Add(std::string_view name, double value, std::string_view unit, Bound bound) {
  bool low = std::isfinite(bound.low), high = std::isfinite(bound.high);
  bool good = value >= bound.low && value <= bound.high;
  if (!good) ++missed_;
  char text[64] = "";
  if (low || high) {
    std::snprintf(text, sizeof text, "%s %.4g %s", low ? ">=" : "<=", low ? bound.low : bound.high,
                  good ? "" : "MISSED");
  }
  std::printf("%-44.*s %12.4g %-10.*s %s\n", static_cast<int>(name.size()), name.data(), value,
              static_cast<int>(unit.size()), unit.data(), text);
  std::fflush(stdout);
  if (json_) {
    std::string line = Cat("{\"name\": \"", EscapeJson(name), "\", \"value\": ", Json(value),
                           ", \"unit\": \"", EscapeJson(unit), "\"");
    if (low) line += Cat(", \"at_least\": ", Json(bound.low));
    if (high) line += Cat(", \"at_most\": ", Json(bound.high));
    if (low || high) line += Cat(", \"good\": ", good ? "true" : "false");
    std::fprintf(static_cast<FILE*>(json_), "%s}\n", line.c_str());
    std::fflush(static_cast<FILE*>(json_));
  }
}

void Report::Note(std::string_view name, std::string_view text) {
  std::printf("%-44.*s %.*s\n", static_cast<int>(name.size()), name.data(),
              static_cast<int>(text.size()), text.data());
}

int Register(const char* name, BenchFn fn) {
  Entries().push_back({name, fn});
  return 0;
}

namespace {

int Main(int argc, char** argv) {
  std::string json, filter;
  bool list = false, check = false;
  for (int i = 1; i < argc; ++i) {
    std::string_view arg = argv[i];
    if (arg == "--json" && i + 1 < argc) {
      json = argv[++i];
    } else if (arg == "--filter" && i + 1 < argc) {
      filter = argv[++i];
    } else if (arg == "--list") {
      list = true;
    } else if (arg == "--check") {
      check = true;
    } else {
      std::printf(
          "usage: kiln-bench [--json FILE] [--filter REGEX] [--list] [--check]\n"
          "--check returns 1 if a bound is missed\n");
      return 2;
    }
  }
  std::sort(Entries().begin(), Entries().end(),
            [](const Entry& a, const Entry& b) { return std::string_view(a.name) < b.name; });
  if (list) {
    for (const Entry& entry : Entries()) std::printf("%s\n", entry.name);
    return 0;
  }
  Report report(json);
  std::regex wanted(filter);
  for (const Entry& entry : Entries()) {
    if (filter.empty() || std::regex_search(entry.name, wanted)) entry.fn(report);
  }
  if (report.missed()) std::printf("%d bounds missed\n", report.missed());
  return check && report.missed() ? 1 : 0;
}

}  // namespace
}  // namespace kiln::bench

int main(int argc, char** argv) { return kiln::bench::Main(argc, argv); }
