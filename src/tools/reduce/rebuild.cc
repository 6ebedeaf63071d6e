#include "tools/reduce/rebuild.h"

#include <algorithm>
#include <unordered_set>

#include "ir/verifier.h"

namespace kiln::tools {
namespace {

using ir::Computation;
using ir::Instruction;

class Rebuilder {
 public:
  Rebuilder(const ir::Module& module, const Edits& edits)
      : from_(module), edits_(edits), to_(std::make_unique<ir::Module>(module.name())) {}

  Result<std::unique_ptr<ir::Module>> Run() {
    for (const Computation* c : from_.CalleesFirst()) {
      if (c != from_.entry()) KILN_RETURN_IF_ERROR(Copy(*c));
    }
    KILN_RETURN_IF_ERROR(Copy(*from_.entry()));
    to_->set_entry(computations_.at(from_.entry()));
    CopyAliases();
    to_->RemoveUnusedComputations();
    to_->SortComputations();
    const Instruction* culprit = nullptr;
    KILN_RETURN_IF_ERROR(ir::CheckModule(*to_, &culprit));
    return std::move(to_);
  }

 private:
  // The replacement of the instruction, possibly new; itself if not replaced.
  const Instruction* Resolved(const Instruction* i) const {
    for (auto it = edits_.replaced.find(i); it != edits_.replaced.end();
         it = edits_.replaced.find(i)) {
      if (it->second.kind != Replacement::Kind::kOperand) break;
      i = i->operand(it->second.operand);
    }
    return i;
  }

  bool IsMadeAnew(const Instruction* i) const { return edits_.replaced.contains(i); }

  std::vector<const Instruction*> ResultsOf(const Computation& c) const {
    if (&c != from_.entry() || edits_.results.empty()) return {c.root()};
    return edits_.results;
  }

  std::unordered_set<const Instruction*> Needed(const Computation& c) const {
    std::unordered_set<const Instruction*> needed;
    std::vector<const Instruction*> work;
    auto visit = [&](const Instruction* i) {
      i = Resolved(i);
      if (needed.insert(i).second) work.push_back(i);
    };
    for (const Instruction* result : ResultsOf(c)) visit(result);
    while (!work.empty()) {
      const Instruction* i = work.back();
      work.pop_back();
      if (IsMadeAnew(i)) continue;
      for (const Instruction* operand : i->operands()) visit(operand);
    }
    return needed;
  }

  int64_t SizeOf(int64_t size) const {
    auto it = edits_.sizes.find(size);
    return it == edits_.sizes.end() ? size : it->second;
  }

  Shape ShapeOf(const Shape& shape) const {
    if (edits_.sizes.empty()) return shape;
    if (shape.is_tuple()) {
      std::vector<Shape> elements;
      for (const Shape& element : shape.elements()) elements.push_back(ShapeOf(element));
      return Shape::Tuple(std::move(elements));
    }
    std::vector<int64_t> dims;
    for (int64_t size : shape.dims()) dims.push_back(SizeOf(size));
    return Shape(shape.type(), std::span<const int64_t>(dims));
  }

  // The elements at the remaining indices; new ones repeat the first ones.
  Literal LiteralOf(const Literal& old) const {
    if (edits_.sizes.empty() || !old.shape().is_array()) return old;
    Literal literal(ShapeOf(old.shape()));
    std::vector<int64_t> from = old.shape().dims(), to = literal.shape().dims();
    int64_t bytes = ByteWidth(old.shape().type()), count = literal.shape().num_elements();
    if (old.shape().num_elements() == 0) return literal;
    for (int64_t k = 0; k < count; ++k) {
      int64_t rest = k, source = 0, stride = 1;
      for (size_t d = to.size(); d-- > 0;) {
        source += rest % to[d] % from[d] * stride;
        rest /= to[d];
        stride *= from[d];
      }
      std::memcpy(literal.data() + k * bytes, old.data() + source * bytes,
                  static_cast<size_t>(bytes));
    }
    return literal;
  }

  void AdjustAttributes(const Instruction& i, Attributes& attributes) const {
    if (edits_.sizes.empty()) return;
    for (Attr key : {Attr::kDynamicSliceSizes, Attr::kSliceSizes}) {
      if (!attributes.Has(key)) continue;
      Ints sizes = attributes.IntsOf(key);
      for (int64_t& size : sizes) size = SizeOf(size);
      attributes.Set(key, std::move(sizes));
    }
    if (attributes.Has(Attr::kSlice)) {
      auto slices = attributes.Slices(Attr::kSlice);
      for (size_t d = 0; d < slices.size(); ++d) {
        int64_t before = i.operand(0)->shape().dim(static_cast<int64_t>(d)), now = SizeOf(before);
        bool whole = slices[d].start == 0 && slices[d].limit == before && slices[d].stride == 1;
        slices[d].limit = whole ? now : std::min(slices[d].limit, now);
        slices[d].start = std::min(slices[d].start, slices[d].limit);
      }
      attributes.Set(Attr::kSlice, std::move(slices));
    }
  }

