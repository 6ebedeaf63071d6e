#include "kernel/build.h"

#include <algorithm>
#include <unordered_map>
#include <unordered_set>

#include "base/strings.h"
#include "kernel/collapse.h"
#include "kernel/combiner.h"
#include "kernel/retype.h"
#include "kernel/values.h"

namespace kiln::kernel {
namespace {

using ir::Instruction;

std::vector<Index> VariablesOf(std::span<const int64_t> dims, int64_t first) {
  std::vector<Index> variables;
  for (size_t i = 0; i < dims.size(); ++i) {
    variables.push_back(Index::Variable(first + static_cast<int64_t>(i), dims[i]));
  }
  return variables;
}

bool IsHero(const Instruction& i) {
  return i.opcode() == Opcode::kReduce || i.opcode() == Opcode::kDot;
}

// Sums and products of half types are rounded once, at last. The computation of a general reduction
// is taken by the letter.
ElementType AccumulatorOf(const Combiner& combiner, ElementType type) {
  bool rounds = combiner.kind == Combiner::Kind::kSum || combiner.kind == Combiner::Kind::kProduct;
  return IsHalf(type) && rounds ? ElementType::kF32 : type;
}

const Shape& FirstLeaf(const Shape& shape) {
  return shape.is_tuple() ? shape.elements()[0] : shape;
}

class Builder {
 public:
  Builder(const Group& group, std::string name) : group_(group) { kernel_.name = std::move(name); }

  Result<Kernel> Build() {
    KILN_RETURN_IF_ERROR(Collect());
    KILN_RETURN_IF_ERROR(AddParams());
    if (heroes_.empty()) {
      KILN_RETURN_IF_ERROR(BuildLoop());
    } else {
      KILN_RETURN_IF_ERROR(BuildReduction());
    }
    AddCosts();
    CollapseVariables(kernel_);
    RetypeMoves(kernel_);
    return std::move(kernel_);
  }

 private:
  // Members in an order in which operands come first; heroes among them.
  Status Collect() {
    for (size_t i = 0; i < group_.inputs.size(); ++i) {
      param_of_.emplace(group_.inputs[i], static_cast<int>(i));
    }
    std::unordered_set<const Instruction*> seen;
    struct Visit {
      const Instruction* instruction;
      int64_t next;
    };
    std::vector<Visit> stack;
    auto enter = [&](const Instruction* i) {
      if (!param_of_.contains(i) && seen.insert(i).second) stack.push_back({i, 0});
    };
    for (const Instruction* root : group_.roots) {
      enter(root);
      while (!stack.empty()) {
        Visit& top = stack.back();
        if (top.next < top.instruction->operand_count()) {
          enter(top.instruction->operand(top.next++));
        } else {
          members_.push_back(top.instruction);
          stack.pop_back();
        }
      }
    }
    for (const Instruction* m : members_) {
      ForEachLeaf(m->shape(), [&](const Shape& leaf, std::span<const int64_t>) {
        unsupported_ |= !leaf.is_array() || !IsSupported(leaf.type());
      });
      if (unsupported_) {
        return Unimplemented(OpcodeName(m->opcode()), ": shape ", m->shape(), " of '", m->name(),
                             "' has no compiled code");
      }
      if (!m->IsConstant()) {
        kernel_.op_names.push_back(m->op_name().empty() ? m->name() : m->op_name());
      }
      if (IsHero(*m)) heroes_.push_back(m);
    }
    return OkStatus();
  }

  Status AddParams() {
    for (const Instruction* input : group_.inputs) {
      if (!input->shape().is_array()) {
        return Unimplemented(OpcodeName(input->opcode()), ": '", input->name(), "' of shape ",
                             input->shape(), " is no array and no input of a kernel");
      }
      AddParam(Param::Role::kInput, input->shape());
    }
    first_output_ = static_cast<int>(kernel_.params.size());
    for (const Instruction* root : group_.roots) {
      ForEachLeaf(root->shape(), [&](const Shape& leaf, std::span<const int64_t>) {
        AddParam(Param::Role::kOutput, leaf);
      });
    }
    return OkStatus();
  }

  void AddParam(Param::Role role, const Shape& shape) {
    kernel_.params.push_back({role, shape.type(), shape.num_elements()});
    (role == Param::Role::kInput ? kernel_.bytes_read : kernel_.bytes_written) += shape.byte_size();
  }

