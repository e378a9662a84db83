#include "event_lines.hpp"
#include "key_state.hpp"
#include "operations_sql/catalogue.hpp"
#include "operations_sql/transfer.hpp"
#include "store_core.hpp"

#include <stela/eventstore/transfer.hpp>
#include <stela/framework/codec/detail/json_writer.hpp>
#include <stela/framework/error.hpp>

#include <cstdint>
#include <ostream>
#include <string>

namespace stela {

namespace {

namespace sql = operations::sql;

constexpr std::int64_t page_rows = 1000;

/// Writes a page of append ids; false at the end.
bool save_append_ids(database::Connection& connection, std::string& after,
                     FunctionRef<void(std::string_view)> row) {
  const std::string from = after;
  std::string text;
  std::int64_t rows = 0;
  auto ids = connection.rows(sql::save_append_ids{.after = from, .limit = page_rows});
  while (ids.step()) {
    after = ids.append_id();
    text.clear();
    json::ObjectWriter{text}
        .add("append_id", ids.append_id())
        .add("first_sequence", ids.first_sequence())
        .add("last_sequence", ids.last_sequence())
        .add("used_at", ids.used_at().time_since_epoch().count())
        .close();
    row(text);
    ++rows;
  }
  return rows == page_rows;
}

/// The id in the database: an import may have changed it.
Uuid stored_id(Store& store) {
  Uuid id = store.id();
  store.database().read([&](database::Connection& connection) {
    auto row = connection.rows(sql::store_id{});
    if (row.step()) id = Uuid::parse(row.value()).value_or(id);
  });
  return id;
}

void check_last(database::Connection& connection, GlobalSequence expected) {
  auto row = connection.rows(sql::last_sequence{});
  if (row.step() && row.last() == expected.value()) return;
  throw UsageError{
      "events were appended during the export; stop all writers and workers, and export again"};
}

}  // namespace

namespace {

/// Writes the header, and the events that `which` selects.
ExportResult write_events(EventStore& store, std::ostream& out, std::string& text,
                          const ExportHeader& header, const AllQuery& which,
                          const TransferOptions& options) {
  append_header(text, header);
  const std::int64_t total = store.last_sequence().value();
  ExportResult result;
  Embedding embedding;
  AllQuery events = which;
  events.with_tags = header.has_tags;
  EventRange range = store.read_all(events);
  const auto next_page = [&] {
    // Write the previous events' lines first, because reading may throw.
    write_lines(out, text);
    return range.next_page();
  };
  for (auto page = next_page(); !page.empty(); page = next_page()) {
    if (options.stop.stop_requested()) {
      result.finished = false;
      break;
    }
    for (const StoredEvent& event : page) {
      append_line(text, event, header.codec, embedding);
      if (text.size() > write_bytes) write_lines(out, text);
    }
    result.events += static_cast<std::int64_t>(page.size());
    if (options.progress) {
      options.progress({"export", page.back().sequence.value(), total});
    }
  }
  return result;
}

/// Written after the events: all states as of one moment.
void write_states(Store& store, std::ostream& out, std::string& text, GlobalSequence last,
                  const TransferOptions& options) {
  std::int64_t rows = 0;
  const auto write = [&](std::string_view table, std::string_view row) {
    append_state(text, table, row);
    ++rows;
    if (text.size() > write_bytes) write_lines(out, text);
  };
  store.database().read_snapshot([&](database::Connection& connection) {
    check_last(connection, last);
    std::string after;
    const auto write_id = [&](std::string_view row) { write("append_ids", row); };
    while (save_append_ids(connection, after, write_id)) {
    }
    KeyState{}.save(connection, write);
    for (StateTransfer* const state : options.states) state->save(connection, write);
  });
  std::string end;
  json::ObjectWriter{end}.add("last_sequence", last.value()).add("rows", rows).close();
  append_state(text, end_of_states, end);
}

}  // namespace

ExportResult export_events(EventStore& store, std::ostream& out, const AllQuery& which,
                           const TransferOptions& options) {
  if (which.direction != Direction::forward) {
    throw UsageError{"an export is in the order of the store; its direction can't be backward"};
  }
  std::string text;
  AllQuery events = which;
  // Read the last sequence before the tags: then the tags of all events up to it are known.
  events.to = std::min(which.to, store.last_sequence());
  const ExportHeader header = header_of(store.conventions().codec, store.tag_catalogue());
  const ExportResult result = write_events(store, out, text, header, events, options);
  finish_lines(out, text);
  return result;
}

ExportResult export_store(Store& store, std::ostream& out, const TransferOptions& options) {
  std::string text;
  // Read the last sequence before the tags: then the tags of all events up to it are known.
  const GlobalSequence last = store.last_sequence();
  ExportHeader header = header_of(store.conventions().codec, store.tag_catalogue());
  header.store_id = stored_id(store);
  const ExportResult result = write_events(store, out, text, header, {.to = last}, options);
  if (result.finished) write_states(store, out, text, last, options);
  finish_lines(out, text);
  return result;
}

}  // namespace stela
