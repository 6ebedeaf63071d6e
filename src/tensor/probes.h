// Values that programs keep while they run, and checks of them: custom calls that the evaluator and
// compiled code have alike.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "tensor/literal.h"

namespace kiln {

// What the probes of one run have kept. Calls tell theirs by the config: of interpreter.probe the
// name stands behind "probe_id=", all the rest of it, and of check.expect_serialized_eq the turn,
// from 0, before that, as "iter=".
class Probes {
 public:
  void Keep(std::string_view config, Literal value);
  // FAILED_PRECONDITION where the value is not, bit by bit, what was kept under the name for the
  // turn.
  Status Expect(std::string_view config, const Literal& value) const;

 private:
  std::map<std::string, std::vector<Literal>, std::less<>> kept_;
};

}  // namespace kiln