  // `reductions` says whether the stage comes after the reductions and may read their results.
  StageValues::Sources Sources(bool reductions) {
    return {
        [this](const Instruction& i) {
          auto it = param_of_.find(&i);
          return it == param_of_.end() ? -1 : it->second;
        },
        [this, reductions](const Instruction& i) -> std::optional<StageValues::Sources::Reduced> {
          auto it = reduction_of_.find(&i);
          if (!reductions || it == reduction_of_.end()) return std::nullopt;
          return StageValues::Sources::Reduced{
              0, it->second, &kernel_.stages[0].reductions[it->second].types, &outer_};
        }};
  }

  void AddOuter(std::span<const int64_t> dims) {
    outer_ = VariablesOf(dims, 0);
    for (int64_t d : dims) kernel_.variables.push_back({d, false});
    kernel_.outer = static_cast<int>(dims.size());
  }

  // Where root element at the outer point is: the same index where dimensions are equal, else (the
  // same number of elements) the row-major one.
  Result<std::vector<Index>> RootIndex(const Instruction& root, std::span<const int64_t> dims) {
    auto known = index_of_.find(&root);
    if (known != index_of_.end()) return known->second;
    std::vector<int64_t> own = FirstLeaf(root.shape()).dims();
    if (std::equal(own.begin(), own.end(), dims.begin(), dims.end())) return outer_;
    if (Product(own) == Product(dims) && Product(own) > 0) {
      return Delinearise(Linearise(outer_, RowMajorStrides(dims)), own);
    }
    return Unimplemented(OpcodeName(root.opcode()), ": output '", root.name(), "' of shape ",
                         root.shape(), " has another iteration space than its kernel");
  }

  void StoreTo(Stage& stage, int output, const Shape& shape, const std::vector<Index>& index,
               int value) {
    stage.stores.push_back({first_output_ + output, Linearise(index, shape.strides()), value});
  }

  // Stores a root (all results of a reduce of several) at the outer point.
  Status StoreRoot(StageValues& values, Stage& stage, const Instruction& root, int output,
                   std::span<const int64_t> dims) {
    KILN_ASSIGN_OR_RETURN(std::vector<Index> index, RootIndex(root, dims));
    if (root.shape().is_tuple()) {
      for (size_t r = 0; r < root.shape().elements().size(); ++r) {
        KILN_ASSIGN_OR_RETURN(int value, values.ReducedAt(root, static_cast<int>(r), index));
        StoreTo(stage, output + static_cast<int>(r), root.shape().elements()[r], index, value);
      }
      return OkStatus();
    }
    KILN_ASSIGN_OR_RETURN(int value, values.At(root, index));
    StoreTo(stage, output, root.shape(), index, value);
    return OkStatus();
  }

  static int OutputCount(const Instruction& root) {
    return root.shape().is_tuple() ? static_cast<int>(root.shape().elements().size()) : 1;
  }

  Status BuildLoop() {
    std::vector<int64_t> dims = group_.roots[0]->shape().dims();
    AddOuter(dims);
    kernel_.stages.resize(1);
    StageValues values(kernel_.stages[0], Sources(false));
    int output = 0;
    for (const Instruction* root : group_.roots) {
      KILN_RETURN_IF_ERROR(StoreRoot(values, kernel_.stages[0], *root, output, dims));
      output += OutputCount(*root);
    }
    return OkStatus();
  }

  Status BuildReduction() {
    const Instruction& first = *heroes_[0];
    for (const Instruction* hero : heroes_) {
      bool alike = hero->opcode() == Opcode::kReduce && first.opcode() == Opcode::kReduce &&
                   hero->dimensions() == first.dimensions() &&
                   hero->operand(0)->shape().SameDimensions(first.operand(0)->shape());
      if (hero != &first && !alike) {
        return Unimplemented(OpcodeName(hero->opcode()), ": '", hero->name(), "' and '",
                             first.name(), "' cannot be one kernel");
      }
    }
    std::vector<int64_t> dims = FirstLeaf(first.shape()).dims();
    AddOuter(dims);
    // Stages are made up front: values hold references to them.
    kernel_.stages.resize(2);
    StageValues values(kernel_.stages[0], Sources(false));
    if (first.opcode() == Opcode::kDot) {
      KILN_RETURN_IF_ERROR(AddDot(first, values));
    } else {
      for (const Instruction* hero : heroes_) KILN_RETURN_IF_ERROR(AddReduce(*hero, values));
    }
    for (size_t r = 0; r < heroes_.size(); ++r) reduction_of_[heroes_[r]] = static_cast<int>(r);
    PropagateDown();

    StageValues after(kernel_.stages[1], Sources(true));
    int output = 0;
    for (const Instruction* root : group_.roots) {
      bool whole = !index_of_.contains(root) && root->shape().is_array() &&
                   first.opcode() == Opcode::kReduce &&
                   root->shape().SameDimensions(first.operand(0)->shape());
      if (whole) {  // An output of the size of what is reduced: stored on the way.
        KILN_ASSIGN_OR_RETURN(int value, values.At(*root, full_));
        StoreTo(kernel_.stages[0], output, root->shape(), full_, value);
      } else {
        KILN_RETURN_IF_ERROR(StoreRoot(after, kernel_.stages[1], *root, output, dims));
      }
      output += OutputCount(*root);
    }
    return OkStatus();
  }

