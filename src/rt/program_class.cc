// The base of classes for C++.
#include <cstdint>
#include <cstdlib>
#include <cstring>

#include "rt/error.h"
#include "rt/format.h"
#include "rt/instance.h"

namespace kiln {

AotProgram::AotProgram(const kiln_aot_program& program, int32_t threads, const void** arguments,
                       void** results)
    : arguments_(arguments), results_(results) {
  error_.code = 0;
  error_.text[0] = 0;
  int64_t bytes = KILN_AOT_ALIGNMENT;
  for (int32_t i = 0; i < program.argument_count; ++i) {
    bytes += rt::Aligned(program.arguments[i].byte_size);
  }
  for (int32_t i = 0; i < program.result_count; ++i) {
    bytes += rt::Aligned(program.results[i].byte_size);
  }
  memory_ = std::calloc(1, static_cast<size_t>(bytes));
  if (threads != 1) pool_ = kiln_aot_pool_create(threads);
  if (!memory_ || (threads != 1 && !pool_)) {
    rt::Fail(&error_, Code::kResourceExhausted, "there is no memory for the arrays of '",
             program.name, "': ", bytes, " bytes");
    return;
  }
  auto at = rt::Aligned(reinterpret_cast<intptr_t>(memory_));
  auto next = [&](const kiln_aot_array& array) {
    void* address = reinterpret_cast<void*>(at);
    at += rt::Aligned(array.byte_size);
    return address;
  };
  for (int32_t i = 0; i < program.argument_count; ++i) arguments_[i] = next(program.arguments[i]);
  for (int32_t i = 0; i < program.result_count; ++i) results_[i] = next(program.results[i]);
  instance_ = kiln_aot_create(&program, pool_, &error_);
}

AotProgram::~AotProgram() {
  kiln_aot_destroy(instance_);
  kiln_aot_pool_destroy(pool_);
  std::free(memory_);
}

int32_t AotProgram::threads() const {
  return instance_ && instance_->pool ? instance_->pool->threads : 1;
}

void AotProgram::set_thread_pool(kiln_aot_pool* pool) {
  if (instance_) instance_->pool = pool;
  kiln_aot_pool_destroy(pool_);
  pool_ = nullptr;
}

int AotProgram::LookupArgIndex(const kiln_aot_program& program, const char* name) {
  for (int32_t i = 0; i < program.argument_count; ++i) {
    if (std::strcmp(program.arguments[i].name, name) == 0) return i;
  }
  return -1;
}

}  // namespace kiln
