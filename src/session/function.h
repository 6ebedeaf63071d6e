// Functions: a graph called with arguments of any fitting shapes.
#pragma once

#include <memory>
#include <span>
#include <string>
#include <vector>

#include "base/ref.h"
#include "base/status.h"
#include "client/buffer.h"
#include "client/client.h"
#include "client/execution.h"
#include "ir/ir.h"
#include "session/plan.h"
#include "session/session.h"

namespace kiln::session {

// A session whose feeds are the graph's parameters and whose fetches are the leaves of its result.
class Function {
 public:
  // The graph is copied. With `options.must_compile` it must be compiled as a whole, which fails
  // here unless it has symbols. The client must outlive the function.
  static Result<std::unique_ptr<Function>> Create(const ir::Module& module, client::Client& client,
                                                  const SessionOptions& options);

  const Plan& plan() const { return *plan_; }

 private:
  Function(std::unique_ptr<Session> session, std::shared_ptr<const Plan> plan)
      : session_(std::move(session)), plan_(std::move(plan)) {}

  const std::unique_ptr<Session> session_;
  const std::shared_ptr<const Plan> plan_;
};

}  // namespace kiln::session
