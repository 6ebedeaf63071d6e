// Texts handed over to the user.
#pragma once

#include <string>

#include "base/ref.h"
#include "kiln/types.h"

struct kiln_text : kiln::Counted<kiln_text> {
  explicit kiln_text(std::string t) : text(std::move(t)) {}
  const std::string text;
};
