// Custom calls of programs that test evaluators, which the evaluator has itself: checks, probes,
// and several processes. The importer of StableHLO makes them of the dialects check and
// interpreter. Configs (backend_config) are words "name=value".
//
//   check.expect_eq, check.expect_almost_eq, check.expect_close, check.eq
//       (actual, expected) -> (), or a pred, which is true. Fails where the operands do not agree;
//       what that means, and the config, is said in tensor/tolerance.h.
//   interpreter.probe
//       (x) -> x. Keeps the value for check.expect_serialized_eq, under the name that is behind
//       "probe_id=", all the rest of the config.
//   check.expect_serialized_eq
//       (x) -> (). Fails where x is not, bit by bit, what the probe of the name behind "probe_id="
//       was given when it was run for the time "iter=", counted from 0, which stands before.
//   interpreter.print
//       (x) -> (). Gives the value's text to Options::print.
//   interpreter.run_parallel
//       Runs the called computations as processes of a grid, together (processes.h). The config is
//       "replicas=R partitions=P infeed=N": there are R * P programs, process after process of a
//       replica, and behind them N computations without parameters, of which each gives one value
//       of the queue that infeeds read. The operands are the arguments of all programs, one
//       program's after the other's, and so are the parts of the result, a tuple: of a program that
//       gives a tuple its parts, else its value. A result of one part is that value.
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
