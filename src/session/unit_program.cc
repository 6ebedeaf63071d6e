#include "session/unit_program.h"

#include <algorithm>
#include <utility>

#include "base/exception.h"
#include "base/stack.h"
#include "base/strings.h"
#include "ir/specialise.h"
#include "session/in_place.h"

namespace kiln::session {

// The programs for one set of sizes.
struct UnitProgram::Entry {
  int64_t last_use = 0, requests = 0;  // under the unit's mutex
  // Held while a program is made, so that it is made once.
  std::mutex mutex;
  MadeProgram program, fallback;  // without an executable until they are made
  bool is_in_background = false;  // its program is being made, or could not be made
};

namespace {

std::vector<std::string> SortedSymbols(const ir::Module& module) {
  const std::set<std::string> symbols = ir::SymbolsOf(module);
  return {symbols.begin(), symbols.end()};
}

bool HasStaticParameters(const ir::Module& module) {
  return std::ranges::all_of(module.entry()->parameters(), [](const ir::Instruction* parameter) {
    return parameter->shape().is_static();
  });
}

}  // namespace

UnitProgram::UnitProgram(Unit& unit, std::shared_ptr<UnitCompiler> compiler, UnitMode mode,
                         const CompilePolicy& policy)
    : name_(unit.name),
      compiler_(std::move(compiler)),
      device_(compiler_->device(unit.device)),
      mode_(mode),
      policy_(policy),
      runs_op_by_op_(UnitCompiler::RunsOpByOp(device_)),
      module_(std::move(unit.module)),
      symbols_(SortedSymbols(*module_)),
      is_static_(symbols_.empty() && HasStaticParameters(*module_)) {}

UnitProgram::~UnitProgram() {
  __atomic_store_n(&is_ending_, 1, __ATOMIC_RELAXED);
  std::unique_lock lock(mutex_);
  background_done_.wait(lock, [&] { return in_background_ == 0; });
}

Result<MadeProgram> UnitProgram::Prepare() {
  const std::shared_ptr<Entry> entry = Touch({});
  std::lock_guard lock(entry->mutex);
  if (!entry->program.executable) {
    KILN_ASSIGN_OR_RETURN(entry->program, Make(module_->Clone()));
  }
  return entry->program;
}

Result<MadeProgram> UnitProgram::Make(std::unique_ptr<ir::Module> module) {
  // The stack of a run may be small.
  Result<MadeProgram> made = MadeProgram();
  KILN_RETURN_IF_ERROR(OnOwnStack([&] { made = MakeHere(std::move(module)); }));
  return made;
}

Result<MadeProgram> UnitProgram::MakeHere(std::unique_ptr<ir::Module> module) {
  {
    std::lock_guard lock(mutex_);
    ++statistics_.compiles;
  }
  const bool runs_ops = mode_ == UnitMode::kOps && runs_op_by_op_;
  RemoveAliasesUnlessBrief(*module, device_, !runs_ops);
  if (runs_ops) {
    return compiler_->Prepare(device_, std::move(module));
  }
  if (!IsOptional()) {
    return compiler_->Compile(device_, std::move(module), Interrupt(&is_ending_),
                              policy_.memory_limit_bytes);
  }
  auto compiled = compiler_->Compile(device_, module->Clone(), Interrupt(&is_ending_),
                                     policy_.memory_limit_bytes);
  if (compiled.ok() || compiled.status().code() == Code::kCancelled) return compiled;
  compiler_->client().Log(
      client::LogLevel::kWarning,
      Cat(name_, " on ", device_.name(),
          " runs op by op, as it cannot be compiled: ", compiled.status().message()));
  RemoveAliasesUnlessBrief(*module, device_, false);
  return compiler_->Prepare(device_, std::move(module));
}

UnitProgram::Key UnitProgram::KeyOf(std::span<client::Buffer* const> arguments,
                                    const SymbolSizes& symbols) const {
  Key key;
  for (const client::Buffer* argument : arguments) {
    key.insert(key.end(), argument->dims().begin(), argument->dims().end());
  }
  for (const std::string& symbol : symbols_) {
    auto it = symbols.find(symbol);
    key.push_back(it == symbols.end() ? -1 : it->second);
  }
  return key;
}

std::shared_ptr<UnitProgram::Entry> UnitProgram::Touch(const Key& key) {
  std::lock_guard lock(mutex_);
  std::shared_ptr<Entry>& entry = entries_[key];
  if (!entry) entry = std::make_shared<Entry>();
  const std::shared_ptr<Entry> found = entry;
  found->last_use = ++clock_;
  ++found->requests;
  ++statistics_.runs;
  if (entries_.size() > policy_.bound) {
    entries_.erase(std::ranges::min_element(
        entries_, {}, [](const auto& key_and_entry) { return key_and_entry.second->last_use; }));
    ++statistics_.evictions;
  }
  return found;
}

// Of a cluster.
bool UnitProgram::MayCompile(const Entry& entry) {
  std::lock_guard lock(mutex_);
  if (!policy_.is_lazy) return true;
  if (statistics_.compiles > policy_.megamorphic_compiles &&
      statistics_.runs < policy_.runs_per_compile * statistics_.compiles) {
    statistics_.is_megamorphic = true;
  }
  if (statistics_.is_megamorphic) return false;
  return statistics_.compiles == 0 || entry.requests > 1;
}

Result<std::unique_ptr<ir::Module>> UnitProgram::ModuleFor(std::span<const Shape> arguments,
                                                           const SymbolSizes& symbols) const {
  if (is_static_) return module_->Clone();
  KILN_ASSIGN_OR_RETURN(std::unique_ptr<ir::Module> module, ir::Specialise(*module_, symbols));
  return ir::WithParameterShapes(*module, arguments);
}

Result<Ref<const client::Executable>> UnitProgram::For(std::span<client::Buffer* const> arguments,
                                                       const SymbolSizes& symbols) {
  const std::shared_ptr<Entry> entry = Touch(is_static_ ? Key() : KeyOf(arguments, symbols));
  std::lock_guard lock(entry->mutex);
  if (entry->program.executable) return entry->program.executable;
  auto module = [&] {
    std::vector<Shape> shapes;
    for (const client::Buffer* argument : arguments) shapes.push_back(argument->shape());
    return ModuleFor(shapes, symbols);
  };
  const bool may_compile = !IsOptional() || MayCompile(*entry);
  if (may_compile && !IsMadeInBackground()) {
    KILN_ASSIGN_OR_RETURN(std::unique_ptr<ir::Module> made_of, module());
    KILN_ASSIGN_OR_RETURN(entry->program, Make(std::move(made_of)));
    return entry->program.executable;
  }
  if (may_compile && !entry->is_in_background) {
    KILN_ASSIGN_OR_RETURN(std::unique_ptr<ir::Module> made_of, module());
    MakeInBackground(entry, std::move(made_of));
  }
  {
    std::lock_guard counting(mutex_);
    ++statistics_.fallbacks;
  }
  if (entry->fallback.executable) return entry->fallback.executable;
  KILN_ASSIGN_OR_RETURN(std::unique_ptr<ir::Module> made_of, module());
  return Fallback(*entry, std::move(made_of));
}

bool UnitProgram::IsOptional() const { return mode_ == UnitMode::kCluster && runs_op_by_op_; }

bool UnitProgram::IsMadeInBackground() const {
  return policy_.is_asynchronous && IsOptional() && compiler_->client().runs_asynchronously();
}

void UnitProgram::MakeInBackground(std::shared_ptr<Entry> entry,
                                   std::unique_ptr<ir::Module> module) {
  entry->is_in_background = true;
  {
    std::lock_guard lock(mutex_);
    ++in_background_;
  }
  // Work can be copied, which a module cannot; it runs once.
  auto made_of = std::make_shared<std::unique_ptr<ir::Module>>(std::move(module));
  auto work = [this, entry, made_of] {
    Result<MadeProgram> made = MadeProgram();
    const Status status = Try([&]() -> Status {
      made = Make(std::move(*made_of));
      return made.status();
    });
    if (status.ok()) {
      std::lock_guard lock(entry->mutex);
      entry->program = *std::move(made);
    } else if (status.code() != Code::kCancelled) {
      compiler_->client().Log(
          client::LogLevel::kWarning,
          Cat(name_, " on ", device_.name(),
              " goes on op by op, as it cannot be compiled: ", status.message()));
    }
    std::lock_guard lock(mutex_);
    if (--in_background_ == 0) background_done_.notify_all();
  };
  const Status queued = Try([&] {
    compiler_->InBackground(std::move(work));
    return OkStatus();
  });
  if (queued.ok()) return;
  // Without a thread for it, the cluster goes on op by op.
  std::lock_guard lock(mutex_);
  --in_background_;
}

Result<Ref<const client::Executable>> UnitProgram::Fallback(Entry& entry,
                                                            std::unique_ptr<ir::Module> module) {
  Result<MadeProgram> made = MadeProgram();
  RemoveAliasesUnlessBrief(*module, device_, false);
  KILN_RETURN_IF_ERROR(OnOwnStack([&] { made = compiler_->Prepare(device_, std::move(module)); }));
  KILN_ASSIGN_OR_RETURN(entry.fallback, std::move(made));
  return entry.fallback.executable;
}

ProgramStatistics UnitProgram::statistics() const {
  std::lock_guard lock(mutex_);
  ProgramStatistics statistics = statistics_;
  statistics.programs = static_cast<int64_t>(entries_.size());
  return statistics;
}

}  // namespace kiln::session
