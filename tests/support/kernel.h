// Kernels made by hand, and what they compute by plain loops.
#pragma once

#include <cstring>
#include <memory>
#include <string>
#include <vector>

#include "kernel/kernel.h"

namespace kiln::testing {

// Elements of one array, as bytes at an address that is a multiple of 64, between guard zones.
class Buffer {
 public:
  Buffer(ElementType type, int64_t elements);
  ElementType type() const { return type_; }
  int64_t elements() const { return elements_; }
  void* data() { return bytes_.data() + offset_; }
  const void* data() const { return bytes_.data() + offset_; }
  template <typename T>
  T* as() {
    return static_cast<T*>(data());
  }
  // Element i, converted. Floats of both widths are exact in a double, integers in an int64.
  double Float(int64_t i) const;
  int64_t Int(int64_t i) const;
  void Set(int64_t i, double float_value, int64_t int_value);
  // Small numbers of a fixed pattern.
  void Fill(unsigned seed);
  // Whether the bytes around the array are as they were made.
  bool Intact() const;

 private:
  static constexpr size_t kZone = 512;
  ElementType type_;
  int64_t elements_;
  size_t size_, offset_;
  std::vector<unsigned char> bytes_;
};

// Adds nodes and more to a stage of a kernel.
struct StageBuilder {
  kernel::Kernel& kernel;
  kernel::StageId stage;

  kernel::Stage& get() const { return kernel.stages[stage]; }
  kernel::NodeId Add(kernel::Node node) const;
  kernel::NodeId Load(kernel::ParamId param, kernel::Index index, kernel::NodeId guard = {}) const;
  kernel::NodeId Op(Opcode opcode, ElementType type, std::vector<kernel::NodeId> operands,
                    Direction direction = Direction::kEq) const;
  kernel::NodeId Constant(ElementType type, double value) const;
  kernel::NodeId IndexValue(ElementType type, kernel::Index index) const;
  kernel::NodeId InRange(kernel::Index index, int64_t bound) const;
  // A result of an earlier stage's first reduction.
  kernel::NodeId Reduced(const StageBuilder& from, int result, ElementType type) const;
  void Store(kernel::ParamId param, kernel::Index index, kernel::NodeId value) const;
  // A reduction of one value by a known combiner.
  kernel::ReductionId Reduce(kernel::Combiner::Kind kind, ElementType type, kernel::NodeId input,
                             kernel::NodeId init) const;
};

struct KernelBuilder {
  kernel::Kernel kernel;

  explicit KernelBuilder(std::vector<int64_t> outer);
  kernel::ParamId Input(ElementType type, int64_t elements);
  kernel::ParamId Output(ElementType type, int64_t elements);
  // An inner variable, and a stage over such.
  kernel::VariableId Inner(int64_t extent, bool reduction);
  StageBuilder Stage(std::vector<kernel::VariableId> variables = {});
  // A variable as an index; or the outer one of a number.
  kernel::Index Var(kernel::VariableId v) const;
  kernel::Index Var(int outer) const { return Var(kernel::VariableId(outer)); }
};

// Runs the kernel point by point, one scalar at a time; floats are accumulated in their own type.
void Evaluate(const kernel::Kernel& kernel, std::vector<Buffer*> params);

}  // namespace kiln::testing
