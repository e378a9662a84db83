#include "support/fault_vfs.hpp"

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <new>
#include <stdexcept>
#include <utility>

namespace stela::test {
namespace {

/// The file that SQLite sees. The platform's own file follows it in memory.
struct ShimFile {
  sqlite3_file shim;
  FaultVfs* vfs;
  FileKind kind;
  sqlite3_file* real;
};
static_assert(sizeof(ShimFile) % alignof(std::int64_t) == 0);

ShimFile& shim_of(sqlite3_file* file) {
  return *reinterpret_cast<ShimFile*>(file);
}

FaultVfs& shim_of(sqlite3_vfs* vfs) {
  return *static_cast<FaultVfs*>(vfs->pAppData);
}

int failure_of(FileOperation operation, bool out_of_space) {
  switch (operation) {
    case FileOperation::open:
      return SQLITE_CANTOPEN;
    case FileOperation::remove:
      return SQLITE_IOERR_DELETE;
    case FileOperation::read:
      return SQLITE_IOERR_READ;
    case FileOperation::write:
      return out_of_space ? SQLITE_FULL : SQLITE_IOERR_WRITE;
    case FileOperation::truncate:
      return SQLITE_IOERR_TRUNCATE;
    case FileOperation::sync:
      return SQLITE_IOERR_FSYNC;
    case FileOperation::shm_map:
      return out_of_space ? SQLITE_IOERR_SHMSIZE : SQLITE_IOERR_SHMMAP;
    case FileOperation::shm_lock:
      return SQLITE_IOERR_SHMLOCK;
  }
  return SQLITE_INTERNAL;
}

/// Asks the watcher, makes the call unless it must fail, and reports it.
template <class Proceed>
int watched(FaultVfs& vfs, const FileCall& call, Proceed&& proceed) {
  const Verdict verdict = vfs.watcher().before(call);
  int code = SQLITE_OK;
  if (verdict == Verdict::proceed) {
    code = proceed();
  } else {
    const bool out_of_space = verdict == Verdict::disk_full;
    code = failure_of(call.operation, out_of_space);
    errno = out_of_space ? ENOSPC : EIO;
  }
  vfs.watcher().after(call, code);
  return code;
}

FileKind kind_of(int flags) {
  if (flags & SQLITE_OPEN_MAIN_DB) return FileKind::database;
  if (flags & SQLITE_OPEN_MAIN_JOURNAL) return FileKind::journal;
  if (flags & SQLITE_OPEN_WAL) return FileKind::wal;
  return FileKind::other;
}

// --- files

int close_file(sqlite3_file* file) {
  sqlite3_file* const real = shim_of(file).real;
  return real->pMethods->xClose(real);
}

int read_file(sqlite3_file* file, void* to, int size, sqlite3_int64 offset) {
  ShimFile& shim = shim_of(file);
  return watched(*shim.vfs, {FileOperation::read, shim.kind, offset, size},
                 [&] { return shim.real->pMethods->xRead(shim.real, to, size, offset); });
}

int write_file(sqlite3_file* file, const void* from, int size, sqlite3_int64 offset) {
  ShimFile& shim = shim_of(file);
  const FileCall call{FileOperation::write, shim.kind, offset, size};
  const Verdict verdict = shim.vfs->watcher().before(call);
  const int amount = verdict == Verdict::proceed ? size : size / 2;
  int code = SQLITE_OK;
  if (verdict != Verdict::io_error) {
    code = shim.real->pMethods->xWrite(shim.real, from, amount, offset);
  }
  if (verdict != Verdict::proceed) {
    const bool out_of_space = verdict == Verdict::disk_full;
    code = failure_of(FileOperation::write, out_of_space);
    errno = out_of_space ? ENOSPC : EIO;
  }
  shim.vfs->watcher().after(call, code);
  return code;
}

int truncate_file(sqlite3_file* file, sqlite3_int64 size) {
  ShimFile& shim = shim_of(file);
  return watched(*shim.vfs, {FileOperation::truncate, shim.kind, size},
                 [&] { return shim.real->pMethods->xTruncate(shim.real, size); });
}

int sync_file(sqlite3_file* file, int flags) {
  ShimFile& shim = shim_of(file);
  return watched(*shim.vfs, {FileOperation::sync, shim.kind},
                 [&] { return shim.real->pMethods->xSync(shim.real, flags); });
}

int file_size(sqlite3_file* file, sqlite3_int64* size) {
  sqlite3_file* const real = shim_of(file).real;
  return real->pMethods->xFileSize(real, size);
}

int lock_file(sqlite3_file* file, int level) {
  sqlite3_file* const real = shim_of(file).real;
  return real->pMethods->xLock(real, level);
}

int unlock_file(sqlite3_file* file, int level) {
  sqlite3_file* const real = shim_of(file).real;
  return real->pMethods->xUnlock(real, level);
}

int check_reserved_lock(sqlite3_file* file, int* is_reserved) {
  sqlite3_file* const real = shim_of(file).real;
  return real->pMethods->xCheckReservedLock(real, is_reserved);
}

int file_control(sqlite3_file* file, int operation, void* argument) {
  sqlite3_file* const real = shim_of(file).real;
  return real->pMethods->xFileControl(real, operation, argument);
}

int sector_size(sqlite3_file* file) {
  sqlite3_file* const real = shim_of(file).real;
  return real->pMethods->xSectorSize(real);
}

int device_characteristics(sqlite3_file* file) {
  sqlite3_file* const real = shim_of(file).real;
  return real->pMethods->xDeviceCharacteristics(real);
}

int shm_map(sqlite3_file* file, int region, int size, int extend, void volatile** memory) {
  ShimFile& shim = shim_of(file);
  const FileCall call{FileOperation::shm_map, shim.kind, std::int64_t{region} * size, size};
  return watched(*shim.vfs, call, [&] {
    return shim.real->pMethods->xShmMap(shim.real, region, size, extend, memory);
  });
}

int shm_lock(sqlite3_file* file, int slot, int slots, int flags) {
  ShimFile& shim = shim_of(file);
  const FileCall call{FileOperation::shm_lock, shim.kind, 0, 0, slot, slots, flags};
  return watched(*shim.vfs, call,
                 [&] { return shim.real->pMethods->xShmLock(shim.real, slot, slots, flags); });
}

void shm_barrier(sqlite3_file* file) {
  sqlite3_file* const real = shim_of(file).real;
  real->pMethods->xShmBarrier(real);
}

int shm_unmap(sqlite3_file* file, int remove) {
  sqlite3_file* const real = shim_of(file).real;
  return real->pMethods->xShmUnmap(real, remove);
}

// Version 2: without memory-mapped pages, so that every read is seen.
const sqlite3_io_methods file_methods{2,
                                      close_file,
                                      read_file,
                                      write_file,
                                      truncate_file,
                                      sync_file,
                                      file_size,
                                      lock_file,
                                      unlock_file,
                                      check_reserved_lock,
                                      file_control,
                                      sector_size,
                                      device_characteristics,
                                      shm_map,
                                      shm_lock,
                                      shm_barrier,
                                      shm_unmap,
                                      nullptr,
                                      nullptr};

// --- the file system

int open_file(sqlite3_vfs* vfs, const char* name, sqlite3_file* file, int flags, int* out_flags) {
  FaultVfs& owner = shim_of(vfs);
  auto* const shim = new (file) ShimFile{{nullptr}, &owner, kind_of(flags), nullptr};
  shim->real = reinterpret_cast<sqlite3_file*>(shim + 1);
  return watched(owner, {FileOperation::open, shim->kind}, [&] {
    sqlite3_vfs& platform = owner.platform();
    const int code = platform.xOpen(&platform, name, shim->real, flags, out_flags);
    if (shim->real->pMethods != nullptr) shim->shim.pMethods = &file_methods;
    return code;
  });
}

int remove_file(sqlite3_vfs* vfs, const char* name, int sync_folder) {
  FaultVfs& owner = shim_of(vfs);
  return watched(owner, {FileOperation::remove},
                 [&] { return owner.platform().xDelete(&owner.platform(), name, sync_folder); });
}

int access_file(sqlite3_vfs* vfs, const char* name, int flags, int* result) {
  sqlite3_vfs& platform = shim_of(vfs).platform();
  return platform.xAccess(&platform, name, flags, result);
}

int full_name(sqlite3_vfs* vfs, const char* name, int size, char* out) {
  sqlite3_vfs& platform = shim_of(vfs).platform();
  return platform.xFullPathname(&platform, name, size, out);
}

int randomness(sqlite3_vfs* vfs, int size, char* out) {
  sqlite3_vfs& platform = shim_of(vfs).platform();
  return platform.xRandomness(&platform, size, out);
}

int rest(sqlite3_vfs* vfs, int microseconds) {
  sqlite3_vfs& platform = shim_of(vfs).platform();
  return platform.xSleep(&platform, microseconds);
}

int current_time(sqlite3_vfs* vfs, double* time) {
  sqlite3_vfs& platform = shim_of(vfs).platform();
  return platform.xCurrentTime(&platform, time);
}

int last_error(sqlite3_vfs*, int, char*) {
  return errno;
}

int current_time_ms(sqlite3_vfs* vfs, sqlite3_int64* time) {
  sqlite3_vfs& platform = shim_of(vfs).platform();
  return platform.xCurrentTimeInt64(&platform, time);
}

sqlite3_vfs& default_vfs() {
  sqlite3_vfs* const vfs = sqlite3_vfs_find(nullptr);
  if (vfs == nullptr) throw std::runtime_error{"SQLite has no VFS"};
  return *vfs;
}

std::string next_name() {
  static std::atomic<int> count{0};
  std::string name = "stela-fault-";
  name += std::to_string(++count);
  return name;
}

}  // namespace

std::string_view to_string(FileOperation operation) noexcept {
  switch (operation) {
    case FileOperation::open:
      return "open";
    case FileOperation::remove:
      return "remove";
    case FileOperation::read:
      return "read";
    case FileOperation::write:
      return "write";
    case FileOperation::truncate:
      return "truncate";
    case FileOperation::sync:
      return "sync";
    case FileOperation::shm_map:
      return "shm_map";
    case FileOperation::shm_lock:
      return "shm_lock";
  }
  return "?";
}

std::string_view to_string(FileKind kind) noexcept {
  switch (kind) {
    case FileKind::database:
      return "database";
    case FileKind::journal:
      return "journal";
    case FileKind::wal:
      return "wal";
    case FileKind::other:
      return "another file";
  }
  return "?";
}

std::string FileCall::describe() const {
  std::string text{to_string(operation)};
  text += " of ";
  text += to_string(file);
  text += " at ";
  text += std::to_string(operation == FileOperation::shm_lock ? slot : offset);
  return text;
}

FaultVfs::FaultVfs(FileWatcher& watcher)
    : watcher_{watcher}, platform_{default_vfs()}, name_{next_name()}, vfs_{} {
  vfs_.iVersion = 2;
  vfs_.szOsFile = static_cast<int>(sizeof(ShimFile)) + platform_.szOsFile;
  vfs_.mxPathname = platform_.mxPathname;
  vfs_.zName = name_.c_str();
  vfs_.pAppData = this;
  vfs_.xOpen = open_file;
  vfs_.xDelete = remove_file;
  vfs_.xAccess = access_file;
  vfs_.xFullPathname = full_name;
  vfs_.xRandomness = randomness;
  vfs_.xSleep = rest;
  vfs_.xCurrentTime = current_time;
  vfs_.xGetLastError = last_error;
  vfs_.xCurrentTimeInt64 = current_time_ms;
  if (sqlite3_vfs_register(&vfs_, 0) != SQLITE_OK) {
    throw std::runtime_error{"the fault-injecting VFS can't be registered"};
  }
}

FaultVfs::~FaultVfs() {
  sqlite3_vfs_unregister(&vfs_);
}

// --- watchers

void FailNth::arm(const Plan& plan) {
  const std::lock_guard lock{mutex_};
  plan_ = plan;
  armed_ = true;
  counted_ = 0;
  fired_ = false;
}

void FailNth::disarm() {
  const std::lock_guard lock{mutex_};
  armed_ = false;
}

bool FailNth::has_fired() const {
  const std::lock_guard lock{mutex_};
  return fired_;
}

std::string FailNth::first_failure() const {
  const std::lock_guard lock{mutex_};
  return fired_ ? failed_.describe() : "nothing";
}

Verdict FailNth::before(const FileCall& call) noexcept {
  const std::lock_guard lock{mutex_};
  // SQLite ignores the result of an unlock, and real unlocks don't fail.
  if (!armed_ || call.releases()) return Verdict::proceed;
  if (std::find(plan_.operations.begin(), plan_.operations.end(), call.operation) ==
      plan_.operations.end()) {
    return Verdict::proceed;
  }
  ++counted_;
  if (counted_ < plan_.nth || (counted_ > plan_.nth && !plan_.for_ever)) return Verdict::proceed;
  if (!fired_) failed_ = call;
  fired_ = true;
  return plan_.verdict;
}

void DieAtNthWrite::arm(int nth) {
  left_ = nth;
}

Verdict DieAtNthWrite::before(const FileCall& call) noexcept {
  if (call.operation == FileOperation::write && --left_ == 0) raise(SIGKILL);
  return Verdict::proceed;
}

std::vector<CallRecorder::Call> CallRecorder::take() {
  const std::lock_guard lock{mutex_};
  return std::exchange(calls_, {});
}

Verdict CallRecorder::before(const FileCall& call) noexcept {
  static std::atomic<int> threads{0};
  thread_local const int thread = ++threads;
  const std::lock_guard lock{mutex_};
  calls_.push_back({call, thread});
  return Verdict::proceed;
}

}  // namespace stela::test
