#include "sqlite/inspection.hpp"

#include "care/checks.hpp"
#include "database/checksum.hpp"
#include "database/sqlite/failure.hpp"
#include "event_numbers.hpp"
#include "sqlite/event_reader.hpp"
#include "sqlite/kind_blocks.hpp"
#include "sqlite/tag_guard.hpp"
#include "sqlite/tag_rows.hpp"
#include "sqlite_sql.hpp"
#include "sqlite_sql/inspection.hpp"

#include <stela/framework/error.hpp>

#include <utility>
#include <vector>

namespace stela::sqlite {
namespace {

/// The index is the only trace of such an event: it must not be rebuilt.
constexpr std::string_view lost_advice =
    "an event that was appended seems to be gone: keep a copy, and restore a backup";

constexpr std::string_view index_advice =
    "the table is the truth: rebuild its index with REINDEX, verify again, and keep a backup";

constexpr std::string_view blocks_advice =
    "the events are the truth, but reads by type skip it: complete the table by "
    "INSERT OR IGNORE INTO kind_blocks SELECT DISTINCT kind, sequence / 1024 FROM events";

constexpr care::Engine sqlite_engine{
    .whole = "the file",
    .unreadable = "SQLite can't read it: ",
    .versions = "its index of streams and versions has {} entries for {} events",
    .few_versions_advice =
        "the events are the truth: rebuild their index with REINDEX, verify "
        "again, and keep a backup",
    .many_versions_advice = lost_advice,
    .append_id_checksum =
        [](std::string_view id, std::int64_t first, std::int64_t last) {
          return database::checksum_of({first, last}, {id});
        },
    .tags_checksum = [](std::string_view tags, std::int64_t sequence,
                        std::int64_t part) { return checksum_of_tags(sequence, part, tags); }};

void check_own_schema(FileInspection& inspection) {
  check_header(inspection);
  inspection.check_schema("eventstore", sql::migrations, {});
  check_facts(inspection);
}

void check_streams(FileInspection& inspection) {
  const care::Counted found = care::check_streams(inspection);
  inspection.query([&](Connection& connection) {
    auto index = connection.rows(sql::inspect_stream_index{.to = found.through});
    index.step();
    if (index.entries() == found.count) return;
    inspection.report("table streams",
                      "its index of names has " + std::to_string(index.entries()) +
                          " entries for " + std::to_string(found.count) + " streams",
                      std::string{index_advice});
  });
}

void check_kinds(FileInspection& inspection) {
  const care::Counted found = care::check_kinds(inspection);
  inspection.query([&](Connection& connection) {
    auto index = connection.rows(sql::inspect_event_kind_index{.to = found.through});
    index.step();
    if (index.entries() == found.count) return;
    inspection.report("table event_kinds",
                      "its index has " + std::to_string(index.entries()) + " entries for " +
                          std::to_string(found.count) + " kinds",
                      std::string{index_advice});
  });
}

/// Readers of selected kinds look only into the blocks listed for them.
class BlocksCheck {
 public:
  explicit BlocksCheck(FileInspection& inspection) : inspection_{inspection} {}

  void look_at(Connection& connection, const StoredEvent& event) {
    const auto kind = static_cast<std::size_t>(event.kind.number);
    const std::int64_t block = block_of(event.sequence.value());
    if (seen_.size() <= kind) seen_.resize(kind + 1, -1);
    if (std::exchange(seen_[kind], block) == block) return;
    const sql::inspect_kind_block wanted{.kind = event.kind.number, .block = block};
    if (connection.rows(wanted).step()) return;
    inspection_.report(event_number(event.sequence.value()),
                       "the table kind_blocks doesn't say that events of its kind are there",
                       std::string{blocks_advice});
  }

 private:
  FileInspection& inspection_;
  /// For each kind, the last block that was seen.
  std::vector<std::int64_t> seen_;
};

void check_events(FileInspection& inspection) {
  inspection.query([&](Connection& connection) {
    if (!connection.integer("SELECT 1 FROM events NOT INDEXED WHERE sequence < 1 LIMIT 1")) {
      return;
    }
    inspection.report("table events", "there is an event before the first one");
  });
  BlocksCheck blocks{inspection};
  care::check_events(inspection, [&](database::Connection& connection, const StoredEvent& event) {
    blocks.look_at(connection_of(connection), event);
  });
}

void check_tags(FileInspection& inspection) {
  inspection.query([&](Connection& connection) {
    try {
      (void)read_tag_facts(connection);
    } catch (const CorruptEvent& e) {
      inspection.report("table tag_types", e.what());
    }
  });
  care::check_tags(inspection);
}

}  // namespace

FileInspection::FileInspection(Store& store, FunctionRef<void(const Problem&)> report,
                               const VerifyOptions& options)
    : care::Inspection{sqlite_engine, report, options}, store_{store} {
  if (!sqlite::path(store).empty()) {
    connection_ = core_of(store).connect();
    // Detects damaged pages when they are read, before their contents are used.
    connection_->execute("PRAGMA cell_size_check = ON");
  }
}

namespace {

void read_now(Connection& connection, database::Database::Work work) {
  if (connection.in_transaction()) return work(connection);
  connection.execute("BEGIN");
  try {
    work(connection);
    connection.execute("COMMIT");
  } catch (...) {
    connection.roll_back();
    throw;
  }
}

}  // namespace

void FileInspection::check_place() {
  core_of(store_).check_place();
}

void FileInspection::attempt(database::Database::Work work) {
  if (connection_) {
    read_now(*connection_, work);
    connection_->check_immutable();
  } else {
    core_of(store_).reading().read([&](Connection& connection) { read_now(connection, work); });
  }
}

bool FileInspection::query(FunctionRef<void(Connection&)> work) {
  return read([&](database::Connection& connection) { work(connection_of(connection)); });
}

std::unique_ptr<database::EventReader> FileInspection::make_reader() {
  return std::make_unique<EventReader>(kinds_);
}

void FileInspection::report(std::string where, std::string what, std::string advice) {
  what.resize(without_advice(what).size());
  care::Inspection::report(std::move(where), std::move(what), std::move(advice));
}

std::string FileInspection::advice_on_damage() {
  return std::string{sqlite::advice_on_damage(connection_ ? connection_->handle() : nullptr)};
}

VerifyResult Core::verify(FunctionRef<void(const Problem&)> report, const VerifyOptions& options) {
  FileInspection inspection{anchor(), report, options};
  inspection.run("file", [&] { check_file(inspection); });
  inspection.run("schema", [&] { check_own_schema(inspection); });
  inspection.run("streams", [&] { check_streams(inspection); });
  inspection.run("event_kinds", [&] { check_kinds(inspection); });
  inspection.run("events", [&] { check_events(inspection); });
  inspection.run("tags", [&] { check_tags(inspection); });
  inspection.run("append_ids", [&] { care::check_append_ids(inspection); });
  inspection.run("snapshots", [&] { care::check_snapshots(inspection); });
  inspection.run_common_checks();
  return inspection.result();
}

}  // namespace stela::sqlite
