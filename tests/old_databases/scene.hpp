// What the scenes of the old databases have in common: each makes one, and freezes it as a process
// leaves it that is killed.
#pragma once

#include "old_databases/domain.hpp"
#include "support/temp_dir.hpp"

#include <stela/eventstore.hpp>
#include <stela/testing/manual_clock.hpp>

#include <chrono>
#include <filesystem>
#include <string>

namespace stela::test::old {

/// When every scene is frozen, on its clock.
inline constexpr std::chrono::hours frozen_after{1};

class Scene {
 public:
  Scene(std::filesystem::path out, std::string name)
      : out_{std::move(out)}, name_{std::move(name)} {}

  std::string database() const { return dir_.file(name_ + ".db"); }
  std::string broker() const { return dir_.file(name_ + ".broker.db"); }
  sqlite::Options options(Codec codec, sqlite::Durability durability) const {
    return {.durability = durability, .codec = codec, .clock = &clock};
  }

  /// Copies the databases with their logs, as they are.
  void freeze() const {
    for (const auto& entry : std::filesystem::directory_iterator{dir_.path()}) {
      const std::string file = entry.path().filename().string();
      const bool is_log = file.ends_with("-wal") && entry.file_size() > 0;
      if (is_log || file.ends_with(".db")) std::filesystem::copy_file(entry.path(), out_ / file);
    }
  }

  testing::ManualClock clock;
  void advance_to(std::chrono::microseconds since_start) {
    clock.advance(since_start - (clock.now() - testing::ManualClock::start));
  }

 private:
  const std::filesystem::path out_;
  const std::string name_;
  const TempDir dir_;
};

inline void place(EventStore& store, const std::string& key, std::int64_t cents = 100) {
  Order order{Id<Order>::from(key)};
  order.place("jane", cents);
  Repository<Order>{store}.save(order);
}
inline void note(EventStore& store, const std::string& key) {
  Repository<Order> orders{store};
  Order order = orders.load(Id<Order>::from(key));
  order.note("gift");
  orders.save(order);
}
inline void ship(EventStore& store, const std::string& key) {
  Repository<Order> orders{store};
  Order order = orders.load(Id<Order>::from(key));
  order.ship("dhl");
  orders.save(order);
}

/// Orders of both versions, some noted and shipped, stock with snapshots, and an append with an id.
void make_history(EventStore& store);

void make_plain(const std::filesystem::path& out);
void make_leased(const std::filesystem::path& out);
void make_claimed(const std::filesystem::path& out);
void make_halted(const std::filesystem::path& out);
void make_projected(const std::filesystem::path& out);
/// Two: the database of the publisher, before anything is published, and that of the consumer.
void make_consumer(const std::filesystem::path& out);

}  // namespace stela::test::old
