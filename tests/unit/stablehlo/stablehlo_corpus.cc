// Reads the StableHLO corpora: each file is taken, but for those that are meant to be refused, and
// what is printed of its tree is read as the same tree.
#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <sstream>

#include "support/labels.h"
#include "support/stablehlo.h"

namespace kiln::stablehlo {
namespace {

// Files that the folder has; the skipped test says how many were not looked at, as known when the
// corpora were taken.
void ReadAll(std::string_view folder, int known_files) {
  const char* root = std::getenv("KILN_CONFORMANCE_DIR");
  if (!root || !*root) {
    GTEST_SKIP() << "KILN_CONFORMANCE_DIR is not set: " << known_files
                 << " files were not looked at";
  }
  std::vector<std::filesystem::path> files;
  for (const auto& entry :
       std::filesystem::recursive_directory_iterator(std::filesystem::path(root) / folder)) {
    if (entry.path().extension() == ".mlir") files.push_back(entry.path());
  }
  std::sort(files.begin(), files.end());
  ASSERT_FALSE(files.empty()) << root << "/" << folder;
  int modules = 0, refused = 0;
  for (const auto& file : files) {
    std::ifstream stream(file, std::ios::binary);
    std::stringstream text;
    text << stream.rdbuf();
    const std::string content = text.str();
    for (const Chunk& chunk : SplitChunks(content)) {
      auto module = ReadText(chunk.text, {.first_line = chunk.first_line});
      if (file.filename().string().starts_with("invalid_")) {
        EXPECT_FALSE(module.ok()) << file;
        ++refused;
        continue;
      }
      ++modules;
      ASSERT_TRUE(module.ok()) << file << ": " << module.status().ToString();
      const std::string printed = mlir::ToText(**module);
      EXPECT_EQ(Generic(printed), printed) << file;
    }
  }
  std::cout << modules << " modules of " << files.size() << " files were read, " << refused
            << " refused\n";
}

TEST(CorpusStablehlo, Text) { ReadAll("stablehlo", 1280); }
TEST(CorpusStablehlo, TextOfBytecode) { ReadAll("vhlo", 7); }

KILN_LABEL(corpus, "CorpusStablehlo");

}  // namespace
}  // namespace kiln::stablehlo
