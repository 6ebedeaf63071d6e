#include "figure.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdio>
#include <string_view>

#include "base/strings.h"

namespace kiln::gpu_check {
namespace {

constexpr std::array<std::string_view, 3> kStates = {"passed", "failed", "skipped"};

// The members that may be missing, by name.
template <typename F, typename Visit>
void VisitOptional(F& figure, Visit&& visit) {
  visit("value", figure.value);
  visit("median_us", figure.median_us);
  visit("minimum_us", figure.minimum_us);
  visit("bytes", figure.bytes);
  visit("flops", figure.flops);
  visit("kernels", figure.kernels);
  visit("peer_value", figure.peer_value);
  visit("ratio", figure.ratio);
  visit("at_least", figure.at_least);
  visit("at_most", figure.at_most);
  visit("correct", figure.correct);
  visit("difference", figure.difference);
  visit("allowed", figure.allowed);
  visit("peer_difference", figure.peer_difference);
}

template <typename F, typename Visit>
void VisitTexts(F& figure, Visit&& visit) {
  visit("name", figure.name);
  visit("size", figure.size);
  visit("unit", figure.unit);
  visit("peer", figure.peer);
  visit("note", figure.note);
  visit("error", figure.error);
}

std::string Padded(std::string text, size_t width, bool right = false) {
  if (text.size() >= width) return text;
  std::string spaces(width - text.size(), ' ');
  return right ? spaces + text : text + spaces;
}

std::string TargetText(const Figure& f) {
  if (!f.at_least && !f.at_most) return "";
  std::string text =
      f.at_least ? Cat(">= ", NumberText(*f.at_least)) : Cat("<= ", NumberText(*f.at_most));
  std::optional<bool> met = f.met();
  return Cat(text, !met ? "  not measured" : *met ? "  met" : "  MISSED");
}

std::string Line(const Figure& f) {
  std::string line = Padded(f.name, 46) + Padded(f.size, 24);
  line += Padded(f.value ? Cat(NumberText(*f.value), " ", f.unit) : "-", 16, true) + "  ";
  line += Padded(f.peer_value ? Cat(f.peer, " ", NumberText(*f.peer_value)) : f.peer, 28);
  line += Padded(f.ratio ? NumberText(*f.ratio) : "", 7, true) + "  " + Padded(TargetText(f), 18);
  if (f.correct == false) {
    line += Cat(" WRONG: differs by ", f.difference ? NumberText(*f.difference) : "NaN");
    if (f.allowed) line += Cat(", allowed ", NumberText(*f.allowed));
  }
  if (!f.error.empty()) line += Cat(" ERROR: ", f.error.substr(0, f.error.find('\n')));
  if (!f.note.empty()) line += Cat(" (", f.note, ")");
  line.erase(line.find_last_not_of(' ') + 1);
  return line + "\n";
}

}  // namespace

std::string NumberText(double value) {
  char text[32];
  std::snprintf(text, sizeof(text), std::abs(value) >= 1000 ? "%.0f" : "%.3g", value);
  return text;
}

std::optional<bool> Figure::met() const {
  const std::optional<double>& measured = peer.empty() ? value : ratio;
  if ((!at_least && !at_most) || !measured) return std::nullopt;
  // A wrong result meets nothing, however fast it came.
  if (failed()) return false;
  return (!at_least || *measured >= *at_least) && (!at_most || *measured <= *at_most);
}

Json ToJson(const Figure& figure) {
  Json json = Json::object();
  VisitTexts(figure, [&](const char* name, const std::string& text) {
    if (!text.empty()) json[name] = text;
  });
  VisitOptional(figure, [&](const char* name, const auto& value) {
    if (value) json[name] = *value;
  });
  if (figure.runs > 0) json["runs"] = figure.runs;
  if (auto met = figure.met()) json["met"] = *met;
  return json;
}

Figure FigureFromJson(const Json& json) {
  Figure figure;
  VisitTexts(figure, [&](const char* name, std::string& text) {
    if (json.contains(name)) text = json[name].get<std::string>();
  });
  VisitOptional(figure, [&]<typename T>(const char* name, std::optional<T>& value) {
    // What is not finite is written as null.
    if (json.contains(name) && !json[name].is_null()) value = json[name].get<T>();
  });
  figure.runs = json.value("runs", int64_t{0});
  return figure;
}

bool Report::failed() const {
  auto failed = [](const TestResult& t) { return t.state == TestResult::State::kFailed; };
  return std::any_of(figures.begin(), figures.end(), [](const Figure& f) { return f.failed(); }) ||
         std::any_of(tests.begin(), tests.end(), failed);
}

int Report::missed() const {
  return static_cast<int>(std::count_if(figures.begin(), figures.end(),
                                        [](const Figure& f) { return f.met() == false; }));
}

Json Report::ToJson() const {
  Json json = machine;
  json["figures"] = Json::array();
  for (const Figure& f : figures) json["figures"].push_back(gpu_check::ToJson(f));
  json["tests"] = Json::array();
  for (const TestResult& t : tests) {
    Json& test = json["tests"].emplace_back(Json::object());
    test["name"] = t.name;
    test["state"] = kStates[static_cast<size_t>(t.state)];
    test["seconds"] = t.seconds;
    if (!t.output.empty()) test["output"] = t.output;
  }
  json["targets_missed"] = missed();
  json["failed"] = failed();
  return json;
}

std::string Report::Table() const {
  std::string table;
  for (const auto& [key, value] : machine.items()) {
    table +=
        Cat(Padded(key, 20), value.is_string() ? value.get<std::string>() : value.dump(), "\n");
  }
  if (!figures.empty()) {
    table += Cat("\n", Padded("what", 46), Padded("size", 24), Padded("measured", 16, true), "  ",
                 Padded("beside", 28), Padded("ratio", 7, true), "  target\n");
    for (const Figure& f : figures) table += Line(f);
    table += missed() > 0 ? Cat(missed(), " targets missed\n") : "";
  }
  std::array<int, 3> counts = {};
  double seconds = 0;
  for (const TestResult& t : tests) {
    ++counts[static_cast<size_t>(t.state)];
    seconds += t.seconds;
  }
  if (!tests.empty()) {
    table += Cat("\n", tests.size(), " tests, ", NumberText(seconds), " s in all: ", counts[0],
                 " passed, ", counts[1], " failed, ", counts[2], " skipped\n");
    for (const TestResult& t : tests) {
      if (t.state != TestResult::State::kFailed) continue;
      table += Cat("FAILED ", t.name, "\n", t.output, t.output.ends_with('\n') ? "" : "\n");
    }
  }
  return table;
}

}  // namespace kiln::gpu_check
