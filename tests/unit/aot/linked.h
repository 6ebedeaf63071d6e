// Programs compiled ahead of time, linked by the C compiler and loaded into the test.
#pragma once

#include <memory>
#include <span>
#include <string>
#include <vector>

#include "aot/build.h"
#include "base/status.h"
#include "ir/ir.h"
#include "kiln/aot.h"
#include "support/folder.h"
#include "target/target.h"

namespace kiln::aot {

// A shared library of programs and its own copy of the run time.
class LinkedProgram {
 public:
  // `more` is C code in the library, such as functions that custom calls call. The program is named
  // p.
  static Result<std::unique_ptr<LinkedProgram>> Link(const ir::Module& module,
                                                     std::vector<target::Target> targets,
                                                     const std::string& more = "",
                                                     bool packs = true);
  // Several, named p, p1, p2, ..., of the same targets.
  static Result<std::unique_ptr<LinkedProgram>> LinkAll(
      std::span<const std::unique_ptr<ir::Module>> modules,
      const std::vector<target::Target>& targets);
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
    const kiln_aot_program* const* programs;  // all of them
  };
  const Api& api() const { return *api_; }
  const std::string& header() const { return header_; }

 private:
  LinkedProgram() = default;
  // Adds a program's object and header to the folder.
  Status Add(const ir::Module& module, const Options& options);
  // Links what has been added with that code.
  Status Finish(const std::string& more);

  std::vector<std::string> names_;
  TestFolder folder_;
  std::string header_;
  void* library_ = nullptr;
  const Api* api_ = nullptr;
};

}  // namespace kiln::aot
