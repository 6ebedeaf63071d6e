#include "session/session.h"

#include <optional>

#include "base/strings.h"
#include "base/trace.h"
#include "client/dump_folder.h"
#include "compiler/compiler.h"
#include "ir/analysis/session_only.h"
#include "ir/text.h"
#include "session/graph_dump.h"
#include "session/in_place.h"
#include "session/inline_calls.h"
#include "session/marks.h"
#include "session/placement.h"
#include "session/subgraph.h"

namespace kiln::session {
namespace {

std::optional<std::string> WhyNotCompilable(const ir::Instruction& instruction) {
  const std::string_view why = WhyNotCompiled(instruction.opcode());
  if (why.empty()) return std::nullopt;
  return std::string(why);
}

// A graph that must be compiled as a whole is one unit.
SessionOptions WithoutClusters(SessionOptions options) {
  if (options.must_compile) options.clustering.level = JitLevel::kOff;
  return options;
}

// Of a graph that must be compiled as a whole.
Status CheckOneDevice(const ir::Module& module, const Placement& placement) {
  const ir::Instruction* first = nullptr;
  for (const ir::Instruction* i : module.entry()->instructions()) {
    if (i->opcode() == Opcode::kParameter || i->IsConstant() || i->IsRoot()) continue;
    if (!first) first = i;
    const int32_t device = placement.device_of.at(i), expected = placement.device_of.at(first);
    if (device == expected) continue;
    auto name = [&](int32_t number) { return placement.devices[static_cast<size_t>(number)].name; };
    return InvalidArgument("'", module.name(), "' must be compiled as a whole: '", i->name(),
                           "' is placed on ", name(device), " and '", first->name(), "' on ",
                           name(expected));
  }
  return OkStatus();
}

}  // namespace

Session::Session(const ir::Module& module, client::Client& client, const SessionOptions& options,
                 std::shared_ptr<Variables> variables)
    : module_(module.Clone()),
      client_(client),
      options_(WithoutClusters(options)),
      compiler_(std::make_shared<UnitCompiler>(client)),
      variables_(std::move(variables)) {}

Session::~Session() = default;

Result<std::unique_ptr<Session>> Session::Create(const ir::Module& module, client::Client& client,
                                                 const SessionOptions& options) {
  KILN_ASSIGN_OR_RETURN(std::unique_ptr<Variables> variables, Variables::Create(module));
  return std::unique_ptr<Session>(new Session(module, client, options, std::move(variables)));
}

Result<std::shared_ptr<const Plan>> Session::Prepare(std::span<const std::string> feeds,
                                                     std::span<const std::string> fetches,
                                                     std::span<const std::string> targets) {
  std::lock_guard lock(mutex_);
  std::tuple key(Names(feeds.begin(), feeds.end()), Names(fetches.begin(), fetches.end()),
                 Names(targets.begin(), targets.end()));
  if (auto it = plans_.find(key); it != plans_.end()) return it->second;
  KILN_ASSIGN_OR_RETURN(std::shared_ptr<const Plan> plan, Build(feeds, fetches, targets));
  plans_.emplace(std::move(key), plan);
  return plan;
}

struct Session::Part {
  Part(std::unique_ptr<ir::Module> m, VariableUses v, Placement p, const SessionOptions& options)
      : module(std::move(m)),
        variables(std::move(v)),
        placement(std::move(p)),
        input{.entry = *module->entry(),
              .placement = placement,
              .options = options.clustering,
              .mark = options.must_compile ? nullptr : JitMarkOf,
              .why_not_compilable = WhyNotCompilable,
              .control_edges = ControlEdgesOf(*module->entry())},
        clustering(*module->entry()) {}
  Part(const Part&) = delete;
  Part& operator=(const Part&) = delete;

