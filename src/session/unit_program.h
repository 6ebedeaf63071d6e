// The programs of a unit: one for each set of sizes that it meets.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <vector>

#include "base/ref.h"
#include "base/status.h"
#include "client/buffer.h"
#include "session/unit_compiler.h"
#include "session/units.h"
#include "tensor/polynomial.h"

namespace kiln::session {

enum class UnitMode : uint8_t {
  kOps,          // run op by op
  kCluster,      // compiled, or else run op by op
  kMustCompile,  // compiled, or else an error
};

// When clusters of sizes that vary are compiled. TensorFlow's rules.
struct CompilePolicy {
  // The first sizes are compiled at once, others at their second request, and none once the unit is
  // megamorphic. If not, all are compiled at once.
  bool is_lazy = false;
  // Clusters are compiled in the background, and run op by op until that is done; where the client
  // allows work on threads of its own.
  bool is_asynchronous = false;
  // A unit is megamorphic after this many compiles with fewer than `runs_per_compile` runs each.
  int64_t megamorphic_compiles = 10;
  int64_t runs_per_compile = 50;
  // compiler::Options::memory_limit_bytes of what is compiled.
  int64_t memory_limit_bytes = 0;
  // The most programs of a unit; the least recently used one goes.
  size_t bound = 64;
};

struct ProgramStatistics {
  int64_t runs = 0;       // requests
  int64_t compiles = 0;   // programs made, compiled or prepared
  int64_t fallbacks = 0;  // requests of a cluster that run op by op
  int64_t evictions = 0;
  int64_t programs = 0;  // kept now
  bool is_megamorphic = false;
};

// Any thread.
class UnitProgram {
 public:
  // Takes the unit's module. A unit without symbols has one program.
  UnitProgram(Unit& unit, std::shared_ptr<UnitCompiler> compiler, UnitMode mode,
              const CompilePolicy& policy);
  // Waits for compilation in the background, which it ends.
  ~UnitProgram();
  UnitProgram(const UnitProgram&) = delete;
  UnitProgram& operator=(const UnitProgram&) = delete;

  client::Device& device() const { return device_; }
  bool is_static() const { return is_static_; }
  // Whether it is made before the first run.
  bool is_made_early() const { return is_static_ && !IsMadeInBackground(); }
  // Of a static unit: makes the program, once.
  Result<MadeProgram> Prepare();
  // The unit's module for arguments of these shapes: of a unit for the host.
  Result<std::unique_ptr<ir::Module>> ModuleFor(std::span<const Shape> arguments,
                                                const SymbolSizes& symbols) const;
  // The program for arguments of these shapes; `symbols` has the sizes of the graph's symbols.
  Result<Ref<const client::Executable>> For(std::span<client::Buffer* const> arguments,
                                            const SymbolSizes& symbols);
  ProgramStatistics statistics() const;

 private:
  struct Entry;
  using Key = std::vector<int64_t>;

  Key KeyOf(std::span<client::Buffer* const> arguments, const SymbolSizes& symbols) const;
  // The entry for a key, made where there is none, as the most recently used one.
  std::shared_ptr<Entry> Touch(const Key& key);
  bool MayCompile(const Entry& entry);
  // Whether it may run op by op instead.
  bool IsOptional() const;
  bool IsMadeInBackground() const;
  void MakeInBackground(std::shared_ptr<Entry> entry, std::unique_ptr<ir::Module> module);
  // The op-by-op program of a cluster. Under the entry's mutex.
  Result<Ref<const client::Executable>> Fallback(Entry& entry, std::unique_ptr<ir::Module> module);
  // Makes a program in the unit's mode, on a stack of its own.
  Result<MadeProgram> Make(std::unique_ptr<ir::Module> module);
  Result<MadeProgram> MakeHere(std::unique_ptr<ir::Module> module);

  const std::string name_;
  const std::shared_ptr<UnitCompiler> compiler_;
  client::Device& device_;
  const UnitMode mode_;
  const CompilePolicy policy_;
  const bool runs_op_by_op_;  // its device
  const std::unique_ptr<const ir::Module> module_;
  const std::vector<std::string> symbols_;  // of the module
  const bool is_static_;

  mutable std::mutex mutex_;
  std::map<Key, std::shared_ptr<Entry>> entries_;
  int64_t clock_ = 0;
  ProgramStatistics statistics_;
  int64_t in_background_ = 0;  // programs that are being made
  std::condition_variable background_done_;
  int32_t is_ending_ = 0;  // atomic; ends compilation in the background
};

}  // namespace kiln::session
