#include "kiln/function.h"

#include <memory>

#include "capi/deep.h"
#include "capi/error.h"
#include "capi/graph.h"
#include "capi/handle.h"
#include "capi/options.h"
#include "capi/run_plan.h"
#include "capi/session_options.h"
#include "session/function.h"

using kiln::Cat;
using kiln::InvalidArgument;
using kiln::OkStatus;
using kiln::Ref;
using kiln::Status;
using kiln::capi::CheckSwitch;
using kiln::capi::GuardDeep;
using kiln::capi::NotNull;
using kiln::client::Client;
using kiln::session::Function;

struct kiln_function : kiln::Counted<kiln_function> {
 public:
  kiln_function(Client& client, std::unique_ptr<Function> function)
      : client_(Ref<Client>::Share(&client)), function_(std::move(function)) {}

  Client& client() const { return *client_; }
  const kiln::session::Plan& plan() const { return function_->plan(); }

 private:
  // The first member: destroyed last.
  Ref<Client> client_;
  const std::unique_ptr<Function> function_;
};

namespace {

kiln::Result<kiln::session::SessionOptions> ReadFunctionOptions(const kiln_function_options& read,
                                                                Client& client) {
  KILN_ASSIGN_OR_RETURN(kiln::client::Device * device,
                        kiln::capi::ChosenDevice(client, read.device));
  for (auto [name, value] : {std::pair("must_compile", read.must_compile),
                             {"lazy", read.lazy},
                             {"asynchronous_compilation", read.asynchronous_compilation}}) {
    KILN_RETURN_IF_ERROR(CheckSwitch(Cat("kiln_function_options.", name), value));
  }
  const kiln::capi::CompileMode mode{.is_lazy = read.lazy != 0,
                                     .is_asynchronous = read.asynchronous_compilation != 0,
                                     .is_strict = read.must_compile != 0};
  KILN_RETURN_IF_ERROR(kiln::capi::CheckMode("kiln_function_options.must_compile", mode));
  if (read.reserved != 0) return InvalidArgument("kiln_function_options.reserved is not 0");
  if (read.max_programs < 0) {
    return InvalidArgument("kiln_function_options.max_programs is ", read.max_programs);
  }
  kiln::session::SessionOptions options = kiln::capi::OptionsOf(client.flags().session, mode);
  options.device = device;
  options.must_compile = read.must_compile != 0;
  options.clustering.level = kiln::session::JitLevel::kOn;
  options.clustering.cpu_global_jit = true;
  if (read.max_programs > 0) options.policy.bound = static_cast<size_t>(read.max_programs);
  return options;
}

}  // namespace

void kiln_function_options_init(kiln_function_options* options, size_t size) {
  kiln::capi::InitOptions(options, size);
}

kiln_error* kiln_function_create(const kiln_graph* graph, const kiln_function_options* options,
                                 kiln_function** function) {
  return GuardDeep([&]() -> Status {
    KILN_RETURN_IF_ERROR(
        NotNull("kiln_function_create", {{"graph", graph}, {"function", function}}));
    KILN_RETURN_IF_ERROR(graph->CheckComplete());
    KILN_ASSIGN_OR_RETURN(kiln_function_options read,
                          kiln::capi::ReadOptions("kiln_function_options", options));
    Client& client = graph->client();
    KILN_ASSIGN_OR_RETURN(auto made_with, ReadFunctionOptions(read, client));
    KILN_ASSIGN_OR_RETURN(auto made, Function::Create(graph->module(), client, made_with));
    *function = kiln::capi::HandOver(kiln::MakeRef<kiln_function>(client, std::move(made)));
    return OkStatus();
  });
}

void kiln_function_retain(kiln_function* function) { kiln::capi::RetainHandle(function); }

void kiln_function_release(kiln_function* function) { kiln::capi::ReleaseHandle(function); }

kiln_error* kiln_function_call(kiln_function* function, const kiln_execute_options* options,
                               kiln_buffer* const* arguments, size_t argument_count,
                               kiln_buffer** results, size_t result_count) {
  return kiln::capi::Guard([&]() -> Status {
    KILN_RETURN_IF_ERROR(NotNull("kiln_function_call", {{"function", function}}));
    KILN_RETURN_IF_ERROR(kiln::capi::RunPlan(function->plan(), options, arguments, argument_count,
                                             results, result_count));
    function->client().RunDeferred();
    return OkStatus();
  });
}

size_t kiln_function_result_count(const kiln_function* function) {
  return function ? function->plan().signature().results.size() : 0;
}

kiln_error* kiln_function_statistics(kiln_function* function, kiln_function_info* info) {
  return kiln::capi::Guard([&]() -> Status {
    KILN_RETURN_IF_ERROR(
        NotNull("kiln_function_statistics", {{"function", function}, {"info", info}}));
    kiln_function_info told = KILN_FUNCTION_INFO_INIT;
    for (const auto& [unit, statistics] : function->plan().statistics()) {
      told.calls += statistics.runs;
      told.compiles += statistics.compiles;
      told.fallbacks += statistics.fallbacks;
      told.evictions += statistics.evictions;
      told.programs += statistics.programs;
    }
    return kiln::capi::WriteStruct("kiln_function_info", told, info);
  });
}
