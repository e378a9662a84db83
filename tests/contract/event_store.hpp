// What the contract of event stores is asked of. A new store joins by adding a Subject to the list
// at the end.
#pragma once

#include "contract/subject_names.hpp"
#include "support/recording_sinks.hpp"
#include "support/temp_dir.hpp"

#include <stela/eventstore.hpp>
#include <stela/testing/manual_clock.hpp>
#include <stela/testing/memory_store.hpp>

#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <vector>

namespace stela::test {

struct InMemory {
  static constexpr const char* name = "InMemory";
  std::unique_ptr<EventStore> store(const stela::testing::ManualClock& clock, MetricSink* metrics) {
    return std::make_unique<stela::testing::MemoryStore>(
        stela::testing::MemoryStore::Options{.metrics = metrics, .clock = &clock});
  }
};

struct SqliteInMemory {
  static constexpr const char* name = "SqliteInMemory";
  std::unique_ptr<EventStore> store(const stela::testing::ManualClock& clock, MetricSink* metrics) {
    return std::unique_ptr<EventStore>{
        new sqlite::Store{sqlite::open_in_memory({.metrics = metrics, .clock = &clock})}};
  }
};

struct SqliteFile {
  static constexpr const char* name = "SqliteFile";
  std::unique_ptr<EventStore> store(const stela::testing::ManualClock& clock, MetricSink* metrics) {
    return std::unique_ptr<EventStore>{new sqlite::Store{
        sqlite::open(dir.file("shop.db"), {.metrics = metrics, .clock = &clock})}};
  }
  TempDir dir;
};

/// One line for each event: "1 order-1@1 order.placed {…}".
inline std::vector<std::string> lines(EventRange range) {
  std::vector<std::string> all;
  for (const StoredEvent& event : range) {
    all.push_back(std::to_string(event.sequence.value()) + ' ' + event.stream.name() + '@' +
                  std::to_string(event.version.value()) + ' ' + event.type());
  }
  return all;
}

template <class Subject>
class EventStoreContract : public ::testing::Test {
 protected:
  AppendResult append(std::string_view stream, ExpectedVersion expected,
                      std::vector<NewEvent> events, std::string_view append_id = {}) {
    const StreamId id = StreamId::parse(stream);
    const StreamAppend one{id, expected, events};
    return store->append({.streams = {&one, 1}, .append_id = append_id});
  }
  AppendResult append(std::string_view stream, std::vector<std::string> types) {
    std::vector<NewEvent> events;
    for (const std::string& type : types) events.push_back({type, 1, false, "{}"});
    return append(stream, ExpectedVersion::any(), events);
  }

  stela::testing::ManualClock clock;
  RecordingMetrics metrics;
  Subject subject;
  std::unique_ptr<EventStore> store = subject.store(clock, &metrics);
};

using Subjects = ::testing::Types<InMemory, SqliteInMemory, SqliteFile>;

}  // namespace stela::test
