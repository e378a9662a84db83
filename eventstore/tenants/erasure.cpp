#include "tenants/erasure.hpp"

#include "keys/key_database.hpp"
#include "tenants/places.hpp"
#include "tenants/pool.hpp"

#include <stela/framework/error.hpp>

#include <unistd.h>

#include <filesystem>
#include <initializer_list>

namespace stela::tenants {
namespace {

namespace fs = std::filesystem;

[[noreturn]] void refuse_foreign(const Registered& known, const std::string& what) {
  throw SchemaMismatch{what + ", not that of tenant '" + known.tenant.name +
                       "', and is left as it is; put its own one back, and repeat it"};
}

/// Links are followed.
void check_has_one_name(const std::string& path) {
  std::error_code error;
  const std::uintmax_t names = fs::hard_link_count(fs::weakly_canonical(path, error), error);
  if (error || names == 1) return;
  throw StoreFailed{"'" + path + "' has " + std::to_string(names) +
                    " names (hard links), and would stay under the others; remove those, and "
                    "repeat it"};
}

bool is_at(const std::string& path) {
  std::error_code error;
  const fs::file_status found = fs::status(path, error);
  if (!error || found.type() == fs::file_type::not_found) return fs::exists(found);
  throw StoreFailed{"looking at '" + path + "' failed: " + error.message()};
}

/// False if nothing stands there.
bool check_is_there(const Registered& known, bool is_there, const std::string& what,
                    bool may_be_missing) {
  if (is_there || may_be_missing) return is_there;
  throw StoreFailed{
      what + " of tenant '" + known.tenant.name +
      "' is missing: put it back, or mount its disk, and repeat it; if it is lost for "
      "good, say so (--lost, is_lost)"};
}

void check_store(Registry& registry, const Registered& known, bool may_be_missing) {
  const std::string place = registry.stores().place_of(known.tenant.name);
  const bool is_on_server = registry.stores().is_on_server();
  const bool is_there = is_on_server ? check_schemas(place, known.tenant.name) : is_at(place);
  const std::string name =
      is_on_server ? "schema '" + schema_of(known.tenant.name) + "'" : "'" + place + "'";
  if (!check_is_there(known, is_there, "the store, " + name + ",", may_be_missing)) return;
  if (!is_on_server) check_has_one_name(place);
  Store store = open_to_read(registry, known.tenant.name);
  if (store.id() != known.tenant.store ||
      read_marks(store).mark != mark_of(registry, known.tenant.name)) {
    refuse_foreign(known, name + " is another store, or another registry's");
  }
}

void check_keys(const std::string& place, const Registered& known, bool may_be_missing) {
  const std::string name = "the key store, '" + place + "',";
  if (!check_is_there(known, is_at(place), name, may_be_missing)) return;
  check_has_one_name(place);
  if (keys::read_id(place) != known.keys.id) {
    refuse_foreign(known, "'" + place + "' is another key store");
  }
}

void remove_file(const fs::path& file) {
  std::error_code error;
  fs::remove(file, error);
  if (!error) return;
  throw StoreFailed{"removing '" + file.string() + "' failed: " + error.message() +
                    "; mend that, and repeat it"};
}

/// A file, what its path is a link to, and its neighbours with these endings.
void remove_files(const Pattern& pattern, const std::string& path,
                  std::initializer_list<std::string_view> endings) {
  std::error_code error;
  const std::string real = fs::weakly_canonical(path, error).string();
  for (const std::string_view ending : endings) {
    if (!error) remove_file(real + std::string{ending});
    remove_file(path + std::string{ending});
  }
  // A folder for this tenant alone, if it is empty. A link to one stays.
  const std::string folder = fs::path{path}.parent_path().string();
  if (folder != pattern.parent()) ::rmdir(folder.c_str());
}

}  // namespace

void check_is_its_own(Registry& registry, const Registered& known, bool may_be_missing) {
  check_store(registry, known, may_be_missing);
  if (known.keys.id.is_nil()) return;
  check_keys(registry.keys()->place_of(known.tenant.name), known, may_be_missing);
}

void destroy(Registry& registry, const Registered& known) {
  if (!known.keys.id.is_nil()) {
    const std::string keys = registry.keys()->place_of(known.tenant.name);
    // What all tenants share may stand there since then.
    const TenantsOptions& all = registry.options();
    if (known.keys.has_own_master && !all.master) remove_file(keys + ".master");
    if (known.keys.has_own_erasures && all.erasures.empty()) remove_file(keys + ".erasures");
    remove_files(*registry.keys(), keys, {"", "-journal", "-lock"});
  }
  const std::string store = registry.stores().place_of(known.tenant.name);
  if (registry.stores().is_on_server()) {
    remove_schemas(store, known.tenant.name);
  } else {
    remove_files(registry.stores(), store, {"", "-wal", "-shm", "-lock"});
  }
}

}  // namespace stela::tenants
