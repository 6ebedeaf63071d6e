// Graphs under construction: a module with a growing entry, and the ids of its values.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <tuple>
#include <unordered_map>
#include <utility>
#include <vector>

#include "base/status.h"
#include "capi/handle.h"
#include "capi/scopes.h"
#include "capi/symbol_numbers.h"
#include "ir/ir.h"
#include "kiln/graph.h"
#include "stablehlo/import/entry_attributes.h"

struct kiln_graph : kiln::Counted<kiln_graph> {
 public:
  // An empty module, or a read and verified one with its layouts cleared.
  kiln_graph(kiln::client::Client& client, std::unique_ptr<kiln::ir::Module> module);
  ~kiln_graph();

  kiln::client::Client& client() const { return *client_; }
  kiln::ir::Module& module() { return *module_; }
  const kiln::ir::Module& module() const { return *module_; }
  kiln::ir::Computation& entry() const { return *module_->entry(); }
  // Grows with every change: copies of a graph are valid for the same version.
  uint64_t version() const { return version_; }
  // Whether it was read, and is valid as no change has been made since.
  bool IsAsRead() const { return version_ == read_version_; }
  uint32_t serial() const { return serial_; }

  // The first error of a builder function, which names the graph; later calls do nothing.
  const kiln::Status& status() const { return status_; }
  void Fail(const kiln::Status& status);
  // The module. The graph is an empty one with an error then.
  std::unique_ptr<kiln::ir::Module> Take();
  // Fails after an error, or if no results are set.
  kiln::Status CheckComplete() const;

  // Adds an instruction to the entry, with shape inference, whose errors get the operands' names.
  // It gets what the scopes have for it.
  kiln::Result<kiln::ir::Instruction*> Add(kiln::ir::InstructionSpec spec);
  // Makes values of the entry's instructions that are not registered yet.
  void RegisterNew();
  // `op` is gone, and its id is that of `now`, which has none yet.
  void Rebind(const kiln::ir::Instruction* op, kiln::ir::Instruction* now);
  void SetRoot(kiln::ir::Instruction* root);
  kiln_value IdOf(const kiln::ir::Instruction* instruction) const;
  // For 0, the result of a failed call, the graph's error.
  kiln::Result<kiln::ir::Instruction*> ValueOf(kiln_value value) const;
  // Indexed by the position in their ids.
  const std::vector<kiln::ir::Instruction*>& values() const { return values_; }
  // The position of a value, if it is this graph's.
  std::optional<size_t> IndexOf(kiln_value value) const;

  kiln::capi::Scopes& scopes() { return scopes_; }
  // Sets or removes a frontend attribute of a value. Texts stay as long as the graph.
  void SetAttribute(kiln::ir::Instruction& value, std::string_view key,
                    std::optional<std::string_view> text);
  kiln::Status AddControlDependency(kiln::ir::Instruction* before, kiln::ir::Instruction* after);
  void SetOpName(kiln::ir::Instruction& value, std::string_view name);
  // By its name, or by an op_name that one value alone has. Null if there is none.
  kiln::Result<kiln::ir::Instruction*> FindValue(std::string_view name) const;

  // Of the program that the graph was read from.
  kiln::stablehlo::EntryAttributes& entry_attributes() { return entry_attributes_; }
  const kiln::stablehlo::EntryAttributes& entry_attributes() const { return entry_attributes_; }

  kiln::capi::SymbolNumbers& symbols() { return symbols_; }
  const kiln::capi::SymbolNumbers& symbols() const { return symbols_; }
  // Sizes given by the user: numbers, and numbers of symbolic sizes.
  kiln::Result<std::vector<kiln::Dimension>> Dimensions(const int64_t* dims, size_t rank) const;
  // Sizes returned to the user; the vector lives as long as the graph.
  kiln::Result<const std::vector<int64_t>*> DimsOf(const kiln::ir::Instruction& value);

  // A copy of `region` in this module, made once per version. With the rule of its derivative, if
  // it has one, it is only good for calls.
  enum class Rule : uint8_t { kWithout, kWith };
  kiln::Result<kiln::ir::Computation*> CopyRegion(const kiln_graph& region, Rule rule);
  // The module's entry is the backward computation of calls of this graph (see grad/custom.h).
  // Null: there is none.
  void SetGradient(std::unique_ptr<const kiln::ir::Module> backward);
  // A computation made by the builder itself ("add" of f32), once per key.
  template <typename Make>
  kiln::Result<kiln::ir::Computation*> Helper(const std::string& key, Make make) {
    if (auto it = helpers_.find(key); it != helpers_.end()) return it->second;
    KILN_ASSIGN_OR_RETURN(kiln::ir::Computation * made, make());
    helpers_[key] = made;
    return made;
  }

 private:
  void Register(kiln::ir::Instruction* instruction);

  kiln::Ref<kiln::client::Client> client_;
  std::unique_ptr<kiln::ir::Module> module_;
  const uint32_t serial_;
  uint64_t version_ = 0;
  uint64_t read_version_ = 0;  // its version at the end of the constructor
  kiln::Status status_;
  std::vector<kiln::ir::Instruction*> values_;
  std::unordered_map<const kiln::ir::Instruction*, size_t> indices_;
  kiln::capi::AttributesPool attributes_;
  kiln::capi::Scopes scopes_{attributes_};
  kiln::stablehlo::EntryAttributes entry_attributes_;
  kiln::capi::SymbolNumbers symbols_;
  std::unordered_map<const kiln::ir::Instruction*, std::vector<int64_t>> dims_;
  // By serial, version, and whether they have rules.
  std::map<std::tuple<uint32_t, uint64_t, Rule>, kiln::ir::Computation*> regions_;
  std::unique_ptr<const kiln::ir::Module> gradient_;
  std::map<std::string, kiln::ir::Computation*> helpers_;
};

namespace kiln::capi {

// An error about an op with the names of its operands.
Status WithOperands(const Status& status, Opcode opcode,
                    std::span<ir::Instruction* const> operands);

// Hands over the graph of a read and verified module.
kiln_graph* GraphOf(client::Client& client, std::unique_ptr<ir::Module> module);

}  // namespace kiln::capi
