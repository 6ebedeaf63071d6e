#include "support/labels.h"

#include <algorithm>
#include <cstdio>
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include <gtest/gtest.h>

namespace kiln::testing {
namespace {

using Labels = std::set<std::string, std::less<>>;

std::map<std::string, Labels>& LabelsByName() {
  static auto& labels = *new std::map<std::string, Labels>;
  return labels;
}

// "SlowMath/MathF32All.Agrees/exp" is a test of the names "SlowMath/MathF32All" and
// "SlowMath/MathF32All.Agrees".
std::vector<std::string> NamesOf(const ::testing::TestInfo& test) {
  std::string suite = test.test_suite_name(), name = test.name();
  if (test.type_param()) suite.resize(suite.rfind('/'));
  if (test.value_param()) name.resize(name.rfind('/'));
  return {suite, suite + "." + name};
}

bool HasLabel(const ::testing::TestInfo& test, std::string_view label) {
  const auto& labels = LabelsByName();
  for (const std::string& name : NamesOf(test)) {
    auto it = labels.find(name);
    if (it != labels.end() && it->second.contains(label)) return true;
  }
  return false;
}

bool IsIn(const ::testing::TestInfo& test, std::string_view path) {
  constexpr std::string_view kRoot = "tests/unit/";
  std::string_view file = test.file();
  file.remove_prefix(file.rfind(kRoot) + kRoot.size());
  return file == path || (file.starts_with(path) && file[path.size()] == '/');
}

std::vector<const ::testing::TestInfo*> AllTests() {
  std::vector<const ::testing::TestInfo*> tests;
  const ::testing::UnitTest& all = *::testing::UnitTest::GetInstance();
  for (int i = 0; i < all.total_test_suite_count(); ++i) {
    const ::testing::TestSuite& suite = *all.GetTestSuite(i);
    for (int k = 0; k < suite.total_test_count(); ++k) tests.push_back(suite.GetTestInfo(k));
  }
  return tests;
}

bool EveryLabelHasATest() {
  std::set<std::string> known;
  for (const ::testing::TestInfo* test : AllTests()) {
    for (std::string& name : NamesOf(*test)) known.insert(std::move(name));
  }
  for (const auto& [name, labels] : LabelsByName()) {
    if (known.contains(name)) continue;
    std::fprintf(stderr, "KILN_LABEL names '%s', which is no test\n", name.c_str());
    return false;
  }
  return true;
}

}  // namespace

bool AddLabel(const char* label, std::initializer_list<const char*> names) {
  for (const char* name : names) LabelsByName()[name].insert(label);
  return true;
}

bool SelectTests(int argc, char** argv) {
  struct Option {
    std::string_view name;
    bool (*matches)(const ::testing::TestInfo&, std::string_view);
    bool wanted;  // what a test of the selection has
  };
  constexpr Option kOptions[] = {{"--in=", IsIn, true},
                                 {"--not-in=", IsIn, false},
                                 {"--label=", HasLabel, true},
                                 {"--not-label=", HasLabel, false}};
  if (!EveryLabelHasATest()) return false;
  std::vector<const ::testing::TestInfo*> tests = AllTests();
  for (int i = 1; i < argc; ++i) {
    const std::string_view argument = argv[i];
    const auto option = std::find_if(std::begin(kOptions), std::end(kOptions),
                                     [&](const auto& o) { return argument.starts_with(o.name); });
    if (option == std::end(kOptions)) {
      std::fprintf(stderr, "'%s' is no option of the tests\n", argv[i]);
      return false;
    }
    std::set<const ::testing::TestInfo*> matching;
    std::string_view rest = argument.substr(option->name.size());
    while (!rest.empty()) {
      const std::string_view word = rest.substr(0, rest.find(','));
      rest.remove_prefix(std::min(word.size() + 1, rest.size()));
      bool has_test = false;
      for (const ::testing::TestInfo* test : AllTests()) {
        if (!option->matches(*test, word)) continue;
        matching.insert(test);
        has_test = true;
      }
      if (has_test) continue;
      std::fprintf(stderr, "%s: '%s' has no test\n", argv[i], std::string(word).c_str());
      return false;
    }
    std::erase_if(tests, [&](const ::testing::TestInfo* test) {
      return matching.contains(test) != option->wanted;
    });
  }
  if (argc == 1) return true;
  std::string filter;
  for (const ::testing::TestInfo* test : tests) {
    filter += std::string(test->test_suite_name()) + "." + test->name() + ":";
  }
  ::testing::GTEST_FLAG(filter) = filter.empty() ? "-*" : filter;
  return true;
}

}  // namespace kiln::testing
