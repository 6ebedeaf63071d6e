#include "capi/graph.h"

#include <algorithm>
#include <atomic>
#include <new>
#include <utility>

#include "base/exception.h"
#include "base/heap.h"
#include "base/strings.h"
#include "capi/deep.h"
#include "capi/error.h"
#include "capi/options.h"
#include "capi/text.h"
#include "capi/value_names.h"
#include "draw/dot.h"
#include "grad/custom.h"
#include "ir/analysis/cost.h"
#include "ir/host_call.h"
#include "ir/text.h"
#include "passes/call_layouts.h"

using kiln::Cat;
using kiln::Dimension;
using kiln::FailedPrecondition;
using kiln::InvalidArgument;
using kiln::NotFound;
using kiln::OkStatus;
using kiln::Opcode;
using kiln::Result;
using kiln::Shape;
using kiln::Status;
using kiln::capi::Guard;
using kiln::capi::GuardDeep;
using kiln::capi::GuardValue;
using kiln::capi::NotNull;
using kiln::capi::TextOf;
using kiln::ir::Instruction;

namespace {

// Ids of different graphs differ, in the whole process.
uint32_t NextSerial() {
  static std::atomic<uint32_t> next{1};
  uint32_t serial = next.fetch_add(1, std::memory_order_relaxed);
  return serial != 0 ? serial : NextSerial();
}

bool HasLayout(const Shape& shape) {
  if (shape.is_array()) return !shape.minor_to_major().empty();
  return std::ranges::any_of(shape.elements(), HasLayout);
}

void ClearLayout(Shape& shape) {
  if (shape.is_array()) shape.set_minor_to_major({});
  for (Shape& element : shape.mutable_elements()) ClearLayout(element);
}

// Buffers are in row-major order, and so are inputs and outputs of a graph. Only the functions of
// typed calls know other layouts.
void ClearLayouts(kiln::ir::Module& module) {
  struct Call {
    kiln::ir::Instruction* instruction;
    std::vector<Shape> operands;
    Shape result;
  };
  std::vector<Call> calls;
  for (const auto& computation : module.computations()) {
    for (kiln::ir::Instruction* instruction : computation->instructions()) {
      if (!kiln::ir::HasCallLayouts(*instruction)) continue;
      Call& call = calls.emplace_back(instruction, std::vector<Shape>(), instruction->shape());
      for (const kiln::ir::Instruction* operand : instruction->operands()) {
        call.operands.push_back(operand->shape());
      }
    }
  }
  for (const auto& computation : module.computations()) {
    for (kiln::ir::Instruction* instruction : computation->instructions()) {
      if (!HasLayout(instruction->shape())) continue;
      Shape shape = instruction->shape();
      ClearLayout(shape);
      instruction->set_shape(std::move(shape));
    }
  }
  for (const Call& call : calls) {
    bool differ = !kiln::ir::IsRowMajor(call.result);
    for (const Shape& shape : call.operands) differ |= !kiln::ir::IsRowMajor(shape);
    if (differ) kiln::passes::SetCallLayouts(call.instruction, call.operands, call.result);
  }
}

// A name valid for files and HLO text.
std::string ModuleName(std::string_view wanted) {
  std::string name(wanted.substr(0, 100));
  for (char& c : name) {
    bool keeps = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
                 c == '_' || c == '-' || c == '.';
    if (!keeps) c = '_';
  }
  bool begins =
      !name.empty() && name[0] != '.' && name[0] != '-' && !(name[0] >= '0' && name[0] <= '9');
  return begins ? name : "graph" + name;
}

}  // namespace

kiln_graph::kiln_graph(kiln::client::Client& client, std::unique_ptr<kiln::ir::Module> module)
    : client_(kiln::Ref<kiln::client::Client>::Share(&client)),
      module_(std::move(module)),
      serial_(NextSerial()) {
  module_->set_is_scheduled(false);
  if (!module_->entry()) module_->set_entry(module_->AddComputation("main"));
  for (kiln::ir::Instruction* instruction : entry().instructions()) {
    instruction->set_frontend_attributes(attributes_.Share(instruction->frontend_attributes()));
    Register(instruction);
  }
  read_version_ = version_;
}

