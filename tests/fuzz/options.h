// The options that all programs of this folder have: for how long, from where on, by which seed.
#pragma once

#include <chrono>
#include <cstdint>
#include <cstdlib>
#include <string_view>

namespace kiln::fuzz {

struct Options {
  double seconds = 0;
  uint64_t first = 0, count = 0, seed = 1;
  bool keep_going = false;

  // Takes argv[i], and what stands behind it: false where it is none of these.
  bool Take(int argc, char** argv, int& i) {
    const std::string_view arg = argv[i];
    if (arg == "--keep-going") {
      keep_going = true;
      return true;
    }
    if (i + 1 == argc) return false;
    if (arg == "--seconds") {
      seconds = std::atof(argv[++i]);
    } else if (arg == "--count") {
      count = std::strtoull(argv[++i], nullptr, 10);
    } else if (arg == "--first") {
      first = std::strtoull(argv[++i], nullptr, 10);
    } else if (arg == "--seed") {
      seed = std::strtoull(argv[++i], nullptr, 10);
    } else {
      return false;
    }
    return true;
  }

  // Whether number `next` is to be run, after so many findings: ten seconds where nothing is said.
  bool GoesOn(uint64_t next, int findings) const {
    if (findings > 0 && !keep_going) return false;
    if (count > 0) return next < first + count;
    const std::chrono::duration<double> most(seconds > 0 ? seconds : 10);
    return std::chrono::steady_clock::now() - start_ < most;
  }

 private:
  const std::chrono::steady_clock::time_point start_ = std::chrono::steady_clock::now();
};

}  // namespace kiln::fuzz
