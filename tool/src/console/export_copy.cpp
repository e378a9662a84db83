#include "console/export_copy.hpp"

#include "cli/exit.hpp"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <system_error>

namespace stela::tool {
namespace {

namespace fs = std::filesystem;

constexpr const char* folder_prefix = "stela-export-";

/// Locks the file and returns it. -1 if a living process holds the lock.
int lock_of(const fs::path& folder, int more_flags) {
  const int file = ::open((folder / "lock").c_str(), O_RDWR | O_CLOEXEC | O_NOFOLLOW | more_flags,
                          S_IRUSR | S_IWUSR);
  if (file >= 0 && ::flock(file, LOCK_EX | LOCK_NB) == 0) return file;
  if (file >= 0) ::close(file);
  return -1;
}

bool is_own_folder(const fs::path& path) {
  struct stat status {};
  return ::lstat(path.c_str(), &status) == 0 && S_ISDIR(status.st_mode) &&
         status.st_uid == ::geteuid();
}

void remove_dead(const fs::path& parent) {
  std::error_code ignored;
  for (const auto& entry : fs::directory_iterator{parent, ignored}) {
    const bool is_copy = entry.path().filename().string().starts_with(folder_prefix);
    if (!is_copy || !is_own_folder(entry.path())) continue;
    const int lock = lock_of(entry.path(), 0);
    if (lock < 0) continue;
    fs::remove_all(entry.path(), ignored);
    ::close(lock);
  }
}

}  // namespace

ExportCopy::ExportCopy() {
  const fs::path parent = fs::temp_directory_path();
  remove_dead(parent);
  // The folder has a temporary name until it is locked, so that others don't take it for dead.
  std::string made = (parent / "new-stela-export-XXXXXX").string();
  if (::mkdtemp(made.data()) == nullptr) {
    throw Exit{failed, "no temporary folder can be made in " + parent.string()};
  }
  lock_ = lock_of(made, O_CREAT);
  folder_ = (parent / fs::path{made}.filename().string().substr(4)).string();
  fs::rename(made, folder_);
}

ExportCopy::~ExportCopy() {
  std::error_code ignored;
  fs::remove_all(folder_, ignored);
  if (lock_ >= 0) ::close(lock_);
}

}  // namespace stela::tool
