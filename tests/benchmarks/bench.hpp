// A run of the benchmark program: what was asked for, and what came of it.
#pragma once

#include "measure.hpp"
#include "place.hpp"
#include "report.hpp"

#include <string>
#include <string_view>
#include <vector>

namespace stela::bench {

struct Settings {
  Places places = {};
  /// Only figures whose name contains one of them; empty: all.
  std::vector<std::string> patterns = {};
  /// Rounds that the median is taken of; 0: as many as the size asks for.
  int rounds = 0;
  /// `tiny` shows that everything runs; its numbers mean nothing.
  enum class Size : unsigned char { tiny, quick, whole } size = Size::whole;
};

/// Threads: one at a time.
class Bench {
 public:
  explicit Bench(Settings settings) : settings_{std::move(settings)} {}

  const Settings& settings() const noexcept { return settings_; }
  const Places& places() const noexcept { return settings_.places; }
  Report& report() noexcept { return report_; }

  /// True if a figure whose name begins so may be asked for. Says on stderr that it is under way.
  bool begins(std::string_view prefix) const;

  /// One of three numbers, by the size of the run.
  template <class T>
  T sized(T tiny, T quick, T whole) const noexcept {
    switch (settings_.size) {
      case Settings::Size::tiny:
        return tiny;
      case Settings::Size::quick:
        return quick;
      default:
        return whole;
    }
  }
  int rounds(int whole) const noexcept;

  /// Adds a figure of rates: `events` are done by each operation.
  void add_rate(Figure figure, const Rounds& stela, const Rounds& raw, double events);

 private:
  Settings settings_;
  Report report_;
};

// --- the groups of figures: each adds its own to the report

void yardstick_figures(Bench& bench);
void append_figures(Bench& bench);
void schema_figures(Bench& bench);
void group_commit_figures(Bench& bench);
void load_figures(Bench& bench);
void read_all_figures(Bench& bench);
void growth_figures(Bench& bench);
void memory_figures(Bench& bench);
void outbox_figures(Bench& bench);
void wake_figures(Bench& bench);
void projection_figures(Bench& bench);
void replay_growth_figures(Bench& bench);
void decision_figures(Bench& bench);
void timer_figures(Bench& bench);
void keys_figures(Bench& bench);
void tenant_figures(Bench& bench);
/// Only where the tool is built.
void tool_figures(Bench& bench);
void reading_figures(Bench& bench);
// With STELA_WITH_POSTGRES only.
void postgres_figures(Bench& bench);
void postgres_projection_figures(Bench& bench);
void postgres_speed_figures(Bench& bench);
// With STELA_WITH_NATS, too.
void postgres_relay_figures(Bench& bench);
void postgres_shop_figures(Bench& bench);
// With STELA_WITH_NATS only.
void nats_relay_figures(Bench& bench);
void nats_delivery_figures(Bench& bench);
void nats_consumer_figures(Bench& bench);
void nats_line_figures(Bench& bench);
void nats_memory_figures(Bench& bench);

/// What memory_figures runs in a process of its own: reads all of `path`, by Stela or by bare
/// statements, and prints how much memory that took.
int measure_memory(const std::string& path, bool raw);
/// The same of a replay of all of `path` into memory.
int measure_replay_memory(const std::string& path, bool raw);
/// The same of relaying everything in `path` to the server at `url`.
int measure_relay_memory(const std::string& path, const std::string& url, bool raw);

}  // namespace stela::bench
