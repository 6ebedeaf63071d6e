// Drives one fuzz target without a fuzzing engine: seeds from a folder, mutated by a generator of
// fixed seed, so that a run can be repeated. An input that ends the process is kept in a file.
#include <algorithm>
#include <chrono>
#include <csignal>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <random>
#include <string>
#include <string_view>
#include <vector>

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size);

namespace {

constexpr size_t kMaxInput = 1 << 16;
std::string current;
const char* crash_file = "fuzz-crash.input";

// Only what a signal handler may call.
extern "C" void OnCrash(int signal_number) {
  std::signal(signal_number, SIG_DFL);
  if (FILE* file = std::fopen(crash_file, "wb")) {
    std::fwrite(current.data(), 1, current.size(), file);
    std::fclose(file);
    std::fprintf(stderr, "signal %d; the input is in %s\n", signal_number, crash_file);
  }
  std::raise(signal_number);
}

std::string ReadFile(const std::filesystem::path& path) {
  std::ifstream stream(path, std::ios::binary);
  return std::string(std::istreambuf_iterator<char>(stream), {});
}

std::vector<std::string> ReadSeeds(const std::vector<std::string>& folders) {
  std::vector<std::filesystem::path> paths;
  for (const std::string& folder : folders) {
    std::error_code error;
    for (const auto& entry : std::filesystem::recursive_directory_iterator(folder, error)) {
      if (entry.is_regular_file()) paths.push_back(entry.path());
    }
  }
  std::sort(paths.begin(), paths.end());
  std::vector<std::string> seeds{""};
  for (const auto& path : paths) seeds.push_back(ReadFile(path));
  return seeds;
}

class Mutator {
 public:
  Mutator(std::vector<std::string> seeds, uint64_t seed)
      : seeds_(std::move(seeds)), random_(seed) {}

  std::string Next() {
    std::string input = Pick();
    for (size_t i = 0, n = 1 + Below(6); i < n; ++i) Mutate(input);
    if (input.size() > kMaxInput) input.resize(kMaxInput);
    return input;
  }

 private:
  size_t Below(size_t n) { return n ? random_() % n : 0; }
  const std::string& Pick() { return seeds_[Below(seeds_.size())]; }

  void Mutate(std::string& input) {
    size_t at = Below(input.size() + 1);
    size_t length = Below(std::min<size_t>(input.size() - at, 32) + 1);
    switch (Below(7)) {
      case 0:  // one bit
        if (at < input.size()) input[at] = static_cast<char>(input[at] ^ (1 << Below(8)));
        break;
      case 1:
        input.erase(at, length);
        break;
      case 2:  // a piece of itself elsewhere
        input.insert(Below(input.size() + 1), input.substr(at, length));
        break;
      case 3: {  // a piece of another seed
        const std::string& other = Pick();
        size_t from = Below(other.size() + 1);
        input.insert(at, other, from, Below(64));
        break;
      }
      case 4: {  // numbers at the edges of what is representable
        static const char* const numbers[] = {
            "-1",    "0",  "1", "2147483648", "9223372036854775807", "-9223372036854775808",
            "1e999", "nan"};
        size_t end = at;
        while (end < input.size() && input[end] >= '0' && input[end] <= '9') ++end;
        input.replace(at, end - at, numbers[Below(std::size(numbers))]);
        break;
      }
      case 5:
        input.insert(at, 1, static_cast<char>(random_()));
        break;
      case 6:  // cut off
        if (Below(8) == 0) input.resize(at);
        break;
    }
  }

  std::vector<std::string> seeds_;
  std::mt19937_64 random_;
};

void RunOne(const std::string& input) {
  current = input;
  // A copy of exactly this size lets a sanitizer see reads past its end.
  std::vector<uint8_t> bytes(input.begin(), input.end());
  LLVMFuzzerTestOneInput(bytes.data(), bytes.size());
}

int Usage(const char* program) {
  std::printf(
      "usage: %s [--seconds S] [--runs N] [--seed K] [--corpus DIR]... [FILE]...\n"
      "With files: runs these inputs once. Otherwise mutates the seeds, for S seconds or N runs.\n",
      program);
  return 2;
}

}  // namespace

int main(int argc, char** argv) {
  double seconds = 0;
  int64_t runs = 0;
  uint64_t seed = 1;
  std::vector<std::string> folders{KILN_FUZZ_CORPUS}, files;
  for (int i = 1; i < argc; ++i) {
    std::string_view arg = argv[i];
    if (arg.rfind("--", 0) != 0) {
      files.emplace_back(arg);
    } else if (i + 1 == argc) {
      return Usage(argv[0]);
    } else if (arg == "--seconds") {
      seconds = std::atof(argv[++i]);
    } else if (arg == "--runs") {
      runs = std::atoll(argv[++i]);
    } else if (arg == "--seed") {
      seed = std::strtoull(argv[++i], nullptr, 10);
    } else if (arg == "--corpus") {
      folders.emplace_back(argv[++i]);
    } else {
      return Usage(argv[0]);
    }
  }
  for (int signal_number : {SIGSEGV, SIGABRT, SIGFPE, SIGILL, SIGBUS}) {
    std::signal(signal_number, OnCrash);
  }
  for (const std::string& file : files) RunOne(ReadFile(file));
  if (!files.empty()) return 0;
  if (runs == 0 && seconds == 0) seconds = 10;

  std::vector<std::string> seeds = ReadSeeds(folders);
  if (seeds.size() == 1) {
    std::printf("no seeds in %s\n", KILN_FUZZ_CORPUS);
    return 1;
  }
  for (const std::string& input : seeds) RunOne(input);
  Mutator mutator(std::move(seeds), seed);
  auto start = std::chrono::steady_clock::now();
  int64_t done = 0;
  while (runs ? done < runs
              : std::chrono::steady_clock::now() - start < std::chrono::duration<double>(seconds)) {
    RunOne(mutator.Next());
    ++done;
  }
  std::printf("%lld inputs, seed %llu\n", static_cast<long long>(done),
              static_cast<unsigned long long>(seed));
  return 0;
}
