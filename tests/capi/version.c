/* The version at run time is the one that the headers state. */
#include <stdio.h>
#include <string.h>

#include "kiln/kiln.h"

int main(void) {
  char expected[64];
  snprintf(expected, sizeof expected, "%d.%d.%d", KILN_VERSION_MAJOR, KILN_VERSION_MINOR,
           KILN_VERSION_PATCH);
  if (strcmp(kiln_version_string(), expected) != 0) {
    printf("kiln_version_string() is %s, the header says %s\n", kiln_version_string(), expected);
    return 1;
  }
  if (kiln_version() != KILN_VERSION) {
    printf("kiln_version() is %d, the header says %d\n", kiln_version(), KILN_VERSION);
    return 1;
  }
  return 0;
}
