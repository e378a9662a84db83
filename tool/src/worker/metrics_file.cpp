#include "worker/metrics_file.hpp"

#include "cli/exit.hpp"
#include "cli/text.hpp"
#include "database/partial_file.hpp"

#include <stela/framework/error.hpp>

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

/// True if the file is missing or empty, or begins like metrics.
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

}  // namespace

MetricsFile::MetricsFile(std::string path, const std::string& database) : path_{std::move(path)} {
  refuse_to_overwrite(path_, database);
}

void MetricsFile::write(const std::string& page) const try {
  database::PartialFile file{path_, 0666};
  file.write(page);
  file.replace();
} catch (const Error& e) {
  throw Exit{failed, "the metrics can't be written to '" + in_one_line(path_) +
                         "': " + in_one_line(e.what())};
}

}  // namespace stela::tool