kiln_graph::~kiln_graph() {
  int64_t bytes = 0;
  try {
    bytes = kiln::ir::ConstantBytes(*module_);
  } catch (const std::bad_alloc&) {
    // Freed memory stays with the heap.
  }
  module_.reset();
  kiln::TrimHeap(bytes);
}

void kiln_graph::Fail(const Status& status) {
  if (!status_.ok()) return;
  status_ =
      kiln::WithContextIfPossible(status, [this] { return Cat("graph '", module_->name(), "'"); });
}

std::unique_ptr<kiln::ir::Module> kiln_graph::Take() {
  auto empty = std::make_unique<kiln::ir::Module>(module_->name());
  empty->set_entry(empty->AddComputation("main"));
  Fail(FailedPrecondition("it was given up to be compiled"));
  ++version_;
  values_.clear();
  indices_.clear();
  regions_.clear();
  helpers_.clear();
  std::swap(module_, empty);
  return empty;
}

Status kiln_graph::CheckComplete() const {
  KILN_RETURN_IF_ERROR(status_);
  if (!entry().root()) {
    return FailedPrecondition("the graph '", module_->name(),
                              "' has no results; kiln_graph_set_results says what it computes");
  }
  return OkStatus();
}

void kiln_graph::Register(Instruction* instruction) {
  indices_[instruction] = values_.size();
  values_.push_back(instruction);
  ++version_;
}

void kiln_graph::RegisterNew() {
  for (Instruction* instruction : entry().instructions()) {
    if (!indices_.contains(instruction)) Register(instruction);
  }
}

Status kiln::capi::WithOperands(const Status& status, Opcode opcode,
                                std::span<Instruction* const> operands) {
  if (status.ok() || operands.empty()) return status;
  constexpr size_t kMostNames = 8;
  std::vector<std::string_view> names = kiln::Split(kiln::InfoOf(opcode).operands, ' ');
  std::string text;
  for (size_t i = 0; i < operands.size() && i < kMostNames; ++i) {
    if (i > 0) text += ", ";
    // For an op with any number of operands only the first ones have names.
    text += i < names.size() && names.size() == operands.size() ? std::string(names[i])
                                                                : Cat("operand ", i);
    text += Cat(" is '", operands[i]->name(), "'");
    if (!operands[i]->op_name().empty()) text += Cat(" of ", operands[i]->op_name());
  }
  if (operands.size() > kMostNames) text += Cat(", and ", operands.size() - kMostNames, " more");
  return Status(status.code(), Cat(status.message(), " (", text, ")"));
}

Result<Instruction*> kiln_graph::Add(kiln::ir::InstructionSpec spec) {
  const Opcode opcode = spec.opcode;
  const std::vector<Instruction*> operands = spec.operands;
  scopes_.Mark(spec);
  std::vector<Instruction*> predecessors;
  if (scopes_.has_control()) {
    predecessors =
        scopes_.PredecessorsOf(spec, [&](const Instruction* value) { return indices_.at(value); });
  }
  Result<Instruction*> added = entry().Add(std::move(spec));
  if (!added.ok()) return kiln::capi::WithOperands(added.status(), opcode, operands);
  Register(*added);
  for (Instruction* predecessor : predecessors) {
    KILN_RETURN_IF_ERROR(entry().AddControlDependency(predecessor, *added));
  }
  return added;
}

void kiln_graph::SetAttribute(Instruction& value, std::string_view key,
                              std::optional<std::string_view> text) {
  value.set_frontend_attributes(
      attributes_.Share(kiln::ir::WithFrontendAttribute(value.frontend_attributes(), key, text)));
  ++version_;
}

Status kiln_graph::AddControlDependency(Instruction* before, Instruction* after) {
  KILN_RETURN_IF_ERROR(entry().AddControlDependency(before, after));
  ++version_;
  return OkStatus();
}

void kiln_graph::SetOpName(Instruction& value, std::string_view name) {
  value.set_op_name(std::string(name));
  if (scopes_.gives_names()) scopes_.NoteName(name);
}