  std::unique_ptr<const ir::Module> module;
  const VariableUses variables;
  const Placement placement;
  const ClusterInput input;
  Clustering clustering;
};

Result<std::unique_ptr<Session::Part>> Session::Cut(std::span<const std::string> feeds,
                                                    std::span<const std::string> fetches,
                                                    std::span<const std::string> targets) const {
  const std::shared_ptr<TraceSink> trace = client_.trace();
  TraceSpan placing(trace.get(), "cut and place", "stage");
  KILN_ASSIGN_OR_RETURN(std::unique_ptr<ir::Module> module,
                        Subgraph(*module_, feeds, fetches, targets));
  KILN_ASSIGN_OR_RETURN(module,
                        InlineCalls(std::move(module), {.kept_parameters = feeds.size(),
                                                        .targets = targets,
                                                        .reads_marks = !options_.must_compile}));
  KILN_RETURN_IF_ERROR(CheckAllFed(*module, feeds.size()));
  KILN_ASSIGN_OR_RETURN(VariableUses variables, ReplaceVariables(*module));
  CopyResultsWithoutOp(*module);
  KILN_ASSIGN_OR_RETURN(Placement placement,
                        PlaceOps(*module->entry(), {.devices = client_.devices(),
                                                    .default_device = options_.device->number(),
                                                    .soft_placement = options_.soft_placement,
                                                    .log = [this](const std::string& line) {
                                                      client_.Log(client::LogLevel::kInfo, line);
                                                    }}));
  placing.End();
  const TraceSpan clustering(trace.get(), "find clusters", "stage");
  auto part = std::make_unique<Part>(std::move(module), std::move(variables), std::move(placement),
                                     options_);
  KILN_ASSIGN_OR_RETURN(part->clustering, FindClusters(part->input));
  return part;
}

void Session::Dump(const Part& part) const {
  if (options_.dump_folder.empty()) return;
  auto folder = client::DumpFolder::Open(options_.dump_folder);
  if (folder.ok()) {
    const std::string prefix = compiler::DumpPrefix(module_->name(), client_.NextModuleNumber());
    folder->Write(Cat(prefix, "before_placement.txt"), ir::ToHloText(*part.module));
    folder->Write(Cat(prefix, "after_placement.txt"),
                  PlacedText(*part.module, part.placement, nullptr));
    folder->Write(Cat(prefix, "after_clustering.txt"),
                  PlacedText(*part.module, part.placement, &part.clustering));
    folder->Write(Cat(prefix, "before_placement.dot"), PlacedDot(*part.module, nullptr, nullptr));
    folder->Write(Cat(prefix, "after_placement.dot"),
                  PlacedDot(*part.module, &part.placement, nullptr));
    folder->Write(Cat(prefix, "after_clustering.dot"),
                  PlacedDot(*part.module, &part.placement, &part.clustering));
  }
  const Status status = folder.ok() ? folder->status() : folder.status();
  if (!status.ok()) {
    client_.Log(client::LogLevel::kWarning,
                Cat("the graph '", module_->name(), "' is not dumped: ", status.message()));
  }
}

Result<std::string> Session::ToDot(std::span<const std::string> feeds,
                                   std::span<const std::string> fetches,
                                   std::span<const std::string> targets) const {
  KILN_ASSIGN_OR_RETURN(std::unique_ptr<Part> part, Cut(feeds, fetches, targets));
  return PlacedDot(*part->module, &part->placement, &part->clustering);
}

Result<std::string> Session::Explain(std::span<const std::string> feeds,
                                     std::span<const std::string> fetches,
                                     std::span<const std::string> targets) const {
  KILN_ASSIGN_OR_RETURN(std::unique_ptr<Part> part, Cut(feeds, fetches, targets));
  constexpr size_t kUsualLine = 80;
  std::string text;
  text.reserve(kUsualLine * static_cast<size_t>(part->module->entry()->instruction_count()));
  for (const ir::Instruction* i : part->module->entry()->instructions()) {
    if (i->IsRoot()) continue;
    text += Cat("'", i->name(), "' (", OpcodeName(i->opcode()), ") ",
                ExplainClustering(part->input, part->clustering, *i), "\n");
  }
  return text;
}

Result<std::shared_ptr<const Plan>> Session::Build(std::span<const std::string> feeds,
                                                   std::span<const std::string> fetches,
                                                   std::span<const std::string> targets) {
  const int64_t start = TraceSink::Now();
  const std::shared_ptr<TraceSink> trace = client_.trace();
  const TraceSpan preparing(trace.get(), Cat("prepare ", module_->name()), "session");
  KILN_ASSIGN_OR_RETURN(std::unique_ptr<Part> part, Cut(feeds, fetches, targets));
  Dump(*part);
  const std::vector<Cluster>& clusters = part->clustering.clusters();
  for (const Cluster& cluster : clusters) {
    if (!cluster.refusal.empty()) {
      return InvalidArgument(cluster.name, " must be compiled: ", cluster.refusal);
    }
  }
  KILN_ASSIGN_OR_RETURN(Units units,
                        SplitIntoUnits(*part->module, part->placement, part->clustering));
  if (options_.must_compile) {
    KILN_RETURN_IF_ERROR(ir::CheckNotSessionOnly(*part->module));
    KILN_RETURN_IF_ERROR(CheckOneDevice(*part->module, part->placement));
  }
  VariableUses uses = part->variables;
  uses.in_place = FindInPlaceUpdates(units, uses);
  IdVector<UnitId, std::unique_ptr<UnitProgram>> programs;
  RunInfo info;
  for (Unit& unit : units.units) {
    UnitMode mode = options_.must_compile ? UnitMode::kMustCompile : UnitMode::kOps;
    if (unit.cluster >= 0) {
      const bool is_strict =
          options_.is_strict || clusters[static_cast<size_t>(unit.cluster)].is_strict;
      mode = is_strict ? UnitMode::kMustCompile : UnitMode::kCluster;
    }
    auto program = std::make_unique<UnitProgram>(unit, compiler_, mode, options_.policy);
    if (program->is_made_early() && !unit.is_on_host) {
      KILN_ASSIGN_OR_RETURN(MadeProgram made, program->Prepare());
      info.kernels += made.info.kernels;
      info.temporary_bytes += made.info.temporary_bytes;
    }
    programs.push_back(std::move(program));
  }
  info.compile_microseconds = (TraceSink::Now() - start) / 1000;
  return std::make_shared<const Plan>(client_, std::move(part->module), std::move(units),
                                      std::move(programs), info, variables_, std::move(uses));
}

}  // namespace kiln::session
