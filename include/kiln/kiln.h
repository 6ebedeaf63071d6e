/** @file
 *  All of the C ABI. */
#ifndef KILN_KILN_H_
#define KILN_KILN_H_

#include "kiln/buffer.h"
#include "kiln/builder.h"
#include "kiln/context.h"
#include "kiln/custom_call.h"
#include "kiln/device.h"
#include "kiln/dlpack.h"
#include "kiln/error.h"
#include "kiln/event.h"
#include "kiln/executable.h"
#include "kiln/export.h"
#include "kiln/function.h"
#include "kiln/gradient.h"
#include "kiln/graph.h"
#include "kiln/nn.h"
#include "kiln/ops.h"
#include "kiln/safetensors.h"
#include "kiln/session.h"
#include "kiln/trace.h"
#include "kiln/train.h"
#include "kiln/types.h"
#include "kiln/version.h"

#endif /* KILN_KILN_H_ */