Result<Instruction*> kiln_graph::FindValue(std::string_view name) const {
  KILN_ASSIGN_OR_RETURN(
      std::optional<size_t> found,
      kiln::capi::FindByName(
          module_->name(), name, values_.size(), [&](size_t i) { return values_[i]->name(); },
          [&](size_t i) -> std::string_view { return values_[i]->op_name(); }));
  return found ? values_[*found] : nullptr;
}

void kiln_graph::SetRoot(Instruction* root) {
  // Aliases belong to the text's results.
  if (root != entry().root()) module_->aliases().clear();
  entry().set_root(root);
  ++version_;
}

kiln_value kiln_graph::IdOf(const Instruction* instruction) const {
  return uint64_t{serial_} << 32 | (indices_.at(instruction) + 1);
}

std::optional<size_t> kiln_graph::IndexOf(kiln_value value) const {
  uint64_t index = (value & 0xffffffff) - 1;
  if (value >> 32 != serial_ || index >= values_.size()) return std::nullopt;
  return static_cast<size_t>(index);
}

Result<Instruction*> kiln_graph::ValueOf(kiln_value value) const {
  if (auto index = IndexOf(value)) return values_[*index];
  if (value == 0) {
    // The op that should have made the value has failed.
    KILN_RETURN_IF_ERROR(status_);
    return InvalidArgument("the value is 0, which is none");
  }
  if (value >> 32 != serial_) {
    return InvalidArgument("the value ", value, " belongs to another graph than '", module_->name(),
                           "'");
  }
  return InvalidArgument("the graph '", module_->name(), "' has no value ", value);
}

Result<std::vector<Dimension>> kiln_graph::Dimensions(const int64_t* dims, size_t rank) const {
  if (!dims && rank > 0) return InvalidArgument("dims is NULL, with a rank of ", rank);
  if (rank > static_cast<size_t>(kiln::kMaxRank)) {
    return InvalidArgument("rank ", rank, "; the largest is ", kiln::kMaxRank);
  }
  std::vector<Dimension> dimensions;
  for (size_t i = 0; i < rank; ++i) {
    Result<Dimension> size = symbols_.SizeOf(dims[i]);
    if (!size.ok()) return size.status().WithContext(Cat("dims[", i, "]"));
    if (size->is_constant() && size->size() < 0) {
      return InvalidArgument("dims[", i, "] is ", dims[i],
                             ", which is neither a size nor a symbol ", "of the graph");
    }
    dimensions.push_back(*std::move(size));
  }
  return dimensions;
}

Result<const std::vector<int64_t>*> kiln_graph::DimsOf(const Instruction& value) {
  auto it = dims_.find(&value);
  if (it != dims_.end()) return &it->second;
  std::vector<int64_t> dims;
  for (const Dimension& dimension : value.shape().dimensions()) {
    KILN_ASSIGN_OR_RETURN(int64_t size, symbols_.NumberOf(dimension));
    dims.push_back(size);
  }
  return &(dims_[&value] = std::move(dims));
}

void kiln_graph::Rebind(const Instruction* op, Instruction* now) {
  const auto found = indices_.find(op);
  if (found == indices_.end()) return;
  const size_t index = found->second;
  indices_.erase(found);
  dims_.erase(op);
  indices_[now] = index;
  values_[index] = now;
  scopes_.Replace(op, now);
  ++version_;
}

void kiln_graph::SetGradient(std::unique_ptr<const kiln::ir::Module> backward) {
  gradient_ = std::move(backward);
  ++version_;
}

Result<kiln::ir::Computation*> kiln_graph::CopyRegion(const kiln_graph& region, Rule rule) {
  if (&region == this) return InvalidArgument("a graph cannot be a region of its own");
  KILN_RETURN_IF_ERROR(region.CheckComplete());
  if (!region.gradient_) rule = Rule::kWithout;
  auto key = std::make_tuple(region.serial_, region.version_, rule);
  if (auto it = regions_.find(key); it != regions_.end()) return it->second;
  kiln::ir::Computation* copy = module_->CloneComputation(region.entry(), region.module().name());
  if (rule == Rule::kWith) {
    const kiln::ir::Module& backward = *region.gradient_;
    kiln::grad::SetRule(*copy, *module_->CloneComputation(*backward.entry(), backward.name()));
  }
  regions_[key] = copy;
  return copy;
}

