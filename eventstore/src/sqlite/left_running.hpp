// What somebody who was lent a connection left running on it: statements in the middle of their
// rows, and open blobs.
#pragma once

#include <sqlite3.h>

namespace stela::sqlite {

/// UsageError, which names the first, if anything runs.
void refuse_left_running(sqlite3* database);

/// Ends the statements, which would hold the connection to the state that they read: nothing could
/// be written on it any more. A blob can't be ended: its owner would use what is gone.
void end_left_running(sqlite3* database) noexcept;

}  // namespace stela::sqlite
