// What every page has. Private to the page.
#pragma once

#include <string_view>

namespace kiln::draw {

extern const std::string_view kPageStyle, kPageBody, kPageScene, kPageView;

}  // namespace kiln::draw
