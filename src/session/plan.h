// The plan of a session for one set of feeds and fetches: units in order, and their programs.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "base/id.h"
#include "base/ref.h"
#include "base/status.h"
#include "client/buffer.h"
#include "client/client.h"
#include "client/executable.h"
#include "client/execution.h"
#include "ir/ir.h"
#include "program/program.h"
#include "session/unit_program.h"
#include "session/units.h"
#include "session/variables.h"

namespace kiln::session {

// Any number of threads may run it at once.
class Plan {
 public:
  // `graph` is the module of which the units are parts; its last feeds and fetches are variables.
  Plan(client::Client& client, std::unique_ptr<const ir::Module> graph, Units units,
       IdVector<UnitId, std::unique_ptr<UnitProgram>> programs, RunInfo info,
       std::shared_ptr<Variables> variables, VariableUses uses);

  client::Client& client() const { return client_; }
  const std::string& name() const { return graph_->name(); }
  // The cost of the programs made before any run.
  const RunInfo& info() const { return info_; }
  // The shapes of the feeds and the fetches, without variables.
  const program::Signature& signature() const { return signature_; }
  // The program of the only unit, whose arguments are the feeds and whose results are the fetches;
  // null if there are several units, or none, or if sizes are open.
  const client::Executable* single() const { return single_.get(); }
  // Of each unit, by name.
  std::vector<std::pair<std::string, ProgramStatistics>> statistics() const;

  // Runs the units on their devices, each when its arguments are ready, and returns at the end of
  // all. Feeds may be on any device of the client: those needed elsewhere are copied. `fetches` has
  // the caller's buffers, on the devices of the values, or null; on success it has all results. On
  // failure it is unchanged, but the caller's buffers may have been written.
  //
  // The run sees the values that the variables have at its start. At its end the assigned ones are
  // set, all at once; a run that fails sets none. Runs that assign a variable go one after the
  // other. The last unit may update variables in their memory (in_place.h): if its device is lost
  // meanwhile, these have no value.
  Status Run(const client::ExecuteOptions& options, std::span<client::Buffer* const> feeds,
             std::span<Ref<client::Buffer>> fetches) const;

 private:
  Status CheckFeeds(std::span<client::Buffer* const> feeds, size_t fetch_count) const;
  Status CheckFeed(size_t number, const client::Buffer* feed) const;

  client::Client& client_;
  const std::unique_ptr<const ir::Module> graph_;
  const Units units_;
  const IdVector<UnitId, std::unique_ptr<UnitProgram>> programs_;
  // Of each value the devices that read it, beside the one that makes it.
  const IdVector<ValueId, std::vector<client::Device*>> readers_;
  const program::Signature signature_;
  const bool has_symbols_;
  const RunInfo info_;
  const std::shared_ptr<Variables> variables_;
  const VariableUses uses_;
  Ref<const client::Executable> single_;
};

}  // namespace kiln::session
