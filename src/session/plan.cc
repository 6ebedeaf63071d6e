#include "session/plan.h"

#include <algorithm>
#include <utility>

#include "base/strings.h"
#include "base/trace.h"
#include "client/event.h"
#include "client/transfer.h"
#include "ir/specialise.h"
#include "session/host_unit.h"
#include "session/values.h"

namespace kiln::session {
namespace {

using client::Buffer;
using client::Device;
using client::Event;

// The buffers of a value: where it was made or fed, and its copies on other devices.
class Places {
 public:
  void Add(Ref<Buffer> buffer) { buffers_.push_back(std::move(buffer)); }
  void Clear() { buffers_.clear(); }
  bool empty() const { return buffers_.empty(); }
  const Ref<Buffer>& home() const { return buffers_.front(); }
  Ref<Buffer>& home() { return buffers_.front(); }

  // The value on a device, copied there by the first request.
  Result<Buffer*> On(Device& device, const std::shared_ptr<TraceSink>& trace,
                     std::vector<Ref<Event>>& events) {
    for (const Ref<Buffer>& buffer : buffers_) {
      if (&buffer->device() == &device) return buffer.get();
    }
    KILN_ASSIGN_OR_RETURN(client::Transfer copy, client::StartCopyToDevice(*home(), device, trace));
    events.push_back(std::move(copy.event));
    buffers_.push_back(std::move(copy.buffer));
    return buffers_.back().get();
  }

 private:
  std::vector<Ref<Buffer>> buffers_;
};

// Their names, separated by commas.
std::string OpsOnHost(const ir::Module& module) {
  std::vector<std::string> names;
  for (const ir::Instruction* i : module.entry()->instructions()) {
    if (i->opcode() == Opcode::kParameter || i->IsRoot()) continue;
    names.push_back(i->op_name().empty() ? i->name() : i->op_name());
  }
  return Join(names, ", ");
}

// What a run assigns.
struct Assignments {
  const VariableUses& uses;
  std::span<const ValueId> values;  // of uses.writes
  Variables& variables;
  Variables::Loan& loan;
};

class PlanRun {
 public:
  PlanRun(const client::ExecuteOptions& options, SymbolSizes symbols,
          const IdVector<ValueId, std::vector<Device*>>& readers)
      : options_(options),
        symbols_(std::move(symbols)),
        readers_(readers),
        places_(readers.size()) {}
  // What has been started uses the caller's flags.
  ~PlanRun() { (void)Finish({}); }
  PlanRun(const PlanRun&) = delete;
  PlanRun& operator=(const PlanRun&) = delete;

  Status Feed(ValueId value, Buffer* buffer) {
    places_[value].Add(Ref<Buffer>::Share(buffer));
    return CopyToReaders(value);
  }

  // `given` has the caller's buffers for outputs, or null.
  Status Start(const Unit& unit, UnitProgram& program, const IdVector<ValueId, Buffer*>& given) {
    KILN_ASSIGN_OR_RETURN(const std::vector<Buffer*> arguments, ArgumentsOf(unit, program));
    KILN_ASSIGN_OR_RETURN(Ref<const client::Executable> executable,
                          program.For(arguments, symbols_));
    return Start(unit, std::move(executable), arguments, given);
  }

  // The last unit: it runs here, as all that would be left is to wait for it. It updates variables
  // in their memory where its program allows that and nobody else has their values, after all else
  // has ended well, and then to its end.
  Status RunLast(const Unit& unit, UnitProgram& program, const IdVector<ValueId, Buffer*>& given,
                 const Assignments& assignments) {
    KILN_ASSIGN_OR_RETURN(const std::vector<Buffer*> arguments, ArgumentsOf(unit, program));
    KILN_ASSIGN_OR_RETURN(Ref<const client::Executable> executable,
                          program.For(arguments, symbols_));
    const std::vector<int>& aliases = executable->signature().aliases;
    const bool may_update = !assignments.uses.in_place.empty() && executable->is_straight() &&
                            std::ranges::any_of(aliases, [](int alias) { return alias >= 0; });
    if (!may_update) {
      return RunHere(unit, std::move(executable), {.cancel = options_.cancel}, arguments, given);
    }
    // What can fail or take long comes first.
    KILN_RETURN_IF_ERROR(Finish({}));
    for (Buffer* argument : arguments) KILN_RETURN_IF_ERROR(argument->WaitForValue());
    for (ValueId value : unit.outputs) {
      if (given[value]) given[value]->WaitForUses();
    }
    KILN_RETURN_IF_ERROR(CheckFits(unit, executable->signature(), assignments));
    std::vector<bool> donated(arguments.size());
    for (const InPlaceUpdate& update : assignments.uses.in_place) {
      if (aliases[update.result] != static_cast<int>(update.argument)) continue;
      Places& places = places_[unit.inputs[update.argument]];
      // Not a copy from another device.
      if (places.home().get() != arguments[update.argument]) continue;
      donated[update.argument] = assignments.loan.Take(update.name, places.home());
    }
    client::ExecuteOptions options{.cancel = options_.cancel};
    if (!assignments.loan.empty()) {
      options.begun = assignments.loan.begun();
      options.donated = std::move(donated);
    }
    return RunHere(unit, std::move(executable), std::move(options), arguments, given);
  }

