// SQLite's files, with journals that are overwritten before they are deleted.
#pragma once

namespace stela::keys {

/// The name of a VFS like the platform's. A deleted journal leaves zeros in the blocks that it had,
/// where the file system and the disk write in place. Threads: any.
const char* shredding_vfs();

}  // namespace stela::keys
