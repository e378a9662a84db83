#include "tenants/places.hpp"

#include <stela/eventstore/postgres.hpp>
#include <stela/framework/error.hpp>

#include <sys/stat.h>

#include <algorithm>
#include <filesystem>

namespace stela::tenants {
namespace {

namespace fs = std::filesystem;

std::int64_t nanoseconds(const timespec& time) noexcept {
  return std::int64_t{time.tv_sec} * 1'000'000'000 + time.tv_nsec;
}

class FileActivity final : public Activity {
 public:
  explicit FileActivity(const Pattern& stores) : stores_{stores} {}

  std::vector<Stamp> look(std::span<const std::string> tenants) override {
    std::vector<Stamp> stamps;
    stamps.reserve(tenants.size());
    for (const std::string& tenant : tenants) stamps.push_back(look_at(stores_.place_of(tenant)));
    return stamps;
  }

 private:
  /// An empty log says nothing: SQLite makes and removes it as the store is opened and closed.
  static Stamp look_at(const std::string& path) {
    struct stat database {};
    struct stat log {};
    if (::stat(path.c_str(), &database) != 0) return {};
    const bool has_log = ::stat((path + "-wal").c_str(), &log) == 0 && log.st_size > 0;
    return {nanoseconds(database.st_mtim), has_log ? log.st_size : 0,
            has_log ? nanoseconds(log.st_mtim) : 0};
  }

  const Pattern& stores_;
};

}  // namespace

std::unique_ptr<Activity> watch_activity(const Pattern& stores) {
  if (stores.is_on_server()) return watch_server(stores.text());
  return std::make_unique<FileActivity>(stores);
}

std::vector<std::string> names_at(const Pattern& stores) {
  if (stores.is_on_server()) return names_on_server(stores.text());
  std::vector<std::string> names;
  const auto look_at = [&](const fs::path& path) {
    if (std::string name = stores.name_in(path.string()); !name.empty()) names.push_back(name);
  };
  std::error_code error;
  for (const fs::directory_entry& entry : fs::directory_iterator{stores.parent(), error}) {
    look_at(entry.path());
    // With "{tenant}/shop.db" each tenant has a folder.
    if (!entry.is_directory(error)) continue;
    for (const fs::directory_entry& inner : fs::directory_iterator{entry.path(), error}) {
      look_at(inner.path());
    }
  }
  std::sort(names.begin(), names.end());
  return names;
}

bool has_store(const Pattern& stores, std::string_view tenant) {
  std::error_code error;
  if (!stores.is_on_server()) return fs::exists(stores.place_of(tenant), error);
  const auto names = names_on_server(stores.text());
  return std::binary_search(names.begin(), names.end(), tenant);
}

#ifndef STELA_HAS_POSTGRES
std::vector<std::string> names_on_server(const std::string& conninfo) {
  throw UsageError{postgres::describe(conninfo)};  // which says that this build has no such engine
}
std::unique_ptr<Activity> watch_server(const std::string& conninfo) {
  throw UsageError{postgres::describe(conninfo)};
}
Schemas check_schemas(const std::string& conninfo, std::string_view) {
  throw UsageError{postgres::describe(conninfo)};
}
void remove_schemas(const std::string& conninfo, std::string_view) {
  throw UsageError{postgres::describe(conninfo)};
}
std::string name_of_server(Store&) {
  return {};
}
#endif

}  // namespace stela::tenants
