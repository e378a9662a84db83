// What the processes of a run do until they are told to stop, or killed.
#pragma once

#include "chaos/settings.hpp"
#include "chaos/shop.hpp"

#include <stela/eventstore/sqlite.hpp>
#include <stela/framework.hpp>
#include <stela/framework/error.hpp>
#include <stela/nats/publisher.hpp>
#include <stela/outbox.hpp>

#include <cstdint>
#include <functional>
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

struct TicketReminded {
  static constexpr EventType event_type{"ticket.reminded", 1, local};
  std::int64_t serial = 0;

  template <class Archive>
  void serialize(Archive& archive) {
    archive(CEREAL_NVP(serial));
  }
};

/// Where an appending process kills itself.
struct Death {
  enum class At : std::uint8_t {
    never,
    /// Behind a call that writes to the database's log or syncs it: what it was about to answer may
    /// be committed.
    log,
    /// Behind a commit, before the process has written down that it was told.
    answer,
  };
  At at = At::never;
  /// The how-many-eth of them.
  int nth = 0;
};

/// One process of a run.
struct Part {
  /// Its own in the run.
  int number = 0;
  std::string url = {};
  Death death = {};
  std::stop_token stop = {};
};

/// Whether the same work may succeed later: somebody holds the lock, or the disk is full.
bool may_pass(const Error& error);
/// Does the work, again while what it fails with may pass, until it is told to stop.
void persist(const std::stop_token& stop, const std::function<void()>& work);

OutboxOptions outbox_options(const Settings& settings);
nats::PublisherOptions publisher_options(const Settings& settings, const std::string& url);
/// The same, for those who look at streams when the faults are over: a busy machine is no
/// violation.
nats::PublisherOptions reader_options(const Settings& settings, const std::string& url);
/// How the appending process of this number calls its ledger.
std::string ledger_of(const Settings& settings, int number);

/// Appends under ids of its own, and writes each to its ledger before it is tried and after it was
/// answered. What is left unanswered by the one before it is tried again under the same id, or left
/// as it is.
void append(const Settings& settings, const Part& part);
void relay(const Settings& settings, const Part& part);
/// Runs a process with deadlines: each ticket is reminded of once, a moment after it was issued.
void remind(const Settings& settings, const Part& part);
/// Writes a row for each event that it handles.
void consume(const Settings& settings, const Part& part);

}  // namespace stela::chaos
