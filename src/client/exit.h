// The end of the process, which may come while threads are at work.
#pragma once

namespace kiln::client {

// How many clients there are: while there is one, no static object of the library is destroyed, as
// threads may use it.
void CountClients(int change);

}  // namespace kiln::client