kiln_error* kiln_graph_create(kiln_context* context, const char* name, size_t name_length,
                              kiln_graph** graph) {
  return Guard([&]() -> Status {
    KILN_RETURN_IF_ERROR(NotNull("kiln_graph_create", {{"context", context}, {"graph", graph}}));
    KILN_ASSIGN_OR_RETURN(std::string_view text, kiln::capi::TextOf("name", name, name_length));
    *graph = kiln::capi::HandOver(kiln::MakeRef<kiln_graph>(
        *kiln::capi::Unwrap(context), std::make_unique<kiln::ir::Module>(ModuleName(text))));
    return OkStatus();
  });
}

kiln_graph* kiln::capi::GraphOf(client::Client& client, std::unique_ptr<kiln::ir::Module> module) {
  ClearLayouts(*module);
  module->set_name(ModuleName(module->name()));
  return HandOver(MakeRef<kiln_graph>(client, std::move(module)));
}

kiln_error* kiln_graph_from_hlo_text(kiln_context* context, const char* text, size_t text_length,
                                     kiln_graph** graph) {
  return GuardDeep([&]() -> Status {
    KILN_RETURN_IF_ERROR(
        NotNull("kiln_graph_from_hlo_text", {{"context", context}, {"graph", graph}}));
    KILN_ASSIGN_OR_RETURN(std::string_view hlo, kiln::capi::TextOf("text", text, text_length));
    int64_t made_up = 0;
    KILN_ASSIGN_OR_RETURN(std::unique_ptr<kiln::ir::Module> module,
                          kiln::ir::ParseHloText(hlo, {.made_up = &made_up}));
    kiln::client::Client& client = *kiln::capi::Unwrap(context);
    if (made_up > 0) {
      client.Log(kiln::client::LogLevel::kWarning,
                 kiln::Cat("module '", module->name(), "': ", made_up,
                           " values are made up: constants were left out, or infeeds have no "
                           "source"));
    }
    *graph = kiln::capi::GraphOf(client, std::move(module));
    return OkStatus();
  });
}

void kiln_graph_retain(kiln_graph* graph) { kiln::capi::RetainHandle(graph); }

void kiln_graph_release(kiln_graph* graph) { kiln::capi::ReleaseHandle(graph); }

kiln_error* kiln_graph_status(const kiln_graph* graph) {
  return Guard([&]() -> Status {
    KILN_RETURN_IF_ERROR(NotNull("kiln_graph_status", {{"graph", graph}}));
    return graph->status();
  });
}

kiln_error* kiln_graph_fail(kiln_graph* graph, kiln_code code, const char* message,
                            size_t message_length) {
  return Guard([&]() -> Status {
    constexpr const char* kName = "kiln_graph_fail";
    KILN_RETURN_IF_ERROR(NotNull(kName, {{"graph", graph}}));
    KILN_RETURN_IF_ERROR(graph->status());
    KILN_ASSIGN_OR_RETURN(std::string_view text, TextOf("message", message, message_length));
    if (code <= KILN_OK || code > KILN_DATA_LOSS) {
      return InvalidArgument(kName, ": ", code, " is no code of an error");
    }
    graph->Fail(Status(static_cast<kiln::Code>(code), std::string(text)));
    return graph->status();
  });
}

kiln_error* kiln_graph_set_results(kiln_graph* graph, const kiln_value* values,
                                   size_t value_count) {
  return Guard([&]() -> Status {
    KILN_RETURN_IF_ERROR(NotNull("kiln_graph_set_results", {{"graph", graph}}));
    KILN_RETURN_IF_ERROR(graph->status());
    if (!values && value_count > 0)
      return InvalidArgument("kiln_graph_set_results: values is NULL");
    std::vector<Instruction*> results;
    for (size_t i = 0; i < value_count; ++i) {
      auto result = graph->ValueOf(values[i]);
      if (!result.ok()) return result.status().WithContext(Cat("result ", i));
      results.push_back(*result);
    }
    Instruction* root = nullptr;
    if (value_count == 1) {
      root = results[0];
    } else {
      KILN_ASSIGN_OR_RETURN(root, graph->Add({.opcode = Opcode::kTuple, .operands = results}));
    }
    graph->SetRoot(root);
    return OkStatus();
  });
}