  // Runs a unit for the host on this thread, when its arguments are ready. Its results are copied
  // to its device.
  Status RunOnHost(const Unit& unit, const UnitProgram& program,
                   const IdVector<ValueId, Buffer*>& given) {
    std::vector<Literal> arguments;
    std::vector<Shape> shapes;
    Device& device = program.device();
    const std::shared_ptr<TraceSink> trace = options_.TraceOf(device.client());
    for (ValueId value : unit.inputs) {
      KILN_ASSIGN_OR_RETURN(Literal argument, ReadOnHost(*places_[value].home(), trace.get()));
      shapes.push_back(argument.shape());
      arguments.push_back(std::move(argument));
    }
    KILN_ASSIGN_OR_RETURN(std::unique_ptr<ir::Module> module, program.ModuleFor(shapes, symbols_));
    TraceSpan span(trace ? &trace->ForDevice(device.name()) : nullptr,
                   trace ? OpsOnHost(*module) : std::string(), "host");
    KILN_ASSIGN_OR_RETURN(
        std::vector<Literal> results,
        EvaluateOnHost(*module, arguments, device.client(), Interrupt(options_.cancel)));
    span.End();
    for (size_t i = 0; i < results.size(); ++i) {
      const ValueId value = unit.outputs[i];
      KILN_ASSIGN_OR_RETURN(Ref<Buffer> buffer,
                            client::CopyFromHost(device, results[i].shape(), results[i].data(),
                                                 given[value], trace.get()));
      places_[value].Add(std::move(buffer));
      KILN_RETURN_IF_ERROR(CopyToReaders(value));
    }
    for (ValueId value : unit.last_uses) places_[value].Clear();
    return OkStatus();
  }

  // Waits for all that has been started. The first failure is the cause of the others.
  Status Finish(Status status) {
    for (const Ref<Event>& event : events_) {
      Status end = event->Wait();
      if (status.ok()) status = std::move(end);
    }
    events_.clear();
    return status;
  }

  const Ref<Buffer>& ResultOf(ValueId value) const { return places_[value].home(); }

 private:
  // The copies come before later units in the queue of the value's device: units of other devices
  // need not wait for those.
  Status CopyToReaders(ValueId value) {
    for (Device* device : readers_[value]) {
      KILN_RETURN_IF_ERROR(places_[value].On(*device, options_.trace, events_).status());
    }
    return OkStatus();
  }

  Result<std::vector<Buffer*>> ArgumentsOf(const Unit& unit, const UnitProgram& program) {
    std::vector<Buffer*> arguments;
    for (ValueId value : unit.inputs) {
      KILN_ASSIGN_OR_RETURN(Buffer * buffer,
                            places_[value].On(program.device(), options_.trace, events_));
      arguments.push_back(buffer);
    }
    return arguments;
  }

  Status Bind(const Unit& unit, client::ExecuteOptions options, std::span<Buffer* const> arguments,
              const IdVector<ValueId, Buffer*>& given, client::Execution& execution) {
    options.threads = options_.threads;
    options.trace = options_.trace;
    execution.set_options(std::move(options));
    std::vector<Buffer*> results;
    for (ValueId value : unit.outputs) results.push_back(given[value]);
    KILN_RETURN_IF_ERROR(execution.Bind(arguments, results));
    for (size_t i = 0; i < unit.outputs.size(); ++i) {
      places_[unit.outputs[i]].Add(execution.results()[i]);
    }
    return OkStatus();
  }

