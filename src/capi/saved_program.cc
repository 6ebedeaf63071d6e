// Executables as bytes and as files.
#include "capi/deep.h"
#include "capi/error.h"
#include "capi/handle.h"
#include "capi/text.h"
#include "client/compile.h"
#include "kiln/executable.h"
#include "program/saved.h"

using kiln::OkStatus;
using kiln::Ref;
using kiln::Status;
using kiln::capi::GuardDeep;
using kiln::capi::NotNull;
using kiln::capi::TextOf;
using kiln::capi::Unwrap;
using kiln::client::CompiledExecutable;

kiln_error* kiln_executable_serialize(const kiln_executable* executable, kiln_text** bytes) {
  return GuardDeep([&]() -> Status {
    KILN_RETURN_IF_ERROR(
        NotNull("kiln_executable_serialize", {{"executable", executable}, {"bytes", bytes}}));
    KILN_ASSIGN_OR_RETURN(std::string saved, kiln::client::SaveExecutable(*Unwrap(executable)));
    *bytes = new kiln_text(std::move(saved));
    return OkStatus();
  });
}

kiln_error* kiln_executable_load(kiln_device* device, const void* bytes, size_t size,
                                 kiln_executable** executable) {
  return GuardDeep([&]() -> Status {
    KILN_RETURN_IF_ERROR(
        NotNull("kiln_executable_load",
                {{"device", device}, {"bytes", bytes}, {"executable", executable}}));
    KILN_ASSIGN_OR_RETURN(
        Ref<CompiledExecutable> loaded,
        kiln::client::LoadExecutable(*Unwrap(device), {static_cast<const char*>(bytes), size}));
    *executable = kiln::capi::HandOver(std::move(loaded));
    return OkStatus();
  });
}

kiln_error* kiln_executable_save(const kiln_executable* executable, const char* path,
                                 size_t path_length) {
  return GuardDeep([&]() -> Status {
    KILN_RETURN_IF_ERROR(NotNull("kiln_executable_save", {{"executable", executable}}));
    KILN_ASSIGN_OR_RETURN(std::string_view text, TextOf("path", path, path_length));
    return kiln::client::SaveExecutableFile(*Unwrap(executable), std::string(text));
  });
}

kiln_error* kiln_executable_load_file(kiln_device* device, const char* path, size_t path_length,
                                      kiln_executable** executable) {
  return GuardDeep([&]() -> Status {
    KILN_RETURN_IF_ERROR(
        NotNull("kiln_executable_load_file", {{"device", device}, {"executable", executable}}));
    KILN_ASSIGN_OR_RETURN(std::string_view text, TextOf("path", path, path_length));
    KILN_ASSIGN_OR_RETURN(Ref<CompiledExecutable> loaded,
                          kiln::client::LoadExecutableFile(*Unwrap(device), std::string(text)));
    *executable = kiln::capi::HandOver(std::move(loaded));
    return OkStatus();
  });
}

kiln_error* kiln_executable_fingerprint(const kiln_executable* executable, kiln_text** text) {
  return GuardDeep([&]() -> Status {
    KILN_RETURN_IF_ERROR(
        NotNull("kiln_executable_fingerprint", {{"executable", executable}, {"text", text}}));
    KILN_ASSIGN_OR_RETURN(std::string name,
                          kiln::program::FingerprintOf(Unwrap(executable)->program()));
    *text = new kiln_text(std::move(name));
    return OkStatus();
  });
}
