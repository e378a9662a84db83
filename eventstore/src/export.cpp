#include "event_lines.hpp"

#include <stela/eventstore/transfer.hpp>
#include <stela/framework/error.hpp>

#include <cstdint>
#include <ostream>
#include <string>

namespace stela {

ExportResult export_events(EventStore& store, std::ostream& out, const AllQuery& which,
                           const TransferOptions& options) {
  if (which.direction != Direction::forward) {
    throw UsageError{"an export is in the order of the store; its direction can't be backward"};
  }
  const Codec codec = store.conventions().codec;
  const std::int64_t total = store.last_sequence().value();
  ExportResult result;
  Embedding embedding;
  std::string text;
  append_header(text, codec);
  EventRange range = store.read_all(which);
  const auto next_page = [&] {
    // Whatever reading may throw, the lines of the events before it are out.
    write_lines(out, text);
    return range.next_page();
  };
  for (auto page = next_page(); !page.empty(); page = next_page()) {
    if (options.stop.stop_requested()) {
      result.finished = false;
      break;
    }
    for (const StoredEvent& event : page) {
      append_line(text, event, codec, embedding);
      if (text.size() > write_bytes) write_lines(out, text);
    }
    result.events += static_cast<std::int64_t>(page.size());
    if (options.progress) {
      options.progress({"export", page.back().sequence.value(), total});
    }
  }
  finish_lines(out, text);
  return result;
}

}  // namespace stela
