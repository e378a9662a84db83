#include <stela/outbox/verify.hpp>

#include "outbox_sql.hpp"
#include "sqlite/core.hpp"
#include "sqlite/generations.hpp"
#include "sqlite/inspection.hpp"
#include "sqlite/placement.hpp"
#include "sqlite/settings.hpp"

#include <stela/framework/error.hpp>

#include <limits>
#include <string>

namespace stela {

namespace sql = outbox::sql;
using outbox::Generation;
using outbox::Placement;
using sqlite::Connection;
using sqlite::Inspection;
using sqlite::Query;

namespace {

constexpr std::int64_t page_rows = 512;

constexpr std::string_view remove_advice =
    "the event store is the truth: remove the row, and let outbox reconcile enqueue what is "
    "missing";
constexpr std::string_view reconcile_advice =
    "run outbox reconcile, which enqueues what is missing";
constexpr std::string_view sync_advice = "run outbox partitions sync, which adds what is missing";

std::string message_at(std::int64_t sequence) {
  return "message " + std::to_string(sequence);
}

std::string label(std::int64_t partition) {
  return "partition " + PartitionId{static_cast<int>(partition)}.label();
}

class OutboxCheck final : public sqlite::Check {
 public:
  explicit OutboxCheck(const Partitioner& partitioner) noexcept : partitioner_{partitioner} {}

  std::string_view name() const noexcept override { return "outbox"; }

  void run(Inspection& inspection) override {
    bool is_there = false;
    inspection.read([&](Connection& connection) {
      Query query = connection.query(sql::has_outbox);
      is_there = query.step() && query.integer(0) != 0;
    });
    if (!is_there) return;
    sqlite::check_schema(inspection, "outbox", sql::migrations);
    check_facts(inspection);
    check_partitions(inspection);
    check_messages(inspection);
    check_set_aside(inspection);
    check_sums(inspection);
  }

 private:
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
      Query last = connection.query(sql::last_event);
      last.step();
      const std::int64_t last_sequence = last.integer(0);
      std::int64_t current = 0;
      const Generation generation = outbox::current_generation(connection);
      Query row = connection.query(sql::inspect_partitions);
      while (row.step()) {
        if (generation.has({static_cast<int>(row.integer(0))})) ++current;
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

  static void check_partition(Inspection& inspection, Query& row, std::int64_t last_sequence) {
    const std::string where = label(row.integer(0));
    if (row.integer(1) < 0) inspection.report(where, "its epoch is negative");
    if (row.integer(2) < 0 || row.integer(2) > last_sequence) {
      inspection.report(where, "it is published through " + std::to_string(row.integer(2)) +
                                   ", and the last event is " + std::to_string(last_sequence));
    }
    const auto compare = [&](std::string_view what, int kept, int counted) {
      if (row.integer(kept) == row.integer(counted)) return;
      std::string text = "it says that " + std::to_string(row.integer(kept)) + " messages ";
      text += what;
      text += ", and there are " + std::to_string(row.integer(counted));
      inspection.report(where, std::move(text),
                        "run outbox reconcile, which counts anew and enqueues what is missing");
    };
    compare("wait", 5, 6);
    compare("are parked", 3, 7);
    compare("are to be sent again", 4, 8);
  }

  void check_messages(Inspection& inspection) {
    std::int64_t partition = std::numeric_limits<std::int64_t>::min();
    std::int64_t sequence = 0;
    std::int64_t seen = 0;
    for (bool more = true; more;) {
      more = false;
      inspection.read([&](Connection& connection) {
        Placement placement{connection, inspection.store().core().kinds(), partitioner_};
        const bool compares = placement.knows_partitioner();
        Query row = connection.query(sql::inspect_messages);
        row.bind(1, partition).bind(2, sequence).bind(3, page_rows);
        std::int64_t rows = 0;
        while (row.step()) {
          ++rows;
          partition = row.integer(0);
          sequence = row.integer(1);
          const bool is_sound = check_message(inspection, row);
          if (is_sound && compares) check_place(inspection, connection, placement, row);
        }
        seen += rows;
        more = rows == page_rows;
      });
      inspection.progress(seen, 0);
    }
  }

  /// False if it makes no sense to look for its place.
  bool check_message(Inspection& inspection, Query& row) const {
    const std::int64_t sequence = row.integer(1);
    const auto report = [&](std::string what) {
      inspection.report(message_at(sequence), std::move(what), std::string{remove_advice});
    };
    if (row.is_null(5)) {
      report("it waits in " + label(row.integer(0)) + ", which doesn't exist");
      return false;
    }
    if (row.is_null(3)) {
      report("it waits in " + label(row.integer(0)) + ", and its event doesn't exist");
      return false;
    }
    if (row.integer(2) != row.integer(3)) report("its stream isn't that of its event");
    if (row.integer(4) != 1) report("its event isn't one that is published");
    if (is_ordered_ && sequence <= row.integer(5)) {
      report("it waits, and " + label(row.integer(0)) + " is published through " +
             std::to_string(row.integer(5)));
    }
    if (row.integer(6) != 0) report("it waits and is parked");
    if (row.integer(7) != 0) report("it waits and is discarded");
    if (row.integer(8) < 0) report("its number of attempts is negative");
    return row.integer(2) == row.integer(3);
  }

  static void check_place(Inspection& inspection, Connection& connection, Placement& placement,
                          Query& row) {
    const GlobalSequence sequence{row.integer(1)};
    const Generation generation = outbox::generation_of(connection, sequence);
    try {
      const PartitionId place =
          placement.find(sequence, row.integer(2), generation.partition_count);
      if (place.number == row.integer(0)) return;
      inspection.report(
          message_at(sequence.value()),
          "it waits in " + label(row.integer(0)) + ", and belongs into " + label(place.number),
          std::string{remove_advice});
    } catch (const CorruptEvent&) {
      // The check of the events tells of it.
    }
  }

  static void check_set_aside(Inspection& inspection) {
    inspection.read([&](Connection& connection) {
      Query row = connection.query(sql::inspect_set_aside);
      while (row.step()) {
        const std::string where = message_at(row.integer(1));
        const std::string state{row.text(0)};
        const auto report = [&](const std::string& what) {
          inspection.report(where, "it is " + state + ", and " + what, std::string{remove_advice});
        };
        if (row.is_null(4)) {
          report("its event doesn't exist");
          continue;
        }
        if (row.integer(2) != row.integer(4)) report("its stream isn't that of its event");
        if (row.integer(5) != 1) report("its event isn't one that is published");
        if (row.is_null(6)) report(label(row.integer(3)) + " doesn't exist");
        if (row.integer(7) != 0) report("discarded too");
      }
    });
  }

  static void check_sums(Inspection& inspection) {
    inspection.read([&](Connection& connection) {
      Query row = connection.query(sql::inspect_sums);
      row.step();
      std::int64_t sum = 0;
      for (int column = 1; column <= 5; ++column) sum += row.integer(column);
      if (sum == row.integer(0)) return;
      inspection.report("table outbox_messages",
                        std::to_string(row.integer(0)) + " events are to be published, and " +
                            std::to_string(sum) + " wait or are parked, discarded or published",
                        std::string{reconcile_advice});
    });
  }

  const Partitioner& partitioner_;
  bool is_ordered_ = false;
};

}  // namespace

std::unique_ptr<sqlite::Check> outbox_check(const Partitioner& partitioner) {
  return std::make_unique<OutboxCheck>(partitioner);
}

}  // namespace stela
