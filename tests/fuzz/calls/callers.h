// A function Call_NAME for each function of the C ABI that adds nothing to a graph: it makes
// arguments at random, calls it, and checks what the header promises.
#pragma once

namespace kiln::fuzz {

class World;

#define KILN_FUZZ_DECLARE(name) void Call_##name(World& world);
#define KILN_FUZZ_DECLARE_kInit KILN_FUZZ_DECLARE
#define KILN_FUZZ_DECLARE_kCreate KILN_FUZZ_DECLARE
#define KILN_FUZZ_DECLARE_kRetain KILN_FUZZ_DECLARE
#define KILN_FUZZ_DECLARE_kRelease KILN_FUZZ_DECLARE
#define KILN_FUZZ_DECLARE_kQuery KILN_FUZZ_DECLARE
#define KILN_FUZZ_DECLARE_kUpdate KILN_FUZZ_DECLARE
#define KILN_FUZZ_DECLARE_kRun KILN_FUZZ_DECLARE
#define KILN_FUZZ_DECLARE_kWrite KILN_FUZZ_DECLARE
#define KILN_FUZZ_DECLARE_kBuild(name)
#define KILN_FUNCTION(name, returns, parameters, role, hands_over, threads, since) \
  KILN_FUZZ_DECLARE_##role(name)
#include "capi/api.def"
#undef KILN_FUNCTION

}  // namespace kiln::fuzz
