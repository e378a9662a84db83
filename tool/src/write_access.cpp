#include "write_access.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <array>
#include <filesystem>

namespace stela::tool {
namespace {

/// A write needs a few pages in the log, and space to move them into the database.
constexpr std::uintmax_t least_space = std::uintmax_t{1} << 20;

/// A problem of the file system. Empty if there is none.
std::string problem_of_space(const std::string& path) {
  struct statvfs system {};
  if (statvfs(path.c_str(), &system) != 0) return {};
  if ((system.f_flag & ST_RDONLY) != 0) return "its file system is read-only";
  const auto free = geteuid() == 0 ? system.f_bfree : system.f_bavail;
  // A file system without blocks doesn't report its free space.
  if (system.f_blocks > 0 && std::uintmax_t{free} * system.f_frsize < least_space) {
    return "its disk is full";
  }
  return {};
}

bool may_write_to(const std::string& path) {
  return faccessat(AT_FDCWD, path.c_str(), W_OK, AT_EACCESS) == 0;
}

/// The path that this user may not write to. Empty if there is none.
std::string forbidden_of(const std::string& database) {
  std::error_code ignored;
  for (const char* const suffix : {"", "-wal", "-shm", "-lock"}) {
    const std::string path = database + suffix;
    if (std::filesystem::exists(path, ignored) && !may_write_to(path)) return path;
  }
  const std::string folder = std::filesystem::path{database}.parent_path().string();
  return may_write_to(folder) ? std::string{} : folder;
}

}  // namespace

std::optional<WriteProblem> find_write_problem(const std::string& database) {
  struct stat status {};
  if (stat(database.c_str(), &status) != 0) return std::nullopt;
  const std::string lead = "can't be written to: ";
  if (const auto problem = problem_of_space(database); !problem.empty()) {
    return WriteProblem{.what = lead + problem};
  }
  std::error_code ignored;
  const auto real = std::filesystem::weakly_canonical(database, ignored).string();
  const std::string forbidden = forbidden_of(real);
  if (forbidden.empty()) return std::nullopt;
  return WriteProblem{.what = lead + "this user has no write permission to '" + forbidden + "'",
                      .is_of_this_user = status.st_uid != geteuid()};
}

}  // namespace stela::tool
