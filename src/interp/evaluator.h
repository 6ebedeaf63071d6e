// The evaluator of one module, for devices that hold its text.
#pragma once

#include <memory>
#include <span>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "interp/options.h"
#include "tensor/literal.h"
#include "tensor/shape.h"

namespace kiln::ir {
class Module;
}

namespace kiln::interp {

class Evaluator {
 public:
  // From HLO text. Constants that are elided there are `constants`, in their order.
  static Result<std::unique_ptr<const Evaluator>> Read(
      std::string_view text, std::span<const std::shared_ptr<const Literal>> constants = {});
  ~Evaluator();

  const std::vector<Shape>& parameters() const { return parameters_; }
  const Shape& result() const { return result_; }
  int64_t constant_bytes() const { return constant_bytes_; }
  // The reachable functions that it calls by Options::custom_call.
  const std::vector<CalledFunction>& called() const { return called_; }

  // As interp::Evaluate. Any thread.
  Result<Literal> Run(std::span<const Literal> arguments, const Options& options) const;

 private:
  explicit Evaluator(std::unique_ptr<const ir::Module> module);

  const std::unique_ptr<const ir::Module> module_;
  std::vector<Shape> parameters_;
  Shape result_;
  int64_t constant_bytes_ = 0;
  std::vector<CalledFunction> called_;
};

}  // namespace kiln::interp
