// Programs compiled ahead of time, linked by the C compiler and loaded into the test.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "aot/build.h"
#include "base/status.h"
#include "ir/ir.h"
#include "kiln/aot.h"
#include "support/folder.h"
#include "target/target.h"

namespace kiln::aot {

// A shared library of one program and its own copy of the run time.
class LinkedProgram {
 public:
  // `more` is C code in the library, such as functions that custom calls call.
  static Result<std::unique_ptr<LinkedProgram>> Link(const ir::Module& module,
                                                     std::vector<target::Target> targets,
                                                     const std::string& more = "",
                                                     bool packs = true);
  ~LinkedProgram();
  LinkedProgram(const LinkedProgram&) = delete;
  LinkedProgram& operator=(const LinkedProgram&) = delete;

  // The functions of kiln/aot.h, in the order of the library's table.
  struct Api {
    const kiln_aot_program* program;
    decltype(&kiln_aot_place) place;
    decltype(&kiln_aot_create) create;
    decltype(&kiln_aot_destroy) destroy;
    decltype(&kiln_aot_run) run;
    decltype(&kiln_aot_target) target;
    decltype(&kiln_aot_pool_create) pool_create;
    decltype(&kiln_aot_pool_destroy) pool_destroy;
  };
  const Api& api() const { return *api_; }
  const std::string& header() const { return header_; }

 private:
  LinkedProgram() = default;

  TestFolder folder_;
  std::string header_;
  void* library_ = nullptr;
  const Api* api_ = nullptr;
};

}  // namespace kiln::aot
