// The arguments of a program: made up from a seed, or from files.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/status.h"
#include "ir/ir.h"
#include "tensor/literal.h"

namespace kiln::run {

struct ArgumentSource {
  uint64_t seed = 0;
  bool zeros = false;         // in the place of seeded values
  bool large_floats = false;  // of magnitudes up to 1e6
  // .npy, .npz or .safetensors.
  std::vector<std::string> files;
};

struct Arguments {
  std::vector<Literal> values;      // of the parameters
  std::vector<std::string> unused;  // names of arrays in files that no argument has
  size_t seeded = 0;                // the number of arguments that no file has
};

// The names are those of the C ABI (kiln_executable_argument_name()): a parameter's op_name, or
// else its name; arrays in a tuple have their index appended, ".0". Arrays with such names are
// these arguments; otherwise the arrays of all files are the arguments, in order. What is in no
// file is made up. Errors name the file and the argument.
Result<Arguments> MakeArguments(const ir::Module& module, const ArgumentSource& source);

}  // namespace kiln::run
