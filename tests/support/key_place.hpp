// A key store on the engine of this test run, with access that bypasses Stela.
#pragma once

#include "support/engine.hpp"
#include "support/raw_sqlite.hpp"
#include "support/secret_file.hpp"

#include <stela/eventstore/keys.hpp>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace stela::test {

/// The URL of the path's database on the server. Creates the database if it is missing.
std::string database_at(const std::string& path);
/// Runs SQL there. Returns the first column of its rows.
std::vector<std::string> run_at(const std::string& url, const std::string& sql);

/// Copies the tables of a schema, or copies them back into the existing tables.
inline void copy_tables(const std::string& url, const std::string& from, const std::string& to) {
  run_at(url, "DROP SCHEMA IF EXISTS \"" + to + "\" CASCADE; CREATE SCHEMA \"" + to +
                  "\"; DO $$ DECLARE t text; BEGIN FOR t IN SELECT tablename FROM pg_tables WHERE "
                  "schemaname = '" +
                  from + "' LOOP EXECUTE format('CREATE TABLE %I.%I AS TABLE %I.%I', '" + to +
                  "', t, '" + from + "', t); END LOOP; END $$");
}
inline void put_tables_back(const std::string& url, const std::string& from,
                            const std::string& to) {
  run_at(url,
         "SET session_replication_role = replica; DO $$ DECLARE t text; BEGIN FOR t IN SELECT "
         "tablename FROM pg_tables WHERE schemaname = '" +
             from + "' LOOP EXECUTE format('DELETE FROM %I.%I', '" + to +
             "', t); EXECUTE format('INSERT INTO %I.%I OVERRIDING SYSTEM VALUE TABLE %I.%I', '" +
             to + "', t, '" + from + "', t); END LOOP; END $$");
}

/// A file, or a database on the server whose master key and erasures are files beside that path.
class KeyPlace {
 public:
  explicit KeyPlace(std::string path) : path_{std::move(path)}, location_{path_} {
    if (!is_on_postgres()) return;
    location_ = database_at(path_);
    // Functions that SQLite has built in.
    run_at(location_,
           "CREATE OR REPLACE FUNCTION public.hex(bytes bytea) RETURNS text LANGUAGE sql AS "
           "$$ SELECT encode(bytes, 'hex') $$; "
           "CREATE OR REPLACE FUNCTION public.randomblob(size int) RETURNS bytea LANGUAGE sql AS "
           "$$ SELECT substr(decode(repeat(md5(random()::text), size / 16 + 1), 'hex'), 1, size) "
           "$$");
  }

  const std::string& path() const noexcept { return path_; }
  const std::string& location() const noexcept { return location_; }

  Keys open(KeyOptions options = {}) const {
    if (!is_on_postgres()) return open_keys(path_, options);
    const std::string master = path_ + ".master";
    if (!options.master.unwrap) {
      if (!std::filesystem::exists(master)) write_secret(master, std::string(32, 'm'));
      options.master = key_file(master);
    }
    if (options.erasures.empty()) options.erasures = path_ + ".erasures";
    return open_keys(location_, options);
  }

  /// The first column of the rows, read without the key store.
  std::vector<std::string> run(const std::string& sql) const {
    if (is_on_postgres()) return run_at(location_, "SET search_path = stela_keys, public; " + sql);
    RawSqlite raw{path_};
    if (sql.starts_with("SELECT")) return raw.rows(sql);
    raw.run(sql);
    return {};
  }

  /// True if the file contains the bytes, or a file of the server's tables does.
  bool has(std::string_view bytes) const {
    std::vector<std::string> files{path_};
    if (is_on_postgres()) {
      files =
          run("CHECKPOINT; SELECT current_setting('data_directory') || '/' || "
              "pg_relation_filepath(c.oid) FROM pg_class AS c WHERE c.relkind = 'r' AND "
              "c.relnamespace = 'stela_keys'::regnamespace");
    }
    return std::any_of(files.begin(), files.end(), [&](const std::string& file) {
      std::ifstream in{file, std::ios::binary};
      const std::string content{std::istreambuf_iterator<char>{in}, {}};
      return content.find(bytes) != std::string::npos;
    });
  }

  /// Saves its present state, to be put back later.
  void back_up() const {
    if (is_on_postgres()) return copy_tables(location_, "stela_keys", "backup");
    copy_file(path_, path_ + ".backup", std::filesystem::copy_options::overwrite_existing);
  }
  void restore() const {
    if (is_on_postgres()) return put_tables_back(location_, "backup", "stela_keys");
    copy_file(path_ + ".backup", path_, std::filesystem::copy_options::overwrite_existing);
  }

 private:
  std::string path_;
  std::string location_;
};

}  // namespace stela::test
