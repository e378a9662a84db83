#include "faults/evidence.hpp"

#include <sqlite3.h>

#include <fstream>
#include <functional>
#include <iterator>
#include <map>
#include <memory>
#include <stdexcept>

namespace stela::test {
namespace {

using Database = std::unique_ptr<sqlite3, int (*)(sqlite3*)>;
using Statement = std::unique_ptr<sqlite3_stmt, int (*)(sqlite3_stmt*)>;

Database open_plain(const std::string& path) {
  sqlite3* handle = nullptr;
  const int code = sqlite3_open_v2(path.c_str(), &handle, SQLITE_OPEN_READWRITE, nullptr);
  Database database{handle, sqlite3_close};
  if (code != SQLITE_OK) throw std::runtime_error{sqlite3_errmsg(handle)};
  sqlite3_busy_timeout(handle, 10'000);
  sqlite3_wal_autocheckpoint(handle, 0);
  sqlite3_db_config(handle, SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 1, nullptr);
  return database;
}

/// The rows' first columns, one a line.
std::string query(const std::string& path, const std::string& sql) {
  const Database database = open_plain(path);
  sqlite3_stmt* handle = nullptr;
  int code = sqlite3_prepare_v2(database.get(), sql.c_str(), -1, &handle, nullptr);
  const Statement statement{handle, sqlite3_finalize};
  std::string text;
  while (code == SQLITE_OK && (code = sqlite3_step(handle)) == SQLITE_ROW) {
    if (!text.empty()) text += '\n';
    text += reinterpret_cast<const char*>(sqlite3_column_text(handle, 0));
    code = SQLITE_OK;
  }
  return code == SQLITE_DONE ? text : std::string{sqlite3_errmsg(database.get())};
}

}  // namespace

std::string integrity_of(const std::string& path) {
  return query(path, "PRAGMA integrity_check");
}

std::string quick_integrity_of(const std::string& path) {
  return query(path, "PRAGMA quick_check");
}

std::int64_t number_in(const std::string& path, const std::string& sql) {
  return std::stoll(query(path, sql));
}

std::vector<Entry> entries_of(Store& store) {
  std::vector<Entry> entries;
  for (const StoredEvent& event : store.read_all()) {
    entries.push_back({event.sequence.value(), event.stream.name(), event.version.value(),
                       std::string{event.payload}});
  }
  return entries;
}

std::string flaw_in(const std::vector<Entry>& entries) {
  std::map<std::string_view, std::int64_t> versions;
  std::int64_t sequence = 0;
  for (const Entry& entry : entries) {
    const std::int64_t version = ++versions[entry.stream];
    if (entry.sequence == ++sequence && entry.version == version) continue;
    std::string flaw = "event ";
    flaw += std::to_string(entry.sequence) + ", version " + std::to_string(entry.version);
    flaw += " of " + entry.stream + ", stands where event " + std::to_string(sequence);
    flaw += ", version " + std::to_string(version) + ", belongs";
    return flaw;
  }
  return {};
}

std::string flaw_of(const std::string& path) {
  if (std::string integrity = integrity_of(path); integrity != "ok") return integrity;
  auto store = sqlite::open(path, {.create = false});
  const std::vector<Entry> entries = entries_of(store);
  if (store.last_sequence() != GlobalSequence{static_cast<std::int64_t>(entries.size())}) {
    return "the last sequence isn't the number of events";
  }
  return flaw_in(entries);
}

std::uint64_t hash_of_file(const std::string& path) {
  std::ifstream file{path, std::ios::binary};
  if (!file) throw std::runtime_error{"can't read " + path};
  const std::string bytes{std::istreambuf_iterator<char>{file}, {}};
  return std::hash<std::string>{}(bytes);
}

AppendResult append(EventLog& log, const std::vector<PlainAppend>& appends,
                    std::string_view append_id) {
  std::vector<std::vector<NewEvent>> events(appends.size());
  std::vector<StreamAppend> streams;
  for (std::size_t i = 0; i < appends.size(); ++i) {
    for (const std::string& payload : appends[i].payloads) {
      events[i].push_back({"order.noted", 1, false, payload});
    }
    streams.push_back({appends[i].stream, appends[i].expected, events[i]});
  }
  return log.append({.streams = streams, .append_id = append_id});
}

AppendResult append(EventLog& log, std::string_view stream, std::string payload) {
  return append(log, {{StreamId::parse(stream), ExpectedVersion::any(), {std::move(payload)}}});
}

}  // namespace stela::test
