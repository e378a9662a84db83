#include <stela/outbox/care.hpp>

#include "database/database.hpp"
#include "database/inspection.hpp"
#include "outbox_sql.hpp"
#include "outbox_sql/inspection.hpp"
#include "outbox_sql/partitions.hpp"
#include "tables/generations.hpp"
#include "tables/placement.hpp"
#include "tables/settings.hpp"

#include <stela/framework/error.hpp>

#include <limits>
#include <string>

namespace stela {

namespace sql = outbox::sql;
using database::Connection;
using database::Inspection;
using outbox::Generation;
using outbox::Placement;

namespace {

constexpr std::int64_t verify_page_rows = 512;

constexpr std::string_view remove_advice =
    "the event store is the truth: remove the row, and let outbox reconcile enqueue missing "
    "messages";
constexpr std::string_view reconcile_advice =
    "run outbox reconcile, which enqueues missing messages";
constexpr std::string_view move_advice =
    "run outbox partitions sync, which puts it where it belongs";
constexpr std::string_view sync_advice =
    "run outbox partitions sync, which adds missing partitions";

std::string message_at(std::int64_t sequence) {
  return "message " + std::to_string(sequence);
}

std::string label(std::int64_t partition) {
  return "partition " + PartitionId{static_cast<int>(partition)}.label();
}

class OutboxCheck final : public IntegrityCheck {
 public:
  explicit OutboxCheck(const Partitioner& partitioner) noexcept : partitioner_{partitioner} {}

  std::string_view name() const noexcept override { return "outbox"; }

  void run(Inspection& inspection) override {
    bool is_there = false;
    inspection.read([&](Connection& connection) {
      auto tables = connection.rows(sql::has_outbox{});
      is_there = tables.step() && tables.is_there();
    });
    if (!is_there) return;
    inspection.check_schema("outbox", sql::migrations, sql::migrations_on_postgres);
    if (!is_made(inspection)) return;
    check_facts(inspection);
    check_partitions(inspection);
    check_messages(inspection);
    check_unseen(inspection);
    check_set_aside(inspection);
    check_orphans(inspection);
    check_sums(inspection);
  }

 private:
  /// The tables may exist without an outbox.
  static bool is_made(Inspection& inspection) {
    bool is_made = true;
    inspection.read([&](Connection& connection) {
      is_made = connection.rows(sql::partitioner_name{}).step();
      if (is_made) return;
      try {
        is_made = outbox::find_settings(connection).has_value();
      } catch (const Error&) {
        is_made = true;
      }
    });
    return is_made;
  }

  void check_facts(Inspection& inspection) {
    inspection.read([&](Connection& connection) {
      try {
        const auto settings = outbox::find_settings(connection);
        if (!settings) inspection.report("table outbox_settings", "its row is missing");
        is_ordered_ = settings && settings->fence != Fence::none;
      } catch (const Error& e) {
        inspection.report("table outbox_settings", e.what());
      }
      std::int64_t expected = 1;
      std::int64_t first = 0;
      for (const Generation& generation : outbox::all_generations(connection)) {
        const std::string where = "generation " + std::to_string(generation.number);
        if (generation.number != expected) {
          inspection.report(where,
                            "generation " + std::to_string(expected) + " is missing before it");
        }
        if (generation.first_sequence < first) {
          inspection.report(where, "it begins before the one before it");
        }
        first = generation.first_sequence;
        expected = generation.number + 1;
      }
      if (expected == 1) inspection.report("table outbox_generations", "it has no row");
    });
  }

  void check_partitions(Inspection& inspection) {
    inspection.read([&](Connection& connection) {
      const std::int64_t last_sequence = outbox::last_event(connection);
      std::int64_t current = 0;
      const Generation generation = outbox::current_generation(connection);
      auto row = connection.rows(sql::inspect_partitions{});
      while (row.step()) {
        if (generation.has({static_cast<int>(row.partition())})) ++current;
        check_partition(inspection, row, last_sequence);
      }
      if (current != generation.partition_count) {
        inspection.report("table outbox_partitions",
                          "it has " + std::to_string(current) + " of the " +
                              std::to_string(generation.partition_count) +
                              " partitions of the current generation",
                          std::string{sync_advice});
      }
    });
  }

  static void check_partition(Inspection& inspection, const sql::inspect_partitions::Row& row,
                              std::int64_t last_sequence) {
    const std::string where = label(row.partition());
    if (row.epoch() < 0) inspection.report(where, "its epoch is negative");
    if (row.published_through() < 0 || row.published_through() > last_sequence) {
      inspection.report(where, "it is published through " +
                                   std::to_string(row.published_through()) +
                                   ", and the last event is " + std::to_string(last_sequence));
    }
    const auto compare = [&](std::string_view what, std::int64_t kept, std::int64_t counted) {
      if (kept == counted) return;
      std::string text = "it counts " + std::to_string(kept) + " ";
      text += what;
      text += ", and there are " + std::to_string(counted);
      inspection.report(where, std::move(text),
                        "run outbox reconcile, which counts again and enqueues missing messages");
    };
    compare("parked messages", row.parked(), row.actual_parked());
    compare("messages to send again", row.redeliveries(), row.actual_redeliveries());
  }

