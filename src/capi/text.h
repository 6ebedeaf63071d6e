// Texts that are handed out.
#pragma once

#include <string>

#include "capi/handle.h"
#include "kiln/types.h"

struct kiln_text : kiln::capi::Counted<kiln_text> {
  explicit kiln_text(std::string t) : text(std::move(t)) {}
  const std::string text;
};
