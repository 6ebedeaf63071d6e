#include "kiln/session.h"

#include <algorithm>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string_view>
#include <tuple>
#include <vector>

#include "base/strings.h"
#include "capi/deep.h"
#include "capi/error.h"
#include "capi/graph.h"
#include "capi/handle.h"
#include "capi/options.h"
#include "capi/run_plan.h"
#include "capi/session_options.h"
#include "capi/text.h"
#include "capi/value_names.h"
#include "client/transfer.h"
#include "session/plan.h"
#include "session/session.h"

using kiln::InvalidArgument;
using kiln::NotFound;
using kiln::OkStatus;
using kiln::Ref;
using kiln::Result;
using kiln::Status;
using kiln::capi::Guard;
using kiln::capi::GuardDeep;
using kiln::capi::NotNull;
using kiln::capi::Unwrap;
using kiln::client::Buffer;
using kiln::client::Client;
using kiln::client::Device;
using kiln::session::Plan;
using kiln::session::Session;

namespace {

// The values of a run, by the user's ids.
struct Endpoints {
  std::span<const kiln_value> feeds, fetches, targets;
};

Result<Endpoints> ReadEndpoints(std::string_view function, const kiln_value* feeds,
                                size_t feed_count, const kiln_value* fetches, size_t fetch_count,
                                const kiln_value* targets, size_t target_count) {
  for (const auto& [name, list, count] : {std::tuple("feeds", feeds, feed_count),
                                          {"fetches", fetches, fetch_count},
                                          {"targets", targets, target_count}}) {
    if (!list && count > 0) return InvalidArgument(function, ": ", name, " is NULL");
  }
  return Endpoints{{feeds, feed_count}, {fetches, fetch_count}, {targets, target_count}};
}

}  // namespace

struct kiln_session : kiln::Counted<kiln_session> {
 public:
  kiln_session(const kiln_graph& graph, std::unique_ptr<kiln::session::Session> session)
      : client_(Ref<Client>::Share(&graph.client())),
        session_(std::move(session)),
        variable_names_(NamesOf(session_->variables())),
        name_(graph.module().name()),
        first_value_(graph.values().empty() ? 0 : graph.IdOf(graph.values().front())) {
    for (const kiln::ir::Instruction* value : graph.values()) {
      value_names_.push_back(value->name());
      origins_.push_back(value->op_name());
    }
  }

  Client& client() const { return *client_; }

  kiln::session::Session& session() const { return *session_; }
  const std::vector<std::string>& variables() const { return variable_names_; }

  // The prepared run, made by the first call with these values.
  Result<std::shared_ptr<const Plan>> Prepare(const Endpoints& ends) {
    std::tuple key(Ids(ends.feeds.begin(), ends.feeds.end()),
                   Ids(ends.fetches.begin(), ends.fetches.end()),
                   Ids(ends.targets.begin(), ends.targets.end()));
    std::lock_guard lock(mutex_);
    if (auto it = prepared_.find(key); it != prepared_.end()) return it->second;
    KILN_ASSIGN_OR_RETURN(std::vector<std::string> feeds, NamesOf("feed", ends.feeds));
    KILN_ASSIGN_OR_RETURN(std::vector<std::string> fetches, NamesOf("fetch", ends.fetches));
    KILN_ASSIGN_OR_RETURN(std::vector<std::string> targets, NamesOf("target", ends.targets));
    // Runs, which are frequent, stay on the caller's stack.
    Result<std::shared_ptr<const Plan>> plan = std::shared_ptr<const Plan>();
    KILN_RETURN_IF_ERROR(
        kiln::OnOwnStack([&] { plan = session_->Prepare(feeds, fetches, targets); }));
    if (plan.ok()) prepared_.emplace(std::move(key), *plan);
    return plan;
  }

  Result<kiln_value> Find(std::string_view wanted) const {
    KILN_ASSIGN_OR_RETURN(std::optional<size_t> found,
                          kiln::capi::FindByName(
                              name_, wanted, value_names_.size(),
                              [&](size_t i) -> std::string_view { return value_names_[i]; },
                              [&](size_t i) -> std::string_view { return origins_[i]; }));
    if (found) return first_value_ + *found;
    return NotFound("the graph '", name_, "' had no value of the name '", wanted,
                    "' when the session was made");
  }

  // A text about a run, made by a function of the session.
  using Description = Result<std::string> (kiln::session::Session::*)(
      std::span<const std::string> feeds, std::span<const std::string> fetches,
      std::span<const std::string> targets) const;
  Result<std::string> Describe(Description describe, const Endpoints& ends) const {
    KILN_ASSIGN_OR_RETURN(auto feeds, NamesOf("feed", ends.feeds));
    KILN_ASSIGN_OR_RETURN(auto fetches, NamesOf("fetch", ends.fetches));
    KILN_ASSIGN_OR_RETURN(auto targets, NamesOf("target", ends.targets));
    return ((*session_).*describe)(feeds, fetches, targets);
  }

