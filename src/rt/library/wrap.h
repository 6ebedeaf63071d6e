// Functions of the library as symbols of the run time.
#pragma once

#include <memory>
#include <new>
#include <string_view>
#include <utility>

#include "rt/error.h"
#include "rt/format.h"
#include "runtime/lib/function.h"

namespace kiln::rt {

using runtime::lib::Function;
using runtime::lib::Maker;

// Runs `body`, which returns a status. The only exception is a lack of memory.
template <typename F>
int32_t Guarded(kiln_aot_error* error, const F& body) {
  try {
    const Status status = body();
    return status.ok() ? 0 : Fail(error, status.code(), status.message());
  } catch (const std::bad_alloc&) {
    return Fail(error, Code::kResourceExhausted, "there is no memory for it");
  }
}

// The maker of a target's functions; null: there is none.
using FindMaker = Maker (*)(std::string_view target);

template <FindMaker kFind>
int32_t Make(const kiln_aot_call* call, const void* signature, int64_t signature_bytes,
             void** state, kiln_aot_error* error) {
  return Guarded(error, [&]() -> Status {
    const Maker make = kFind(call->target);
    if (!make) return Internal("the run time has no function ", call->target);
    KILN_ASSIGN_OR_RETURN(const CallSignature decoded,
                          CallSignature::Decode({static_cast<const char*>(signature),
                                                 static_cast<size_t>(signature_bytes)}));
    KILN_ASSIGN_OR_RETURN(std::shared_ptr<const Function> function, make(decoded));
    *state = new std::shared_ptr<const Function>(std::move(function));
    return OkStatus();
  });
}

inline int32_t RunFunction(void* state, const kiln_frame* frame, void* const* args,
                           kiln_aot_error* error) {
  const Function& function = **static_cast<const std::shared_ptr<const Function>*>(state);
  return Guarded(error, [&] { return function.Run(frame, args); });
}

inline void Destroy(void* state) { delete static_cast<std::shared_ptr<const Function>*>(state); }

// Defines the symbol of a part of the library.
#define KILN_AOT_LIBRARY(symbol, find)                                              \
  extern "C" const kiln_aot_library symbol;                                         \
  const kiln_aot_library symbol = {::kiln::rt::Make<find>, ::kiln::rt::RunFunction, \
                                   ::kiln::rt::Destroy}

}  // namespace kiln::rt
