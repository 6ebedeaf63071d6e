// Labels of tests, by which tests/CMakeLists.txt says what runs when:
//   slow        runs in `make test-all` only
//   corpus      reads files of folders that the environment names; skipped where it names none
//   gpu_sample  runs on the emulated GPU, too, in `make test`
//   gpu_smoke   runs where gpu-check is asked for its quick scale
//   standin     needs a stand-in for a library of NVIDIA's; not run by gpu-check
//   text        reads or writes text: runs once more in a locale whose numbers have a comma
// `kiln-unit --label=slow` runs tests that have one of the labels, `--not-label=slow,corpus` those
// that have none of them; `--in=` and `--not-in=` take folders and files below tests/unit.
#pragma once

#include <initializer_list>

// Gives a label to suites ("SlowQuotient", "SlowMath/MathF32All") or tests ("SortOps.Stable"), as
// gtest lists them without the names of parameters.
#define KILN_LABEL(label, ...) KILN_LABEL_AS(__COUNTER__, label, __VA_ARGS__)
#define KILN_LABEL_AS(number, label, ...) KILN_LABEL_VARIABLE(number, label, __VA_ARGS__)
#define KILN_LABEL_VARIABLE(number, label, ...)                     \
  [[maybe_unused]] static const bool has_label_##label##_##number = \
      ::kiln::testing::AddLabel(#label, {__VA_ARGS__})

namespace kiln::testing {

bool AddLabel(const char* label, std::initializer_list<const char*> names);

// Makes gtest run the tests that the arguments select, which are those that gtest has not taken.
// False where an argument is unknown, where it selects nothing, or where a label has no test.
bool SelectTests(int argc, char** argv);

}  // namespace kiln::testing
