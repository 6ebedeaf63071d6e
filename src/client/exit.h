// The end of the process, which may come while threads are at work.
#pragma once

namespace kiln::client {

// The number of clients: while there is one, no static object of the library is destroyed, because
// threads may use it.
void CountClients(int change);

}  // namespace kiln::client
