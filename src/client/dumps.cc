#include "client/dumps.h"

#include <new>
#include <utility>

#include "base/strings.h"
#include "draw/dot.h"

namespace kiln::client {
namespace {

// "CPU: pipeline start, before dce", as in TensorFlow 1.
std::string StageText(const passes::Stage& stage, std::string_view platform) {
  std::string text = Cat(ToUpper(platform), ": ");
  text += stage.after == "pipeline-start" ? "pipeline start" : Cat("after ", stage.after);
  text += ", ";
  text += stage.before == "pipeline-end" ? "pipeline end" : Cat("before ", stage.before);
  return text;
}

}  // namespace

Dumps::Dumps(Client& client, const ir::Module& module, compiler::Options& compiler)
    : client_(client),
      compiler_(compiler),
      module_name_(module.name()),
      instructions_(module.entry()->instruction_count()) {}

Dumps::~Dumps() {
  if (by_flags_ && folder_) Note(folder_->status());
  if (noted_.ok()) return;
  try {
    client_.Log(LogLevel::kWarning, Cat("'", module_name_, "' is not dumped: ", noted_.message()));
  } catch (const std::bad_alloc&) {
    // No memory for the message: it is lost.
  }
}

Status Dumps::Open(const std::string& option_folder) {
  if (option_folder.empty()) {
    OpenByFlags();
  } else {
    KILN_ASSIGN_OR_RETURN(folder_, DumpFolder::Open(option_folder));
  }
  OpenGraphs();
  if (is_on()) {
    compiler_.dump = [this](const std::string& name, std::string_view text) { Write(name, text); };
  }
  return OkStatus();
}

void Dumps::OpenByFlags() {
  const flags::CompileFlags& flags = client_.flags().compile;
  compiler::DumpForms forms{.text = flags.dump_hlo_as_text,
                            .dot = flags.dump_hlo_as_dot,
                            .html = flags.dump_hlo_as_html,
                            .svg = flags.dump_hlo_as_svg};
  const bool has_form = forms.text || forms.dot || forms.html || forms.svg;
  if (flags.dump_to.empty() && !has_form) return;
  if (!flags.dump_hlo_module_re.empty() && !flags.dump_hlo_module_re.Matches(module_name_)) return;
  by_flags_ = true;
  if (!has_form) forms.text = true;
  compiler_.dump_forms = compiler_.dump_stage_forms = forms;
  compiler_.dumps_pass = [&flags](std::string_view pass) {
    return flags.dump_hlo_pass_re.Matches(pass);
  };
  // As in XLA: a form without a folder is meant for standard output.
  to_stdout_ = flags.dump_to.empty() || flags.dump_to == "-";
  if (to_stdout_) return;
  Result<DumpFolder> folder = DumpFolder::Open(flags.dump_to);
  if (folder.ok()) {
    folder_ = *std::move(folder);
  } else {
    Note(folder.status());
  }
}

void Dumps::OpenGraphs() {
  const flags::CompileFlags& flags = client_.flags().compile;
  if (!flags.generate_hlo_graph.Matches(module_name_)) return;
  Result<DumpFolder> folder = DumpFolder::Open(flags.hlo_graph_path);
  if (!folder.ok()) return Note(folder.status());
  graphs_ = *std::move(folder);
  compiler_.at_stage = [this](const passes::Stage& stage, std::string_view platform) {
    WriteGraph(stage, platform);
  };
}

void Dumps::WriteGraph(const passes::Stage& stage, std::string_view platform) {
  if (!graphs_->status().ok()) return;
  const std::string name = Cat("hlo_graph_", client_.NextGraphNumber(), ".dot");
  graphs_->Write(name, draw::ToDot(stage.module));
  if (!graphs_->status().ok()) return Note(graphs_->status());
  client_.Announce(Cat("computation ", module_name_, ".v", instructions_, " [",
                       StageText(stage, platform), "]: ", client_.flags().compile.hlo_graph_path,
                       "/", name));
}

void Dumps::Write(const std::string& name, std::string_view text) {
  if (to_stdout_) {
    Note(DumpToStdout(name, text));
  } else if (folder_) {
    folder_->Write(name, text);
  }
}

void Dumps::Note(const Status& status) {
  std::lock_guard lock(mutex_);
  if (noted_.ok()) noted_ = status;
}

Status Dumps::status() const { return folder_ && !by_flags_ ? folder_->status() : OkStatus(); }

}  // namespace kiln::client
