// Values recorded by running programs, and checks of them: custom calls implemented by both the
// evaluator and compiled code.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "tensor/literal.h"

namespace kiln {

// The recorded values of one run. The config of a call identifies its probe: "probe_id=" followed
// by the name to the end in interpreter.probe, preceded by the iteration, from 0, as "iter=", in
// check.expect_serialized_eq.
class Probes {
 public:
  void Keep(std::string_view config, Literal value);
  // FAILED_PRECONDITION unless the value equals, bit by bit, the value recorded under the name for
  // the iteration.
  Status Expect(std::string_view config, const Literal& value) const;

 private:
  std::map<std::string, std::vector<Literal>, std::less<>> kept_;
};

}  // namespace kiln
