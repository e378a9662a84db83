// What the contract of event stores is asked of; event_stores.cpp lists the stores.
#pragma once

#include "support/recording_sinks.hpp"
#include "support/temp_dir.hpp"

#include <stela/eventstore.hpp>
#include <stela/testing/manual_clock.hpp>

#include <gtest/gtest.h>

#include <memory>
#include <ostream>
#include <string>
#include <vector>

namespace stela::test {

/// A kind of store, and how one is opened that has no events yet.
struct Subject {
  const char* name;
  std::unique_ptr<EventStore> (*open)(const TempDir&, const stela::testing::ManualClock&,
                                      MetricSink*);

  friend void PrintTo(const Subject& subject, std::ostream* out) { *out << subject.name; }
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

class EventStoreContract : public ::testing::TestWithParam<Subject> {
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
  TempDir dir;
  std::unique_ptr<EventStore> store = GetParam().open(dir, clock, &metrics);
};

}  // namespace stela::test