  Status Start(const Unit& unit, Ref<const client::Executable> executable,
               std::span<Buffer* const> arguments, const IdVector<ValueId, Buffer*>& given) {
    client::Execution execution(std::move(executable));
    KILN_RETURN_IF_ERROR(Bind(unit, {.cancel = options_.cancel}, arguments, given, execution));
    KILN_ASSIGN_OR_RETURN(Ref<Event> event, std::move(execution).Start());
    events_.push_back(std::move(event));
    for (ValueId value : unit.outputs) KILN_RETURN_IF_ERROR(CopyToReaders(value));
    for (ValueId value : unit.last_uses) places_[value].Clear();
    return OkStatus();
  }

  Status RunHere(const Unit& unit, Ref<const client::Executable> executable,
                 client::ExecuteOptions options, std::span<Buffer* const> arguments,
                 const IdVector<ValueId, Buffer*>& given) {
    client::Execution execution(std::move(executable));
    KILN_RETURN_IF_ERROR(Bind(unit, std::move(options), arguments, given, execution));
    return execution.RunNow();
  }

  // Whether the variables take their values, those of the last unit among them, which has not run.
  Status CheckFits(const Unit& unit, const program::Signature& signature,
                   const Assignments& assignments) const {
    for (size_t i = 0; i < assignments.values.size(); ++i) {
      auto result = std::ranges::find(unit.outputs, assignments.values[i]);
      const Shape& shape =
          result == unit.outputs.end()
              ? ResultOf(assignments.values[i])->shape()
              : signature.results[static_cast<size_t>(result - unit.outputs.begin())];
      KILN_RETURN_IF_ERROR(assignments.variables.CheckFits(assignments.uses.writes[i], shape));
    }
    return OkStatus();
  }

