// The dumps of a compilation: by its own options, or else by the flags of the client.
#pragma once

#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>

#include "base/status.h"
#include "client/client.h"
#include "client/dump_folder.h"
#include "compiler/compiler.h"
#include "ir/ir.h"

namespace kiln::client {

class Dumps {
 public:
  // Prepares the dumps of a compilation of `module`, and sets the compiler's options for them;
  // these refer to the object. With a folder of the options, failures are errors. Dumps that only
  // flags ask for must not fail the program: there failures are warnings in the log.
  Dumps(Client& client, const ir::Module& module, compiler::Options& compiler);
  ~Dumps();  // logs the first failure that is a warning
  Dumps(const Dumps&) = delete;
  Dumps& operator=(const Dumps&) = delete;

  Status Open(const std::string& option_folder);

  // Whether there are files beside the graphs of the stages.
  bool is_on() const { return to_stdout_ || folder_; }
  void Write(const std::string& name, std::string_view text);
  // The first failure that is an error.
  Status status() const;

 private:
  void OpenByFlags();
  void OpenGraphs();
  void WriteGraph(const passes::Stage& stage, std::string_view platform);
  // A failure of dumps by flags.
  void Note(const Status& status);

  Client& client_;
  compiler::Options& compiler_;
  const std::string module_name_;
  const int64_t instructions_;
  bool by_flags_ = false, to_stdout_ = false;
  std::optional<DumpFolder> folder_, graphs_;
  std::mutex mutex_;
  Status noted_;
};

}  // namespace kiln::client
