#include "worker/metrics_file.hpp"

#include "cli/exit.hpp"
#include "cli/text.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <system_error>
#include <utility>

namespace stela::tool {
namespace {

namespace fs = std::filesystem;

bool is_of_database(const std::string& file, const std::string& database) {
  if (database.empty()) return false;
  std::error_code ignored;
  const std::string real = fs::weakly_canonical(database, ignored).string();
  const std::string wanted = fs::weakly_canonical(file, ignored).string();
  for (const char* const suffix : {"", "-wal", "-shm", "-journal", "-lock"}) {
    if (wanted == real + suffix || fs::equivalent(file, real + suffix, ignored)) return true;
  }
  return false;
}

/// No file, an empty one, or one that begins as metrics do.
bool may_be_replaced(const std::string& path) {
  std::error_code ignored;
  if (!fs::exists(path, ignored)) return true;
  if (!fs::is_regular_file(path, ignored)) return false;
  if (fs::file_size(path, ignored) == 0) return true;
  std::ifstream file{path};
  std::string begin(7, '\0');
  file.read(begin.data(), static_cast<std::streamsize>(begin.size()));
  return begin == "# HELP " || begin == "# TYPE ";
}

void refuse_to_overwrite(const std::string& path, const std::string& database) {
  const bool of_database = is_of_database(path, database);
  if (!of_database && may_be_replaced(path)) return;
  throw Exit{failed,
             "'" + in_one_line(path) +
                 (of_database ? "' is a file of the database" : "' isn't a file of metrics") +
                 ", and only metrics are overwritten; name another file"};
}

/// Never through a link that somebody else put there, as in /tmp. False with errno set if it can't.
bool write_new(const std::string& path, const std::string& text) {
  if (::unlink(path.c_str()) != 0 && errno != ENOENT) return false;
  const int made = ::open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0666);
  if (made < 0) return false;
  std::FILE* const file = ::fdopen(made, "w");
  if (file == nullptr) {
    ::close(made);
    return false;
  }
  const bool is_written = std::fwrite(text.data(), 1, text.size(), file) == text.size();
  return std::fclose(file) == 0 && is_written;
}

}  // namespace

MetricsFile::MetricsFile(std::string path, const std::string& database)
    : path_{std::move(path)}, draft_{path_ + ".new"} {
  refuse_to_overwrite(path_, database);
  refuse_to_overwrite(draft_, database);
}

void MetricsFile::write(const std::string& page) const {
  if (write_new(draft_, page) && std::rename(draft_.c_str(), path_.c_str()) == 0) return;
  throw Exit{failed, "the metrics can't be written to '" + in_one_line(path_) +
                         "': " + std::strerror(errno)};
}

}  // namespace stela::tool
