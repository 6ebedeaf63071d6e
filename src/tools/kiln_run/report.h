// Records as JSON, between processes and for programs, and as text for people.
#pragma once

#include <nlohmann/json.hpp>
#include <optional>
#include <string>

#include "tools/kiln_run/isolate.h"
#include "tools/kiln_run/judge.h"
#include "tools/kiln_run/workers.h"

namespace kiln::run {

using Json = nlohmann::ordered_json;

// Members that have no value are left out; numbers that JSON lacks, infinities and NaNs, are null.
Json ToJson(const Record& record, const JudgeOptions& options);
Json ToJson(const Culprit& culprit);
// One line.
std::string DumpJson(const Json& json);

// The members "file" and "verdict" ("pass" or "fail") and those of the record; of a file whose
// process ended, "failure" says how. The outcome is that of a process that worked on the file.
Json FileReport(const std::string& path, const Outcome& outcome);

// Lines for people, each with its end.
std::string ToText(const Json& file_report);

// What kind of failure a report shows, to tell whether another program fails likewise: "" if none,
// "differs", the code of an error with its step, or how the process ended.
std::string FailureKind(const Json& file_report);

}  // namespace kiln::run
