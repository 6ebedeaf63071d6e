// Reads the HLO corpora: every file is a module that Kiln takes, or names what Kiln does not have.
#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <map>
#include <sstream>

#include <gtest/gtest.h>

#include "ir/verifier.h"
#include "support/hlo.h"
#include "support/labels.h"

namespace kiln::ir {
namespace {

// Files that the folder of the environment variable has; the skipped test says how many were not
// looked at, as known when the corpora were taken.
void ReadAll(const char* variable, std::string_view folder, int known_files) {
  const char* root = std::getenv(variable);
  if (!root || !*root) {
    GTEST_SKIP() << variable << " is not set: " << known_files << " files were not looked at";
  }
  std::vector<std::filesystem::path> files;
  for (const auto& entry :
       std::filesystem::recursive_directory_iterator(std::filesystem::path(root) / folder)) {
    if (entry.path().extension() == ".hlo") files.push_back(entry.path());
  }
  std::sort(files.begin(), files.end());
  ASSERT_FALSE(files.empty()) << root << "/" << folder;
  int read = 0;
  std::map<std::string, int> missing;
  for (const auto& file : files) {
    std::ifstream stream(file, std::ios::binary);
    std::stringstream text;
    text << stream.rdbuf();
    auto module = ParseHloText(text.str());
    if (!module.ok()) {
      std::string_view message = module.status().message();
      EXPECT_EQ(module.status().code(), Code::kUnimplemented)
          << file << ": " << module.status().ToString();
      size_t what = message.find(": ");
      EXPECT_NE(message.find("is not implemented"), std::string_view::npos) << message;
      ++missing[std::string(message.substr(what == std::string_view::npos ? 0 : what + 2))];
      continue;
    }
    ++read;
    EXPECT_TRUE(Verify(**module).ok()) << file;
    // What is printed reads as the same module, and prints the same.
    std::string printed = ToHloText(**module);
    auto again = ParseHloText(printed);
    ASSERT_TRUE(again.ok()) << file << ": " << again.status().ToString();
    EXPECT_EQ(ToHloText(**again), printed) << file;
  }
  std::cout << read << " of " << files.size() << " files were read\n";
  for (const auto& [what, count] : missing) std::cout << "  " << count << " x " << what << "\n";
}

TEST(CorpusHlo, Conformance) { ReadAll("KILN_CONFORMANCE_DIR", "hlo", 57); }
TEST(CorpusHlo, Workloads) { ReadAll("KILN_WORKLOADS_DIR", "hlo", 17); }

KILN_LABEL(corpus, "CorpusHlo");

}  // namespace
}  // namespace kiln::ir
