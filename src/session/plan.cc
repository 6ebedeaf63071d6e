#include "session/plan.h"

#include <utility>

#include "client/event.h"
#include "client/transfer.h"
#include "ir/specialise.h"

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

  // The value on a device, copied there by the first request.
  Result<Buffer*> On(Device& device, std::vector<Ref<Event>>& events) {
    for (const Ref<Buffer>& buffer : buffers_) {
      if (&buffer->device() == &device) return buffer.get();
    }
    KILN_ASSIGN_OR_RETURN(client::Transfer copy, client::StartCopyToDevice(*home(), device));
    events.push_back(std::move(copy.event));
    buffers_.push_back(std::move(copy.buffer));
    return buffers_.back().get();
  }

 private:
  std::vector<Ref<Buffer>> buffers_;
};

class PlanRun {
 public:
  PlanRun(const Units& units, const client::ExecuteOptions& options, SymbolSizes symbols)
      : options_(options), symbols_(std::move(symbols)), places_(units.values.size()) {}
  // What has been started uses the caller's flags.
  ~PlanRun() { (void)Finish({}); }
  PlanRun(const PlanRun&) = delete;
  PlanRun& operator=(const PlanRun&) = delete;

  void Feed(ValueId value, Buffer* buffer) { places_[value].Add(Ref<Buffer>::Share(buffer)); }

  // `given` has the caller's buffers for outputs, or null.
  Status Start(const Unit& unit, UnitProgram& program, const IdVector<ValueId, Buffer*>& given) {
    std::vector<Buffer*> arguments, results;
    for (ValueId value : unit.inputs) {
      KILN_ASSIGN_OR_RETURN(Buffer * buffer, places_[value].On(program.device(), events_));
      arguments.push_back(buffer);
    }
    KILN_ASSIGN_OR_RETURN(Ref<const client::Executable> executable,
                          program.For(arguments, symbols_));
    for (ValueId value : unit.outputs) results.push_back(given[value]);
    KILN_ASSIGN_OR_RETURN(client::Execution execution,
                          client::Execution::Bind(
                              executable, {.threads = options_.threads, .cancel = options_.cancel},
                              arguments, results));
    for (size_t i = 0; i < unit.outputs.size(); ++i) {
      places_[unit.outputs[i]].Add(execution.results()[i]);
    }
    KILN_ASSIGN_OR_RETURN(Ref<Event> event, std::move(execution).Start());
    events_.push_back(std::move(event));
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
  const client::ExecuteOptions& options_;
  const SymbolSizes symbols_;
  IdVector<ValueId, Places> places_;
  std::vector<Ref<Event>> events_;
};

// Whether a buffer may be fed for a value. Symbols fit any size: that they agree is checked later.
bool Fits(const Shape& actual, const Shape& declared) {
  if (actual.type() != declared.type() || actual.rank() != declared.rank()) return false;
  for (int64_t d = 0; d < actual.rank(); ++d) {
    const Dimension& wanted = declared.dimension(d);
    if (wanted.is_constant() && actual.dim(d) != wanted.size()) return false;
    if (wanted.is_bounded() && actual.dim(d) > wanted.size()) return false;
  }
  return true;
}

program::Signature SignatureOf(const Units& units) {
  program::Signature signature;
  for (ValueId value : units.feeds) {
    signature.parameters.push_back(units.values[value].shape);
    signature.parameter_names.push_back(units.values[value].name);
  }
  for (ValueId value : units.fetches) signature.results.push_back(units.values[value].shape);
  return signature;
}

}  // namespace

Plan::Plan(client::Client& client, std::unique_ptr<const ir::Module> graph, Units units,
           IdVector<UnitId, std::unique_ptr<UnitProgram>> programs, RunInfo info)
    : client_(client),
      graph_(std::move(graph)),
      units_(std::move(units)),
      programs_(std::move(programs)),
      signature_(SignatureOf(units_)),
      has_symbols_(!ir::SymbolsOf(*graph_).empty()),
      info_(info) {
  if (programs_.size() != 1 || !programs_.front()->is_static()) return;
  const Unit& unit = units_.units.front();
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

Status Plan::Run(const client::ExecuteOptions& options, std::span<Buffer* const> feeds,
                 std::span<Ref<Buffer>> fetches) const {
  if (feeds.size() != units_.feeds.size() || fetches.size() != units_.fetches.size()) {
    return InvalidArgument("'", name(), "': ", feeds.size(), " feeds and ", fetches.size(),
                           " fetches are given; expected ", units_.feeds.size(), " and ",
                           units_.fetches.size());
  }
  for (size_t i = 0; i < feeds.size(); ++i) KILN_RETURN_IF_ERROR(CheckFeed(i, feeds[i]));
  SymbolSizes symbols;
  if (has_symbols_) {
    std::vector<Shape> shapes;
    for (const Buffer* feed : feeds) shapes.push_back(feed->shape());
    KILN_ASSIGN_OR_RETURN(symbols, ir::MatchSymbols(*graph_, shapes));
  }
  PlanRun run(units_, options, std::move(symbols));
  for (size_t i = 0; i < feeds.size(); ++i) run.Feed(units_.feeds[i], feeds[i]);
  IdVector<ValueId, Buffer*> given(units_.values.size(), nullptr);
  for (size_t i = 0; i < fetches.size(); ++i) given[units_.fetches[i]] = fetches[i].get();
  Status status;
  for (UnitId id : units_.units.ids()) {
    status = run.Start(units_.units[id], *programs_[id], given);
    if (!status.ok()) break;
  }
  KILN_RETURN_IF_ERROR(run.Finish(std::move(status)));
  for (size_t i = 0; i < fetches.size(); ++i) fetches[i] = run.ResultOf(units_.fetches[i]);
  for (size_t i = 0; i < options.donated.size(); ++i) {
    if (options.donated[i]) feeds[i]->Donate();
  }
  return OkStatus();
}

}  // namespace kiln::session
