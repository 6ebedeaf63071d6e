// Damaged files of others, text and bytecode: an error or a module, soon and in little memory.
#include <gtest/gtest.h>
#include <sys/resource.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <random>
#include <sstream>
#include <string>
#include <vector>

#include "ir/verifier.h"
#include "stablehlo/bytecode/bytecode.h"
#include "stablehlo/import/import.h"
#include "stablehlo/text/text.h"
#include "support/labels.h"

namespace kiln::stablehlo {
namespace {

constexpr int kMutations = 10000;

// Whether it is a program. A module that is made must be a valid one.
bool Reads(const std::string& bytes) {
  auto import = [](const Result<std::unique_ptr<mlir::Module>>& tree) {
    if (!tree.ok()) {
      EXPECT_FALSE(tree.status().message().empty());
      return false;
    }
    auto module = Import(**tree);
    if (!module.ok()) {
      EXPECT_FALSE(module.status().message().empty());
      return false;
    }
    const Status valid = ir::Verify(**module);
    EXPECT_TRUE(valid.ok()) << valid.ToString();
    return true;
  };
  if (IsBytecode(bytes)) return import(ReadBytecode(bytes));
  bool all = true;
  for (const Chunk& chunk : SplitChunks(bytes)) {
    all &= import(ReadText(chunk.text, {.first_line = chunk.first_line}));
  }
  return all;
}

// Cut off, or with a few bits the other way round.
std::string Mutated(std::string bytes, std::mt19937_64& random) {
  if (random() % 3 == 0) {
    bytes.resize(random() % bytes.size());
    return bytes;
  }
  for (uint64_t flips = 1 + random() % 8; flips > 0; --flips) {
    bytes[random() % bytes.size()] ^= static_cast<char>(1 << random() % 8);
  }
  return bytes;
}

int64_t PeakBytes() {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  return int64_t{usage.ru_maxrss} << 10;
}

TEST(CorpusStablehlo, TenThousandMutations) {
  const char* root = std::getenv("KILN_CONFORMANCE_DIR");
  if (!root || !*root) GTEST_SKIP() << "KILN_CONFORMANCE_DIR is not set";
  std::vector<std::filesystem::path> files;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(root)) {
    const std::string extension = entry.path().extension().string();
    if (extension == ".mlir" || extension == ".bc" || extension == ".mlirbc") {
      files.push_back(entry.path());
    }
  }
  ASSERT_FALSE(files.empty());
  std::sort(files.begin(), files.end());
  std::mt19937_64 random(2024);
  std::shuffle(files.begin(), files.end(), random);
  const int64_t before = PeakBytes();
  std::chrono::duration<double> longest(0);
  int read = 0;
  for (int n = 0; n < kMutations; ++n) {
    const auto& file = files[static_cast<size_t>(n) % files.size()];
    std::ifstream stream(file, std::ios::binary);
    std::stringstream content;
    content << stream.rdbuf();
    if (content.view().empty()) continue;
    const std::string bytes = Mutated(content.str(), random);
    const auto start = std::chrono::steady_clock::now();
    read += Reads(bytes);
    const std::chrono::duration<double> took = std::chrono::steady_clock::now() - start;
    longest = std::max(longest, took);
    ASSERT_LT(took.count(), 20) << file << ", mutation " << n;
    ASSERT_LT(PeakBytes() - before, int64_t{1} << 30) << file << ", mutation " << n;
  }
  std::cout << kMutations << " mutations of " << files.size() << " files: " << read
            << " are programs still; the longest took " << longest.count() << " s, and all "
            << ((PeakBytes() - before) >> 20) << " MiB\n";
  // Some damage is in comments and numbers.
  EXPECT_GT(read, 0);
  EXPECT_LT(read, kMutations);
}

KILN_LABEL(corpus, "CorpusStablehlo");

}  // namespace
}  // namespace kiln::stablehlo