  const client::ExecuteOptions& options_;
  const SymbolSizes symbols_;
  const IdVector<ValueId, std::vector<Device*>>& readers_;
  IdVector<ValueId, Places> places_;
  std::vector<Ref<Event>> events_;
};

// The devices of each value's readers, without the device that makes it. Units on the host read
// values where they are.
IdVector<ValueId, std::vector<Device*>> ReadersOf(
    const Units& units, const IdVector<UnitId, std::unique_ptr<UnitProgram>>& programs) {
  IdVector<ValueId, std::vector<Device*>> readers(units.values.size());
  for (UnitId id : units.units.ids()) {
    if (units.units[id].is_on_host) continue;
    Device* device = &programs[id]->device();
    for (ValueId value : units.units[id].inputs) {
      const UnitId producer = units.values[value].producer;
      if (producer.valid() && &programs[producer]->device() == device) continue;
      if (std::ranges::find(readers[value], device) == readers[value].end()) {
        readers[value].push_back(device);
      }
    }
  }
  return readers;
}

// Without the variables.
program::Signature SignatureOf(const Units& units, const VariableUses& uses) {
  program::Signature signature;
  for (ValueId value : std::span(units.feeds).first(units.feeds.size() - uses.reads.size())) {
    signature.parameters.push_back(units.values[value].shape);
    signature.parameter_names.push_back(units.values[value].name);
  }
  for (ValueId value : std::span(units.fetches).first(units.fetches.size() - uses.writes.size())) {
    signature.results.push_back(units.values[value].shape);
  }
  return signature;
}

}  // namespace

Plan::Plan(client::Client& client, std::unique_ptr<const ir::Module> graph, Units units,
           IdVector<UnitId, std::unique_ptr<UnitProgram>> programs, RunInfo info,
           std::shared_ptr<Variables> variables, VariableUses uses)
    : client_(client),
      graph_(std::move(graph)),
      units_(std::move(units)),
      programs_(std::move(programs)),
      readers_(ReadersOf(units_, programs_)),
      signature_(SignatureOf(units_, uses)),
      has_symbols_(!ir::SymbolsOf(*graph_).empty()),
      info_(info),
      variables_(std::move(variables)),
      uses_(std::move(uses)) {
  if (!uses_.reads.empty() || !uses_.writes.empty()) return;
  if (programs_.size() != 1 || !programs_.front()->is_made_early()) return;
  const Unit& unit = units_.units.front();
  if (unit.is_on_host) return;
  if (unit.inputs != units_.feeds || unit.outputs != units_.fetches) return;
  // It is made already.
  auto made = programs_.front()->Prepare();
  if (made.ok()) single_ = made->executable;
}

std::vector<std::pair<std::string, ProgramStatistics>> Plan::statistics() const {
  std::vector<std::pair<std::string, ProgramStatistics>> all;
  for (UnitId id : units_.units.ids()) {
    all.emplace_back(units_.units[id].name, programs_[id]->statistics());
  }
  return all;
}

Status Plan::CheckFeed(size_t number, const Buffer* feed) const {
  const Value& value = units_.values[units_.feeds[number]];
  if (!feed) return InvalidArgument("'", name(), "': feed ", number, " '", value.name, "' is NULL");
  if (&feed->client() != &client_) {
    return InvalidArgument("'", name(), "': feed ", number, " '", value.name,
                           "' is of another context");
  }
  if (feed->is_donated()) {
    return FailedPrecondition("'", name(), "': feed ", number, " '", value.name,
                              "' has been donated to an execution");
  }
  if (!Fits(feed->shape(), value.shape)) {
    return InvalidArgument("'", name(), "': feed ", number, " '", value.name, "' is ",
                           feed->shape(), "; expected ", value.shape);
  }
  return OkStatus();
}

Status Plan::CheckFeeds(std::span<Buffer* const> feeds, size_t fetch_count) const {
  if (feeds.size() != signature_.parameters.size() || fetch_count != signature_.results.size()) {
    return InvalidArgument("'", name(), "': ", feeds.size(), " feeds and ", fetch_count,
                           " fetches are given; expected ", signature_.parameters.size(), " and ",
                           signature_.results.size());
  }
  for (size_t i = 0; i < feeds.size(); ++i) KILN_RETURN_IF_ERROR(CheckFeed(i, feeds[i]));
  return OkStatus();
}

Status Plan::Run(const client::ExecuteOptions& options, std::span<Buffer* const> feeds,
                 std::span<Ref<Buffer>> fetches) const {
  KILN_RETURN_IF_ERROR(CheckFeeds(feeds, fetches.size()));
  const Interrupt interrupt(options.cancel);
  auto explain = [&](Status status) {
    return options.limit ? options.limit->Explain(std::move(status)) : status;
  };
  auto lock = variables_->LockForAssignment(uses_.writes, interrupt);
  if (!lock.ok()) return explain(lock.status());
  Variables::Loan loan(*variables_);
  auto values = variables_->Values(uses_.reads, interrupt);
  if (!values.ok()) return explain(values.status());
  std::vector<Ref<Buffer>> read = *std::move(values);
  std::vector<Buffer*> all(feeds.begin(), feeds.end());
  for (const Ref<Buffer>& value : read) all.push_back(value.get());
  SymbolSizes symbols;
  if (has_symbols_) {
    std::vector<Shape> shapes;
    for (const Buffer* feed : all) shapes.push_back(feed->shape());
    KILN_ASSIGN_OR_RETURN(symbols, ir::MatchSymbols(*graph_, shapes));
  }
  PlanRun run(options, std::move(symbols), readers_);
  Status status;
  for (size_t i = 0; i < all.size() && status.ok(); ++i) {
    status = run.Feed(units_.feeds[i], all[i]);
  }
  // The run has one reference to each, until the last use.
  read.clear();
  IdVector<ValueId, Buffer*> given(units_.values.size(), nullptr);
  for (size_t i = 0; i < fetches.size(); ++i) given[units_.fetches[i]] = fetches[i].get();
  // Before anything is overwritten.
  std::vector<std::pair<std::string, Ref<Buffer>>> assigned;
  for (const std::string& name : uses_.writes) assigned.emplace_back(name, Ref<Buffer>());
  const Assignments assignments{uses_, std::span(units_.fetches).subspan(fetches.size()),
                                *variables_, loan};
  for (UnitId id : units_.units.ids()) {
    if (!status.ok()) break;
    const Unit& unit = units_.units[id];
    UnitProgram& program = *programs_[id];
    if (unit.is_on_host) {
      status = run.RunOnHost(unit, program, given);
    } else if (&unit == &units_.units.back()) {
      status = run.RunLast(unit, program, given, assignments);
    } else {
      status = run.Start(unit, program, given);
    }
  }
  status = run.Finish(std::move(status));
  KILN_RETURN_IF_ERROR(explain(std::move(status)));
  for (size_t i = 0; i < assigned.size(); ++i) {
    assigned[i].second = run.ResultOf(assignments.values[i]);
  }
  KILN_RETURN_IF_ERROR(variables_->Set(assigned, &loan));
  for (size_t i = 0; i < fetches.size(); ++i) fetches[i] = run.ResultOf(units_.fetches[i]);
  for (size_t i = 0; i < options.donated.size(); ++i) {
    if (options.donated[i]) feeds[i]->Donate();
  }
  return OkStatus();
}

}  // namespace kiln::session
