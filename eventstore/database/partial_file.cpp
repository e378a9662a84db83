#include "database/partial_file.hpp"

#include <stela/framework/error.hpp>
#include <stela/framework/uuid.hpp>

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <utility>

namespace stela::database {
namespace {

[[noreturn]] void fail_file(const std::string& path, const char* doing) {
  const int error = errno;
  const std::string text = std::string{doing} + " '" + path + "' failed: " + std::strerror(error);
  if (error == ENOSPC || error == EDQUOT) throw StoreFull{text + "; free some space"};
  throw StoreFailed{text};
}

}  // namespace

PartialFile::PartialFile(std::string target, mode_t mode)
    : target_{std::move(target)},
      path_{target_ + ".partial-" + make_uuid().to_string()},
      file_{::open(path_.c_str(), O_CREAT | O_EXCL | O_WRONLY | O_CLOEXEC, mode)} {
  if (file_ < 0) fail_file(path_, "making");
}

PartialFile::~PartialFile() {
  ::close(file_);
  if (!path_.empty()) ::unlink(path_.c_str());
}

void PartialFile::write(std::string_view text) const {
  while (!text.empty()) {
    const ssize_t size = ::write(file_, text.data(), text.size());
    if (size < 0 && errno == EINTR) continue;
    if (size < 0) fail_file(path_, "writing");
    text.remove_prefix(static_cast<std::size_t>(size));
  }
}

void PartialFile::take_rights_of(const std::string& original) const {
  struct stat given {};
  struct stat own {};
  if (::stat(original.c_str(), &given) != 0) fail_file(original, "looking at");
  if (::fstat(file_, &own) != 0) fail_file(path_, "looking at");
  mode_t mode = given.st_mode & 0666;
  const bool has_group =
      own.st_gid == given.st_gid || ::fchown(file_, static_cast<uid_t>(-1), given.st_gid) == 0;
  if (!has_group) mode &= 0600;
  if (::fchmod(file_, mode) != 0) fail_file(path_, "setting the mode of");
}

bool PartialFile::publish() {
  sync();
  if (!rename_if_free()) {
    if (errno == EEXIST) return false;
    fail_file(target_, "naming");
  }
  // The renamed file is still removed if making the name durable fails.
  path_ = target_;
  sync_folder_of(target_);
  path_.clear();
  return true;
}

void PartialFile::replace() {
  sync();
  if (std::rename(path_.c_str(), target_.c_str()) != 0) fail_file(target_, "naming");
  path_.clear();
}

void PartialFile::sync() const {
  if (::fsync(file_) != 0) fail_file(path_, "syncing");
}

bool PartialFile::rename_if_free() const {
  const char* const from = path_.c_str();
  const char* const to = target_.c_str();
  if (::renameat2(AT_FDCWD, from, AT_FDCWD, to, RENAME_NOREPLACE) == 0) return true;
  // Some file systems can't guarantee that; then check for the target first.
  if (errno != EINVAL && errno != ENOSYS) return false;
  struct stat taken {};
  if (::lstat(to, &taken) != 0) return std::rename(from, to) == 0;
  errno = EEXIST;
  return false;
}

void sync_folder_of(const std::string& path) {
  const std::filesystem::path parent = std::filesystem::path{path}.parent_path();
  const std::string folder = parent.empty() ? "." : parent.string();
  const int file = ::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (file < 0) fail_file(folder, "opening");
  const bool is_synced = ::fsync(file) == 0;
  ::close(file);
  if (!is_synced) fail_file(folder, "syncing");
}

}  // namespace stela::database
