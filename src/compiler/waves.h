// Launches of a program that may run at the same time, for devices whose threads run them one by
// one.
#pragma once

#include <cstdint>
#include <vector>

#include "program/program.h"

namespace kiln::compiler {

// Consecutive launches of one list of steps, none of which touches memory written by another. Each
// runs on one thread, beside the others.
struct Wave {
  // The launches are divided into batches, each worth handing over to a thread: the end of each, as
  // a number of launches from the wave's first one. The last end is the number of all.
  std::vector<int32_t> ends;

  int32_t launches() const { return ends.back(); }
};

struct Waves {
  std::vector<Wave> waves;
  // By launch the index of the wave that begins with it, or -1; empty if there are no waves.
  IdVector<program::LaunchId, int32_t> begun_by;
};

}  // namespace kiln::compiler
