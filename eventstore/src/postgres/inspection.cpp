#include "postgres/inspection.hpp"

#include "care/checks.hpp"
#include "postgres/checksums.hpp"
#include "postgres/event_reader.hpp"

namespace stela::postgres {
namespace {

constexpr std::string_view index_advice =
    "one of the indexes of events differs from the table: REINDEX TABLE events, verify again, and "
    "keep a backup";

constexpr care::Engine postgres_engine{
    .whole = "the server",
    .unreadable = "the server can't read it: ",
    .versions = "its streams have {} versions, and it has {} events",
    .few_versions_advice = index_advice,
    .many_versions_advice = index_advice,
    .append_id_checksum = [](std::string_view id, std::int64_t first,
                             std::int64_t last) { return id_checksum(id, first, last); },
    .tags_checksum = [](std::string_view tags, std::int64_t sequence,
                        std::int64_t part) { return tags_checksum(tags, sequence, part); }};

}  // namespace

ServerInspection::ServerInspection(Core& core, FunctionRef<void(const Problem&)> report,
                                   const VerifyOptions& options)
    : care::Inspection{postgres_engine, report, options}, core_{core} {}

bool ServerInspection::query(FunctionRef<void(Connection&)> work) {
  return read([&](database::Connection& connection) { work(connection_of(connection)); });
}

std::unique_ptr<database::EventReader> ServerInspection::make_reader() {
  return std::make_unique<EventReader>(kinds_);
}

std::string ServerInspection::advice_on_damage() {
  return "keep a copy of the cluster, look into the server's log, and restore a backup";
}

VerifyResult Core::verify(FunctionRef<void(const Problem&)> report, const VerifyOptions& options) {
  ServerInspection inspection{*this, report, options};
  inspection.run("schema", [&] { check_own_schema(inspection); });
  inspection.run("indexes", [&] { check_indexes(inspection); });
  inspection.run("streams", [&] { care::check_streams(inspection); });
  inspection.run("event_kinds", [&] { care::check_kinds(inspection); });
  inspection.run("events", [&] {
    care::check_events(inspection, [](database::Connection&, const StoredEvent&) {});
  });
  inspection.run("tags", [&] { care::check_tags(inspection); });
  inspection.run("append_ids", [&] { care::check_append_ids(inspection); });
  inspection.run("append_groups", [&] { care::check_append_groups(inspection); });
  inspection.run("snapshots", [&] { care::check_snapshots(inspection); });
  inspection.run_common_checks();
  return inspection.result();
}

}  // namespace stela::postgres
