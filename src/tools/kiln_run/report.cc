#include "tools/kiln_run/report.h"

#include <cmath>
#include <cstdio>
#include <utility>

#include "base/strings.h"

namespace kiln::run {
namespace {

Json ToJson(const Comparison& c) {
  Json json;
  if (!c.mismatch.empty()) {
    json["mismatch"] = c.mismatch;
    return json;
  }
  if (c.is_random) {
    json["random"] = true;
    return json;
  }
  json["elements"] = c.elements;
  json["wrong"] = c.wrong;
  json["difference"] = c.difference;
  if (c.relative >= 0) {
    json["largest"] = c.largest;
    json["relative_bound"] = c.relative;
  }
  for (const Element& e : c.worst) {
    json["worst"].push_back({{"index", e.index},
                             {"actual", e.actual},
                             {"expected", e.expected},
                             {"difference", e.difference}});
  }
  return json;
}

// "1.25 ms"; three digits.
std::string Quantity(double value, std::initializer_list<std::pair<double, const char*>> units) {
  const std::pair<double, const char*>* unit = units.begin();
  for (const auto& other : units) {
    if (std::abs(value) >= other.first) unit = &other;
  }
  char text[64];
  std::snprintf(text, sizeof(text), "%.3g %s", value / unit->first, unit->second);
  // In place of an exponent.
  if (value / unit->first >= 1000) {
    std::snprintf(text, sizeof(text), "%.0f %s", value / unit->first, unit->second);
  }
  return text;
}
std::string Time(double seconds) {
  return Quantity(seconds, {{1e-9, "ns"}, {1e-6, "us"}, {1e-3, "ms"}, {1, "s"}});
}
std::string Bytes(double bytes) {
  return Quantity(bytes, {{1, "bytes"}, {1e3, "kB"}, {1e6, "MB"}, {1e9, "GB"}});
}

std::string Short(double number) {
  char text[64];
  std::snprintf(text, sizeof(text), "%.3g", number);
  return text;
}
// Infinities are null.
double NumberOf(const Json& json) { return json.is_number() ? json.get<double>() : INFINITY; }

void AppendComparison(const Json& c, std::string_view what, std::string& out) {
  out += Cat("  ", what, ": ");
  if (c.contains("mismatch")) {
    out += Cat(c["mismatch"].get<std::string>(), "\n");
    return;
  }
  if (c.contains("random")) {
    out += "is random, and was not compared\n";
    return;
  }
  const auto wrong = c["wrong"].get<int64_t>(), elements = c["elements"].get<int64_t>();
  if (wrong == 0) {
    out += "agrees";
  } else {
    out += Cat(wrong, " of ", elements, elements == 1 ? " element differs" : " elements differ");
  }
  if (c.contains("largest")) {
    out += Cat(", by at most ", Short(NumberOf(c["difference"])), "; the largest magnitude is ",
               Short(NumberOf(c["largest"])));
  }
  out += "\n";
  if (!c.contains("worst")) return;
  for (const Json& e : c["worst"]) {
    out += Cat("    at [", Join(e["index"].get<std::vector<int64_t>>(), ", "),
               "]: ", e["actual"].get<std::string>(), ", expected ",
               e["expected"].get<std::string>(), "\n");
  }
}

void AppendFigures(const Json& report, std::string& out) {
  if (!report.contains("compile_ms")) return;
  out += Cat("  compiled in ", Time(report["compile_ms"].get<double>() / 1e3), ": ",
             report["kernels"].get<int64_t>(), " kernels, ",
             Bytes(report["temporary_bytes"].get<double>()), " of temporaries\n");
  if (!report.contains("time_us")) return;
  const auto runs = report["runs"].get<int64_t>();
  out += Cat("  time ", Time(report["time_us"].get<double>() / 1e6),
             runs > 1 ? Cat(" (median of ", runs, ")") : "");
  const std::string_view least = report["partial_cost"].get<bool>() ? "at least " : "";
  if (report.contains("gflops")) {
    out += Cat(", ", least, Short(NumberOf(report["gflops"])), " GFLOP/s");
  }
  if (report.contains("gbytes_per_s")) {
    out += Cat(", ", least, Short(NumberOf(report["gbytes_per_s"])), " GB/s");
  }
  out += "\n";
}

void AppendTexts(const Json& report, const char* key, std::string& out) {
  if (!report.contains(key)) return;
  size_t k = 0;
  for (const Json& text : report[key]) {
    out += Cat("  ", key, " ", k++, ": ", text.get<std::string>(), "\n");
  }
}

void AddFigures(const Record& record, Json& json) {
  const Figures& f = record.figures;
  json["compile_ms"] = f.compile_ms;
  json["kernels"] = f.kernels;
  json["temporary_bytes"] = f.temporary_bytes;
  json["flops"] = f.flops;
  json["bytes"] = f.bytes;
  json["partial_cost"] = f.is_partial;
  const double median = record.median_seconds();
  if (median <= 0) return;
  json["runs"] = record.seconds.size();
  json["time_us"] = median * 1e6;
  json["least_time_us"] = record.seconds[0] * 1e6;
  if (f.flops > 0) json["gflops"] = static_cast<double>(f.flops) / median / 1e9;
  if (f.bytes > 0) json["gbytes_per_s"] = static_cast<double>(f.bytes) / median / 1e9;
}

}  // namespace

Json ToJson(const Record& record, const JudgeOptions& options) {
  Json json;
  const bool failed = !record.failure.ok();
  json["verdict"] = failed || record.differs() ? "fail" : "pass";
  if (failed) {
    json["failure"] = record.failure.ToString();
    json["failed_at"] = record.failed_at;
    json["code"] = CodeName(record.failure.code());
  }
  if (!record.module.empty()) json["module"] = record.module;
  json["device"] = options.device;
  if (options.has_reference) json["reference"] = "REFERENCE:0";
  json["seed"] = options.arguments.seed;
  if (!record.notes.empty()) json["notes"] = record.notes;
  if (record.figures.compile_ms > 0) AddFigures(record, json);
  if (record.reference_ms > 0) json["reference_ms"] = record.reference_ms;
  for (const ResultRecord& r : record.results) {
    Json result = r.comparison ? ToJson(*r.comparison) : Json::object();
    result["shape"] = r.shape;
    json["results"].push_back(std::move(result));
  }
  if (!record.arguments.empty()) json["argument"] = record.arguments;
  if (!record.values.empty()) json["result"] = record.values;
  if (!record.expected.empty()) json["expected"] = record.expected;
  return json;
}

Json ToJson(const Culprit& culprit) {
  Json json = {{"instruction", culprit.name},
               {"text", culprit.text},
               {"among_all", culprit.among_all},
               {"comparison", ToJson(culprit.comparison)}};
  if (!culprit.op_name.empty()) json["op_name"] = culprit.op_name;
  return json;
}

std::string DumpJson(const Json& json) {
  return json.dump(-1, ' ', false, Json::error_handler_t::replace);
}

Json FileReport(const std::string& path, const Outcome& outcome) {
  Json report = {{"file", path}};
  Json made = Json::parse(outcome.reason, nullptr, false);
  if (made.is_object()) {
    report.update(made);
  } else {
    report["verdict"] = "fail";
    report["failure"] = outcome.reason;
  }
  return report;
}

std::string ToText(const Json& report) {
  const bool passes = report["verdict"] == "pass";
  std::string out = Cat(passes ? "PASS " : "FAIL ", report["file"].get<std::string>());
  if (report.contains("failure")) {
    out +=
        Cat(": ",
            report.contains("failed_at") ? Cat(report["failed_at"].get<std::string>(), " failed: ")
                                         : "",
            report["failure"].get<std::string>());
  } else {
    out +=
        Cat(": ", report["module"].get<std::string>(), " on ", report["device"].get<std::string>());
    if (report.contains("reference")) {
      out +=
          Cat(passes ? " agrees with " : " differs from ", report["reference"].get<std::string>());
    }
  }
  out += "\n";
  AppendFigures(report, out);
  if (report.contains("notes")) {
    for (const Json& note : report["notes"]) out += Cat("  ", note.get<std::string>(), "\n");
  }
  AppendTexts(report, "argument", out);
  AppendTexts(report, "result", out);
  AppendTexts(report, "expected", out);
  if (report.contains("results") && report.contains("reference_ms")) {
    size_t k = 0;
    for (const Json& result : report["results"]) {
      AppendComparison(result, Cat("result ", k++, " ", result["shape"].get<std::string>()), out);
    }
  }
  if (report.contains("isolated")) {
    const Json& isolated = report["isolated"];
    if (isolated.contains("instruction")) {
      out += Cat("  the first instruction that differs",
                 isolated["among_all"].get<bool>() ? "" : " as the only result", ": ",
                 isolated["text"].get<std::string>(), "\n");
      AppendComparison(isolated["comparison"], isolated["instruction"].get<std::string>(), out);
    } else {
      out += Cat("  no instruction by itself: ", isolated["failure"].get<std::string>(), "\n");
    }
  }
  if (report.contains("reduced")) {
    const Json& reduced = report["reduced"];
    out += reduced.contains("failure")
               ? Cat("  not reduced: ", reduced["failure"].get<std::string>(), "\n")
               : Cat("  reduced from ", reduced["instructions_before"].get<int64_t>(), " to ",
                     reduced["instructions"].get<int64_t>(),
                     " instructions: ", reduced["file"].get<std::string>(), "\n");
  }
  return out;
}

std::string FailureKind(const Json& report) {
  if (report["verdict"] == "pass") return "";
  if (!report.contains("failure")) return "differs";
  if (!report.contains("code")) return report["failure"].get<std::string>();
  return Cat(report["failed_at"].get<std::string>(), " ", report["code"].get<std::string>());
}

}  // namespace kiln::run
