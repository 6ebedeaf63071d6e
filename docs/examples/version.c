/* Prints the version of the library that the program runs with.
 *
 * Test:
 */
#include <stdio.h>

#include "kiln/kiln.h"

int main(void) {
  printf("Kiln %s (compiled with %d.%d.%d)\n", kiln_version_string(), KILN_VERSION_MAJOR,
         KILN_VERSION_MINOR, KILN_VERSION_PATCH);
  return kiln_version() == KILN_VERSION ? 0 : 1;
}
