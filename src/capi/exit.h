// The end of the process, which may come while threads are at work.
#pragma once

namespace kiln::capi {

// How many contexts there are: while there is one, no static object of the library is destroyed, as
// threads may use it.
void CountContexts(int change);

}  // namespace kiln::capi
