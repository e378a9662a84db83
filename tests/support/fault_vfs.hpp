// A SQLite VFS over the platform's: a test watches every call to a database's files, and can fail
// it.
#pragma once

#include <sqlite3.h>

#include <atomic>
#include <cstdint>
#include <mutex>
#include <string>
#include <string_view>
#include <vector>

namespace stela::test {

enum class FileOperation : std::uint8_t {
  open,
  remove,
  read,
  write,
  truncate,
  sync,
  shm_map,
  shm_lock,
};
enum class FileKind : std::uint8_t { database, journal, wal, other };

std::string_view to_string(FileOperation operation) noexcept;
std::string_view to_string(FileKind kind) noexcept;

/// One call of SQLite. Calls on the log's shared memory count as calls on the database.
struct FileCall {
  FileOperation operation = FileOperation::open;
  FileKind file = FileKind::other;
  /// For a read, a write, a truncation (the new size) or a mapping.
  std::int64_t offset = 0;
  std::int64_t size = 0;
  /// For a lock of shared memory: the first slot, the number of slots, and SQLite's flags.
  int slot = 0;
  int slots = 0;
  int flags = 0;

  bool releases() const noexcept { return (flags & SQLITE_SHM_UNLOCK) != 0; }
  /// True if the exclusive lock of that slot alone is taken or released. Recovering a log after a
  /// crash locks nearly all slots at once.
  bool is_exclusive(int wanted) const noexcept {
    return operation == FileOperation::shm_lock && (flags & SQLITE_SHM_EXCLUSIVE) != 0 &&
           slot == wanted && slots == 1;
  }
  /// For messages: "write of wal at 4152".
  std::string describe() const;
};

/// The slots of the log's shared memory that SQLite locks while it writes and moves the log.
inline constexpr int write_slot = 0;
inline constexpr int checkpoint_slot = 1;

/// The fate of a call. A short write, or one without space, leaves half of its bytes, as a real one
/// may.
enum class Verdict : std::uint8_t { proceed, io_error, disk_full, short_write };

/// Sees every call. Threads: those that use the database.
class FileWatcher {
 public:
  virtual ~FileWatcher() = default;
  virtual Verdict before(const FileCall&) noexcept { return Verdict::proceed; }
  /// `code` is the result that SQLite gets.
  virtual void after(const FileCall&, int /*code*/) noexcept {}
};

/// The VFS, registered for as long as this lives. `watcher` must outlive it.
class FaultVfs {
 public:
  explicit FaultVfs(FileWatcher& watcher);
  ~FaultVfs();
  FaultVfs(const FaultVfs&) = delete;
  FaultVfs& operator=(const FaultVfs&) = delete;

  /// For `sqlite::Options::vfs`.
  const std::string& name() const noexcept { return name_; }
  FileWatcher& watcher() const noexcept { return watcher_; }
  sqlite3_vfs& platform() const noexcept { return platform_; }

 private:
  FileWatcher& watcher_;
  sqlite3_vfs& platform_;
  std::string name_;
  sqlite3_vfs vfs_;
};

/// Fails the n-th counted call, once or from then on.
class FailNth : public FileWatcher {
 public:
  struct Plan {
    std::vector<FileOperation> operations = {};
    Verdict verdict = Verdict::io_error;
    int nth = 1;
    bool for_ever = false;
  };

  /// Counts from this call on.
  void arm(const Plan& plan);
  void disarm();
  bool has_fired() const;
  /// The call that failed first: "write of wal at 4152".
  std::string first_failure() const;

  Verdict before(const FileCall& call) noexcept override;

 private:
  mutable std::mutex mutex_;
  // Guarded by mutex_.
  Plan plan_ = {};
  bool armed_ = false;
  int counted_ = 0;
  FileCall failed_ = {};
  bool fired_ = false;
};

/// Kills the process before its n-th write after `arm`.
class DieAtNthWrite final : public FileWatcher {
 public:
  explicit DieAtNthWrite(int nth = 0) : left_{nth} {}
  /// 0: never.
  void arm(int nth);
  Verdict before(const FileCall& call) noexcept override;

 private:
  std::atomic<int> left_;
};

/// Records every call, in the order of their beginnings.
class CallRecorder final : public FileWatcher {
 public:
  struct Call {
    FileCall call;
    /// Threads are numbered in order of appearance.
    int thread = 0;
  };

  std::vector<Call> take();
  Verdict before(const FileCall& call) noexcept override;

 private:
  std::mutex mutex_;
  std::vector<Call> calls_;
};

}  // namespace stela::test
