// What gpu-check finds out: figures and tests, and how they are written down.
#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

namespace kiln::gpu_check {

using Json = nlohmann::ordered_json;

// One thing that was measured. What could not be has an error, or a note that says why.
struct Figure {
  std::string name, size;
  std::optional<double> value;
  std::string unit;
  // Of one run: the median and the least of so many.
  std::optional<double> median_us, minimum_us;
  int64_t runs = 0;
  // Of one run, as they are counted for the value.
  std::optional<double> bytes, flops;
  std::optional<int64_t> kernels;
  // What it is held against, and the value over that one's.
  std::string peer;
  std::optional<double> peer_value, ratio;
  // What the ratio must reach, or without a peer the value.
  std::optional<double> at_least, at_most;
  // Whether the results are the reference's: the largest difference, and how much is allowed.
  std::optional<bool> correct;
  std::optional<double> difference, allowed;
  std::optional<double> peer_difference;  // of the peer's results
  std::string note, error;

  // Nothing where there is no target, or nothing that could meet it.
  std::optional<bool> met() const;
  bool failed() const { return !error.empty() || correct == false; }
};

// Three digits, or all before the point.
std::string NumberText(double value);

Json ToJson(const Figure& figure);
Figure FigureFromJson(const Json& json);

struct TestResult {
  enum class State { kPassed, kFailed, kSkipped };
  std::string name;
  State state = State::kPassed;
  double seconds = 0;
  std::string output;  // the end of it, of one that failed
};

struct Report {
  Json machine = Json::object();  // what was measured, where and when
  std::vector<Figure> figures;
  std::vector<TestResult> tests;

  bool failed() const;
  int missed() const;
  Json ToJson() const;
  std::string Table() const;
};

}  // namespace kiln::gpu_check
