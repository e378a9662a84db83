// What of a database a power cut would leave.
#pragma once

#include "support/fault_vfs.hpp"

#include <algorithm>
#include <cstdint>
#include <filesystem>
#include <string>

namespace stela::test {

/// Knows how much of the log is on the disk: all that was written before the last sync of it.
/// Threads: the one that uses the database.
class SyncedLog final : public FailNth {
 public:
  void after(const FileCall& call, int code) noexcept override {
    if (call.file != FileKind::wal || code != SQLITE_OK) return;
    if (call.operation == FileOperation::write) {
      // The log begins anew with its header.
      if (call.offset == 0) written_ = synced_ = 0;
      written_ = std::max(written_, call.offset + call.size);
    }
    if (call.operation == FileOperation::truncate) written_ = synced_ = call.size;
    if (call.operation == FileOperation::sync) synced_ = written_;
  }

  /// Copies the database at `path` as it would be found after a power cut at this moment.
  void copy_what_is_left(const std::string& path, const std::string& copy) const {
    namespace fs = std::filesystem;
    fs::copy_file(path, copy, fs::copy_options::overwrite_existing);
    fs::copy_file(path + "-wal", copy + "-wal", fs::copy_options::overwrite_existing);
    fs::remove(copy + "-shm");
    fs::resize_file(copy + "-wal", static_cast<std::uintmax_t>(synced_));
  }

 private:
  std::int64_t written_ = 0;
  std::int64_t synced_ = 0;
};

}  // namespace stela::test