  Status AddReduce(const Instruction& hero, StageValues& values) {
    std::vector<int64_t> operand_dims = hero.operand(0)->shape().dims();
    const Ints& reduced = hero.dimensions();
    if (full_.empty()) {
      int64_t next = kernel_.outer, kept = 0;
      for (size_t d = 0; d < operand_dims.size(); ++d) {
        if (std::find(reduced.begin(), reduced.end(), static_cast<int64_t>(d)) == reduced.end()) {
          full_.push_back(outer_[kept++]);
          continue;
        }
        full_.push_back(Index::Variable(next, operand_dims[d]));
        kernel_.variables.push_back({operand_dims[d], true});
        kernel_.stages[0].variables.push_back(static_cast<int>(next++));
      }
    }
    Reduction reduction;
    KILN_ASSIGN_OR_RETURN(reduction.combiner, CombinerOf(*hero.called(0)));
    int64_t count = hero.operand_count() / 2;
    for (int64_t i = 0; i < count; ++i) {
      KILN_ASSIGN_OR_RETURN(int input, values.At(*hero.operand(i), full_));
      KILN_ASSIGN_OR_RETURN(int init, values.At(*hero.operand(count + i), {}));
      ElementType type = AccumulatorOf(reduction.combiner, hero.operand(i)->shape().type());
      reduction.inputs.push_back(values.Converted(input, type));
      reduction.inits.push_back(values.Converted(init, type));
      reduction.types.push_back(type);
    }
    kernel_.stages[0].reductions.push_back(std::move(reduction));
    return OkStatus();
  }

  // dot[b.., m.., n..] = sum over k.. of lhs * rhs, taken in the result's type: in f32 and rounded
  // at last for half types, in 32 bits of which the lower ones stay for narrower integers.
  Status AddDot(const Instruction& dot, StageValues& values) {
    const Attributes& a = dot.attributes();
    const Shape &lhs = dot.operand(0)->shape(), &rhs = dot.operand(1)->shape();
    std::vector<Index> lhs_index(lhs.rank()), rhs_index(rhs.rank());
    std::vector<bool> lhs_done(lhs.rank()), rhs_done(rhs.rank());
    auto put = [](std::vector<Index>& index, std::vector<bool>& done, int64_t d, const Index& v) {
      index[d] = v;
      done[d] = true;
    };
    size_t next = 0;
    const Ints &lb = a.IntsOf(Attr::kLhsBatchDims), &rb = a.IntsOf(Attr::kRhsBatchDims);
    for (size_t i = 0; i < lb.size(); ++i, ++next) {
      put(lhs_index, lhs_done, lb[i], outer_[next]);
      put(rhs_index, rhs_done, rb[i], outer_[next]);
    }
    const Ints &lc = a.IntsOf(Attr::kLhsContractingDims), &rc = a.IntsOf(Attr::kRhsContractingDims);
    for (size_t i = 0; i < lc.size(); ++i) {
      int id = static_cast<int>(kernel_.variables.size());
      Index k = Index::Variable(id, lhs.dim(lc[i]));
      kernel_.variables.push_back({lhs.dim(lc[i]), true});
      kernel_.stages[0].variables.push_back(id);
      put(lhs_index, lhs_done, lc[i], k);
      put(rhs_index, rhs_done, rc[i], k);
    }
    for (int64_t d = 0; d < lhs.rank(); ++d) {
      if (!lhs_done[d]) lhs_index[d] = outer_[next++];
    }
    for (int64_t d = 0; d < rhs.rank(); ++d) {
      if (!rhs_done[d]) rhs_index[d] = outer_[next++];
    }
    ElementType type = dot.shape().type();
    if (IsHalf(type)) type = ElementType::kF32;
    if (IsInteger(type) && BitWidth(type) < 32) {
      type = IsSigned(type) ? ElementType::kS32 : ElementType::kU32;
    }
    KILN_ASSIGN_OR_RETURN(int x, values.At(*dot.operand(0), lhs_index));
    KILN_ASSIGN_OR_RETURN(int y, values.At(*dot.operand(1), rhs_index));
    x = values.Converted(x, type);
    y = values.Converted(y, type);
    Reduction reduction;
    reduction.combiner = CombinerOf(Opcode::kAdd, type);
    reduction.inputs = {values.Op(Opcode::kMultiply, type, {x, y})};
    Node zero{.kind = Node::Kind::kConstant, .type = type};
    zero.literal = std::make_shared<Literal>(Shape::Scalar(type));
    reduction.inits = {values.Add(std::move(zero))};
    reduction.types = {type};
    kernel_.stages[0].reductions.push_back(std::move(reduction));
    return OkStatus();
  }

