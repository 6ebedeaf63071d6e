// Custom calls of programs that test evaluators, implemented by the evaluator: checks, probes, and
// several processes. The importer of StableHLO makes them from the dialects check and interpreter.
// Configs (backend_config) are words "name=value".
//
//   check.expect_eq, check.expect_almost_eq, check.expect_close, check.eq
//       (actual, expected) -> (), or a pred, always true. Fails if the operands differ; see
//       tensor/tolerance.h for the criteria and the config.
//   interpreter.probe
//       (x) -> x. Keeps the value for check.expect_serialized_eq. The config is "probe_id=" and a
//       name, the rest of the config.
//   check.expect_serialized_eq
//       (x) -> (). Fails if x differs in any bit from the value kept by a probe. The config is
//       "iter=", the number of the probe's run counted from 0, then "probe_id=" and the name.
//   interpreter.print
//       (x) -> (). Passes the value's text to Options::print.
//   interpreter.run_parallel
//       Runs the called computations together, as processes of a grid (processes.h). The config is
//       "replicas=R partitions=P infeed=N". The called computations are R * P programs, by replica,
//       then by partition, and N computations without parameters, one for each value of the queue
//       of infeeds. The operands are the arguments of all programs, one program after the other.
//       The result is a tuple of all programs' results, in the same order: a tuple's elements, or
//       the value. A single element is the result itself.
#pragma once

#include <functional>
#include <span>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "ir/ir.h"
#include "tensor/literal.h"
#include "tensor/probes.h"

namespace kiln::interp {

inline constexpr std::string_view kRunParallel = "interpreter.run_parallel";

class Harness {
 public:
  // Of what probes keep: the run's.
  explicit Harness(Probes& probes) : probes_(probes) {}

  // Whether it is one of these calls, other than run_parallel, which needs the evaluator.
  static bool Has(std::string_view target);
  // The arrays of the call's result, one by one.
  Result<std::vector<Literal>> Run(const ir::Instruction& call,
                                   std::span<const Literal* const> operands,
                                   const std::function<void(std::string_view)>& print);

 private:
  Probes& probes_;
};

}  // namespace kiln::interp
