#include "faults/checkpoint_witness.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <system_error>

namespace stela::test {
namespace {

constexpr int write_mark = 0;
constexpr int checkpoint_mark = 1;

struct flock byte_lock(int byte, short type) noexcept {
  struct flock lock {};
  lock.l_type = type;
  lock.l_whence = SEEK_SET;
  lock.l_start = byte;
  lock.l_len = 1;
  return lock;
}

}  // namespace

CheckpointWitness::CheckpointWitness(const std::string& marks, Testimony& testimony)
    : testimony_{testimony}, file_{::open(marks.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0644)} {
  if (file_ < 0) throw std::system_error{errno, std::generic_category(), marks};
}

CheckpointWitness::~CheckpointWitness() {
  close(file_);
}

void CheckpointWitness::mark(int byte, bool set) const noexcept {
  struct flock lock = byte_lock(byte, set ? F_WRLCK : F_UNLCK);
  // SQLite's own lock is held: nobody else can be in the way.
  if (fcntl(file_, F_SETLK, &lock) != 0) ++testimony_.unseen;
}

bool CheckpointWitness::is_marked_by_others(int byte) const noexcept {
  struct flock lock = byte_lock(byte, F_WRLCK);
  return fcntl(file_, F_GETLK, &lock) != 0 || lock.l_type != F_UNLCK;
}

Verdict CheckpointWitness::before(const FileCall& call) noexcept {
  if (call.operation == FileOperation::write) {
    const bool is_seen = call.file == FileKind::wal        ? writing_.load()
                         : call.file == FileKind::database ? checkpointing_.load()
                                                           : true;
    if (!is_seen) ++testimony_.unseen;
    if (call.file == FileKind::wal && writing_ && !has_written_.exchange(true)) {
      mark(write_mark, true);
      ++testimony_.writes;
      const bool has_one_begun = testimony_.checkpoints != checkpoints_before_;
      if (is_beside_ || has_one_begun || is_marked_by_others(checkpoint_mark)) {
        ++testimony_.overlaps;
      }
    }
  }
  if (call.operation != FileOperation::shm_lock || !call.releases()) return Verdict::proceed;
  if (call.is_exclusive(checkpoint_slot)) {
    checkpointing_ = false;
    mark(checkpoint_mark, false);
  } else if (call.is_exclusive(write_slot) && writing_) {
    writing_ = false;
    if (has_written_.exchange(false)) mark(write_mark, false);
  }
  return Verdict::proceed;
}

void CheckpointWitness::after(const FileCall& call, int code) noexcept {
  if (code != SQLITE_OK || call.operation != FileOperation::shm_lock || call.releases()) return;
  if (call.is_exclusive(checkpoint_slot)) {
    mark(checkpoint_mark, true);
    checkpointing_ = true;
    ++testimony_.checkpoints;
    if (is_marked_by_others(write_mark)) ++testimony_.overlaps;
  } else if (call.is_exclusive(write_slot) && !checkpointing_) {
    // A checkpoint that takes this lock, too, keeps writers out, and isn't one.
    checkpoints_before_ = testimony_.checkpoints.load();
    is_beside_ = is_marked_by_others(checkpoint_mark);
    writing_ = true;
  }
}

}  // namespace stela::test