namespace {

// The number of the size returned by make() -> Result<Dimension>; errors become the graph's.
template <typename Make>
int64_t SizeNumber(kiln_graph* graph, const char* function, Make&& make) {
  if (!graph || !graph->status().ok()) return 0;
  return GuardValue<int64_t>(0, [&]() -> int64_t {
    auto number = [&]() -> Result<int64_t> {
      KILN_ASSIGN_OR_RETURN(Dimension size, make());
      if (size.is_constant() && size.size() < 0) {
        return InvalidArgument("the size is ", size.size(), "; it must not be negative");
      }
      return graph->symbols().NumberOf(size);
    }();
    if (number.ok()) return *number;
    graph->Fail(number.status().WithContext(function));
    return 0;
  });
}

// Bounds are no numbers to compute with.
Result<Dimension> UnboundedSizeOf(const kiln_graph& graph, int64_t number) {
  KILN_ASSIGN_OR_RETURN(Dimension size, graph.symbols().SizeOf(number));
  if (size.is_bounded()) return InvalidArgument(size, " is a bound; expected a size or a symbol");
  return size;
}

// make(Dimension, Dimension) of two sizes.
template <typename Make>
int64_t SizeOfTwo(kiln_graph* graph, const char* function, int64_t a, int64_t b, Make&& make) {
  return SizeNumber(graph, function, [&]() -> Result<Dimension> {
    KILN_ASSIGN_OR_RETURN(Dimension left, UnboundedSizeOf(*graph, a));
    KILN_ASSIGN_OR_RETURN(Dimension right, UnboundedSizeOf(*graph, b));
    return make(left, right);
  });
}

}  // namespace

int64_t kiln_graph_symbol(kiln_graph* graph, const char* name, size_t name_length) {
  return SizeNumber(graph, "kiln_graph_symbol", [&]() -> Result<Dimension> {
    KILN_ASSIGN_OR_RETURN(std::string_view text, kiln::capi::TextOf("name", name, name_length));
    return Dimension::Symbol(text);
  });
}

int64_t kiln_graph_symbol_affine(kiln_graph* graph, int64_t symbol, int64_t times, int64_t plus) {
  return SizeNumber(graph, "kiln_graph_symbol_affine", [&]() -> Result<Dimension> {
    KILN_ASSIGN_OR_RETURN(Dimension size, UnboundedSizeOf(*graph, symbol));
    KILN_ASSIGN_OR_RETURN(size, Dimension::Product(size, times));
    return Dimension::Sum(size, plus);
  });
}

int64_t kiln_graph_symbol_sum(kiln_graph* graph, int64_t a, int64_t b) {
  return SizeOfTwo(graph, "kiln_graph_symbol_sum", a, b, Dimension::Sum);
}

int64_t kiln_graph_symbol_product(kiln_graph* graph, int64_t a, int64_t b) {
  return SizeOfTwo(graph, "kiln_graph_symbol_product", a, b, Dimension::Product);
}

int64_t kiln_graph_bounded_size(kiln_graph* graph, int64_t bound) {
  return SizeNumber(graph, "kiln_graph_bounded_size", [&]() -> Result<Dimension> {
    KILN_ASSIGN_OR_RETURN(Dimension size, UnboundedSizeOf(*graph, bound));
    if (!size.is_constant() || bound < 0) {
      return InvalidArgument("the bound is ", size, "; expected a number, not negative");
    }
    // As all sizes of graphs that have such numbers.
    if (bound >= kiln::capi::SymbolNumbers::kLimit) {
      return InvalidArgument("the bound is ", bound, "; expected less than 2^40");
    }
    return Dimension::Bounded(bound);
  });
}

kiln_error* kiln_graph_symbol_text(const kiln_graph* graph, int64_t symbol, kiln_text** text) {
  return Guard([&]() -> Status {
    KILN_RETURN_IF_ERROR(NotNull("kiln_graph_symbol_text", {{"graph", graph}, {"text", text}}));
    auto size = graph->symbols().SizeOf(symbol);
    if (!size.ok()) return size.status().WithContext("kiln_graph_symbol_text");
    *text = new kiln_text(size->ToString());
    return OkStatus();
  });
}

