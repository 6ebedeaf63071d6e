// Pictures of a program before and after its passes, with the work of a run.
#pragma once

#include <span>
#include <string>
#include <utility>

#include "base/status.h"
#include "draw/graph.h"
#include "ir/ir.h"
#include "tools/kiln_run/compiled.h"

namespace kiln::run {

// Folders of the pictures by their form; empty: none.
struct PictureOptions {
  std::string dot, svg, html;

  bool any() const { return !dot.empty() || !svg.empty() || !html.empty(); }
};

// The dumps of a compilation, as HLO text, in a folder that is removed by the destructor.
class StageFolder {
 public:
  static Result<StageFolder> Make();
  StageFolder(StageFolder&& other) noexcept : path_(std::exchange(other.path_, {})) {}
  StageFolder& operator=(StageFolder&&) = delete;
  ~StageFolder();

  const std::string& path() const { return path_; }
  // Copies what is in it.
  Status CopyTo(const std::string& folder) const;

 private:
  explicit StageFolder(std::string path) : path_(std::move(path)) {}

  std::string path_;
};

// Writes NAME.before.dot, NAME.after.dot, the same with .svg, and NAME.html into the folders, which
// are made; `module` is the input, and `stages` the folder of its compilation, which may have
// failed: then there is less. Errors name the file; an optimised module that cannot be read is an
// error behind what is drawn without it.
Status WritePictures(const PictureOptions& options, const std::string& name,
                     const ir::Module& module, const std::string& stages,
                     std::span<const Launches> launches);

// The work of the instructions that kernels and calls are of, by the ops that they name. Equal
// instructions share the work of the launches that may be of each of them.
draw::WorkByName WorkOf(const ir::Module& optimised, std::span<const Launches> launches);

}  // namespace kiln::run
