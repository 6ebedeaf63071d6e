// Runs a graph with feeds and fetches: its ops are placed on devices, clusters of them are
// compiled, and the others are run one by one.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "base/ref.h"
#include "base/status.h"
#include "client/buffer.h"
#include "client/client.h"
#include "client/executable.h"
#include "ir/ir.h"
#include "session/clustering.h"
#include "session/plan.h"
#include "session/unit_compiler.h"
#include "session/unit_program.h"
#include "session/variables.h"

namespace kiln::session {

struct SessionOptions {
  // The device of ops without a mark.
  client::Device* device = nullptr;
  bool soft_placement = false;
  ClusterOptions clustering;
  // The whole graph is compiled for one device, or the run fails. It overrides `clustering`.
  bool must_compile = false;
  // Each cluster is compiled before it runs, or the run fails.
  bool is_strict = false;
  CompilePolicy policy;
  // The folder for the graph of each plan, before and after placement and after clustering; empty:
  // none.
  std::string dump_folder;
};

class Session {
 public:
  // The module's entry defines the values that can be fed and fetched; it is copied. Its symbols
  // get their sizes from the feeds of each run. The client must outlive the session.
  static Result<std::unique_ptr<Session>> Create(const ir::Module& module, client::Client& client,
                                                 const SessionOptions& options);
  ~Session();

  // Their values outlive runs.
  Variables& variables() const { return *variables_; }
  client::Device& default_device() const { return *options_.device; }

  // Prepares the computation of some instructions of the entry from others, all arrays, by name:
  // later runs of the same feeds, fetches and targets find it compiled. Any array can be fed: its
  // own inputs are then not needed. Targets, of any shape, are computed for their side effects.
  // Fails if a fetch needs a parameter that is not fed. Any thread.
  Result<std::shared_ptr<const Plan>> Prepare(std::span<const std::string> feeds,
                                              std::span<const std::string> fetches,
                                              std::span<const std::string> targets = {});
  // A line for each op of such a run: its device, its cluster, or the reason why it is in none.
  // Compiles nothing. Any thread.
  Result<std::string> Explain(std::span<const std::string> feeds,
                              std::span<const std::string> fetches,
                              std::span<const std::string> targets = {}) const;
  // The ops of such a run in Graphviz's language, with devices and clusters. Any thread.
  Result<std::string> ToDot(std::span<const std::string> feeds,
                            std::span<const std::string> fetches,
                            std::span<const std::string> targets = {}) const;

 private:
  // The part of the graph for one set of feeds, fetches and targets, placed and clustered.
  struct Part;
  Session(const ir::Module& module, client::Client& client, const SessionOptions& options,
          std::shared_ptr<Variables> variables);
  // Writes the dumps of a plan. A failure is a warning of the log.
  void Dump(const Part& part) const;
  Result<std::unique_ptr<Part>> Cut(std::span<const std::string> feeds,
                                    std::span<const std::string> fetches,
                                    std::span<const std::string> targets) const;
  Result<std::shared_ptr<const Plan>> Build(std::span<const std::string> feeds,
                                            std::span<const std::string> fetches,
                                            std::span<const std::string> targets);
  const std::unique_ptr<ir::Module> module_;
  client::Client& client_;
  const SessionOptions options_;
  const std::shared_ptr<UnitCompiler> compiler_;
  const std::shared_ptr<Variables> variables_;
  std::mutex mutex_;
  using Names = std::vector<std::string>;
  std::map<std::tuple<Names, Names, Names>, std::shared_ptr<const Plan>> plans_;
};

}  // namespace kiln::session
