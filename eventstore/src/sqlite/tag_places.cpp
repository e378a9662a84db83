#include "sqlite/tag_places.hpp"

#include "sqlite/event_rows.hpp"
#include "sqlite/kind_blocks.hpp"
#include "sqlite/tag_rows.hpp"
#include "sqlite_sql/kinds.hpp"
#include "sqlite_sql/streams.hpp"
#include "sqlite_sql/tags.hpp"

#include <stela/framework/codec/detail/json_writer.hpp>
#include <stela/framework/error.hpp>

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

namespace stela::sqlite {
namespace {

using Sequence = std::optional<std::int64_t>;

/// The places that one statement finds: few at first, because a search may leap far.
constexpr std::int64_t first_places = 8;
constexpr std::int64_t most_places = 256;

bool is_before(Direction direction, std::int64_t a, std::int64_t b) noexcept {
  return direction == Direction::forward ? a < b : a > b;
}

/// The nearer one of two.
Sequence nearer(Direction direction, Sequence a, Sequence b) noexcept {
  if (!a || !b) return a ? a : b;
  return is_before(direction, *b, *a) ? b : a;
}

/// The events in a tag's index that have some types.
class IndexPlaces final : public Places {
 public:
  IndexPlaces(const Tag& tag, const std::vector<std::string>& types, KindTable& kinds,
              Direction direction)
      : tag_{hash_of_tag(tag.name())}, types_{types}, kinds_{kinds}, direction_{direction} {}

  Sequence next(Connection& connection, std::int64_t from) override {
    for (;;) {
      while (at_ < found_.size() && is_before(direction_, found_[at_], from)) ++at_;
      if (at_ < found_.size()) return found_[at_];
      if (looked_to_ && !is_before(direction_, *looked_to_, from)) {
        from = *looked_to_ + (direction_ == Direction::forward ? 1 : -1);
      }
      if (!look(connection, from)) return std::nullopt;
    }
  }

 private:
  /// False if there are no more places at or after `from`.
  bool look(Connection& connection, std::int64_t from) {
    found_.clear();
    at_ = 0;
    auto rows =
        direction_ == Direction::forward
            ? connection.rows(sql::tag_places{.tag = tag_, .from = from, .limit = limit_})
            : connection.rows(sql::tag_places_backward{.tag = tag_, .from = from, .limit = limit_});
    bool any = false;
    while (rows.step()) {
      if (is_before(direction_, rows.sequence(), any ? *looked_to_ : from)) {
        throw CorruptEvent{"the index of tags is out of order: it is damaged; restore a backup"};
      }
      any = true;
      looked_to_ = rows.sequence();
      if (is_wanted(connection, rows.kind())) found_.push_back(rows.sequence());
    }
    limit_ = std::min(limit_ * 4, most_places);
    return any;
  }

  bool is_wanted(Connection& connection, std::int64_t kind) {
    if (types_.empty()) return true;
    const EventKind* const known = kinds_.find(kind, connection);
    // A kind that isn't known is reported when the event is read.
    return known == nullptr || std::find(types_.begin(), types_.end(), known->type) != types_.end();
  }

  const std::int64_t tag_;
  const std::vector<std::string>& types_;
  KindTable& kinds_;
  const Direction direction_;
  std::vector<std::int64_t> found_;
  std::size_t at_ = 0;
  std::int64_t limit_ = first_places;
  Sequence looked_to_;
};

/// The events of the stream that a tag names: its sequences grow with its versions.
class StreamPlaces final : public Places {
 public:
  StreamPlaces(Tag stream, Direction direction)
      : stream_{std::move(stream)}, direction_{direction} {}

  Sequence next(Connection& connection, std::int64_t from) override {
    if (!begun_) begin(connection);
    for (;;) {
      while (at_ < found_.size() && is_before(direction_, found_[at_], from)) ++at_;
      if (at_ < found_.size()) return found_[at_];
      if (end_.version == 0 || is_past_end(from)) return std::nullopt;
      const std::int64_t version = seek(connection, from);
      if (version < 1 || version > end_.version) return std::nullopt;
      look(connection, version);
    }
  }

 private:
  struct End {
    std::int64_t stream = 0;
    std::int64_t version = 0;
    std::int64_t sequence = 0;
  };

  std::int64_t step() const noexcept { return direction_ == Direction::forward ? 1 : -1; }
  bool is_past_end(std::int64_t from) const noexcept {
    return direction_ == Direction::forward && from > end_.sequence;
  }

  void begin(Connection& connection) {
    begun_ = true;
    auto row = connection.rows(sql::stream_end{.name = stream_.name()});
    if (row.step()) end_ = {row.stream(), row.version(), row.sequence()};
    looked_to_ = direction_ == Direction::forward ? 0 : end_.version + 1;
  }

