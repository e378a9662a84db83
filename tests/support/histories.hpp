// Short helpers that write and read small histories.
#pragma once

#include "support/messages.hpp"

#include <stela/eventstore.hpp>
#include <stela/framework.hpp>

#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace stela::test {

inline AppendResult append(EventLog& log, std::string_view stream,
                           const std::vector<NewEvent>& events, std::string_view append_id = {}) {
  const StreamId id = StreamId::parse(stream);
  const StreamAppend one{id, ExpectedVersion::any(), events};
  return log.append({.streams = {&one, 1}, .append_id = append_id});
}

/// A store that can be closed and opened again.
inline std::unique_ptr<Store> open_store(const std::string& path,
                                         const sqlite::Options& options = {}) {
  return std::unique_ptr<Store>{new Store{sqlite::open(path, options)}};
}

/// Events of the type "noted" with the payload {}.
inline AppendResult append(EventLog& log, std::string_view stream, std::size_t count = 1) {
  return append(log, stream, std::vector<NewEvent>(count, NewEvent{"noted", 1, false, "{}"}));
}

/// One line for each event: "1 order-1@1 noted {}".
inline std::vector<std::string> lines(EventRange range) {
  std::vector<std::string> all;
  for (const StoredEvent& event : range) {
    all.push_back(std::to_string(event.sequence.value()) + ' ' + event.stream.name() + '@' +
                  std::to_string(event.version.value()) + ' ' + event.type() + ' ' +
                  std::string{event.payload});
  }
  return all;
}

/// One line per event with everything known about it.
inline std::vector<std::string> full_lines(EventRange range) {
  std::vector<std::string> all;
  for (const StoredEvent& event : range) {
    std::string line = std::to_string(event.sequence.value());
    for (const std::string& part :
         {event.stream.name(), std::to_string(event.version.value()), event.type(),
          std::to_string(event.schema_version()), std::to_string(event.publishes() ? 1 : 0),
          event.id.to_string(), std::to_string(event.recorded_at.time_since_epoch().count()),
          std::string{event.correlation}, event.causation_id.to_string(),
          std::string{event.metadata}, std::to_string(event.published_before.value()),
          std::string{event.payload}}) {
      line += '|';
      line += part;
    }
    all.push_back(std::move(line));
  }
  return all;
}

}  // namespace stela::test
