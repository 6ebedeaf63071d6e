// The main of the unit tests. KILN_TEST_LOCALE names a locale to run them in, for C's and C++'s
// functions both; the host application of the library may have set any.
#include <clocale>
#include <cstdio>
#include <cstdlib>
#include <locale>
#include <stdexcept>

#include <gtest/gtest.h>

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

}  // namespace

int main(int argc, char** argv) {
  testing::InitGoogleTest(&argc, argv);
  const char* name = std::getenv("KILN_TEST_LOCALE");
  if (name && !SetCommaLocale(name)) return 1;
  return RUN_ALL_TESTS();
}
