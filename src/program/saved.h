// Programs as bytes, for files and caches. The format is in docs/saved-programs.md.
#pragma once

#include <string>
#include <string_view>

#include "base/status.h"
#include "program/program.h"

namespace kiln::program {

// Everything that a device needs to load it, in any process with the same build of the library.
// Equal artefacts have equal bytes. UNIMPLEMENTED names a part that the format lacks.
Result<std::string> Save(const Artefact& artefact);

// INVALID_ARGUMENT for bytes that are no saved program, or are damaged; FAILED_PRECONDITION for
// another version of the format or another build of the library. Target and frame are checked when
// a device loads it. Time and memory are in proportion to the bytes, whatever they are.
Result<Artefact> Restore(std::string_view bytes);

// Makes the size and the checksum of a file those of its contents, which have been changed: for
// tests of files that contradict themselves.
void Seal(std::string& file);

// A name of the program, in 64 hexadecimal digits: equal for equal programs of one build of the
// library, in every process, whether compiled or restored. Steps, constants and code take part by
// the program's id.
Result<std::string> FingerprintOf(const Program& program);

}  // namespace kiln::program
