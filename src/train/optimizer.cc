#include "train/optimizer.h"

#include <algorithm>
#include <cstring>

#include "base/sized_struct.h"

namespace kiln::train {
namespace {

Status CheckSwitch(std::string_view name, int32_t value) {
  if (value == 0 || value == 1) return OkStatus();
  return InvalidArgument(name, " is ", value, "; expected 0 or 1");
}

Status CheckDecayed(const kiln_optimizer_options& o, size_t count) {
  if (!o.decayed) {
    return o.decayed_count == 0
               ? OkStatus()
               : InvalidArgument("decayed is NULL, with a count of ", o.decayed_count);
  }
  if (o.decayed_count != count) {
    return InvalidArgument("decayed_count is ", o.decayed_count, "; there are ", count,
                           " parameters");
  }
  for (size_t i = 0; i < count; ++i) KILN_RETURN_IF_ERROR(CheckSwitch("decayed", o.decayed[i]));
  return OkStatus();
}

}  // namespace

std::vector<Slot> SlotsOf(const kiln_optimizer_options& o, const Value& parameter) {
  std::vector<Slot> slots;
  if (o.master_weights != 0 && ComputedType(parameter.dtype) != parameter.dtype) {
    slots.push_back({"master", Slot::Of::kMaster});
  }
  switch (o.kind) {
    case KILN_OPTIMIZER_SGD:
      if (o.momentum != 0) slots.push_back({"momentum"});
      break;
    case KILN_OPTIMIZER_ADAM:
    case KILN_OPTIMIZER_ADAMW:
      slots.insert(slots.end(), {{"m"}, {"v"}});
      break;
    case KILN_OPTIMIZER_ADAGRAD:
      slots.push_back({"sum"});
      break;
    case KILN_OPTIMIZER_RMSPROP:
      slots.push_back({"square"});
      if (o.centered != 0) slots.push_back({"mean"});
      if (o.momentum != 0) slots.push_back({"momentum"});
      break;
    case KILN_OPTIMIZER_LION:
      slots.push_back({"m"});
      break;
    case KILN_OPTIMIZER_ADAFACTOR:
      if (parameter.dims.size() > 1) {
        slots.insert(slots.end(), {{"rows", Slot::Of::kRows}, {"columns", Slot::Of::kColumns}});
      } else {
        slots.push_back({"square"});
      }
      break;
  }
  return slots;
}

std::vector<int64_t> DimsOf(const Slot& slot, const Value& parameter) {
  std::vector<int64_t> dims(parameter.dims.begin(), parameter.dims.end());
  if (slot.of == Slot::Of::kRows) dims.erase(dims.end() - 1);
  if (slot.of == Slot::Of::kColumns) dims.erase(dims.end() - 2);
  return dims;
}

Result<kiln_optimizer_options> ReadOptimizer(const kiln_optimizer_options* options, size_t count) {
  if (!options) return InvalidArgument("options is NULL");
  KILN_ASSIGN_OR_RETURN(const kiln_optimizer_options o,
                        ReadOptions("kiln_optimizer_options", options));
  if (o.kind < KILN_OPTIMIZER_SGD || o.kind > KILN_OPTIMIZER_ADAFACTOR) {
    return InvalidArgument("kiln_optimizer_options.kind ", o.kind, " is none");
  }
  KILN_RETURN_IF_ERROR(CheckSwitch("nesterov", o.nesterov));
  KILN_RETURN_IF_ERROR(CheckSwitch("centered", o.centered));
  KILN_RETURN_IF_ERROR(CheckSwitch("master_weights", o.master_weights));
  KILN_RETURN_IF_ERROR(CheckNumber("momentum", o.momentum, 0, 1));
  for (double beta : {o.beta1, o.beta2}) {
    if (!(beta >= 0 && beta < 1)) {
      return InvalidArgument("a beta is ", beta, "; expected a number from 0 to below 1");
    }
  }
  KILN_RETURN_IF_ERROR(CheckNumber("epsilon", o.epsilon, 0, 1e30));
  KILN_RETURN_IF_ERROR(CheckNumber("weight_decay", o.weight_decay, 0, 1e30));
  KILN_RETURN_IF_ERROR(CheckNumber("initial_sum", o.initial_sum, 0, 1e30));
  if (o.kind == KILN_OPTIMIZER_ADAFACTOR) {
    KILN_RETURN_IF_ERROR(CheckPositive("clip_threshold", o.clip_threshold));
  }
  KILN_RETURN_IF_ERROR(CheckDecayed(o, count));
  return o;
}

}  // namespace kiln::train

void kiln_optimizer_options_init(kiln_optimizer_options* options, size_t size,
                                 kiln_optimizer kind) {
  kiln_optimizer_options made{};
  made.struct_size = size;
  made.kind = kind;
  switch (kind) {
    case KILN_OPTIMIZER_ADAM:
    case KILN_OPTIMIZER_ADAMW:
      made.beta1 = 0.9;
      made.beta2 = 0.999;
      made.epsilon = 1e-8;
      if (kind == KILN_OPTIMIZER_ADAMW) made.weight_decay = 0.01;
      break;
    case KILN_OPTIMIZER_ADAGRAD:
      made.epsilon = 1e-10;
      break;
    case KILN_OPTIMIZER_RMSPROP:
      made.beta2 = 0.99;
      made.epsilon = 1e-8;
      break;
    case KILN_OPTIMIZER_LION:
      made.beta1 = 0.9;
      made.beta2 = 0.99;
      break;
    case KILN_OPTIMIZER_ADAFACTOR:
      made.epsilon = 1e-3;
      made.clip_threshold = 1;
      break;
    default:
      break;
  }
  kiln::InitOptions(options, size);
  if (!options || size < sizeof(size_t)) return;
  std::memcpy(static_cast<void*>(options), &made, std::min(size, sizeof made));
}
