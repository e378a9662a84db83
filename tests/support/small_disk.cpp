#include "support/small_disk.hpp"

#include "support/user_namespace.hpp"

#include <sys/mount.h>
#include <sys/resource.h>
#include <sys/statvfs.h>

#include <algorithm>
#include <csignal>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <stdexcept>

namespace stela::test {
namespace {

bool mount_tmpfs(const std::string& at, std::size_t megabytes) {
  std::string options = "size=";
  options += std::to_string(megabytes) + 'm';
  return mount("stela-test", at.c_str(), "tmpfs", 0, options.c_str()) == 0;
}

void limit_file_size(rlim_t bytes) {
  // Without this, exceeding the limit would end the process.
  std::signal(SIGXFSZ, SIG_IGN);
  rlimit limit{};
  getrlimit(RLIMIT_FSIZE, &limit);
  limit.rlim_cur = bytes;
  if (setrlimit(RLIMIT_FSIZE, &limit) != 0) throw std::runtime_error{"no limit to files"};
}

}  // namespace

SmallDisk::SmallDisk(std::size_t megabytes)
    : is_mounted_{mount_tmpfs(dir_.path(), megabytes) ||
                  (become_root_of_a_namespace() && mount_tmpfs(dir_.path(), megabytes))} {
  if (!is_mounted_) {
    std::cout << "a file system can't be mounted here: a limit to the size of files stands in\n";
  }
}

SmallDisk::~SmallDisk() {
  if (is_mounted_) {
    umount2(dir_.path().c_str(), MNT_DETACH);
  } else {
    limit_file_size(RLIM_INFINITY);
    std::error_code ignored;
    std::filesystem::permissions(dir_.path(), std::filesystem::perms::owner_all, ignored);
  }
}

void SmallDisk::fill_up(std::size_t bytes_left) {
  if (!is_mounted_) return limit_file_size(bytes_left);
  struct statvfs status {};
  statvfs(dir_.path().c_str(), &status);
  const std::size_t free = status.f_bavail * status.f_frsize;
  if (free <= bytes_left) return;
  std::ofstream ballast{file("ballast"), std::ios::binary};
  const std::string piece(1 << 20, 'b');
  for (std::size_t left = free - bytes_left; left > 0 && ballast;
       left -= std::min(left, piece.size())) {
    ballast.write(piece.data(), static_cast<std::streamsize>(std::min(left, piece.size())));
  }
  if (!ballast.flush()) throw std::runtime_error{"the disk is full too soon"};
}

void SmallDisk::make_room() {
  if (!is_mounted_) return limit_file_size(RLIM_INFINITY);
  std::filesystem::remove(file("ballast"));
}

void SmallDisk::make_read_only() {
  if (is_mounted_) {
    const int flags = MS_REMOUNT | MS_RDONLY;
    if (mount(nullptr, dir_.path().c_str(), nullptr, flags, nullptr) != 0) {
      throw std::runtime_error{"the file system can't be made read-only"};
    }
    return;
  }
  namespace fs = std::filesystem;
  const auto nobody_writes =
      fs::perms::owner_write | fs::perms::group_write | fs::perms::others_write;
  for (const auto& entry : fs::directory_iterator{dir_.path()}) {
    fs::permissions(entry, nobody_writes, fs::perm_options::remove);
  }
  fs::permissions(dir_.path(), nobody_writes, fs::perm_options::remove);
}

}  // namespace stela::test
