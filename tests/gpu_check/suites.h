// The tests, on the GPU that is there.
#pragma once

#include <vector>

#include "benchmarks.h"
#include "figure.h"

namespace kiln::gpu_check {

// The unit tests of programs and the C programs of GPUs, in processes of a few tests each.
std::vector<TestResult> RunTests(const Settings& settings);

}  // namespace kiln::gpu_check