size_t kiln_graph_parameter_count(const kiln_graph* graph) {
  return graph ? graph->entry().parameters().size() : 0;
}

kiln_value kiln_graph_parameter(kiln_graph* graph, size_t number) {
  if (!graph || number >= graph->entry().parameters().size()) return 0;
  return graph->IdOf(graph->entry().parameters()[number]);
}

kiln_value kiln_graph_result(kiln_graph* graph) {
  return graph && graph->entry().root() ? graph->IdOf(graph->entry().root()) : 0;
}

kiln_error* kiln_graph_find_value(kiln_graph* graph, const char* name, size_t name_length,
                                  kiln_value* value) {
  return Guard([&]() -> Status {
    KILN_RETURN_IF_ERROR(NotNull("kiln_graph_find_value", {{"graph", graph}, {"value", value}}));
    KILN_ASSIGN_OR_RETURN(std::string_view wanted, kiln::capi::TextOf("name", name, name_length));
    KILN_ASSIGN_OR_RETURN(const Instruction* found, graph->FindValue(wanted));
    if (found) {
      *value = graph->IdOf(found);
      return OkStatus();
    }
    // It may be missing because of an earlier error.
    KILN_RETURN_IF_ERROR(graph->status());
    return NotFound("the graph '", graph->module().name(), "' has no value of the name '", wanted,
                    "'");
  });
}

kiln_error* kiln_graph_value_shape(kiln_graph* graph, kiln_value value, kiln_shape* shape) {
  return Guard([&]() -> Status {
    KILN_RETURN_IF_ERROR(NotNull("kiln_graph_value_shape", {{"graph", graph}, {"shape", shape}}));
    KILN_ASSIGN_OR_RETURN(Instruction * instruction, graph->ValueOf(value));
    KILN_ASSIGN_OR_RETURN(const std::vector<int64_t>* dims, graph->DimsOf(*instruction));
    return kiln::capi::WriteStruct("kiln_shape",
                                   kiln::capi::DescribeShape(instruction->shape(), *dims), shape);
  });
}

const char* kiln_graph_value_name(kiln_graph* graph, kiln_value value, size_t* length) {
  const Instruction* instruction = nullptr;
  if (graph) {
    if (auto index = graph->IndexOf(value)) instruction = graph->values()[*index];
  }
  if (length) *length = instruction ? instruction->name().size() : 0;
  return instruction ? instruction->name().c_str() : nullptr;
}

kiln_error* kiln_graph_set_op_name(kiln_graph* graph, kiln_value value, const char* name,
                                   size_t name_length) {
  return Guard([&]() -> Status {
    KILN_RETURN_IF_ERROR(NotNull("kiln_graph_set_op_name", {{"graph", graph}}));
    KILN_ASSIGN_OR_RETURN(std::string_view text, kiln::capi::TextOf("name", name, name_length));
    KILN_ASSIGN_OR_RETURN(Instruction * instruction, graph->ValueOf(value));
    graph->SetOpName(*instruction, text);
    return OkStatus();
  });
}

kiln_error* kiln_graph_to_hlo_text(const kiln_graph* graph, kiln_text** text) {
  return GuardDeep([&]() -> Status {
    KILN_RETURN_IF_ERROR(NotNull("kiln_graph_to_hlo_text", {{"graph", graph}, {"text", text}}));
    KILN_RETURN_IF_ERROR(graph->CheckComplete());
    // The copy has the needed computations only, in order.
    *text = new kiln_text(kiln::ir::ToHloText(*graph->module().Clone()));
    return OkStatus();
  });
}

kiln_error* kiln_graph_to_dot(const kiln_graph* graph, kiln_text** text) {
  return GuardDeep([&]() -> Status {
    KILN_RETURN_IF_ERROR(NotNull("kiln_graph_to_dot", {{"graph", graph}, {"text", text}}));
    KILN_RETURN_IF_ERROR(graph->CheckComplete());
    *text = new kiln_text(kiln::draw::ToDot(*graph->module().Clone()));
    return OkStatus();
  });
}
