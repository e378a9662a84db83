// Decisions by bare statements on Stela's own tables: the same events read with the same columns
// and checksums, the same condition checked under the write lock, the same rows inserted.
#pragma once

#include "measure.hpp"
#include "raw.hpp"
#include "raw_checked.hpp"
#include "raw_events.hpp"

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace stela::bench {

/// A reading connection. Somebody who writes it by hand knows which ids name streams and which are
/// tags, and reads each view by one statement.
/// Threads: one at a time.
class RawViews {
 public:
  explicit RawViews(const std::string& path);

  struct Position {
    std::int64_t head = 0;
    std::int64_t epoch = 0;
  };
  /// Begins a read transaction.
  Position begin();
  void end() { end_.run(); }

  /// Each calls `f(kind, payload)` for the events up to the head.
  template <class F>
  void of_stream(std::string_view name, F&& f) {
    stream_.bind_text(1, name);
    read(stream_, f);
  }
  template <class F>
  void of_tag(const RawTag& tag, F&& f) {
    tag_.bind(1, tag.hash);
    read(tag_, tag.name, f);
  }
  template <class F>
  void last_of_tag(const RawTag& tag, F&& f) {
    last_of_tag_.bind(1, tag.hash);
    read(last_of_tag_, tag.name, f);
  }
  std::int64_t kind_of(std::string_view type) const { return rows_.kind_of(type); }

 private:
  template <class F>
  void read(RawStatement& statement, std::string_view tag, F&& f) {
    statement.bind(2, position_.head);
    while (statement.step()) {
      check(statement, tag);
      f(rows_.kind(), rows_.payload());
    }
    statement.reset();
  }
  template <class F>
  void read(RawStatement& statement, F&& f) {
    read(statement, std::string_view{}, f);
  }
  /// Throws if the row isn't what was stored. The tag, if any, must be one of the event's.
  void check(const RawStatement& row, std::string_view tag);

  RawDatabase database_;
  RawStatement begin_;
  RawStatement end_;
  RawStatement standpoint_;
  RawStatement stream_;
  RawStatement tag_;
  RawStatement last_of_tag_;
  RawRowCheck rows_;
  Position position_;
};

/// The writing connection.
/// Threads: one at a time.
class RawDecider {
 public:
  RawDecider(const std::string& path, const RawOptions& options);

  struct Decision {
    RawViews::Position position = {};
    /// What the event is appended to.
    std::string_view stream = {};
    /// If true, it also depends on that stream.
    bool depends_on_stream = false;
    /// The event's tag beside its stream. The decision depends on it.
    const RawTag& tag;
    std::int64_t kind = 0;
    std::string_view payload = {};
  };
  /// False, with nothing written, if there is an event since that the decision depends on.
  bool append(const Decision& decision);

 private:
  struct Head {
    std::int64_t stream = 0;
    std::int64_t version = 0;
    std::int64_t sequence = 0;
  };
  Head head_of(std::string_view stream);
  bool holds(const Decision& decision, const Head& head);
  void insert(const Decision& decision, const Head& head);

  RawDatabase database_;
  RawStatement begin_;
  RawStatement roll_back_;
  RawStatement commit_;
  RawStatement standpoint_;
  RawStatement head_;
  RawStatement later_;
  RawStatement stream_;
  RawStatement event_;
  RawStatement event_tags_;
  RawStatement tag_;
  RawRowCheck rows_;
  std::string correlation_;
  std::string metadata_;
  std::string event_id_ = std::string(16, '\0');
  Dice dice_{13};
};

}  // namespace stela::bench