  // The index of every member that depends on a hero, as a function of the outer point: reshapes
  // and transposes are bijections, so they can be followed from operand to user.
  void PropagateDown() {
    for (const Instruction* hero : heroes_) index_of_[hero] = outer_;
    for (const Instruction* m : members_) {
      if (index_of_.contains(m) || !m->shape().is_array()) continue;
      const Instruction* from = nullptr;
      for (const Instruction* operand : m->operands()) {
        if (index_of_.contains(operand)) from = operand;
      }
      if (!from) continue;
      const std::vector<Index>& index = index_of_[from];
      if (m->opcode() == Opcode::kTranspose) {
        std::vector<Index> permuted;
        for (int64_t d : m->dimensions()) permuted.push_back(index[d]);
        index_of_[m] = std::move(permuted);
      } else if (m->opcode() == Opcode::kReshape && m->shape().num_elements() > 0) {
        index_of_[m] =
            Delinearise(Linearise(index, RowMajorStrides(from->shape().dims())), m->shape().dims());
      } else if (m->opcode() == Opcode::kGetTupleElement ||
                 m->shape().SameDimensions(from->shape())) {
        index_of_[m] = index;
      }
    }
  }

  void AddCosts() {
    int64_t outer = 1;
    for (int i = 0; i < kernel_.outer; ++i) outer *= kernel_.variables[i].extent;
    for (const Stage& stage : kernel_.stages) {
      int64_t points = outer;
      for (int v : stage.variables) points *= kernel_.variables[v].extent;
      int64_t flops = static_cast<int64_t>(stage.reductions.size()), transcendentals = 0;
      for (const Node& n : stage.nodes) {
        if (n.kind != Node::Kind::kOp) continue;
        (HasTrait(n.opcode, kTranscendental) ? transcendentals : flops) += 1;
      }
      kernel_.flops += points * flops;
      kernel_.transcendentals += points * transcendentals;
    }
  }

  const Group& group_;
  Kernel kernel_;
  std::vector<const Instruction*> members_, heroes_;
  std::unordered_map<const Instruction*, int> param_of_, reduction_of_;
  std::unordered_map<const Instruction*, std::vector<Index>> index_of_;
  std::vector<Index> outer_, full_;  // of a result element, of an element that is reduced
  int first_output_ = 0;
  bool unsupported_ = false;
};

}  // namespace

Group GroupOf(const Instruction& instruction) {
  Group group;
  if (instruction.opcode() != Opcode::kFusion) {
    group.roots = {&instruction};
    for (const Instruction* operand : instruction.operands()) {
      if (std::find(group.inputs.begin(), group.inputs.end(), operand) == group.inputs.end()) {
        group.inputs.push_back(operand);
      }
    }
    return group;
  }
  const ir::Computation& fused = *instruction.called(0);
  for (const Instruction* p : fused.parameters()) group.inputs.push_back(p);
  if (fused.root()->opcode() == Opcode::kTuple) {
    for (const Instruction* root : fused.root()->operands()) group.roots.push_back(root);
  } else {
    group.roots = {fused.root()};
  }
  return group;
}

Result<Kernel> BuildKernel(const Group& group, std::string name) {
  return Builder(group, std::move(name)).Build();
}

bool IsElemental(const Instruction& instruction) {
  switch (instruction.opcode()) {
    case Opcode::kConstant:
      return instruction.shape().rank() == 0;
    case Opcode::kIota:
    case Opcode::kBroadcast:
    case Opcode::kReshape:
    case Opcode::kTranspose:
    case Opcode::kSlice:
    case Opcode::kPad:
    case Opcode::kConcatenate:
      return true;
    default:
      return IsElementwise(instruction.opcode());
  }
}

}  // namespace kiln::kernel
