// Programs as bytes, for files and caches. The format is in docs/saved-programs.md.
#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "base/status.h"
#include "program/program.h"

namespace kiln::program {

// Everything that a device needs to load it, in any process with a library of the same version of
// the format and of the frame. Equal artefacts have equal bytes. UNIMPLEMENTED names a part that
// the format lacks.
Result<std::string> Save(const Artefact& artefact);
// The same bytes as a file, which takes the path's place once it is complete (base/output_file.h).
Status SaveFile(const Artefact& artefact, const std::string& path);

// INVALID_ARGUMENT for bytes that are no saved program, or are damaged; FAILED_PRECONDITION for
// another version of the format. Target and frame are checked when a device loads it. Time and
// memory are in proportion to the bytes, whatever they are.
//
// With an owner, the bytes stay as they are until it goes, and constants are left in them if the
// bytes begin at a multiple of kAlignment. Everything else is copied.
Result<Artefact> Restore(std::string_view bytes, std::shared_ptr<const void> owner = nullptr);
// From a file, which is mapped, constants included: it may be replaced while one of them is in use,
// but not be changed or cut off. Errors of the system, too.
Result<Artefact> RestoreFile(const std::string& path);

// A name of the program, in 64 hexadecimal digits: equal for equal programs of one build of the
// library, in every process, whether compiled or restored. Steps, constants and code take part by
// the program's id.
Result<std::string> FingerprintOf(const Program& program);

}  // namespace kiln::program
