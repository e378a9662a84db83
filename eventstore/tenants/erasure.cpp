#include "tenants/erasure.hpp"

#include "database/partial_file.hpp"
#include "keys/erasures.hpp"
#include "keys/key_database.hpp"
#include "tenants/open_store.hpp"
#include "tenants/places.hpp"

#include <stela/framework/error.hpp>

#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <initializer_list>

namespace stela::tenants {
namespace {

namespace fs = std::filesystem;

[[noreturn]] void refuse_foreign(const Registered& known, const std::string& what) {
  throw SchemaMismatch{what + ", not that of tenant '" + known.tenant.name +
                       "', and is left as it is; move it away, put its own one back, and repeat "
                       "it; if that is lost for good, say so (--lost, is_lost)"};
}

/// The file that a link leads to, whether or not it exists.
std::string behind_links(std::string path) {
  std::error_code error;
  for (int links = 0; links < 40 && fs::is_symlink(fs::symlink_status(path, error)); ++links) {
    path = fs::path{path}.parent_path() / fs::read_symlink(path, error);
  }
  return path;
}

bool is_at(const std::string& path) {
  std::error_code error;
  const fs::file_status found = fs::status(path, error);
  if (found.type() == fs::file_type::not_found || fs::is_regular_file(found)) {
    return fs::exists(found);
  }
  throw StoreFailed{
      "'" + path + "' " +
      (error ? "can't be looked at: " + error.message() : std::string{"isn't a file"}) +
      "; nothing is erased"};
}

/// Links are followed. StoreFailed if it can't be removed, or would stay under another name.
void check_is_plain(const std::string& path) {
  std::error_code error;
  const std::string real = behind_links(path);
  for (const std::string& file : {path, real}) {
    const std::string folder = fs::path{file}.parent_path().string();
    if (::access(folder.c_str(), W_OK) == 0 || errno == ENOENT) continue;
    throw StoreFailed{"'" + file + "' can't be removed by this user: " + std::strerror(errno)};
  }
  const std::uintmax_t names = fs::hard_link_count(real, error);
  if (error || names == 1) return;
  throw StoreFailed{"'" + path + "' has " + std::to_string(names) +
                    " names (hard links), and would stay under the others; remove those, and "
                    "repeat it"};
}

/// False if nothing stands there.
bool check_is_there(const Registered& known, bool is_there, const std::string& what,
                    bool may_be_missing) {
  if (is_there || may_be_missing) return is_there;
  throw StoreFailed{what + " of tenant '" + known.tenant.name +
                    "' is missing: put it back, or mount its disk, and repeat it; if it is lost "
                    "for good, say so (--lost, is_lost)"};
}

/// A damaged one can't be shown to be the tenant's.
bool reads_as_its_own(const std::string& what, FunctionRef<bool()> is_its_own) try {
  return is_its_own();
} catch (const Error& e) {
  throw Error{e.code(), std::string{e.what()} + "; so " + what +
                            " isn't erased: restore it, or move it away and say that it is lost "
                            "(--lost, is_lost)"};
}

void check_store(Registry& registry, const Registered& known, bool may_be_missing) {
  const std::string place = registry.stores().place_of(known.tenant.name);
  const bool is_on_server = registry.stores().is_on_server();
  std::string name = "'" + place + "'";
  bool is_there = false;
  if (is_on_server) {
    const Schemas schemas = check_schemas(place, known.tenant.name);
    is_there = schemas.has_store;
    if (!schemas.may_drop) {
      throw StoreFailed{
          "this role doesn't own the schemas of tenant '" + known.tenant.name +
          "', and can't drop them: erase it as their owner, or as a member of all their owners"};
    }
    name = "schema '" + schema_of(known.tenant.name) + "'";
    check_is_there(known, schemas.has_own_sql || !is_there, "the schema for own SQL, _app,",
                   may_be_missing);
  } else {
    is_there = is_at(place);
  }
  if (!check_is_there(known, is_there, "the store, " + name + ",", may_be_missing)) return;
  if (!is_on_server) check_is_plain(place);
  Marked marked;
  const bool is_the_store = reads_as_its_own(name, [&] {
    Store store = open_to_read(registry, known.tenant.name);
    marked = read_marks(store);
    return store.id() == known.tenant.store;
  });
  if (!is_the_store) refuse_foreign(known, name + " is another store");
  if (marked.mark != mark_of(known.tenant.registry, known.tenant.name)) {
    throw SchemaMismatch{name + " is that of " +
                         (marked.mark.empty() ? "no registry" : marked.mark) +
                         ", and is left as it is; unless it has moved there, 'tenants adopt " +
                         known.tenant.name + " --take-over' takes it back"};
  }
  if (known.tenant.state == TenantState::dropped &&
      marked.suspension != why_suspended(known.tenant)) {
    throw UsageError{"the store of tenant '" + known.tenant.name +
                     "' doesn't know that it is dropped: that didn't reach it, or it was resumed "
                     "since and the registry is from an older backup; drop it again if it is to be "
                     "erased"};
  }
}

/// Whether the master key beside the key store is this tenant's alone.
bool has_own_master(Registry& registry, const Registered& known, const std::string& keys) {
  if (!known.keys.has_own_master) return false;
  const auto& shared = registry.options().master;
  std::error_code error;
  return !shared || shared->file.empty() || !fs::equivalent(shared->file, keys + ".master", error);
}

/// StoreFailed if the master key isn't a file of its own.
void check_master(const std::string& master) {
  std::error_code error;
  if (fs::is_symlink(fs::symlink_status(master, error))) {
    throw StoreFailed{"'" + master +
                      "' is a link, and others may use what it leads to: put the file itself "
                      "there, or remove the link, and repeat it"};
  }
  check_is_plain(master);
}

Destroys check_keys(Registry& registry, const Registered& known, bool may_be_missing) {
  const std::string place = registry.keys()->place_of(known.tenant.name);
  const bool is_there = is_at(place);
  keys::Identity actual;
  const bool is_its_own = !is_there || reads_as_its_own("'" + place + "'", [&] {
    actual = keys::read_identity(place);
    return actual.id == known.keys.id;
  });
  if (!is_its_own) refuse_foreign(known, "'" + place + "' is another key store");
  const std::string mark = mark_of(known.tenant.registry, known.tenant.name);
  if (!actual.serves.empty() && !actual.serves.starts_with(mark)) {
    registry.options().files.log->write(
        {.level = LogLevel::warning,
         .name = "tenants.keys_stay",
         .message = "'" + place + "' stays: it is that of " + actual.serves});
    return Destroys::store;
  }
  const std::string own = registry.served_as(known.tenant.name);
  const bool is_begun = known.tenant.state != TenantState::dropped;
  if (!is_begun && !actual.serves.empty() && actual.serves != own) {
    throw UsageError{"'" + place + "' is that of " + actual.serves + ", not of " + own +
                     ": a copy of a registry doesn't destroy the original's keys; if the registry "
                     "itself was moved, 'tenants adopt " +
                     known.tenant.name + " --take-over' says so"};
  }
  if (has_own_master(registry, known, place)) check_master(place + ".master");
  check_is_there(known, is_there, "the key store, '" + place + "',", may_be_missing);
  check_is_plain(place);
  return Destroys::store_and_keys;
}

void remove_file(const std::string& file) {
  std::error_code error;
  fs::remove(file, error);
  if (!error) return;
  throw StoreFailed{"removing '" + file + "' failed: " + error.message() +
                    "; mend that, and repeat it"};
}

/// A file with its neighbours of these endings. A link to it is removed last: it leads to what an
/// interrupted erasure left.
void remove_files(const Pattern& pattern, const std::string& path,
                  std::initializer_list<std::string_view> endings) {
  const std::string real = behind_links(path);
  remove_file(real);
  for (const std::string_view ending : endings) {
    remove_file(real + std::string{ending});
    remove_file(path + std::string{ending});
  }
  remove_file(path);
  std::error_code error;
  for (const std::string& file : {real, path}) {
    if (fs::exists(fs::path{file}.parent_path(), error)) database::sync_folder_of(file);
  }
  // A folder for this tenant alone, if it is empty. A link to one stays.
  const std::string folder = fs::path{path}.parent_path().string();
  if (folder != pattern.parent()) ::rmdir(folder.c_str());
}

}  // namespace

Destroys check_is_its_own(Registry& registry, const Registered& known, bool may_be_missing) {
  check_store(registry, known, may_be_missing);
  return known.keys.id.is_nil() ? Destroys::store : check_keys(registry, known, may_be_missing);
}

void destroy(Registry& registry, const Registered& known, Destroys what) {
  if (what == Destroys::store_and_keys) {
    const std::string keys = registry.keys()->place_of(known.tenant.name);
    if (has_own_master(registry, known, keys)) remove_file(keys + ".master");
    const std::string erasures = keys + ".erasures";
    if (keys::has_only_records_of(known.keys.id, erasures)) remove_file(erasures);
    remove_files(*registry.keys(), keys, {"-journal", "-lock"});
  }
  const std::string store = registry.stores().place_of(known.tenant.name);
  if (registry.stores().is_on_server()) {
    remove_schemas(store, known.tenant.name);
  } else {
    remove_files(registry.stores(), store, {"-wal", "-shm", "-lock"});
  }
}

}  // namespace stela::tenants
