// The main of the unit tests. KILN_TEST_LOCALE names a locale to run them in, for C's and C++'s
// functions both; the host application of the library may have set any.
#include <clocale>
#include <cstdio>
#include <cstdlib>
#include <locale>
#include <stdexcept>

#include <gtest/gtest.h>

#include "support/labels.h"

namespace {

// Sets the locale and sees that its numbers have a comma: the test is void without it.
bool SetCommaLocale(const char* name) {
  try {
    std::locale::global(std::locale(name));
  } catch (const std::runtime_error& error) {
    std::printf("KILN_TEST_LOCALE=%s: %s\n", name, error.what());
    return false;
  }
  return std::localeconv()->decimal_point[0] == ',';
}

constexpr int kSkipped = 77;  // for ctest

}  // namespace

int main(int argc, char** argv) {
  testing::InitGoogleTest(&argc, argv);
  if (!kiln::testing::SelectTests(argc, argv)) return 2;
  const char* name = std::getenv("KILN_TEST_LOCALE");
  if (name && !SetCommaLocale(name)) return 1;
  if (RUN_ALL_TESTS() != 0) return 1;
  const bool is_listing = testing::GTEST_FLAG(list_tests);
  const bool has_run = testing::UnitTest::GetInstance()->successful_test_count() > 0;
  return is_listing || has_run || argc == 1 ? 0 : kSkipped;
}
