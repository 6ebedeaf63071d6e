/** @file
 *  All of the C ABI. */
#ifndef KILN_KILN_H_
#define KILN_KILN_H_

#include "kiln/export.h"
#include "kiln/version.h"

#endif /* KILN_KILN_H_ */