  Result<Instruction*> AddParameter(Computation* c, const Shape& shape, std::string name) {
    int64_t number = static_cast<int64_t>(c->parameters().size());
    return c->Add({.opcode = Opcode::kParameter,
                   .attributes = {{Attr::kParameterNumber, number}},
                   .shape = shape,
                   .name = std::move(name)});
  }

  Result<Instruction*> Make(Computation* c, const Instruction* i) {
    Shape shape = ShapeOf(i->shape());
    const Replacement& replacement = edits_.replaced.at(i);
    if (replacement.kind == Replacement::Kind::kParameter) {
      return AddParameter(c, shape, i->name());
    }
    if (!shape.is_array()) return InvalidArgument("no constant has the shape ", shape);
    double value = replacement.kind == Replacement::Kind::kOne ? 1 : 0;
    auto literal = std::make_shared<const Literal>(Literal::ScalarOf(shape.type(), value));
    KILN_ASSIGN_OR_RETURN(
        Instruction * scalar,
        c->Add({.opcode = Opcode::kConstant, .shape = literal->shape(), .literal = literal}));
    if (shape.rank() == 0) return scalar;
    return c->Add({.opcode = Opcode::kBroadcast,
                   .operands = {scalar},
                   .attributes = {{Attr::kDimensions, Ints{}}},
                   .shape = shape});
  }

  Result<Instruction*> CopyOf(Computation* c, const Instruction* i) {
    std::vector<Instruction*> operands;
    for (const Instruction* operand : i->operands()) {
      operands.push_back(instructions_.at(Resolved(operand)));
    }
    ir::InstructionSpec spec = ir::CopySpec(*i, std::move(operands));
    spec.shape = ShapeOf(i->shape());
    AdjustAttributes(*i, spec.attributes);
    if (i->IsConstant()) {
      spec.literal = std::make_shared<const Literal>(LiteralOf(i->literal()));
    }
    for (Computation*& callee : spec.called) callee = computations_.at(callee);
    return c->Add(std::move(spec));
  }

  Status Copy(const Computation& from) {
    Computation* c = to_->AddComputation(from.name());
    computations_[&from] = c;
    const bool is_entry = &from == from_.entry();
    std::unordered_set<const Instruction*> needed = Needed(from);
    for (const Instruction* p : from.parameters()) {
      if (is_entry && (!needed.contains(p) || IsMadeAnew(p))) continue;
      KILN_ASSIGN_OR_RETURN(instructions_[p], AddParameter(c, ShapeOf(p->shape()), p->name()));
    }
    for (Instruction* i : from.instructions()) {
      if (!needed.contains(i) || instructions_.contains(i)) continue;
      KILN_ASSIGN_OR_RETURN(instructions_[i], IsMadeAnew(i) ? Make(c, i) : CopyOf(c, i));
    }
    std::vector<const Instruction*> results = ResultsOf(from);
    if (results.size() == 1) {
      c->set_root(instructions_.at(Resolved(results[0])));
      return OkStatus();
    }
    std::vector<Instruction*> elements;
    for (const Instruction* result : results) {
      elements.push_back(instructions_.at(Resolved(result)));
    }
    KILN_ASSIGN_OR_RETURN(Instruction * root,
                          c->Add({.opcode = Opcode::kTuple, .operands = std::move(elements)}));
    c->set_root(root);
    return OkStatus();
  }

  // The aliases whose parameter and result both remain.
  void CopyAliases() {
    const Instruction* root = from_.entry()->root();
    const std::vector<const Instruction*> results = ResultsOf(*from_.entry());
    const bool is_root = results.size() == 1 && results[0] == root;
    for (ir::InputOutputAlias alias : from_.aliases()) {
      auto parameter = instructions_.find(from_.entry()->parameter(alias.parameter));
      if (parameter == instructions_.end()) continue;
      alias.parameter = parameter->second->attributes().Int(Attr::kParameterNumber);
      std::vector<int64_t>& index = alias.output_index;
      if (!is_root) {
        if (index.empty() || root->opcode() != Opcode::kTuple) continue;
        auto result = std::ranges::find(results, root->operand(index[0]));
        if (result == results.end()) continue;
        index[0] = result - results.begin();
        if (results.size() == 1) index.erase(index.begin());
      }
      to_->aliases().push_back(std::move(alias));
    }
  }

  const ir::Module& from_;
  const Edits& edits_;
  std::unique_ptr<ir::Module> to_;
  std::unordered_map<const Computation*, Computation*> computations_;
  std::unordered_map<const Instruction*, Instruction*> instructions_;
};

}  // namespace

Result<std::unique_ptr<ir::Module>> Rebuild(const ir::Module& module, const Edits& edits) {
  return Rebuilder(module, edits).Run();
}

}  // namespace kiln::tools