  /// Finds the places of some versions, starting with this one.
  void look(Connection& connection, std::int64_t version) {
    found_.clear();
    at_ = 0;
    auto rows = direction_ == Direction::forward
                    ? find<sql::stream_sequences>(connection, version)
                    : find<sql::stream_sequences_backward>(connection, version);
    for (; rows.step(); version += step()) {
      if (rows.version() != version) fail(version);
      found_.push_back(rows.sequence());
      looked_to_ = version;
    }
    if (found_.empty()) fail(version);
    limit_ = std::min(limit_ * 4, most_places);
  }

  template <class Statement>
  sql::stream_place_row find(Connection& connection, std::int64_t version) const {
    return connection.rows(Statement{.stream = end_.stream, .from = version, .limit = limit_});
  }

  /// The version to continue with: steps double from the present position, then a binary search
  /// follows.
  std::int64_t seek(Connection& connection, std::int64_t from) {
    const bool forward = direction_ == Direction::forward;
    const std::int64_t limit = forward ? end_.version + 1 : 0;
    // Versions up to `low` are before `from`; `high` isn't, or is the end.
    std::int64_t low = looked_to_;
    std::int64_t high = low;
    for (std::int64_t width = 1;; width *= 2) {
      high = low + step() * width;
      if (forward ? high >= limit : high <= limit) {
        high = limit;
        break;
      }
      if (!is_before(direction_, sequence_of(connection, high), from)) break;
      low = high;
    }
    while (high - low != step()) {
      const std::int64_t middle = low + (high - low) / 2;
      (is_before(direction_, sequence_of(connection, middle), from) ? low : high) = middle;
    }
    return high;
  }

  std::int64_t sequence_of(Connection& connection, std::int64_t version) const {
    if (version == end_.version) return end_.sequence;
    auto row = connection.rows(sql::sequence_of_version{.stream = end_.stream, .version = version});
    if (row.step()) return row.sequence();
    fail(version);
  }

  [[noreturn]] void fail(std::int64_t version) const {
    throw CorruptEvent{"version " + std::to_string(version) + " of '" + stream_.name() +
                       "' is missing; restore it from a backup"};
  }

  const Tag stream_;
  const Direction direction_;
  bool begun_ = false;
  End end_;
  /// Sequences, in the direction; those before at_ have been passed.
  std::vector<std::int64_t> found_;
  std::size_t at_ = 0;
  /// The last version of those; initially the one before the first.
  std::int64_t looked_to_ = 0;
  std::int64_t limit_ = first_places;
};

/// The events of some types, found by the types' blocks.
class KindPlaces final : public Places {
 public:
  KindPlaces(const std::vector<std::string>& types, Direction direction)
      : types_{types}, direction_{direction} {}

  Sequence next(Connection& connection, std::int64_t from) override {
    if (kinds_.empty()) find_kinds(connection);
    while (!numbers_.empty()) {
      while (at_ < found_.size() && is_before(direction_, found_[at_], from)) ++at_;
      if (at_ < found_.size()) return found_[at_];
      if (looked_to_ && !is_before(direction_, *looked_to_, from)) from = beyond(*looked_to_);
      const Sequence block = from >= 0 ? next_block(connection, block_of(from)) : std::nullopt;
      if (!block || is_before(direction_, *block, block_of(from))) return std::nullopt;
      look(connection, *block, from);
    }
    return std::nullopt;
  }

 private:
  std::int64_t beyond(std::int64_t sequence) const noexcept {
    return sequence + (direction_ == Direction::forward ? 1 : -1);
  }

  void find_kinds(Connection& connection) {
    std::string types = "[";
    for (const std::string& type : types_) {
      if (types.size() > 1) types += ',';
      json::append_string(types, type);
    }
    types += ']';
    auto rows = connection.rows(sql::kinds_matching{.categories = std::nullopt, .types = types});
    kinds_ = "[";
    while (rows.step()) {
      numbers_.push_back(rows.kind());
      if (kinds_.size() > 1) kinds_ += ',';
      kinds_ += std::to_string(rows.kind());
    }
    kinds_ += ']';
  }

  Sequence next_block(Connection& connection, std::int64_t from) const {
    Sequence nearest;
    for (const std::int64_t kind : numbers_) {
      auto rows =
          direction_ == Direction::forward
              ? connection.rows(sql::kind_blocks{.kind = kind, .from = from, .limit = 1})
              : connection.rows(sql::kind_blocks_backward{.kind = kind, .from = from, .limit = 1});
      if (rows.step()) nearest = nearer(direction_, nearest, rows.block());
    }
    return nearest;
  }

