#include "stablehlo/mlir/operation.h"

#include <algorithm>
#include <cstring>

#include "tensor/shape.h"

namespace kiln::mlir {
namespace {

// The fields of a type as bytes, the key for equal types. Types below are already unique, so their
// addresses identify them.
class Key {
 public:
  template <typename T>
  void Add(T value) {
    bytes_.append(reinterpret_cast<const char*>(&value), sizeof(value));
  }
  template <typename T>
  void AddAll(const std::vector<T>& values) {
    Add(values.size());
    for (const T& value : values) Add(value);
  }
  void AddText(std::string_view text) {
    Add(text.size());
    bytes_ += text;
  }
  std::string Take() { return std::move(bytes_); }

 private:
  std::string bytes_;
};

std::string KeyOf(const Type& type) {
  Key key;
  key.Add(type.kind);
  key.Add(type.signedness);
  key.Add(type.float_kind);
  key.Add(type.width);
  key.Add(type.element);
  key.AddAll(type.dimensions);
  key.AddAll(type.bounds);
  key.AddText(type.text);
  key.AddAll(type.inputs);
  key.AddAll(type.results);
  const Quantization& q = type.quantization;
  key.Add(q.storage);
  key.Add(q.expressed);
  key.Add(q.storage_min);
  key.Add(q.storage_max);
  key.AddAll(q.axes);
  key.AddAll(q.block_sizes);
  key.AddAll(q.blocks);
  key.AddAll(q.scales);
  key.AddAll(q.zero_points);
  return key.Take();
}

bool IsElement(const Type& type) {
  switch (type.kind) {
    case TypeKind::kInteger:
    case TypeKind::kIndex:
    case TypeKind::kFloat:
    case TypeKind::kComplex:
    case TypeKind::kQuantized:
    case TypeKind::kOpaque:
      return true;
    default:
      return false;
  }
}

Status CheckTensor(const Type& type) {
  if (type.rank() > kMaxRank) {
    return InvalidArgument("a tensor of ", type.rank(), " dimensions has more than ", kMaxRank);
  }
  // No element takes more than 16 bytes.
  constexpr int64_t kMost = INT64_MAX / 16;
  int64_t count = 1;
  bool overflow = false, empty = false;
  for (int64_t size : type.dimensions) {
    if (size == kDynamic) continue;
    if (size < 0) return InvalidArgument("a tensor has the size ", size);
    empty |= size == 0;
    overflow |= __builtin_mul_overflow(count, std::max<int64_t>(size, 1), &count) || count > kMost;
  }
  if (overflow && !empty) return InvalidArgument("a tensor has more elements than an int64 counts");
  if (type.bounds.empty()) return OkStatus();
  if (type.bounds.size() != type.dimensions.size()) {
    return InvalidArgument("a tensor of ", type.rank(), " dimensions has ", type.bounds.size(),
                           " bounds");
  }
  for (size_t i = 0; i < type.bounds.size(); ++i) {
    if (type.bounds[i] == kDynamic) continue;
    if (type.dimensions[i] != kDynamic || type.bounds[i] < 0) {
      return InvalidArgument("dimension ", i, " cannot have the bound ", type.bounds[i]);
    }
  }
  return OkStatus();
}

Status CheckQuantization(const Quantization& q) {
  if (!q.storage || !q.storage->is(TypeKind::kInteger) || q.storage->width > 32 || !q.expressed ||
      !q.expressed->is(TypeKind::kFloat)) {
    return InvalidArgument("a quantised type is not of integers up to 32 bits for floats");
  }
  auto [min, max] = StorageRange(*q.storage);
  if (q.storage_min < min || q.storage_max > max || q.storage_min >= q.storage_max) {
    return InvalidArgument("a quantised type cannot have the range ", q.storage_min, ":",
                           q.storage_max);
  }
  bool fits = q.scales.size() == q.zero_points.size() && !q.scales.empty();
  if (q.axes.empty()) fits &= q.scales.size() == 1;
  fits &= q.block_sizes.empty() ? q.axes.size() <= 1 && q.blocks.empty()
                                : q.block_sizes.size() == q.axes.size();
  if (!q.block_sizes.empty()) {
    // There are as many blocks as scales, so that the product cannot overflow where they fit.
    int64_t count = 1;
    for (int64_t n : q.blocks) fits &= n > 0 && !__builtin_mul_overflow(count, n, &count);
    fits &= count == static_cast<int64_t>(q.scales.size());
  }
  for (int64_t axis : q.axes) fits &= axis >= 0 && axis < kMaxRank;
  for (int64_t size : q.block_sizes) fits &= size > 0;
  if (!fits) return InvalidArgument("the scales of a quantised type do not fit its axes");
  for (double scale : q.scales) {
    if (!(scale > 0) || scale > 1e300) {
      return InvalidArgument("a quantised type cannot have the scale ", scale);
    }
  }
  return OkStatus();
}

Status CheckType(const Type& type) {
  switch (type.kind) {
    case TypeKind::kInteger:
      if (type.width >= 1 && type.width <= 64) return OkStatus();
      return Unimplemented("an integer of ", type.width, " bits is not implemented");
    case TypeKind::kComplex:
      if (type.element && type.element->is(TypeKind::kFloat)) return OkStatus();
      return InvalidArgument("a complex type is not of floats");
    case TypeKind::kTensor:
      if (!type.element || !IsElement(*type.element)) {
        return InvalidArgument("a tensor has elements of a type that no element has");
      }
      return CheckTensor(type);
    case TypeKind::kUnrankedTensor:
      if (type.element && IsElement(*type.element)) return OkStatus();
      return InvalidArgument("a tensor has elements of a type that no element has");
    case TypeKind::kQuantized:
      return CheckQuantization(type.quantization);
    default:
      return OkStatus();
  }
}

// Brings kDenseArray and kElements into the form specified in the header.
Status CheckBytes(Attribute& attribute) {
  const bool dense = attribute.is(AttributeKind::kElements);
  if (dense && (!attribute.type->is_static())) {
    return InvalidArgument("elements are of ", *attribute.type, ", whose sizes are not known");
  }
  const Type& element = dense ? *attribute.type->element : *attribute.type;
  const size_t size = static_cast<size_t>(ElementBytes(element));
  if (size == 0) return Unimplemented("elements of ", element, " are not implemented");
  const std::string_view bytes = attribute.elements();
  if (!dense) {
    if (bytes.size() % size == 0) return OkStatus();
    return InvalidArgument(bytes.size(), " bytes are no array of ", element);
  }
  const auto count = static_cast<size_t>(attribute.type->num_elements());
  if (count == 0) {
    attribute.bytes.clear();
    attribute.splat = false;
    return OkStatus();
  }
  if (attribute.splat ? bytes.size() != size : bytes.size() / size != count) {
    return InvalidArgument(bytes.size(), " bytes are not the elements of ", *attribute.type);
  }
  // All are equal if each byte equals the one an element before it.
  if (!attribute.splat &&
      std::memcmp(bytes.data(), bytes.data() + size, bytes.size() - size) == 0) {
    attribute.splat = true;
    attribute.bytes = std::string(bytes.substr(0, size));
    attribute.lent = {};
    attribute.owner = nullptr;
  }
  return OkStatus();
}

}  // namespace

std::string Location::ToString() const {
  return line > 0 ? Cat("line ", line, ", column ", column) : Cat("byte ", offset);
}

Module::Module() {
  root_ = &operations_.emplace_back();
  root_->name = Name("builtin.module");
  AddBlock(AddRegion(root_));
}

void Module::Unwrap() {
  root_ = body()->operations[0];
  root_->parent = nullptr;
  if (root_->regions.empty()) AddRegion(root_);
  if (root_->regions[0]->blocks.empty()) AddBlock(root_->regions[0]);
}

Result<const Type*> Module::Get(Type type) {
  type.parts = 1;
  type.depth = 1;
  auto add = [&](const Type* part) {
    type.parts += part->parts;
    type.depth = std::max(type.depth, part->depth + 1);
  };
  if (type.element) add(type.element);
  for (const Type* part : type.inputs) add(part);
  for (const Type* part : type.results) add(part);
  if (type.parts > kMaxTypeParts || type.depth > kMaxTypeDepth) {
    return ResourceExhausted("a type has more than ", kMaxTypeParts, " parts or is more than ",
                             kMaxTypeDepth, " deep");
  }
  KILN_RETURN_IF_ERROR(CheckType(type));
  auto [found, added] = types_by_key_.try_emplace(KeyOf(type), nullptr);
  if (added) found->second = &types_.emplace_back(std::move(type));
  return found->second;
}

Result<const Attribute*> Module::Make(Attribute attribute) {
  attribute.parts = attribute.type ? attribute.type->parts : 1;
  attribute.depth = 1;
  auto add = [&](const Attribute* part) {
    attribute.parts += part->parts;
    attribute.depth = std::max(attribute.depth, part->depth + 1);
  };
  for (const Attribute* item : attribute.items) add(item);
  for (const NamedAttribute& field : attribute.fields) add(field.value);
  if (attribute.parts > kMaxAttributeParts || attribute.depth > kMaxAttributeDepth) {
    return ResourceExhausted("an attribute has more than ", kMaxAttributeParts,
                             " parts or is more than ", kMaxAttributeDepth, " deep");
  }
  if (attribute.is(AttributeKind::kInteger) && attribute.type->is_bool()) {
    attribute.kind = AttributeKind::kBool;
    attribute.boolean = (attribute.integer & 1) != 0;
    attribute.integer = 0;
    attribute.type = nullptr;
  }
  if (attribute.is(AttributeKind::kElements) || attribute.is(AttributeKind::kDenseArray)) {
    KILN_RETURN_IF_ERROR(CheckBytes(attribute));
  }
  return &attributes_.emplace_back(std::move(attribute));
}

std::string_view Module::Name(std::string_view name) { return *names_.emplace(name).first; }

const Source* Module::GetSource(const Source& source) {
  // Consecutive operations often share a location.
  if (!sources_.empty() && sources_.back() == source) return &sources_.back();
  return &sources_.emplace_back(source);
}

Operation* Module::AddOperation(Block* block, std::string_view name, Location location) {
  Operation& operation = operations_.emplace_back();
  operation.name = Name(name);
  operation.location = location;
  operation.parent = block ? block : body();
  operation.parent->operations.push_back(&operation);
  return &operation;
}

Value* Module::NewValue(const Type* type) {
  Value& value = values_.emplace_back();
  value.type = type;
  value.id = static_cast<int64_t>(values_.size()) - 1;
  return &value;
}

Value* Module::AddResult(Operation* operation, const Type* type) {
  Value* value = NewValue(type);
  value->operation = operation;
  value->index = static_cast<int64_t>(operation->results.size());
  operation->results.push_back(value);
  return value;
}

Region* Module::AddRegion(Operation* operation) {
  const int64_t depth = operation->parent ? operation->parent->parent->depth + 1 : 0;
  if (depth > kMaxRegionDepth) return nullptr;
  Region& region = regions_.emplace_back();
  region.parent = operation;
  region.depth = depth;
  operation->regions.push_back(&region);
  return &region;
}

Block* Module::AddBlock(Region* region) {
  Block& block = blocks_.emplace_back();
  block.parent = region;
  region->blocks.push_back(&block);
  return &block;
}

Value* Module::AddArgument(Block* block, const Type* type) {
  Value* value = NewValue(type);
  value->block = block;
  value->index = static_cast<int64_t>(block->arguments.size());
  block->arguments.push_back(value);
  return value;
}

}  // namespace kiln::mlir