 private:
  static std::vector<std::string> NamesOf(const kiln::session::Variables& variables) {
    std::vector<std::string> names;
    for (const auto& [name, declaration] : variables.declared()) names.push_back(name);
    return names;
  }

  Result<std::vector<std::string>> NamesOf(std::string_view what,
                                           std::span<const kiln_value> values) const {
    std::vector<std::string> names;
    for (size_t i = 0; i < values.size(); ++i) {
      // Ids of a graph are consecutive; see kiln_graph::IdOf.
      uint64_t index = values[i] - first_value_;
      if (values[i] == 0 || index >= value_names_.size()) {
        return InvalidArgument(what, " ", i, ": the value ", values[i],
                               " is not one that the graph '", name_,
                               "' had when the session was made");
      }
      names.push_back(value_names_[index]);
    }
    return names;
  }

  Ref<Client> client_;
  const std::unique_ptr<kiln::session::Session> session_;
  const std::vector<std::string> variable_names_;
  const std::string name_;
  const kiln_value first_value_;
  std::vector<std::string> value_names_, origins_;
  std::mutex mutex_;
  using Ids = std::vector<kiln_value>;
  std::map<std::tuple<Ids, Ids, Ids>, std::shared_ptr<const Plan>> prepared_;
};

namespace {

kiln_error* Describe(std::string_view function, kiln_session::Description describe,
                     const kiln_session* session, const kiln_value* feeds, size_t feed_count,
                     const kiln_value* fetches, size_t fetch_count, const kiln_value* targets,
                     size_t target_count, kiln_text** text) {
  return GuardDeep([&]() -> Status {
    KILN_RETURN_IF_ERROR(NotNull(function, {{"session", session}, {"text", text}}));
    KILN_ASSIGN_OR_RETURN(Endpoints ends, ReadEndpoints(function, feeds, feed_count, fetches,
                                                        fetch_count, targets, target_count));
    KILN_ASSIGN_OR_RETURN(std::string made, session->Describe(describe, ends));
    *text = new kiln_text(std::move(made));
    return OkStatus();
  });
}

}  // namespace

void kiln_session_options_init(kiln_session_options* options, size_t size) {
  kiln::capi::InitOptions(options, size);
}

kiln_error* kiln_session_create(const kiln_graph* graph, const kiln_session_options* options,
                                kiln_session** session) {
  return GuardDeep([&]() -> Status {
    KILN_RETURN_IF_ERROR(NotNull("kiln_session_create", {{"graph", graph}, {"session", session}}));
    KILN_RETURN_IF_ERROR(graph->status());
    KILN_ASSIGN_OR_RETURN(kiln_session_options read,
                          kiln::capi::ReadOptions("kiln_session_options", options));
    Client& client = graph->client();
    KILN_ASSIGN_OR_RETURN(kiln::session::SessionOptions made_with,
                          kiln::capi::ReadSessionOptions(read, client));
    KILN_ASSIGN_OR_RETURN(auto made,
                          kiln::session::Session::Create(graph->module(), client, made_with));
    *session = kiln::capi::HandOver(kiln::MakeRef<kiln_session>(*graph, std::move(made)));
    return OkStatus();
  });
}

kiln_error* kiln_session_explain(kiln_session* session, const kiln_value* feeds, size_t feed_count,
                                 const kiln_value* fetches, size_t fetch_count,
                                 const kiln_value* targets, size_t target_count, kiln_text** text) {
  return Describe("kiln_session_explain", &Session::Explain, session, feeds, feed_count, fetches,
                  fetch_count, targets, target_count, text);
}

kiln_error* kiln_session_to_dot(kiln_session* session, const kiln_value* feeds, size_t feed_count,
                                const kiln_value* fetches, size_t fetch_count,
                                const kiln_value* targets, size_t target_count, kiln_text** text) {
  return Describe("kiln_session_to_dot", &Session::ToDot, session, feeds, feed_count, fetches,
                  fetch_count, targets, target_count, text);
}

void kiln_session_retain(kiln_session* session) { kiln::capi::RetainHandle(session); }

void kiln_session_release(kiln_session* session) { kiln::capi::ReleaseHandle(session); }

kiln_error* kiln_session_prepare(kiln_session* session, const kiln_value* feeds, size_t feed_count,
                                 const kiln_value* fetches, size_t fetch_count,
                                 const kiln_value* targets, size_t target_count,
                                 kiln_program_info* info) {
  return Guard([&]() -> Status {
    KILN_RETURN_IF_ERROR(NotNull("kiln_session_prepare", {{"session", session}}));
    KILN_ASSIGN_OR_RETURN(Endpoints ends,
                          ReadEndpoints("kiln_session_prepare", feeds, feed_count, fetches,
                                        fetch_count, targets, target_count));
    KILN_ASSIGN_OR_RETURN(std::shared_ptr<const Plan> plan, session->Prepare(ends));
    if (!info) return OkStatus();
    kiln_program_info told = KILN_PROGRAM_INFO_INIT;
    told.kernels = plan->info().kernels;
    told.temporary_bytes = plan->info().temporary_bytes;
    told.compile_microseconds = plan->info().compile_microseconds;
    return kiln::capi::WriteStruct("kiln_program_info", told, info);
  });
}

