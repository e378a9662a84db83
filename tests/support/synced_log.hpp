// The state of a database after a power cut.
#pragma once

#include "support/fault_vfs.hpp"

#include <algorithm>
#include <cstdint>
#include <filesystem>
#include <string>

namespace stela::test {

/// Tracks how much of the log is on the disk: everything written before its last sync. Threads: the
/// one that uses the database.
class SyncedLog final : public FailNth {
 public:
  void after(const FileCall& call, int code) noexcept override {
    if (call.file != FileKind::wal || code != SQLITE_OK) return;
    if (call.operation == FileOperation::write) {
      // A write of its header restarts the log.
      if (call.offset == 0) written_ = synced_ = 0;
      written_ = std::max(written_, call.offset + call.size);
    }
    if (call.operation == FileOperation::truncate) written_ = synced_ = call.size;
    if (call.operation == FileOperation::sync) synced_ = written_;
  }

  /// Copies the database at `path` in the state after a power cut at this moment.
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
