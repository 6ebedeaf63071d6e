#include "session/function.h"

#include <unordered_set>

#include "base/strings.h"
#include "session/values.h"

namespace kiln::session {
namespace {

using ir::Instruction;

// Names of the arrays of a value, in order, each of them once: a copy is made where the value, or
// one before it, is another result already. Elements of tuples are made where they are needed.
class ResultNames {
 public:
  Status Add(Instruction* value) {
    const Shape shape = value->shape();
    if (shape.is_tuple()) {
      for (int64_t k = 0; k < std::ssize(shape.elements()); ++k) {
        KILN_RETURN_IF_ERROR(Add(ir::ElementOf(value, k)));
      }
      return OkStatus();
    }
    if (!shape.is_array()) return OkStatus();
    if (!seen_.insert(value).second) value = CopyOf(value, nullptr);
    names_.push_back(value->name());
    return OkStatus();
  }
  std::vector<std::string> Take() { return std::move(names_); }

 private:
  std::unordered_set<const Instruction*> seen_;
  std::vector<std::string> names_;
};

}  // namespace

Result<std::unique_ptr<Function>> Function::Create(const ir::Module& module, client::Client& client,
                                                   const SessionOptions& options) {
  const std::unique_ptr<ir::Module> copy = module.Clone();
  std::vector<std::string> feeds;
  for (const Instruction* parameter : copy->entry()->parameters()) {
    if (!parameter->shape().is_array()) {
      return Unimplemented("a function of '", parameter->name(), "', which is ", parameter->shape(),
                           "; only arrays can be its arguments");
    }
    feeds.push_back(parameter->name());
  }
  ResultNames names;
  KILN_RETURN_IF_ERROR(names.Add(copy->entry()->root()));
  KILN_ASSIGN_OR_RETURN(std::unique_ptr<Session> session, Session::Create(*copy, client, options));
  KILN_ASSIGN_OR_RETURN(std::shared_ptr<const Plan> plan, session->Prepare(feeds, names.Take()));
  return std::unique_ptr<Function>(new Function(std::move(session), std::move(plan)));
}

}  // namespace kiln::session