kiln_error* kiln_session_run(kiln_session* session, const kiln_execute_options* options,
                             const kiln_value* feeds, kiln_buffer* const* feed_buffers,
                             size_t feed_count, const kiln_value* fetches,
                             kiln_buffer** fetch_buffers, size_t fetch_count,
                             const kiln_value* targets, size_t target_count) {
  return Guard([&]() -> Status {
    KILN_RETURN_IF_ERROR(NotNull("kiln_session_run", {{"session", session}}));
    KILN_ASSIGN_OR_RETURN(Endpoints ends,
                          ReadEndpoints("kiln_session_run", feeds, feed_count, fetches, fetch_count,
                                        targets, target_count));
    KILN_ASSIGN_OR_RETURN(std::shared_ptr<const Plan> plan, session->Prepare(ends));
    KILN_RETURN_IF_ERROR(
        kiln::capi::RunPlan(*plan, options, feed_buffers, feed_count, fetch_buffers, fetch_count));
    session->client().RunDeferred();
    return OkStatus();
  });
}

kiln_error* kiln_session_find_value(const kiln_session* session, const char* name,
                                    size_t name_length, kiln_value* value) {
  return Guard([&]() -> Status {
    KILN_RETURN_IF_ERROR(
        NotNull("kiln_session_find_value", {{"session", session}, {"value", value}}));
    KILN_ASSIGN_OR_RETURN(std::string_view wanted, kiln::capi::TextOf("name", name, name_length));
    KILN_ASSIGN_OR_RETURN(*value, session->Find(wanted));
    return OkStatus();
  });
}

size_t kiln_session_variable_count(const kiln_session* session) {
  return session ? session->variables().size() : 0;
}

const char* kiln_session_variable_name(const kiln_session* session, size_t index, size_t* length) {
  const std::string* name =
      session && index < session->variables().size() ? &session->variables()[index] : nullptr;
  if (length) *length = name ? name->size() : 0;
  return name ? name->c_str() : nullptr;
}

kiln_error* kiln_session_set_variable(kiln_session* session, const char* name, size_t name_length,
                                      kiln_buffer* value) {
  return Guard([&]() -> Status {
    KILN_RETURN_IF_ERROR(
        NotNull("kiln_session_set_variable", {{"session", session}, {"value", value}}));
    KILN_ASSIGN_OR_RETURN(std::string_view text, kiln::capi::TextOf("name", name, name_length));
    Buffer& given = *Unwrap(value);
    if (&given.client() != &session->client()) {
      return InvalidArgument("the value for the variable '", text, "' is of another context");
    }
    KILN_ASSIGN_OR_RETURN(Ref<Buffer> copy, kiln::client::CopyToDevice(given, given.device()));
    std::pair set{std::string(text), std::move(copy)};
    KILN_RETURN_IF_ERROR(session->session().variables().Set({&set, 1}));
    session->client().RunDeferred();
    return OkStatus();
  });
}

kiln_error* kiln_session_variable(kiln_session* session, const char* name, size_t name_length,
                                  kiln_buffer** value) {
  return Guard([&]() -> Status {
    KILN_RETURN_IF_ERROR(
        NotNull("kiln_session_variable", {{"session", session}, {"value", value}}));
    KILN_ASSIGN_OR_RETURN(std::string_view text, kiln::capi::TextOf("name", name, name_length));
    KILN_ASSIGN_OR_RETURN(Ref<Buffer> found,
                          session->session().variables().Value(std::string(text)));
    *value = kiln::capi::HandOver(std::move(found));
    return OkStatus();
  });
}

kiln_error* kiln_session_save(kiln_session* session, const char* path, size_t path_length) {
  return Guard([&]() -> Status {
    KILN_RETURN_IF_ERROR(NotNull("kiln_session_save", {{"session", session}, {"path", path}}));
    KILN_RETURN_IF_ERROR(session->session().variables().Save(std::string(path, path_length)));
    session->client().RunDeferred();
    return OkStatus();
  });
}

kiln_error* kiln_session_restore(kiln_session* session, const char* path, size_t path_length) {
  return Guard([&]() -> Status {
    KILN_RETURN_IF_ERROR(NotNull("kiln_session_restore", {{"session", session}, {"path", path}}));
    kiln::session::Session& restored = session->session();
    KILN_RETURN_IF_ERROR(
        restored.variables().Restore(std::string(path, path_length), restored.default_device()));
    session->client().RunDeferred();
    return OkStatus();
  });
}
