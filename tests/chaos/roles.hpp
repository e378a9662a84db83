// What the processes of a run do until they are told to stop, or killed.
#pragma once

#include "chaos/settings.hpp"

#include <stela/eventstore/sqlite.hpp>
#include <stela/framework.hpp>
#include <stela/outbox.hpp>

#include <cstdint>
#include <stop_token>
#include <string>

namespace stela::chaos {

struct TicketIssued {
  static constexpr EventType event_type{"ticket.issued", 1, should_publish};
  std::int64_t serial = 0;
  std::string text;

  template <class Archive>
  void serialize(Archive& archive) {
    archive(CEREAL_NVP(serial), CEREAL_NVP(text));
  }
};

struct TicketSeen {
  static constexpr EventType event_type{"ticket.seen", 1, local};
  std::int64_t serial = 0;

  template <class Archive>
  void serialize(Archive& archive) {
    archive(CEREAL_NVP(serial));
  }
};

sqlite::Store open_shop(const Settings& settings);
OutboxOptions outbox_options(const Settings& settings);

/// Appends, and writes a line "sequence serial" to its ledger for each event whose append returned.
void append(const Settings& settings, int number, const std::stop_token& stop);
void relay(const Settings& settings, const std::string& url, const std::stop_token& stop);
/// Writes a row for each event that it handles.
void consume(const Settings& settings, const std::string& url, const std::stop_token& stop);

}  // namespace stela::chaos