  void look(Connection& connection, std::int64_t block, std::int64_t from) {
    found_.clear();
    at_ = 0;
    const bool forward = direction_ == Direction::forward;
    const std::int64_t low = block * block_size;
    const std::int64_t high = low + block_size - 1;
    auto rows =
        forward
            ? connection.rows(sql::kind_places{
                  .from = std::max(low, from), .to = high, .kinds = kinds_, .limit = block_size})
            : connection.rows(sql::kind_places_backward{
                  .from = low, .to = std::min(high, from), .kinds = kinds_, .limit = block_size});
    while (rows.step()) found_.push_back(rows.sequence());
    looked_to_ = forward ? high : low;
  }

  const std::vector<std::string>& types_;
  const Direction direction_;
  /// The kinds' numbers; also as JSON, once they are known.
  std::string kinds_;
  std::vector<std::int64_t> numbers_;
  std::vector<std::int64_t> found_;
  std::size_t at_ = 0;
  Sequence looked_to_;
};

/// Every event.
class AllPlaces final : public Places {
 public:
  explicit AllPlaces(Direction direction) noexcept : direction_{direction} {}

  Sequence next(Connection& connection, std::int64_t from) override {
    if (direction_ == Direction::forward && from > last_) last_ = last_sequence(connection);
    if (direction_ == Direction::forward) {
      return from <= last_ ? Sequence{std::max<std::int64_t>(from, 1)} : std::nullopt;
    }
    const std::int64_t last = std::min(from, last_sequence(connection));
    return last >= 1 ? Sequence{last} : std::nullopt;
  }

 private:
  const Direction direction_;
  std::int64_t last_ = 0;
};

/// The union of several places.
class AnyOf final : public Places {
 public:
  AnyOf(std::vector<std::unique_ptr<Places>> places, Direction direction) : direction_{direction} {
    for (auto& one : places) members_.push_back({std::move(one)});
  }

  Sequence next(Connection& connection, std::int64_t from) override {
    Sequence nearest;
    for (Member& member : members_) {
      if (!member.is_asked || (member.at && is_before(direction_, *member.at, from))) {
        member.at = member.places->next(connection, from);
        member.is_asked = true;
      }
      nearest = nearer(direction_, nearest, member.at);
    }
    return nearest;
  }

 private:
  struct Member {
    std::unique_ptr<Places> places;
    bool is_asked = false;
    /// Empty: there are no more.
    Sequence at = {};
  };

  std::vector<Member> members_;
  const Direction direction_;
};

/// The intersection of several places: each in turn leaps to the position of the one before.
class AllOf final : public Places {
 public:
  explicit AllOf(std::vector<std::unique_ptr<Places>> places) noexcept
      : places_{std::move(places)} {}

  Sequence next(Connection& connection, std::int64_t from) override {
    std::size_t agreed = 0;
    for (std::size_t i = 0; agreed < places_.size(); i = (i + 1) % places_.size()) {
      const Sequence place = places_[i]->next(connection, from);
      if (!place) return std::nullopt;
      agreed = *place == from ? agreed + 1 : 1;
      from = *place;
    }
    return from;
  }

 private:
  std::vector<std::unique_ptr<Places>> places_;
};

std::unique_ptr<Places> places_of_tag(const Tag& tag, const QueryItem& item, KindTable& kinds,
                                      Direction direction) {
  std::vector<std::unique_ptr<Places>> both;
  both.push_back(std::make_unique<StreamPlaces>(tag, direction));
  both.push_back(std::make_unique<IndexPlaces>(tag, item.types, kinds, direction));
  return std::make_unique<AnyOf>(std::move(both), direction);
}

}  // namespace

std::unique_ptr<Places> places_of(const QueryItem& item, KindTable& kinds, Direction direction) {
  if (item.tags.empty() && item.types.empty()) return std::make_unique<AllPlaces>(direction);
  if (item.tags.empty()) return std::make_unique<KindPlaces>(item.types, direction);
  if (item.tags.size() == 1) return places_of_tag(item.tags.front(), item, kinds, direction);
  std::vector<std::unique_ptr<Places>> all;
  for (const Tag& tag : item.tags) all.push_back(places_of_tag(tag, item, kinds, direction));
  return std::make_unique<AllOf>(std::move(all));
}

std::unique_ptr<Places> places_of(const stela::Query& query, KindTable& kinds,
                                  Direction direction) {
  if (query.items.size() == 1) return places_of(query.items.front(), kinds, direction);
  std::vector<std::unique_ptr<Places>> all;
  for (const QueryItem& item : query.items) all.push_back(places_of(item, kinds, direction));
  return std::make_unique<AnyOf>(std::move(all), direction);
}

}  // namespace stela::sqlite