  static void check_unseen(Inspection& inspection) {
    inspection.read([&](Connection& connection) {
      auto row = connection.rows(sql::inspect_unseen{});
      while (row.step()) {
        inspection.report(
            label(row.partition()),
            "no relay sees its " + message_at(row.sequence()) + ": it isn't behind drained_through",
            "nothing is lost: set outbox_partitions.drained_through to 0, and relays "
            "look from the beginning once");
      }
    });
  }

  void check_messages(Inspection& inspection) {
    std::int64_t partition = std::numeric_limits<std::int64_t>::min();
    std::int64_t sequence = 0;
    std::int64_t seen = 0;
    for (bool more = true; more;) {
      more = false;
      inspection.read([&](Connection& connection) {
        Placement placement{connection, inspection.database(), partitioner_};
        const bool compares = placement.knows_partitioner();
        auto row = connection.rows(sql::inspect_messages{
            .after_partition = partition, .after_sequence = sequence, .most = verify_page_rows});
        std::int64_t rows = 0;
        while (row.step()) {
          ++rows;
          partition = row.partition();
          sequence = row.sequence();
          const bool is_sound = check_message(inspection, row);
          if (is_sound && compares) check_place(inspection, connection, placement, row);
        }
        seen += rows;
        more = rows == verify_page_rows;
      });
      inspection.progress(seen, 0);
    }
  }

  /// False if its place can't be checked.
  bool check_message(Inspection& inspection, const sql::inspect_messages::Row& row) const {
    const auto report = [&](std::string what) {
      inspection.report(message_at(row.sequence()), std::move(what), std::string{remove_advice});
    };
    if (!row.published_through()) {
      inspection.report(message_at(row.sequence()),
                        "it is pending in " + label(row.partition()) + ", which doesn't exist",
                        std::string{move_advice});
      return false;
    }
    if (!row.event_stream()) {
      report("it is pending in " + label(row.partition()) + ", and its event doesn't exist");
      return false;
    }
    if (row.stream() != row.event_stream()) report("its stream differs from its event's");
    if (row.publishes() != 1) report("its event isn't publishable");
    if (is_ordered_ && row.is_published()) {
      report("it is pending, and " + label(row.partition()) + " is published through " +
             std::to_string(*row.published_through()));
    }
    if (row.is_parked()) report("it is both pending and parked");
    if (row.is_discarded()) report("it is both pending and discarded");
    if (row.attempts() < 0) report("its number of attempts is negative");
    return row.stream() == row.event_stream();
  }

  static void check_place(Inspection& inspection, Connection& connection, Placement& placement,
                          const sql::inspect_messages::Row& row) {
    const GlobalSequence sequence{row.sequence()};
    const Generation generation = outbox::generation_of(connection, sequence);
    try {
      const PartitionId place = placement.find(sequence, row.stream(), generation.partition_count);
      if (place.number == row.partition()) return;
      inspection.report(
          message_at(sequence.value()),
          "it is pending in " + label(row.partition()) + ", and belongs in " + label(place.number),
          std::string{remove_advice});
    } catch (const CorruptEvent&) {
      // The check of events reports this.
    }
  }

  static void check_set_aside(Inspection& inspection) {
    inspection.read([&](Connection& connection) {
      auto row = connection.rows(sql::inspect_set_aside{});
      while (row.step()) {
        const std::string where = message_at(row.sequence());
        const std::string state{row.state()};
        const auto report = [&](const std::string& what) {
          inspection.report(where, "it is " + state + ", and " + what, std::string{remove_advice});
        };
        if (!row.event_stream()) {
          report("its event doesn't exist");
          continue;
        }
        if (row.stream() != row.event_stream()) report("its stream differs from its event's");
        if (row.publishes() != 1) report("its event isn't publishable");
        if (!row.has_partition()) {
          inspection.report(
              where, "it is " + state + ", and " + label(row.partition()) + " doesn't exist",
              std::string{row.state() == "to be sent again" ? move_advice : remove_advice});
        }
        if (row.is_discarded_too()) report("discarded too");
      }
    });
  }

  /// Finds messages that no retry or discard of an earlier message would ever release.
  static void check_orphans(Inspection& inspection) {
    inspection.read([&](Connection& connection) {
      auto row = connection.rows(sql::inspect_orphans{});
      while (row.step()) {
        inspection.report(
            message_at(row.sequence()),
            "it is parked behind a message of its stream, and none is parked before it",
            "run outbox retry " + std::to_string(row.sequence()) +
                ", which sends it again, and what is parked behind it");
      }
    });
  }

  static void check_sums(Inspection& inspection) {
    inspection.read([&](Connection& connection) {
      auto sums = connection.rows(sql::inspect_sums{});
      sums.step();
      if (sums.in_a_state() == sums.publishable()) return;
      inspection.report("table outbox_messages",
                        std::to_string(sums.publishable()) + " publishable events exist, and " +
                            std::to_string(sums.in_a_state()) +
                            " are recorded as pending, parked, discarded or published",
                        std::string{reconcile_advice});
    });
  }

  const Partitioner& partitioner_;
  bool is_ordered_ = false;
};

}  // namespace

std::unique_ptr<IntegrityCheck> outbox_check(const Partitioner& partitioner) {
  return std::make_unique<OutboxCheck>(partitioner);
}

}  // namespace stela
