// The open loops and conditionals of a graph under construction.
#pragma once

#include <vector>

#include "base/status.h"

namespace kiln::device {

class OpenBodies {
 public:
  // The current branch of a conditional; none for a loop.
  struct Body {
    int node = 0;
    int branches = 0;
    int branch = 0;
  };

  bool empty() const { return bodies_.empty(); }
  void BeginWhile(int node) { bodies_.push_back({node, 0, 0}); }
  Status BeginBranches(int node, bool by_predicate, int branches) {
    if (branches < 1 || (by_predicate && branches != 2)) {
      return InvalidArgument("a graph has no choice of ", branches, " branches",
                             by_predicate ? " by a predicate" : "");
    }
    bodies_.push_back({node, branches, 0});
    return OkStatus();
  }
  // The conditional that continues with its next branch.
  Result<Body> Next() {
    if (empty() || bodies_.back().branch + 1 >= bodies_.back().branches) {
      return FailedPrecondition("a graph has no next branch here");
    }
    ++bodies_.back().branch;
    return bodies_.back();
  }
  Result<Body> End() {
    if (empty()) return FailedPrecondition("a graph has no loop or choice that could end here");
    Body body = bodies_.back();
    if (body.branch + 1 < body.branches) {
      return FailedPrecondition("a choice in a graph ends after branch ", body.branch, " of ",
                                body.branches);
    }
    bodies_.pop_back();
    return body;
  }
  Status CheckNone() const {
    return empty() ? OkStatus() : FailedPrecondition("a graph is finished in a loop or choice");
  }

 private:
  std::vector<Body> bodies_;
};

}  // namespace kiln::device
