#include "kiln/version.h"

#include "base/build_id.h"

#define KILN_TEXT_(x) #x
#define KILN_TEXT(x) KILN_TEXT_(x)

int32_t kiln_version(void) { return KILN_VERSION; }

const char* kiln_version_string(void) {
  return KILN_TEXT(KILN_VERSION_MAJOR) "." KILN_TEXT(KILN_VERSION_MINOR) "." KILN_TEXT(
      KILN_VERSION_PATCH);
}

const char* kiln_build_id(void) { return kiln::BuildId().c_str(); }
